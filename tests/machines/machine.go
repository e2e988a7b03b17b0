package machines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Machine is a computer with a disk, a network and a power switch. systemd-nspawn boots it: its systemd is PID 1 in
// namespaces of its own, and each boot has its own boot id.
type Machine struct {
	Name   string
	Number int // from 1; the addresses of the machine and of its pods contain it
	Disk   string

	// Called when a boot has ended, before the next one begins. Must be set before the first boot.
	Ended func(reboot bool)

	needs   *Needs
	console string

	mu      sync.Mutex
	nspawn  *exec.Cmd
	off     chan struct{} // closed when the machine is off and does not boot again by itself
	halting bool          // the machine must not boot again by itself
	problem error
}

// systemd-nspawn ends with this exit status when the machine reboots.
const rebootCode = 133

// NewMachine returns a machine that is off. Its disk is an overlay: the base file system, and a tmpfs that takes what the
// machine writes.
func NewMachine(needs *Needs, name string, number int, console string) (*Machine, error) {
	m := &Machine{Name: name, Number: number, needs: needs, console: console, off: make(chan struct{})}
	close(m.off)
	place := filepath.Join(roomDir, name)
	m.Disk = filepath.Join(place, "disk")
	layersDir := filepath.Join(place, "layers")
	if err := os.MkdirAll(layersDir, 0o755); err != nil {
		return nil, err
	}
	if err := unix.Mount("tmpfs", layersDir, "tmpfs", 0, diskSize); err != nil {
		return nil, fmt.Errorf("the disk of %s: %w", name, err)
	}
	for _, directory := range []string{m.Disk, m.layer("upper"), m.layer("work"), m.volume("containerd"), m.volume("kubelet")} {
		if err := os.MkdirAll(directory, 0o755); err != nil {
			return nil, err
		}
	}
	layers := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", filepath.Join(needs.Build, "base"), m.layer("upper"),
		m.layer("work"))
	if err := unix.Mount("overlay", m.Disk, "overlay", 0, layers); err != nil {
		return nil, fmt.Errorf("the disk of %s: %w", name, err)
	}
	if err := os.Mkdir(m.cgroup(), 0o755); err != nil {
		return nil, err
	}
	const settings = "own-settings"
	unit := fmt.Sprintf(ownSettingsUnit, strings.Join(ownSettings, " "))
	if err := m.Write("/etc/systemd/system/"+settings+".service", unit); err != nil {
		return nil, err
	}
	if err := m.enable(settings, "sysinit"); err != nil {
		return nil, err
	}
	return m, plugIn(name, number)
}

// Close turns the machine off and deletes its disk, its network and its cgroup.
func (m *Machine) Close() error {
	m.PowerOff()
	removeCgroup(m.cgroup())
	return errors.Join(unplug(m.Name, m.Number), unix.Unmount(m.Disk, unix.MNT_DETACH),
		unix.Unmount(m.layer(""), unix.MNT_DETACH), os.RemoveAll(filepath.Dir(m.Disk)))
}

// ownSettings are kernel settings that a kubelet writes when it starts. All machines and the host share one kernel, so
// each machine has files of its own in their place.
var ownSettings = []string{
	"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys",
	"kernel/keys/root_maxbytes",
}

const ownSettingsUnit = `[Unit]
Description=Settings of the kernel that this machine may change
DefaultDependencies=no
After=systemd-tmpfiles-setup.service
Before=sysinit.target
RequiresMountsFor=/run
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=sh -c 'set -e; for name in %s; do own=/run/settings/$name; mkdir -p "$(dirname "$own")"; cat /proc/sys/$name >"$own"; mount --bind "$own" /proc/sys/$name; done'
`

// diskSize is how much a machine can write to its disk, as an option of tmpfs.
const diskSize = "size=512m"

func (m *Machine) layer(name string) string { return filepath.Join(roomDir, m.Name, "layers", name) }

// volume returns a directory that the machine uses without an overlay, because containers have overlays of their own,
// and the kernel does not stack them.
func (m *Machine) volume(name string) string { return filepath.Join(roomDir, m.Name, "volumes", name) }

