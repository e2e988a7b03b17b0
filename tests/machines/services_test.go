package machines

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The package of these tests has a library. These services map it: libraryUser; the agent; logind, which needrestart
// does not restart by its own configuration; a helper process beside the kubelet, which ends with it; and one beside
// containerd, which outlives it as a shim does.
const fleetLibrary, libraryFile = "fleet-library", "/usr/lib/fleet-library/libfleet.so.1"

const libraryUser = "library-user"

// The end of libraryUser creates the file stopBegun and is not over before stopGoesOn exists.
const stopBegun, stopGoesOn = "/run/library-user.begun", "/run/library-user.goes-on"

const mapsLibrary = "[Service]\nEnvironment=LD_PRELOAD=" + libraryFile + "\n"

const libraryUserUnit = mapsLibrary + `ExecStart=sleep infinity
ExecStop=sh -c 'touch ` + stopBegun + `; until [ -e ` + stopGoesOn + ` ]; do sleep 0.1; done'
[Install]
WantedBy=multi-user.target
`

const helperMapsLibrary = "[Service]\nExecStartPost=sh -c 'LD_PRELOAD=" + libraryFile + " sleep infinity &'\n"

// services are the units whose processes map the library, with the lines that each gets. needrestart restarts all but
// logind.
var services = map[string]string{
	"haulout":        mapsLibrary,
	"systemd-logind": mapsLibrary,
	"kubelet":        helperMapsLibrary + "KillMode=control-group\n",
	"containerd":     helperMapsLibrary,
}

var restarted = []string{libraryUser, "haulout", "kubelet", "containerd"}

// libraryPackage returns the package with the library of that version: a copy of a library of Debian that has no code,
// with the version behind it.
func libraryPackage(t *testing.T, version string) Offered {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(needs.Build, "base/usr/lib/*/libutil.so.1"))
	must(t, err)
	if len(found) != 1 {
		t.Fatalf("the base file system has %d copies of libutil.so.1", len(found))
	}
	library, err := os.ReadFile(found[0])
	must(t, err)
	return Offered{Name: fleetLibrary, Version: version,
		Files: map[string]string{libraryFile: string(library) + "version " + version + "\n"}}
}

// useLibrary makes the services of a machine map the library, and starts libraryUser.
func useLibrary(ctx context.Context, m *Machine) error {
	all := m.Write("/etc/systemd/system/"+libraryUser+".service", libraryUserUnit)
	words := []string{"systemctl", "restart", libraryUser}
	for unit, lines := range services {
		all = errors.Join(all, m.Write("/etc/systemd/system/"+unit+".service.d/library.conf", lines))
		words = append(words, unit)
	}
	for _, command := range [][]string{{"systemctl", "daemon-reload"}, {"systemctl", "enable", "-q", libraryUser}, words} {
		_, err := m.Run(ctx, command...)
		all = errors.Join(all, err)
	}
	return all
}

// mapped returns how many processes of the machine map the library, and how many of them map a file that was replaced.
func mapped(t *testing.T, m *Machine) (all, replaced int) {
	t.Helper()
	text, err := m.Shell(t.Context(), `for maps in /proc/[0-9]*/maps; do grep -m1 '`+libraryFile+`' "$maps" 2>/dev/null; done; true`)
	must(t, err)
	for line := range strings.Lines(text) {
		all++
		if strings.HasSuffix(strings.TrimSpace(line), "(deleted)") {
			replaced++
		}
	}
	return all, replaced
}

// oldServices returns which services use replaced files, as needrestart says.
func oldServices(t *testing.T, m *Machine) []string {
	t.Helper()
	text, err := m.Run(t.Context(), "needrestart", "-b", "-l")
	must(t, err)
	var names []string
	for line := range strings.Lines(text) {
		if name, is := strings.CutPrefix(line, "NEEDRESTART-SVC: "); is {
			names = append(names, strings.TrimSpace(name))
		}
	}
	slices.Sort(names)
	return names
}

func mainPIDs(t *testing.T, m *Machine, units ...string) map[string]string {
	t.Helper()
	pids := map[string]string{}
	for _, unit := range units {
		pids[unit] = mainPID(t, m, unit)
	}
	return pids
}

