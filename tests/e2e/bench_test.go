package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// contender is a tool with the flags that give it a row of its own in the table.
type contender struct {
	short, name string
	tool        Tool
	flags       []string
}

// Guards as users might set them. The limit for each controller is so high that it costs requests, but never delays an
// eviction.
var guarded = []string{
	"--wait-volumes", "--check-fit=warn", "--single-replica=warn", "--canary=30s", "--max-unavailable-per-controller=100%",
}

func contenders() []contender {
	all := []contender{{short: "kubectl", name: "kubectl drain", tool: cluster.Kubectl()}}
	if noHaulout == nil {
		all = append(all,
			contender{"settle0", "haulout drain --settle 0", haulout, []string{"--settle=0"}},
			contender{"default", "haulout drain", haulout, nil},
			contender{"five", "haulout drain --max-concurrent 5", haulout, []string{"--max-concurrent=5"}},
			contender{"guarded", "haulout drain --settle 0, volumes and guards on", haulout,
				append([]string{"--settle=0"}, guarded...)},
		)
	}
	return slices.DeleteFunc(all, func(c contender) bool { return !chosen("HAULOUT_BENCH_TOOLS", c.short) })
}

// chosen returns true if the variable lists the name, or is empty.
func chosen(variable, name string) bool {
	list := os.Getenv(variable)
	return list == "" || slices.Contains(strings.Split(list, ","), name)
}

// measurement is what one drain needed, or the median of several drains.
type measurement struct {
	wall     time.Duration
	requests int
	user     time.Duration
	system   time.Duration
	switches int64
	faults   int64
	rss      int64
	failed   string
}

// TestBench measures kubectl drain and haulout drain in turn on the same workloads and prints a table, for people and
// for docs/numbers.md. It fails if a drain does not succeed, or if it exceeds the workload's limits
// (bench_judge_test.go).
//
// HAULOUT_BENCH=1 runs it, HAULOUT_BENCH_RUNS (3) is the number of runs whose median is shown. HAULOUT_BENCH_ONLY names
// the workloads, HAULOUT_BENCH_TOOLS the rows (kubectl, settle0, default, five, guarded), both separated by commas.
// Ratios refer to the first row.
func TestBench(t *testing.T) {
	if os.Getenv("HAULOUT_BENCH") != "1" {
		t.Skip("HAULOUT_BENCH=1 runs the benchmark")
	}
	runs := benchRuns(t, 3)
	if noHaulout != nil {
		shout("THE BENCHMARK HAS KUBECTL ALONE", noHaulout)
	}
	fmt.Println("| workload | tool | wall (median) | to kubectl | requests | CPU (user + system) | to kubectl " +
		"| switches | faults | peak memory |")
	fmt.Println("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|")
	for _, load := range workloads() {
		if chosen("HAULOUT_BENCH_ONLY", load.name) && (!load.large || os.Getenv("HAULOUT_BENCH_ONLY") != "") {
			bench(t, load, runs)
		}
	}
}

// benchRuns returns the number of runs whose median is shown.
func benchRuns(t *testing.T, otherwise int) int {
	t.Helper()
	text := os.Getenv("HAULOUT_BENCH_RUNS")
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("HAULOUT_BENCH_RUNS=%s is not a positive number", text)
	}
	return n
}

func bench(t *testing.T, load workload, runs int) {
	all := contenders()
	samples := make([][]measurement, len(all))
	for range runs {
		for i, c := range all {
			samples[i] = append(samples[i], measure(t, load, c))
		}
	}
	wallOf := func(m measurement) time.Duration { return m.wall }
	cpuOf := func(m measurement) time.Duration { return m.user + m.system }
	base, baseCPU := median(samples[0], wallOf), median(samples[0], cpuOf)
	for i, c := range all {
		for _, sample := range samples[i] {
			if sample.failed != "" {
				t.Errorf("%s, %s: %s", load.name, c.name, sample.failed)
			}
		}
		wall, cpu := median(samples[i], wallOf), median(samples[i], cpuOf)
		got := benchRow{
			wall: wall.Seconds() / base.Seconds(), cpu: cpu.Seconds() / baseCPU.Seconds(),
			requests: median(samples[i], func(m measurement) int { return m.requests }),
			compared: all[0].short == "kubectl",
		}
		fmt.Printf("| %s | %s | %.2f s | %.2f | %d | %.2f s (%.2f + %.2f) | %.2f | %d | %d | %.1f MB |\n",
			load.title, c.name, wall.Seconds(), got.wall, got.requests, cpu.Seconds(),
			median(samples[i], func(m measurement) time.Duration { return m.user }).Seconds(),
			median(samples[i], func(m measurement) time.Duration { return m.system }).Seconds(), got.cpu,
			median(samples[i], func(m measurement) int64 { return m.switches }),
			median(samples[i], func(m measurement) int64 { return m.faults }),
			float64(median(samples[i], func(m measurement) int64 { return m.rss }))/1e6)
		for _, missed := range judgeRow(load, c.short, got) {
			t.Errorf("%s, %s: %s", load.title, c.name, missed)
		}
	}
}

