package e2e

import (
	"strings"
	"testing"
	"time"
)

// The judge finds each kind of wrong prediction. If it accepted everything, TestRehearsal would be worthless.
func TestRehearsalJudge(t *testing.T) {
	t.Parallel()
	const s = time.Second
	budget := map[string]time.Duration{"BlockedByBudget shop/web": 10 * s}
	make := func(change func(*course)) course {
		c := course{drained: true, took: 70 * s, homeless: map[string]int{"ReplicaSet/web": 1}, pods: map[string]*passage{
			"a":    {controller: "ReplicaSet/web", evicted: 0, vanished: 4 * s},
			"b":    {controller: "ReplicaSet/web", evicted: 10 * s, vanished: 14 * s, waits: budget},
			"c":    {controller: "ReplicaSet/web", evicted: 20 * s, vanished: 24 * s, waits: budget},
			"db-0": {controller: "StatefulSet/db", evicted: 9400 * time.Millisecond, vanished: 60 * s},
			"x":    {controller: "StatefulSet/db", evicted: 11 * s, vanished: 13 * s},
		}}
		change(&c)
		return c
	}
	for _, row := range []struct {
		name   string
		change func(*course)
		wrong  func(judgement) []string
	}{
		{"a time that is the network's", func(c *course) { c.pods["b"].evicted += s }, nil},
		{"one moment, the other way round", func(c *course) { c.pods["x"].evicted -= 3 * s }, nil},
		{"a gap on the other side of a moment", func(c *course) { c.pods["x"].evicted += s / 2 }, nil},
		{"two waves", func(c *course) { c.pods["x"].evicted += 4 * s }, func(j judgement) []string { return j.waves }},
		{"a short wait", func(c *course) { c.pods["a"].waits = map[string]time.Duration{"Throttled": s} }, nil},
		{"not drained", func(c *course) { c.drained = false }, func(j judgement) []string { return j.outcome }},
		{"held up by something else", func(c *course) {
			c.pods["b"].waits = map[string]time.Duration{"BlockedByBudget shop/other": 10 * s}
		}, func(j judgement) []string { return j.held }},
		{"never left", func(c *course) { c.pods["c"].vanished = never }, func(j judgement) []string { return j.held }},
		{"two in one wave", func(c *course) { c.pods["c"].evicted = 10 * s }, func(j judgement) []string { return j.waves }},
		{"never evicted", func(c *course) { c.pods["c"].evicted = never }, func(j judgement) []string { return j.waves }},
		{"after another controller's", func(c *course) { c.pods["db-0"].evicted, c.pods["x"].evicted = 26*s, 26*s },
			func(j judgement) []string { return j.waves }},
		{"gone much later", func(c *course) { c.pods["a"].vanished = 20 * s }, func(j judgement) []string { return j.late }},
		{"finds room", func(c *course) { c.homeless = nil }, func(j judgement) []string { return j.homeless }},
	} {
		for _, swapped := range []bool{false, true} {
			said, real := make(func(*course) {}), make(row.change)
			if swapped {
				said, real = real, said
			}
			j := judge(said, real)
			if row.wrong == nil && len(j.wrong()) > 0 {
				t.Errorf("%s: is no difference, but %s", row.name, strings.Join(j.wrong(), "; "))
			}
			if row.wrong != nil && len(row.wrong(j)) == 0 {
				t.Errorf("%s: found nothing wrong (%v)", row.name, j.wrong())
			}
		}
	}
	slower := make(func(c *course) { c.took *= 2 })
	if ratio := judge(make(func(*course) {}), slower).ratio; ratio != 2 {
		t.Errorf("twice the time is %v", ratio)
	}
}

// The worlds of several tests share a cluster, and their pods often have the same names. The course of a rehearsal
// counts only pods of the world's own namespace.
func TestRehearsalOfOneWorldAmongOthers(t *testing.T) {
	t.Parallel()
	const message = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable."
	said, err := foretold(`{"seconds": 70, "drains": [{"outcome": "drained"}], "noRoom": [
		{"pod": "w1/web-a", "controller": "ReplicaSet/web", "message": "`+message+`"},
		{"pod": "w10/web-b", "controller": "ReplicaSet/web", "message": "`+message+`"}]}`, "w1")
	must(t, err)
	if want := lacking("ReplicaSet/web", message); len(said.homeless) != 1 || said.homeless[want] != 1 {
		t.Errorf("one pod of w1 finds no room, but %v", said.homeless)
	}
}