func (m *Machine) cgroup() string { return filepath.Join(roomCgroup(), m.Name) }

// Write writes a file on the disk of the machine.
func (m *Machine) Write(path, content string) error { return m.writeAs(path, []byte(content), 0o644) }

// WriteSecret writes a file on the disk of the machine that only root may read.
func (m *Machine) WriteSecret(path string, content []byte) error {
	return m.writeAs(path, content, 0o600)
}

// writeAs writes through a process in the machine if it runs: a change of the directories below a mounted overlay is
// not always visible in the overlay.
func (m *Machine) writeAs(path string, content []byte, mode os.FileMode) error {
	if m.Running() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := m.run(ctx, bytes.NewReader(content), "sh", "-c",
			`mkdir -p "$(dirname "$1")" && rm -f "$1" && umask 077 && cat >"$1" && chmod "$2" "$1"`, "sh", path,
			strconv.FormatUint(uint64(mode), 8))
		return err
	}
	path = filepath.Join(m.Disk, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, mode)
}

// Remove removes a file from the disk of a machine that is off.
func (m *Machine) Remove(path string) error { return os.Remove(filepath.Join(m.Disk, path)) }

// AddUnit adds a service to the disk of a machine that is off. It starts at each boot.
func (m *Machine) AddUnit(name, content string) error {
	if err := m.Write("/etc/systemd/system/"+name+".service", content); err != nil {
		return err
	}
	return m.enable(name, "multi-user")
}

// enable makes a target want a unit. It creates a link, because systemd ignores regular files in these directories.
func (m *Machine) enable(unit, target string) error {
	wants := filepath.Join(m.Disk, "etc/systemd/system", target+".target.wants")
	if err := os.MkdirAll(wants, 0o755); err != nil {
		return err
	}
	return os.Symlink("../"+unit+".service", filepath.Join(wants, unit+".service"))
}

// PowerOn boots the machine, and boots it again whenever it reboots. It returns before the boot is complete.
func (m *Machine) PowerOn() error {
	if err := ip("link set " + cable(m.Name) + " up"); err != nil {
		return err
	}
	off := make(chan struct{})
	m.mu.Lock()
	select {
	case <-m.off:
		m.off, m.halting = off, false
	default:
		m.mu.Unlock()
		return fmt.Errorf("%s is on", m.Name)
	}
	m.mu.Unlock()
	began := make(chan error, 1)
	go m.boots(off, began)
	return <-began
}

func (m *Machine) boots(off chan struct{}, began chan<- error) {
	// The parent-death signal of nspawn is tied to this thread, so the thread must live as long as nspawn.
	runtime.LockOSThread()
	defer close(off)
	for first := true; ; first = false {
		command, err := m.startNspawn()
		if first {
			began <- err
		}
		if err != nil {
			m.note(err)
			return
		}
		err = command.Wait()
		var ended *exec.ExitError
		reboot := errors.As(err, &ended) && ended.ExitCode() == rebootCode
		m.mu.Lock()
		m.nspawn = nil
		again := reboot && !m.halting
		m.mu.Unlock()
		if m.Ended != nil {
			m.Ended(reboot)
		}
		if !again {
			return
		}
	}
}

func (m *Machine) note(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.problem = errors.Join(m.problem, err)
}

