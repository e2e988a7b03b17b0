package e2e

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// deleteSoon deletes a pod when the whole world runs. The pod is not counted among the pods of the world any more.
func (s *setup) deleteSoon(name string) {
	s.t.Helper()
	s.settled()
	must(s.t, s.Client.CoreV1().Pods(s.World.Name).Delete(s.t.Context(), name, metav1.DeleteOptions{}))
	s.pods--
}

// waitSinceDeletion waits until the pod's deletionTimestamp is more than 3 s ago, so that
// --skip-wait-for-delete-timeout=1 applies.
func (s *setup) waitSinceDeletion(name string) {
	s.t.Helper()
	must(s.t, Until(s.t.Context(), name+" was deleted a while ago", func() (bool, error) {
		pod, err := s.Client.CoreV1().Pods(s.World.Name).Get(s.t.Context(), name, getOptions)
		return err == nil && pod.DeletionTimestamp != nil && time.Since(pod.DeletionTimestamp.Time) > 3*time.Second, err
	}))
}

// flagRows returns drains with the flags of the command line.
func flagRows() []row {
	twoApps := func(s *setup) { s.add(2, Deployment("a", 1), Deployment("b", 1)) }
	return []row{
		{
			name: "--pod-selector", build: twoApps, flags: []string{"--pod-selector=app=a"},
			want: outcome{done: true, left: "b=1", evicted: "a=1", cordoned: "old"},
		},
		{
			name: "--pod-selector passes by what would be refused", flags: []string{"--pod-selector=app in (a,c)"},
			build: func(s *setup) { twoApps(s); s.add(1, Pod("bare", EmptyDir)) },
			want:  outcome{done: true, left: "b=1 bare=1", evicted: "a=1", cordoned: "old"},
		},
		{
			name: "--grace-period", flags: []string{"--grace-period=1"},
			build: func(s *setup) { s.add(2, Deployment("slow", 2, Annotate(TerminatesAfter, "25s"))) },
			want:  outcome{done: true, evicted: "slow=2", cordoned: "old"},
			check: graceWas(1),
		},
		{
			name: "--grace-period negative", flags: []string{"--grace-period=-1"},
			build: func(s *setup) { s.add(2, Deployment("slow", 2, Grace(7))) },
			want:  outcome{done: true, evicted: "slow=2", cordoned: "old"},
			check: graceWas(7),
		},
		{
			name: "--dry-run=client", build: web, flags: []string{"--dry-run=client"},
			want: outcome{done: true, left: "web=2"},
		},
		{
			name: "--dry-run=server", build: web, flags: []string{"--dry-run=server"},
			want: outcome{done: true, left: "web=2"},
		},
		{
			name: "--disable-eviction", build: guardedWeb, flags: []string{"--disable-eviction"},
			want: outcome{done: true, deleted: "web=2", cordoned: "old"},
		},
		{
			name: "--disable-eviction --dry-run=server", build: guardedWeb,
			flags:   []string{"--disable-eviction", "--dry-run=server", "--timeout=3s"},
			want:    outcome{left: "web=2"},
			differs: "kubectl waits for the deletions that a dry run does not make",
			haulout: outcome{done: true, left: "web=2"},
			agreed:  37,
		},
		{
			name: "two nodes by selector",
			args: []string{"-l", "role=old," + poolLabel + "=WORLD"},
			build: func(s *setup) {
				web(s)
				s.settled()
				must(s.t, s.AddNode(s.t.Context(), "old2", "old"))
				s.add(2, pinned("mine", s.Node("old")), pinned("other", s.Node("old2")))
			},
			flags: []string{"--force"},
			want:  outcome{done: true, evicted: "mine=1 other=1 web=2", cordoned: "old old2"},
		},
		{
			name: "no node by that name", build: web, args: []string{"WORLD-none"},
			want: outcome{left: "web=2"},
		},
		{
			name: "node already cordoned",
			build: func(s *setup) {
				web(s)
				s.settled()
				_, err := s.Client.CoreV1().Nodes().Patch(s.t.Context(), s.Node("old"), types.MergePatchType,
					[]byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
				must(s.t, err)
			},
			want: outcome{done: true, evicted: "web=2", cordoned: "old"},
		},
	}
}

// pinned returns a pod without a controller on a given node.
func pinned(name, node string) any {
	pod := Pod(name)
	pod.Spec.NodeName = node
	return pod
}

// graceWas checks the grace period that the evicted pods got from the server.
func graceWas(seconds int64) func(*testing.T, *World) {
	return func(t *testing.T, w *World) {
		t.Helper()
		for _, pod := range w.Kubelets.Pods(w.Name) {
			if pod.Evicted && (pod.Grace == nil || *pod.Grace != seconds) {
				given := int64(-1)
				if pod.Grace != nil {
					given = *pod.Grace
				}
				t.Errorf("pod %s was not given %d s but %d", pod.Name, seconds, given)
			}
		}
	}
}
