package machines

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Versions of the machines' operating system.
const (
	firstImage  = "2026.1" // of the factory
	secondImage = "2026.2"
	brokenImage = "2026.3" // does not boot
	thirdImage  = "2026.4"
)

const (
	failedLabel = "haulout.dev/failed-version"
	messageNote = "haulout.dev/message"
)

// imageTool is a tool that writes images, as the machines have it.
type imageTool struct {
	name   string // of its program
	log    string // has the begin and the end of each installation (see WatchWrites)
	hold   string // while this file exists, the tool does not go on to write
	begins string // in the log when the tool has begun to install secondImage
}

// allBoots returns the boot id of each machine.
func (f *Fleet) allBoots(t *testing.T) map[string]string {
	t.Helper()
	boots := map[string]string{}
	for _, machine := range f.Machines {
		boot, err := machine.BootID(t.Context())
		must(t, err)
		boots[machine.Name] = boot
	}
	return boots
}

// untilAllBack waits until each machine runs another boot than that in `boots`, and is back in service.
func (f *Fleet) untilAllBack(t *testing.T, boots map[string]string) {
	t.Helper()
	for _, machine := range f.Machines {
		_, err := f.UntilBackInService(t.Context(), 2*updateLimit, machine, boots[machine.Name])
		must(t, err)
	}
}

// checkOffered checks that each agent knows the update, waits because updates are paused, and has written nothing.
func (f *Fleet) checkOffered(t *testing.T, tool imageTool, update string) {
	t.Helper()
	for _, machine := range f.Machines {
		must(t, f.UntilReason(t.Context(), time.Minute, machine.Name, "Paused"))
		text := f.person(t, machine, "explain", machine.Name)
		f.keep(t, "haulout explain "+machine.Name, text, nil)
		if !strings.Contains(text, update) {
			t.Errorf("haulout explain %s: %s", machine.Name, text)
		}
		f.checkWritten(t, tool.log, machine)
	}
}

// writeUnderPods ends the pause, and holds the tool on each machine after it has begun and before it writes: nothing has
// happened to nodes and pods. Then the tool may write.
func (f *Fleet) writeUnderPods(t *testing.T, tool imageTool, update string) {
	t.Helper()
	ctx, m := t.Context(), f.Machines[0]
	must(t, f.onAll(func(m *Machine) error { return m.Write(tool.hold, "") }))
	f.person(t, m, "resume", "--all")
	f.Line.Note("fleet", "the pause is over")
	for _, machine := range f.Machines {
		must(t, f.Until(ctx, updateLimit, tool.name+" on "+machine.Name+" has begun", func() (bool, error) {
			log, err := machine.Run(ctx, "cat", tool.log)
			return strings.Contains(log, tool.begins), err
		}))
		must(t, f.UntilReason(ctx, time.Minute, machine.Name, "ApplyingUpdate"))
		node, pods := f.Witness.Node(machine.Name), f.Witness.PodsOn(machine.Name)
		if node.Labels[stateLabel] != "pending" || node.Spec.Unschedulable || len(pods) == 0 ||
			slices.ContainsFunc(pods, terminating) || !strings.Contains(node.Annotations[messageNote], update) {
			t.Errorf("%s while %s writes: state %s, unschedulable %v, %d pods, %s", machine.Name, tool.name,
				node.Labels[stateLabel], node.Spec.Unschedulable, len(pods), node.Annotations[messageNote])
		}
		f.checkWritten(t, tool.log, machine)
	}
	f.checkNoSlots(t)
	f.keepViews(t, m)
	must(t, f.onAll(func(m *Machine) error {
		_, err := m.Run(ctx, "rm", tool.hold)
		return err
	}))
	f.Line.Note("fleet", "%s may write", tool.name)
}

