package machines

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// In a container, the sandbox of the agent's unit shows the boot id of the container's host. The agent reports that and
// starts no update; otherwise it might reboot the machine again and again. When the unit no longer has the settings
// that make systemd mount /proc again, the agent sees the right boot id, and updates the machine.
func TestForeignBootID(t *testing.T) {
	notInCore(t)
	const dropIn = "/etc/systemd/system/haulout.service.d/boot-id.conf"
	f := NewFleet(t, needs, 1, func(m *Machine) error { return m.Write(dropIn, "") })
	m, ctx := f.Machines[0], t.Context()
	must(t, f.InstallAll(ctx, "slots: none\n"))
	boot, err := m.BootID(ctx)
	must(t, err)
	must(t, m.NeedsReboot(ctx))
	f.Line.Note(m.Name, "/run/reboot-required")
	must(t, f.UntilReason(ctx, 2*time.Minute, m.Name, "BootIdForeign"))
	if check, err := m.Run(ctx, "haulout-as-service", "--check"); err == nil {
		t.Errorf("--check is content:\n%s", check)
	}
	if node := f.Witness.Node(m.Name); node.Spec.Unschedulable || f.Reboots(m.Name) != 0 {
		t.Errorf("unschedulable %v, %d reboots", node.Spec.Unschedulable, f.Reboots(m.Name))
	}

	must(t, m.Write(dropIn, "[Service]\nProtectProc=default\nProtectKernelTunables=no\nProtectControlGroups=no\n"))
	_, err = m.Shell(ctx, "systemctl daemon-reload && systemctl restart haulout")
	must(t, err)
	f.Line.Note(m.Name, "the sandbox shows the boot id of the machine")
	_, err = f.UntilBackInService(ctx, updateLimit, m, boot)
	must(t, err)
	f.checkOneUpdate(t, m.Name)
}

// UntilReason waits until a node has this reason.
func (f *Fleet) UntilReason(ctx context.Context, limit time.Duration, name, reason string) error {
	return f.Until(ctx, limit, name+" has the reason "+reason, func() (bool, error) {
		labels := f.Witness.Node(name).Labels
		return labels[reasonLabel] == reason, fmt.Errorf("state %s, reason %s", labels[stateLabel], labels[reasonLabel])
	})
}
