package machines

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A drain that is long enough for something to happen in it: the pods of a machine leave one after the other, and each
// takes its time.
var slowWork = Work{App: "slow", Replicas: 4, Promised: 3, Lingers: 15 * time.Second, Grace: 60}

// interruptedFleet is two machines with agents and slow work; the first needs a reboot, and its drain has begun. Returned
// is the boot id of the first.
func interruptedFleet(t *testing.T, prepare ...func(*Machine) error) (*Fleet, string) {
	t.Helper()
	f := NewFleet(t, needs, 2, prepare...)
	ctx := t.Context()
	must(t, f.InstallAll(ctx, ""))
	must(t, f.Deploy(ctx, slowWork))
	f.Witness.AtOnce(1)
	boot, err := f.Machines[0].BootID(ctx)
	must(t, err)
	must(t, f.Machines[0].NeedsReboot(ctx))
	f.Line.Note(f.Machines[0].Name, "/run/reboot-required")
	must(t, f.drainBegun(ctx, f.Machines[0]))
	return f, boot
}

// mainPID is the process of a unit, as the machine counts.
func mainPID(t *testing.T, m *Machine, unit string) string {
	t.Helper()
	text, err := m.Run(t.Context(), "systemctl", "show", "-p", "MainPID", "--value", unit)
	must(t, err)
	return strings.TrimSpace(text)
}

// The agent is killed in the middle of a drain. The next process goes on with it, and the machine reboots once.
func TestAgentKilledInDrain(t *testing.T) {
	f, boot := interruptedFleet(t)
	m, ctx := f.Machines[0], t.Context()
	before := mainPID(t, m, "haulout")
	_, err := m.Run(ctx, "kill", "-KILL", before)
	must(t, err)
	f.Line.Note(m.Name, "kill -9 of the agent")
	must(t, f.Until(ctx, time.Minute, "systemd has started the agent again", func() (bool, error) {
		now := mainPID(t, m, "haulout")
		return now != before && now != "0", nil
	}))
	f.Line.Note(m.Name, "the next agent runs")
	f.finish(t, slowWork, boot)
}

// The package is installed again in the middle of a drain. The new process goes on with it, and the machine reboots once.
func TestPackageReinstalledInDrain(t *testing.T) {
	notInCore(t)
	f, boot := interruptedFleet(t)
	m, ctx := f.Machines[0], t.Context()
	before := mainPID(t, m, "haulout")
	_, err := m.Run(ctx, "apt-get", "install", "-q", "-y", "--reinstall", packagePath)
	must(t, err)
	f.Line.Note(m.Name, "apt-get install --reinstall has ended")
	if now := mainPID(t, m, "haulout"); now == before || now == "0" {
		t.Errorf("the agent was process %s and is %s", before, now)
	}
	f.finish(t, slowWork, boot)
}

// finish: the first machine's update ends well, as if nothing had happened.
func (f *Fleet) finish(t *testing.T, work Work, boot string) {
	t.Helper()
	m, ctx := f.Machines[0], t.Context()
	boot, err := f.UntilBackInService(ctx, updateLimit, m, boot)
	must(t, err)
	f.Line.Note(m.Name, "back in service in boot %s", boot)
	must(t, f.UntilWhole(ctx, work))
	f.checkOneUpdate(t, m.Name)
	f.checkPromises(t, work)
	f.checkNoSlots(t)
}

// As long as the pod that is terminating needs, longer than the agent waits before it asks again, and much shorter than
// nodeGrace.
const outage = 15 * time.Second

// The API server is away for a while in the middle of a drain.
func TestAPIServerAwayInDrain(t *testing.T) {
	notInCore(t)
	f, boot := interruptedFleet(t)
	m, ctx := f.Machines[0], t.Context()
	const server = "kube-apiserver"
	must(t, f.Kill(server))
	f.Line.Note("control", "kill -9 of the API server")
	pid := mainPID(t, m, "haulout")
	<-time.After(outage)
	must(t, f.Restart(ctx, server))
	f.Line.Note("control", "the API server is back")
	must(t, f.Witness.WatchAnew(f.watching, f.Client))
	if now := mainPID(t, m, "haulout"); now != pid {
		t.Errorf("the agent has ended meanwhile")
	}
	f.finish(t, slowWork, boot)
}

