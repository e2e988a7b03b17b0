package machines

import (
	"strings"
	"testing"
	"time"
)

// The agents find out by themselves that ostree updates these machines.
const ostreeAgent = "update: before-drain\n"

var ostree = imageTool{name: "ostree", log: ostreeLog, hold: ostreeHold, begins: "begins"}

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
	must(t, f.WatchWrites(ostree.name, ostree.log))
	for _, machine := range f.Machines {
		f.checkDeployments(t, machine, first, "")
	}

	// The agents see the commit, and install nothing while a gate is closed.
	boots := f.allBoots(t)
	f.person(t, m, "pause", "--all", "--reason", "a person looks first")
	second, err := commits.Add(ctx, secondImage, true)
	must(t, err)
	toSecond := first + " to " + second + " (" + commitText + ")"
	for _, machine := range f.Machines {
		must(t, f.Configure(ctx, machine, ostreeAgent))
	}
	f.checkOffered(t, ostree, toSecond)
	for _, machine := range f.Machines {
		f.checkDeployments(t, machine, first, "")
	}
	f.writeUnderPods(t, ostree, toSecond)

	f.untilAllBack(t, boots)
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

	// A person commits a better image, and requests a reboot of the degraded node.
	third, err := commits.Add(ctx, thirdImage, true)
	must(t, err)
	boots = f.allBoots(t)
	for _, machine := range f.Machines {
		must(t, f.LookAnew(ctx, machine))
	}
	f.person(t, m, "request-reboot", m.Name)
	f.untilAllBack(t, boots)
	for _, machine := range f.Machines {
		f.checkDeployments(t, machine, third, "")
		f.checkSucceeded(t, machine, third)
	}
	must(t, f.UntilWhole(ctx, webWork))
	f.checkWritten(t, ostreeLog, m, secondImage, brokenImage, thirdImage)
	f.checkWritten(t, ostreeLog, other, secondImage, thirdImage)
	f.checkBoots(t, m, "2026.1 2026.2 2026.3 2026.3 2026.2 2026.4")
	f.checkBoots(t, other, "2026.1 2026.2 2026.4")
	f.checkEnd(t, map[*Machine]int{m: 5, other: 2}, "haulout-update", "ostree-finalize-staged")
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
