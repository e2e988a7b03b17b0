package machines

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The budget of this workload allows no disruption until a test relaxes it. Until then, a drain cannot end.
var heldWork = Work{App: "held", Replicas: 4, Promised: 4, Lingers: time.Second, Grace: 30}

// heldFleet returns two machines with agents and heldWork. The first machine needs a reboot and is draining, and its
// drain cannot end. Also returns the boot id of the first machine.
func heldFleet(t *testing.T, prepare ...func(*Machine) error) (*Fleet, string) {
	t.Helper()
	f := NewFleet(t, needs, 2, prepare...)
	must(t, f.InstallAll(t.Context(), ""))
	return f, f.hold(t)
}

// hold deploys heldWork and begins the drain of the first machine. It returns that machine's boot id.
func (f *Fleet) hold(t *testing.T) string {
	t.Helper()
	m, ctx := f.Machines[0], t.Context()
	must(t, f.Deploy(ctx, heldWork))
	f.Witness.AtOnce(1)
	boot, err := m.BootID(ctx)
	must(t, err)
	must(t, m.NeedsReboot(ctx))
	f.Line.Note(m.Name, "/run/reboot-required")
	must(t, f.UntilHeld(ctx, m))
	return boot
}

// UntilHeld waits until the machine is cordoned and its drain reports that the budget of heldWork refuses an eviction.
func (f *Fleet) UntilHeld(ctx context.Context, m *Machine) error {
	return f.Until(ctx, updateLimit, "a budget holds the drain of "+m.Name, func() (bool, error) {
		node := f.Witness.Node(m.Name)
		state, reason := node.Labels[stateLabel], node.Labels[reasonLabel]
		return state == "draining" && reason == "BlockedByBudget" && node.Spec.Unschedulable,
			fmt.Errorf("state %s, reason %s, unschedulable %v", state, reason, node.Spec.Unschedulable)
	})
}

// checkHeld checks that the drain still goes on and has evicted no pod.
func (f *Fleet) checkHeld(t *testing.T, m *Machine) {
	t.Helper()
	node, pods := f.Witness.Node(m.Name), f.Witness.PodsOn(m.Name)
	if node.Labels[stateLabel] != "draining" || !node.Spec.Unschedulable || f.Witness.Uncordoned(m.Name) != 0 ||
		len(pods) == 0 || slices.ContainsFunc(pods, terminating) {
		t.Errorf("%s is %s, unschedulable %v, was uncordoned %d times, has %d pods", m.Name, node.Labels[stateLabel],
			node.Spec.Unschedulable, f.Witness.Uncordoned(m.Name), len(pods))
	}
}

// During a drain, the package is upgraded from an older version. The new process continues the drain, and the machine
// reboots once. Both packages contain the same program: the test is about dpkg and the maintainer scripts.
func TestPackageUpgradedInDrain(t *testing.T) {
	f := NewFleet(t, needs, 2)
	m, ctx := f.Machines[0], t.Context()
	f.Package = previousPackage(t)
	must(t, f.InstallAll(ctx, ""))
	boot := f.hold(t)
	version := func() string {
		text, err := m.Run(ctx, "dpkg-query", "-W", "-f", "${Version} ${db:Status-Status}", "haulout")
		must(t, err)
		return text
	}
	if now := version(); now != previousVersion+" installed" {
		t.Fatalf("the package is %s", now)
	}
	before := mainPID(t, m, "haulout")

	f.Package = needs.Package
	must(t, f.CopyPackage(m))
	_, err := m.Run(ctx, "apt-get", "install", "-q", "-y", packagePath)
	must(t, err)
	f.Line.Note(m.Name, "the package is %s", version())
	if now := version(); !strings.HasSuffix(now, " installed") || strings.HasPrefix(now, previousVersion) {
		t.Errorf("the package is %s", now)
	}
	if now := mainPID(t, m, "haulout"); now == before || now == "0" {
		t.Errorf("the agent was process %s and is %s", before, now)
	}
	must(t, f.UntilActive(ctx, m, "haulout"))
	f.checkHeld(t, m)
	must(t, f.Relax(ctx, heldWork))
	f.finish(t, heldWork, boot)
}

const previousVersion = "0.0.1"

// previousPackage returns the path of the package under test with a version number that is older than any other.
func previousPackage(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	tree, path := filepath.Join(dir, "tree"), filepath.Join(dir, "haulout_previous.deb")
	output, err := exec.Command("dpkg-deb", "--raw-extract", needs.Package, tree).CombinedOutput()
	if err != nil {
		t.Fatalf("dpkg-deb: %v\n%s", err, output)
	}
	control := filepath.Join(tree, "DEBIAN", "control")
	text, err := os.ReadFile(control)
	must(t, err)
	older := regexp.MustCompile(`(?m)^Version: .*$`).ReplaceAll(text, []byte("Version: "+previousVersion))
	must(t, os.WriteFile(control, older, 0o644))
	if output, err := exec.Command("dpkg-deb", "--build", tree, path).CombinedOutput(); err != nil {
		t.Fatalf("dpkg-deb: %v\n%s", err, output)
	}
	return path
}

// UntilActive waits until a unit is active: a unit of Type=notify has then reported that it is ready.
func (f *Fleet) UntilActive(ctx context.Context, m *Machine, unit string) error {
	return f.Until(ctx, time.Minute, unit+" is active", func() (bool, error) {
		state, err := m.Run(ctx, "systemctl", "is-active", unit)
		return strings.TrimSpace(state) == "active", err
	})
}

