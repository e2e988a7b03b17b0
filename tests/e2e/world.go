package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

const poolLabel = "e2e.haulout.dev/pool"

// World is one set-up for one drain. It has its own namespace, its own nodes, on which only its pods run, and its own
// identity, by which the audit log shows its requests.
type World struct {
	*Cluster
	Name       string // also the name of the namespace
	User       string
	Kubeconfig string
	Home       string // home directory of the tools that run in it

	nodes []string
}

// NewWorld creates the namespace and the identity. There are no nodes yet.
func (c *Cluster) NewWorld(ctx context.Context) (*World, error) {
	name := c.nextName()
	w := &World{Cluster: c, Name: name, User: "run-" + name}
	identity, err := c.CA.Client(w.User, "system:masters", RunGroup)
	if err != nil {
		return nil, err
	}
	if w.Home, err = os.MkdirTemp(c.Dir, "home-"); err != nil {
		return nil, err
	}
	if w.Kubeconfig, err = c.Access(identity).Write(w.Home); err != nil {
		return nil, err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := c.Client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	// Until its ServiceAccount exists, the namespace accepts no pods.
	return w, Until(ctx, "the namespace has its ServiceAccount", func() (bool, error) {
		_, err := c.Client.CoreV1().ServiceAccounts(name).Get(ctx, "default", getOptions)
		return err == nil, nil
	})
}

// Node returns the full name of one of the world's nodes.
func (w *World) Node(short string) string { return w.Name + "-" + short }

// AddNode registers a node with the label `role` and the label of the world's pool. Pods are scheduled to existing
// nodes. So register the node that will be drained first, wait for its pods, and then register the node to which they
// move.
func (w *World) AddNode(ctx context.Context, short, role string, options ...func(*corev1.Node)) error {
	w.nodes = append(w.nodes, w.Node(short))
	return w.Kubelets.AddNode(ctx, w.Node(short), map[string]string{poolLabel: w.Name, "role": role}, options...)
}

// UntilOpen waits until pods may go to these nodes: a controller removes the taint of a new node shortly after it is
// Ready.
func (w *World) UntilOpen(ctx context.Context, nodes ...string) error {
	for _, short := range nodes {
		err := Until(ctx, w.Node(short)+" takes pods", func() (bool, error) {
			node, err := w.Client.CoreV1().Nodes().Get(ctx, w.Node(short), getOptions)
			return err == nil && len(node.Spec.Taints) == 0, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Apply creates objects in the world. Their pods may run only on its nodes.
func (w *World) Apply(ctx context.Context, objects ...any) error {
	for _, object := range objects {
		if err := w.create(ctx, object); err != nil {
			return fmt.Errorf("create %T: %w", object, err)
		}
	}
	return nil
}

func (w *World) create(ctx context.Context, object any) (err error) {
	here := func(spec *corev1.PodSpec) {
		spec.NodeSelector = merged(spec.NodeSelector, map[string]string{poolLabel: w.Name})
	}
	options := metav1.CreateOptions{}
	switch object := object.(type) {
	case *appsv1.Deployment:
		here(&object.Spec.Template.Spec)
		_, err = w.Client.AppsV1().Deployments(w.Name).Create(ctx, object, options)
	case *appsv1.StatefulSet:
		here(&object.Spec.Template.Spec)
		_, err = w.Client.AppsV1().StatefulSets(w.Name).Create(ctx, object, options)
	case *appsv1.DaemonSet:
		here(&object.Spec.Template.Spec)
		_, err = w.Client.AppsV1().DaemonSets(w.Name).Create(ctx, object, options)
	case *batchv1.Job:
		here(&object.Spec.Template.Spec)
		_, err = w.Client.BatchV1().Jobs(w.Name).Create(ctx, object, options)
	case *corev1.Pod:
		if object.Spec.NodeName == "" {
			here(&object.Spec)
		}
		_, err = w.Client.CoreV1().Pods(w.Name).Create(ctx, object, options)
	case *policyv1.PodDisruptionBudget:
		_, err = w.Client.PolicyV1().PodDisruptionBudgets(w.Name).Create(ctx, object, options)
	case *autoscalingv2.HorizontalPodAutoscaler:
		_, err = w.Client.AutoscalingV2().HorizontalPodAutoscalers(w.Name).Create(ctx, object, options)
	default:
		err = fmt.Errorf("no world holds such a thing")
	}
	return err
}

// Settle waits until so many pods run or have finished, every budget counts them, and pods may go to each Ready node. A
// pod that was bound by hand can run on a node to which the scheduler does not yet send pods.
func (w *World) Settle(ctx context.Context, pods int) error {
	// Pods of a StatefulSet that wait for each other, with their minReadySeconds, take half a minute. Of many pods, two
	// busy processors create and start a hundred in a second.
	limit := time.Minute + time.Duration(pods)*10*time.Millisecond
	return UntilWithin(ctx, limit, fmt.Sprintf("%d pods of %s run", pods, w.Name), func() (bool, error) {
		nodes, err := w.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: poolLabel + "=" + w.Name})
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(nodes.Items, closedThoughReady) {
			return false, nil
		}
		list, err := w.Client.CoreV1().Pods(w.Name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		running := 0
		up := []labels.Set{} // of the Ready pods
		for _, pod := range list.Items {
			if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodPending {
				continue
			}
			running++
			if podReady(&pod) {
				up = append(up, pod.Labels)
			}
		}
		budgets, err := w.Client.PolicyV1().PodDisruptionBudgets(w.Name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, budget := range budgets.Items {
			selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
			if err != nil {
				return false, err
			}
			healthy := int32(0)
			for _, set := range up {
				if selector.Matches(set) {
					healthy++
				}
			}
			if budget.Status.ObservedGeneration != budget.Generation || budget.Status.CurrentHealthy != healthy {
				return false, nil
			}
		}
		return running == pods, nil
	})
}

// SetBudget changes maxUnavailable of a budget, to a number or a percentage.
func (w *World) SetBudget(ctx context.Context, name, maxUnavailable string) error {
	value := maxUnavailable
	if maxUnavailable[len(maxUnavailable)-1] == '%' {
		value = `"` + maxUnavailable + `"`
	}
	patch := fmt.Sprintf(`{"spec":{"maxUnavailable":%s}}`, value)
	_, err := w.Client.PolicyV1().PodDisruptionBudgets(w.Name).Patch(
		ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// Requests returns the requests of this world's identity in the audit log.
func (w *World) Requests() ([]AuditEvent, error) { return w.Audit.Of(w.User) }

// BudgetReaction returns the time from the first status that the disruption controller wrote after `changed`, when the
// test changed the budget, to the first accepted eviction. Both are the times at which the server received the request:
// a client may see the new status before the server has answered the controller. The result is negative if the drain
// sent the eviction as soon as the budget changed and the server accepted it when the status came.
func (w *World) BudgetReaction(budget string, changed time.Time) (time.Duration, error) {
	requests, err := w.Requests()
	if err != nil {
		return 0, err
	}
	statuses, err := w.Audit.Select(func(e AuditEvent) bool {
		return e.Is("poddisruptionbudgets/status") && e.ObjectRef.Namespace == w.Name &&
			e.ObjectRef.Name == budget && e.Accepted() && e.Received.After(changed)
	})
	if err != nil || len(statuses) == 0 {
		return 0, fmt.Errorf("the audit log has no status of budget %s since it changed (%v)", budget, err)
	}
	opened := slices.MinFunc(statuses, func(a, b AuditEvent) int { return a.Received.Compare(b.Received) }).Received
	for _, eviction := range requests {
		if eviction.IsEviction() && eviction.Accepted() {
			return eviction.Received.Sub(opened), nil
		}
	}
	return 0, fmt.Errorf("no eviction was accepted")
}

// Close deletes everything in the world, also pods with finalizers, and does not wait until it is deleted.
func (w *World) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_ = w.Client.CoreV1().Namespaces().Delete(ctx, w.Name, metav1.DeleteOptions{})
	pods, err := w.Client.CoreV1().Pods(w.Name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for _, pod := range pods.Items {
		if len(pod.Finalizers) > 0 {
			_, _ = w.Client.CoreV1().Pods(w.Name).Patch(
				ctx, pod.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		}
	}
	_ = w.Client.CoreV1().Pods(w.Name).DeleteCollection(ctx, *metav1.NewDeleteOptions(0), metav1.ListOptions{})
	for _, node := range w.nodes {
		_ = w.Client.CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{})
	}
}

// Until calls `ask` every 20 ms until it returns true. It fails after 30 s.
func Until(ctx context.Context, what string, ask func() (bool, error)) error {
	return UntilWithin(ctx, 30*time.Second, what, ask)
}

// UntilWithin is Until with another limit.
func UntilWithin(ctx context.Context, limit time.Duration, what string, ask func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		done, err := ask()
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain until %s: %w (last: %v)", what, ctx.Err(), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// closedThoughReady returns true if a node is Ready, but still has the taint that the control plane gives to each new
// node.
func closedThoughReady(node corev1.Node) bool {
	tainted := slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Key == corev1.TaintNodeNotReady
	})
	return tainted && slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
}
