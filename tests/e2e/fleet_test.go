package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newFleet returns three machines with a workload of six pods. Its budget allows one disruption at a time.
func newFleet(t *testing.T, c *Cluster) *Fleet {
	t.Helper()
	return newFleetWith(t, c, Deployment("web", 6, Annotate(TerminatesAfter, "200ms")), Budget("web", "1"))
}

// newFleetWith returns three machines with six pods `web`, of which five must be Ready at any time.
func newFleetWith(t *testing.T, c *Cluster, objects ...any) *Fleet {
	t.Helper()
	return newFleetOf(t, c, 6, 5, objects...)
}

// newFleetOf returns three machines with so many pods `web`, of which `available` must be Ready at any time.
func newFleetOf(t *testing.T, c *Cluster, pods, available int, objects ...any) *Fleet {
	t.Helper()
	needHaulout(t)
	w, err := c.NewWorld(t.Context())
	must(t, err)
	t.Cleanup(w.Close)
	fleet, err := w.NewFleet(t.Context(), "web", available, 1, "a", "b", "c")
	if fleet != nil {
		t.Cleanup(fleet.CloseFleet)
	}
	must(t, err)
	must(t, w.Apply(t.Context(), objects...))
	must(t, w.Settle(t.Context(), pods))
	t.Cleanup(func() {
		for _, violation := range fleet.Violations() {
			t.Error(violation)
		}
		if t.Failed() {
			t.Log(fleet.Story())
		}
	})
	return fleet
}

// flags returns the flags that all agents of these tests have.
func (f *Fleet) flags(more ...string) []string {
	return append([]string{"--pool-label", poolLabel, "--backend", "flatcar", "--settle", "500ms"}, more...)
}

func (f *Fleet) startAgents(t *testing.T, more ...string) {
	t.Helper()
	for _, machine := range f.Machines {
		must(t, machine.StartAgent(haulout, []string{"KUBECONFIG=" + f.Kubeconfig},
			f.flags(append([]string{"--namespace", f.Name, "--authority=serviceaccount"}, more...)...)...))
	}
}

func (f *Fleet) offerAll(t *testing.T, version string) {
	t.Helper()
	for _, machine := range f.Machines {
		must(t, machine.Offer(version))
	}
}

// expectUpdated waits until all nodes are updated and all slots are free, and checks that each machine has rebooted so
// many times.
func (f *Fleet) expectUpdated(t *testing.T, version string, boots int, ns string) {
	t.Helper()
	must(t, f.UntilUpdated(t.Context(), version, 2*time.Minute))
	for _, machine := range f.Machines {
		if machine.Boots() != boots {
			t.Errorf("%s was booted %d times, not %d", machine.Node, machine.Boots(), boots)
		}
		if machine.Ready() {
			t.Errorf("%s still shows that it is ready for reboot", machine.Node)
		}
	}
	if ns == "" {
		return
	}
	must(t, Until(t.Context(), "all turns are free", func() (bool, error) {
		leases, err := f.Client.CoordinationV1().Leases(ns).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(leases.Items) == 0, err
	}))
}

// Two nodes might be updated at a time, but the waves allow one each, and the third node is alone then. The fleet checks
// that only one is out at a time.
func TestFleetInWaves(t *testing.T) {
	t.Parallel()
	f := newFleet(t, cluster)
	f.startAgents(t, "--max-unavailable", "2", "--ramp", "1,1", "--settle", "15s")
	// The others get the update when the first one drains. If they asked for the slot at the same moment, they would show
	// until their next look, half a minute later, that another node has just taken it.
	must(t, f.Machines[0].Offer("1.1"))
	must(t, Until(t.Context(), "the first node drains", func() (bool, error) {
		node, err := f.Client.CoreV1().Nodes().Get(t.Context(), f.Machines[0].Node, getOptions)
		return err == nil && node.Labels["haulout.dev/state"] == "draining", err
	}))
	for _, machine := range f.Machines[1:] {
		must(t, machine.Offer("1.1"))
	}
	must(t, UntilWithin(t.Context(), 2*time.Minute, "a node waits for its wave", func() (bool, error) {
		nodes, err := f.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		return slices.ContainsFunc(nodes.Items, func(node corev1.Node) bool {
			return node.Labels["haulout.dev/reason"] == "WaitingForWave" &&
				strings.Contains(node.Annotations["haulout.dev/message"], " of 2 of version 1.1: ")
		}), nil
	}))
	f.expectUpdated(t, "1.1", 1, f.Name)
}

