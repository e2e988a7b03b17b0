package e2e

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newFleet is three machines with a workload of six pods under a budget of one spread over them.
func newFleet(t *testing.T) *Fleet {
	t.Helper()
	needHaulout(t)
	w := newWorld(t)
	fleet, err := w.NewFleet(t.Context(), "web", 5, 1, "a", "b", "c")
	if fleet != nil {
		t.Cleanup(fleet.CloseFleet)
	}
	must(t, err)
	must(t, w.Apply(t.Context(), Deployment("web", 6, Annotate(TerminatesAfter, "200ms")), Budget("web", "1")))
	must(t, w.Settle(t.Context(), 6))
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(fleet.Story())
		}
		for _, violation := range fleet.Violations() {
			t.Error(violation)
		}
	})
	return fleet
}

// fleetFlags are what all agents of these tests have.
func fleetFlags(f *Fleet) []string {
	return []string{"--namespace", f.Name, "--backend", "flatcar", "--settle", "500ms"}
}

func updateAll(t *testing.T, f *Fleet) {
	t.Helper()
	for _, machine := range f.Machines {
		must(t, machine.Offer("1.1"))
	}
	must(t, f.UntilUpdated(t.Context(), "1.1", 2*time.Minute))
}

// Three agents on a real control plane take three nodes through an update, one after the other.
func TestFleetUpdates(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	for _, machine := range f.Machines {
		must(t, machine.StartAgent([]string{"KUBECONFIG=" + f.Kubeconfig}, append(fleetFlags(f), "--authority=serviceaccount")...))
	}
	updateAll(t, f)
	for _, machine := range f.Machines {
		if machine.Boots() != 1 {
			t.Errorf("%s was booted %d times", machine.Node, machine.Boots())
		}
		states := f.States(machine.Node)
		for _, state := range []string{"idle", "draining", "rebooting", "verifying"} {
			if !slices.Contains(states, state) {
				t.Errorf("%s never showed %s: %v", machine.Node, state, states)
			}
		}
	}
	leases, err := f.Client.CoordinationV1().Leases(f.Name).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(leases.Items) != 0 {
		t.Errorf("%d slots are still held", len(leases.Items))
	}
}
