package machines

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	stateLabel  = "haulout.dev/state"
	reasonLabel = "haulout.dev/reason"
	messageKey  = "haulout.dev/message"
	appLabel    = "app"
)

// Witness watches nodes and pods through the API, writes the time line, and records violations of promises: fewer Ready
// pods than a budget promises, pods with a budget that are deleted without an eviction, more unschedulable nodes than
// permitted and, after ForbidHalf, pods on a machine with a half-installed package.
type Witness struct {
	line *Timeline

	mu         sync.Mutex
	nodes      map[string]*corev1.Node
	pods       map[types.UID]*corev1.Pod
	states     map[string][]string
	messages   map[string][]string
	promised   map[string]int // by app: how many of its pods must be Ready; other apps are not checked
	least      map[string]int
	uncordoned map[string]int
	atOnce     int // number of nodes that may be unschedulable at a time; 0 disables the check
	violations []string
	stop       context.CancelFunc

	installations map[string]*Installation // by machine; empty: not watched
	halfForbidden bool                     // no pod may be on a machine with a half-installed package
}

func newWitness(line *Timeline) *Witness {
	return &Witness{
		line: line, nodes: map[string]*corev1.Node{}, pods: map[types.UID]*corev1.Pod{}, states: map[string][]string{},
		messages: map[string][]string{}, promised: map[string]int{}, least: map[string]int{}, uncordoned: map[string]int{},
		installations: map[string]*Installation{},
	}
}

// Watch returns a witness that watches until the context ends.
func Watch(ctx context.Context, client kubernetes.Interface, line *Timeline) (*Witness, error) {
	w := newWitness(line)
	return w, w.WatchAnew(ctx, client)
}

// WatchAnew lists and watches again, after an outage of the API server. The watches that the outage has broken would
// connect again only after up to a minute, and would then show what happened in the meantime in no particular order.
func (w *Witness) WatchAnew(ctx context.Context, client kubernetes.Interface) error {
	ctx, stop := context.WithCancel(ctx)
	w.mu.Lock()
	if w.stop != nil {
		w.stop()
	}
	w.stop = stop
	promised := w.promised
	w.promised, w.pods = map[string]int{}, map[types.UID]*corev1.Pod{}
	w.mu.Unlock()
	rest := client.CoreV1().RESTClient()
	everything := func(*metav1.ListOptions) {}
	nodes := cache.NewSharedInformer(cache.NewFilteredListWatchFromClient(rest, "nodes", "", everything), &corev1.Node{}, 0)
	pods := cache.NewSharedInformer(cache.NewFilteredListWatchFromClient(rest, "pods", "default", everything), &corev1.Pod{}, 0)
	nodesShown, err := nodes.AddEventHandler(handlers(ctx, w.seeNode))
	if err != nil {
		return err
	}
	podsShown, err := pods.AddEventHandler(handlers(ctx, w.seePod))
	if err != nil {
		return err
	}
	go nodes.RunWithContext(ctx)
	go pods.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), nodesShown.HasSynced, podsShown.HasSynced) {
		return fmt.Errorf("nodes and pods cannot be watched: %w", ctx.Err())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.promised = promised
	return nil
}

// handlers returns handlers that ignore all events when the context has ended.
func handlers[T any](ctx context.Context, show func(T, bool)) cache.ResourceEventHandlerFuncs {
	see := func(object T, there bool) {
		if ctx.Err() == nil {
			show(object, there)
		}
	}
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

// Promise demands that from now on so many pods of the app are Ready at any time.
func (w *Witness) Promise(app string, ready int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.promised[app] = ready
	w.least[app] = w.ready(app)
}

// Release ends the demand of Promise, because a machine fails.
func (w *Witness) Release(app string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.promised, app)
}

// AtOnce demands that from now on at most so many nodes are unschedulable at a time.
func (w *Witness) AtOnce(nodes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.atOnce = nodes
}

// Violations returns the recorded violations of promises.
func (w *Witness) Violations() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.violations)
}

// Promised returns how many pods of an app must be Ready, and the smallest number that was seen since Promise.
func (w *Witness) Promised(app string) (promised, least int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.promised[app], w.least[app]
}

// States returns the states that a node has shown, in their order.
func (w *Witness) States(node string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.states[node])
}

// Messages returns the messages that a node has shown, in their order.
func (w *Witness) Messages(node string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.messages[node])
}

// Uncordoned returns how often a node was uncordoned.
func (w *Witness) Uncordoned(node string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.uncordoned[node]
}

// Node returns the Node as it was seen last, or nil.
func (w *Witness) Node(name string) *corev1.Node {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.nodes[name]
}

