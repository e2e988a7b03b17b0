package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// releaseOnCluster is a control plane of its own with one node, on which Helm installs the chart.
type releaseOnCluster struct {
	*Cluster
	Helm
}

// Helm installs, changes, takes back and removes a release on a real control plane. Not in parallel, as TestInstall: a
// second control plane would slow down tests that measure times.
func TestHelmRelease(t *testing.T) {
	needKubernetes(t, 36, "agents that act as their nodes, as the chart does by default")
	newHelm(t)
	c, err := StartCluster(t.Context(), cluster.Programs)
	must(t, err)
	t.Cleanup(c.Stop)
	must(t, c.Kubelets.AddNode(t.Context(), ownNode, map[string]string{corev1.LabelOSStable: "linux"}))
	kubeconfig, err := Access{Server: versioned(t, c.ControlPlane)}.Write(t.TempDir())
	must(t, err)
	h, err := c.NewHelm(t.TempDir(), kubeconfig)
	must(t, err)
	in := &releaseOnCluster{c, h}

	const changed = "max-unavailable: 10%\nmetrics-address: :9800\n"
	var first, second *corev1.Pod
	t.Run("install", func(t *testing.T) {
		notes := in.helm(t, "install", "haulout", in.Chart)
		expectNotes(t, notes, "kubectl get nodes -L haulout.dev/state,haulout.dev/reason", "helm -n default uninstall haulout")
		expectNoNotes(t, notes, "WARNING", "delete namespace")
		first = in.runningAgent(t, nil)
		in.expectConfig(t, "max-unavailable: 1\n")
	})
	t.Run("examples", func(t *testing.T) { in.expectExamplesAccepted(t) })
	t.Run("a change of the configuration restarts the agents", func(t *testing.T) {
		in.helm(t, "upgrade", "haulout", in.Chart, "--set", "config.max-unavailable=10%,config.metrics-address=:9800")
		second = in.runningAgent(t, first)
		in.expectConfig(t, changed)
		if checksum(first) == checksum(second) {
			t.Errorf("both pods have the checksum %s", checksum(first))
		}
		if ports := second.Spec.Containers[0].Ports; len(ports) != 1 || ports[0].ContainerPort != 9800 {
			t.Errorf("the ports are %v", ports)
		}
	})
	t.Run("another change does not", func(t *testing.T) {
		in.helm(t, "upgrade", "haulout", in.Chart, "--reuse-values", "--set", "slotQuota=500,guards=true")
		quota, err := in.Client.CoreV1().ResourceQuotas(agentName).Get(t.Context(), "haulout-slots", getOptions)
		must(t, err)
		if limit := quota.Spec.Hard["count/leases.coordination.k8s.io"]; limit.Value() != 500 {
			t.Errorf("the quota is %v", limit)
		}
		_, err = in.Client.RbacV1().ClusterRoles().Get(t.Context(), "haulout-guards", getOptions)
		must(t, err)
		in.settled(t)
		if pod := in.agentPods(t)[0]; pod.UID != second.UID {
			t.Errorf("the agent has been restarted")
		}
	})
	t.Run("a mistake changes nothing", func(t *testing.T) {
		before := in.daemonSet(t).Generation
		_, err := in.Run(t.Context(), "upgrade", "haulout", in.Chart, "--set", "config.max-unavailble=2")
		if err == nil || !strings.Contains(err.Error(), "'max-unavailble' not allowed") {
			t.Errorf("the answer is %v", err)
		}
		if after := in.daemonSet(t).Generation; after != before {
			t.Errorf("the DaemonSet has changed")
		}
		in.expectConfig(t, changed)
	})
	t.Run("P11 rights of surge go before their policy", func(t *testing.T) {
		notes := in.helm(t, "upgrade", "haulout", in.Chart, "--reuse-values", "--set", "surge.policy=true")
		expectNotes(t, notes, "Then set surge.rights to true")
		_, err := in.Client.RbacV1().ClusterRoles().Get(t.Context(), "haulout-surge", getOptions)
		if !apierrors.IsNotFound(err) {
			t.Errorf("without surge.rights there are rights: %v", err)
		}
		in.helm(t, "upgrade", "haulout", in.Chart, "--reuse-values", "--set", "surge.rights=true")
		_, err = in.Client.RbacV1().ClusterRoles().Get(t.Context(), "haulout-surge", getOptions)
		must(t, err)
		in.helm(t, "upgrade", "haulout", in.Chart, "--reuse-values", "--set", "surge.policy=false,surge.rights=false")
		in.expectRightsDeletedFirst(t, "haulout-surge")
	})
	t.Run("rollback", func(t *testing.T) {
		in.helm(t, "rollback", "haulout", "1")
		in.expectConfig(t, "max-unavailable: 1\n")
		if third := in.runningAgent(t, second); checksum(third) != checksum(first) {
			t.Errorf("the pod has the checksum %s, and %s before", checksum(third), checksum(first))
		}
		_, err := in.Client.RbacV1().ClusterRoles().Get(t.Context(), "haulout-guards", getOptions)
		if !apierrors.IsNotFound(err) {
			t.Errorf("the rights of the later revision are left: %v", err)
		}
	})
	t.Run("a label takes the agent from a node", func(t *testing.T) { in.expectAgentTakenAway(t) })
	t.Run("uninstall", func(t *testing.T) {
		in.helm(t, "uninstall", "haulout")
		in.expectNothingInstalled(t)
		in.expectRightsDeletedFirst(t, "haulout-own-node")
		_, err := in.Client.CoreV1().Namespaces().Get(t.Context(), agentName, getOptions)
		if !apierrors.IsNotFound(err) {
			must(t, Until(t.Context(), "the namespace is deleted", func() (bool, error) {
				_, err := in.Client.CoreV1().Namespaces().Get(t.Context(), agentName, getOptions)
				return apierrors.IsNotFound(err), nil
			}))
		}
	})
	t.Run("a release in its own namespace of another name", func(t *testing.T) { in.expectOtherNamespace(t) })
	t.Run("takes over from kustomize", func(t *testing.T) { in.expectTakenOver(t) })
}

