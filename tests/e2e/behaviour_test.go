package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// A drain that gets SIGINT stops within a second with exit status 130. It leaves the cordon and its mark, so that the
// next drain continues from there.
func TestSIGINT(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	w := smallWorld(t, Deployment("web", 2), Budget("web", "0"))
	drain, err := w.Start(t.Context(), haulout, "drain", w.Node("old"), "--settle=0")
	must(t, err)
	must(t, blocked(t.Context(), w))
	interrupted := time.Now()
	must(t, drain.Signal(syscall.SIGINT))
	result, err := drain.Wait()
	must(t, err)
	withinASecond(t, "stopped after", time.Since(interrupted))
	if result.Exit != 130 {
		t.Errorf("exit %d, want 130\n%s%s", result.Exit, result.Stdout, result.Stderr)
	}
	compare(t, outcome{left: "web=2", cordoned: "old"}, observe(t, w, result))
	expectNode(t, w, true, true)

	must(t, w.SetBudget(t.Context(), "web", "100%"))
	expectCordon(t, drainReport(t, w), true, "haulout")
}

// P10: a drain of n pods, all of which the server evicts at the first request, sends at most n + 15 requests, and never
// reads a single pod. P2: each eviction names the UID of its pod.
func TestRequestsBudget(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	const pods = 50
	w := newWorld(t)
	must(t, w.AddNode(t.Context(), "old", "old"))
	must(t, w.Apply(t.Context(), StatefulSet("db", pods, Annotate(TerminatesAfter, "300ms"))))
	must(t, w.Settle(t.Context(), pods))
	must(t, w.AddNode(t.Context(), "new", "new"))
	report := drainReport(t, w)

	requests, err := w.Requests()
	must(t, err)
	evictions := 0
	for _, request := range requests {
		if !strings.HasPrefix(request.UserAgent, "haulout/") {
			t.Errorf("%s %s came from %q", request.Verb, request.RequestURI, request.UserAgent)
		}
		if request.Verb == "get" && request.Is("pods") {
			t.Errorf("a look at a single pod: %s", request.RequestURI)
		}
		if request.IsEviction() {
			evictions++
			if guard := request.RequestObject.DeleteOptions.Preconditions; guard == nil || guard.UID == nil {
				t.Errorf("an eviction without UID: %s", request.RequestURI)
			}
		}
	}
	if len(requests) > pods+15 || evictions != pods {
		t.Errorf("%d requests, %d of them evictions, for %d pods", len(requests), evictions, pods)
	}
	if report.Requests.Total != len(requests) {
		t.Errorf("the report counts %d requests, the server %d", report.Requests.Total, len(requests))
	}
	compare(t, outcome{done: true, evicted: "db=50", cordoned: "old"}, observe(t, w, Result{}))
}

// When a budget allows a disruption, the drain learns it from the watch event and sends the eviction at once, without
// waiting for its next attempt.
func TestBudgetOpensIsNoticedAtOnce(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	w := smallWorld(t, Deployment("web", 2), Budget("web", "0"))
	drain, err := w.Start(t.Context(), haulout, "drain", w.Node("old"), "--settle=0")
	must(t, err)
	must(t, eachRefused(t.Context(), w, 2))
	changed := time.Now()
	must(t, w.SetBudget(t.Context(), "web", "100%"))
	result, err := drain.Wait()
	must(t, err)
	if result.Exit != 0 {
		t.Fatalf("exit %d\n%s%s", result.Exit, result.Stdout, result.Stderr)
	}
	delay, err := w.BudgetReaction("web", changed)
	must(t, err)
	t.Logf("the eviction arrived %v after the budget had opened", delay)
	// TestBenchReaction checks the promised reaction time of 50 ms, on a machine without other work. The limit here
	// only distinguishes a reaction to a watch event from polling.
	if delay > 500*time.Millisecond {
		t.Errorf("the eviction arrived %v after the budget had opened", delay)
	}
}
