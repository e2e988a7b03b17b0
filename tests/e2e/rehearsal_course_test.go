package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Tolerances with which a rehearsed and a real course of a drain are compared.
const (
	// Evictions of one controller's pods within this time are one wave: their order does not matter.
	oneMoment = 2 * time.Second
	// The times between two evictions in both courses count as equal if they differ by less than this, even if the two
	// evictions are one wave in only one of the courses.
	sameGap = time.Second
	// Two pods of different controllers whose evictions are further apart than this in one of the courses must have
	// the same order in both.
	clearlyApart = 5 * time.Second
	// Shorter waits are ignored: requests and controllers need that long.
	worthTelling = 2 * time.Second
	// A smaller difference between rehearsed and real times is due to the load of this machine.
	inTime = 10 * time.Second
)

// course is how a drain went, rehearsed or real. Times count from its beginning.
type course struct {
	drained  bool
	took     time.Duration
	pods     map[string]*passage // by name: the pods that must leave
	homeless map[string]int      // number of pods that found no node, by controller and missing resources
}

// never is the time of an event that has not happened.
const never = time.Duration(math.MinInt64)

// passage is what happened to one pod during the drain.
type passage struct {
	controller string
	evicted    time.Duration
	vanished   time.Duration
	reason     string // the reason why the pod is still there at the end
	waits      map[string]time.Duration
}

// RehearsalReport has those fields of `haulout rehearse -o json` that these tests read.
type RehearsalReport struct {
	Seconds float64  `json:"seconds"`
	Drains  []Report `json:"drains"`
	Waits   []struct {
		Pod     string  `json:"pod"`
		Seconds float64 `json:"seconds"`
		Reason  string  `json:"reason"`
		Message string  `json:"message"`
	} `json:"waits"`
	NoRoom []struct {
		Pod        string `json:"pod"`
		Controller string `json:"controller"`
		Message    string `json:"message"`
	} `json:"noRoom"`
}

var budgetInMessage = regexp.MustCompile(`PodDisruptionBudget ([^\s:,]+)`)

// hindrance returns a reason to wait, with the budget that its message names.
func hindrance(reason, message string) string {
	if budget := budgetInMessage.FindStringSubmatch(message); budget != nil {
		return reason + " " + budget[1]
	}
	return reason
}

// foretold returns the course of the one drain in a rehearsal's output. Its snapshot also contains the worlds of other
// tests, perhaps during their drains. Their pods that find no capacity are ignored.
func foretold(stdout, namespace string) (course, error) {
	var report RehearsalReport
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		return course{}, fmt.Errorf("no rehearsal: %w\n%s", err, stdout)
	}
	if len(report.Drains) != 1 {
		return course{}, fmt.Errorf("the rehearsal has %d drains", len(report.Drains))
	}
	drain := report.Drains[0]
	c := course{
		drained: drain.Outcome == "drained", took: time.Duration(report.Seconds * float64(time.Second)),
		pods: map[string]*passage{}, homeless: map[string]int{},
	}
	for _, pod := range drain.Pods {
		c.note(pod, drain.StartedAt)
	}
	for _, wait := range report.Waits {
		_, name, _ := strings.Cut(wait.Pod, "/")
		if pod := c.pods[name]; pod != nil {
			pod.waits[hindrance(wait.Reason, wait.Message)] += time.Duration(wait.Seconds * float64(time.Second))
		}
	}
	for _, pod := range report.NoRoom {
		if !strings.HasPrefix(pod.Pod, namespace+"/") {
			continue
		}
		c.homeless[lacking(pod.Controller, pod.Message)]++
	}
	return c, nil
}

// note records what the report or an event says about a pod. It ignores skipped pods and returns nil for them.
func (c *course) note(pod PodReport, began time.Time) *passage {
	if pod.Outcome == "skipped" {
		return nil
	}
	known := c.pods[pod.Name]
	if known == nil {
		known = &passage{controller: pod.Controller, evicted: never, vanished: never, waits: map[string]time.Duration{}}
		c.pods[pod.Name] = known
	}
	if !pod.EvictedAt.IsZero() && known.evicted == never {
		known.evicted = pod.EvictedAt.Sub(began)
	}
	if !pod.VanishedAt.IsZero() {
		known.vanished = pod.VanishedAt.Sub(began)
	}
	known.reason = pod.Reason
	return known
}

