package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// BudgetWatch watches the pods of a world from its creation on, and records when a budget had fewer healthy pods than
// it needs. A pod that terminates is not healthy, as for the disruption controller.
type BudgetWatch struct {
	world   *World
	budgets []watchedBudget

	mu      sync.Mutex
	pods    map[types.UID]*corev1.Pod
	broken  []string
	problem error
}

type watchedBudget struct {
	name     string
	selector labels.Selector
	needs    int
}

// WatchBudgets starts to watch. Every budget must have been counted. The watch ends with the context.
func (w *World) WatchBudgets(ctx context.Context) (*BudgetWatch, error) {
	b := &BudgetWatch{world: w, pods: map[types.UID]*corev1.Pod{}}
	budgets, err := w.Client.PolicyV1().PodDisruptionBudgets(w.Name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, budget := range budgets.Items {
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil {
			return nil, err
		}
		b.budgets = append(b.budgets, watchedBudget{budget.Name, selector, int(budget.Status.DesiredHealthy)})
	}
	list, err := w.Client.CoreV1().Pods(w.Name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, pod := range list.Items {
		b.pods[pod.UID] = &pod
	}
	source := cache.NewListWatchFromClient(w.Client.CoreV1().RESTClient(), "pods", w.Name, everything)
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, source)
	if err != nil {
		return nil, err
	}
	b.judge("at the beginning")
	go func() {
		for event := range watcher.ResultChan() {
			b.see(event)
		}
	}()
	return b, nil
}

func (b *BudgetWatch) see(event watch.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	pod, ok := event.Object.(*corev1.Pod)
	switch {
	case !ok && event.Type == watch.Bookmark:
		return
	case !ok:
		b.problem = fmt.Errorf("the watch has ended: %v", event.Object)
		return
	case event.Type == watch.Deleted:
		delete(b.pods, pod.UID)
	default:
		b.pods[pod.UID] = pod
	}
	b.judge(fmt.Sprintf("%s %s", strings.ToLower(string(event.Type)), pod.Name))
}

// judge compares each budget with its pods. The caller holds the mutex, or is alone.
func (b *BudgetWatch) judge(when string) {
	for _, budget := range b.budgets {
		healthy := 0
		for _, pod := range b.pods {
			if pod.DeletionTimestamp == nil && podReady(pod) && budget.selector.Matches(labels.Set(pod.Labels)) {
				healthy++
			}
		}
		if healthy < budget.needs {
			b.broken = append(b.broken, fmt.Sprintf("%s: budget %s has %d healthy pods and needs %d", when, budget.name,
				healthy, budget.needs))
		}
	}
}

// Broken returns when a budget was broken, up to a state that a list confirms.
func (b *BudgetWatch) Broken(ctx context.Context) (broken []string, err error) {
	err = Until(ctx, "the watch has seen all", func() (bool, error) {
		list, err := b.world.Client.CoreV1().Pods(b.world.Name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(list.Items) != len(b.pods) || b.problem != nil {
			return false, b.problem
		}
		return !slices.ContainsFunc(list.Items, func(pod corev1.Pod) bool {
			seen := b.pods[pod.UID]
			return seen == nil || seen.ResourceVersion != pod.ResourceVersion
		}), nil
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.broken), err
}
