package machines

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The packages of these tests, in this order: one without scripts, one whose configuration takes a while, one with a
// configuration file, and one that demands a reboot when it is upgraded.
const fleetTool, fleetIndex, fleetSettings, fleetKernel = "fleet-tool", "fleet-index", "fleet-settings", "fleet-kernel"

// configuring is how long the postinst script of fleetIndex runs.
const configuring = 2 * time.Second

// surely is the time for which the witness must see fleetIndex half-installed. It is shorter than `configuring`, because
// lines of dpkg's log may be read late on a host that does other work.
const surely = configuring / 2

func fleetPackages(version string) []Offered {
	return []Offered{
		{Name: fleetTool, Version: version},
		{Name: fleetIndex, Version: version, Postinst: fmt.Sprintf("sleep %g", configuring.Seconds())},
		{Name: fleetSettings, Version: version, Conffile: settingsText(version)},
		{Name: fleetKernel, Version: version, Postinst: `[ -z "$2" ] || { touch /run/reboot-required; echo ` + fleetKernel +
			` >>/run/reboot-required.pkgs; }`},
	}
}

func settingsText(version string) string { return "from version " + version + "\n" }

const ownSettingsFile, ownSettingsText = "/etc/" + fleetSettings + ".conf", "changed by a person\n"

var webWork = Work{App: "web", Replicas: 4, Promised: 3, Lingers: time.Second, Grace: 30}

// onAll calls `do` for all machines at the same time, and returns when all calls have ended.
func (f *Fleet) onAll(do func(*Machine) error) error {
	problems := make(chan error, len(f.Machines))
	for _, machine := range f.Machines {
		go func() { problems <- do(machine) }()
	}
	var all error
	for range f.Machines {
		all = errors.Join(all, <-problems)
	}
	return all
}

// Configure adds these lines to the default configuration of a machine's agent, and restarts the agent. Lines of former
// calls are lost.
func (f *Fleet) Configure(ctx context.Context, m *Machine, more string) error {
	if err := m.Write("/etc/haulout/config.yaml", agentConfig(m.Name)+more); err != nil {
		return err
	}
	_, err := m.Run(ctx, "systemctl", "restart", "haulout")
	f.Line.Note(m.Name, "the agent's configuration has %s", strings.ReplaceAll(strings.TrimSpace(more), "\n", ", "))
	return err
}

// publish offers `packages` in a new repository, which all machines use from then on, and installs `installed` of them.
func (f *Fleet) publish(t *testing.T, packages []Offered, installed ...string) *Repository {
	t.Helper()
	repository, err := NewRepository(t)
	must(t, err)
	must(t, repository.Offer(packages...))
	must(t, f.onAll(func(m *Machine) error { return m.UseRepository(t.Context(), repository, installed...) }))
	f.Line.Note("archive", "all machines have %s", strings.Join(installed, ", "))
	return repository
}

// UntilUpdated waits until a machine has this version of its packages, and its node is back in service.
func (f *Fleet) UntilUpdated(ctx context.Context, m *Machine, version string, packages ...string) error {
	return f.Until(ctx, updateLimit, m.Name+" has version "+version+" and is back in service", func() (bool, error) {
		node := f.Witness.Node(m.Name)
		if node.Labels[stateLabel] != "idle" || !nodeReady(node) || node.Spec.Unschedulable {
			return false, fmt.Errorf("state %s %s, Ready %v, unschedulable %v", node.Labels[stateLabel],
				node.Labels[reasonLabel], nodeReady(node), node.Spec.Unschedulable)
		}
		lines, wrong, err := m.Installed(ctx, packages...)
		if err != nil {
			return false, err
		}
		for _, line := range lines {
			if !strings.HasSuffix(line, " "+version+" installed") {
				return false, fmt.Errorf("%s", line)
			}
		}
		return wrong == "", fmt.Errorf("dpkg --audit: %s", wrong)
	})
}