func (m *Machine) startNspawn() (*exec.Cmd, error) {
	log, err := os.OpenFile(m.console, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	directory, err := os.Open(m.cgroup())
	if err != nil {
		return nil, err
	}
	defer directory.Close()
	command := exec.Command("systemd-nspawn", "--quiet", "--directory="+m.Disk, "--boot", "--register=no", "--keep-unit",
		"--machine="+m.Name, "--network-namespace-path="+namespacePath(m.Name),
		"--resolv-conf=off", "--timezone=off", "--link-journal=no", "--console=pipe",
		// Container runtimes and the kubelet need these besides nspawn's default set.
		"--capability=CAP_NET_ADMIN,CAP_BPF,CAP_PERFMON,CAP_SYSLOG,CAP_IPC_LOCK,CAP_NET_RAW",
		"--system-call-filter=@keyring bpf perf_event_open",
		// The kubelet reads the kernel's log. It must not see the host's log, and the machine's journald must not write
		// to that.
		"--bind=/dev/null:/dev/kmsg",
		"--bind-ro="+filepath.Join(m.needs.Build, "bin")+":"+programs,
		"--bind="+m.volume("containerd")+":/var/lib/containerd", "--bind="+m.volume("kubelet")+":/var/lib/kubelet")
	command.Env = append(os.Environ(), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1", "SYSTEMD_NSPAWN_LOCK=0",
		// Only the settings that belong to a network namespace are writable. All others in /proc/sys are the host's.
		"SYSTEMD_NSPAWN_API_VFS_WRITABLE=network")
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{
		Setpgid: true, Pdeathsig: syscall.SIGKILL, UseCgroupFD: true, CgroupFD: int(directory.Fd()),
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start systemd-nspawn: %w", err)
	}
	m.nspawn = command
	return command, nil
}

// Running returns true if systemd runs as PID 1 of the machine.
func (m *Machine) Running() bool {
	_, err := m.pid1()
	return err == nil
}

// Off returns true if the machine does not run and does not boot again by itself.
func (m *Machine) Off() bool {
	m.mu.Lock()
	off := m.off
	m.mu.Unlock()
	select {
	case <-off:
		return true
	default:
		return false
	}
}

// pid1 returns the process id of the machine's systemd, as the processes outside the machine see it (see room.go).
func (m *Machine) pid1() (int, error) {
	m.mu.Lock()
	nspawn := m.nspawn
	m.mu.Unlock()
	if nspawn == nil {
		return 0, fmt.Errorf("%s is off", m.Name)
	}
	// nspawn's child process prepares the machine and then becomes its systemd.
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", nspawn.Process.Pid))
	if err != nil {
		return 0, err
	}
	for child := range strings.FieldsSeq(string(text)) {
		name, err := os.ReadFile("/proc/" + child + "/comm")
		if err == nil && strings.TrimSpace(string(name)) == "systemd" {
			return strconv.Atoi(child)
		}
	}
	return 0, fmt.Errorf("%s has no systemd yet", m.Name)
}

// PowerOff takes the power away, so that the machine ends without a shutdown. It does not boot again by itself.
func (m *Machine) PowerOff() {
	m.mu.Lock()
	m.halting = true
	nspawn, off := m.nspawn, m.off
	m.mu.Unlock()
	if pid, err := m.pid1(); err == nil {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	} else if nspawn != nil {
		_ = nspawn.Process.Kill()
	}
	<-off
}

// CutPower first disconnects the machine from its network and then calls PowerOff. So the machine sends no last message,
// and others only see that it does not answer.
func (m *Machine) CutPower() error {
	if err := ip("link set " + cable(m.Name) + " down"); err != nil {
		return err
	}
	m.PowerOff()
	return nil
}

// Run runs a command in the machine as root and returns its output.
func (m *Machine) Run(ctx context.Context, words ...string) (string, error) {
	return m.run(ctx, nil, words...)
}

// Shell runs a shell command in the machine.
func (m *Machine) Shell(ctx context.Context, line string) (string, error) {
	return m.Run(ctx, "sh", "-c", line)
}

func (m *Machine) run(ctx context.Context, input *bytes.Reader, words ...string) (string, error) {
	pid, err := m.pid1()
	if err != nil {
		return "", err
	}
	enter := []string{"-t", strconv.Itoa(pid), "-m", "-u", "-i", "-n", "-p", "-C", "-r", "-w", "env", "-i",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "TERM=dumb",
		"DEBIAN_FRONTEND=noninteractive"}
	command := exec.CommandContext(ctx, "nsenter", append(enter, words...)...)
	if input != nil {
		command.Stdin = input
	}
	command.WaitDelay = 5 * time.Second
	output, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %v: %w\n%s", m.Name, words, err, output)
	}
	return string(output), err
}

// BootID returns the id of the running boot.
func (m *Machine) BootID(ctx context.Context) (string, error) {
	text, err := m.Run(ctx, "cat", "/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(text), err
}
