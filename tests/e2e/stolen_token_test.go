package e2e

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A thief who watches all pods may request the eviction of a pod within a millisecond of its creation, when the API
// server's caches do not know it yet. The server must refuse that, too.
func expectNewPodsSafe(t *testing.T, in *Installed) {
	const pods, askers = 100, 4
	acting := in.Own.As(ownNode)
	made := make(chan *corev1.Pod, pods)
	asked := sync.WaitGroup{}
	for range askers {
		asked.Go(func() {
			for pod := range made {
				for _, by := range []*AgentToken{in.Own, acting, in.Own, acting} {
					code, status, err := by.Send(t.Context(), evict(pod, evictionOf(pod, "")))
					if err != nil || code < 400 {
						t.Errorf("pod %s: %d %s %v", pod.Name, code, status.Message, err)
					}
				}
			}
		})
	}
	var all []*corev1.Pod
	for i := range pods {
		pod := Pod(fmt.Sprintf("new-%d", i))
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		pod.Spec.NodeName = otherNode
		if i%4 == 3 { // budgets do not protect a pod that is not scheduled yet
			pod.Spec.NodeName = ""
			pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "e2e.haulout.dev/never"}}
		}
		pod, err := in.Client.CoreV1().Pods("work").Create(t.Context(), pod, metav1.CreateOptions{})
		must(t, err)
		made <- pod
		all = append(all, pod)
	}
	close(made)
	asked.Wait()
	in.expectAlive(t, all...)
	for _, pod := range all {
		must(t, in.Client.CoreV1().Pods("work").Delete(t.Context(), pod.Name, *metav1.NewDeleteOptions(0)))
	}
}

// The agent's token is valid for a while after its Node was deleted. A thief who impersonates that Node cannot create
// it again.
func expectNodeStaysGone(t *testing.T, in *Installed) {
	const ghost = "ghost-node"
	must(t, in.Kubelets.AddNode(t.Context(), ghost, map[string]string{corev1.LabelOSStable: "linux"}))
	token := in.agentOn(t, ghost).As(ghost)
	must(t, in.Client.CoreV1().Nodes().Delete(t.Context(), ghost, metav1.DeleteOptions{}))
	body := `{"metadata":{"labels":{"kubernetes.io/os":"linux"}}}`
	in.tryAll(t, []attempt{
		denied("apply", token, apply(nodePath(ghost), "v1", "Node", ghost, body)),
		denied("make", token, post("/api/v1/nodes", `{"metadata":{"name":"`+ghost+`"}}`)),
		denied("replace", token, replace(nodePath(ghost), `{"metadata":{"name":"`+ghost+`"}}`)),
		{"patch", token, patch(nodePath(ghost), cordon), http.StatusNotFound},
	})
}

// The policies distinguish an agent that impersonates its node from the kubelet of that node. The kubelet may do
// everything that it has to do.
func expectKubeletsFree(t *testing.T, in *Installed) {
	const name = "kubelet-node"
	kubelet, err := in.KubeletOf(name)
	must(t, err)
	strategic := func(path, body string) Request {
		return Request{Method: http.MethodPatch, Path: path, Type: strategicPatch, Body: body}
	}
	status := func(body string) Request { return strategic(nodeStatusPath(name), body) }
	in.tryAll(t, []attempt{
		allowed("register", kubelet, post("/api/v1/nodes", `{"metadata":{"name":"`+name+`","labels":{"kubernetes.io/os":"none"}}}`), 201),
		allowed("label", kubelet, strategic(nodePath(name), `{"metadata":{"labels":{"node.kubernetes.io/instance-type":"x"}}}`), 200),
		allowed("annotate", kubelet, strategic(nodePath(name), `{"metadata":{"annotations":{"csi.volume.kubernetes.io/nodeid":"{}"}}}`), 200),
		allowed("provider", kubelet, strategic(nodePath(name), `{"spec":{"providerID":"x://y"}}`), 200),
		allowed("Ready", kubelet, status(`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`), 200),
		allowed("capacity", kubelet, status(`{"status":{"capacity":{"cpu":"4"},"allocatable":{"cpu":"4"}}}`), 200),
		allowed("address", kubelet, status(`{"status":{"addresses":[{"type":"InternalIP","address":"10.0.0.9"}]}}`), 200),
		allowed("image", kubelet, status(`{"status":{"images":[{"names":["x"],"sizeBytes":1}]}}`), 200),
		allowed("volume", kubelet, status(`{"status":{"volumesInUse":["x"]}}`), 200),
	})
	must(t, in.Client.CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{}))
}

// A policy cannot count objects. A ResourceQuota limits how many Leases there are.
func expectTurnsCounted(t *testing.T, in *Installed) {
	quotas := in.Client.CoreV1().ResourceQuotas(agentName)
	limit := func(count string) {
		_, err := quotas.Patch(t.Context(), "haulout-slots", types.MergePatchType,
			[]byte(`{"spec":{"hard":{"count/leases.coordination.k8s.io":"`+count+`"}}}`), metav1.PatchOptions{})
		must(t, err)
		must(t, Until(t.Context(), "the quota is counted anew", func() (bool, error) {
			quota, err := quotas.Get(t.Context(), "haulout-slots", getOptions)
			if err != nil {
				return false, err
			}
			now := quota.Status.Hard["count/leases.coordination.k8s.io"]
			return now.String() == count, nil
		}))
	}
	shipped, err := quotas.Get(t.Context(), "haulout-slots", getOptions)
	must(t, err)
	most := shipped.Spec.Hard["count/leases.coordination.k8s.io"]
	limit("2")
	turn := func(n int) string { return fmt.Sprintf("haulout-default-%d", n) }
	in.tryAll(t, []attempt{
		allowed("first", in.Own, post(leasesPath, in.Own.slot(turn(0))), 201),
		allowed("second", in.Own, post(leasesPath, in.Own.slot(turn(1))), 201),
		denied("third", in.Own, post(leasesPath, in.Own.slot(turn(2)))),
		allowed("first goes", in.Own, remove(leasesPath+"/"+turn(0), ""), 200),
		allowed("second goes", in.Own, remove(leasesPath+"/"+turn(1), ""), 200),
	})
	limit(most.String())
}

