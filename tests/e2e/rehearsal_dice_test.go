package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
)

// What a random world may have besides pods and budgets, with the words of the printed table.
const (
	minReady     = "minReadySeconds"
	inOrder      = "minReadySeconds in order"
	autoscaler   = "autoscaler"
	notReady     = "node not Ready"
	taint        = "NoExecute taint"
	toleration   = "toleration"
	nodeAffinity = "node affinity"
	affinity     = "pod affinity"
	antiAffinity = "pod anti-affinity"
	unready      = "pods not Ready"
	alwaysAllow  = "AlwaysAllow"
	job          = "Job"
)

// CI runs only a few small random worlds. If these did not have all kinds of objects, CI would prove little. So each
// kind is in some of the first 15 worlds and not in all.
func TestRandomWorlds(t *testing.T) {
	t.Parallel()
	worlds := map[string]int{}
	for seed := range uint64(15) {
		for _, what := range randomWorld(seed + 1).with {
			worlds[what]++
		}
	}
	for _, what := range []string{
		minReady, inOrder, autoscaler, notReady, taint, toleration, nodeAffinity, affinity, antiAffinity, unready, alwaysAllow, job,
	} {
		if worlds[what] < 2 || worlds[what] > 13 {
			t.Errorf("%s is in %d worlds of 15; some should have it and some not", what, worlds[what])
		}
	}
}

// die is the random source of a world: the same seed gives the same world.
type die struct{ *rand.Rand }

func (d die) from(least, most int) int { return least + d.IntN(most-least+1) }

func (d die) chance(percent int) bool { return d.IntN(100) < percent }

func (d die) seconds(least, most int) time.Duration {
	return time.Duration(d.from(least, most)) * time.Second
}

// randomWorld returns the world of a seed. Its drain takes one to two minutes, because one workload has a budget that
// allows one disruption at a time. Everything else is random.
func randomWorld(seed uint64) staged {
	dice := die{rand.New(rand.NewPCG(seed, 0))}
	s := staged{
		pace: Pace{ReadyAfter: dice.seconds(7, 12), TerminatesAfter: time.Hour},
		ill:  dice.chance(40), tainted: dice.chance(50),
	}
	if dice.chance(60) {
		s.pace.TerminatesAfter = dice.seconds(2, 6)
	}
	replicas := int(62*time.Second/s.pace.ReadyAfter) + 2
	guard := []any{Budget("main", "1"), AtLeast("main", strconv.Itoa(replicas-1))}[dice.from(0, 1)]
	before := []part{
		{pods: replicas, objects: []any{Deployment("main", int32(replicas), Grace(int64(dice.from(2, 12)))), guard}},
		{pods: 1, objects: []any{DaemonSet("logs")}},
	}
	var strangers, after []part
	for i := range dice.from(3, 6) {
		p := randomPart(dice, fmt.Sprintf("app%d", i), s.tainted)
		if p.stranger != nil {
			strangers = append(strangers, part{pods: 1, objects: []any{p.stranger}})
		}
		if dice.chance(30) {
			p.pods += p.later
			after = append(after, p)
		} else {
			before = append(before, p)
			after = append(after, part{pods: p.later})
		}
	}
	if dice.chance(25) {
		before = append(before, part{
			pods: 3, objects: []any{Deployment("large", 3, Cpu("300")), Budget("large", "1")}, endless: true,
		})
		strangers = append(strangers, part{pods: 1, objects: []any{onNew(Pod("filler", Cpu("600")))}})
	}
	if dice.chance(20) {
		kept := Annotate("cluster-autoscaler.kubernetes.io/safe-to-evict", "false")
		before = append(before, part{pods: 2, objects: []any{Deployment("kept", 2, kept)}, endless: true})
		s.flags = append(s.flags, "--respect-do-not-disrupt")
	}
	if dice.chance(30) {
		// The Job must not fail while some of its pods wait for one of the --max-concurrent places: it would delete these
		// pods, and no snapshot shows when a Job fails. So backoffLimit is at least the number of its pods.
		pods := int32(dice.from(1, 3))
		work := Job("work", pods, pods+int32(dice.from(0, 3)), Grace(int64(dice.from(2, 20))))
		before = append(before, part{pods: int(pods), objects: []any{work}, with: []string{job}})
	}
	if dice.chance(50) {
		s.flags = append(s.flags, fmt.Sprintf("--max-concurrent=%d", dice.from(2, 6)))
	}
	if dice.chance(15) {
		s.flags = append(s.flags, fmt.Sprintf("--grace-period=%d", dice.from(2, 6)))
	}
	if dice.chance(40) {
		// The budget allows the next eviction when a pod is Ready. The StatefulSet creates the next pod only when that
		// pod is available, which is later. So the evicted pod's replacement waits.
		slow := ReadyFor(int32(dice.from(9, 11)), Ordered(StatefulSet("slow", 3, Grace(2), Unannounced)))
		before = append(before, part{pods: 3, objects: []any{slow, Budget("slow", "1")}, with: []string{inOrder}})
	}
	all := slices.Concat(before, after)
	if slices.ContainsFunc(all, func(p part) bool { return p.endless }) {
		s.flags = append(s.flags, "--timeout=2m")
	}
	s.with = peculiarities(s, all)
	s.build = partsOf(before)
	// The pods of `strangers` are added first: while the node "new" is empty, nothing keeps them away from it.
	s.after = partsOf(append(strangers, after...))
	return s
}

