package machines

import (
	"testing"
	"time"
)

const (
	raucAgent      = "backend: rauc\nupdate: before-drain\nupdate-bundle: " + raucBundle + "\n"
	toSecondBundle = "rootfs.0 to " + secondImage + " (" + bundleDescription + ")"
)

var rauc = imageTool{name: "rauc", log: raucLog, hold: raucHold, begins: "begins to install " + secondImage}

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
	must(t, f.WatchWrites(rauc.name, rauc.log))
	for _, machine := range f.Machines {
		f.checkSlot(t, machine, "A", "", firstImage)
	}

	// The agents see the bundle, and install nothing while a gate is closed.
	boots := f.allBoots(t)
	f.person(t, m, "pause", "--all", "--reason", "a person looks first")
	second, err := builder.Bundle(ctx, secondImage, true)
	must(t, err)
	for _, machine := range f.Machines {
		must(t, f.Publish(ctx, machine, second, secondImage))
		must(t, f.Configure(ctx, machine, raucAgent))
	}
	f.checkOffered(t, rauc, toSecondBundle)
	f.writeUnderPods(t, rauc, toSecondBundle)

	f.untilAllBack(t, boots)
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
	boots = f.allBoots(t)
	for _, machine := range f.Machines {
		must(t, f.Publish(ctx, machine, third, thirdImage))
	}
	f.person(t, m, "request-reboot", m.Name)
	f.untilAllBack(t, boots)
	for _, machine := range f.Machines {
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
	f.checkEnd(t, map[*Machine]int{m: 5, other: 2}, "haulout-update", "rauc")
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
