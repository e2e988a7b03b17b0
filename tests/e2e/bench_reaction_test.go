package e2e

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// The promised reaction times of a drain, on a machine without other work.
const (
	budgetToEviction = 50 * time.Millisecond
	lastPodToDrained = 100 * time.Millisecond
)

// reaction holds the two reaction times of one drain.
type reaction struct {
	budget time.Duration // from the status that opens a budget to the arrival of the eviction
	end    time.Duration // from the end of the last pod's containers to "drained"; the settle time has passed by then
}

// TestBenchReaction measures how soon a drain continues when a budget allows a disruption, and how soon it ends when
// the last pod is deleted. It fails if a median is larger than promised. HAULOUT_BENCH=1 runs it, with
// HAULOUT_BENCH_RUNS (5) drains.
func TestBenchReaction(t *testing.T) {
	if os.Getenv("HAULOUT_BENCH") != "1" {
		t.Skip("HAULOUT_BENCH=1 runs the benchmark")
	}
	needHaulout(t)
	var samples []reaction
	for range benchRuns(t, 5) {
		samples = append(samples, measureReaction(t))
	}
	fmt.Println("| reaction (median) | time | promised |")
	fmt.Println("|---|---:|---:|")
	for _, row := range []struct {
		title string
		value func(reaction) time.Duration
		limit time.Duration
	}{
		{"a budget opens until the eviction arrives", func(r reaction) time.Duration { return r.budget }, budgetToEviction},
		{"the last pod ends until the drain is over", func(r reaction) time.Duration { return r.end }, lastPodToDrained},
	} {
		took := median(samples, row.value)
		fmt.Printf("| %s | %.1f ms | %d ms |\n", row.title, float64(took.Microseconds())/1000, row.limit.Milliseconds())
		if took > row.limit {
			t.Errorf("%s: %v, and at most %v are promised (%v)", row.title, took, row.limit, samples)
		}
	}
}

func measureReaction(t *testing.T) (r reaction) {
	t.Helper()
	w, err := cluster.NewWorld(t.Context())
	must(t, err)
	defer closeAndWait(t, w)
	s := &setup{World: w, t: t}
	must(t, s.AddNode(t.Context(), "old", "old"))
	s.add(2, Deployment("web", 2), Budget("web", "0"))
	s.settled()
	must(t, s.AddNode(t.Context(), "new", "new"))

	drain, err := w.Start(t.Context(), haulout, "drain", w.Node("old"), "--settle=0", "-o", "json")
	must(t, err)
	must(t, eachRefused(t.Context(), w, 2))
	changed := time.Now()
	must(t, w.SetBudget(t.Context(), "web", "100%"))
	result, err := drain.Wait()
	must(t, err)
	report, err := result.Report()
	must(t, err)
	if report.Outcome != "drained" {
		t.Fatalf("%s\n%s", report.Outcome, result.Stderr)
	}
	r.budget, err = w.BudgetReaction("web", changed)
	must(t, err)
	var last time.Time
	for _, pod := range w.Kubelets.Pods(w.Name) {
		if pod.Node == w.Node("old") && pod.Stopped.After(last) {
			last = pod.Stopped
		}
	}
	r.end = report.FinishedAt.Sub(last)
	return r
}