func peculiarities(s staged, parts []part) (with []string) {
	if s.ill {
		with = append(with, notReady)
	}
	if s.tainted {
		with = append(with, taint)
	}
	for _, p := range parts {
		with = append(with, p.with...)
	}
	slices.Sort(with)
	return slices.Compact(with)
}

// part is a number of pods with the objects that they need.
type part struct {
	pods     int
	later    int // further pods of the part, which run only on the node "new"
	objects  []any
	stranger *corev1.Pod // a pod that runs on the node "new" before all others
	stalls   bool        // some of its pods may never become Ready again, so that a budget would never allow a disruption
	endless  bool        // its budget may never allow a disruption
	with     []string
}

func partsOf(parts []part) func(*setup) {
	return func(s *setup) {
		for _, p := range parts {
			s.add(p.pods, p.objects...)
		}
	}
}

func onNew(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.NodeSelector = map[string]string{"role": "new"}
	return pod
}

// randomPart returns a random workload, perhaps with a budget.
func randomPart(dice die, name string, tainted bool) part {
	p := part{pods: dice.from(1, 5)}
	options := []PodOption{Grace([]int64{2, 5, 10, 15, 20}[dice.from(0, 4)])}
	if dice.chance(15) {
		options = append(options, Annotate("haulout.dev/drain-order", strconv.Itoa(dice.from(-5, 5))))
	}
	options = append(options, p.wherever(dice, name, tainted)...)
	replicas := int32(p.pods + p.later)
	kind := dice.from(0, 3)
	// An ordered StatefulSet is excluded, because each of its pods waits until the one before is Ready.
	if kind > 0 && dice.chance(20) {
		p.with, p.stalls = append(p.with, unready), true
		options = append(options, Annotate(UnreadyOn, "old"))
	}
	slow := int32(0)
	if dice.chance(30) {
		slow = int32(dice.from(2, 5))
		p.with = append(p.with, minReady)
	}
	switch kind {
	case 0:
		p.objects = append(p.objects, ReadyFor(slow, Ordered(StatefulSet(name, replicas, append(options, Unannounced)...))))
	case 1:
		p.objects = append(p.objects, ReadyFor(slow, StatefulSet(name, replicas, append(options, Unannounced)...)))
	default:
		p.objects = append(p.objects, ReadyFor(slow, Deployment(name, replicas, options...)))
		if dice.chance(30) {
			p.with = append(p.with, autoscaler)
			p.objects = append(p.objects, Autoscaler(name, int32(dice.from(1, int(replicas))), replicas+2))
		}
	}
	p.guard(dice, name, int(replicas))
	return p
}

// wherever chooses on which nodes the pods may run. Some find capacity on no other node.
func (p *part) wherever(dice die, name string, tainted bool) (options []PodOption) {
	if tainted && dice.chance(30) {
		p.with = append(p.with, toleration)
		options = append(options, Tolerant)
	}
	switch dice.from(0, 15) {
	case 0, 1:
		p.with = append(p.with, nodeAffinity)
		return append(options, InRole(corev1.NodeSelectorOpIn, "old", "new"))
	case 2:
		p.with, p.stalls = append(p.with, nodeAffinity), true
		return append(options, InRole(corev1.NodeSelectorOpNotIn, "new"))
	case 3, 4:
		p.with = append(p.with, affinity)
		return append(options, Beside("logs"))
	case 5, 6:
		// One pod on each node. If there is a second pod, which runs on the node "new", the replacement of the first one
		// cannot run there.
		p.with = append(p.with, antiAffinity)
		p.pods, p.later = 1, dice.from(0, 1)
		p.stalls = p.later > 0
		return append(options, Apart(name))
	case 7:
		p.with, p.stalls = append(p.with, antiAffinity), true
		p.stranger = onNew(Pod("stranger-to-" + name))
		return append(options, Apart(p.stranger.Name))
	case 8:
		p.with, p.stalls = append(p.with, antiAffinity), true
		p.stranger = onNew(Pod("stranger-to-"+name, Apart(name)))
	}
	return options
}

// guard may add a budget for the part's pods.
func (p *part) guard(dice die, name string, pods int) {
	if dice.chance(40) {
		return
	}
	var budget *policyv1.PodDisruptionBudget
	switch {
	case pods == 1 || dice.chance(12):
		p.stalls = true
		budget = AtLeast(name, "100%")
	case dice.chance(50):
		budget = Budget(name, []string{"1", "2", "34%", "50%"}[dice.from(0, 3)])
	default:
		budget = AtLeast(name, []string{strconv.Itoa(pods - 1), "30%", "50%"}[dice.from(0, 2)])
	}
	if dice.chance(40) {
		p.with = append(p.with, alwaysAllow)
		budget = FreeingUnhealthy(budget)
	}
	p.endless = p.stalls
	p.objects = append(p.objects, budget)
}