// Three agents on a real control plane update three nodes, one after the other, and report it: on their Nodes, by
// Events and by metrics.
func TestFleetUpdates(t *testing.T) {
	t.Parallel()
	f := newFleet(t, cluster)
	ports, err := freePorts(len(f.Machines))
	must(t, err)
	for i, machine := range f.Machines {
		must(t, machine.StartAgent(haulout, []string{"KUBECONFIG=" + f.Kubeconfig}, f.flags("--namespace", f.Name,
			"--authority=serviceaccount", "--metrics-address", fmt.Sprintf("127.0.0.1:%d", ports[i]))...))
	}
	f.offerAll(t, "1.1")
	f.expectUpdated(t, "1.1", 1, f.Name)
	for i, machine := range f.Machines {
		states := f.States(machine.Node)
		for _, state := range []string{"idle", "draining", "rebooting", "verifying"} {
			if !slices.Contains(states, state) {
				t.Errorf("%s never showed %s: %v", machine.Node, state, states)
			}
		}
		expectTold(t, f, machine, fmt.Sprintf("http://127.0.0.1:%d", ports[i]))
	}
}

func expectTold(t *testing.T, f *Fleet, machine *Machine, url string) {
	t.Helper()
	node, err := f.Client.CoreV1().Nodes().Get(t.Context(), machine.Node, getOptions)
	must(t, err)
	for _, condition := range node.Status.Conditions {
		if strings.HasPrefix(condition.Message, "haulout: ") {
			t.Errorf("condition %s of %s is %s after its update", condition.Type, node.Name, condition.Status)
		}
	}
	for _, kind := range []string{"DrainInProgress", "Drained", "MaintenanceInProgress"} {
		if !f.Told(node.Name, kind) {
			t.Errorf("%s never showed condition %s", node.Name, kind)
		}
	}
	if required := node.Labels["haulout.dev/reboot-required"]; required != "false" {
		t.Errorf("reboot-required of %s is %q after its update", node.Name, required)
	}
	must(t, Until(t.Context(), "Events tell of "+node.Name, func() (bool, error) {
		events, err := f.Client.EventsV1().Events("default").List(t.Context(),
			metav1.ListOptions{FieldSelector: "regarding.kind=Node,regarding.name=" + node.Name})
		if err != nil {
			return false, err
		}
		reasons := []string{}
		for _, event := range events.Items {
			reasons = append(reasons, event.Reason)
		}
		return slices.Contains(reasons, "Draining") && slices.Contains(reasons, "Rebooting"),
			fmt.Errorf("so far: %v", reasons)
	}))
	for path, want := range map[string]string{
		"/metrics": fmt.Sprintf(`haulout_state{node="%s",state="idle"} 1`, node.Name), "/healthz": "", "/readyz": "",
	} {
		answer, err := http.Get(url + path)
		must(t, err)
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		must(t, err)
		if answer.StatusCode != http.StatusOK || !strings.Contains(string(body), want) {
			t.Errorf("%s: %d, without %q\n%s", path, answer.StatusCode, want, body)
		}
	}
}

// P7: the test kills an agent whenever its node shows another state, alternately by SIGKILL and SIGTERM. All nodes are
// updated all the same.
func TestFleetSurvivesKills(t *testing.T) {
	t.Parallel()
	f := newFleet(t, cluster)
	f.startAgents(t)
	f.offerAll(t, "1.1")
	seen := make([]int, len(f.Machines))
	for kill := range 20 {
		var victim *Machine
		must(t, Until(t.Context(), "a node shows another state", func() (bool, error) {
			for i, machine := range f.Machines {
				if states := len(f.States(machine.Node)); states > seen[i] {
					seen[i], victim = states, machine
					return true, nil
				}
			}
			return false, nil
		}))
		must(t, victim.RestartAgent([]syscall.Signal{syscall.SIGKILL, syscall.SIGTERM}[kill%2]))
	}
	f.expectUpdated(t, "1.1", 1, f.Name)
}

// fleetLock is a server of the FleetLock protocol with one slot.
type fleetLock struct {
	mu     sync.Mutex
	holder string
	taken  int
}

func (l *fleetLock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		ClientParams struct{ ID, Group string } `json:"client_params"`
	}
	if r.Header.Get("fleet-lock-protocol") != "true" || json.NewDecoder(r.Body).Decode(&body) != nil {
		http.Error(w, `{"kind":"bad_request","value":"no FleetLock request"}`, http.StatusBadRequest)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	id := body.ClientParams.ID
	switch {
	case r.URL.Path == "/v1/pre-reboot" && (l.holder == "" || l.holder == id):
		if l.holder == "" {
			l.taken++
		}
		l.holder = id
	case r.URL.Path == "/v1/pre-reboot":
		http.Error(w, `{"kind":"failed_lock","value":"another machine holds the lock"}`, http.StatusConflict)
	case r.URL.Path == "/v1/steady-state" && l.holder == id:
		l.holder = ""
	}
}

