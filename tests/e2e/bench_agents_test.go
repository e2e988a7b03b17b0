package e2e

import (
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// benchTime is a duration that the environment may set, to try a measurement out.
func benchTime(t *testing.T, variable string, otherwise time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	value, err := time.ParseDuration(text)
	if err != nil || value <= 0 {
		t.Fatalf("%s=%s is no duration like 90s", variable, text)
	}
	return value
}

// podAccess is a kubeconfig with the token of the DaemonSet's pod on a machine's node. Unlike a test's, the token is not
// renewed all the time: it is good for an hour.
func (in *Installed) podAccess(t *testing.T, w *World, node string) string {
	t.Helper()
	token := filepath.Join(w.Home, node+".token")
	must(t, os.WriteFile(token, []byte(in.agentOn(t, node).token), 0o600))
	kubeconfig, err := Access{Server: w.URL, CA: w.CA.PEM, TokenFile: token}.Write(w.Home)
	must(t, err)
	return kubeconfig
}

// kubeletAccess is a kubeconfig with the certificate of a node's kubelet.
func (w *World) kubeletAccess(t *testing.T, node string) string {
	t.Helper()
	identity, err := w.CA.Client("system:node:"+node, "system:nodes")
	must(t, err)
	kubeconfig, err := w.Access(identity).Write(w.Home)
	must(t, err)
	return kubeconfig
}

// newMachine is a node with a machine below, and with a kubelet that reports every five minutes, as they do when nothing
// changes.
func newMachine(t *testing.T, w *World, short string) *Machine {
	t.Helper()
	must(t, w.AddNode(t.Context(), short, "worker"))
	machine, err := w.NewMachine(w.Node(short))
	must(t, err)
	t.Cleanup(machine.Close)
	go func() {
		for {
			select {
			case <-t.Context().Done():
				return
			case <-time.After(5 * time.Minute):
				_ = machine.report(t.Context(), corev1.ConditionTrue, "")
			}
		}
	}()
	return machine
}

// Footprint of the agent that runs now.
func (m *Machine) Footprint() (Footprint, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return FootprintOf(m.agent.cmd.Process.Pid)
}

// serviceManager is the end of NOTIFY_SOCKET that counts the watchdog's food.
type serviceManager struct {
	Env []string
	fed atomic.Int64
}

func newServiceManager(t *testing.T, dir, watchdog string) *serviceManager {
	t.Helper()
	limit, err := time.ParseDuration(watchdog)
	must(t, err)
	path := filepath.Join(dir, "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	must(t, err)
	t.Cleanup(func() { socket.Close() })
	s := &serviceManager{Env: []string{
		"NOTIFY_SOCKET=" + path, fmt.Sprintf("WATCHDOG_USEC=%d", limit.Microseconds()),
	}}
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := socket.Read(buffer)
			if err != nil {
				return
			}
			if strings.Contains(string(buffer[:n]), "WATCHDOG=1") {
				s.fed.Add(1)
			}
		}
	}()
	return s
}

// agentRequests are the requests that agents sent within a time; one that lasts, as a watch does, counts where it began.
func (c *ControlPlane) agentRequests(t *testing.T, from, to time.Time) []AuditEvent {
	t.Helper()
	events, err := c.Audit.Select(func(e AuditEvent) bool {
		return strings.HasPrefix(e.UserAgent, "haulout/") && !e.Received.Before(from) && e.Received.Before(to)
	})
	must(t, err)
	return events
}

// byKind says how many of what, the most frequent first.
func byKind(events []AuditEvent) string {
	counts := map[string]int{}
	for _, e := range events {
		counts[e.Kind()]++
	}
	kinds := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	var words []string
	for _, kind := range kinds {
		words = append(words, fmt.Sprintf("%d %s", counts[kind], kind))
	}
	return strings.Join(words, ", ")
}

// peakPerSecond is the largest number of requests that arrived within one second of the clock.
func peakPerSecond(events []AuditEvent) int {
	counts := map[int64]int{}
	peak := 0
	for _, e := range events {
		second := e.Received.Unix()
		counts[second]++
		peak = max(peak, counts[second])
	}
	return peak
}

func mb(bytes int64) float64 { return float64(bytes) / 1e6 }