// checkHidden checks that packages were half-installed on the machine for `atLeast` or longer, but never while pods were
// on it.
func (f *Fleet) checkHidden(t *testing.T, m *Machine, atLeast time.Duration) {
	t.Helper()
	seen := f.Witness.Installation(m.Name)
	f.Line.Note(m.Name, "half-installed packages for %.2f s, of that %.2f s under pods", seen.Half.Seconds(),
		seen.Exposed.Seconds())
	if seen.Half < atLeast || seen.Exposed != 0 {
		t.Errorf("%s had half-installed packages for %v, of that %v under pods", m.Name, seen.Half, seen.Exposed)
	}
}

// checkStates checks that the node was in these states in this order. There may have been other states between them.
func (f *Fleet) checkStates(t *testing.T, m *Machine, wanted ...string) {
	t.Helper()
	states := f.Witness.States(m.Name)
	rest := states
	for _, want := range wanted {
		at := slices.Index(rest, want)
		if at < 0 {
			t.Errorf("%s went through %v, and not %v", m.Name, states, wanted)
			return
		}
		rest = rest[at+1:]
	}
}

// keep appends the output of a command to a file beside the time line, from which the documents quote.
func (f *Fleet) keep(t *testing.T, what, text string, err error) {
	t.Helper()
	must(t, err)
	file, err := os.OpenFile(storyFile(t, f.needs, "outputs"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	must(t, err)
	defer file.Close()
	_, err = fmt.Fprintf(file, "%s  $ %s\n%s\n", time.Now().UTC().Format(time.TimeOnly), what, text)
	must(t, err)
}

// person runs a command of Haulout in the machine as a person who administers the cluster, and returns its output.
func (f *Fleet) person(t *testing.T, m *Machine, words ...string) string {
	t.Helper()
	identity, err := f.CA.Client("machines-admin", "system:masters")
	must(t, err)
	kubeconfig, err := writeAccess(f.AccessFrom(controlPlaneAddress, identity))
	must(t, err)
	const admin = "/root/admin.conf"
	must(t, m.WriteSecret(admin, kubeconfig))
	text, err := m.Run(t.Context(), slices.Concat([]string{"haulout"}, words, []string{"--kubeconfig", admin})...)
	must(t, err)
	return text
}

// keepViews runs the commands by which a person looks at the fleet, and keeps their output.
func (f *Fleet) keepViews(t *testing.T, m *Machine) {
	t.Helper()
	for _, words := range [][]string{{"status"}, {"explain", m.Name}} {
		f.keep(t, "haulout "+strings.Join(words, " "), f.person(t, m, words...), nil)
	}
	text, err := f.Kubectl(t.Context(), "", "get", "nodes", "-L", stateLabel+","+reasonLabel)
	f.keep(t, "kubectl get nodes -L "+stateLabel+","+reasonLabel, text, err)
}

// Package updates are available on two machines. One machine after the other is drained, and its updates are installed
// only then: no package is half-installed while a pod is on the machine. A configuration file that a person has changed
// stays. Only the machine on which a package demands a reboot reboots.
func TestUpdateAfterDrain(t *testing.T) {
	f := NewFleet(t, needs, 2)
	ctx := t.Context()
	must(t, f.InstallAll(ctx, ""))
	common := []string{fleetTool, fleetIndex, fleetSettings}
	repository := f.publish(t, fleetPackages("1"), common...)
	stays, reboots := f.Machines[0], f.Machines[1]
	_, err := reboots.Run(ctx, "apt-get", "install", "-q", "-y", fleetKernel)
	must(t, err)
	must(t, f.onAll(func(m *Machine) error { return m.Write(ownSettingsFile, ownSettingsText) }))
	boots := map[string]string{}
	for _, machine := range f.Machines {
		boots[machine.Name], err = machine.BootID(ctx)
		must(t, err)
	}
	must(t, f.Deploy(ctx, webWork))
	f.Witness.AtOnce(1)
	f.Witness.ForbidHalf()
	must(t, f.WatchInstallations())

	must(t, repository.Offer(fleetPackages("2")...))
	f.Line.Note("archive", "offers version 2")
	must(t, f.onAll(func(m *Machine) error { return f.Configure(ctx, m, "update: after-drain\n") }))
	must(t, f.UntilUpdated(ctx, stays, "2", common...))
	must(t, f.UntilUpdated(ctx, reboots, "2", append(common, fleetKernel)...))
	must(t, f.UntilWhole(ctx, webWork))

	for machine, wanted := range map[*Machine]int{stays: 0, reboots: 1} {
		boot, err := machine.BootID(ctx)
		must(t, err)
		if got := f.Reboots(machine.Name); got != wanted || (boot != boots[machine.Name]) != (wanted == 1) {
			t.Errorf("%s has rebooted %d times, from boot %s to %s", machine.Name, got, boots[machine.Name], boot)
		}
		if times := f.Witness.Uncordoned(machine.Name); times != 1 {
			t.Errorf("%s was uncordoned %d times", machine.Name, times)
		}
		settings, err := machine.Run(ctx, "cat", ownSettingsFile)
		must(t, err)
		offered, err := machine.Run(ctx, "cat", ownSettingsFile+".dpkg-dist")
		must(t, err)
		if settings != ownSettingsText || offered != settingsText("2") {
			t.Errorf("%s: the configuration file is %q, and %q lies beside it", machine.Name, settings, offered)
		}
		f.checkHidden(t, machine, surely)
	}
	f.checkStates(t, stays, "draining", "updating", "verifying", "idle")
	f.checkStates(t, reboots, "draining", "updating", "rebooting", "verifying", "idle")
	f.checkPromises(t, webWork)
	f.checkNoSlots(t)
	for _, machine := range f.Machines {
		text, err := machine.Run(ctx, "journalctl", "--no-pager", "-u", "haulout-update")
		f.keep(t, machine.Name+": journalctl -u haulout-update", text, err)
		text, err = machine.Run(ctx, "journalctl", "--no-pager", "-u", "haulout")
		f.keep(t, machine.Name+": journalctl -u haulout", text, err)
	}
}

// The installation of version 2 of fleetHeld creates the file heldBegun and does not end before heldGoesOn exists.
const fleetHeld, heldBegun, heldGoesOn = "fleet-held", "/run/fleet-held.begun", "/run/fleet-held.goes-on"

// The agent is killed in the middle of an installation. The installation continues without the agent, and the next agent
// waits for its end. The node stays cordoned and without pods until then.
func TestAgentKilledInInstallation(t *testing.T) {
	notInCore(t)
	f := NewFleet(t, needs, 2)
	m, ctx := f.Machines[0], t.Context()
	must(t, f.InstallAll(ctx, ""))
	repository := f.publish(t, []Offered{{Name: fleetHeld, Version: "1"}}, fleetHeld)
	must(t, f.Deploy(ctx, webWork))
	f.Witness.AtOnce(1)
	f.Witness.ForbidHalf()
	must(t, f.WatchInstallations())
	hold := "touch " + heldBegun + "\nuntil [ -e " + heldGoesOn + " ]; do sleep 0.1; done"
	must(t, repository.Offer(Offered{Name: fleetHeld, Version: "2", Postinst: hold}))
	const config = "update: after-drain\n"
	must(t, m.Write("/etc/haulout/config.yaml", agentConfig(m.Name)+config))
	_, err := m.Run(ctx, "apt-get", "update")
	must(t, err)
	check, err := m.Run(ctx, "haulout-as-service", "--check")
	f.keep(t, "haulout-as-service --check", check, err)
	must(t, f.Configure(ctx, m, config))
	must(t, f.Until(ctx, updateLimit, "the package is being configured", func() (bool, error) {
		_, err := m.Run(ctx, "test", "-e", heldBegun)
		return err == nil, err
	}))
	f.keepViews(t, m)

	f.killAgent(t, m)
	must(t, f.UntilActive(ctx, m, "haulout"))
	f.Line.Note(m.Name, "the next agent runs")
	node, pods := f.Witness.Node(m.Name), f.Witness.PodsOn(m.Name)
	if node.Labels[stateLabel] != "updating" || !node.Spec.Unschedulable || len(pods) != 0 {
		t.Errorf("%s is %s, unschedulable %v, has %d pods", m.Name, node.Labels[stateLabel], node.Spec.Unschedulable, len(pods))
	}
	f.keepViews(t, m)
	_, err = m.Run(ctx, "touch", heldGoesOn)
	must(t, err)
	f.Line.Note(m.Name, "the package may be configured")
	must(t, f.UntilUpdated(ctx, m, "2", fleetHeld))
	must(t, f.UntilWhole(ctx, webWork))
	times, err := m.Run(ctx, "grep", "-c", "upgrade "+fleetHeld, "/var/log/dpkg.log")
	must(t, err)
	if strings.TrimSpace(times) != "1" || f.Reboots(m.Name) != 0 || f.Witness.Uncordoned(m.Name) != 1 {
		t.Errorf("%s was installed %s times, the machine has rebooted %d times and was uncordoned %d times", fleetHeld,
			strings.TrimSpace(times), f.Reboots(m.Name), f.Witness.Uncordoned(m.Name))
	}
	f.checkHidden(t, m, 0)
	f.checkPromises(t, webWork)
	f.checkNoSlots(t)
}

// The configuration of version 2 of fleetBroken fails unless the file `repaired` exists.
const fleetBroken, repaired = "fleet-broken", "/etc/fleet-broken.repaired"

// A package cannot be installed. The agent tries a second time. Then the node is degraded and keeps its slot, so the
// other machine is not touched. When a person has repaired both machines, the agents update both.
func TestPackageFails(t *testing.T) {
	notInCore(t)
	f := NewFleet(t, needs, 2)
	ctx := t.Context()
	must(t, f.InstallAll(ctx, ""))
	repository := f.publish(t, []Offered{{Name: fleetBroken, Version: "1"}}, fleetBroken)
	must(t, f.Deploy(ctx, webWork))
	f.Witness.AtOnce(1)
	must(t, f.WatchInstallations())
	must(t, repository.Offer(Offered{Name: fleetBroken, Version: "2",
		Postinst: "[ -e " + repaired + " ] || { echo " + repaired + " is missing >&2; exit 1; }"}))
	m, other := f.Machines[0], f.Machines[1]
	const config = "update: after-drain\nupdate-attempts: 2\nbackoff: 1s\n"
	must(t, f.Configure(ctx, m, config))
	must(t, f.UntilState(ctx, updateLimit, m.Name, "degraded"))
	if node := f.Witness.Node(m.Name); node.Labels[reasonLabel] != "UpdateFailed" {
		t.Errorf("%s is degraded because of %s", m.Name, node.Labels[reasonLabel])
	}
	f.checkStates(t, m, "updating", "pending", "updating", "degraded")
	must(t, f.Configure(ctx, other, config))
	must(t, f.UntilReason(ctx, updateLimit, other.Name, "WaitingForSlot"))
	f.checkHolder(t, m)
	f.keepViews(t, m)
	text, err := m.Run(ctx, "journalctl", "--no-pager", "-u", "haulout-update")
	f.keep(t, "journalctl -u haulout-update", text, err)

	must(t, f.onAll(func(m *Machine) error { return m.Write(repaired, "") }))
	_, err = m.Run(ctx, "dpkg", "--configure", "-a")
	must(t, err)
	// The agent looks for updates every half hour, and when it starts.
	_, err = m.Run(ctx, "systemctl", "restart", "haulout")
	must(t, err)
	f.Line.Note(m.Name, "repaired by hand")
	if states := f.Witness.States(other.Name); slices.Contains(states, "draining") {
		t.Errorf("%s went through %v while %s was degraded", other.Name, states, m.Name)
	}
	must(t, f.UntilUpdated(ctx, m, "2", fleetBroken))
	must(t, f.UntilUpdated(ctx, other, "2", fleetBroken))
	must(t, f.UntilWhole(ctx, webWork))
	f.checkStates(t, other, "waiting", "draining", "updating", "idle")
	f.checkHidden(t, other, 0)
	f.checkPromises(t, webWork)
	f.checkNoSlots(t)
}

// checkHolder checks that this machine's node has a slot and that no other node has one.
func (f *Fleet) checkHolder(t *testing.T, m *Machine) {
	t.Helper()
	leases, err := f.Client.CoordinationV1().Leases("haulout").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, lease := range leases.Items {
		if lease.Spec.HolderIdentity == nil || !strings.Contains(*lease.Spec.HolderIdentity, m.Name) {
			t.Errorf("%s holds %s", *lease.Spec.HolderIdentity, lease.Name)
		}
	}
	if len(leases.Items) == 0 {
		t.Errorf("%s holds no slot", m.Name)
	}
}

// unattendedConfig is apt configuration with which unattended-upgrades installs the packages of the repository. The
// parameter switches it on ("1") or off ("0").
const unattendedConfig = `Unattended-Upgrade::Origins-Pattern { "origin=Machines"; };
APT::Periodic::Update-Package-Lists "1";
APT::Periodic::Unattended-Upgrade "%s";
`

// unattendedUpgrades are the units that the timers of apt start daily. The test starts them itself.
var unattendedUpgrades = []string{"apt-daily.service", "apt-daily-upgrade.service"}

// The same packages are installed on the same machines, first by unattended-upgrades and then, in a newer version, by the
// agents. The test counts how long packages are half-installed while pods are on the machine: with unattended-upgrades
// they are, with the agents never.
func TestBesideUnattendedUpgrades(t *testing.T) {
	notInCore(t)
	f := NewFleet(t, needs, 3)
	ctx := t.Context()
	must(t, f.InstallAll(ctx, ""))
	switchTo := func(m *Machine, on string) error {
		return m.Write("/etc/apt/apt.conf.d/99fleet", fmt.Sprintf(unattendedConfig, on))
	}
	must(t, f.onAll(func(m *Machine) error {
		_, err := m.Run(ctx, "apt-get", "install", "-q", "-y", "--no-install-recommends", "unattended-upgrades")
		return errors.Join(err, switchTo(m, "1"))
	}))
	f.Line.Note("archive", "all machines have unattended-upgrades")
	packages := []string{fleetTool, fleetIndex, fleetSettings}
	repository := f.publish(t, fleetPackages("1"), packages...)
	must(t, f.onAll(func(m *Machine) error { return m.Write(ownSettingsFile, ownSettingsText) }))
	must(t, f.Deploy(ctx, webWork))
	must(t, f.WatchInstallations())

	must(t, repository.Offer(fleetPackages("2")...))
	f.Line.Note("archive", "offers version 2")
	must(t, f.onAll(func(m *Machine) error {
		for _, unit := range unattendedUpgrades {
			if _, err := m.Run(ctx, "systemctl", "start", unit); err != nil {
				return err
			}
		}
		return nil
	}))
	var theirs, ours time.Duration
	for _, machine := range f.Machines {
		lines, wrong, err := machine.Installed(ctx, packages...)
		must(t, err)
		seen := f.Witness.Installation(machine.Name)
		theirs += seen.Exposed
		f.Line.Note(machine.Name, "unattended-upgrades: %s %s; half-installed packages for %.2f s, of that %.2f s under up to %d pods",
			strings.Join(lines, ", "), wrong, seen.Half.Seconds(), seen.Exposed.Seconds(), seen.Most)
		if !slices.Contains(lines, fleetIndex+" 2 installed") || seen.Exposed < surely {
			t.Errorf("%s has %v; half-installed packages for %v, of that %v under pods", machine.Name, lines, seen.Half, seen.Exposed)
		}
	}

	f.Witness.AtOnce(1)
	must(t, f.onAll(func(m *Machine) error { return switchTo(m, "0") }))
	must(t, repository.Offer(fleetPackages("3")...))
	f.Line.Note("archive", "offers version 3")
	f.Witness.CountAnew()
	f.Witness.ForbidHalf()
	must(t, f.onAll(func(m *Machine) error { return f.Configure(ctx, m, "update: after-drain\n") }))
	for _, machine := range f.Machines {
		must(t, f.UntilUpdated(ctx, machine, "3", packages...))
		f.checkHidden(t, machine, surely)
		ours += f.Witness.Installation(machine.Name).Exposed
	}
	must(t, f.UntilWhole(ctx, webWork))
	f.Line.Note("archive", "half-installed packages under pods: unattended-upgrades %.2f s, Haulout %.2f s", theirs.Seconds(),
		ours.Seconds())
	f.checkPromises(t, webWork)
	f.checkNoSlots(t)
}
