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

// What counts as what when two courses of a drain are compared.
const (
	// Evictions of one controller within this time are one wave: they went in one moment, in whatever order.
	oneMoment = 2 * time.Second
	// Two gaps between evictions that differ by less are the same, on whichever side of a moment they are.
	sameGap = time.Second
	// Pods that are further apart than this, foretold or real, go in the same order in both.
	clearlyApart = 5 * time.Second
	// Shorter waits are the time that a request takes, or a controller.
	worthTelling = 2 * time.Second
	// Later than foretold by less is the machine's fault.
	inTime = 10 * time.Second
)

// course is how a drain went, foretold or real. Times count from its beginning.
type course struct {
	drained  bool
	took     time.Duration
	pods     map[string]*passage // by name: those that were to leave
	homeless map[string]int      // pods that have found no node, by controller and what is short
}

// never is the time of what has not happened.
const never = time.Duration(math.MinInt64)

// passage is one pod's way off the node.
type passage struct {
	controller string
	evicted    time.Duration
	vanished   time.Duration
	reason     string // why it is still there in the end
	waits      map[string]time.Duration
}

// RehearsalReport is what these tests read of `haulout rehearse -o json`.
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

// hindrance is a reason to wait together with the budget that it speaks of.
func hindrance(reason, message string) string {
	if budget := budgetInMessage.FindStringSubmatch(message); budget != nil {
		return reason + " " + budget[1]
	}
	return reason
}

// foretold is the course of the one drain that a rehearsal has played. The snapshot has the other worlds, too, perhaps
// in the middle of their drains, and what finds no room in them is not this one's.
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

// note takes what is known of a pod, unless it stays.
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

// carriedOut is the course of a drain as its events tell it. What the scheduler says of replacements is not among them.
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
		// A pod whose eviction is only a signal goes on waiting.
		if event.Type == "signal-sent" {
			continue
		}
		close(name, event.At)
		switch event.Type {
		case "parked":
			waiting[name] = open{hindrance(event.Pod.Reason, event.Pod.Message), event.At}
		case "evicted":
			// What the watch tells before the answer has only the server's whole seconds.
			c.pods[name].evicted = event.At.Sub(began)
		}
	}
	for name := range waiting {
		close(name, end.At)
	}
	return c, nil
}

// lacking is a controller with what the scheduler says is short, without what depends on other worlds.
func lacking(controller, message string) string {
	before, _, _ := strings.Cut(message, " preemption:")
	return fmt.Sprint(controller, " ", shortages.FindAllString(before, -1))
}

// held tells for each pod that was held up by what, and whether that never ended.
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

// waves tells for each controller in which order its pods were evicted; those of one moment stand together.
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

// String lists the evictions with their times.
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

// moved is how long pods were on the move: what a time limit adds is no merit of a rehearsal.
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

// disorder lists pairs of pods that are clearly apart in one course and go the other way round in the other.
func disorder(a, b course) (pairs []string) {
	names := slices.Sorted(maps.Keys(a.pods))
	for i, x := range names {
		for _, y := range names[i+1:] {
			if b.pods[x] == nil || b.pods[y] == nil || min(a.pods[x].evicted, a.pods[y].evicted,
				b.pods[x].evicted, b.pods[y].evicted) == never {
				continue // which of them never left is compared, too
			}
			one, other := a.pods[x].evicted-a.pods[y].evicted, b.pods[x].evicted-b.pods[y].evicted
			if (one > 0) != (other > 0) && max(one.Abs(), other.Abs()) > clearlyApart {
				pairs = append(pairs, fmt.Sprintf("%s before %s by %v, or by %v", x, y, -one, -other))
			}
		}
	}
	return pairs
}

// regrouped lists pods that were evicted in one course alone, and pairs of one controller that are one wave in one
// course, and in the other two, or the other way round.
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

// evicted is when the pod was, or never.
func (c course) evicted(name string) time.Duration {
	if pod := c.pods[name]; pod != nil {
		return pod.evicted
	}
	return never
}

// wave is 0 for evictions of one moment, else which of two came first.
func wave(gap time.Duration) int {
	if gap.Abs() <= oneMoment {
		return 0
	}
	return cmp.Compare(gap, 0)
}

// late lists pods that vanished at another time than foretold, by more than a quarter.
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

// wrong is all of it.
func (j judgement) wrong() []string {
	return slices.Concat(j.outcome, j.held, j.waves, j.late, j.homeless)
}

// judgement is what a rehearsal was wrong about; empty lists: nothing.
type judgement struct {
	outcome, held, waves, late, homeless []string
	ratio                                float64 // of the real time to the rehearsed
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
