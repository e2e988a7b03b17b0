package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/godbus/dbus/v5/prop"
)

// hostBus is the system bus of a Machine: a dbus-daemon beneath the machine's root with logind, systemd and Flatcar's
// update_engine. They implement, as documented, what the agent calls (org.freedesktop.login1(5),
// org.freedesktop.systemd1(5), update_engine.xml).
type hostBus struct {
	daemon *process
	conn   *dbus.Conn
	locks  []*os.File
	reboot func() // called when a reboot is requested, by any of the methods

	mu      sync.Mutex
	offered string // version that update_engine has installed for the next boot; empty: none
}

const busConfig = `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <listen>unix:path=%s</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
  </policy>
</busconfig>
`

// startHostBus returns when all services answer.
func startHostBus(root string, reboot func()) (*hostBus, error) {
	program, err := exec.LookPath("dbus-daemon")
	if err != nil {
		return nil, fmt.Errorf("%w: install the package dbus-daemon", err)
	}
	socket := filepath.Join(root, "run/dbus/system_bus_socket")
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		return nil, err
	}
	config := filepath.Join(root, "bus.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, busConfig, socket), 0o644); err != nil {
		return nil, err
	}
	b := &hostBus{reboot: reboot}
	if b.daemon, err = startProcess(root, "dbus-daemon", program, "--config-file="+config, "--nofork", "--nopidfile",
		"--nosyslog"); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if b.conn, err = dbus.Connect("unix:path=" + socket); err == nil {
			break
		}
		if b.daemon.exited() || time.Now().After(deadline) {
			b.stop()
			return nil, fmt.Errorf("dbus-daemon does not answer: %w\n%s", err, b.daemon.logTail())
		}
	}
	if err := b.publish(); err != nil {
		b.stop()
		return nil, err
	}
	return b, nil
}

func (b *hostBus) stop() {
	if b.conn != nil {
		b.conn.Close()
	}
	for _, end := range b.locks {
		end.Close()
	}
	b.daemon.kill()
}

func (b *hostBus) publish() error {
	for _, service := range []struct {
		name, path, inter string
		methods           map[string]any
		properties        map[string]any
	}{
		{
			"org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager",
			map[string]any{
				"CanReboot":       func() (string, *dbus.Error) { return "yes", nil },
				"RebootWithFlags": func(uint64) *dbus.Error { b.reboot(); return nil },
				"ListInhibitors":  func() ([]inhibitor, *dbus.Error) { return []inhibitor{}, nil },
				"Inhibit":         b.inhibit,
			},
			map[string]any{"BlockInhibited": "", "InhibitDelayMaxUSec": uint64(5_000_000), "PreparingForShutdown": false},
		},
		{
			"org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager",
			map[string]any{"Reboot": func() *dbus.Error { b.reboot(); return nil }},
			map[string]any{"SystemState": "running"},
		},
		{
			updateEngine, updateEnginePath, updateEngineManager,
			map[string]any{"GetStatus": b.updateStatus}, nil,
		},
	} {
		path := dbus.ObjectPath(service.path)
		if err := b.conn.ExportMethodTable(service.methods, path, service.inter); err != nil {
			return err
		}
		properties := map[string]*prop.Prop{}
		for name, value := range service.properties {
			properties[name] = &prop.Prop{Value: value, Emit: prop.EmitTrue}
		}
		if _, err := prop.Export(b.conn, path, prop.Map{service.inter: properties}); err != nil {
			return err
		}
		if _, err := b.conn.RequestName(service.name, dbus.NameFlagDoNotQueue); err != nil {
			return err
		}
	}
	return nil
}

// inhibit returns a delay lock, which is held until its descriptor is closed. This fake does not notice when that
// happens.
func (b *hostBus) inhibit(what, who, why, mode string) (dbus.UnixFD, *dbus.Error) {
	ours, theirs, err := os.Pipe()
	if err != nil {
		return 0, dbus.MakeFailedError(err)
	}
	b.locks = append(b.locks, ours, theirs)
	return dbus.UnixFD(theirs.Fd()), nil
}

type inhibitor struct {
	What, Who, Why, Mode string
	UID, PID             uint32
}

const (
	updateEngine        = "com.coreos.update1"
	updateEnginePath    = "/com/coreos/update1"
	updateEngineManager = "com.coreos.update1.Manager"
)

func (b *hostBus) updateStatus() (checked int64, progress float64, operation, version string, size int64, _ *dbus.Error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	operation, version = "UPDATE_STATUS_IDLE", "0.0.0"
	if b.offered != "" {
		operation, version = "UPDATE_STATUS_UPDATED_NEED_REBOOT", b.offered
	}
	return 0, 0, operation, version, 0, nil
}

// offer installs a version for the next boot and signals that. An empty version means that none is installed.
func (b *hostBus) offer(version string) error {
	b.mu.Lock()
	b.offered = version
	b.mu.Unlock()
	checked, progress, operation, version, size, _ := b.updateStatus()
	return b.conn.Emit(updateEnginePath, updateEngineManager+".StatusUpdate", checked, progress, operation, version, size)
}
