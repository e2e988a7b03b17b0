package machines

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// updateLimit is how long the update of one machine may take, on a host that also does other work.
const updateLimit = 6 * time.Minute

// Three machines need a reboot at the same time. One after the other gets the slot, is drained, reboots, is verified
// and is uncordoned. The workload always has as many Ready pods as its budget promises.
func TestFleetReboots(t *testing.T) {
	f := NewFleet(t, needs, 3)
	ctx := t.Context()
	must(t, f.InstallAll(ctx, ""))
	work := Work{App: "web", Replicas: 6, Promised: 5, Lingers: 2 * time.Second, Grace: 30}
	must(t, f.Deploy(ctx, work))
	f.Witness.AtOnce(1)

	boots := map[string]string{}
	for _, machine := range f.Machines {
		boot, err := machine.BootID(ctx)
		must(t, err)
		boots[machine.Name] = boot
	}
	for _, machine := range f.Machines {
		must(t, machine.NeedsReboot(ctx))
		f.Line.Note(machine.Name, "/run/reboot-required")
	}
	for _, machine := range f.Machines {
		boot, err := f.UntilBackInService(ctx, 3*updateLimit, machine, boots[machine.Name])
		must(t, err)
		f.Line.Note(machine.Name, "back in service in boot %s", boot)
	}
	must(t, f.UntilWhole(ctx, work))
	for _, machine := range f.Machines {
		f.checkOneUpdate(t, machine.Name)
	}
	f.checkPromises(t, work)
	f.checkNoSlots(t)
}

// checkOneUpdate checks that the machine rebooted once and was uncordoned once, and that its node was draining,
// rebooting, verifying and idle, in this order.
func (f *Fleet) checkOneUpdate(t *testing.T, name string) {
	t.Helper()
	f.checkUpdates(t, name, 1)
}

// checkUpdates checks the same of so many updates, one after the other.
func (f *Fleet) checkUpdates(t *testing.T, name string, updates int) {
	t.Helper()
	if reboots := f.Reboots(name); reboots != updates {
		t.Errorf("%s has rebooted %d times, in %d updates", name, reboots, updates)
	}
	if times := f.Witness.Uncordoned(name); times != updates {
		t.Errorf("%s was uncordoned %d times, in %d updates", name, times, updates)
	}
	states := f.Witness.States(name)
	at := 0
	for _, want := range slices.Repeat([]string{"draining", "rebooting", "verifying", "idle"}, updates) {
		next := slices.Index(states[at:], want)
		if next < 0 {
			t.Errorf("%s went through %v", name, states)
			return
		}
		at += next
	}
}

// checkPromises checks that the witness saw no violation of a promise. It notes the smallest number of Ready pods in
// the time line.
func (f *Fleet) checkPromises(t *testing.T, work Work) {
	t.Helper()
	for _, violation := range f.Witness.Violations() {
		t.Error(violation)
	}
	promised, least := f.Witness.Promised(work.App)
	f.Line.Note("workload", "%s: never fewer than %d of %d pods were Ready, the budget promises %d", work.App, least,
		work.Replicas, promised)
}

// checkNoSlots checks that all slots are released within a minute.
func (f *Fleet) checkNoSlots(t *testing.T) {
	t.Helper()
	must(t, f.Until(t.Context(), time.Minute, "all slots are released", func() (bool, error) {
		leases, err := f.Client.CoordinationV1().Leases("haulout").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		var held []string
		for _, lease := range leases.Items {
			held = append(held, lease.Name)
		}
		return len(held) == 0, fmt.Errorf("held: %s", strings.Join(held, ", "))
	}))
}

// drainBegun returns when the machine's node is draining and one of its pods is terminating.
func (f *Fleet) drainBegun(ctx context.Context, m *Machine) error {
	if err := f.UntilState(ctx, 3*time.Minute, m.Name, "draining"); err != nil {
		return err
	}
	return f.Until(ctx, 2*time.Minute, "a pod of "+m.Name+" is terminating", func() (bool, error) {
		return slices.ContainsFunc(f.Witness.PodsOn(m.Name), terminating), nil
	})
}