// checkEnd checks how often each machine has rebooted, and that the fleet is in service, and keeps the journals of the
// units.
func (f *Fleet) checkEnd(t *testing.T, reboots map[*Machine]int, units ...string) {
	t.Helper()
	for machine, wanted := range reboots {
		if got := f.Reboots(machine.Name); got != wanted || f.Witness.Node(machine.Name).Spec.Unschedulable {
			t.Errorf("%s has rebooted %d times, and not %d", machine.Name, got, wanted)
		}
	}
	f.checkPromises(t, webWork)
	f.checkNoSlots(t)
	for _, machine := range f.Machines {
		for _, unit := range units {
			text, err := machine.Run(t.Context(), "journalctl", "--no-pager", "-u", unit)
			f.keep(t, machine.Name+": journalctl -u "+unit, text, err)
		}
	}
}

// checkSystem checks that the kubelet reports this version of the system. It reads os-release, which the booted image
// has brought.
func (f *Fleet) checkSystem(t *testing.T, m *Machine, version string) {
	t.Helper()
	must(t, f.Until(t.Context(), time.Minute, "the kubelet of "+m.Name+" reports "+version, func() (bool, error) {
		system := f.Witness.Node(m.Name).Status.NodeInfo.OSImage
		return system == systemName+" "+version, fmt.Errorf("it reports %s", system)
	}))
	f.Line.Note(m.Name, "runs version %s", version)
}

// checkWritten checks which versions were written on this machine, according to this log.
func (f *Fleet) checkWritten(t *testing.T, log string, m *Machine, versions ...string) {
	t.Helper()
	written, err := m.Written(t.Context(), log)
	must(t, err)
	if !slices.Equal(written, versions) {
		t.Errorf("the versions %v were written on %s, and not %v", written, m.Name, versions)
	}
}

// checkBoots checks what the played boot loader of this machine has tried to boot.
func (f *Fleet) checkBoots(t *testing.T, m *Machine, images string) {
	t.Helper()
	booted, err := m.TriedBoots(t.Context())
	must(t, err)
	if booted != images {
		t.Errorf("%s has booted %s, and not %s", m.Name, booted, images)
	}
}

// pastRecord is the part of the record about what has ended.
type pastRecord struct {
	Reboots []struct {
		Target string `json:"target"`
	} `json:"reboots"`
	Attempts []struct {
		Reason string `json:"reason"`
		Why    string `json:"why"`
	} `json:"attempts"`
	BadTargets     []string `json:"badTargets"`
	FailedVersions []string `json:"failedVersions"`
}

func readRecord(t *testing.T, node *corev1.Node) (record pastRecord) {
	t.Helper()
	must(t, json.Unmarshal([]byte(node.Annotations["haulout.dev/record"]), &record))
	return record
}

// checkSucceeded checks that the record shows an update to this version as the last one.
func (f *Fleet) checkSucceeded(t *testing.T, m *Machine, version string) {
	t.Helper()
	record := readRecord(t, f.Witness.Node(m.Name))
	if len(record.Attempts) == 0 || len(record.Reboots) == 0 ||
		record.Attempts[len(record.Attempts)-1].Reason != "Updated" ||
		record.Attempts[len(record.Attempts)-1].Why != "version "+version+" runs" ||
		record.Reboots[len(record.Reboots)-1].Target != version {
		t.Errorf("%s: the record does not show version %s: %+v", m.Name, version, record)
	}
}

// checkRolledBack checks that this version has failed on the machine's node, which is cordoned and without pods. `label`
// is how the label of the Node names the version.
func (f *Fleet) checkRolledBack(t *testing.T, m *Machine, version, label string) {
	t.Helper()
	f.keepViews(t, m)
	node, err := f.Client.CoreV1().Nodes().Get(t.Context(), m.Name, metav1.GetOptions{})
	must(t, err)
	record := readRecord(t, node)
	if node.Labels[reasonLabel] != "RolledBack" || node.Labels[failedLabel] != label || !node.Spec.Unschedulable ||
		!slices.Equal(record.BadTargets, []string{version}) || len(f.Witness.PodsOn(m.Name)) != 0 {
		t.Errorf("%s: labels %v, unschedulable %v, %d pods, record %+v", m.Name, node.Labels, node.Spec.Unschedulable,
			len(f.Witness.PodsOn(m.Name)), record)
	}
}
