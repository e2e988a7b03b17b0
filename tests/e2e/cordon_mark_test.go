package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const markKey = "haulout.dev/cordon"

// The largest difference between the times of the mark and of the cordon's taint with which the cordon counts as
// Haulout's.
const markTolerance = 10 * time.Second

func node(t *testing.T, w *World, short string) *corev1.Node {
	t.Helper()
	found, err := w.Client.CoreV1().Nodes().Get(t.Context(), w.Node(short), getOptions)
	must(t, err)
	return found
}

func cordonTaint(node *corev1.Node) *corev1.Taint {
	for i, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeUnschedulable {
			return &node.Spec.Taints[i]
		}
	}
	return nil
}

// awaitTaint waits until the controllers have added the taint after a cordon, or removed it after an uncordon.
func awaitTaint(t *testing.T, w *World, present bool) {
	t.Helper()
	must(t, Until(t.Context(), "the taint follows the cordon", func() (bool, error) {
		return (cordonTaint(node(t, w, "old")) != nil) == present, nil
	}))
}

// run runs a tool and fails the test if its exit status is not `exit`.
func run(t *testing.T, w *World, exit int, tool Tool, args ...string) Result {
	t.Helper()
	result, err := w.Run(t.Context(), tool, args...)
	must(t, err)
	if result.Exit != exit {
		t.Fatalf("%s %v: exit %d, want %d\n%s%s", tool.Name, args, result.Exit, exit, result.Stdout, result.Stderr)
	}
	return result
}

func drainReport(t *testing.T, w *World) Report {
	t.Helper()
	report, err := run(t, w, 0, haulout, "drain", w.Node("old"), "--settle=0", "-o", "json").Report()
	must(t, err)
	return report
}

func expectCordon(t *testing.T, report Report, before bool, owner string) {
	t.Helper()
	if report.Cordon.Before != before || !report.Cordon.After || report.Cordon.Owner != owner {
		t.Errorf("the report says %+v, want before %v, after true, owner %q", report.Cordon, before, owner)
	}
}

func expectNode(t *testing.T, w *World, unschedulable, marked bool) {
	t.Helper()
	n := node(t, w, "old")
	if _, ok := n.Annotations[markKey]; ok != marked || n.Spec.Unschedulable != unschedulable {
		t.Errorf("the node has unschedulable %v and mark %q, want %v and a mark: %v",
			n.Spec.Unschedulable, n.Annotations[markKey], unschedulable, marked)
	}
}

// If a person takes back the drain's cordon with kubectl and cordons again, the cordon is the person's, although the
// drain's mark is still there.
func TestCordonMarkCannotLie(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	w := newWorld(t)
	must(t, w.AddNode(t.Context(), "old", "old"))

	expectCordon(t, drainReport(t, w), false, "haulout")
	expectNode(t, w, true, true)
	awaitTaint(t, w, true)
	ours := cordonTaint(node(t, w, "old")).TimeAdded.Time

	expectCordon(t, drainReport(t, w), true, "haulout")

	// The person uncordons and cordons in quick succession. The mark and the taint are then so close in time that the
	// age of the taint alone does not show whose cordon it is.
	run(t, w, 0, cluster.Kubectl(), "uncordon", w.Node("old"))
	run(t, w, 0, cluster.Kubectl(), "cordon", w.Node("old"))
	expectCordon(t, drainReport(t, w), true, "other")

	run(t, w, 0, cluster.Kubectl(), "uncordon", w.Node("old"))
	awaitTaint(t, w, false)
	must(t, Until(t.Context(), "a human's cordon can be told from ours", func() (bool, error) {
		return time.Since(ours) > markTolerance+2*time.Second, nil
	}))
	run(t, w, 0, cluster.Kubectl(), "cordon", w.Node("old"))
	awaitTaint(t, w, true)
	if _, ok := node(t, w, "old").Annotations[markKey]; !ok {
		t.Fatal("kubectl removed our mark, so that this test shows nothing")
	}
	expectCordon(t, drainReport(t, w), true, "other")

	run(t, w, 0, haulout, "uncordon", w.Node("old"))
	expectNode(t, w, false, false)
}

func TestCordonCommands(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	w := newWorld(t)
	must(t, w.AddNode(t.Context(), "old", "old"))
	run(t, w, 0, haulout, "cordon", w.Node("old"))
	expectNode(t, w, true, true)
	run(t, w, 0, haulout, "uncordon", w.Node("old"))
	expectNode(t, w, false, false)

	run(t, w, 0, cluster.Kubectl(), "cordon", w.Node("old"))
	awaitTaint(t, w, true)
	expectCordon(t, drainReport(t, w), true, "other")
	expectNode(t, w, true, false)
	run(t, w, 0, haulout, "uncordon", w.Node("old"))
	expectNode(t, w, false, false)
}