// carriedOut returns the course of a real drain from its events. They do not contain what the scheduler decides about
// replacements.
func carriedOut(result Result) (course, error) {
	events, err := result.Events()
	if err != nil || len(events) == 0 {
		return course{}, fmt.Errorf("%d events: %w\n%s", len(events), err, result.Stderr)
	}
	began, end := events[0].At, events[len(events)-1]
	c := course{drained: result.Exit == 0, took: result.Wall, pods: map[string]*passage{}, homeless: map[string]int{}}
	if end.Type != "finished" {
		return c, fmt.Errorf("the last event is %s", end.Type)
	}
	type open struct {
		why   string
		since time.Time
	}
	waiting := map[string]open{}
	close := func(name string, at time.Time) {
		if wait, ok := waiting[name]; ok {
			c.pods[name].waits[wait.why] += at.Sub(wait.since)
			delete(waiting, name)
		}
	}
	for _, event := range events {
		if event.Pod == nil {
			continue
		}
		name := event.Pod.Name
		if c.note(*event.Pod, began) == nil {
			continue
		}
		// A pod with a signal (an eviction request although its budget is exhausted) continues to wait.
		if event.Type == "signal-sent" {
			continue
		}
		close(name, event.At)
		switch event.Type {
		case "parked":
			waiting[name] = open{hindrance(event.Pod.Reason, event.Pod.Message), event.At}
		case "evicted":
			// If the watch showed the eviction before its answer arrived, EvictedAt has only whole seconds, as the
			// server wrote it. The time of this event is exact.
			c.pods[name].evicted = event.At.Sub(began)
		}
	}
	for name := range waiting {
		close(name, end.At)
	}
	return c, nil
}

// lacking returns a controller with the missing resources in the scheduler's message, without the parts that depend on
// other worlds.
func lacking(controller, message string) string {
	before, _, _ := strings.Cut(message, " preemption:")
	return fmt.Sprint(controller, " ", shortages.FindAllString(before, -1))
}

// held returns, for each pod whose eviction had to wait or that was never deleted, the reasons.
func (c course) held() map[string]string {
	held := map[string]string{}
	for name, pod := range c.pods {
		var why []string
		for reason, took := range pod.waits {
			if took >= worthTelling {
				why = append(why, reason)
			}
		}
		slices.Sort(why)
		if pod.vanished == never {
			why = append(why, "never left: "+pod.reason)
		}
		if len(why) > 0 {
			held[name] = strings.Join(why, ", ")
		}
	}
	return held
}

// waves returns, for each controller, in which order its pods were evicted. Pods of one wave stand together.
func (c course) waves() map[string]string {
	lanes := map[string][]string{}
	for name, pod := range c.pods {
		if pod.evicted != never {
			lanes[pod.controller] = append(lanes[pod.controller], name)
		}
	}
	waves := map[string]string{}
	for controller, names := range lanes {
		slices.SortFunc(names, func(a, b string) int { return cmp.Compare(c.pods[a].evicted, c.pods[b].evicted) })
		var groups [][]string
		var began time.Duration
		for _, name := range names {
			if at := c.pods[name].evicted; len(groups) == 0 || at-began > oneMoment {
				groups, began = append(groups, nil), at
			}
			groups[len(groups)-1] = append(groups[len(groups)-1], name)
		}
		var texts []string
		for _, group := range groups {
			slices.Sort(group)
			texts = append(texts, strings.Join(group, " "))
		}
		waves[controller] = strings.Join(texts, " | ")
	}
	return waves
}

// String returns the evictions with their times.
func (c course) String() string {
	names := slices.Collect(maps.Keys(c.pods))
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(c.pods[a].evicted, c.pods[b].evicted), strings.Compare(a, b))
	})
	var text strings.Builder
	for _, name := range names {
		if pod := c.pods[name]; pod.evicted != never {
			fmt.Fprintf(&text, " %s:%.1f", name, pod.evicted.Seconds())
		}
	}
	return text.String()
}

// moved returns the time until the drain ended or, if it ended at its time limit, until the last pod was deleted. The
// time from then to the limit is not counted, because a rehearsal would predict it in any case.
func (c course) moved() time.Duration {
	if c.drained {
		return c.took
	}
	var last time.Duration
	for _, pod := range c.pods {
		last = max(last, pod.vanished)
	}
	return last
}

