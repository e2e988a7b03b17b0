package machines

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// QEMU without KVM emulates the machine's processor, which is slow. These limits are long enough for a host that also
// does other work.
const (
	emulatedLimit = 15 * time.Minute
	updateOfQEMU  = 20 * time.Minute
)

const kernelPackage = "linux-image-cloud-amd64"

// The workload of the test. Its budget allows no eviction until the test calls Relax, after apt has ended. So the
// upgrade has ended before the machine reboots.
var beneathUpgrade = Work{App: "web", Replicas: 4, Promised: 4, Lingers: time.Second, Grace: 30}

// A machine boots a kernel of its own. apt upgrades Debian's kernel package, a hook of Debian writes
// /run/reboot-required, and the agent takes the node through a reboot, after which the new kernel runs: GRUB boots it,
// because update-grub has configured that.
func TestKernelUpgrade(t *testing.T) {
	f, q := virtualFleet(t, "", beneathUpgrade)
	ctx, boot, older := t.Context(), q.bootID(t), q.kernel(t)
	newer := f.upgradeKernel(t, q, older)
	f.spent(q, "the kernel package is upgraded")
	must(t, f.UntilState(ctx, emulatedLimit, q.Name, "draining"))
	must(t, f.Until(ctx, emulatedLimit, q.Name+" is cordoned", func() (bool, error) {
		return f.Witness.Node(q.Name).Spec.Unschedulable, nil
	}))
	if running := q.kernel(t); running != older {
		t.Fatalf("kernel %s runs before the reboot", running)
	}
	must(t, f.Relax(ctx, beneathUpgrade))

	now, err := f.untilBackInService(ctx, updateOfQEMU, q.Name, boot, q.BootID)
	must(t, err)
	f.spent(q, "back in service")
	running := q.kernel(t)
	f.Line.Note(q.Name, "kernel %s, boot %s, %d resets", running, now, q.Resets())
	if reported := f.Witness.Node(q.Name).Status.NodeInfo.KernelVersion; running != newer || reported != newer {
		t.Errorf("kernel %s runs and the kubelet reports %s; %s is the new one", running, reported, newer)
	}
	if q.Resets() == 0 {
		t.Error("neither firmware nor GRUB has started the new kernel")
	}
	if left, err := q.Shell(ctx, "ls /run/reboot-required* 2>/dev/null || true"); err != nil || left != "" {
		t.Errorf("after the reboot there is %s (%v)", left, err)
	}
	must(t, f.UntilWhole(ctx, beneathUpgrade))
	f.checkOneUpdate(t, q.Name)
	f.checkPromises(t, beneathUpgrade)
	f.checkNoSlots(t)
	f.Line.Note(q.Name, "states: %s", strings.Join(f.Witness.States(q.Name), " "))
	f.spent(q, "the end")
}

func onlyWithKernel(t *testing.T) {
	t.Helper()
	if os.Getenv("HAULOUT_KERNEL") == "" {
		t.Skip("only ./dev test --kernel, and ./dev soak")
	}
}

// virtualFleet returns a fleet of two nodes: a machine under QEMU, and one that exists only in the API, so that pods have
// a place to go. The machine has the agent with `more` as further lines of its configuration, and pods of `work`. The
// kubelets are simulated, but that of the machine reports the boot id and the kernel that the machine itself shows.
func virtualFleet(t *testing.T, more string, work Work) (*Fleet, *Virtual) {
	t.Helper()
	onlyWithKernel(t)
	q, ctx := newVirtual(t), t.Context()
	must(t, q.PowerOn())
	f := NewFleet(t, needs, 0)
	played, err := f.PlayKubelets(t, q.Name, "other")
	must(t, err)
	f.keepVirtualJournal(t, q)
	f.spent(q, "the rest of the fleet")
	must(t, q.UntilUp(ctx, emulatedLimit))
	f.spent(q, "up")
	boot, kernel := q.bootID(t), q.kernel(t)
	f.Line.Note(q.Name, "kernel %s, boot %s", kernel, boot)
	must(t, played.reportBoot(ctx, q))
	// The Node is Ready before the kubelet runs: it was created so.
	must(t, f.Until(ctx, emulatedLimit, q.Name+" is Ready in this boot", func() (bool, error) {
		node := f.Witness.Node(q.Name)
		if node == nil {
			return false, fmt.Errorf("there is no Node")
		}
		reported := node.Status.NodeInfo
		return reported.KernelVersion == kernel && reported.BootID == boot && nodeReady(node) && len(node.Spec.Taints) == 0,
			fmt.Errorf("kernel %s, boot %s, taints %v", reported.KernelVersion, reported.BootID, node.Spec.Taints)
	}))
	f.spent(q, "Ready")
	f.judgeDowns(t, q, func(ctx context.Context) error { return played.reportBoot(ctx, q) })

	must(t, f.AllowAgents(ctx))
	must(t, f.installOnVirtual(ctx, q, more))
	f.spent(q, "the agent is idle")
	must(t, f.Deploy(ctx, work))
	f.Witness.AtOnce(1)
	if len(f.Witness.PodsOn(q.Name)) == 0 {
		t.Fatalf("no pod is on %s", q.Name)
	}
	return f, q
}

