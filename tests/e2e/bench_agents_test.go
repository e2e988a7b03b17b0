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

// benchTime returns the duration in an environment variable, which makes a benchmark shorter or longer, or the default.
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

// podAccess returns a kubeconfig with the token of the DaemonSet's pod on this node. In other tests such a token is
// renewed all the time; this one is valid for an hour and is not renewed.
func (in *Installed) podAccess(t *testing.T, w *World, node string) string {
	t.Helper()
	token := filepath.Join(w.Home, node+".token")
	must(t, os.WriteFile(token, []byte(in.agentOn(t, node).token), 0o600))
	kubeconfig, err := Access{Server: w.URL, CA: w.CA.PEM, TokenFile: token}.Write(w.Home)
	must(t, err)
	return kubeconfig
}

// kubeletAccess returns a kubeconfig with the certificate of a node's kubelet.
func (w *World) kubeletAccess(t *testing.T, node string) string {
	t.Helper()
	identity, err := w.CA.Client("system:node:"+node, "system:nodes")
	must(t, err)
	kubeconfig, err := w.Access(identity).Write(w.Home)
	must(t, err)
	return kubeconfig
}

// newMachine returns a machine with its Node. Its kubelet reports every five minutes, as real kubelets do when nothing
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

// Footprint returns what the running agent has used.
func (m *Machine) Footprint() (Footprint, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return FootprintOf(m.agent.cmd.Process.Pid)
}

// serviceManager listens at NOTIFY_SOCKET, as systemd does, and counts the watchdog messages.
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

// agentRequests returns the requests that agents sent between two times. A request that lasts, as a watch does, counts
// at its beginning.
func (c *ControlPlane) agentRequests(t *testing.T, from, to time.Time) []AuditEvent {
	t.Helper()
	events, err := c.Audit.Select(func(e AuditEvent) bool {
		return strings.HasPrefix(e.UserAgent, "haulout/") && !e.Received.Before(from) && e.Received.Before(to)
	})
	must(t, err)
	return events
}

// byKind returns the number of requests of each kind as text, the most frequent kind first.
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

// peakPerSecond returns the largest number of requests that arrived within one second of the clock.
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
