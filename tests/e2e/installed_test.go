package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

// Installed is a control plane of its own with the shipped manifests: an agent runs on every node, and a namespace
// `work` has pods that the agents may or may not evict.
type Installed struct {
	*Cluster
	Own, Other, Unbound *AgentToken // of the agents on own-node and other-node, and one that is bound to no pod

	pods int

	rules    map[string][]string // by policy: the messages with which its rules refuse
	refusals map[string]bool     // messages with which policies have refused requests
}

const (
	ownNode   = "own-node"
	otherNode = "other-node"
)

// install starts a cluster and applies the manifests with these components.
func install(t *testing.T, components ...string) *Installed {
	t.Helper()
	c, err := StartCluster(t.Context(), cluster.Programs)
	must(t, err)
	t.Cleanup(c.Stop)
	in := &Installed{Cluster: c, rules: map[string][]string{}, refusals: map[string]bool{}}
	for _, name := range []string{ownNode, otherNode} {
		must(t, c.Kubelets.AddNode(t.Context(), name, map[string]string{corev1.LabelOSStable: "linux"}))
	}
	in.reserve(t, otherNode)
	in.apply(t, components...)
	in.Own, in.Other = in.agentOn(t, ownNode), in.agentOn(t, otherNode)
	in.Unbound, err = c.AgentToken(t.Context(), nil)
	must(t, err)
	work := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "work"}}
	_, err = c.Client.CoreV1().Namespaces().Create(t.Context(), work, metav1.CreateOptions{})
	must(t, err)
	must(t, Until(t.Context(), "the namespace has its ServiceAccount", func() (bool, error) {
		_, err := c.Client.CoreV1().ServiceAccounts("work").Get(t.Context(), "default", getOptions)
		return err == nil, nil
	}))
	in.prepare(t)
	in.awaitPolicies(t, slices.Contains(components, "policies-only"))
	return in
}

// change updates a Node, and repeats that if another client has changed the Node in between.
func (in *Installed) change(t *testing.T, name string, how func(*corev1.Node)) {
	t.Helper()
	must(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node, err := in.Client.CoreV1().Nodes().Get(t.Context(), name, getOptions)
		if err != nil {
			return err
		}
		how(node)
		_, err = in.Client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{})
		return err
	}))
}

// reserve taints and cordons a node. An agent must run there all the same.
func (in *Installed) reserve(t *testing.T, name string) {
	t.Helper()
	in.change(t, name, func(node *corev1.Node) {
		node.Spec.Unschedulable = true
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: "reserved", Effect: corev1.TaintEffectNoExecute})
	})
}

func (in *Installed) apply(t *testing.T, components ...string) {
	t.Helper()
	dir, err := kustomization(in.Dir, components...)
	must(t, err)
	_, err = in.AdminKubectl(t.Context(), "apply", "-k", dir, "--validate=strict")
	must(t, err)
}

// changeTo applies the rights and the policies of the manifests with these components. The agents' pods stay, and so do
// their tokens.
func (in *Installed) changeTo(t *testing.T, components ...string) {
	t.Helper()
	dir, err := kustomization(in.Dir, components...)
	must(t, err)
	rendered, err := in.AdminKubectl(t.Context(), "kustomize", dir)
	must(t, err)
	var rights []string
	for _, object := range strings.Split(rendered, "\n---\n") {
		if strings.HasPrefix(object, "apiVersion: rbac.authorization.k8s.io/v1\n") ||
			strings.HasPrefix(object, "apiVersion: admissionregistration.k8s.io/v1\n") {
			rights = append(rights, object)
		}
	}
	file := filepath.Join(dir, "rights.yaml")
	must(t, os.WriteFile(file, []byte(strings.Join(rights, "\n---\n")), 0o600))
	_, err = in.AdminKubectl(t.Context(), "apply", "-f", file, "--selector=app.kubernetes.io/name=haulout", "--prune",
		"--prune-allowlist=rbac.authorization.k8s.io/v1/ClusterRole",
		"--prune-allowlist=rbac.authorization.k8s.io/v1/ClusterRoleBinding",
		"--prune-allowlist=admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy",
		"--prune-allowlist=admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding")
	must(t, err)
	in.awaitPolicies(t, slices.Contains(components, "policies-only"))
}

func (in *Installed) agentOn(t *testing.T, node string) *AgentToken {
	t.Helper()
	var agent *AgentToken
	must(t, Until(t.Context(), "an agent runs on "+node, func() (bool, error) {
		pods, err := in.Client.CoreV1().Pods(agentName).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, pod := range pods.Items {
			if pod.Spec.NodeName == node && pod.Status.Phase == corev1.PodRunning {
				agent, err = in.AgentToken(t.Context(), &pod)
				return err == nil, err
			}
		}
		return false, nil
	}))
	return agent
}

// agentPod returns the pod of the DaemonSet on a node.
func (in *Installed) agentPod(t *testing.T, node string) *corev1.Pod {
	t.Helper()
	pods, err := in.Client.CoreV1().Pods(agentName).List(t.Context(),
		metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	must(t, err)
	if len(pods.Items) != 1 {
		t.Fatalf("%d agents are on %s", len(pods.Items), node)
	}
	return &pods.Items[0]
}

func (in *Installed) prepare(t *testing.T) {
	t.Helper()
	pauses := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "haulout"}}
	_, err := in.Client.CoreV1().ConfigMaps(agentName).Create(t.Context(), pauses, metav1.CreateOptions{})
	must(t, err)
	in.change(t, ownNode, func(node *corev1.Node) {
		node.Annotations = merged(node.Annotations, map[string]string{"e2e.haulout.dev/keep": "yes", doNotDisrupt: "true"})
		added := metav1.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: "example.com/person", Value: "x",
			Effect: corev1.TaintEffectPreferNoSchedule, TimeAdded: &added})
	})
}

