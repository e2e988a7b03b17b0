package e2e

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const jobSetLabel = "jobset.sigs.k8s.io/jobset-name"

// inJobSet gives the pods the label by which a JobSet marks its pods. No JobSet controller runs in these tests.
func inJobSet(name string) PodOption {
	return func(pod *corev1.PodTemplateSpec) { pod.Labels[jobSetLabel] = name }
}

// A drain that may not stop a gang names it and changes nothing. A drain that may says which gang it stops, and evicts its
// members after all other pods are deleted.
func TestGangs(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	w := newWorld(t)
	must(t, w.AddNode(t.Context(), "old", "old"))
	must(t, w.Apply(t.Context(), Pod("train-0", inJobSet("train"), Grace(5)), Pod("train-1", inJobSet("train"), Grace(5)),
		Deployment("web", 3, Grace(5))))
	must(t, w.Settle(t.Context(), 5))
	must(t, w.AddNode(t.Context(), "new", "new"))
	must(t, w.UntilOpen(t.Context(), "new"))
	gang := "JobSet " + w.Name + "/train"

	refused, err := w.Run(t.Context(), haulout, "drain", w.Node("old"), "--force", "--settle=0", "--gangs=refuse")
	must(t, err)
	members := w.Name + "/train-0, " + w.Name + "/train-1"
	if refused.Exit != 1 || !strings.Contains(refused.Stderr, gang) || !strings.Contains(refused.Stderr, members) {
		t.Errorf("exit %d, and the gang should be named with its members\n%s%s", refused.Exit, refused.Stdout, refused.Stderr)
	}
	node, err := w.Client.CoreV1().Nodes().Get(t.Context(), w.Node("old"), metav1.GetOptions{})
	must(t, err)
	if node.Spec.Unschedulable {
		t.Error("the node is cordoned after a drain that was refused")
	}
	requests, err := w.Requests()
	must(t, err)
	if slices.ContainsFunc(requests, func(r AuditEvent) bool { return r.IsEviction() }) {
		t.Error("a drain that was refused has evicted pods")
	}

	drained, err := w.Run(t.Context(), haulout, "drain", w.Node("old"), "--force", "--settle=0", "-o", "jsonl")
	must(t, err)
	events, err := drained.Events()
	must(t, err)
	if drained.Exit != 0 {
		t.Fatalf("exit %d\n%s%s", drained.Exit, drained.Stdout, drained.Stderr)
	}
	told, others := false, 3
	for _, event := range events {
		if event.Diagnosis != nil && event.Diagnosis.Code == "GangBroken" && event.Diagnosis.Subject == gang {
			told = true
		}
		if event.Pod == nil {
			continue
		}
		member := strings.HasPrefix(event.Pod.Name, "train-")
		if event.Type == "vanished" && !member {
			others--
		}
		if event.Type == "eviction-sent" && member && (!told || others > 0) {
			t.Errorf("%s is evicted while %d other pods are there; said before: %t", event.Pod.Name, others, told)
		}
	}
	if !told {
		t.Errorf("no event says that %s is stopped\n%s", gang, drained.Stdout)
	}
}
