package e2e

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// hundred is many agents and one API server. Each agent is a process, with its own node, host and pod token.
type hundred struct {
	*Installed
	world    *World
	machines []*Machine
	access   []string // kubeconfigs
}

// TestBenchHundred measures how much the agents and the API server load each other: when all agents start at once,
// while nothing happens, during one update, when the API server is killed and restarted, and when all agents want a
// slot. HAULOUT_BENCH=1 runs it; HAULOUT_BENCH_AGENTS (100), HAULOUT_BENCH_SETTLE (1m) and HAULOUT_BENCH_FLEET (5m) set
// its size.
func TestBenchHundred(t *testing.T) {
	if os.Getenv("HAULOUT_BENCH") != "1" {
		t.Skip("HAULOUT_BENCH=1 runs the benchmark")
	}
	needHaulout(t)
	count := 100
	if text := os.Getenv("HAULOUT_BENCH_AGENTS"); text != "" {
		var err error
		if count, err = strconv.Atoi(text); err != nil || count < 2 {
			t.Fatalf("HAULOUT_BENCH_AGENTS=%s is no number of agents", text)
		}
	}
	settle, length := benchTime(t, "HAULOUT_BENCH_SETTLE", time.Minute), benchTime(t, "HAULOUT_BENCH_FLEET", 5*time.Minute)
	h := newHundred(t, count)
	h.measure(t, fmt.Sprintf("no agent, %v", settle), settle, nil)
	h.measure(t, fmt.Sprintf("all start at once, %v", settle), settle, h.startAll)
	h.untilAllIdle(t)
	h.measure(t, fmt.Sprintf("idle, %v", length), length, nil)
	h.oneUpdate(t)
	h.measure(t, fmt.Sprintf("the API server is killed and comes back, %v", settle), settle, func(t *testing.T) {
		must(t, h.Kill(apiServer))
		must(t, h.Restart(t.Context(), apiServer))
	})
	h.untilAllIdle(t)
	h.allWant(t, settle)
}

func newHundred(t *testing.T, count int) *hundred {
	t.Helper()
	in := install(t)
	w, err := in.NewWorld(t.Context())
	must(t, err)
	t.Cleanup(w.Close)
	h := &hundred{Installed: in, world: w}
	for i := range count {
		h.machines = append(h.machines, newMachine(t, w, fmt.Sprintf("n%03d", i)))
	}
	for _, machine := range h.machines {
		h.access = append(h.access, h.podAccess(t, w, machine.Node))
	}
	return h
}

func (h *hundred) startAll(t *testing.T) {
	t.Helper()
	ports, err := freePorts(len(h.machines))
	must(t, err)
	for i, machine := range h.machines {
		must(t, machine.StartAgent(haulout, nil, "--kubeconfig", h.access[i], "--pool-label", poolLabel,
			"--backend", "flatcar", "--metrics-address", fmt.Sprintf("127.0.0.1:%d", ports[i])))
	}
}

// agents returns what all agents together have used so far.
func (h *hundred) agents(t *testing.T) (sum Footprint) {
	t.Helper()
	for _, machine := range h.machines {
		machine.mu.Lock()
		running := machine.agent != nil
		machine.mu.Unlock()
		if !running {
			continue
		}
		one, err := machine.Footprint()
		must(t, err)
		sum = sum.Plus(one)
	}
	return sum
}

func (h *hundred) server(t *testing.T) Footprint {
	t.Helper()
	now, err := FootprintOf(h.ControlPlane.server(apiServer).cmd.Process.Pid)
	must(t, err)
	return now
}