// The most memory, in bytes, that an agent may have while others flood what it reads.
const floodRSS = 64e6

// P12: Leases of 1.2 MB each, as many as a stolen token could once create, and a Node of the pool with the longest
// content that the server accepts. The agents, which wait for a slot, read no more than their memory limit allows, name
// the holder of these Leases in their message, and continue when the Leases are deleted.
func expectFloodEndured(t *testing.T, in *Installed) {
	f := newFleet(t, in.Cluster)
	must(t, f.AddNode(t.Context(), "long", "worker"))
	in.change(t, f.Node("long"), func(node *corev1.Node) {
		node.Labels = merged(node.Labels, floodLabels(9000))
		node.Annotations = merged(node.Annotations, map[string]string{"flood.example/long": strings.Repeat("x", 250_000)})
	})
	in.flood(t, f.Name, 36)
	f.startPods(t, in)
	f.offerAll(t, "1.1")
	must(t, Until(t.Context(), "each Node says who floods", func() (bool, error) {
		for _, machine := range f.Machines {
			node, err := in.Client.CoreV1().Nodes().Get(t.Context(), machine.Node, getOptions)
			if err != nil {
				return false, err
			}
			said := node.Annotations["haulout.dev/message"]
			if !strings.Contains(said, "namespace "+agentName) || !strings.Contains(said, agentName+"/haulout-"+f.Name+"-1") {
				return false, fmt.Errorf("%s: %q", node.Name, said)
			}
		}
		return true, nil
	}))
	for _, machine := range f.Machines {
		peak, running := peakMemory(machine.AgentPID())
		t.Logf("%s: at most %.1f MB", machine.Node, mb(peak))
		if !running || float64(peak) > floodRSS && !sanitized(t, haulout.Path) {
			t.Errorf("%s: running: %v, held %.1f MB, and at most %.0f MB are promised", machine.Node, running, mb(peak),
				floodRSS/1e6)
		}
	}
	must(t, in.Client.CoordinationV1().Leases(agentName).DeleteCollection(t.Context(), metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: "flood.example/0"}))
	f.expectUpdated(t, "1.1", 1, "")
	f.expectAuthority(t, "impersonation")
}

func floodLabels(count int) map[string]string {
	labels := map[string]string{}
	for i := range count {
		labels[fmt.Sprintf("flood.example/%d", i)] = strings.Repeat("x", 60)
	}
	return labels
}

// flood creates Leases of a pool, each with the longest content that the server accepts, and own-node as their holder.
func (in *Installed) flood(t *testing.T, pool string, count int) {
	t.Helper()
	labels, holder := merged(floodLabels(9000), map[string]string{"haulout.dev/pool": pool}), in.Own.Holder()
	long := map[string]string{"flood.example/long": strings.Repeat("x", 250_000)}
	numbers, flooding := make(chan int, count), sync.WaitGroup{}
	for i := range count {
		numbers <- 1000 + i
	}
	close(numbers)
	for range 4 {
		flooding.Go(func() {
			for number := range numbers {
				lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}
				lease.Name, lease.Labels, lease.Annotations = fmt.Sprintf("haulout-%s-%d", pool, number), labels, long
				_, err := in.Client.CoordinationV1().Leases(agentName).Create(t.Context(), lease, metav1.CreateOptions{})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	flooding.Wait()
}

// rememberRules records the message with which each rule of each policy refuses. For a message that is an expression,
// it records the longest constant text in it.
func (in *Installed) rememberRules(t *testing.T) {
	t.Helper()
	policies, err := in.Client.AdmissionregistrationV1().ValidatingAdmissionPolicies().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, policy := range policies.Items {
		said := []string{}
		for _, rule := range policy.Spec.Validations {
			text := rule.Message
			for _, literal := range quoted.FindAllStringSubmatch(rule.MessageExpression, -1) {
				if part := literal[1] + literal[2]; len(part) > len(text) {
					text = part
				}
			}
			said = append(said, text)
		}
		in.rules[policy.Name] = said
	}
}

var quoted = regexp.MustCompile(`'([^']*)'|"([^"]*)"`)

// note records the messages with which policies refused a request.
func (in *Installed) note(status *metav1.Status) {
	if status.Details == nil {
		return
	}
	for _, cause := range status.Details.Causes {
		in.refusals[cause.Message] = true
	}
}

// expectRulesTried checks that each rule of each policy has refused a request. So a rule that is lost or never refuses
// is found.
func (in *Installed) expectRulesTried(t *testing.T) {
	for policy, rules := range in.rules {
		for _, rule := range rules {
			found := false
			for said := range in.refusals {
				found = found || strings.Contains(said, "'"+policy+"'") && strings.Contains(said, rule)
			}
			if !found {
				t.Errorf("policy %s: no request was refused by the rule %q", policy, rule)
			}
		}
	}
}