// The user of Helm, an administrator whose requests are in the audit log.
const helmUser = "e2e-helm"

// versioned serves the API of the control plane for helmUser, and returns the URL. The API server that the tests build does
// not know its whole version, and Helm asks for it.
func versioned(t *testing.T, c *ControlPlane) string {
	t.Helper()
	identity, err := c.CA.Client(helmUser, "system:masters")
	must(t, err)
	config, err := c.AdminConfig()
	must(t, err)
	config.CertData, config.KeyData = identity.Cert, identity.Key
	transport, err := rest.TransportFor(config)
	must(t, err)
	target, err := url.Parse(c.URL)
	must(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = transport
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/version" {
			proxy.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"major":"1","minor":"%d","gitVersion":%q}`, c.Minor, c.Version())
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func expectNotes(t *testing.T, notes string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(notes, want) {
			t.Errorf("%q is missing:\n%s", want, notes)
		}
	}
}

func expectNoNotes(t *testing.T, notes string, unwanted ...string) {
	t.Helper()
	for _, not := range unwanted {
		if strings.Contains(notes, not) {
			t.Errorf("%q should not be there:\n%s", not, notes)
		}
	}
}

// A release takes over what `kubectl apply -k` has installed. The namespace stays, with what people keep in it.
func (in *releaseOnCluster) expectTakenOver(t *testing.T) {
	dir, err := kustomization(in.Dir)
	must(t, err)
	_, err = in.AdminKubectl(t.Context(), "apply", "-k", dir)
	must(t, err)
	before := in.runningAgent(t, nil)
	namespace, err := in.Client.CoreV1().Namespaces().Get(t.Context(), agentName, getOptions)
	must(t, err)
	if _, err := in.Run(t.Context(), "install", "haulout", in.Chart); err == nil {
		t.Error("Helm took over objects without being told to")
	}
	in.helm(t, "install", "haulout", in.Chart, "--take-ownership", "--force-conflicts")
	in.runningAgent(t, before)
	var source string
	for _, volume := range in.daemonSet(t).Spec.Template.Spec.Volumes {
		if volume.ConfigMap != nil {
			source += volume.ConfigMap.Name
		}
	}
	if source != "haulout-config" {
		t.Errorf("the configuration is that of %s", source)
	}
	after, err := in.Client.CoreV1().Namespaces().Get(t.Context(), agentName, getOptions)
	must(t, err)
	if after.UID != namespace.UID {
		t.Error("the namespace is another one")
	}
	in.helm(t, "uninstall", "haulout")
	in.expectNothingInstalled(t)
}

func (in *releaseOnCluster) helm(t *testing.T, args ...string) string {
	t.Helper()
	output, err := in.Run(t.Context(), args...)
	must(t, err)
	return output
}

func (in *releaseOnCluster) daemonSet(t *testing.T) *appsv1.DaemonSet {
	t.Helper()
	set, err := in.Client.AppsV1().DaemonSets(agentName).Get(t.Context(), agentName, getOptions)
	must(t, err)
	return set
}

// settled waits until the DaemonSet controller has seen the DaemonSet as it is.
func (in *releaseOnCluster) settled(t *testing.T) {
	t.Helper()
	must(t, Until(t.Context(), "the controller has seen the DaemonSet", func() (bool, error) {
		set := in.daemonSet(t)
		return set.Status.ObservedGeneration == set.Generation && set.Status.UpdatedNumberScheduled == 1, nil
	}))
}

func (in *releaseOnCluster) agentPods(t *testing.T) []corev1.Pod {
	t.Helper()
	pods, err := in.Client.CoreV1().Pods(agentName).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	return pods.Items
}

// runningAgent waits until one pod of an agent runs, which is none before, and returns it.
func (in *releaseOnCluster) runningAgent(t *testing.T, before *corev1.Pod) (agent *corev1.Pod) {
	t.Helper()
	must(t, Until(t.Context(), "another agent runs", func() (bool, error) {
		pods := in.agentPods(t)
		if len(pods) != 1 || pods[0].Status.Phase != corev1.PodRunning || pods[0].DeletionTimestamp != nil {
			return false, fmt.Errorf("there are %d pods", len(pods))
		}
		agent = &pods[0]
		return before == nil || agent.UID != before.UID, nil
	}))
	return agent
}

func checksum(pod *corev1.Pod) string { return pod.Annotations["checksum/config"] }

func (in *releaseOnCluster) expectConfig(t *testing.T, want string) {
	t.Helper()
	config, err := in.Client.CoreV1().ConfigMaps(agentName).Get(t.Context(), "haulout-config", getOptions)
	must(t, err)
	if got := config.Data["config.yaml"]; strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("the configuration is %q, not %q", got, want)
	}
}

// The kinds of the Prometheus operator, of which the API server knows nothing otherwise.
const operatorKinds = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {plural: %[1]ss, singular: %[1]s, kind: %[2]s}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// The API server accepts what the chart makes of each example, and knows each field of it.
func (in *releaseOnCluster) expectExamplesAccepted(t *testing.T) {
	kinds := fmt.Sprintf(operatorKinds, "podmonitor", "PodMonitor") + "---" + fmt.Sprintf(operatorKinds, "prometheusrule", "PrometheusRule")
	file := filepath.Join(t.TempDir(), "kinds.yaml")
	must(t, os.WriteFile(file, []byte(kinds), 0o600))
	_, err := in.AdminKubectl(t.Context(), "apply", "-f", file)
	must(t, err)
	_, err = in.AdminKubectl(t.Context(), "wait", "--for=condition=Established", "--timeout=30s", "-f", file)
	must(t, err)
	_, err = in.AdminKubectl(t.Context(), "create", "namespace", "node-updates") // of bottlerocket.yaml
	must(t, err)
	examples, err := in.Examples()
	must(t, err)
	for _, example := range examples {
		t.Run(filepath.Base(example), func(t *testing.T) {
			manifests, err := in.Template(t.Context(), "--values", example)
			must(t, err)
			file := filepath.Join(t.TempDir(), "manifests.yaml")
			must(t, os.WriteFile(file, []byte(manifests), 0o600))
			_, err = in.AdminKubectl(t.Context(), "apply", "-f", file, "--server-side", "--field-manager=helm", "--validate=strict",
				"--dry-run=server")
			must(t, err)
		})
	}
	_, err = in.AdminKubectl(t.Context(), "delete", "namespace", "node-updates")
	must(t, err)
}

// expectRightsDeletedFirst checks in the audit log that every right of Haulout was deleted before the policy of this name.
func (in *releaseOnCluster) expectRightsDeletedFirst(t *testing.T, policy string) {
	t.Helper()
	deletions, err := in.Audit.Select(func(e AuditEvent) bool {
		return e.Verb == "delete" && e.Accepted() && e.User.Username == helmUser && strings.HasPrefix(e.ObjectRef.Name, "haulout")
	})
	must(t, err)
	last := func(wanted func(AuditEvent) bool) int {
		for i, e := range slices.Backward(deletions) {
			if wanted(e) {
				return i
			}
		}
		t.Errorf("the audit log lacks a deletion for %s", policy)
		return -1
	}
	right := last(func(e AuditEvent) bool { return e.Is("clusterroles") || e.Is("clusterrolebindings") })
	restricted := last(func(e AuditEvent) bool { return e.Is("validatingadmissionpolicies") && e.ObjectRef.Name == policy })
	bound := last(func(e AuditEvent) bool {
		return e.Is("validatingadmissionpolicybindings") && e.ObjectRef.Name == policy
	})
	if right > restricted || right > bound {
		t.Errorf("the policy %s is deleted before a right", policy)
	}
}

func (in *releaseOnCluster) expectNothingInstalled(t *testing.T) {
	t.Helper()
	must(t, Until(t.Context(), "nothing of Haulout is left", func() (bool, error) {
		left, err := in.AdminKubectl(t.Context(), "get", "--all-namespaces", "--selector=app.kubernetes.io/name=haulout", "--output=name",
			"namespaces,serviceaccounts,daemonsets,pods,configmaps,resourcequotas,roles,rolebindings,clusterroles,clusterrolebindings,"+
				"priorityclasses,validatingadmissionpolicies,validatingadmissionpolicybindings,networkpolicies")
		if err != nil {
			return false, err
		}
		left = strings.ReplaceAll(left, "No resources found\n", "")
		return left == "", fmt.Errorf("left: %s", left)
	}))
}

// Rights and policies follow the agents into a namespace of another name, which Helm creates.
func (in *releaseOnCluster) expectOtherNamespace(t *testing.T) {
	const namespace = "agents-of-nodes"
	args := []string{"haulout", in.Chart, "--namespace", namespace, "--set", "namespace.name=" + namespace}
	notes := in.helm(t, slices.Concat([]string{"install", "--create-namespace"}, args)...)
	expectNotes(t, notes, "installed in the namespace "+namespace, "kubectl delete namespace "+namespace,
		"haulout explain NODE -n "+namespace)
	_, err := in.AdminKubectl(t.Context(), "label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
	must(t, err)
	notes = in.helm(t, slices.Concat([]string{"upgrade"}, args)...)
	expectNotes(t, notes, "kubectl label --overwrite namespace "+namespace+" pod-security.kubernetes.io/enforce=privileged")
	_, err = in.AdminKubectl(t.Context(), "label", "--overwrite", "namespace", namespace, "pod-security.kubernetes.io/enforce=privileged")
	must(t, err)
	expectNoNotes(t, in.helm(t, slices.Concat([]string{"upgrade"}, args)...), "WARNING")
	// Also without a namespace of the chart, when the release is stored in another one.
	notes = in.helm(t, slices.Concat([]string{"install", "other", in.Chart, "--dry-run=client"},
		set("policiesOnly=true", "namespace.create=false", "namespace.name="+namespace))...)
	expectNotes(t, notes, "kubectl delete namespace "+namespace)

	node, err := in.Client.CoreV1().Nodes().Get(t.Context(), ownNode, getOptions)
	must(t, err)
	take := in.slotTaker(t, namespace, node)
	mine := slot("haulout-default-0", ownNode+"/"+string(node.UID), ownNode, string(node.UID))
	theirs := slot("haulout-default-0", "other/1", "other", "1")
	must(t, Until(t.Context(), "the policies are in force", func() (bool, error) {
		err := take(t.Context(), theirs)
		return err != nil && strings.Contains(err.Error(), "only for its own node"), err
	}))
	must(t, take(t.Context(), mine))
	if err := take(t.Context(), strings.Replace(mine, "haulout-default-0", "other", 1)); err == nil ||
		!strings.Contains(err.Error(), "only the Leases "+namespace+"/haulout-") {
		t.Errorf("the answer is %v", err)
	}
	in.helm(t, "uninstall", "haulout", "--namespace", namespace)
	in.expectNothingInstalled(t)
}

// slotTaker returns a function that creates a slot, as a dry run, as the agent of a node.
func (in *releaseOnCluster) slotTaker(t *testing.T, namespace string, node *corev1.Node) func(context.Context, string) error {
	t.Helper()
	config, err := in.AdminConfig()
	must(t, err)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":haulout",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
		Extra: map[string][]string{"authentication.kubernetes.io/node-name": {node.Name},
			"authentication.kubernetes.io/node-uid": {string(node.UID)}},
	}
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	return func(ctx context.Context, body string) error {
		return client.CoordinationV1().RESTClient().Post().AbsPath("/apis/coordination.k8s.io/v1/namespaces/"+namespace+"/leases").
			Param("dryRun", "All").SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(ctx).Error()
	}
}
