package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The real DaemonSet controller creates the next pod on the cordoned node at once. The drain evicts the first one after
// all other pods, and leaves the next.
func TestDaemonSetPodsAreEvictedOnce(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	w := newWorld(t)
	must(t, w.AddNode(t.Context(), "old", "old"))
	must(t, w.Apply(t.Context(), Deployment("web", 3), DaemonSet("logs"), DaemonSet("net")))
	must(t, w.Settle(t.Context(), 5))
	must(t, w.AddNode(t.Context(), "new", "new"))
	must(t, w.UntilOpen(t.Context(), "new"))
	pods := func(app string) []corev1.Pod {
		list, err := w.Client.CoreV1().Pods(w.Name).List(t.Context(), metav1.ListOptions{
			LabelSelector: "app=" + app, FieldSelector: "spec.nodeName=" + w.Node("old"),
		})
		must(t, err)
		return list.Items
	}
	first, other := pods("logs"), pods("net")
	if len(first) != 1 || len(other) != 1 {
		t.Fatalf("%d pods of logs and %d of net", len(first), len(other))
	}

	result, err := w.Run(t.Context(), haulout, "drain", w.Node("old"), "--settle=0", "--ignore-daemonsets",
		"--evict-daemonset-pods=app=logs")
	must(t, err)
	if result.Exit != 0 {
		t.Fatalf("exit %d\n%s%s", result.Exit, result.Stdout, result.Stderr)
	}
	requests, err := w.Requests()
	must(t, err)
	var evicted []string
	for _, request := range requests {
		if request.IsEviction() {
			evicted = append(evicted, request.ObjectRef.Name)
		}
	}
	if len(evicted) != 4 || evicted[3] != first[0].Name {
		t.Errorf("the evictions are %s, and not three of web and then %s", strings.Join(evicted, " "), first[0].Name)
	}
	must(t, Until(t.Context(), "the next pod of logs", func() (bool, error) {
		next := pods("logs")
		return len(next) == 1 && next[0].UID != first[0].UID && next[0].DeletionTimestamp == nil, nil
	}))
	if left := pods("net"); len(left) != 1 || left[0].UID != other[0].UID || left[0].DeletionTimestamp != nil {
		t.Errorf("the pod of net was not left alone: %+v", left)
	}
}
