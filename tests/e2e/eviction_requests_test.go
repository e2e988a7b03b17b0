package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

const responder = "acme.io/mover"

var (
	evictionRequests = schema.GroupVersionResource{Group: "lifecycle.k8s.io", Version: "v1alpha1", Resource: "evictionrequests"}
	evictions        = schema.GroupVersionResource{Group: "lifecycle.k8s.io", Version: "v1alpha1", Resource: "evictions"}
	podResource      = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// askedWorld is a world on the Kubernetes of next/go.mod, which serves EvictionRequests. It has no controller for them,
// so a test is the controller and the responder.
type askedWorld struct {
	*World
	objects dynamic.Interface
}

func (w *askedWorld) of(resource schema.GroupVersionResource) dynamic.ResourceInterface {
	return w.objects.Resource(resource).Namespace(w.Name)
}

// addPod creates a pod that has a responder, on the node. The typed client does not know the field.
func (w *askedWorld) addPod(ctx context.Context, name, node string) error {
	pod := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": name, "annotations": map[string]any{TerminatesAfter: "100ms"}},
		"spec": map[string]any{
			"nodeName":                      w.Node(node),
			"terminationGracePeriodSeconds": int64(5),
			"containers":                    []any{map[string]any{"name": "main", "image": "example.com/app"}},
			"evictionResponders":            []any{map[string]any{"name": responder, "priority": int64(10000)}},
		},
	}}
	created, err := w.of(podResource).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if _, has, _ := unstructured.NestedSlice(created.Object, "spec", "evictionResponders"); !has {
		return fmt.Errorf("the API server has dropped spec.evictionResponders")
	}
	return nil
}

// request returns the EvictionRequest for the pod when it exists.
func (w *askedWorld) request(ctx context.Context, pod string) (found *unstructured.Unstructured, err error) {
	return found, Until(ctx, "there is an EvictionRequest for "+pod, func() (bool, error) {
		list, err := w.of(evictionRequests).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			name, _, _ := unstructured.NestedString(list.Items[i].Object, "spec", "target", "pod", "name")
			if name == pod {
				found = &list.Items[i]
			}
		}
		return found != nil, nil
	})
}

func (w *askedWorld) setStatus(ctx context.Context, resource schema.GroupVersionResource, name string, status map[string]any) error {
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	_, err = w.of(resource).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// begin does what the controller does for a new request: it creates the Eviction and gives the responder its turn. Then
// the responder reports.
func (w *askedWorld) begin(ctx context.Context, request *unstructured.Unstructured, message string) error {
	requester, _, _ := unstructured.NestedString(request.Object, "spec", "requester")
	target, _, _ := unstructured.NestedMap(request.Object, "spec", "target")
	eviction := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "lifecycle.k8s.io/v1alpha1", "kind": "Eviction",
		"metadata": map[string]any{"name": "pod-1-" + request.GetName(), "labels": map[string]any{requester: "requester", responder: "responder"}},
		"spec":     map[string]any{"target": target},
	}}
	created, err := w.of(evictions).Create(ctx, eviction, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	const evictor = "imperative-eviction.k8s.io/evictor"
	now := time.Now().UTC().Format(time.RFC3339)
	status := map[string]any{
		"targetResponders": []any{
			map[string]any{"name": responder, "priority": 10000, "state": "Active"},
			map[string]any{"name": evictor, "priority": 100, "state": "Inactive"},
		},
		"responders": []any{map[string]any{"name": responder, "startTime": now}, map[string]any{"name": evictor}},
	}
	if err := w.setStatus(ctx, evictions, created.GetName(), status); err != nil {
		return fmt.Errorf("the controller's status: %w", err)
	}
	status["responders"] = []any{
		map[string]any{"name": responder, "startTime": now, "heartbeatTime": now, "message": message},
		map[string]any{"name": evictor},
	}
	if err := w.setStatus(ctx, evictions, created.GetName(), status); err != nil {
		return fmt.Errorf("the responder's status: %w", err)
	}
	return nil
}

