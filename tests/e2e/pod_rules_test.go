package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A drain waits for the pod of a real Job while it evicts the others. The Job succeeds, and the pod that comes last is
// evicted last.
func TestPodRules(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	w := newWorld(t)
	must(t, w.AddNode(t.Context(), "old", "old"))
	must(t, w.Apply(t.Context(), Job("train", 1, 0), Deployment("web", 3), Deployment("log", 1)))
	must(t, w.Settle(t.Context(), 5))
	must(t, w.AddNode(t.Context(), "new", "new"))
	must(t, w.UntilOpen(t.Context(), "new"))
	pods := func(selector string) []corev1.Pod {
		list, err := w.Client.CoreV1().Pods(w.Name).List(t.Context(), metav1.ListOptions{
			LabelSelector: selector, FieldSelector: "spec.nodeName=" + w.Node("old"),
		})
		must(t, err)
		return list.Items
	}
	work := pods("app=train")
	if len(work) != 1 {
		t.Fatalf("%d pods of the Job", len(work))
	}

	drain, err := w.Start(t.Context(), haulout, "drain", w.Node("old"), "--settle=0",
		"--pod-rule=kind:Job=wait-completed", "--pod-rule=controller:Deployment/"+w.Name+"/log=last")
	must(t, err)
	must(t, Until(t.Context(), "the other pods to be gone", func() (bool, error) { return len(pods("app=web")) == 0, nil }))
	for _, app := range []string{"train", "log"} {
		if left := pods("app=" + app); len(left) != 1 || left[0].DeletionTimestamp != nil {
			t.Fatalf("while the Job works, the pods of %s are %+v", app, left)
		}
	}
	ended := metav1.Now()
	w.Kubelets.Finish(&work[0])
	result, err := drain.Wait()
	must(t, err)
	if result.Exit != 0 {
		t.Fatalf("exit %d\n%s%s", result.Exit, result.Stdout, result.Stderr)
	}
	must(t, Until(t.Context(), "the Job to succeed", func() (bool, error) {
		job, err := w.Client.BatchV1().Jobs(w.Name).Get(t.Context(), "train", getOptions)
		return err == nil && job.Status.Succeeded == 1 && job.Status.Failed == 0, err
	}))

	requests, err := w.Requests()
	must(t, err)
	last := ""
	for _, request := range requests {
		if !request.IsEviction() {
			continue
		}
		last = request.ObjectRef.Name
		if last == work[0].Name && request.Received.Before(ended.Time) {
			t.Errorf("the pod of the Job was evicted before its work had ended")
		}
	}
	if !strings.HasPrefix(last, "log-") {
		t.Errorf("%s was evicted last", last)
	}
}