// measure runs `act` and prints what agents and server used from its beginning until `length` has passed.
func (h *hundred) measure(t *testing.T, title string, length time.Duration, act func(*testing.T)) []AuditEvent {
	t.Helper()
	from, agents, server := time.Now(), h.agents(t), h.server(t)
	if act != nil {
		act(t)
	}
	after := h.server(t)
	if after.CPU < server.CPU { // the server was replaced by another process
		server = Footprint{}
	}
	time.Sleep(time.Until(from.Add(length)))
	to := time.Now()
	requests := h.agentRequests(t, from, to)
	agents, server = h.agents(t).Since(agents), h.server(t).Since(server)
	seconds := to.Sub(from).Seconds()
	fmt.Printf("%s:\n  requests: %d, %.2f per second, at most %d in one second: %s\n", title, len(requests),
		float64(len(requests))/seconds, peakPerSecond(requests), byKind(requests))
	fmt.Printf("  API server: %.1f%% of a processor, RSS %.0f MB\n", 100*server.CPU.Seconds()/seconds, mb(server.RSS))
	fmt.Printf("  all agents: %.2f%% of a processor, %.2f wake-ups per second, RSS %.0f MB, PSS %.0f MB, private %.0f MB\n",
		100*agents.CPU.Seconds()/seconds, float64(agents.Wakeups)/seconds, mb(agents.RSS), mb(agents.PSS),
		mb(agents.Private))
	return requests
}

// states returns the number of nodes in each state.
func (h *hundred) states(t *testing.T) map[string]int {
	t.Helper()
	list, err := h.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{
		LabelSelector: labels.SelectorFromSet(labels.Set{poolLabel: h.world.Name}).String(),
	})
	must(t, err)
	counts := map[string]int{}
	for _, node := range list.Items {
		counts[node.Labels["haulout.dev/state"]]++
	}
	return counts
}

func (h *hundred) untilAllIdle(t *testing.T) {
	t.Helper()
	from := time.Now()
	must(t, UntilWithin(t.Context(), 10*time.Minute, "all agents are idle", func() (bool, error) {
		states := h.states(t)
		if states["idle"] != len(h.machines) {
			time.Sleep(time.Second)
		}
		return states["idle"] == len(h.machines), fmt.Errorf("%v", states)
	}))
	fmt.Printf("  all are idle %.0f s later\n", time.Since(from).Seconds())
}

// oneUpdate updates one node, and prints how soon that node has its slot and how many requests the other agents send
// meanwhile.
func (h *hundred) oneUpdate(t *testing.T) {
	t.Helper()
	from, chosen := time.Now(), h.machines[len(h.machines)/2]
	must(t, chosen.Offer("1.1"))
	var turn time.Duration
	must(t, UntilWithin(t.Context(), 2*time.Minute, "one node is updated", func() (bool, error) {
		node, err := h.Client.CoreV1().Nodes().Get(t.Context(), chosen.Node, getOptions)
		if err != nil {
			return false, err
		}
		state := node.Labels["haulout.dev/state"]
		if turn == 0 && state == "draining" {
			turn = time.Since(from)
		}
		return chosen.Version() == "1.1" && state == "idle" && turn != 0, fmt.Errorf("it is %s", state)
	}))
	whole := time.Since(from)
	others := 0
	requests := h.agentRequests(t, from, time.Now())
	for _, e := range requests {
		if e.Node() != chosen.Node {
			others++
		}
	}
	fmt.Printf("one of them is updated: %.1f s after the offer it holds its turn, after %.1f s it is done; "+
		"%d requests of its own, %d of all others\n", turn.Seconds(), whole.Seconds(), len(requests)-others, others)
}

// allWant offers an update to all machines. It prints what it costs when all agents begin to wait for a slot, and then
// what each update costs.
func (h *hundred) allWant(t *testing.T, length time.Duration) {
	t.Helper()
	h.measure(t, fmt.Sprintf("all want a turn and get in line, %v", length), length, func(t *testing.T) {
		for _, machine := range h.machines {
			must(t, machine.Offer("1.2"))
		}
	})
	before := h.updated("1.2")
	requests := h.measure(t, fmt.Sprintf("they take turns, %v", length), length, nil)
	turns := h.updated("1.2") - before
	if turns == 0 {
		t.Fatalf("nobody was updated: %v", h.states(t))
	}
	fmt.Printf("  %d of them were updated, %d wait: %.0f requests of all agents for each update\n", turns,
		h.states(t)["waiting"], float64(len(requests))/float64(turns))
}

func (h *hundred) updated(version string) (count int) {
	for _, machine := range h.machines {
		if machine.Version() == version {
			count++
		}
	}
	return count
}
