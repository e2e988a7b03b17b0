package e2e

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Annotations of a pod that set how its kubelet behaves. Durations have Go's syntax. The simulated cluster knows the
// first two, too, so that both can use one world file.
const (
	// Time from when the pod is bound, and its volumes are attached, until it is Ready. Default: 0.
	StartsAfter = worldPrefix + "starts-after"
	// Time from the pod's deletionTimestamp until its containers have stopped, at most its grace period. Default: 100
	// ms.
	TerminatesAfter = worldPrefix + "terminates-after"
	// The phase that the pod gets instead of Running: Succeeded or Failed.
	Becomes = "e2e.haulout.dev/becomes"
	// On the node of the world with this short name, the pod runs but never becomes Ready.
	UnreadyOn = "e2e.haulout.dev/unready-on"
	// Time from when the pod is deleted until its volumes are unmounted. Default: 0.
	UnmountsAfter = "e2e.haulout.dev/unmounts-after"

	defaultTermination = 100 * time.Millisecond
)

// Kubelets simulates the kubelet of every node that it registers: bound pods become Running and Ready. Terminating pods
// are deleted through the API as by a real kubelet, by a last DELETE with grace period 0 and a UID precondition. Nodes
// are Ready from their registration on and send no heartbeats; the control plane accepts that for a day. Kubelets also
// records every pod instance that it has seen.
type Kubelets struct {
	ctx    context.Context
	client kubernetes.Interface
	mounts mounts

	mu    sync.Mutex
	pods  map[types.UID]*podState
	paces map[string]Pace // by namespace
}

// Pace is how fast pods of a namespace start and terminate if they have no annotations that say so.
type Pace struct {
	ReadyAfter, TerminatesAfter time.Duration
}

type podState struct {
	record  PodRecord
	starts  *time.Timer
	ends    *time.Timer
	endsAt  time.Time
	stopped bool
}

// PodRecord is the history of one pod instance.
type PodRecord struct {
	UID             types.UID
	Namespace, Name string
	App             string // label app
	Node            string
	Evicted         bool   // the API server marked it as disrupted by an eviction
	Grace           *int64 // deletionGracePeriodSeconds as first seen, or as a client shortened it later
	Deleted         time.Time
	Stopped         time.Time // when its kubelet began to report that its containers have ended; the pod is deleted later
	Gone            time.Time // when the watch showed its deletion, which a fault of the server delays
}

// StartKubelets starts the kubelets. They work until the context ends.
func StartKubelets(ctx context.Context, client kubernetes.Interface) (*Kubelets, error) {
	k := &Kubelets{ctx: ctx, client: client, pods: map[types.UID]*podState{}, paces: map[string]Pace{}}
	source := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, everything)
	informer := cache.NewSharedInformer(source, &corev1.Pod{}, 0)
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { k.observe(object.(*corev1.Pod)) },
		UpdateFunc: func(_, object any) { k.observe(object.(*corev1.Pod)) },
		DeleteFunc: func(object any) {
			if missed, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = missed.Obj
			}
			k.forget(object.(*corev1.Pod))
		},
	})
	if err != nil {
		return nil, err
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, fmt.Errorf("the pods could not be listed: %w", ctx.Err())
	}
	return k, nil
}

// AddNode registers a Ready node.
func (k *Kubelets) AddNode(
	ctx context.Context, name string, labels map[string]string, options ...func(*corev1.Node),
) error {
	room := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("1000"),
		corev1.ResourceMemory: resource.MustParse("1000Gi"),
		corev1.ResourcePods:   resource.MustParse("2000"),
	}
	now := metav1.Now()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			// Without the label with the host's name, the scheduler does not spread pods: six equal pods all go to one
			// of three nodes.
			Name: name, Labels: merged(map[string]string{corev1.LabelOSStable: "linux", corev1.LabelHostname: name}, labels),
			// Without this annotation, no controller attaches volumes to the node.
			Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
		},
		Status: corev1.NodeStatus{
			Capacity: room, Allocatable: room,
			Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
				LastHeartbeatTime: now, LastTransitionTime: now,
			}},
		},
	}
	for _, option := range options {
		option(node)
	}
	_, err := k.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	return err
}

