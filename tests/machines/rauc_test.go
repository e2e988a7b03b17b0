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

const (
	raucAgent      = "backend: rauc\nupdate: before-drain\nupdate-bundle: " + raucBundle + "\n"
	failedLabel    = "haulout.dev/failed-version"
	messageNote    = "haulout.dev/message"
	firstImage     = "2026.1" // of the factory
	secondImage    = "2026.2"
	brokenImage    = "2026.3" // does not boot
	thirdImage     = "2026.4"
	toSecondBundle = "rootfs.0 to " + secondImage + " (" + bundleDescription + ")"
)

// Two machines with two slots each are updated by RAUC (see rauc.go). While pods run, and before any node is cordoned,
// RAUC writes the bundle to the slot that does not run; then one machine after the other is drained and boots the other
// slot. The next bundle does not boot: the boot loader falls back to the old slot, the node is degraded, and no machine
// installs that bundle again. A third bundle repairs the fleet.
func TestImageByRAUC(t *testing.T) {
	notInCore(t)
	ctx := t.Context()
	builder, err := NewBuilder(t, needs)
	must(t, err)
	f := NewFleet(t, needs, 2, func(m *Machine) error { return builder.MakeSlots(ctx, m, firstImage) })
	m, other := f.Machines[0], f.Machines[1]
	must(t, f.InstallAll(ctx, "backend: rauc\n"))
	must(t, f.Deploy(ctx, webWork))
	f.Witness.AtOnce(1)
	must(t, f.WatchWrites("rauc", raucLog))
	for _, machine := range f.Machines {
		f.checkSlot(t, machine, "A", "", firstImage)
	}

	// The agents see the bundle, and install nothing while a gate is closed.
	boots := map[string]string{}
	f.person(t, m, "pause", "--all", "--reason", "a person looks first")
	second, err := builder.Bundle(ctx, secondImage, true)
	must(t, err)
	for _, machine := range f.Machines {
		boots[machine.Name], err = machine.BootID(ctx)
		must(t, err)
		must(t, f.Publish(ctx, machine, second, secondImage))
		must(t, f.Configure(ctx, machine, raucAgent))
	}
	for _, machine := range f.Machines {
		must(t, f.UntilReason(ctx, time.Minute, machine.Name, "Paused"))
		text := f.person(t, machine, "explain", machine.Name)
		f.keep(t, "haulout explain "+machine.Name, text, nil)
		if !strings.Contains(text, toSecondBundle) {
			t.Errorf("haulout explain %s: %s", machine.Name, text)
		}
		f.checkWritten(t, raucLog, machine)
	}

	// RAUC begins, and is held before it writes: nothing has happened to nodes and pods.
	must(t, f.onAll(func(m *Machine) error { return m.Write(raucHold, "") }))
	f.person(t, m, "resume", "--all")
	f.Line.Note("fleet", "the pause is over")
	for _, machine := range f.Machines {
		must(t, f.Until(ctx, updateLimit, "rauc on "+machine.Name+" has begun", func() (bool, error) {
			log, err := machine.Run(ctx, "cat", raucLog)
			return strings.Contains(log, "begins to install "+secondImage), err
		}))
		must(t, f.UntilReason(ctx, time.Minute, machine.Name, "ApplyingUpdate"))
		node, pods := f.Witness.Node(machine.Name), f.Witness.PodsOn(machine.Name)
		if node.Labels[stateLabel] != "pending" || node.Spec.Unschedulable || len(pods) == 0 ||
			slices.ContainsFunc(pods, terminating) || !strings.Contains(node.Annotations[messageNote], toSecondBundle) {
			t.Errorf("%s while rauc writes: state %s, unschedulable %v, %d pods, %s", machine.Name,
				node.Labels[stateLabel], node.Spec.Unschedulable, len(pods), node.Annotations[messageNote])
		}
		f.checkWritten(t, raucLog, machine)
	}
	f.checkNoSlots(t)
	f.keepViews(t, m)
	must(t, f.onAll(func(m *Machine) error {
		_, err := m.Run(ctx, "rm", raucHold)
		return err
	}))
	f.Line.Note("fleet", "rauc may write")

	for _, machine := range f.Machines {
		boots[machine.Name], err = f.UntilBackInService(ctx, 2*updateLimit, machine, boots[machine.Name])
		must(t, err)
	}
	must(t, f.UntilWhole(ctx, webWork))
	for _, machine := range f.Machines {
		f.checkOneUpdate(t, machine.Name)
		f.checkSlot(t, machine, "B", secondImage, secondImage)
		f.checkWritten(t, raucLog, machine, secondImage)
		f.checkSucceeded(t, machine, secondImage)
		f.checkBoots(t, machine, "A B")
	}
	f.checkNoSlots(t)

	// A bundle that does not boot.
	broken, err := builder.Bundle(ctx, brokenImage, false)
	must(t, err)
	must(t, f.Publish(ctx, m, broken, brokenImage))
	must(t, f.UntilState(ctx, updateLimit, m.Name, "degraded"))
	f.checkRolledBack(t, m, brokenImage, brokenImage)
	f.checkSlot(t, m, "B", secondImage, secondImage)
	f.checkWritten(t, raucLog, m, secondImage, brokenImage)
	f.checkBoots(t, m, "A B A A B")
	must(t, f.Publish(ctx, other, broken, brokenImage))
	must(t, f.UntilReason(ctx, time.Minute, other.Name, "VersionFailed"))
	f.keepViews(t, other)
	f.checkWritten(t, raucLog, other, secondImage)
	f.checkHolder(t, m)

	// A person withdraws the bundle for a better one, and lets the degraded node try that.
	third, err := builder.Bundle(ctx, thirdImage, true)
	must(t, err)
	for _, machine := range f.Machines {
		boots[machine.Name], err = machine.BootID(ctx)
		must(t, err)
		must(t, f.Publish(ctx, machine, third, thirdImage))
	}
	f.person(t, m, "request-reboot", m.Name)
	for _, machine := range f.Machines {
		boots[machine.Name], err = f.UntilBackInService(ctx, 2*updateLimit, machine, boots[machine.Name])
		must(t, err)
		f.checkSlot(t, machine, "A", thirdImage, thirdImage)
		f.checkSucceeded(t, machine, thirdImage)
	}
	must(t, f.UntilWhole(ctx, webWork))
	f.checkBoots(t, m, "A B A A B A")
	f.checkBoots(t, other, "A B A")

	// The broken bundle is offered again.
	must(t, f.onAll(func(m *Machine) error { return f.Publish(ctx, m, broken, brokenImage) }))
	must(t, f.UntilReason(ctx, time.Minute, m.Name, "RolledBack"))
	must(t, f.UntilReason(ctx, time.Minute, other.Name, "VersionFailed"))
	f.checkWritten(t, raucLog, m, secondImage, brokenImage, thirdImage)
	f.checkWritten(t, raucLog, other, secondImage, thirdImage)
	for machine, wanted := range map[*Machine]int{m: 5, other: 2} {
		if got := f.Reboots(machine.Name); got != wanted || f.Witness.Node(machine.Name).Spec.Unschedulable {
			t.Errorf("%s has rebooted %d times, and not %d", machine.Name, got, wanted)
		}
	}
	f.checkPromises(t, webWork)
	f.checkNoSlots(t)
	for _, machine := range f.Machines {
		for _, unit := range []string{"haulout-update", "rauc"} {
			text, err := machine.Run(ctx, "journalctl", "--no-pager", "-u", unit)
			f.keep(t, machine.Name+": journalctl -u "+unit, text, err)
		}
	}
}

// checkSlot checks that the machine runs this slot with this version: so says RAUC, and so says the kubelet, which reads
// os-release from the slot. `bundle` is the version that RAUC knows; empty if RAUC has not written the slot. The boot
// loader uses the slot again.
func (f *Fleet) checkSlot(t *testing.T, m *Machine, slot, bundle, version string) {
	t.Helper()
	status, text, err := m.Rauc(t.Context())
	f.keep(t, m.Name+": rauc status --detailed --output-format=json", text, err)
	name := map[string]string{"A": "rootfs.0", "B": "rootfs.1"}[slot]
	if status.Booted != slot || status.Primary != name || status.version(name) != bundle {
		t.Errorf("%s does not run slot %s with version %q: %s", m.Name, slot, bundle, text)
	}
	f.checkSystem(t, m, version)
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