// During a drain, a person stops the agent and runs --release: the cordon, the slot and the labels are removed, and the
// machine does not reboot. When the service is started again, the update begins anew and succeeds.
func TestReleasedInDrain(t *testing.T) {
	notInCore(t)
	f, boot := heldFleet(t)
	m, ctx := f.Machines[0], t.Context()
	_, err := m.Run(ctx, "systemctl", "stop", "haulout")
	must(t, err)
	f.checkHeld(t, m)
	output, err := m.Run(ctx, "haulout-as-service", "--release")
	must(t, err)
	f.Line.Note(m.Name, "haulout agent --release: %s", strings.ReplaceAll(strings.TrimSpace(output), "\n", "; "))
	must(t, f.untilForgotten(ctx, m))
	f.checkNoSlots(t)
	if reboots, pods := f.Reboots(m.Name), f.Witness.PodsOn(m.Name); reboots != 0 || len(pods) == 0 {
		t.Errorf("%s has rebooted %d times and has %d pods", m.Name, reboots, len(pods))
	}
	must(t, f.Relax(ctx, heldWork))
	_, err = m.Run(ctx, "systemctl", "start", "haulout")
	must(t, err)
	f.Line.Note(m.Name, "systemctl start haulout")
	_, err = f.UntilBackInService(ctx, updateLimit, m, boot)
	must(t, err)
	must(t, f.UntilWhole(ctx, heldWork))
	if reboots, times := f.Reboots(m.Name), f.Witness.Uncordoned(m.Name); reboots != 1 || times != 2 {
		t.Errorf("%s has rebooted %d times and was uncordoned %d times", m.Name, reboots, times)
	}
	f.checkPromises(t, heldWork)
	f.checkNoSlots(t)
}

// Two agents run on one machine, for example from a package and from a DaemonSet. Although they overwrite each other's
// changes, they keep every promise: there is one drain and one reboot.
func TestTwoAgentsOnOneMachine(t *testing.T) {
	notInCore(t)
	f, boot := heldFleet(t)
	m, ctx := f.Machines[0], t.Context()
	_, err := m.Run(ctx, "systemd-run", "--unit=second-agent", "--service-type=notify", "-p", "RuntimeDirectory=second-agent",
		"/usr/bin/haulout", "agent")
	must(t, err)
	must(t, f.UntilActive(ctx, m, "second-agent"))
	f.Line.Note(m.Name, "a second agent runs")
	f.checkHeld(t, m)
	must(t, f.Relax(ctx, heldWork))
	must(t, f.Until(ctx, updateLimit, "the machine reboots", func() (bool, error) { return f.Reboots(m.Name) == 1, nil }))
	f.finish(t, heldWork, boot)
	// Only agents that overwrite each other's records several times in a row can know of each other. During a drain that
	// waits they write the same record, so this Event may be missing. tests/fleet require it where it must come.
	events, err := f.Client.EventsV1().Events("").List(ctx, metav1.ListOptions{})
	must(t, err)
	for _, event := range events.Items {
		if event.Reason == "SecondAgent" {
			f.Line.Note(event.Regarding.Name, "%s: %s", event.Reason, event.Note)
		}
	}
}

// At boot, a unit of the machine takes long, and then fails. Until the boot is complete, the agent reports that and the
// node stays cordoned. A failed unit does not keep the node from being uncordoned.
func TestUnitHangsAndFailsAtBoot(t *testing.T) {
	notInCore(t)
	const hold = "/var/lib/hold-boot"
	f, boot := heldFleet(t, func(m *Machine) error {
		return m.AddUnit("slow", "[Service]\nType=oneshot\nExecStart=sh -c 'while [ -e "+hold+" ]; do sleep 0.1; done; [ ! -e /var/lib/fails ]'\n")
	})
	m, ctx := f.Machines[0], t.Context()
	_, err := m.Run(ctx, "touch", hold, "/var/lib/fails")
	must(t, err)
	must(t, f.Relax(ctx, heldWork))
	must(t, f.Until(ctx, updateLimit, "the boot is not complete", func() (bool, error) {
		node := f.Witness.Node(m.Name)
		return node.Labels[reasonLabel] == "BootNotComplete" && node.Status.NodeInfo.BootID != boot && nodeReady(node),
			fmt.Errorf("state %s, reason %s", node.Labels[stateLabel], node.Labels[reasonLabel])
	}))
	if node := f.Witness.Node(m.Name); node.Labels[stateLabel] != "verifying" || !node.Spec.Unschedulable {
		t.Errorf("%s is %s, unschedulable %v", m.Name, node.Labels[stateLabel], node.Spec.Unschedulable)
	}
	_, err = m.Run(ctx, "rm", hold)
	must(t, err)
	f.Line.Note(m.Name, "the unit fails")
	f.finish(t, heldWork, boot)
	f.checkFailed(t, m, "slow.service")
}

// checkFailed checks that systemd lists this unit as failed.
func (f *Fleet) checkFailed(t *testing.T, m *Machine, unit string) {
	t.Helper()
	failed, err := m.Run(t.Context(), "systemctl", "--failed", "--no-legend", "--plain")
	must(t, err)
	if !strings.Contains(failed, unit) {
		t.Errorf("%s is not among the failed units: %s", unit, failed)
	}
}

func terminating(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil }
