package machines

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"haulout.dev/haulout/tests/e2e"
)

// A machine behaves as the other tests assume: it boots a systemd of its own, and it keeps its disk and changes its
// boot id when it reboots and when its power is cut.
func TestMachine(t *testing.T) {
	line, err := NewTimeline(t, needs)
	must(t, err)
	m, err := NewMachine(needs, "alone", 1, storyFile(t, needs, "console"))
	must(t, err)
	t.Cleanup(func() { must(t, m.Close()) })
	reboots := make(chan bool, 4)
	m.Ended = func(reboot bool) { reboots <- reboot }
	ctx := t.Context()

	boots := map[string]bool{}
	up := func() {
		t.Helper()
		must(t, e2e.UntilWithin(ctx, bootLimit, "the machine has booted", func() (bool, error) {
			state, err := m.Run(ctx, "systemctl", "is-system-running")
			return strings.TrimSpace(state) == "running", err
		}))
		boot, err := m.BootID(ctx)
		must(t, err)
		if boots[boot] {
			t.Errorf("boot id %s for the second time", boot)
		}
		boots[boot] = true
		line.Note(m.Name, "runs in boot %s", boot)
	}
	must(t, m.PowerOn())
	up()
	for _, unit := range []string{"dbus", "systemd-logind", "systemd-journald"} {
		if _, err := m.Run(ctx, "systemctl", "is-active", unit); err != nil {
			t.Error(err)
		}
	}
	checkHostUntouched(t, m)
	_, err = m.Shell(ctx, "echo kept >/etc/kept && touch /run/lost && sync")
	must(t, err)

	_, err = m.Run(ctx, "systemctl", "reboot")
	must(t, err)
	line.Note(m.Name, "systemctl reboot")
	select {
	case rebooted := <-reboots:
		if !rebooted {
			t.Fatal("the machine went off")
		}
	case <-time.After(bootLimit):
		t.Fatal("the machine does not go down")
	}
	up()
	if text, err := m.Shell(ctx, "cat /etc/kept; ls /run/lost 2>/dev/null || true"); err != nil || text != "kept\n" {
		t.Errorf("after the reboot: %q %v", text, err)
	}

	must(t, m.CutPower())
	line.Note(m.Name, "power cut")
	if rebooted := <-reboots; rebooted || m.Running() {
		t.Errorf("after the power cut: rebooted %v, running %v", rebooted, m.Running())
	}
	must(t, m.PowerOn())
	up()
	if text, err := m.Shell(ctx, "cat /etc/kept"); err != nil || text != "kept\n" {
		t.Errorf("after the power cut: %q %v", text, err)
	}
}

// checkHostUntouched checks that a kernel setting of a machine's kubelet does not change the host, although they share
// one kernel.
func checkHostUntouched(t *testing.T, m *Machine) {
	t.Helper()
	for _, setting := range ownSettings {
		path := "/proc/sys/" + setting
		before, err := os.ReadFile(path)
		must(t, err)
		number, err := strconv.Atoi(strings.TrimSpace(string(before)))
		must(t, err)
		other := strconv.Itoa(number ^ 1)
		text, err := m.Shell(t.Context(), "echo "+other+" >"+path+" && cat "+path)
		if err != nil || strings.TrimSpace(text) != other {
			t.Errorf("the machine cannot set %s: %q (%v)", setting, text, err)
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
			t.Errorf("the machine has set %s of the host (%v)", setting, err)
			must(t, os.WriteFile(path, before, 0))
		}
	}
	if text, err := m.Shell(t.Context(), "! cat /proc/sys/kernel/threads-max >/proc/sys/kernel/threads-max"); err != nil {
		t.Errorf("the machine can write what it must not: %v %s", err, text)
	}
}