// The power fails in the middle of a drain. The machine is back in service after its boot, and its slot is released.
func TestPowerCutInDrain(t *testing.T) {
	notInCore(t)
	f, boot := interruptedFleet(t)
	m, ctx := f.Machines[0], t.Context()
	f.Witness.Release(slowWork.App)
	must(t, m.CutPower())
	must(t, f.Until(ctx, 2*time.Minute, "the cluster has noticed", func() (bool, error) {
		return !nodeReady(f.Witness.Node(m.Name)), nil
	}))
	must(t, m.PowerOn())
	f.Line.Note(m.Name, "power on")
	boot, err := f.UntilBackInService(ctx, updateLimit, m, boot)
	must(t, err)
	f.Line.Note(m.Name, "back in service in boot %s", boot)
	must(t, f.UntilWhole(ctx, slowWork))
	if reboots := f.Reboots(m.Name); reboots != 0 {
		t.Errorf("%s has rebooted %d times, though the power cut was a boot and no sign was left", m.Name, reboots)
	}
	for _, violation := range f.Witness.Violations() {
		t.Error(violation)
	}
	f.checkNoSlots(t)
}

// The system bus and logind are started again in the middle of a drain. The agent needs both for the reboot.
func TestBusRestartedInDrain(t *testing.T) {
	notInCore(t)
	f, boot := interruptedFleet(t)
	m, ctx := f.Machines[0], t.Context()
	for _, unit := range []string{"dbus", "systemd-logind", "systemd-journald"} {
		_, err := m.Run(ctx, "systemctl", "restart", unit)
		must(t, err)
		f.Line.Note(m.Name, "systemctl restart %s", unit)
	}
	f.finish(t, slowWork, boot)
}

// The agent hangs in the middle of a drain. The watchdog of systemd ends it, and the next process goes on.
func TestAgentHangsInDrain(t *testing.T) {
	notInCore(t)
	f, boot := interruptedFleet(t)
	m, ctx := f.Machines[0], t.Context()
	before := mainPID(t, m, "haulout")
	_, err := m.Run(ctx, "kill", "-STOP", before)
	must(t, err)
	f.Line.Note(m.Name, "SIGSTOP to the agent")
	// The unit has WatchdogSec=2min; then come the end of the process and RestartSec=.
	must(t, f.Until(ctx, 4*time.Minute, "systemd has started the agent again", func() (bool, error) {
		now := mainPID(t, m, "haulout")
		return now != before && now != "0", nil
	}))
	f.Line.Note(m.Name, "the next agent runs")
	f.finish(t, slowWork, boot)
}

// The package is purged in the middle of a drain: the node is uncordoned, its slot is released, and it does not reboot.
func TestPackagePurgedInDrain(t *testing.T) {
	notInCore(t)
	f, _ := interruptedFleet(t)
	m, ctx := f.Machines[0], t.Context()
	_, err := m.Run(ctx, "apt-get", "purge", "-q", "-y", "haulout")
	must(t, err)
	f.Line.Note(m.Name, "apt-get purge has ended")
	must(t, f.untilForgotten(ctx, m))
	must(t, f.UntilWhole(ctx, slowWork))
	if reboots := f.Reboots(m.Name); reboots != 0 {
		t.Errorf("%s has rebooted %d times", m.Name, reboots)
	}
	f.checkPromises(t, slowWork)
	f.checkNoSlots(t)
}

// The API server goes away with the machine, and is still away when that has booted.
func TestAPIServerAwayAtBoot(t *testing.T) {
	notInCore(t)
	f, boot := interruptedFleet(t)
	m, ctx := f.Machines[0], t.Context()
	const server = "kube-apiserver"
	must(t, f.Until(ctx, updateLimit, "the machine reboots", func() (bool, error) { return f.Reboots(m.Name) == 1, nil }))
	must(t, f.Kill(server))
	f.Line.Note("control", "kill -9 of the API server")
	must(t, f.Until(ctx, bootLimit, "the agent runs again", func() (bool, error) {
		now, err := m.Run(ctx, "systemctl", "show", "-p", "MainPID", "--value", "haulout")
		return err == nil && strings.TrimSpace(now) != "0", err
	}))
	f.Line.Note(m.Name, "the agent runs in the next boot")
	<-time.After(outage)
	must(t, f.Restart(ctx, server))
	f.Line.Note("control", "the API server is back")
	must(t, f.Witness.WatchAnew(f.watching, f.Client))
	f.finish(t, slowWork, boot)
}

// The kubelet delays shutdowns, too, and would end the pods by itself. In a reboot of the agent there are none left for it.
func TestKubeletWithGracefulShutdown(t *testing.T) {
	notInCore(t)
	f, boot := interruptedFleet(t, func(m *Machine) error {
		const grace = "shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s\n"
		return os.WriteFile(filepath.Join(m.volume("kubelet"), "config.yaml"), []byte(kubeletConfig+grace), 0o644)
	})
	m, ctx := f.Machines[0], t.Context()
	list, err := m.Run(ctx, "systemd-inhibit", "--list", "--no-legend", "--no-pager")
	must(t, err)
	if !strings.Contains(list, "kubelet") {
		t.Errorf("the kubelet delays nothing:\n%s", list)
	}
	f.finish(t, slowWork, boot)
}
