package e2e

import (
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// `haulout retire` with the rights that its documentation names, and no others. The garbage collectors of
// kube-controller-manager delete what belonged to the Node: the pod of the DaemonSet (after at least 40 s), the Lease and
// the CSINode.
func TestRetire(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	w := newWorld(t)
	must(t, w.AddNode(t.Context(), "old", "old"))
	must(t, w.Apply(t.Context(), Deployment("web", 4), Budget("web", "2"), DaemonSet("net")))
	must(t, w.Settle(t.Context(), 5))
	must(t, w.AddNode(t.Context(), "new", "new"))
	must(t, w.UntilOpen(t.Context(), "new"))
	old := node(t, w, "old")
	w.leaveLeaseAndCSINode(t, old)

	plan := run(t, w, 0, haulout, "retire", old.Name, "--settle=0", "--dry-run=server")
	if !strings.Contains(plan.Stdout, "node \""+old.Name+"\" deleted (server dry run)\n") {
		t.Errorf("the dry run says\n%s", plan.Stdout)
	}
	if now := node(t, w, "old"); now.UID != old.UID || now.Spec.Unschedulable {
		t.Fatalf("the dry run has changed the Node: %+v", now.Spec)
	}

	kubeconfig := w.userWith(t, "retires", retireRules()...)
	started, err := w.StartWith(t.Context(), kubeconfig, haulout, "retire", old.Name, "--settle=0")
	must(t, err)
	result, err := started.Wait()
	must(t, err)
	if result.Exit != 0 {
		t.Fatalf("exit %d\n%s%s", result.Exit, result.Stdout, result.Stderr)
	}
	if !strings.HasSuffix(result.Stdout, "node/"+old.Name+" drained\nnode \""+old.Name+"\" deleted\n") {
		t.Errorf("stdout ends otherwise:\n%s", result.Stdout)
	}
	gone := func(what string, err error) {
		if !errors.IsNotFound(err) {
			t.Errorf("%s of the node is left (%v)", what, err)
		}
	}
	_, err = w.Client.CoreV1().Nodes().Get(t.Context(), old.Name, getOptions)
	gone("the Node", err)
	_, err = w.Client.StorageV1().CSINodes().Get(t.Context(), old.Name, getOptions)
	gone("the CSINode", err)
	_, err = w.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), old.Name, getOptions)
	gone("the Lease", err)
	pods, err := w.Client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + old.Name})
	must(t, err)
	if len(pods.Items) != 0 {
		t.Errorf("%d pods name the node", len(pods.Items))
	}
	must(t, w.Settle(t.Context(), 5)) // four web servers, and the DaemonSet's pod of the other node

	w.User = w.Name + "-retires"
	requests, err := w.Requests()
	must(t, err)
	var deletions []string
	for _, request := range requests {
		if request.Verb == "delete" {
			deletions = append(deletions, request.ObjectRef.Resource)
		}
	}
	if !slices.Equal(deletions, []string{"nodes"}) {
		t.Errorf("it has deleted %v, want one Node and nothing else", deletions)
	}
}

// leaveLeaseAndCSINode creates what a real kubelet creates beside its Node.
func (w *World) leaveLeaseAndCSINode(t *testing.T, owner *corev1.Node) {
	t.Helper()
	of := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: owner.Name, UID: owner.UID}}
	meta := metav1.ObjectMeta{Name: owner.Name, OwnerReferences: of}
	_, err := w.Client.StorageV1().CSINodes().Create(t.Context(), &storagev1.CSINode{ObjectMeta: meta}, metav1.CreateOptions{})
	must(t, err)
	_, err = w.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease).
		Create(t.Context(), &coordinationv1.Lease{ObjectMeta: meta}, metav1.CreateOptions{})
	if !errors.IsAlreadyExists(err) {
		must(t, err)
	}
}

// retireRules returns the rights that docs/cli.md names for `haulout retire`.
func retireRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule("", "nodes", "get", "list", "watch", "patch", "delete"), rule("", "pods", "list", "watch"),
		rule("", "pods/eviction", "create"), rule("apps", "daemonsets", "get"), rule("apps", "replicasets", "get"),
		rule("apps", "deployments", "get"), rule("apps", "statefulsets", "get"),
		rule("policy", "poddisruptionbudgets", "list", "watch"), rule("storage.k8s.io", "volumeattachments", "list", "watch"),
		rule("", "persistentvolumes", "get"), rule("", "persistentvolumeclaims", "get"),
		rule("storage.k8s.io", "csinodes", "get"), rule("coordination.k8s.io", "leases", "get"),
	}
}
