package machines

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Virtual is a machine that boots a kernel of its own under QEMU, without KVM: the firmware starts GRUB, which chooses
// the kernel. It uses the disk of build-kernel-disk.sh and does not change that file: its writes are lost when it is
// turned off. It is connected to QEMU's user-mode network: the machine can connect to everything to which the room can
// (see room.go), but nothing can connect to the machine.
type Virtual struct {
	Name string

	// Receives an element whenever the machine goes down: its guest agent, which is a service, has ended. Closed when the
	// power is off.
	Downs chan struct{}

	needs   *Needs
	place   string
	console string
	agent   *guestAgent
	resets  atomic.Int32

	on time.Time // when it was turned on

	mu   sync.Mutex
	qemu *exec.Cmd
	off  chan struct{} // closed when the machine is off
}

// NewVirtual returns a machine that is off.
func NewVirtual(needs *Needs, name string, console string) (*Virtual, error) {
	v := &Virtual{Name: name, needs: needs, console: console, place: filepath.Join(roomDir, name),
		Downs: make(chan struct{}, 16)}
	v.agent = &guestAgent{socket: filepath.Join(v.place, "agent")}
	if err := os.MkdirAll(v.place, 0o755); err != nil {
		return nil, err
	}
	return v, nil
}

// PowerOn starts QEMU. It returns before the boot is complete.
func (v *Virtual) PowerOn() error {
	v.on = time.Now()
	log, err := os.Create(v.console + ".qemu")
	if err != nil {
		return err
	}
	defer log.Close()
	control := filepath.Join(v.place, "control")
	command := exec.Command("qemu-system-x86_64", "-name", v.Name,
		"-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "1536",
		"-nodefaults", "-display", "none",
		"-chardev", "file,id=console,path="+v.console, "-serial", "chardev:console",
		"-qmp", "unix:"+control+",server=on,wait=off",
		"-device", "virtio-rng-pci", "-device", "virtio-serial-pci",
		"-chardev", "socket,id=agent,path="+v.agent.socket+",server=on,wait=off",
		"-device", "virtserialport,id="+agentPort+",chardev=agent,name=org.qemu.guest_agent.0",
		"-netdev", "user,id=lan", "-device", "virtio-net-pci,netdev=lan",
		"-drive", "file="+v.needs.kernelDisk()+",if=virtio,format=raw,cache=unsafe,snapshot=on")
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	off, started := make(chan struct{}), make(chan error, 1)
	go func() {
		// The parent-death signal of QEMU is tied to this thread, so the thread must live as long as QEMU.
		runtime.LockOSThread()
		defer close(off)
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait()
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start QEMU: %w", err)
	}
	v.mu.Lock()
	v.qemu, v.off = command, off
	v.mu.Unlock()
	return v.watch(control)
}

// agentPort is the name of the guest agent's port for QEMU.
const agentPort = "guest-agent"

// watch connects to QEMU's control socket (QMP), counts how often the machine resets itself, and reports in Downs when it
// goes down.
func (v *Virtual) watch(control string) error {
	var connection net.Conn
	for {
		var err error
		if connection, err = net.Dial("unix", control); err == nil {
			break
		}
		select {
		case <-v.off:
			return fmt.Errorf("QEMU has ended, see %s", v.console+".qemu")
		case <-time.After(50 * time.Millisecond):
		}
	}
	if _, err := connection.Write([]byte(`{"execute":"qmp_capabilities"}` + "\n")); err != nil {
		return err
	}
	go func() {
		defer close(v.Downs)
		defer connection.Close()
		lines := bufio.NewScanner(connection)
		for lines.Scan() {
			var event struct {
				Event string
				Data  struct {
					Guest bool
					ID    string
					Open  bool
				}
			}
			if json.Unmarshal(lines.Bytes(), &event) != nil {
				continue
			}
			switch {
			case event.Event == "RESET" && event.Data.Guest:
				v.resets.Add(1)
			case event.Event == "VSERPORT_CHANGE" && event.Data.ID == agentPort && !event.Data.Open:
				v.Downs <- struct{}{}
			}
		}
	}()
	return nil
}

// Resets returns how often the machine has reset itself, which starts the firmware and then GRUB. QEMU counts more than one
// reset for a reboot: after the kernel, the firmware resets the machine, too. A kexec does not reset it.
func (v *Virtual) Resets() int { return int(v.resets.Load()) }

