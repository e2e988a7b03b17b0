package machines

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A boot frees space on the disk. If the disk was full before the reboot (/var/full exists), this unit fills it again.
const fullDiskUnit = `[Unit]
DefaultDependencies=no
After=local-fs.target
Before=sysinit.target
ConditionPathExists=/var/full
[Service]
Type=oneshot
ExecStart=sh -c '` + fillDisk + `'
`

const fillDisk = "dd if=/dev/zero bs=4k >>/var/full 2>/dev/null; ! echo more >/var/more 2>/dev/null"

// The disk of a machine is full before and after the reboot. The agent updates it all the same, because it needs no
// disk.
func TestDiskFull(t *testing.T) {
	notInCore(t)
	f, boot := heldFleet(t, func(m *Machine) error {
		if err := m.Write("/etc/systemd/system/full-disk.service", fullDiskUnit); err != nil {
			return err
		}
		return m.enable("full-disk", "sysinit")
	})
	m, ctx := f.Machines[0], t.Context()
	_, err := m.Shell(ctx, fillDisk)
	must(t, err)
	f.Line.Note(m.Name, "the disk is full")
	must(t, f.Relax(ctx, heldWork))
	f.finish(t, heldWork, boot)
	if _, err := m.Run(ctx, "systemctl", "is-failed", "full-disk"); err == nil {
		t.Error("the disk was not full after the boot")
	}
	if _, err := m.Shell(ctx, "! echo more >/var/more"); err != nil {
		t.Errorf("the disk is not full any more: %v", err)
	}
}

const readOnlyEtcUnit = `[Unit]
DefaultDependencies=no
After=local-fs.target
Before=sysinit.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=mount --bind /etc /etc
ExecStart=mount -o remount,bind,ro /etc
[Install]
WantedBy=sysinit.target
`

// /etc of a machine is read-only before and after the reboot. The agent updates the machine all the same.
func TestReadOnlyEtc(t *testing.T) {
	notInCore(t)
	f, boot := heldFleet(t)
	m, ctx := f.Machines[0], t.Context()
	must(t, m.Write("/etc/systemd/system/read-only-etc.service", readOnlyEtcUnit))
	_, err := m.Run(ctx, "systemctl", "enable", "--now", "read-only-etc")
	must(t, err)
	const write = "touch /etc/more"
	_, err = m.Shell(ctx, "! "+write)
	must(t, err)
	f.Line.Note(m.Name, "/etc is read-only")
	_, err = m.Run(ctx, "systemctl", "restart", "haulout")
	must(t, err)
	must(t, f.UntilActive(ctx, m, "haulout"))
	f.checkHeld(t, m)
	must(t, f.Relax(ctx, heldWork))
	f.finish(t, heldWork, boot)
	if _, err := m.Shell(ctx, "! "+write); err != nil {
		t.Errorf("/etc was not read-only: %v", err)
	}
}

// During a drain, a program fills /run, and fills it again whenever another program frees space there. So the agent
// cannot write the ready file. It reports that, and drains and reboots the machine all the same.
func TestRunFull(t *testing.T) {
	notInCore(t)
	f, boot := heldFleet(t)
	m, ctx := f.Machines[0], t.Context()
	must(t, f.blockReboot(ctx, m))
	_, err := m.Run(ctx, "mount", "-o", "remount,size=64m", "/run")
	must(t, err)
	_, err = m.Run(ctx, "systemd-run", "--unit=filler", "sh", "-c", "while :; do cat /dev/zero >>/run/full; done 2>/dev/null")
	must(t, err)
	must(t, f.Until(ctx, time.Minute, "/run is full", func() (bool, error) {
		_, err := m.Shell(ctx, "! echo more >/run/more; full=$?; rm -f /run/more; exit $full")
		return err == nil, err
	}))
	f.Line.Note(m.Name, "/run is full")
	must(t, f.Relax(ctx, heldWork))
	must(t, f.UntilState(ctx, updateLimit, m.Name, "ready"))
	must(t, f.UntilEvent(ctx, m, "ReadyFileFailed"))
	_, err = m.Shell(ctx, "systemctl stop filler && rm -f /run/full")
	must(t, err)
	f.Line.Note(m.Name, "/run has room")
	_, err = m.Run(ctx, "systemctl", "stop", "block")
	must(t, err)
	f.finish(t, heldWork, boot)
}

