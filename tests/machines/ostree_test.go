package machines

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// The agents find out by themselves that ostree updates these machines.
const ostreeAgent = "update: before-drain\n"

// Two machines are updated by ostree (see ostree.go). While pods run, and before any node is cordoned, ostree downloads
// the commit and stages it; then one machine after the other is drained and boots the new deployment. The next commit
// does not boot: the boot loader falls back to the old deployment, the node is degraded, and no machine installs that
// commit again, although ostree still has it as the first one. A third commit repairs the fleet.
func TestImageByOstree(t *testing.T) {
	notInCore(t)
	ctx := t.Context()
	commits, err := NewCommits(t, needs)
	must(t, err)
	first, err := commits.Add(ctx, firstImage, true)
	must(t, err)
	f := NewFleet(t, needs, 2, func(m *Machine) error { return commits.MakeSysroot(ctx, m) })
	m, other := f.Machines[0], f.Machines[1]
	must(t, f.InstallAll(ctx, ""))
	must(t, f.Deploy(ctx, webWork))
	f.Witness.AtOnce(1)
	must(t, f.WatchWrites("ostree", ostreeLog))
	for _, machine := range f.Machines {
		f.checkDeployments(t, machine, first, "")
	}

	// The agents see the commit, and install nothing while a gate is closed.
	boots := map[string]string{}
	f.person(t, m, "pause", "--all", "--reason", "a person looks first")
	second, err := commits.Add(ctx, secondImage, true)
	must(t, err)
	toSecond := first + " to " + second + " (" + commitText + ")"
	for _, machine := range f.Machines {
		boots[machine.Name], err = machine.BootID(ctx)
		must(t, err)
		must(t, f.Configure(ctx, machine, ostreeAgent))
	}
	for _, machine := range f.Machines {
		must(t, f.UntilReason(ctx, time.Minute, machine.Name, "Paused"))
		text := f.person(t, machine, "explain", machine.Name)
		f.keep(t, "haulout explain "+machine.Name, text, nil)
		if !strings.Contains(text, toSecond) {
			t.Errorf("haulout explain %s: %s", machine.Name, text)
		}
		f.checkDeployments(t, machine, first, "")
		f.checkWritten(t, ostreeLog, machine)
	}

	// ostree begins, and is held before it writes: nothing has happened to nodes and pods.
	must(t, f.onAll(func(m *Machine) error { return m.Write(ostreeHold, "") }))
	f.person(t, m, "resume", "--all")
	f.Line.Note("fleet", "the pause is over")
	for _, machine := range f.Machines {
		must(t, f.Until(ctx, updateLimit, "ostree on "+machine.Name+" has begun", func() (bool, error) {
			log, err := machine.Run(ctx, "cat", ostreeLog)
			return strings.Contains(log, "begins"), err
		}))
		must(t, f.UntilReason(ctx, time.Minute, machine.Name, "ApplyingUpdate"))
		node, pods := f.Witness.Node(machine.Name), f.Witness.PodsOn(machine.Name)
		if node.Labels[stateLabel] != "pending" || node.Spec.Unschedulable || len(pods) == 0 ||
			slices.ContainsFunc(pods, terminating) || !strings.Contains(node.Annotations[messageNote], toSecond) {
			t.Errorf("%s while ostree writes: state %s, unschedulable %v, %d pods, %s", machine.Name,
				node.Labels[stateLabel], node.Spec.Unschedulable, len(pods), node.Annotations[messageNote])
		}
		f.checkWritten(t, ostreeLog, machine)
	}
	f.checkNoSlots(t)
	f.keepViews(t, m)
	must(t, f.onAll(func(m *Machine) error {
		_, err := m.Run(ctx, "rm", ostreeHold)
		return err
	}))
	f.Line.Note("fleet", "ostree may write")

	for _, machine := range f.Machines {
		boots[machine.Name], err = f.UntilBackInService(ctx, 2*updateLimit, machine, boots[machine.Name])
		must(t, err)
	}
	must(t, f.UntilWhole(ctx, webWork))
	for _, machine := range f.Machines {
		f.checkOneUpdate(t, machine.Name)
		f.checkDeployments(t, machine, second, "")
		f.checkWritten(t, ostreeLog, machine, secondImage)
		f.checkSucceeded(t, machine, second)
		f.checkBoots(t, machine, "2026.1 2026.2")
	}
	f.checkNoSlots(t)

	// A commit that does not boot.
	broken, err := commits.Add(ctx, brokenImage, false)
	must(t, err)
	must(t, f.LookAnew(ctx, m))
	must(t, f.UntilState(ctx, updateLimit, m.Name, "degraded"))
	f.checkRolledBack(t, m, broken, strings.TrimRight(strings.NewReplacer(" ", "_", "(", "_").Replace(broken), ")"))
	f.checkDeployments(t, m, second, broken)
	f.checkWritten(t, ostreeLog, m, secondImage, brokenImage)
	f.checkBoots(t, m, "2026.1 2026.2 2026.3 2026.3 2026.2")
	must(t, f.LookAnew(ctx, other))
	must(t, f.UntilReason(ctx, time.Minute, other.Name, "VersionFailed"))
	f.keepViews(t, other)
	f.checkWritten(t, ostreeLog, other, secondImage)
	f.checkHolder(t, m)

	// Somebody commits a better image, and lets the degraded node try that.
	third, err := commits.Add(ctx, thirdImage, true)
	must(t, err)
	for _, machine := range f.Machines {
		boots[machine.Name], err = machine.BootID(ctx)
		must(t, err)
		must(t, f.LookAnew(ctx, machine))
	}
	f.person(t, m, "request-reboot", m.Name)
	for _, machine := range f.Machines {
		boots[machine.Name], err = f.UntilBackInService(ctx, 2*updateLimit, machine, boots[machine.Name])
		must(t, err)
		f.checkDeployments(t, machine, third, "")
		f.checkSucceeded(t, machine, third)
	}
	must(t, f.UntilWhole(ctx, webWork))
	f.checkWritten(t, ostreeLog, m, secondImage, brokenImage, thirdImage)
	f.checkWritten(t, ostreeLog, other, secondImage, thirdImage)
	f.checkBoots(t, m, "2026.1 2026.2 2026.3 2026.3 2026.2 2026.4")
	f.checkBoots(t, other, "2026.1 2026.2 2026.4")
	for machine, wanted := range map[*Machine]int{m: 5, other: 2} {
		if got := f.Reboots(machine.Name); got != wanted || f.Witness.Node(machine.Name).Spec.Unschedulable {
			t.Errorf("%s has rebooted %d times, and not %d", machine.Name, got, wanted)
		}
	}
	f.checkPromises(t, webWork)
	f.checkNoSlots(t)
	for _, machine := range f.Machines {
		for _, unit := range []string{"haulout-update", "ostree-finalize-staged"} {
			text, err := machine.Run(ctx, "journalctl", "--no-pager", "-u", unit)
			f.keep(t, machine.Name+": journalctl -u "+unit, text, err)
		}
	}
}

// checkDeployments checks which version the machine runs: so says ostree, and so says the kubelet, which reads os-release
// from the deployment. `next` is the version that ostree has as the first one, and that the next boot would run if it
// could; empty if it is the running one.
func (f *Fleet) checkDeployments(t *testing.T, m *Machine, booted, next string) {
	t.Helper()
	text, err := m.Deployments(t.Context())
	f.keep(t, m.Name+": ostree admin status", text, err)
	sum := func(version string) string {
		_, sum, _ := strings.Cut(version, " (")
		return "machine " + strings.TrimSuffix(sum, ")")
	}
	begin := "* " + sum(booted)
	if next != "" {
		begin = "  " + sum(next)
	}
	if !strings.HasPrefix(text, begin) || !strings.Contains(text, "* "+sum(booted)) {
		t.Errorf("%s does not run %s, or %q is not its next version: %s", m.Name, booted, next, text)
	}
	version, _, _ := strings.Cut(booted, " ")
	f.checkSystem(t, m, version)
}