// Close turns the machine off without a shutdown, and removes its files.
func (v *Virtual) Close() error {
	v.mu.Lock()
	qemu, off := v.qemu, v.off
	v.mu.Unlock()
	if qemu != nil {
		_ = qemu.Process.Kill()
		<-off
	}
	return os.RemoveAll(v.place)
}

// CPU returns the processor time that QEMU has used on the host for this machine.
func (v *Virtual) CPU() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.qemu == nil {
		return 0
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", v.qemu.Process.Pid))
	if err != nil {
		return 0
	}
	// proc_pid_stat(5): after the name, which may contain spaces, come the state and ten more fields, and then utime and
	// stime in hundredths of a second.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var ticks int
	for _, field := range fields[11:13] {
		count, _ := strconv.Atoi(field)
		ticks += count
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// Run runs a command in the machine as root and returns what it prints.
func (v *Virtual) Run(ctx context.Context, words ...string) (string, error) {
	return v.run(ctx, nil, words...)
}

// Shell runs a line of shell in the machine.
func (v *Virtual) Shell(ctx context.Context, line string) (string, error) {
	return v.Run(ctx, "sh", "-c", line)
}

func (v *Virtual) run(ctx context.Context, input []byte, words ...string) (string, error) {
	output, err := v.agent.run(ctx, input, words...)
	if err != nil {
		err = fmt.Errorf("%s: %w", v.Name, err)
	}
	return output, err
}

// UntilUp waits until commands can be run in the machine.
func (v *Virtual) UntilUp(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := v.agent.ping()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not boot: %w", v.Name, err)
		case <-v.off:
			return fmt.Errorf("QEMU has ended, see %s", v.console+".qemu")
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// Write writes files to the disk of the machine, which must run. Files with a private key and files whose path ends in
// `kubeconfig` can be read only by root. Scripts can be executed.
func (v *Virtual) Write(ctx context.Context, files map[string][]byte) error {
	var out bytes.Buffer
	writer := tar.NewWriter(&out)
	for path, content := range files {
		mode := int64(0o644)
		if bytes.Contains(content, []byte("PRIVATE KEY")) || strings.HasSuffix(path, "kubeconfig") {
			mode = 0o600
		} else if bytes.HasPrefix(content, []byte("#!")) {
			mode = 0o755
		}
		header := tar.Header{Name: strings.TrimPrefix(path, "/"), Mode: mode, Size: int64(len(content)), ModTime: time.Now()}
		if err := writer.WriteHeader(&header); err != nil {
			return err
		}
		if _, err := writer.Write(content); err != nil {
			return err
		}
	}
	if err := writer.Close(); err != nil {
		return err
	}
	_, err := v.run(ctx, out.Bytes(), "tar", "-C", "/", "--no-same-owner", "-xf", "-")
	return err
}

// BootID returns the id of the running boot.
func (v *Virtual) BootID(ctx context.Context) (string, error) {
	text, err := v.Run(ctx, "cat", "/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(text), err
}

// Kernel returns the release of the running kernel.
func (v *Virtual) Kernel(ctx context.Context) (string, error) {
	text, err := v.Run(ctx, "uname", "-r")
	return strings.TrimSpace(text), err
}

// CommandLine returns the words with which the running kernel was started.
func (v *Virtual) CommandLine(ctx context.Context) ([]string, error) {
	text, err := v.Run(ctx, "cat", "/proc/cmdline")
	return strings.Fields(text), err
}

// installOnVirtual installs the package under test as Install does, and returns when the agent is idle.
func (f *Fleet) installOnVirtual(ctx context.Context, v *Virtual, more string) error {
	kubeconfig, err := f.agentAccess(v.Name)
	if err != nil {
		return err
	}
	deb, err := os.ReadFile(f.Package)
	if err != nil {
		return err
	}
	err = v.Write(ctx, map[string][]byte{
		agentKubeconfig: kubeconfig, agentConfigFile: []byte(agentConfig(v.Name) + more), packagePath: deb,
	})
	if err != nil {
		return err
	}
	_, err = v.Run(ctx, "apt-get", "install", "-q", "-y", "-o", "Dpkg::Options::=--force-confold", "-o", "Dpkg::Use-Pty=0",
		packagePath)
	if err != nil {
		return err
	}
	f.Line.Note(v.Name, "package installed")
	return f.UntilState(ctx, bootLimit, v.Name, "idle")
}
