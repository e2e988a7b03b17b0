package machines

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Follows packaging/README.md: the package is installed with apt, configured for a machine without slots, checked with
// --check, and started with its complete sandbox. Removing and purging it leaves nothing behind.
func TestPackage(t *testing.T) {
	f := NewFleet(t, needs, 1)
	m, ctx := f.Machines[0], t.Context()
	must(t, f.CopyPackage(m))

	output, err := m.Run(ctx, "apt-get", "install", "-q", "-y", packagePath)
	must(t, err)
	f.Line.Note(m.Name, "package installed")
	if !strings.Contains(output, "haulout") {
		t.Errorf("apt says nothing about the package:\n%s", output)
	}
	enabled, err := m.Run(ctx, "systemctl", "is-enabled", "haulout")
	must(t, err)
	if strings.TrimSpace(enabled) != "enabled" {
		t.Errorf("the unit is %s", enabled)
	}

	// The kubelet's credentials may not write Leases. So without a configuration, --check fails.
	if _, err := m.Run(ctx, "haulout-as-service", "--check"); err == nil {
		t.Error("--check is content without slots")
	}
	must(t, m.Write("/etc/haulout/config.yaml", "slots: none\n"))
	check, err := m.Run(ctx, "haulout-as-service", "--check")
	must(t, err)
	f.Line.Note(m.Name, "haulout-as-service --check is content")
	t.Logf("--check:\n%s", check)
	if boot, err := m.BootID(ctx); err != nil || !strings.Contains(check, boot) {
		t.Errorf("--check does not know the boot id %s (%v)", boot, err)
	}

	_, err = m.Run(ctx, "systemctl", "restart", "haulout")
	must(t, err)
	must(t, f.UntilState(ctx, time.Minute, m.Name, "idle"))
	properties, err := m.Run(ctx, "systemctl", "show", "haulout", "-p", "ActiveState", "-p", "SubState", "-p", "NRestarts")
	must(t, err)
	if want := []string{"ActiveState=active", "NRestarts=0", "SubState=running"}; !sameLines(properties, want) {
		t.Errorf("the unit is\n%s", properties)
	}

	security, err := m.Run(ctx, "systemd-analyze", "security", "--no-pager", "haulout.service")
	must(t, err)
	found := regexp.MustCompile(`Overall exposure level for haulout.service: ([0-9.]+)`).FindStringSubmatch(security)
	if found == nil {
		t.Fatalf("systemd-analyze security says no level:\n%s", security)
	}
	f.Line.Note(m.Name, "systemd-analyze security: %s", found[1])
	if level, err := strconv.ParseFloat(found[1], 64); err != nil || level > 1.6 {
		t.Errorf("exposure level %s, it may be 1.6:\n%s", found[1], security)
	}

	_, err = m.Run(ctx, "apt-get", "install", "-q", "-y", "--reinstall", packagePath)
	must(t, err)
	must(t, f.UntilState(ctx, time.Minute, m.Name, "idle"))
	f.Line.Note(m.Name, "package installed again")

	_, err = m.Run(ctx, "apt-get", "purge", "-q", "-y", "haulout")
	must(t, err)
	f.Line.Note(m.Name, "package purged")
	must(t, f.untilForgotten(ctx, m))
	failed, err := m.Run(ctx, "systemctl", "--failed", "--no-legend", "--plain")
	must(t, err)
	if strings.Contains(failed, "haulout") {
		t.Errorf("systemd still lists it:\n%s", failed)
	}
	if left, err := m.Shell(ctx, "ls -d /etc/haulout /run/haulout /usr/bin/haulout 2>/dev/null || true"); err != nil || left != "" {
		t.Errorf("left on the disk: %s (%v)", left, err)
	}
}

// An update with the credentials that the package uses by default: the kubelet's. They may not write Leases, so the
// machine updates without slots.
func TestUpdateWithKubeletCredentials(t *testing.T) {
	notInCore(t)
	f := NewFleet(t, needs, 2)
	m, ctx := f.Machines[0], t.Context()
	must(t, m.Write("/etc/haulout/config.yaml", "slots: none\n"))
	must(t, f.CopyPackage(m))
	_, err := m.Run(ctx, "apt-get", "install", "-q", "-y", "-o", "Dpkg::Options::=--force-confold", packagePath)
	must(t, err)
	f.Line.Note(m.Name, "package installed")
	must(t, f.UntilState(ctx, 2*time.Minute, m.Name, "idle"))
	boot := f.hold(t)
	f.checkHeld(t, m)
	must(t, f.Relax(ctx, heldWork))
	f.finish(t, heldWork, boot)
}

func sameLines(text string, want []string) bool {
	lines := strings.Fields(text)
	if len(lines) != len(want) {
		return false
	}
	for _, line := range want {
		if !strings.Contains(text, line) {
			return false
		}
	}
	return true
}

// untilForgotten waits until the Node is schedulable and has no labels, annotations or conditions of an agent.
func (f *Fleet) untilForgotten(ctx context.Context, m *Machine) error {
	return f.Until(ctx, time.Minute, "nothing of the agent is left on the Node "+m.Name, func() (bool, error) {
		node := f.Witness.Node(m.Name)
		var left []string
		for _, keys := range []map[string]string{node.Labels, node.Annotations} {
			for key := range keys {
				if strings.HasPrefix(key, "haulout.dev/") {
					left = append(left, key)
				}
			}
		}
		for _, condition := range node.Status.Conditions {
			if strings.HasPrefix(string(condition.Type), "Haulout") {
				left = append(left, string(condition.Type))
			}
		}
		return len(left) == 0 && !node.Spec.Unschedulable,
			fmt.Errorf("left: %v, unschedulable %v", left, node.Spec.Unschedulable)
	})
}
