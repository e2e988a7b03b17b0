package machines

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// The hooks of all four points run as units of systemd. One of them still runs when its agent is killed. The next agent
// waits until it has ended, and then continues. (If the hook ends while no agent runs, the next agent runs it once
// more.) A unit of the machine that fails at each boot does not keep the node from being uncordoned.
func TestHooks(t *testing.T) {
	notInCore(t)
	const points, begun, goOn = "/var/lib/points", "/run/hook-begun", "/run/hook-go-on"
	f := NewFleet(t, needs, 1, func(m *Machine) error {
		if err := m.AddUnit("broken", "[Service]\nType=oneshot\nExecStart=false\n"); err != nil {
			return err
		}
		hook := "#!/bin/sh\necho \"$HAULOUT_POINT\" >>" + points + "\n"
		waiting := hook + "touch " + begun + "\nuntil [ -e " + goOn + " ]; do sleep 0.1; done\n"
		for _, point := range []string{"after-drain", "after-boot", "before-release"} {
			if err := m.writeAs("/etc/haulout/hooks.d/"+point+"/50-note", []byte(hook), 0o755); err != nil {
				return err
			}
		}
		return m.writeAs("/etc/haulout/hooks.d/before-drain/50-note", []byte(waiting), 0o755)
	})
	m, ctx := f.Machines[0], t.Context()
	must(t, f.InstallAll(ctx, "slots: none\n"))
	boot, err := m.BootID(ctx)
	must(t, err)
	must(t, m.NeedsReboot(ctx))
	f.Line.Note(m.Name, "/run/reboot-required")
	must(t, f.Until(ctx, 2*time.Minute, "the first hook runs", func() (bool, error) {
		_, err := m.Run(ctx, "test", "-e", begun)
		return err == nil, err
	}))
	must(t, f.UntilReason(ctx, time.Minute, m.Name, "WaitingForHook"))
	f.killAgent(t, m)
	must(t, f.UntilReason(ctx, time.Minute, m.Name, "WaitingForHook"))
	_, err = m.Run(ctx, "touch", goOn)
	must(t, err)
	f.Line.Note(m.Name, "the hook may end")
	_, err = f.UntilBackInService(ctx, updateLimit, m, boot)
	must(t, err)
	text, err := m.Run(ctx, "cat", points)
	must(t, err)
	if got := strings.Join(slices.Compact(strings.Fields(text)), " "); got != "before-drain after-drain after-boot before-release" {
		t.Errorf("hooks have run at %s", got)
	}
	f.checkOneUpdate(t, m.Name)
	f.checkFailed(t, m, "broken.service")
}