// Pods returns the records of all pod instances that a namespace has had.
func (k *Kubelets) Pods(namespace string) []PodRecord {
	k.mu.Lock()
	defer k.mu.Unlock()
	var found []PodRecord
	for _, pod := range k.pods {
		if pod.record.Namespace == namespace {
			found = append(found, pod.record)
		}
	}
	return found
}

// SetPace changes the pace for pods that are bound or deleted from now on.
func (k *Kubelets) SetPace(namespace string, pace Pace) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.paces[namespace] = pace
}

// paceOf returns the pace of a pod's namespace. The caller holds the mutex.
func (k *Kubelets) paceOf(pod *corev1.Pod) Pace {
	if pace, ok := k.paces[pod.Namespace]; ok {
		return pace
	}
	return Pace{TerminatesAfter: defaultTermination}
}

func (k *Kubelets) observe(pod *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	state := k.pods[pod.UID]
	if state == nil {
		state = &podState{record: PodRecord{
			UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name, App: pod.Labels["app"],
		}}
		k.pods[pod.UID] = state
	}
	state.record.Node = pod.Spec.NodeName
	state.record.Evicted = state.record.Evicted || evictionMark(pod)
	if pod.DeletionTimestamp != nil {
		if state.record.Deleted.IsZero() {
			state.record.Deleted = time.Now()
		}
		// The API server sets the grace period to 0 when the kubelet deletes the pod. That value is not recorded.
		if grace, last := pod.DeletionGracePeriodSeconds, state.record.Grace; last == nil || (grace != nil && *grace > 0 && *grace < *last) {
			state.record.Grace = grace
		}
		if state.starts != nil {
			state.starts.Stop()
		}
		k.scheduleEnd(state, pod)
		return
	}
	if pod.Spec.NodeName != "" && state.starts == nil && pod.Status.Phase == corev1.PodPending {
		k.scheduleStart(state, pod)
	}
}

func (k *Kubelets) forget(pod *corev1.Pod) {
	k.observe(pod)
	k.mu.Lock()
	defer k.mu.Unlock()
	state := k.pods[pod.UID]
	state.stopped = true
	state.record.Gone = time.Now()
	for _, timer := range []*time.Timer{state.starts, state.ends} {
		if timer != nil {
			timer.Stop()
		}
	}
	if len(claimsOf(pod)) > 0 {
		time.AfterFunc(duration(pod, UnmountsAfter, 0), func() { k.unmount(pod) })
	}
}

// scheduleEnd plans the end of a terminating pod. It is called again when the grace period was shortened.
func (k *Kubelets) scheduleEnd(state *podState, pod *corev1.Pod) {
	if pod.Spec.NodeName == "" || state.stopped {
		return
	}
	wait := duration(pod, TerminatesAfter, k.paceOf(pod).TerminatesAfter)
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		wait = min(wait, time.Duration(*grace)*time.Second)
	}
	at := time.Now().Add(wait)
	if state.ends != nil && !at.Before(state.endsAt) {
		return
	}
	if state.ends != nil {
		state.ends.Stop()
	}
	state.endsAt = at
	state.ends = time.AfterFunc(wait, func() { k.end(pod, state) })
}

func evictionMark(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.DisruptionTarget && condition.Status == corev1.ConditionTrue &&
			condition.Reason == "EvictionByEvictionAPI" {
			return true
		}
	}
	return false
}

// duration returns the duration in an annotation, or the default. Panics if it is invalid, because that is a mistake in
// a test.
func duration(pod *corev1.Pod, annotation string, otherwise time.Duration) time.Duration {
	text, ok := pod.Annotations[annotation]
	if !ok {
		return otherwise
	}
	value, err := time.ParseDuration(text)
	if err != nil {
		panic(fmt.Sprintf("pod %s/%s: %s: %v", pod.Namespace, pod.Name, annotation, err))
	}
	return value
}
