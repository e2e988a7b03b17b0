package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// If an answer left the server this long before a connection broke, the client has read it, even on a host that
	// does other work.
	answerTakes = 2 * time.Second
	// If a request was in flight when the connection broke, it has arrived after this time.
	requestTakes = time.Second
	// The maximum number of evictions that wait for their answers when a connection breaks
	// (PipelineOptions::max_requests).
	evictionsInFlight = 10
)

// fault is a fault that a test causes during a drain, with the times of its beginning and its end.
type fault struct {
	from, to time.Time
	// True if the server still answers all requests that it has received, and every answer arrives.
	answersArrive bool
}

// during runs `act`, which causes a fault, and returns the fault.
func during(act func()) fault {
	from := time.Now()
	act()
	return fault{from: from, to: time.Now()}
}

// mayLose returns true if the fault may have kept the answer to this request from the client.
func (f fault) mayLose(answer AuditEvent) bool {
	return !f.answersArrive && answer.Received.Before(f.to.Add(requestTakes)) && answer.StageAt.After(f.from.Add(-answerTakes))
}

// judgedEvictions is what an audit log shows about pods that were evicted more than once.
type judgedEvictions struct {
	wrong []string
	// The number of pods, over all faults, whose eviction had been answered before a fault and that still existed at
	// the fault. A drain that forgets its evictions would evict these again.
	atRisk int
}

// judgeEvictions checks that each pod was evicted once, or a second time only if a fault may have lost the first
// answer.
func judgeEvictions(requests []AuditEvent, pods []PodRecord, faults []fault) (judged judgedEvictions) {
	complain := func(format string, args ...any) { judged.wrong = append(judged.wrong, fmt.Sprintf(format, args...)) }
	evictions := slices.DeleteFunc(slices.Clone(requests), func(e AuditEvent) bool { return !e.IsEviction() })
	slices.SortStableFunc(evictions, func(a, b AuditEvent) int { return a.Received.Compare(b.Received) })
	accepted := map[types.UID]AuditEvent{}
	again := make([]int, len(faults))
	for _, eviction := range evictions {
		guard := eviction.RequestObject.DeleteOptions.Preconditions
		if guard == nil || guard.UID == nil {
			complain("an eviction without UID: %s", eviction.RequestURI)
			continue
		}
		uid := types.UID(*guard.UID)
		if before, twice := accepted[uid]; twice {
			which := slices.IndexFunc(faults, func(f fault) bool { return f.mayLose(before) })
			if which < 0 {
				complain("evicted twice: %s at %v and %v", eviction.RequestURI, before.Received, eviction.Received)
			} else if again[which]++; again[which] > evictionsInFlight {
				complain("%d evictions were repeated after a fault that can have hit %d", again[which], evictionsInFlight)
			}
		}
		if eviction.Accepted() {
			accepted[uid] = eviction
		}
	}
	for _, f := range faults {
		for _, pod := range pods {
			eviction, evicted := accepted[pod.UID]
			if evicted && eviction.StageAt.Before(f.from) && !f.mayLose(eviction) && pod.Stopped.After(f.from) {
				judged.atRisk++
			}
		}
	}
	return judged
}

// falselyGone returns the pods that the report shows as deleted although their containers still ran or the time of their
// deletion is missing, and pods that have such a time but are not shown as deleted.
func falselyGone(report []PodReport, pods []PodRecord) (wrong []string) {
	stopped := map[string]time.Time{}
	for _, pod := range pods {
		stopped[string(pod.UID)] = pod.Stopped
	}
	for _, pod := range report {
		left := pod.Outcome == "evicted" || pod.Outcome == "gone"
		at, known := stopped[pod.UID]
		if left != !pod.VanishedAt.IsZero() {
			wrong = append(wrong, fmt.Sprintf("pod %s is %s, and vanished at %v", pod.Name, pod.Outcome, pod.VanishedAt))
		} else if left && (!known || at.IsZero() || pod.VanishedAt.Before(at.Truncate(time.Microsecond))) {
			wrong = append(wrong, fmt.Sprintf("pod %s is gone at %v, and its kubelet let it go at %v", pod.Name,
				pod.VanishedAt, at))
		}
	}
	return wrong
}

