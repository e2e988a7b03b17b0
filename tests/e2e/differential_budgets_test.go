package e2e

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func guardedWeb(s *setup) { s.add(2, Deployment("web", 2), Budget("web", "0")) }

// blocked waits until a drain cannot continue because of a budget, so that the test can act in the middle of it. At that
// time kubectl has sent an eviction, which was refused. haulout has cordoned the node and watches the budgets; because
// it sees that they are exhausted, it may not have sent an eviction.
func blocked(ctx context.Context, w *World) error {
	return Until(ctx, "the drain is blocked by a budget", func() (bool, error) {
		requests, err := w.Requests()
		var cordoned, watching bool
		for _, r := range requests {
			if r.RefusedEviction() {
				return true, nil
			}
			cordoned = cordoned || r.Verb == "patch" && r.Is("nodes") && r.Accepted()
			watching = watching || r.Verb == "watch" && r.Is("poddisruptionbudgets") && r.Accepted()
		}
		return cordoned && watching, err
	})
}

// eachRefused waits until the server has refused each of so many pods at least once. A test that measures the reaction
// of a drain needs this: if the budget allows a disruption while an eviction is in flight, the server may accept that
// eviction, although the drain sent it before.
func eachRefused(ctx context.Context, w *World, pods int) error {
	return Until(ctx, fmt.Sprintf("the server has refused %d pods", pods), func() (bool, error) {
		requests, err := w.Requests()
		names := map[string]bool{}
		for _, r := range requests {
			if r.RefusedEviction() {
				names[r.ObjectRef.Name] = true
			}
		}
		return len(names) >= pods, err
	})
}

// budgetRows returns worlds in which the drain must wait for a budget, or in which evicted pods come back under the same
// names.
func budgetRows() []row {
	return []row{
		{
			name: "StatefulSet comes back under the same names",
			build: func(s *setup) {
				s.add(3, StatefulSet("db", 3))
			},
			want: outcome{done: true, evicted: "db=3", cordoned: "old"},
		},
		{
			name:      "StatefulSet moved by somebody else meanwhile",
			build:     func(s *setup) { s.add(2, StatefulSet("db", 2), Budget("db", "0")) },
			meanwhile: moveAndOpen,
			want:      outcome{done: true, namesakes: "db=2", cordoned: "old"},
			differs: "kubectl looks its pods up by name after a refusal and evicts their namesakes on the other " +
				"node; haulout evicts instances",
			haulout: outcome{done: true, cordoned: "old"},
		},
		{
			name: "budget opens late", build: guardedWeb,
			meanwhile: func(ctx context.Context, w *World) error {
				if err := blocked(ctx, w); err != nil {
					return err
				}
				return w.SetBudget(ctx, "web", "100%")
			},
			want: outcome{done: true, evicted: "web=2", cordoned: "old"},
		},
		{
			name:  "budget of one",
			build: func(s *setup) { s.add(3, Deployment("web", 3), Budget("web", "1")) },
			want:  outcome{done: true, evicted: "web=3", cordoned: "old"},
		},
		{
			name: "budget never opens", flags: []string{"--timeout=3s"},
			build: func(s *setup) { guardedWeb(s); s.add(1, Deployment("free", 1)) },
			want:  outcome{left: "web=2", evicted: "free=1", cordoned: "old"},
		},
		{
			name: "pod with a finalizer", flags: []string{"--timeout=3s"},
			build: func(s *setup) { web(s); s.add(1, Deployment("held", 1, Finalizer)) },
			want:  outcome{left: "held=1", evicted: "held=1 web=2", cordoned: "old"},
		},
		{
			name: "pod already terminating", flags: []string{"--force"},
			build: func(s *setup) {
				web(s)
				s.add(1, Pod("slow", Annotate(TerminatesAfter, "8s")))
				s.deleteSoon("slow")
			},
			want:    outcome{done: true, evicted: "slow=1 web=2", cordoned: "old"},
			differs: "haulout sends no eviction for a pod that is already on its way, it waits for it",
			haulout: outcome{done: true, evicted: "web=2", cordoned: "old"},
		},
		{
			// The kubelet of the node is dead, and taint eviction has deleted its pods.
			name: "dead node, forced", flags: []string{"--force", "--grace-period=0"},
			build: func(s *setup) {
				web(s)
				s.add(1, Pod("dead", Annotate(TerminatesAfter, "1h"), Grace(3600)))
				s.deleteSoon("dead")
			},
			want: outcome{done: true, evicted: "dead=1 web=2", cordoned: "old"},
		},
		{
			// An earlier drain has evicted the pod and still waits for its end, or was stopped.
			name: "pod already terminating, for an hour", flags: []string{"--force", "--grace-period=10"},
			build: func(s *setup) {
				web(s)
				s.add(1, Pod("slow", Annotate(TerminatesAfter, "1h"), Grace(3600)))
				s.deleteSoon("slow")
			},
			want:  outcome{done: true, evicted: "slow=1 web=2", cordoned: "old"},
			check: graceWas(10),
		},
		{
			name: "terminating pod skipped", flags: []string{"--force", "--skip-wait-for-delete-timeout=1"},
			build: func(s *setup) {
				web(s)
				s.add(1, Pod("held", Finalizer))
				s.deleteSoon("held")
				s.waitSinceDeletion("held")
			},
			want: outcome{done: true, left: "held=1", evicted: "web=2", cordoned: "old"},
		},
		{
			name: "pod that comes to terminate for too long", flags: []string{"--skip-wait-for-delete-timeout=2"},
			build: func(s *setup) { web(s); s.add(1, Deployment("held", 1, Grace(1), Finalizer)) },
			want:  outcome{done: true, left: "held=1", evicted: "held=1 web=2", cordoned: "old"},
		},
	}
}

// moveAndOpen deletes the pods without asking their budget, waits until their replacements of the same names run on the
// other node, and makes the budget allow disruptions.
func moveAndOpen(ctx context.Context, w *World) error {
	if err := blocked(ctx, w); err != nil {
		return err
	}
	for _, name := range []string{"db-0", "db-1"} {
		if err := w.Client.CoreV1().Pods(w.Name).Delete(ctx, name, *metav1.NewDeleteOptions(0)); err != nil {
			return err
		}
	}
	err := Until(ctx, "the namesakes run on the other node", func() (bool, error) {
		moved := 0
		for _, pod := range w.Kubelets.Pods(w.Name) {
			if pod.Node == w.Node("new") && pod.Gone.IsZero() {
				moved++
			}
		}
		return moved == 2, fmt.Errorf("%d moved", moved)
	})
	if err != nil {
		return err
	}
	if err := w.Settle(ctx, 2); err != nil {
		return err
	}
	return w.SetBudget(ctx, "db", "100%")
}
