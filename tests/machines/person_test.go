package machines

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A person reboots a machine with pods on it. The agent delays the shutdown for as long as logind permits, and drains
// the node in that time. After the boot, the node is in service again.
func TestPersonReboots(t *testing.T) {
	for _, delay := range []int{5, 60} {
		t.Run(fmt.Sprintf("InhibitDelayMaxSec=%d", delay), func(t *testing.T) { personReboots(t, delay) })
	}
}

func personReboots(t *testing.T, delay int) {
	f := NewFleet(t, needs, 2, func(m *Machine) error {
		return m.Write("/etc/systemd/logind.conf.d/delay.conf", fmt.Sprintf("[Login]\nInhibitDelayMaxSec=%d\n", delay))
	})
	m, ctx := f.Machines[0], t.Context()
	must(t, f.InstallAll(ctx, ""))
	// The two pods of a machine are evicted one after the other, which takes ten seconds.
	work := Work{App: "web", Replicas: 4, Promised: 3, Lingers: 5 * time.Second, Grace: 30}
	must(t, f.Deploy(ctx, work))
	boot, err := m.BootID(ctx)
	must(t, err)
	must(t, f.Until(ctx, time.Minute, "the agent delays shutdowns", func() (bool, error) {
		list, err := m.Run(ctx, "systemd-inhibit", "--list", "--no-legend", "--no-pager")
		return strings.Contains(strings.ToLower(list), "haulout"), err
	}))

	enough := delay >= 60
	f.PersonReboots()
	if !enough {
		f.Witness.Release(work.App)
	}
	began := time.Now()
	_, err = m.Run(ctx, "systemctl", "reboot")
	must(t, err)
	f.Line.Note(m.Name, "a person says systemctl reboot")
	must(t, f.Until(ctx, 4*time.Minute, "the machine reboots", func() (bool, error) {
		return f.Reboots(m.Name) == 1, nil
	}))
	took, left := time.Since(began), f.LeftAtReboot(m.Name)
	f.Line.Note(m.Name, "down after %.1f s, with %d pods left", took.Seconds(), left)
	if enough && left > 0 {
		t.Errorf("%d pods were left on the machine", left)
	}
	if enough && took > time.Duration(delay)*time.Second {
		t.Errorf("the machine took %v, as long as logind allows, though the drain was over sooner", took)
	}
	boot, err = f.UntilBackInService(ctx, updateLimit, m, boot)
	must(t, err)
	f.Line.Note(m.Name, "back in service in boot %s", boot)
	must(t, f.UntilWhole(ctx, work))
	if enough {
		f.checkPromises(t, work)
	}
	if reboots := f.Reboots(m.Name); reboots != 1 {
		t.Errorf("%s has rebooted %d times", m.Name, reboots)
	}
	f.checkNoSlots(t)
}

// A person turns a machine off. The agent drains it first. When the machine is turned on again, the node is in service
// again.
func TestPersonPowersOff(t *testing.T) {
	notInCore(t)
	f := NewFleet(t, needs, 2, func(m *Machine) error {
		return m.Write("/etc/systemd/logind.conf.d/delay.conf", "[Login]\nInhibitDelayMaxSec=300\n")
	})
	m, ctx := f.Machines[0], t.Context()
	must(t, f.InstallAll(ctx, ""))
	work := Work{App: "web", Replicas: 4, Promised: 3, Lingers: 2 * time.Second, Grace: 30}
	must(t, f.Deploy(ctx, work))
	boot, err := m.BootID(ctx)
	must(t, err)
	_, err = m.Run(ctx, "systemctl", "poweroff")
	must(t, err)
	f.Line.Note(m.Name, "a person says systemctl poweroff")
	must(t, f.Until(ctx, 4*time.Minute, "the machine is off", func() (bool, error) { return m.Off(), nil }))
	node, pods := f.Witness.Node(m.Name), f.Witness.PodsOn(m.Name)
	if !node.Spec.Unschedulable || len(pods) > 0 {
		t.Errorf("%s is off, unschedulable %v, with %d pods", m.Name, node.Spec.Unschedulable, len(pods))
	}
	must(t, f.UntilWhole(ctx, work))
	must(t, m.PowerOn())
	f.Line.Note(m.Name, "power on")
	_, err = f.UntilBackInService(ctx, updateLimit, m, boot)
	must(t, err)
	if reboots, times := f.Reboots(m.Name), f.Witness.Uncordoned(m.Name); reboots != 0 || times != 1 {
		t.Errorf("%s has rebooted %d times and was uncordoned %d times", m.Name, reboots, times)
	}
	f.checkPromises(t, work)
	f.checkNoSlots(t)
}
