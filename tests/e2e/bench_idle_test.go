package e2e

import (
	"fmt"
	"net/http/httptest"
	"os"
	"testing"
	"time"
)

// Limits of an agent that has nothing to do.
const (
	idleRequestsPerMinute = 0.5
	idleWakeupsPerSecond  = 0.2
	// Private memory in bytes: what becomes free when the process ends. RSS also counts the pages of programs and
	// libraries, which the agents of this test share, and which the kernel drops by itself when it needs the memory.
	idlePrivate = 4e6
)

// idleAgent is an agent whose idle time is measured. Each of them was installed in another way, which `title` names.
type idleAgent struct {
	title   string
	machine *Machine
	manager *serviceManager
	started time.Time
	atStart Footprint
}

// TestBenchIdle measures agents that have nothing to do, installed with the shipped manifests: no reboot is needed, no
// client reads the metrics, and the kubelet reports every five minutes. The requests of the first minute are shown
// separately. The test fails if a promised number is exceeded. The numbers of requests come from the API server's audit
// log, those of wake-ups and memory from the kernel.
//
// HAULOUT_BENCH=1 runs it; HAULOUT_BENCH_SETTLE (1m) and HAULOUT_BENCH_IDLE (10m) set the times.
func TestBenchIdle(t *testing.T) {
	if os.Getenv("HAULOUT_BENCH") != "1" {
		t.Skip("HAULOUT_BENCH=1 runs the benchmark")
	}
	needHaulout(t)
	settle, length := benchTime(t, "HAULOUT_BENCH_SETTLE", time.Minute), benchTime(t, "HAULOUT_BENCH_IDLE", 10*time.Minute)
	in := install(t)
	w, err := in.NewWorld(t.Context())
	must(t, err)
	t.Cleanup(w.Close)
	agents := startIdleAgents(t, in, w)

	time.Sleep(time.Until(agents[len(agents)-1].started.Add(settle)))
	from := time.Now()
	for _, agent := range agents {
		agent.atStart, err = agent.machine.Footprint()
		must(t, err)
	}
	time.Sleep(length)
	to := time.Now()
	fmt.Println("| idle agent | requests when it starts | requests | per minute | wake-ups per second | CPU | RSS | PSS | private | peak RSS |")
	fmt.Println("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
	for _, agent := range agents {
		agent.report(t, in.ControlPlane, from, to)
	}
}

func startIdleAgents(t *testing.T, in *Installed, w *World) []*idleAgent {
	t.Helper()
	lock := httptest.NewServer(&fleetLock{})
	t.Cleanup(lock.Close)
	ports, err := freePorts(4)
	must(t, err)
	var agents []*idleAgent
	add := func(short, title, watchdog string, kubelet bool, flags ...string) {
		agent := &idleAgent{title: title, machine: newMachine(t, w, short)}
		var access string
		var env []string
		if kubelet {
			access = w.kubeletAccess(t, agent.machine.Node)
		} else {
			access = in.podAccess(t, w, agent.machine.Node)
		}
		if watchdog != "" {
			agent.manager = newServiceManager(t, agent.machine.Root, watchdog)
			env = agent.manager.Env
		}
		agent.started = time.Now()
		must(t, agent.machine.StartAgent(haulout, env, append([]string{
			"--kubeconfig", access, "--metrics-address", fmt.Sprintf("127.0.0.1:%d", ports[len(agents)]),
		}, flags...)...))
		agents = append(agents, agent)
	}
	add("pod", "pod, Debian", "", false, "--backend", "debian")
	add("watchdog", "pod, Debian, watchdog of 60 s", "60s", false, "--backend", "debian")
	add("flatcar", "pod, Flatcar", "", false, "--backend", "flatcar")
	add("metal", "unit with kubelet credentials and FleetLock, Debian, watchdog of 2 min", "2m", true,
		"--backend", "debian", "--slots=fleetlock", "--fleetlock-url", lock.URL)
	return agents
}

func (a *idleAgent) report(t *testing.T, c *ControlPlane, from, to time.Time) {
	t.Helper()
	now, err := a.machine.Footprint()
	must(t, err)
	var start, idle []AuditEvent
	for _, e := range c.agentRequests(t, a.started, to) {
		if e.Node() != a.machine.Node {
			continue
		}
		if e.Received.Before(from) {
			start = append(start, e)
		} else {
			idle = append(idle, e)
		}
	}
	spent := now.Since(a.atStart)
	requests := float64(len(idle)) / to.Sub(from).Minutes()
	wakeups := float64(spent.Wakeups) / to.Sub(from).Seconds()
	fmt.Printf("| %s | %d | %d | %.2f | %.3f | %.2f s | %.1f MB | %.1f MB | %.1f MB | %.1f MB |\n", a.title, len(start),
		len(idle), requests, wakeups, spent.CPU.Seconds(), mb(now.RSS), mb(now.PSS), mb(now.Private), mb(now.Peak))
	t.Logf("%s: at its start %s; idle %s", a.title, byKind(start), byKind(idle))
	node, err := a.machine.world.Client.CoreV1().Nodes().Get(t.Context(), a.machine.Node, getOptions)
	must(t, err)
	if state := node.Labels["haulout.dev/state"]; state != "idle" {
		t.Errorf("%s is %s (%s), not idle\n%s", a.title, state, node.Annotations["haulout.dev/message"], a.machine.Log())
	}
	if a.manager != nil && a.manager.fed.Load() == 0 {
		t.Errorf("%s: nobody feeds the watchdog", a.title)
	}
	if len(start) == 0 {
		t.Errorf("%s: the audit log does not know its requests", a.title)
	}
	if requests > idleRequestsPerMinute || wakeups > idleWakeupsPerSecond || now.Private > idlePrivate {
		t.Errorf("%s: more than %.1f requests per minute, %.1f wake-ups per second or %.0f MB of private memory", a.title,
			idleRequestsPerMinute, idleWakeupsPerSecond, idlePrivate/1e6)
	}
}