func newAskedWorld(t *testing.T) *askedWorld {
	t.Helper()
	programs, err := cluster.Programs.Next("--feature-gates=EvictionRequestAPI=true",
		"--runtime-config=lifecycle.k8s.io/v1alpha1=true")
	if err != nil {
		cannotRun(t, err.Error())
	}
	next, err := StartCluster(t.Context(), programs)
	must(t, err)
	t.Cleanup(next.Stop)
	w, err := next.NewWorld(t.Context())
	must(t, err)
	t.Cleanup(w.Close)
	config, err := next.AdminConfig()
	must(t, err)
	objects, err := dynamic.NewForConfig(config)
	must(t, err)
	return &askedWorld{w, objects}
}

// evicted returns true if an ordinary eviction of the pod was sent.
func (w *askedWorld) evicted(t *testing.T, pod string) bool {
	t.Helper()
	requests, err := w.Requests()
	must(t, err)
	for _, request := range requests {
		if request.IsEviction() && request.ObjectRef.Name == pod {
			return true
		}
	}
	return false
}

// The real API server accepts what a drain writes: the request, and its withdrawal at the deadline. The drain follows a
// responder, and evicts a pod whose responder does not answer.
func TestEvictionRequests(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	w := newAskedWorld(t)
	ctx := t.Context()
	must(t, w.AddNode(ctx, "old", "old"))
	must(t, w.UntilOpen(ctx, "old"))
	for _, name := range []string{"moved", "silent"} {
		must(t, w.addPod(ctx, name, "old"))
	}
	must(t, w.Settle(ctx, 2))
	flags := []string{"drain", w.Node("old"), "--force", "--settle=0", "--eviction-requests=responders",
		"--eviction-request-limit=4s", "-o", "jsonl"}

	run, err := w.Start(ctx, haulout, flags...)
	must(t, err)
	request, err := w.request(ctx, "moved")
	must(t, err)
	must(t, w.begin(ctx, request, "moving the disk"))
	must(t, UntilGone(ctx, w, "silent"))
	if w.evicted(t, "moved") {
		t.Error("the pod was evicted although its responder works")
	}
	must(t, w.of(podResource).Delete(ctx, "moved", metav1.DeleteOptions{}))
	result, err := run.Wait()
	must(t, err)
	if result.Exit != 0 {
		t.Fatalf("exit %d\n%s%s", result.Exit, result.Stdout, result.Stderr)
	}
	if !strings.Contains(result.Stdout, "responder "+responder+" works on its eviction: moving the disk") {
		t.Errorf("no event says what the responder does\n%s", result.Stdout)
	}
	if !w.evicted(t, "silent") || w.evicted(t, "moved") {
		t.Errorf("only the pod whose responder is silent is to be evicted\n%s", result.Stdout)
	}
	must(t, Until(ctx, "the garbage collector has deleted the requests", func() (bool, error) {
		list, err := w.of(evictionRequests).List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 0, err
	}))

	must(t, w.Client.CoreV1().Pods(w.Name).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	must(t, w.addPod(ctx, "stays", "old"))
	must(t, w.Settle(ctx, 1))
	blocked, err := w.Start(ctx, haulout, "drain", w.Node("old"), "--force", "--settle=0", "--eviction-requests=responders",
		"--timeout=8s")
	must(t, err)
	request, err = w.request(ctx, "stays")
	must(t, err)
	must(t, w.begin(ctx, request, "it takes long"))
	result, err = blocked.Wait()
	must(t, err)
	if result.Exit == 0 || w.evicted(t, "stays") {
		t.Errorf("exit %d\n%s%s", result.Exit, result.Stdout, result.Stderr)
	}
	request, err = w.request(ctx, "stays")
	must(t, err)
	if intent, _, _ := unstructured.NestedString(request.Object, "spec", "intent"); intent != "Withdrawn" {
		t.Errorf("the intent at the end is %q\n%s", intent, result.Stderr)
	}
}

// UntilGone waits until the pod does not exist any more.
func UntilGone(ctx context.Context, w *askedWorld, pod string) error {
	return Until(ctx, pod+" is gone", func() (bool, error) {
		list, err := w.of(podResource).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + pod})
		return err == nil && len(list.Items) == 0, err
	})
}