// If the judges accepted everything, the tests of faults would be worthless.
func TestFaultsJudge(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	at := func(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }
	evict := func(uid string, received, answered float64, code int) (e AuditEvent) {
		e.Verb, e.ObjectRef.Resource, e.ObjectRef.Subresource = "create", "pods", "eviction"
		e.RequestURI, e.ResponseStatus.Code, e.Received, e.StageAt = uid, code, at(received), at(answered)
		if uid != "" {
			e.RequestObject.DeleteOptions.Preconditions = &struct {
				UID             *string `json:"uid"`
				ResourceVersion *string `json:"resourceVersion"`
			}{UID: &uid}
		}
		return e
	}
	repeated := func(pods int) (events []AuditEvent) {
		for i := range pods {
			uid := fmt.Sprint(i)
			events = append(events, evict(uid, 9.9, 9.95, 201), evict(uid, 11, 11.1, 201))
		}
		return events
	}
	cut := fault{from: at(10), to: at(10.01)}
	lossless := fault{from: at(10), to: at(12), answersArrive: true}
	type events = []AuditEvent
	for _, row := range []struct {
		name   string
		events events
		fault  fault
		wrong  int
	}{
		{"once", events{evict("a", 1, 1.1, 201), evict("b", 2, 2.1, 201)}, cut, 0},
		{"refused before", events{evict("a", 1, 1.1, 429), evict("a", 2, 2.1, 500), evict("a", 3, 3.1, 201)}, cut, 0},
		{"another request", events{evict("a", 1, 1.1, 201), {Verb: "get"}}, cut, 0},
		{"twice", events{evict("a", 1, 1.1, 201), evict("a", 3, 3.1, 201)}, cut, 1},
		{"twice, and gone by then", events{evict("a", 1, 1.1, 201), evict("a", 3, 3.1, 404)}, cut, 1},
		{"twice, written down the other way round", events{evict("a", 3, 3.1, 201), evict("a", 1, 1.1, 201)}, cut, 1},
		{"answered before the cut, again after it", events{evict("a", 7, 7.9, 201), evict("a", 11, 11.1, 201)}, cut, 1},
		{"open at the cut", events{evict("a", 9.9, 10.2, 201), evict("a", 11, 11.1, 201)}, cut, 0},
		{"received long before the cut, still open", events{evict("a", 1, 10.2, 201), evict("a", 11, 11.1, 201)}, cut, 0},
		{"open, but nothing was lost", events{evict("a", 9.9, 10.2, 201), evict("a", 11, 11.1, 201)}, lossless, 1},
		{"on its way at the cut", events{evict("a", 10.9, 11, 201), evict("a", 12, 12.1, 201)}, cut, 0},
		{"after the cut", events{evict("a", 11.1, 11.2, 201), evict("a", 12, 12.1, 201)}, cut, 1},
		{"all that were in flight", repeated(evictionsInFlight), cut, 0},
		{"more than were in flight", repeated(evictionsInFlight + 1), cut, 1},
		{"whichever has this name", events{evict("", 1, 1.1, 201)}, cut, 1},
	} {
		if got := judgeEvictions(row.events, nil, []fault{row.fault}); len(got.wrong) != row.wrong {
			t.Errorf("%s: %v", row.name, got.wrong)
		}
	}
	forgotten := judgeEvictions(
		events{evict("there", 1, 1.1, 201), evict("left", 1, 1.1, 201), evict("open", 9, 9.9, 201), evict("later", 11, 11.1, 201)},
		[]PodRecord{{UID: "there", Stopped: at(12)}, {UID: "left", Stopped: at(9)}, {UID: "open", Stopped: at(18)},
			{UID: "later", Stopped: at(20)}, {UID: "stays"}},
		[]fault{cut})
	if forgotten.atRisk != 1 || len(forgotten.wrong) != 0 {
		t.Errorf("one pod of five can be evicted again: %+v", forgotten)
	}

	pods := []PodRecord{{UID: "a", Stopped: at(5)}, {UID: "runs"}}
	for _, row := range []struct {
		name  string
		pod   PodReport
		wrong int
	}{
		{"gone", PodReport{UID: "a", Outcome: "evicted", VanishedAt: at(5.001)}, 0},
		{"skipped", PodReport{UID: "runs", Outcome: "skipped"}, 0},
		{"gone too early", PodReport{UID: "a", Outcome: "gone", VanishedAt: at(4.999)}, 1},
		{"gone, and it runs", PodReport{UID: "runs", Outcome: "evicted", VanishedAt: at(30)}, 1},
		{"gone, and nobody knew it", PodReport{UID: "b", Outcome: "evicted", VanishedAt: at(30)}, 1},
		{"gone at no time", PodReport{UID: "a", Outcome: "evicted"}, 1},
		{"vanished, and still there", PodReport{UID: "a", Outcome: "parked", VanishedAt: at(6)}, 1},
	} {
		if wrong := falselyGone([]PodReport{row.pod}, pods); len(wrong) != row.wrong {
			t.Errorf("%s: %v", row.name, wrong)
		}
	}
}