// awaitPolicies waits until all policies are in force: the API server reads them a moment after they are created.
func (in *Installed) awaitPolicies(t *testing.T, policiesOnly bool) {
	t.Helper()
	in.rememberRules(t)
	loseAll := in.agentsMayAll(t)
	pod := in.pod(t, otherNode)
	probes := []Request{
		patch(nodePath(otherNode)+"?dryRun=All", `{"metadata":{"labels":{"probe":"x"}}}`),
		post(leasesPath+"?dryRun=All", `{"metadata":{"name":"probe"}}`),
		remove(eventsPath+"/"+in.event(t)+"?dryRun=All", ""),
	}
	if policiesOnly {
		probes = append(probes, evict(pod, evictionOf(pod, `,"dryRun":["All"]`)), remove(podPath(pod)+"?dryRun=All", ""))
	}
	for _, probe := range probes {
		must(t, Until(t.Context(), "a policy is in force", func() (bool, error) {
			code, _, err := in.Own.Send(t.Context(), probe)
			return code == http.StatusForbidden || code == http.StatusUnprocessableEntity, err
		}))
	}
	loseAll()
	if policiesOnly {
		return
	}
	mine := in.pod(t, ownNode)
	must(t, Until(t.Context(), "the policies for nodes are in force", func() (bool, error) {
		acting := in.Own.As(ownNode)
		evicted, _, err := acting.Send(t.Context(), evict(mine, eviction(mine, `,"deleteOptions":{"dryRun":["All"]}`)))
		if err != nil {
			return false, err
		}
		labelled, _, err := acting.Send(t.Context(), patch(nodePath(ownNode)+"?dryRun=All", `{"metadata":{"labels":{"x":"y"}}}`))
		return evicted == http.StatusForbidden && labelled == http.StatusForbidden, err
	}))
}

// agentsMayAll makes the agents administrators of the cluster, so that only policies can refuse their requests.
func (in *Installed) agentsMayAll(t *testing.T) (loseAll func()) {
	t.Helper()
	bindings := in.Client.RbacV1().ClusterRoleBindings()
	binding, err := bindings.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "agents-may-all"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: agentName, Name: agentName}},
	}, metav1.CreateOptions{})
	must(t, err)
	await := func(code int) {
		must(t, Until(t.Context(), "the rights have changed", func() (bool, error) {
			now, _, err := in.Own.Send(t.Context(), get("/api/v1/secrets"))
			return now == code, err
		}))
	}
	await(http.StatusOK)
	return func() {
		must(t, bindings.Delete(t.Context(), binding.Name, metav1.DeleteOptions{}))
		await(http.StatusForbidden)
	}
}

// pod creates another pod in the namespace `work` on this node.
func (in *Installed) pod(t *testing.T, node string) *corev1.Pod {
	t.Helper()
	in.pods++
	pod := Pod(fmt.Sprintf("pod-%d", in.pods))
	pod.Spec.NodeName = node
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	pod, err := in.Client.CoreV1().Pods("work").Create(t.Context(), pod, metav1.CreateOptions{})
	must(t, err)
	return pod
}

// event creates an Event about own-node as an administrator, and returns its name.
func (in *Installed) event(t *testing.T) string { return in.eventAbout(t, ownNode) }

func (in *Installed) eventAbout(t *testing.T, node string) string {
	t.Helper()
	in.pods++
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("event-%d", in.pods)}, EventTime: metav1.NowMicro(),
		ReportingController: "haulout.dev/agent", ReportingInstance: node, Action: "Drain", Reason: "Draining",
		Type: "Normal", Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node},
	}
	_, err := in.Client.EventsV1().Events("default").Create(t.Context(), event, metav1.CreateOptions{})
	must(t, err)
	return event.Name
}

const eventsPath = "/apis/events.k8s.io/v1/namespaces/default/events"

const leasesPath = "/apis/coordination.k8s.io/v1/namespaces/" + agentName + "/leases"

func nodePath(name string) string       { return "/api/v1/nodes/" + name }
func nodeStatusPath(name string) string { return nodePath(name) + "/status" }
func podPath(pod *corev1.Pod) string {
	return "/api/v1/namespaces/" + pod.Namespace + "/pods/" + pod.Name
}
func podsOn(node string) string { return "/api/v1/pods?fieldSelector=spec.nodeName%3D" + node }

func evict(pod *corev1.Pod, body string) Request { return post(podPath(pod)+"/eviction", body) }

func eviction(pod *corev1.Pod, options string) string {
	return fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":%q}%s}`, pod.Name, options)
}

// evictionOf returns an eviction with the pod's UID. `more` is appended to its deleteOptions.
func evictionOf(pod *corev1.Pod, more string) string {
	return eviction(pod, fmt.Sprintf(`,"deleteOptions":{"preconditions":{"uid":%q}%s}`, pod.UID, more))
}

// slot returns the Lease of a slot of the pool `default`, and of a zone if the name contains one.
func slot(name, holder, ownerName, ownerUID string) string {
	labels := `"haulout.dev/pool":"default"`
	if group := strings.SplitN(name, ".", 2); len(group) == 2 {
		labels += fmt.Sprintf(`,"haulout.dev/zone":%q`, group[1][:strings.LastIndex(group[1], "-")])
	}
	return fmt.Sprintf(`{"metadata":{"name":%q,"labels":{%s},"ownerReferences":`+
		`[{"apiVersion":"v1","kind":"Node","name":%q,"uid":%q}]},"spec":{"holderIdentity":%q}}`,
		name, labels, ownerName, ownerUID, holder)
}

func (a *AgentToken) slot(name string) string { return slot(name, a.Holder(), a.Node, a.NodeUID) }
