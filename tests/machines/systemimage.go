package machines

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What the machines have in common whose operating system is an image: RAUC (rauc.go) or ostree (ostree.go) writes it
// beside the one that runs, and a played boot loader chooses one of them at each boot.
const (
	firmwareDir     = "/var/lib/firmware" // the variables of the boot loader, in one file each
	bootAttempts    = 2                   // how often an image is tried before another one is used
	systemName      = "Machine OS"
	machinePrograms = "/usr/lib/machine/"
)

// playedFirmwareUnit runs the played boot loader early at boot.
const playedFirmwareUnit = `[Unit]
Description=Boot loader and kernel of this machine (played)
DefaultDependencies=no
After=systemd-tmpfiles-setup.service systemd-tmpfiles-setup-dev.service
Before=sysinit.target
RequiresMountsFor=/run
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=` + machinePrograms + `firmware
`

// Builder makes images in a file system of its own, as a build server does.
type Builder struct{ root string }

// newBuildTree returns a builder without programs of its own.
func newBuildTree(t *testing.T, needs *Needs) (*Builder, error) {
	place := filepath.Join(roomDir, "builder")
	b := &Builder{root: filepath.Join(place, "disk")}
	upper, work := filepath.Join(place, "upper"), filepath.Join(place, "work")
	for _, directory := range []string{b.root, upper, work} {
		if err := os.MkdirAll(directory, 0o755); err != nil {
			return nil, err
		}
	}
	layers := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", filepath.Join(needs.Build, "base"), upper, work)
	if err := unix.Mount("overlay", b.root, "overlay", 0, layers); err != nil {
		return nil, fmt.Errorf("the disk of the builder: %w", err)
	}
	t.Cleanup(func() {
		if err := errors.Join(unix.Unmount(b.root, unix.MNT_DETACH), os.RemoveAll(place)); err != nil {
			t.Errorf("the builder: %v", err)
		}
	})
	return b, nil
}

// inTree runs a shell script in the file system of a machine that is off, or of a builder.
func inTree(ctx context.Context, root, script string, args ...string) (string, error) {
	enter := []string{"--mount", "sh", "-e", "-c", `mount -t proc proc "$1/proc"; exec chroot "$@"`, "sh", root}
	command := exec.CommandContext(ctx, "unshare", slices.Concat(enter, []string{"sh", "-e", "-c", script, "sh"}, args)...)
	command.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "DEBIAN_FRONTEND=noninteractive"}
	output, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", script, err, output)
	}
	return string(output), err
}

// WatchWrites writes each line that a machine appends to this log to the time line: the begin and the end of an
// installation by a tool that writes images. It is a violation if the node is then cordoned or in another state than
// `pending`.
func (f *Fleet) WatchWrites(tool, path string) error {
	judge := func(name, line string) { f.judgeWrite(tool, name, line) }
	for _, machine := range f.Machines {
		log, err := os.Open(filepath.Join(machine.Disk, path))
		if err != nil {
			return err
		}
		if _, err := log.Seek(0, io.SeekEnd); err != nil {
			return err
		}
		go f.follow(f.watching, machine.Name, log, judge)
	}
	return nil
}

func (f *Fleet) judgeWrite(tool, name, line string) {
	node, err := f.Client.CoreV1().Nodes().Get(f.watching, name, metav1.GetOptions{})
	if err != nil {
		f.Witness.Violate("%s on %s: %s, and the Node is not known: %v", tool, name, line, err)
		return
	}
	f.Line.Note(name, "%s %s (%d pods)", tool, line, len(f.Witness.PodsOn(name)))
	if node.Labels[stateLabel] != "pending" || node.Spec.Unschedulable {
		f.Witness.Violate("%s on %s: %s, in state %s, unschedulable %v", tool, name, line, node.Labels[stateLabel],
			node.Spec.Unschedulable)
	}
}

// Written returns the versions that were written on this machine according to this log, in their order.
func (m *Machine) Written(ctx context.Context, log string) ([]string, error) {
	text, err := m.Run(ctx, "sed", "-n", "s/^has installed //p", log)
	return strings.Fields(text), err
}

// TriedBoots returns what the played boot loader of this machine has booted, in its order, failed boots included.
func (m *Machine) TriedBoots(ctx context.Context) (string, error) {
	text, err := m.Run(ctx, "cat", firmwareDir+"/boots")
	return strings.Join(strings.Fields(text), " "), err
}

// LookAnew starts the agent of a machine again, because it looks for an image only about once an hour.
func (f *Fleet) LookAnew(ctx context.Context, m *Machine) error {
	_, err := m.Run(ctx, "systemctl", "restart", "haulout")
	return err
}
