package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// With cordoned-nodes=wait, the agent does nothing on a node that a person has cordoned with kubectl until it is
// uncordoned, whatever its operating system needs. With cordoned-nodes=update it updates the node, and the cordon
// remains the person's.
func TestFleetLeavesPersonsCordonsAlone(t *testing.T) {
	t.Parallel()
	f := newFleet(t, cluster)
	start := func(machine *Machine, cordoned string) {
		must(t, machine.StartAgent(haulout, []string{"KUBECONFIG=" + f.Kubeconfig}, f.flags("--namespace", f.Name,
			"--authority=serviceaccount", "--cordoned-nodes", cordoned)...))
	}
	until := func(machine *Machine, what string, holds func(*corev1.Node) bool) {
		must(t, UntilWithin(t.Context(), time.Minute, what, func() (bool, error) {
			node, err := f.Client.CoreV1().Nodes().Get(t.Context(), machine.Node, getOptions)
			if err != nil {
				return false, err
			}
			return holds(node), fmt.Errorf("state %s, reason %s: %s", node.Labels["haulout.dev/state"],
				node.Labels["haulout.dev/reason"], node.Annotations["haulout.dev/message"])
		}))
	}
	idleWith := func(machine *Machine, version string) func(*corev1.Node) bool {
		return func(node *corev1.Node) bool {
			return machine.Version() == version && node.Labels["haulout.dev/state"] == "idle"
		}
	}

	a := f.Machines[0]
	run(t, f.World, 0, f.Kubectl(), "cordon", a.Node)
	start(a, "wait")
	must(t, a.Offer("1.1"))
	until(a, "the agent says that a person's cordon holds it", func(node *corev1.Node) bool {
		return node.Labels["haulout.dev/state"] == "pending" && node.Labels["haulout.dev/reason"] == "CordonedByPerson"
	})
	if a.Boots() != 0 || slices.Contains(f.States(a.Node), "draining") {
		t.Errorf("%s was not left alone: %d boots, states %v", a.Node, a.Boots(), f.States(a.Node))
	}
	run(t, f.World, 0, f.Kubectl(), "uncordon", a.Node)
	until(a, "it is updated once it is uncordoned", idleWith(a, "1.1"))

	b := f.Machines[1]
	run(t, f.World, 0, f.Kubectl(), "cordon", b.Node)
	start(b, "update")
	must(t, b.Offer("1.1"))
	until(b, "it is updated though it is cordoned", idleWith(b, "1.1"))
	node, err := f.Client.CoreV1().Nodes().Get(t.Context(), b.Node, getOptions)
	must(t, err)
	if !node.Spec.Unschedulable || b.Boots() != 1 {
		t.Errorf("%s after its update: unschedulable %v, %d boots", b.Node, node.Spec.Unschedulable, b.Boots())
	}
}
