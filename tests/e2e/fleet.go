package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Fleet is a set of machines with agents. It watches Nodes and pods and records violations of the promises: too few
// Ready pods, more nodes unschedulable at a time than allowed, a machine that goes down while other pods than those of
// DaemonSets are on it, or before its node is `rebooting` and cordoned.
type Fleet struct {
	*World
	Machines []*Machine

	app       string // the workload whose Ready pods are counted
	available int    // number of its pods that must be Ready at any time
	atOnce    int    // number of nodes that may be unschedulable at a time

	mu         sync.Mutex
	violations []string
	states     map[string][]string // states of each node, in the order in which it showed them
	told       map[string]bool     // "NODE/TYPE": a condition of an agent that a node has shown as True
	pods       map[string]*corev1.Pod
	out        map[string]bool
	settled    bool // the workload runs: its Ready pods are counted from now on
}

// NewFleet creates machines with these names and a Node for each, to which pods may go. The caller creates the
// Deployment and the budget of the app.
func (w *World) NewFleet(ctx context.Context, app string, available, atOnce int, names ...string) (*Fleet, error) {
	f := &Fleet{
		World: w, app: app, available: available, atOnce: atOnce,
		states: map[string][]string{}, told: map[string]bool{}, pods: map[string]*corev1.Pod{}, out: map[string]bool{},
	}
	for _, name := range names {
		if err := w.AddNode(ctx, name, "worker"); err != nil {
			return f, err
		}
		machine, err := w.NewMachine(w.Node(name))
		if err != nil {
			return f, err
		}
		machine.GoingDown = func() { f.goingDown(machine) }
		f.Machines = append(f.Machines, machine)
	}
	if err := w.UntilOpen(ctx, names...); err != nil {
		return f, err
	}
	return f, f.watch(ctx)
}

// CloseFleet ends all agents and machines.
func (f *Fleet) CloseFleet() {
	for _, machine := range f.Machines {
		machine.Close()
	}
}

func (f *Fleet) watch(ctx context.Context) error {
	pods := cache.NewListWatchFromClient(f.Client.CoreV1().RESTClient(), "pods", f.Name, everything)
	nodes := cache.NewFilteredListWatchFromClient(f.Client.CoreV1().RESTClient(), "nodes", "",
		func(options *metav1.ListOptions) { options.LabelSelector = poolLabel + "=" + f.Name })
	podInformer := cache.NewSharedInformer(pods, &corev1.Pod{}, 0)
	nodeInformer := cache.NewSharedInformer(nodes, &corev1.Node{}, 0)
	_, err := podInformer.AddEventHandler(handlers(f.seePod))
	if err != nil {
		return err
	}
	if _, err = nodeInformer.AddEventHandler(handlers(f.seeNode)); err != nil {
		return err
	}
	go podInformer.RunWithContext(ctx)
	go nodeInformer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), podInformer.HasSynced, nodeInformer.HasSynced) {
		return fmt.Errorf("pods and nodes cannot be watched: %w", ctx.Err())
	}
	return nil
}

func handlers[T any](see func(T, bool)) cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { see(object.(T), true) },
		UpdateFunc: func(_, object any) { see(object.(T), true) },
		DeleteFunc: func(object any) {
			if missed, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = missed.Obj
			}
			see(object.(T), false)
		},
	}
}

func (f *Fleet) seePod(pod *corev1.Pod, there bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if there {
		f.pods[string(pod.UID)] = pod
	} else {
		delete(f.pods, string(pod.UID))
	}
	ready := 0
	for _, pod := range f.pods {
		if pod.Labels["app"] == f.app && pod.DeletionTimestamp == nil && podReady(pod) {
			ready++
		}
	}
	if ready >= f.available {
		f.settled = true
	} else if f.settled {
		f.violate("%s has %d ready pods, %d must be", f.app, ready, f.available)
	}
}

func podReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (f *Fleet) seeNode(node *corev1.Node, there bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !there {
		delete(f.out, node.Name)
		return
	}
	state := node.Labels["haulout.dev/state"]
	if seen := f.states[node.Name]; state != "" && (len(seen) == 0 || seen[len(seen)-1] != state) {
		f.states[node.Name] = append(seen, state)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Status == corev1.ConditionTrue && strings.HasPrefix(condition.Message, "haulout: ") {
			f.told[node.Name+"/"+string(condition.Type)] = true
		}
	}
	f.out[node.Name] = node.Spec.Unschedulable
	count := 0
	for _, out := range f.out {
		if out {
			count++
		}
	}
	if count > f.atOnce {
		f.violate("%d nodes are out, %d may be: %v", count, f.atOnce, f.out)
	}
}

// goingDown checks the promises at the moment at which a machine goes down. It reads the pods and the Node from the API
// server, because the watches may be late.
func (f *Fleet) goingDown(m *Machine) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	f.mu.Lock()
	defer f.mu.Unlock()
	pods, err := f.Client.CoreV1().Pods(f.Name).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + m.Node})
	if err != nil {
		f.violate("%v", err)
		return
	}
	for _, pod := range pods.Items {
		if len(pod.OwnerReferences) == 0 || pod.OwnerReferences[0].Kind != "DaemonSet" {
			f.violate("%s goes down under pod %s", m.Node, pod.Name)
		}
	}
	node, err := f.Client.CoreV1().Nodes().Get(ctx, m.Node, getOptions)
	if err != nil || node.Labels["haulout.dev/state"] != "rebooting" || !node.Spec.Unschedulable {
		f.violate("%s goes down as state=%s unschedulable=%v (%v)", m.Node, node.Labels["haulout.dev/state"],
			node.Spec.Unschedulable, err)
	}
}

func (f *Fleet) violate(format string, args ...any) {
	f.violations = append(f.violations, fmt.Sprintf(format, args...))
}

// Violations returns the recorded violations of promises.
func (f *Fleet) Violations() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string{}, f.violations...)
}

// States returns the states that a node has shown, in their order.
func (f *Fleet) States(node string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string{}, f.states[node]...)
}

// Told returns true if a node has shown this condition of an agent as True.
func (f *Fleet) Told(node, kind string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.told[node+"/"+kind]
}

// Story returns everything that helps to understand a failure.
func (f *Fleet) Story() string {
	var story strings.Builder
	for _, machine := range f.Machines {
		fmt.Fprintf(&story, "%s: version %s, boots %d, states %v, problem %v\n%s\n", machine.Node, machine.Version(),
			machine.Boots(), f.States(machine.Node), machine.Problem(), machine.Log())
	}
	return story.String()
}

// UntilUpdated waits until every machine runs the version and every node is idle and schedulable again.
func (f *Fleet) UntilUpdated(ctx context.Context, version string, limit time.Duration) error {
	return UntilWithin(ctx, limit, "all nodes run "+version, func() (bool, error) {
		for _, machine := range f.Machines {
			if err := machine.Problem(); err != nil {
				return false, err
			}
			node, err := f.Client.CoreV1().Nodes().Get(ctx, machine.Node, getOptions)
			if err != nil {
				return false, err
			}
			if machine.Version() != version || node.Labels["haulout.dev/state"] != "idle" || node.Spec.Unschedulable {
				return false, fmt.Errorf("%s runs %s, state %s, reason %s", node.Name, machine.Version(),
					node.Labels["haulout.dev/state"], node.Labels["haulout.dev/reason"])
			}
		}
		return true, nil
	})
}