// The agents have only the certificates of their kubelets, and take slots from a FleetLock server.
func TestFleetWithKubeletCredentials(t *testing.T) {
	t.Parallel()
	f := newFleet(t, cluster)
	lock := &fleetLock{}
	server := httptest.NewServer(lock)
	t.Cleanup(server.Close)
	for _, machine := range f.Machines {
		identity, err := f.CA.Client("system:node:"+machine.Node, "system:nodes")
		must(t, err)
		kubeconfig, err := f.Access(identity).Write(f.Home)
		must(t, err)
		must(t, machine.StartAgent(haulout, nil, f.flags("--kubeconfig", kubeconfig, "--slots=fleetlock",
			"--fleetlock-url", server.URL)...))
	}
	f.offerAll(t, "1.1")
	f.expectUpdated(t, "1.1", 1, "")
	must(t, Until(t.Context(), "the lock is free", func() (bool, error) {
		lock.mu.Lock()
		defer lock.mu.Unlock()
		return lock.holder == "" && lock.taken == len(f.Machines), fmt.Errorf("%q, taken %d times", lock.holder, lock.taken)
	}))
}

// expectFleetUpdates updates three further nodes. Their agents run as the pods of the shipped DaemonSet, each with the
// token of its pod.
func expectFleetUpdates(t *testing.T, in *Installed, authority string) {
	t.Helper()
	f := newFleet(t, in.Cluster)
	tainted := f.watchTaints(t)
	f.startPods(t, in, "--waiting-taint", "example.com/update-waits=yes")
	f.offerAll(t, "1.1")
	f.expectUpdated(t, "1.1", 1, "")
	f.expectAuthority(t, authority)
	f.expectTaints(t, tainted(), authority == "policies")
}

// watchTaints starts to watch the Nodes of the fleet. The returned function ends that, and returns for each Node how often
// an agent has added the taint of a node that waits, always together with its mark.
func (f *Fleet) watchTaints(t *testing.T) func() map[string]int {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	watch, err := f.Client.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{})
	must(t, err)
	seen := make(chan map[string]int, 1)
	go func() {
		added, before := map[string]int{}, map[string]bool{}
		for event := range watch.ResultChan() {
			node, isNode := event.Object.(*corev1.Node)
			if !isNode {
				continue
			}
			now := waits(node)
			if now && !before[node.Name] {
				added[node.Name]++
			}
			before[node.Name] = now
		}
		seen <- added
	}()
	return func() map[string]int {
		stop()
		watch.Stop()
		return <-seen
	}
}

// waits reports whether the Node has the taint of a node that waits, and the mark that names it with its time.
func waits(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Key == "example.com/update-waits" && taint.TimeAdded != nil &&
			node.Annotations[waitingMark] == "example.com/update-waits=yes:PreferNoSchedule@"+
				taint.TimeAdded.UTC().Format(time.RFC3339)
	})
}

// expectTaints fails unless each node of the fleet has had the taint, if its agent may set it, and none has it now.
func (f *Fleet) expectTaints(t *testing.T, added map[string]int, may bool) {
	t.Helper()
	for _, machine := range f.Machines {
		node, err := f.Client.CoreV1().Nodes().Get(t.Context(), machine.Node, getOptions)
		must(t, err)
		left := slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
			return taint.Key == "example.com/update-waits"
		})
		if left || node.Annotations[waitingMark] != "" || (added[machine.Node] > 0) != may {
			t.Errorf("%s: taint added %d times, left: %v, mark %q\n%s", machine.Node, added[machine.Node], left,
				node.Annotations[waitingMark], machine.Log())
		}
	}
}

// startPods starts the agents with the tokens of the shipped DaemonSet's pods.
func (f *Fleet) startPods(t *testing.T, in *Installed, more ...string) {
	t.Helper()
	for _, machine := range f.Machines {
		agent, pod := in.agentOn(t, machine.Node), in.agentPod(t, machine.Node)
		token := filepath.Join(f.Home, machine.Node+".token")
		must(t, agent.WriteTo(t.Context(), pod, token))
		kubeconfig, err := Access{Server: f.URL, CA: f.CA.PEM, TokenFile: token}.Write(f.Home)
		must(t, err)
		must(t, machine.StartAgent(haulout, nil, f.flags(append(more, "--kubeconfig", kubeconfig)...)...))
	}
}

func (f *Fleet) expectAuthority(t *testing.T, authority string) {
	t.Helper()
	for _, machine := range f.Machines {
		if !strings.Contains(machine.Log(), "authority="+authority) {
			t.Errorf("%s works with another authority than %s\n%s", machine.Node, authority, machine.Log())
		}
	}
}
