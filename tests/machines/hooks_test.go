package machines

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The hooks of all four points run as units of systemd. One of them still runs when its agent is killed. The next agent
// waits until it has ended, and then continues. (If the hook ends while no agent runs, the next agent runs it once
// more.) A unit of the machine that fails at each boot does not keep the node from being uncordoned. The package's hook
// `notify` runs at all points, too: one chat is told of each, and another one, which does not exist, changes nothing.
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
	chat, err := startChat(t)
	must(t, err)
	must(t, chat.tellBy(ctx, m))
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
	chat.checkTold(t, m)
	if lines, err := m.Run(ctx, "journalctl", "--quiet", "--output=cat", "-t", "haulout-notify"); err != nil || lines == "" {
		t.Errorf("the journal does not say that a message was not sent: %v", err)
	}
	f.checkOneUpdate(t, m.Name)
	f.checkFailed(t, m, "broken.service")
}

// chat is a server that takes the messages of the hook `notify`.
type chat struct {
	url string

	mu   sync.Mutex
	told []map[string]any
}

func startChat(t *testing.T) (*chat, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(controlPlaneAddress.String(), "0"))
	if err != nil {
		return nil, err
	}
	c := &chat{url: "http://" + listener.Addr().String() + "/chat"}
	server := &http.Server{Handler: http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		message := map[string]any{}
		if err := json.NewDecoder(request.Body).Decode(&message); err != nil {
			answer.WriteHeader(http.StatusBadRequest)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.told = append(c.told, message)
	})}
	t.Cleanup(func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }()
	return c, nil
}

// tellBy switches the hook on, on a machine with the package, as docs/hooks.md says.
func (c *chat) tellBy(ctx context.Context, m *Machine) error {
	const nobody = "kind = slack\nurl = http://10.10.0.1:1/nobody\nretries = 0\n"
	if err := m.WriteSecret("/etc/haulout/notify.d/nobody.conf", []byte(nobody)); err != nil {
		return err
	}
	if err := m.WriteSecret("/etc/haulout/notify.conf", []byte("kind = json\nurl = "+c.url+"\n")); err != nil {
		return err
	}
	_, err := m.Shell(ctx, `cd /etc/haulout && for point in before-drain after-drain after-boot before-release; do
  mkdir -p hooks.d/$point && ln -s /usr/share/haulout/hooks/notify hooks.d/$point/90-notify || exit
done`)
	return err
}

// checkTold checks that the chat was told of each point, in their order. A point may be told twice.
func (c *chat) checkTold(t *testing.T, m *Machine) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var points []string
	for _, message := range c.told {
		points = append(points, fmt.Sprint(message["point"]))
		if message["node"] != m.Name {
			t.Errorf("a message is about another node: %v", message)
		}
	}
	if got := strings.Join(slices.Compact(points), " "); got != "before-drain after-drain after-boot before-release" {
		t.Errorf("the chat was told of %s", got)
	}
}
