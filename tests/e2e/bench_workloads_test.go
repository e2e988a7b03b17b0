package e2e

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// workload is what runs on the node whose drain is measured, and what that drain may need.
type workload struct {
	name, title string
	pods        int
	deployments int // Deployments or StatefulSets that own the pods
	disks       int // one for each pod, or none
	held        int // pods with one more eviction request, sent while the budget is exhausted: a webhook may react to it
	others      int // pods of the same namespace on other nodes, which the drain leaves alone
	build       func(*setup)
	meanwhile   func(context.Context, *World) error
	// Limits of haulout's wall time and processor time as a share of kubectl's in the same run, with --settle 0 (kubectl
	// has no settle time); 0: no limit.
	wall, cpu float64
	// The same limit with guards, if it is not guardsCost times cpu.
	guardedCPU float64
	// Only runs if HAULOUT_BENCH_ONLY names it: it takes a quarter of an hour.
	large bool
}

func workloads() []workload {
	return []workload{
		{
			name: "burst", title: "50 pods that take 2 s",
			pods: 50, deployments: 1, wall: 0.30,
			build: func(s *setup) { s.add(50, Deployment("web", 50, Annotate(TerminatesAfter, "2s"))) },
		},
		{
			name: "mixed", title: "50 pods that take 0.5 to 10 s, and say so",
			pods: 50, deployments: 10, wall: 0.60,
			build: func(s *setup) {
				// Ten Deployments of five pods each. Their pods take 0.5 to 10 s to terminate, in even steps. No drain
				// can be faster than the slowest pod. The grace period of each pod is that time, rounded up to whole
				// seconds, so a tool that reads grace periods can begin with the slowest pod.
				for i := range 10 {
					took := 500*time.Millisecond + time.Duration(i)*9500*time.Millisecond/9
					grace := int64((took + time.Second - 1) / time.Second)
					s.add(5, Deployment(fmt.Sprintf("web%d", i), 5, Annotate(TerminatesAfter, took.String()), Grace(grace)))
				}
			},
		},
		{
			name: "budget", title: "10 pods, budget of one, replacements take 1.4 s",
			pods: 10, deployments: 1, held: 9, wall: 0.35,
			build: func(s *setup) {
				s.add(10, Budget("web", "1"),
					Deployment("web", 10, Annotate(TerminatesAfter, "1s"), Annotate(StartsAfter, "1.4s")))
			},
		},
		{
			name: "stuck", title: "45 free pods of 2 s, 5 blocked for 20 s",
			pods: 50, deployments: 2, held: 5, wall: 0.87,
			build: func(s *setup) {
				s.add(45, Deployment("free", 45, Annotate(TerminatesAfter, "2s")))
				s.add(5, Budget("stuck", "0"), Deployment("stuck", 5, Annotate(TerminatesAfter, "2s")))
			},
			meanwhile: func(ctx context.Context, w *World) error {
				select {
				case <-time.After(20 * time.Second):
				case <-ctx.Done():
					return ctx.Err()
				}
				return w.SetBudget(ctx, "stuck", "100%")
			},
		},
		{
			name: "500", title: "500 pods of 2 s, ten wide budgets",
			pods: 500, deployments: 10, wall: 0.35, cpu: 0.33,
			build: func(s *setup) {
				for i := range 10 {
					name := fmt.Sprintf("web%d", i)
					s.add(50, Budget(name, "100%"), Deployment(name, 50, Annotate(TerminatesAfter, "2s")))
				}
			},
		},
		{
			name: "disks", title: "50 pods of 2 s with a disk each, until all of them are detached",
			// A canary's replacement starts when its disk is attached, and only then may the other pods leave.
			pods: 50, deployments: 10, disks: 50, wall: 0.60,
			build: func(s *setup) {
				for i := range 10 {
					set := fmt.Sprintf("db%d", i)
					for pod := range 5 {
						s.addDisk(Disk{
							Claim: fmt.Sprintf("data-%s-%d", set, pod), Mode: corev1.ReadWriteOnce,
							DetachesAfter: 500 * time.Millisecond,
						})
					}
					s.add(5, WithClaims("data", StatefulSet(set, 5, Annotate(TerminatesAfter, "2s"))))
				}
			},
		},
		{
			name: "thousand", title: "1,000 pods of 2 s, ten wide budgets, and 9,000 other pods in the namespace",
			pods: 1000, others: 9000, deployments: 10, large: true, wall: 0.35, cpu: 0.50, guardedCPU: 1.50,
			build: func(s *setup) {
				for i := range 10 {
					name := fmt.Sprintf("web%d", i)
					s.add(100, Budget(name, "100%"), Deployment(name, 100, Annotate(TerminatesAfter, "2s")))
				}
			},
		},
	}
}