// spent notes in the time line how much time has passed since the machine was turned on, and how much processor time it
// has used.
func (f *Fleet) spent(q *Virtual, what string) {
	f.Line.Note(q.Name, "after %.0f s (processors: %.0f s): %s", time.Since(q.on).Seconds(), q.CPU().Seconds(), what)
}

func (v *Virtual) bootID(t *testing.T) string {
	t.Helper()
	id, err := v.BootID(t.Context())
	must(t, err)
	return id
}

func (v *Virtual) kernel(t *testing.T) string {
	t.Helper()
	release, err := v.Kernel(t.Context())
	must(t, err)
	return release
}

// upgradeKernel upgrades Debian's kernel package with apt, and returns the release of the new kernel.
func (f *Fleet) upgradeKernel(t *testing.T, q *Virtual, older string) string {
	t.Helper()
	ctx := t.Context()
	versions, err := os.ReadFile(filepath.Join(needs.Build, "kernel.versions"))
	must(t, err)
	want := strings.Fields(string(versions))
	if version, release := installedKernel(t, q); version != want[0] || release != older {
		t.Fatalf("kernel %s runs, and %s %s (%s) is installed", older, kernelPackage, version, release)
	}
	if there, err := q.Shell(ctx, "ls /run/reboot-required* 2>/dev/null || true"); err != nil || there != "" {
		t.Fatalf("before the upgrade there is %s (%v)", there, err)
	}
	f.Line.Note(q.Name, "apt-get install --only-upgrade %s", kernelPackage)
	output, err := q.Run(ctx, "apt-get", "install", "-q", "-y", "-o", "Dpkg::Use-Pty=0", "--only-upgrade", kernelPackage)
	if err := os.WriteFile(storyFile(t, needs, "apt"), []byte(output), 0o644); err != nil {
		t.Log(err)
	}
	must(t, err)
	version, newer := installedKernel(t, q)
	if version != want[1] || newer == older {
		t.Fatalf("apt has installed %s %s (%s):\n%s", kernelPackage, version, newer, output)
	}
	packages, err := q.Shell(ctx, "stat -c 'written %y' /run/reboot-required && cat /run/reboot-required.pkgs")
	must(t, err)
	lines := strings.Split(strings.TrimSpace(packages), "\n")
	f.Line.Note(q.Name, "%s %s is installed; /run/reboot-required: %s", kernelPackage, version, strings.Join(lines, ", "))
	if !slices.Contains(lines, "linux-image-"+newer) {
		t.Errorf("the packages that need a reboot are %v", lines)
	}
	return newer
}

// installedKernel returns the version of the installed kernel package, and the release of the kernel on which it depends.
func installedKernel(t *testing.T, q *Virtual) (version, release string) {
	t.Helper()
	text, err := q.Run(t.Context(), "dpkg-query", "-W", "-f", "${db:Status-Status} ${Version} ${Depends}", kernelPackage)
	must(t, err)
	fields := strings.Fields(text)
	if len(fields) < 3 || fields[0] != "installed" {
		t.Fatalf("%s is %q", kernelPackage, text)
	}
	return fields[1], strings.TrimPrefix(fields[2], "linux-image-")
}

// newVirtual returns a machine that is off and has the disk of build-kernel-disk.sh. It is removed when the test ends.
func newVirtual(t *testing.T) *Virtual {
	t.Helper()
	const name = "q1"
	console := storyFile(t, needs, name+".console")
	must(t, os.MkdirAll(filepath.Dir(console), 0o755))
	q, err := NewVirtual(needs, name, console)
	must(t, err)
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	})
	return q
}

// judgeDowns checks the promises whenever the machine goes down, like judgeReboot for other machines, and calls `booted`
// when commands can be run again.
func (f *Fleet) judgeDowns(t *testing.T, q *Virtual, booted func(context.Context) error) {
	ctx := t.Context()
	go func() {
		for range q.Downs {
			f.Line.Note(q.Name, "REBOOTS")
			f.judgeReboot(q.Name)
			err := q.UntilUp(ctx, emulatedLimit)
			if err == nil {
				f.Line.Note(q.Name, "up")
				err = booted(ctx)
			}
			if err != nil && ctx.Err() == nil {
				f.Witness.Violate("after the reboot: %v", err)
			}
		}
	}()
}

// keepVirtualJournal writes the journal of all boots of the machine to a file beside the time line when the test ends.
func (f *Fleet) keepVirtualJournal(t *testing.T, q *Virtual) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		text, err := q.Run(ctx, "journalctl", "--no-pager", "-o", "short-precise")
		if err != nil {
			text = err.Error()
		}
		path := storyFile(t, needs, q.Name+".journal")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Log(err)
		}
		if t.Failed() {
			agent, _ := q.Run(ctx, "journalctl", "--no-pager", "-o", "short-precise", "-u", "haulout", "-n", "200")
			t.Logf("%s: the journal is in %s; the agent's end of it:\n%s", q.Name, path, agent)
		}
	})
}
