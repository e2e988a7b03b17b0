package e2e

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The number of worlds that are drained at the same time. It is so small that the measured times are those of the
// drains and not of the machine.
const worldsAtOnce = 5

// TestRehearsalOfRandomWorlds is TestRehearsal with random worlds. It prints a table. HAULOUT_REHEARSAL_WORLDS=N runs
// it with N of them, HAULOUT_REHEARSAL_FIRST=K begins with world K (1).
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
	fmt.Printf("\n| world | pods | budgets | with | options | outcome | rehearsed | real | real : rehearsed | held up | "+
		"same pods, same reasons | same waves |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n%s\n",
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
	return fmt.Sprintf("| %d | %d | %d | %s | %s | %s | %s | %s | %.3f | %d | %s | %s |", seed,
		len(real.pods), len(budgets.Items), strings.Join(s.with, ", "), strings.Join(s.flags, " "), ended, seconds(said[0].moved()), seconds(real.moved()),
		j.ratio, len(real.held()), yes(j.outcome, j.held, j.homeless), yes(j.waves, j.late))
}