// An upgrade replaces a library and asks for no reboot. needrestart restarts the services that map the old file, while
// the node is drained: a service of the test, the agent itself, the kubelet and containerd. logind and the process that
// outlives containerd keep the old file, and the agent names both services. With update-services: reboot, the next
// upgrade reboots the machine for them.
func TestServicesRestart(t *testing.T) {
	notInCore(t)
	f := NewFleet(t, needs, 2)
	m, ctx := f.Machines[0], t.Context()
	must(t, f.InstallAll(ctx, ""))
	_, err := m.Run(ctx, "apt-get", "install", "-q", "-y", "--no-install-recommends", "needrestart")
	must(t, err)
	f.Line.Note(m.Name, "has needrestart")
	repository, err := NewRepository(t)
	must(t, err)
	must(t, repository.Offer(libraryPackage(t, "1")))
	must(t, m.UseRepository(ctx, repository, fleetLibrary))
	must(t, useLibrary(ctx, m))
	must(t, f.UntilReady(ctx))
	if all, replaced := mapped(t, m); all < len(services)+1 || replaced != 0 {
		t.Fatalf("%d processes map the library, %d of them a replaced file", all, replaced)
	}
	if old := oldServices(t, m); len(old) != 0 {
		t.Fatalf("before the upgrade, needrestart says that these services use replaced files: %v", old)
	}
	must(t, f.Deploy(ctx, webWork))
	f.Witness.AtOnce(1)
	f.Witness.ForbidHalf()
	must(t, f.WatchInstallations())
	boot, err := m.BootID(ctx)
	must(t, err)

	must(t, repository.Offer(libraryPackage(t, "2")))
	f.Line.Note("archive", "offers version 2")
	must(t, f.Configure(ctx, m, "update: after-drain\n"))
	must(t, f.UntilActive(ctx, m, "haulout"))
	before := mainPIDs(t, m, append(restarted, "systemd-logind")...)
	must(t, f.Until(ctx, updateLimit, libraryUser+" is being stopped", func() (bool, error) {
		_, err := m.Run(ctx, "test", "-e", stopBegun)
		return err == nil, err
	}))
	f.Line.Note(m.Name, "needrestart restarts services")
	f.keepViews(t, m)
	must(t, f.Until(ctx, updateLimit, "the agent was restarted", func() (bool, error) {
		now := mainPID(t, m, "haulout")
		return now != before["haulout"] && now != "0", nil
	}))
	must(t, f.UntilActive(ctx, m, "haulout"))
	f.Line.Note(m.Name, "the agent was restarted among them")
	node, pods := f.Witness.Node(m.Name), f.Witness.PodsOn(m.Name)
	if node.Labels[stateLabel] != "updating" || !node.Spec.Unschedulable || len(pods) != 0 {
		t.Errorf("services are restarted while %s is %s, unschedulable %v, with %d pods", m.Name, node.Labels[stateLabel],
			node.Spec.Unschedulable, len(pods))
	}
	_, err = m.Run(ctx, "touch", stopGoesOn)
	must(t, err)
	must(t, f.UntilUpdated(ctx, m, "2", fleetLibrary))
	must(t, f.UntilWhole(ctx, webWork))

	after := mainPIDs(t, m, append(restarted, "systemd-logind")...)
	for unit, pid := range after {
		if (pid != before[unit]) != slices.Contains(restarted, unit) {
			t.Errorf("the main process of %s was %s before the upgrade and is %s after it", unit, before[unit], pid)
		}
	}
	// Left are logind, and the process beside containerd.
	if all, replaced := mapped(t, m); all < len(services)+1 || replaced != 2 {
		t.Errorf("%d processes map the library, %d of them a replaced file", all, replaced)
	}
	left := []string{"containerd.service", "systemd-logind.service"}
	if old := oldServices(t, m); !slices.Equal(old, left) {
		t.Errorf("needrestart says that these services use replaced files: %v", old)
	}
	must(t, f.untilNamed(ctx, left))
	now, err := m.BootID(ctx)
	must(t, err)
	if now != boot || f.Reboots(m.Name) != 0 || f.Witness.Uncordoned(m.Name) != 1 {
		t.Errorf("%s has rebooted %d times, from boot %s to %s, and was uncordoned %d times", m.Name, f.Reboots(m.Name), boot,
			now, f.Witness.Uncordoned(m.Name))
	}
	f.checkStates(t, m, "draining", "updating", "verifying", "idle")
	f.checkHidden(t, m, 0)
	text, err := m.Run(ctx, "journalctl", "--no-pager", "-u", "haulout-update")
	f.keep(t, m.Name+": journalctl -u haulout-update", text, err)

	must(t, repository.Offer(libraryPackage(t, "3")))
	f.Line.Note("archive", "offers version 3")
	must(t, f.Configure(ctx, m, "update: after-drain\nupdate-services: reboot\n"))
	_, err = f.UntilBackInService(ctx, updateLimit, m, boot)
	must(t, err)
	must(t, f.UntilUpdated(ctx, m, "3", fleetLibrary))
	must(t, f.UntilWhole(ctx, webWork))
	if old := oldServices(t, m); len(old) != 0 || f.Reboots(m.Name) != 1 || f.Witness.Uncordoned(m.Name) != 2 {
		t.Errorf("%s has rebooted %d times and was uncordoned %d times; these services use replaced files: %v", m.Name,
			f.Reboots(m.Name), f.Witness.Uncordoned(m.Name), old)
	}
	f.checkPromises(t, webWork)
	f.checkNoSlots(t)
}

// untilNamed waits until an Event names these services, and no others, as those that were not restarted.
func (f *Fleet) untilNamed(ctx context.Context, services []string) error {
	return f.Until(ctx, updateLimit, "an Event names the services that were not restarted", func() (bool, error) {
		events, err := f.Client.EventsV1().Events("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, event := range events.Items {
			if event.Reason == "ServicesNotRestarted" {
				named, _, _ := strings.Cut(event.Note, " still ")
				return named == strings.Join(services, ", "), fmt.Errorf("%s", event.Note)
			}
		}
		return false, fmt.Errorf("there is no such Event")
	})
}
