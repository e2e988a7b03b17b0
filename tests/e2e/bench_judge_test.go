package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// benchRow is what a tool needed for a workload: medians. Times are divided by those of the first row of the table.
type benchRow struct {
	wall, cpu float64
	requests  int
	compared  bool // true if the first row is kubectl's
}

// The requests that a drain may send besides one eviction for each pod, one more for each pod whose budget was
// exhausted, and one read of each attached volume. Guards and the check whether pods fit elsewhere send further ones:
// two for each Deployment (it and its ReplicaSet), a list and a watch of the namespace, and the lists of all Nodes and
// pods.
const (
	requestsBesides   = 15
	requestsForGuards = 4
	requestsPerGuard  = 2
)

// Lists of more than 500 pods come in pages. A drain lists the pods of its node this many times, and with guards those
// of the namespace and those of the cluster once each.
const (
	listsOfPods    = 3
	listsForGuards = 2
)

func furtherPages(pods int) int { return (pods - 1) / 500 }

// A drain with guards may need this many times the processor time of a drain without guards. The reason: it watches the
// pods of whole namespaces, and gets each event of an evicted pod twice, and about four of its replacement.
const guardsCost = 2

// judgeRow returns the limits of a workload that a row exceeds. Only rows with --settle 0 have limits of time; the
// others are in the table for people.
func judgeRow(load workload, contender string, got benchRow) (missed []string) {
	if contender == "kubectl" {
		return nil
	}
	if (contender == "settle0" || contender == "guarded") && got.compared {
		cpu := load.cpu
		if contender == "guarded" {
			cpu *= guardsCost
			if load.guardedCPU != 0 {
				cpu = load.guardedCPU
			}
		}
		if load.wall != 0 && got.wall > load.wall {
			missed = append(missed, fmt.Sprintf("%.3f of the time of kubectl drain, and at most %.2f are promised", got.wall,
				load.wall))
		}
		if cpu != 0 && got.cpu > cpu {
			missed = append(missed, fmt.Sprintf("%.3f of the processor time of kubectl drain, and at most %.2f are promised",
				got.cpu, cpu))
		}
	}
	most := load.pods + load.held + requestsBesides + listsOfPods*furtherPages(load.pods)
	if contender == "guarded" {
		most += load.disks + requestsForGuards + requestsPerGuard*load.deployments
		most += listsForGuards * furtherPages(load.pods+load.others)
		if load.large {
			most += load.deployments // The drain takes longer than 30 s, so it reads what has held pods once more.
		}
	}
	if got.requests > most {
		missed = append(missed, fmt.Sprintf("%d requests, and at most %d are promised", got.requests, most))
	}
	return missed
}

// Each number that exceeds its limit is found. If the judge accepted any number, the benchmark would show no regression.
func TestBenchJudge(t *testing.T) {
	t.Parallel()
	load := workload{pods: 50, deployments: 2, wall: 0.30, cpu: 0.25}
	fine := benchRow{wall: 0.30, cpu: 0.25, requests: 65, compared: true}
	with := func(change func(*benchRow)) benchRow {
		row := fine
		change(&row)
		return row
	}
	slow := with(func(r *benchRow) { r.wall = 0.31 })
	busy := with(func(r *benchRow) { r.cpu = 0.26 })
	for _, row := range []struct {
		contender string
		got       benchRow
		missed    string
	}{
		{"settle0", fine, ""},
		{"settle0", slow, "0.310 of the time"},
		{"settle0", busy, "0.260 of the processor time"},
		{"settle0", with(func(r *benchRow) { r.requests = 66 }), "66 requests, and at most 65"},
		{"settle0", with(func(r *benchRow) { r.wall, r.cpu, r.compared = 1, 1, false }), ""},
		{"default", slow, ""},
		{"five", with(func(r *benchRow) { r.wall, r.requests = 3, 66 }), "66 requests, and at most 65"},
		{"guarded", slow, "0.310 of the time"},
		{"guarded", with(func(r *benchRow) { r.cpu = 0.50 }), ""},
		{"guarded", with(func(r *benchRow) { r.cpu = 0.51 }), "0.510 of the processor time"},
		{"guarded", with(func(r *benchRow) { r.requests = 73 }), ""},
		{"guarded", with(func(r *benchRow) { r.requests = 74 }), "74 requests, and at most 73"},
		{"kubectl", benchRow{wall: 1, cpu: 1, requests: 150, compared: true}, ""},
	} {
		missed := strings.Join(judgeRow(load, row.contender, row.got), "; ")
		if (row.missed == "") != (missed == "") || !strings.Contains(missed, row.missed) {
			t.Errorf("%s, %+v: %q, want %q", row.contender, row.got, missed, row.missed)
		}
	}
	load.held = 5
	for requests, want := range map[int]bool{70: false, 71: true} {
		missed := judgeRow(load, "settle0", with(func(r *benchRow) { r.requests = requests }))
		if (missed != nil) != want {
			t.Errorf("5 pods behind a closed budget, %d requests: %q", requests, missed)
		}
	}
	load.held = 0
	load.disks = 50
	for contender, want := range map[string]bool{"settle0": true, "guarded": false} {
		if missed := judgeRow(load, contender, with(func(r *benchRow) { r.requests = 123 })); (missed != nil) != want {
			t.Errorf("50 disks, %s: %q", contender, missed)
		}
	}
	if missed := judgeRow(load, "guarded", with(func(r *benchRow) { r.requests = 124 })); missed == nil {
		t.Error("50 disks, guarded: 124 requests, and at most 123 are promised")
	}
	for _, load := range workloads() {
		if load.pods == 0 || load.wall == 0 || load.deployments == 0 {
			t.Errorf("%s has no limits", load.name)
		}
	}
}
