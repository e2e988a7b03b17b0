package e2e

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// The API server's name has two addresses, and nothing listens at the first one until the drain has begun. New
// connections still go to the second address, because it has answered: the client does not try all addresses again for
// each connection.
func TestTheAddressThatAnsweredIsTriedFirst(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	const name, first, second = "api.haulout.test", "127.0.0.2", "127.0.0.3"
	w := newWorld(t)
	must(t, w.AddNode(t.Context(), "old", "old"))
	must(t, w.Apply(t.Context(), Deployment("web", 12)))
	must(t, w.Settle(t.Context(), 12))
	must(t, w.AddNode(t.Context(), "new", "new"))
	answers, err := StartProxyAt(second+":0", w.URL)
	must(t, err)
	t.Cleanup(answers.Stop)
	server, err := url.Parse(answers.URL)
	must(t, err)

	identity, err := w.CA.Client(w.User, "system:masters")
	must(t, err)
	access := w.Access(identity)
	access.Server, access.TLSServerName = "https://"+name+":"+server.Port(), "127.0.0.1"
	kubeconfig, err := access.Write(w.Home)
	must(t, err)
	hosts := fmt.Sprintf("%s %s\n%s %s\n", first, name, second, name)
	// The delay makes the client send its requests one after the other: when the second one arrives, the first has been
	// answered.
	answers.Slow(50 * time.Millisecond)
	drain, err := w.StartWith(t.Context(), kubeconfig, withHosts(t, w, haulout, hosts), "drain", w.Node("old"), "--settle=0")
	must(t, err)
	must(t, Until(t.Context(), "it has sent a second request", func() (bool, error) {
		requests, err := w.Requests()
		return len(requests) >= 2, err
	}))
	back, err := StartProxyAt(net.JoinHostPort(first, server.Port()), w.URL)
	must(t, err)
	t.Cleanup(back.Stop)
	before := answers.Used()
	answers.Slow(0)
	result, err := drain.Wait()
	must(t, err)
	if result.Exit != 0 {
		t.Errorf("exit %d\n%s%s", result.Exit, result.Stdout, result.Stderr)
	}
	again := answers.Used() - before
	if back.Used() != 0 || again == 0 {
		t.Errorf("of the new connections %d went to the address that had not answered, and %d to the other", back.Used(), again)
	}
}

// withHosts returns the tool with these lines as its /etc/hosts, in a mount namespace of its own.
func withHosts(t *testing.T, w *World, tool Tool, hosts string) Tool {
	t.Helper()
	unshare := "unshare --mount"
	if os.Geteuid() != 0 {
		unshare = "unshare --user --map-root-user --mount"
	}
	if output, err := exec.Command("sh", "-c", unshare+" true").CombinedOutput(); err != nil {
		cannotRun(t, fmt.Sprintf("a mount namespace cannot be made: %v: %s", err, output))
	}
	file, script := filepath.Join(w.Home, "hosts"), filepath.Join(w.Home, tool.Name+"-with-hosts")
	must(t, os.WriteFile(file, []byte(hosts), 0o644))
	lines := fmt.Sprintf("#!/bin/sh\nexec %s sh -c 'mount --bind \"$0\" /etc/hosts && exec \"$@\"' '%s' '%s' \"$@\"\n",
		unshare, file, tool.Path)
	must(t, os.WriteFile(script, []byte(lines), 0o755))
	return Tool{Name: tool.Name, Path: script}
}