// measure runs one drain in a world of its own and removes the world.
func measure(t *testing.T, load workload, c contender) measurement {
	t.Helper()
	limit := 5 * time.Minute
	if load.large {
		limit = 20 * time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	w, err := cluster.NewWorld(ctx)
	must(t, err)
	defer closeAndWait(t, w)
	s := &setup{World: w, t: t}
	addNode := func(short string) error { return s.AddNode(ctx, short, short) }
	if load.disks > 0 {
		s.disks, err = w.StartDisks()
		must(t, err)
		defer s.disks.Close()
		addNode = func(short string) error { return s.disks.AddNode(ctx, short) }
	}
	must(t, addNode("old"))
	load.build(s)
	s.settled()
	if load.others > 0 {
		s.addOthers(ctx, load.others)
	}
	must(t, addNode("new"))

	run, err := w.Start(ctx, c.tool, append([]string{"drain", w.Node("old")}, c.flags...)...)
	must(t, err)
	if load.meanwhile != nil {
		must(t, load.meanwhile(ctx, w))
	}
	result, err := run.Wait()
	must(t, err)
	requests, err := w.Requests()
	must(t, err)
	wall := result.Wall
	if load.disks > 0 {
		wall = max(wall, s.detached(ctx, load.disks).Sub(run.started))
	}
	m := measurement{
		wall: wall, requests: len(requests), user: result.User, system: result.System,
		switches: result.Switches, faults: result.Faults, rss: result.MaxRSS,
	}
	if got := observe(t, w, result); !got.done || got.left != "" || got.namesakes != "" {
		m.failed = fmt.Sprintf("exit %d, %+v\n%s", result.Exit, got, result.Stderr)
	}
	return m
}

// addOthers adds pods that run on nodes of their own, at most a thousand on each.
func (s *setup) addOthers(ctx context.Context, pods int) {
	s.t.Helper()
	const most = 1000
	for first := 0; first < pods; first += most {
		name := fmt.Sprintf("others%d", first/most)
		must(s.t, s.AddNode(ctx, name, name))
		here := min(most, pods-first)
		s.add(here, Deployment(name, int32(here), InRole(corev1.NodeSelectorOpIn, name)))
	}
	s.settled()
}

func (s *setup) addDisk(disk Disk) {
	s.t.Helper()
	must(s.t, s.disks.Add(s.t.Context(), disk))
}

// detached waits until all disks of the node "old" are detached, and returns the time at which the last one was. The
// drain may have ended before.
func (s *setup) detached(ctx context.Context, disks int) (last time.Time) {
	s.t.Helper()
	must(s.t, Until(ctx, "the disks are detached", func() (bool, error) {
		attachments := s.disks.Attachments("old")
		for _, attachment := range attachments {
			if attachment.Gone.IsZero() {
				return false, nil
			}
			if attachment.Gone.After(last) {
				last = attachment.Gone
			}
		}
		return len(attachments) == disks, nil
	}))
	return last
}

// closeAndWait removes a world and waits until it is deleted, so that the next run begins on a cluster without other
// work.
func closeAndWait(t *testing.T, w *World) {
	t.Helper()
	w.Close()
	err := UntilWithin(t.Context(), 5*time.Minute, "the world has gone", func() (bool, error) {
		_, err := w.Client.CoreV1().Namespaces().Get(t.Context(), w.Name, getOptions)
		return err != nil, nil
	})
	if err != nil {
		t.Logf("the next run meets a busy cluster: %v", err)
	}
}

func median[T cmp.Ordered, Sample any](samples []Sample, value func(Sample) T) T {
	var values []T
	for _, sample := range samples {
		values = append(values, value(sample))
	}
	slices.Sort(values)
	return values[len(values)/2]
}
