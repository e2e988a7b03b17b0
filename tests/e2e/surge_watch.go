package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

const (
	hashLabel = appsv1.DefaultDeploymentUniqueLabelKey
	surgeMark = "haulout.dev/surged"
)

// SurgeWatch watches the pods that a selector selects from its creation on, and records how few of them were Ready at a
// time, and how many were surged: without the label by which ReplicaSets select, with a mark or without one. A pod that
// terminates counts as neither, because Services leave it out, and it is on its way.
type SurgeWatch struct {
	world    *World
	selector string

	mu      sync.Mutex
	pods    map[types.UID]*corev1.Pod
	lowest  int // of Ready pods
	highest int // of surged pods
	story   []string
	awaited []awaitedState
	problem error
}

// awaitedState is a state that somebody waits for, and the channel that is closed when the watch sees it.
type awaitedState struct {
	holds func(SurgeState) bool
	seen  chan struct{}
}

// SurgeState is what a SurgeWatch has seen of the present.
type SurgeState struct {
	Pods, Ready, Surged, Terminating int
}

// WatchSurge starts to watch pods of Deployments. All of them must be Ready. The watch ends with the context.
func (w *World) WatchSurge(ctx context.Context, selector string) (*SurgeWatch, error) {
	list, err := w.Client.CoreV1().Pods(w.Name).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	s := &SurgeWatch{world: w, selector: selector, pods: map[types.UID]*corev1.Pod{}, lowest: len(list.Items)}
	for _, pod := range list.Items {
		s.see(watch.Event{Type: watch.Added, Object: &pod})
	}
	source := cache.NewFilteredListWatchFromClient(w.Client.CoreV1().RESTClient(), "pods", w.Name,
		func(options *metav1.ListOptions) { options.LabelSelector = selector })
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, source)
	if err != nil {
		return nil, err
	}
	s.lowest = s.state().Ready
	go func() {
		for event := range watcher.ResultChan() {
			s.see(event)
		}
	}()
	return s, nil
}

func (s *SurgeWatch) see(event watch.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pod, ok := event.Object.(*corev1.Pod)
	switch {
	case !ok && event.Type == watch.Bookmark:
		return
	case !ok:
		s.problem = fmt.Errorf("the watch has ended: %v", event.Object)
		return
	case event.Type == watch.Deleted:
		delete(s.pods, pod.UID)
	default:
		s.pods[pod.UID] = pod
	}
	now := s.state()
	s.awaited = slices.DeleteFunc(s.awaited, func(awaited awaitedState) bool {
		holds := awaited.holds(now)
		if holds {
			close(awaited.seen)
		}
		return holds
	})
	s.lowest, s.highest = min(s.lowest, now.Ready), max(s.highest, now.Surged)
	owner := "nobody"
	if controller := metav1.GetControllerOf(pod); controller != nil {
		owner = controller.Name
	}
	s.story = append(s.story, fmt.Sprintf("%-8s %s on %s: Ready %v, terminating %v, owner %s, hash %q, mark %v; %d Ready",
		event.Type, pod.Name, pod.Spec.NodeName, podReady(pod), pod.DeletionTimestamp != nil, owner, pod.Labels[hashLabel],
		pod.Annotations[surgeMark] != "", now.Ready))
}

// state counts the pods. The caller holds the mutex.
func (s *SurgeWatch) state() (now SurgeState) {
	now.Pods = len(s.pods)
	for _, pod := range s.pods {
		if pod.DeletionTimestamp != nil {
			now.Terminating++
			continue
		}
		if podReady(pod) {
			now.Ready++
		}
		if pod.Labels[hashLabel] == "" {
			now.Surged++
		}
	}
	return now
}

// State returns what the watch has seen last.
func (s *SurgeWatch) State() SurgeState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state()
}

// Await waits until the watch sees such a state, however short it lasts. It fails after 30 s.
func (s *SurgeWatch) Await(ctx context.Context, what string, holds func(SurgeState) bool) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	awaited := awaitedState{holds, make(chan struct{})}
	s.mu.Lock()
	if holds(s.state()) {
		s.mu.Unlock()
		return nil
	}
	s.awaited = append(s.awaited, awaited)
	s.mu.Unlock()
	select {
	case <-awaited.seen:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waited in vain until %s: %w (last: %+v)", what, ctx.Err(), s.State())
	}
}

// Extremes returns the lowest number of Ready pods and the highest number of surged pods that the watch has seen, up to
// a state that a list confirms.
func (s *SurgeWatch) Extremes(ctx context.Context) (lowest, highest int, err error) {
	err = Until(ctx, "the watch has seen all", func() (bool, error) {
		list, err := s.world.Client.CoreV1().Pods(s.world.Name).List(ctx, metav1.ListOptions{LabelSelector: s.selector})
		if err != nil {
			return false, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(list.Items) != len(s.pods) || s.problem != nil {
			return false, s.problem
		}
		return !slices.ContainsFunc(list.Items, func(pod corev1.Pod) bool {
			seen := s.pods[pod.UID]
			return seen == nil || seen.ResourceVersion != pod.ResourceVersion
		}), nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lowest, s.highest, err
}

// Story returns every change of a pod that the watch has seen.
func (s *SurgeWatch) Story() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.story, "\n")
}