// disorder returns pairs of pods that are clearly apart in one course and have the opposite order in the other.
func disorder(a, b course) (pairs []string) {
	names := slices.Sorted(maps.Keys(a.pods))
	for i, x := range names {
		for _, y := range names[i+1:] {
			if b.pods[x] == nil || b.pods[y] == nil || min(a.pods[x].evicted, a.pods[y].evicted,
				b.pods[x].evicted, b.pods[y].evicted) == never {
				continue // the other comparisons find pods that were not evicted
			}
			one, other := a.pods[x].evicted-a.pods[y].evicted, b.pods[x].evicted-b.pods[y].evicted
			if (one > 0) != (other > 0) && max(one.Abs(), other.Abs()) > clearlyApart {
				pairs = append(pairs, fmt.Sprintf("%s before %s by %v, or by %v", x, y, -one, -other))
			}
		}
	}
	return pairs
}

// regrouped returns pods that were evicted in only one of the courses, and pairs of pods of one controller that are one
// wave in one course and two waves in the other.
func regrouped(a, b course) (found []string) {
	pods := maps.Clone(a.pods)
	maps.Copy(pods, b.pods)
	names := slices.Sorted(maps.Keys(pods))
	for i, x := range names {
		if was := a.evicted(x) != never; was != (b.evicted(x) != never) {
			found = append(found, fmt.Sprintf("%s: evicted in one alone; rehearsed: %v", x, was))
		}
		for _, y := range names[i+1:] {
			if pods[x].controller != pods[y].controller ||
				min(a.evicted(x), a.evicted(y), b.evicted(x), b.evicted(y)) == never {
				continue
			}
			one, other := a.evicted(y)-a.evicted(x), b.evicted(y)-b.evicted(x)
			if wave(one) != wave(other) && (one-other).Abs() > sameGap {
				found = append(found, fmt.Sprintf("%s and %s: rehearsed %v apart, really %v", x, y, one, other))
			}
		}
	}
	return found
}

// evicted returns when the pod was evicted, or never.
func (c course) evicted(name string) time.Duration {
	if pod := c.pods[name]; pod != nil {
		return pod.evicted
	}
	return never
}

// wave returns 0 if two evictions with this time between them are one wave, and otherwise the sign of the time, which
// shows which of them came first.
func wave(gap time.Duration) int {
	if gap.Abs() <= oneMoment {
		return 0
	}
	return cmp.Compare(gap, 0)
}

// late returns pods whose deletion was rehearsed for another time than the real one, by more than a quarter and more
// than inTime.
func late(said, real course) (found []string) {
	for _, name := range slices.Sorted(maps.Keys(said.pods)) {
		a, b := said.pods[name], real.pods[name]
		if b == nil || a.vanished == never || b.vanished == never {
			continue
		}
		if off := (a.vanished - b.vanished).Abs(); off > inTime && off > b.vanished/4 {
			found = append(found, fmt.Sprintf("%s: rehearsed to go after %v, really after %v", name, a.vanished, b.vanished))
		}
	}
	return found
}

// wrong returns all differences.
func (j judgement) wrong() []string {
	return slices.Concat(j.outcome, j.held, j.waves, j.late, j.homeless)
}

// judgement holds what a rehearsal predicted wrongly. All lists are empty if it was right.
type judgement struct {
	outcome, held, waves, late, homeless []string
	ratio                                float64 // real time divided by rehearsed time
}

func judge(said, real course) judgement {
	j := judgement{
		held:     differences(said.held(), real.held()),
		waves:    append(regrouped(said, real), disorder(said, real)...),
		late:     late(said, real),
		homeless: differences(said.homeless, real.homeless),
		ratio:    real.moved().Seconds() / said.moved().Seconds(),
	}
	if said.drained != real.drained {
		j.outcome = []string{fmt.Sprintf("drained: rehearsed %v, really %v", said.drained, real.drained)}
	}
	return j
}

func differences[V comparable](said, real map[string]V) (found []string) {
	keys := map[string]V{}
	maps.Copy(keys, said)
	maps.Copy(keys, real)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if said[key] != real[key] {
			found = append(found, fmt.Sprintf("%s: rehearsed %v, really %v", key, said[key], real[key]))
		}
	}
	return found
}