// PodsOn returns the pods of a node that are not deleted, terminating ones included.
func (w *Witness) PodsOn(node string) []*corev1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.podsOn(node)
}

func (w *Witness) podsOn(node string) []*corev1.Pod {
	var found []*corev1.Pod
	for _, pod := range w.pods {
		if pod.Spec.NodeName == node {
			found = append(found, pod)
		}
	}
	return found
}

func (w *Witness) violate(format string, args ...any) {
	violation := fmt.Sprintf(format, args...)
	w.violations = append(w.violations, violation)
	w.line.Note("JUDGE", "%s", violation)
}

// Violate records a violation that other code has found.
func (w *Witness) Violate(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violate(format, args...)
}

func (w *Witness) seeNode(node *corev1.Node, there bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.nodes[node.Name]
	if !there {
		delete(w.nodes, node.Name)
		w.line.Note(node.Name, "the Node is deleted")
		return
	}
	w.nodes[node.Name] = node
	if before == nil {
		before = &corev1.Node{}
	}
	state, reason := node.Labels[stateLabel], node.Labels[reasonLabel]
	if state != before.Labels[stateLabel] {
		w.states[node.Name] = append(w.states[node.Name], state)
	}
	if message := node.Annotations[messageKey]; message != before.Annotations[messageKey] {
		w.messages[node.Name] = append(w.messages[node.Name], message)
	}
	if state != before.Labels[stateLabel] || reason != before.Labels[reasonLabel] {
		w.line.Note(node.Name, "state %s %s", state, reason)
	}
	if node.Spec.Unschedulable != before.Spec.Unschedulable {
		w.line.Note(node.Name, "%s", map[bool]string{true: "cordoned", false: "uncordoned"}[node.Spec.Unschedulable])
		if !node.Spec.Unschedulable {
			w.uncordoned[node.Name]++
		}
		w.judgeNodes()
	}
	if boot := node.Status.NodeInfo.BootID; boot != before.Status.NodeInfo.BootID {
		w.line.Note(node.Name, "kubelet reports boot %s", boot)
	}
	if now := nodeReady(node); now != nodeReady(before) {
		w.line.Note(node.Name, "%s", map[bool]string{true: "Ready", false: "not Ready"}[now])
	}
}

func (w *Witness) judgeNodes() {
	var unschedulable []string
	for name, node := range w.nodes {
		if node.Spec.Unschedulable {
			unschedulable = append(unschedulable, name)
		}
	}
	if w.atOnce > 0 && len(unschedulable) > w.atOnce {
		slices.Sort(unschedulable)
		w.violate("%s are unschedulable, %d may be", strings.Join(unschedulable, ", "), w.atOnce)
	}
}

func (w *Witness) seePod(pod *corev1.Pod, there bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.pods[pod.UID]
	if before == nil {
		before = &corev1.Pod{}
	}
	w.count()
	where := pod.Spec.NodeName
	defer w.judgeInstallation(where)
	switch {
	case !there:
		delete(w.pods, pod.UID)
		w.line.Note(where, "pod %s is deleted", pod.Name)
	default:
		w.pods[pod.UID] = pod
		if pod.DeletionTimestamp != nil && before.DeletionTimestamp == nil {
			w.line.Note(where, "pod %s is %s", pod.Name, whyTerminating(pod))
			if _, watched := w.promised[pod.Labels[appLabel]]; watched && !evicted(pod) {
				w.violate("pod %s was deleted, and not by an eviction", pod.Name)
			}
		}
		if podReady(pod) != podReady(before) && pod.DeletionTimestamp == nil {
			w.line.Note(where, "pod %s is %s", pod.Name, map[bool]string{true: "Ready", false: "not Ready"}[podReady(pod)])
		}
	}
	app := pod.Labels[appLabel]
	promised, watched := w.promised[app]
	if !watched {
		return
	}
	ready := w.ready(app)
	w.least[app] = min(w.least[app], ready)
	if ready < promised {
		w.violate("%s has %d Ready pods, its budget promises %d", app, ready, promised)
	}
}

func (w *Witness) ready(app string) int {
	count := 0
	for _, pod := range w.pods {
		if pod.Labels[appLabel] == app && pod.DeletionTimestamp == nil && podReady(pod) {
			count++
		}
	}
	return count
}

func whyTerminating(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.DisruptionTarget && condition.Status == corev1.ConditionTrue {
			return "evicted: " + condition.Reason
		}
	}
	return "terminating"
}

// evicted returns true if the pod was deleted by the eviction API, which checks budgets.
func evicted(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.DisruptionTarget && condition.Status == corev1.ConditionTrue &&
			condition.Reason == "EvictionByEvictionAPI"
	})
}

func podReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}

func nodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
}
