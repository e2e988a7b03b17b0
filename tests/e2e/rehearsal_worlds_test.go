package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// So many worlds are drained at the same time: what is measured is waiting, not the machine.
const worldsAtOnce = 5

// TestRehearsalOfRandomWorlds is TestRehearsal with worlds that nobody has chosen, and prints a table.
// HAULOUT_REHEARSAL_WORLDS=N runs it with N of them, HAULOUT_REHEARSAL_FIRST=K begins with world K (1).
func TestRehearsalOfRandomWorlds(t *testing.T) {
	worlds, first := numberOf(t, "HAULOUT_REHEARSAL_WORLDS", 0), numberOf(t, "HAULOUT_REHEARSAL_FIRST", 1)
	if worlds == 0 {
		t.Skip("HAULOUT_REHEARSAL_WORLDS=N rehearses and drains N random worlds")
	}
	needHaulout(t)
	rows := make([]string, worlds)
	t.Run("world", func(t *testing.T) {
		places := make(chan struct{}, worldsAtOnce)
		for i := range worlds {
			seed := first + i
			t.Run(strconv.Itoa(seed), func(t *testing.T) {
				t.Parallel()
				places <- struct{}{}
				defer func() { <-places }()
				rows[i] = rowOf(t, seed)
			})
		}
	})
	fmt.Printf("\n| world | pods | budgets | options | outcome | rehearsed | real | real : rehearsed | held up | "+
		"same pods, same reasons | same waves |\n|---|---|---|---|---|---|---|---|---|---|---|\n%s\n",
		strings.Join(rows, "\n"))
}

func numberOf(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	number, err := strconv.Atoi(text)
	must(t, err)
	return number
}

func rowOf(t *testing.T, seed int) string {
	t.Helper()
	s := randomWorld(uint64(seed))
	w, said, real := s.play(t)
	j := judge(said[0], real)
	for _, wrong := range j.wrong() {
		t.Errorf("world %d: %s", seed, wrong)
	}
	if j.ratio < 0.75 || j.ratio > 1.25 || real.moved() < time.Minute {
		t.Errorf("world %d: rehearsed %v, really %v", seed, said[0].moved(), real.moved())
	}
	t.Logf("world %d: %+v\nheld up: %v\nrehearsed:%v\nreal:%v\nno room: %v", seed, s.pace, real.held(), said[0], real,
		real.homeless)
	budgets, err := w.Client.PolicyV1().PodDisruptionBudgets(w.Name).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	ended := "drained"
	if !real.drained {
		ended = "blocked"
	}
	yes := func(differences ...[]string) string {
		if len(slices.Concat(differences...)) == 0 {
			return "yes"
		}
		return "**no**"
	}
	seconds := func(took time.Duration) string { return fmt.Sprintf("%.1f s", took.Seconds()) }
	return fmt.Sprintf("| %d | %d | %d | %s | %s | %s | %s | %.3f | %d | %s | %s |", seed, len(real.pods),
		len(budgets.Items), strings.Join(s.flags, " "), ended, seconds(said[0].moved()), seconds(real.moved()),
		j.ratio, len(real.held()), yes(j.outcome, j.held, j.homeless), yes(j.waves, j.late))
}

// randomWorld is the same for the same seed. Its drain takes a minute or two, because of one workload whose budget lets
// one pod go at a time; all else is left to chance.
func randomWorld(seed uint64) staged {
	dice := rand.New(rand.NewPCG(seed, 0))
	from := func(least, most int) int { return least + dice.IntN(most-least+1) }
	chance := func(percent int) bool { return dice.IntN(100) < percent }
	seconds := func(least, most int) time.Duration { return time.Duration(from(least, most)) * time.Second }

	s := staged{pace: Pace{ReadyAfter: seconds(7, 12), TerminatesAfter: time.Hour}}
	if chance(60) {
		s.pace.TerminatesAfter = seconds(2, 6)
	}
	endless := false
	var before, after []part
	replicas := int(62*time.Second/s.pace.ReadyAfter) + 2
	guard := []any{Budget("main", "1"), AtLeast("main", strconv.Itoa(replicas-1))}[from(0, 1)]
	before = append(before, part{replicas, []any{Deployment("main", int32(replicas), Grace(int64(from(2, 12)))), guard}})
	before = append(before, part{1, []any{DaemonSet("logs")}})
	for i := range from(3, 6) {
		p, closed := randomPart(dice, fmt.Sprintf("app%d", i))
		endless = endless || closed
		if chance(30) {
			after = append(after, p)
		} else {
			before = append(before, p)
		}
	}
	if chance(25) {
		endless = true
		before = append(before, part{3, []any{Deployment("large", 3, Cpu("300")), Budget("large", "1")}})
		filler := Pod("filler", Cpu("600"))
		filler.Labels["on"] = "new"
		after = append([]part{{1, []any{filler}}}, after...)
	}
	if chance(20) {
		endless = true
		kept := Annotate("cluster-autoscaler.kubernetes.io/safe-to-evict", "false")
		before = append(before, part{2, []any{Deployment("kept", 2, kept)}})
		s.flags = append(s.flags, "--respect-do-not-disrupt")
	}
	if chance(50) {
		s.flags = append(s.flags, fmt.Sprintf("--max-concurrent=%d", from(2, 6)))
	}
	if chance(15) {
		s.flags = append(s.flags, fmt.Sprintf("--grace-period=%d", from(2, 6)))
	}
	if endless {
		s.flags = append(s.flags, "--timeout=2m")
	}
	s.build = partsOf(before)
	s.after = partsOf(after)
	return s
}

// part is so many pods with what they need.
type part struct {
	pods    int
	objects []any
}

func partsOf(parts []part) func(*setup) {
	return func(s *setup) {
		for _, p := range parts {
			s.add(p.pods, p.objects...)
		}
	}
}

// randomPart is a workload, perhaps with a budget, and whether that never opens.
func randomPart(dice *rand.Rand, name string) (p part, closed bool) {
	from := func(least, most int) int { return least + dice.IntN(most-least+1) }
	chance := func(percent int) bool { return dice.IntN(100) < percent }
	p.pods = from(1, 5)
	options := []PodOption{Grace([]int64{2, 5, 10, 15, 20}[from(0, 4)])}
	if chance(15) {
		options = append(options, Annotate("haulout.dev/drain-order", strconv.Itoa(from(-5, 5))))
	}
	switch from(0, 3) {
	case 0:
		set := Ordered(StatefulSet(name, int32(p.pods), append(options, Unannounced)...))
		if chance(40) {
			set = ReadyFor(int32(from(2, 5)), set)
		}
		p.objects = append(p.objects, set)
	case 1:
		p.objects = append(p.objects, StatefulSet(name, int32(p.pods), append(options, Unannounced)...))
	default:
		p.objects = append(p.objects, Deployment(name, int32(p.pods), options...))
	}
	switch {
	case chance(40):
	case p.pods == 1 || chance(12):
		closed = true
		p.objects = append(p.objects, AtLeast(name, "100%"))
	case chance(50):
		p.objects = append(p.objects, Budget(name, []string{"1", "2", "34%", "50%"}[from(0, 3)]))
	default:
		p.objects = append(p.objects, AtLeast(name, []string{strconv.Itoa(p.pods - 1), "30%", "50%"}[from(0, 2)]))
	}
	return p, closed
}
