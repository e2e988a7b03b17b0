package machines

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A workload whose drain takes so long that a test can do something during it: the pods of a machine are evicted one
// after the other, and each takes 15 s to terminate.
var slowWork = Work{App: "slow", Replicas: 4, Promised: 3, Lingers: 15 * time.Second, Grace: 60}

// interruptedFleet returns two machines with agents and slowWork. The first machine needs a reboot, and its drain has
// begun. Also returns the boot id of the first machine.
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

// mainPID returns the process id of a unit's main process inside the machine.
func mainPID(t *testing.T, m *Machine, unit string) string {
	t.Helper()
	text, err := m.Run(t.Context(), "systemctl", "show", "-p", "MainPID", "--value", unit)
	must(t, err)
	return strings.TrimSpace(text)
}

// killAgent kills the agent of a machine with SIGKILL, and returns when systemd has started it again.
func (f *Fleet) killAgent(t *testing.T, m *Machine) {
	t.Helper()
	before := mainPID(t, m, "haulout")
	_, err := m.Run(t.Context(), "kill", "-KILL", before)
	must(t, err)
	f.Line.Note(m.Name, "kill -9 of the agent")
	must(t, f.Until(t.Context(), time.Minute, "systemd has started the agent again", func() (bool, error) {
		now := mainPID(t, m, "haulout")
		return now != before && now != "0", nil
	}))
}

// During a drain, the agent is killed. The next process continues the drain, and the machine reboots once.
func TestAgentKilledInDrain(t *testing.T) {
	f, boot := interruptedFleet(t)
	m := f.Machines[0]
	f.killAgent(t, m)
	f.Line.Note(m.Name, "the next agent runs")
	f.finish(t, slowWork, boot)
}

// During a drain, the package is installed again. The new process continues the drain, and the machine reboots once.
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

// finish waits until the first machine's update has succeeded, and checks it as after an update without a disturbance.
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

// outage is how long the API server does not run. It is as long as a terminating pod needs, longer than the agent's
// pause between two requests, and much shorter than nodeGrace.
const outage = 15 * time.Second

// During a drain, the API server does not run for a while. The agent does not end, and continues the drain when the API
// server is back.
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

// During a drain, the power of the machine fails. After its boot, the node is in service again, and its slot is
// released.
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

// During a drain, the system bus and logind, which the agent needs for the reboot, are restarted. The update succeeds
// all the same.
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

// During a drain, the agent hangs. systemd's watchdog kills it, and the next process continues the drain.
func TestAgentHangsInDrain(t *testing.T) {
	notInCore(t)
	f, boot := interruptedFleet(t)
	m, ctx := f.Machines[0], t.Context()
	before := mainPID(t, m, "haulout")
	_, err := m.Run(ctx, "kill", "-STOP", before)
	must(t, err)
	f.Line.Note(m.Name, "SIGSTOP to the agent")
	// systemd kills the agent after WatchdogSec=2min of the unit. Then the process has to end, and RestartSec= has to
	// pass.
	must(t, f.Until(ctx, 4*time.Minute, "systemd has started the agent again", func() (bool, error) {
		now := mainPID(t, m, "haulout")
		return now != before && now != "0", nil
	}))
	f.Line.Note(m.Name, "the next agent runs")
	f.finish(t, slowWork, boot)
}

// During a drain, the package is purged: the node is uncordoned, its slot is released, and the machine does not reboot.
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

// The API server stops when the machine reboots, and does not run yet when the agent starts after the boot.
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

// The kubelet is configured to delay shutdowns, too, and to end the pods in that time itself. When the agent reboots the
// machine, the drain has already deleted all pods that the kubelet would end.
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