// blockReboot starts a program in the machine that blocks reboots, as a backup might.
func (f *Fleet) blockReboot(ctx context.Context, m *Machine) error {
	_, err := m.Run(ctx, "systemd-run", "--unit=block", "systemd-inhibit", "--what=shutdown", "--mode=block", "--who=backup",
		"sleep", "infinity")
	if err != nil {
		return err
	}
	return f.Until(ctx, time.Minute, "the reboot is blocked", func() (bool, error) {
		list, err := m.Run(ctx, "systemd-inhibit", "--list", "--no-legend", "--no-pager")
		return strings.Contains(list, "backup"), err
	})
}

// UntilEvent waits until there is an Event about a machine with this reason.
func (f *Fleet) UntilEvent(ctx context.Context, m *Machine, reason string) error {
	return f.Until(ctx, time.Minute, "there is an Event "+reason, func() (bool, error) {
		events, err := f.Client.EventsV1().Events("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, event := range events.Items {
			if event.Reason == reason && event.Regarding.Name == m.Name {
				f.Line.Note(m.Name, "%s: %s", reason, event.Note)
				return true, nil
			}
		}
		return false, fmt.Errorf("none of %d Events", len(events.Items))
	})
}

// The agent's clock is wrong by an hour when the machine has booted, and is corrected while the agent verifies the
// node. The machines of the tests share the kernel's clock, so libfaketime shows another time to the agent only.
func TestWrongClockAtBoot(t *testing.T) {
	notInCore(t)
	for _, offset := range []string{"-1h", "+1h"} {
		t.Run(offset, func(t *testing.T) { wrongClock(t, offset) })
	}
}

const clock, hold = "/run/clock", "/var/lib/hold"

const wrongClockUnit = `[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=sh -c 'if [ -e %[1]s ]; then echo %[2]s; else echo +0; fi >%[3]s'
`

const fakeClockDropIn = `[Unit]
Requires=wrong-clock.service
After=wrong-clock.service
[Service]
Environment=LD_PRELOAD=/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1 FAKETIME_TIMESTAMP_FILE=%s FAKETIME_CACHE_DURATION=1 FAKETIME_DONT_FAKE_MONOTONIC=1
`

func wrongClock(t *testing.T, offset string) {
	f, boot := heldFleet(t, func(m *Machine) error {
		hook := "#!/bin/sh\n" + whileThere(hold) + "\n"
		if err := m.writeAs("/etc/haulout/hooks.d/after-boot/50-hold", []byte(hook), 0o755); err != nil {
			return err
		}
		if err := m.Write("/etc/systemd/system/wrong-clock.service", fmt.Sprintf(wrongClockUnit, hold, offset, clock)); err != nil {
			return err
		}
		return m.Write("/etc/systemd/system/haulout.service.d/clock.conf", fmt.Sprintf(fakeClockDropIn, clock))
	})
	m, ctx := f.Machines[0], t.Context()
	_, err := m.Run(ctx, "touch", hold)
	must(t, err)
	must(t, f.Relax(ctx, heldWork))
	must(t, f.Until(ctx, updateLimit, "the agent runs with the wrong clock", func() (bool, error) {
		if f.Reboots(m.Name) != 1 {
			return false, fmt.Errorf("no reboot yet")
		}
		text, err := m.Run(ctx, "cat", clock)
		return strings.TrimSpace(text) == offset, err
	}))
	must(t, f.UntilActive(ctx, m, "haulout"))
	f.Line.Note(m.Name, "the agent's clock is off by %s", offset)
	must(t, f.UntilReason(ctx, updateLimit, m.Name, "WaitingForHook"))
	f.checkClock(t, m, offset)
	_, err = m.Shell(ctx, "echo +0 >"+clock+" && rm "+hold)
	must(t, err)
	f.Line.Note(m.Name, "the agent's clock is set")
	f.finish(t, heldWork, boot)
}

// checkClock checks that the time in the agent's record is that of a clock that is wrong by this offset.
func (f *Fleet) checkClock(t *testing.T, m *Machine, offset string) {
	t.Helper()
	var record struct {
		Since int64 // microseconds
	}
	must(t, json.Unmarshal([]byte(f.Witness.Node(m.Name).Annotations["haulout.dev/record"]), &record))
	want, err := time.ParseDuration(offset)
	must(t, err)
	if off := time.Until(time.UnixMicro(record.Since)); (off - want).Abs() > want.Abs()/2 {
		t.Errorf("the agent's clock is off by %v", off)
	}
}
