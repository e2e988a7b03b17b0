package e2e

import (
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// attempt is a request of an agent and the status code that the API server must answer.
type attempt struct {
	name string
	by   *AgentToken
	what Request
	code int
}

func denied(name string, by *AgentToken, what Request) attempt {
	return attempt{name, by, what, http.StatusForbidden}
}

func allowed(name string, by *AgentToken, what Request, code int) attempt {
	return attempt{name, by, what, code}
}

// tryAll sends the requests in their order: later ones depend on what earlier ones have changed.
func (in *Installed) tryAll(t *testing.T, attempts []attempt) {
	t.Helper()
	for _, a := range attempts {
		code, status, err := a.by.Send(t.Context(), a.what)
		must(t, err)
		in.note(status)
		if code != a.code {
			t.Errorf("%s: %s %s %s: %d, want %d: %s", a.name, a.what.Method, a.what.Path, a.what.Body, code, a.code,
				status.Message)
		}
	}
}

const (
	cordon = `{"spec":{"unschedulable":true},"metadata":{"annotations":{"haulout.dev/cordon":"{}"},` +
		`"labels":{"haulout.dev/state":"draining"}}}`
	uncordon = `{"spec":{"unschedulable":null},"metadata":{"annotations":{"haulout.dev/cordon":null},` +
		`"labels":{"haulout.dev/state":"idle"}}}`
	excluded  = `{"metadata":{"labels":{"node.kubernetes.io/exclude-from-external-load-balancers":"haulout"}}}`
	included  = `{"metadata":{"labels":{"node.kubernetes.io/exclude-from-external-load-balancers":null}}}`
	condition = `{"status":{"conditions":[{"type":"MaintenanceInProgress","status":"True","reason":"Draining",` +
		`"message":"haulout: x","lastHeartbeatTime":"2026-01-01T00:00:00Z","lastTransitionTime":"2026-01-01T00:00:00Z"},` +
		`{"type":"DrainInProgress","status":"True","reason":"Draining","message":"haulout: x"}]}}`
	noCondition = `{"status":{"conditions":[{"type":"MaintenanceInProgress","$patch":"delete"},` +
		`{"type":"DrainInProgress","$patch":"delete"}]}}`
)

func conditionPatch(node, body string) Request {
	return Request{Method: http.MethodPatch, Path: nodeStatusPath(node), Type: strategicPatch, Body: body}
}

// ownNodeWork returns what an agent does with its Node and the pods on it, under the authority of `as`.
func ownNodeWork(as *AgentToken, pod *corev1.Pod) []attempt {
	return []attempt{
		allowed("see the own Node", as, get(nodePath(ownNode)), 200),
		allowed("watch the own Node", as,
			get("/api/v1/nodes?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3D"+ownNode), 200),
		allowed("list the own pods", as, get(podsOn(ownNode)), 200),
		allowed("watch the own pods", as, get(podsOn(ownNode)+"&watch=1&timeoutSeconds=1"), 200),
		allowed("cordon", as, patch(nodePath(ownNode), cordon), 200),
		allowed("leave the load balancers", as, patch(nodePath(ownNode), excluded), 200),
		allowed("hold autoscalers", as, patch(nodePath(ownNode),
			annotations(scaleDown, `"true"`, heldMark, `"`+scaleDown+`"`)), 200),
		denied("claim a person's annotation during the hold", as, patch(nodePath(ownNode),
			annotations(heldMark, `"`+scaleDown+","+doNotDisrupt+`"`))),
		denied("keep the mark without its annotation", as, patch(nodePath(ownNode), annotations(scaleDown, `null`))),
		allowed("condition", as, conditionPatch(ownNode, condition), 200),
		allowed("evict, dry", as, evict(pod, evictionOf(pod, `,"dryRun":["All"]`)), 201),
		allowed("evict", as, evict(pod, evictionOf(pod, "")), 201),
		allowed("condition goes", as, conditionPatch(ownNode, noCondition), 200),
		allowed("hold autoscalers no longer", as, patch(nodePath(ownNode),
			annotations(scaleDown, `null`, heldMark, `null`)), 200),
		allowed("hold none", as, patch(nodePath(ownNode), annotations(heldMark, `"none"`)), 200),
		allowed("the hold of none ends", as, patch(nodePath(ownNode), annotations(heldMark, `null`)), 200),
		allowed("back to the load balancers", as, patch(nodePath(ownNode), included), 200),
		allowed("uncordon", as, patch(nodePath(ownNode), uncordon), 200),
	}
}

// neverToOthers returns what no agent may do, under whatever authority. `by` sends each of these requests.
func neverToOthers(by *AgentToken, own, other *corev1.Pod) []attempt {
	return []attempt{
		denied("cordon another Node", by, patch(nodePath(otherNode), cordon)),
		denied("uncordon another Node", by, patch(nodePath(otherNode), uncordon)),
		denied("label another Node", by, patch(nodePath(otherNode), `{"metadata":{"labels":{"haulout.dev/state":"idle"}}}`)),
		denied("another Node's condition", by, conditionPatch(otherNode, condition)),
		denied("delete another Node", by, remove(nodePath(otherNode), "")),
		denied("delete the own Node", by, remove(nodePath(ownNode), "")),
		denied("make a Node", by, post("/api/v1/nodes", `{"metadata":{"name":"third"}}`)),
		denied("taint the own Node", by, patch(nodePath(ownNode), `{"spec":{"taints":[{"key":"x","effect":"NoExecute"}]}}`)),
		denied("owner of the own Node", by, patch(nodePath(ownNode),
			`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"x","uid":"x"}]}}`)),
		denied("evict another node's pod", by, evict(other, evictionOf(other, ""))),
		denied("evict another node's pod, dry", by, evict(other, evictionOf(other, `,"dryRun":["All"]`))),
		denied("evict without a UID", by, evict(own, eviction(own, ""))),
		denied("evict with an empty UID", by, evict(own, eviction(own, `,"deleteOptions":{"preconditions":{"uid":""}}`))),
		denied("delete a pod", by, remove(podPath(own), "")),
		denied("delete another node's pod", by, remove(podPath(other), "")),
		denied("delete all pods", by, remove("/api/v1/namespaces/work/pods", "")),
		denied("change a pod", by, patch(podPath(own), `{"metadata":{"labels":{"x":"y"}}}`)),
	}
}

// neverToOwnNode returns changes of its own Node that an agent does not need and must not make. A kubelet may make some
// of them.
func neverToOwnNode(by *AgentToken, own *corev1.Pod) []attempt {
	return []attempt{
		denied("foreign label", by, patch(nodePath(ownNode), `{"metadata":{"labels":{"tier":"gold"}}}`)),
		denied("label of the fixture gone", by, patch(nodePath(ownNode), `{"metadata":{"labels":{"kubernetes.io/os":null}}}`)),
		denied("label changed", by, patch(nodePath(ownNode), `{"metadata":{"labels":{"kubernetes.io/os":"hurd"}}}`)),
		denied("label by the way of the status", by,
			conditionPatch(ownNode, `{"metadata":{"labels":{"tier":"gold"}}}`)),
		denied("foreign annotation", by, patch(nodePath(ownNode), `{"metadata":{"annotations":{"x/y":"z"}}}`)),
		denied("annotation gone", by, patch(nodePath(ownNode), `{"metadata":{"annotations":{"e2e.haulout.dev/keep":null}}}`)),
		denied("finalizer", by, patch(nodePath(ownNode), `{"metadata":{"finalizers":["x/y"]}}`)),
		denied("provider", by, patch(nodePath(ownNode), `{"spec":{"providerID":"x"}}`)),
		denied("pod network", by, patch(nodePath(ownNode), `{"spec":{"podCIDR":"10.9.0.0/24","podCIDRs":["10.9.0.0/24"]}}`)),
		denied("Ready", by, conditionPatch(ownNode, `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`)),
		denied("capacity", by, conditionPatch(ownNode, `{"status":{"capacity":{"cpu":"1"}}}`)),
		denied("address", by, conditionPatch(ownNode,
			`{"status":{"addresses":[{"type":"InternalIP","address":"10.0.0.9"}]}}`)),
		denied("shorter grace", by, evict(own, evictionOf(own, `,"gracePeriodSeconds":0`))),
	}
}

// turns returns requests for slots. Agents always take slots as the ServiceAccount.
func turns(in *Installed) []attempt {
	first, second := leasesPath+"/haulout-default-0", leasesPath+"/haulout-default.eu-1a-1"
	own, other := in.Own, in.Other
	return []attempt{
		denied("take a turn for another node", other, post(leasesPath, own.slot("haulout-default-0"))),
		denied("take a turn for nobody", own, post(leasesPath, slot("haulout-default-0", "", own.Node, own.NodeUID))),
		denied("take a turn that outlives the Node", own,
			post(leasesPath, `{"metadata":{"name":"haulout-default-0"},"spec":{"holderIdentity":"`+own.Holder()+`"}}`)),
		denied("take a turn that goes with another Node", own,
			post(leasesPath, slot("haulout-default-0", own.Holder(), other.Node, other.NodeUID))),
		denied("take a turn for a Node that has gone", own,
			post(leasesPath, slot("haulout-default-0", ownNode+"/gone", ownNode, "gone"))),
		denied("take a turn without a pod", in.Unbound, post(leasesPath, own.slot("haulout-default-0"))),
		denied("another Lease", own, post(leasesPath, own.slot("leader"))),
		denied("a Lease elsewhere", own,
			post("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", own.slot("haulout-default-0"))),

		allowed("take a turn", own, post(leasesPath, own.slot("haulout-default-0")), 201),
		allowed("a turn is taken once", other, post(leasesPath, other.slot("haulout-default-0")), 409),
		allowed("take the turn of a zone", other, post(leasesPath, other.slot("haulout-default.eu-1a-1")), 201),
		allowed("see all turns", own, get(leasesPath+"?labelSelector=haulout.dev%2Fpool%3Ddefault"), 200),

		denied("steal a turn", other, patch(first, `{"spec":{"holderIdentity":"`+other.Holder()+`"}}`)),
		denied("empty another node's turn", other, patch(first, `{"spec":{"holderIdentity":""}}`)),
		denied("touch another node's turn", other, patch(first, `{"metadata":{"labels":{"x":"y"}}}`)),
		denied("free another node's turn", other, remove(first, "")),
		denied("free all turns", other, remove(leasesPath, "")),
		denied("hand the own turn on", own, patch(first, `{"spec":{"holderIdentity":"`+other.Holder()+`"}}`)),
		denied("keep the own turn beyond the Node", own, patch(first, `{"metadata":{"ownerReferences":null}}`)),

		denied("touch the own turn", own, patch(first, `{"metadata":{"annotations":{"haulout.dev/x":"y"}}}`)),
		allowed("free a turn that is another by now", own, remove(first,
			`{"preconditions":{"uid":"00000000-0000-0000-0000-000000000000"}}`), 409),
		allowed("free the own turn", own, remove(first, ""), 200),
		allowed("free the own turn of a zone", other, remove(second, ""), 200),
	}
}

// fleet returns what an agent reads and writes besides its Node, always as the ServiceAccount.
func fleet(by *AgentToken) []attempt {
	events := "/apis/events.k8s.io/v1/namespaces/default/events"
	return []attempt{
		allowed("who am I", by, post("/apis/authentication.k8s.io/v1/selfsubjectreviews",
			`{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`), 201),
		allowed("all Nodes", by, get("/api/v1/nodes"), 200),
		allowed("budgets", by, get("/apis/policy/v1/poddisruptionbudgets"), 200),
		allowed("VolumeAttachments", by, get("/apis/storage.k8s.io/v1/volumeattachments"), 200),
		allowed("a PersistentVolume", by, get("/api/v1/persistentvolumes/own-node-none"), 404),
		allowed("a DaemonSet", by, get("/apis/apps/v1/namespaces/"+agentName+"/daemonsets/"+agentName), 200),
		allowed("pauses", by, get("/api/v1/namespaces/"+agentName+"/configmaps/haulout"), 200),
		allowed("watch pauses", by, get("/api/v1/namespaces/"+agentName+
			"/configmaps?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Dhaulout"), 200),
		allowed("Event", by, post(events, `{"metadata":{"generateName":"own-node-"},"eventTime":"2026-01-01T00:00:00.000000Z",`+
			`"reportingController":"haulout.dev/agent","reportingInstance":"own-node","action":"Drain","reason":"Draining",`+
			`"type":"Normal","regarding":{"kind":"Node","name":"own-node"}}`), 201),

		denied("Secrets", by, get("/api/v1/namespaces/"+agentName+"/secrets")),
		denied("other ConfigMaps", by, get("/api/v1/namespaces/kube-system/configmaps")),
		denied("write pauses", by, patch("/api/v1/namespaces/"+agentName+"/configmaps/haulout", `{"data":{"pause":null}}`)),
		denied("Events elsewhere", by, post("/apis/events.k8s.io/v1/namespaces/work/events", `{}`)),
		denied("tokens", by, post("/api/v1/namespaces/"+agentName+"/serviceaccounts/"+agentName+"/token", `{}`)),
	}
}

// P11: with the shipped manifests, an agent does all of its work as its node, and can change nothing that is not its
// own, as whatever user.
func expectOwnNodeOnly(t *testing.T, in *Installed) {
	own, other := in.pod(t, ownNode), in.pod(t, otherNode)
	acting := in.Own.As(ownNode)
	t.Run("as the node", func(t *testing.T) {
		in.tryAll(t, ownNodeWork(acting, in.pod(t, ownNode)))
		in.tryAll(t, neverToOthers(acting, own, other))
		in.tryAll(t, neverToOwnNode(acting, own))
		in.tryAll(t, []attempt{
			denied("act as another node", in.Own.As(otherNode), patch(nodePath(otherNode), cordon)),
			denied("act as another node to evict", in.Own.As(otherNode), evict(other, evictionOf(other, ""))),
			denied("act as the own node without a pod", in.Unbound.As(ownNode), patch(nodePath(ownNode), cordon)),
			denied("another node's pods", acting, get(podsOn(otherNode))),
			denied("all pods", acting, get("/api/v1/pods")),
			denied("another Node", acting, get(nodePath(otherNode))),
			denied("Secrets", acting, get("/api/v1/namespaces/work/secrets")),
			denied("Leases as the node", acting, post(leasesPath, in.Own.slot("haulout-default-0"))),
		})
	})
	t.Run("as the ServiceAccount", func(t *testing.T) {
		in.tryAll(t, neverToOthers(in.Own, own, other))
		in.tryAll(t, []attempt{
			denied("own Node", in.Own, patch(nodePath(ownNode), cordon)),
			denied("own condition", in.Own, conditionPatch(ownNode, condition)),
			denied("own pod", in.Own, evict(own, evictionOf(own, ""))),
			denied("own pods", in.Own, get(podsOn(ownNode))),
			denied("all pods", in.Own, get("/api/v1/pods")),
		})
	})
	t.Run("turns", func(t *testing.T) {
		in.tryAll(t, turns(in))
		put := Request{Method: http.MethodPut, Path: leasesPath + "/haulout-default-0", Type: "application/json",
			Body: in.Own.slot("haulout-default-0")}
		in.tryAll(t, []attempt{denied("make a turn that was cleared away again", in.Own, put)})
	})
	t.Run("fleet", func(t *testing.T) { in.tryAll(t, fleet(in.Own)) })
	in.expectAlive(t, own, other)
}

// With the component policies-only, an agent works as its ServiceAccount, and policies restrict it to its own Node.
func expectPoliciesHold(t *testing.T, in *Installed) {
	own, other := in.pod(t, ownNode), in.pod(t, otherNode)
	none := Pod("none")
	none.Namespace = own.Namespace
	in.tryAll(t, ownNodeWork(in.Own, in.pod(t, ownNode)))
	in.awaitNoCordonTaint(t)
	in.tryAll(t, taintWork(in.Own))
	in.tryAll(t, neverToOthers(in.Own, own, other))
	in.tryAll(t, neverToOwnNode(in.Own, own))
	in.tryAll(t, []attempt{
		denied("own Node without a pod", in.Unbound, patch(nodePath(ownNode), cordon)),
		denied("evict without a pod", in.Unbound, evict(own, evictionOf(own, ""))),
		denied("pod of another instance", in.Own,
			evict(own, eviction(own, `,"deleteOptions":{"preconditions":{"uid":"another"}}`))),
		denied("act as the own node", in.Own.As(ownNode), patch(nodePath(ownNode), cordon)),
		denied("evict what does not exist without a UID", in.Own, evict(none, eviction(none, ""))),
	})
	in.tryAll(t, turns(in))
	in.tryAll(t, fleet(in.Own))
	in.expectAlive(t, own, other)
}

// The policies restrict an agent by themselves: even with all rights of the cluster it can do no more.
func expectPoliciesHoldAnAdministrator(t *testing.T, in *Installed) {
	own, other := in.pod(t, ownNode), in.pod(t, otherNode)
	in.tryAll(t, ownNodeWork(in.Own, in.pod(t, ownNode)))
	in.awaitNoCordonTaint(t)
	in.tryAll(t, taintWork(in.Own))
	in.tryAll(t, neverToOthers(in.Own, own, other))
	in.tryAll(t, neverToOwnNode(in.Own, own))
	in.tryAll(t, turns(in))
	in.tryAll(t, connections(in.Own, own))
	expectPolicyAttacksFail(t, in)
	in.expectAlive(t, own, other)
}

// awaitNoCordonTaint waits until the own Node has a person's taint only, because taintWork writes all taints. The control plane
// adds and removes the taint of a cordon some time after the change of the cordon, in the order of these changes. So another
// cordon shows when it has caught up with the earlier ones.
func (in *Installed) awaitNoCordonTaint(t *testing.T) {
	t.Helper()
	in.change(t, ownNode, func(node *corev1.Node) { node.Spec.Unschedulable = true })
	must(t, Until(t.Context(), "the cordon has its taint", func() (bool, error) {
		node, err := in.Client.CoreV1().Nodes().Get(t.Context(), ownNode, getOptions)
		return err == nil && slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
			return taint.Key == corev1.TaintNodeUnschedulable
		}), err
	}))
	in.change(t, ownNode, func(node *corev1.Node) { node.Spec.Unschedulable = false })
	must(t, Until(t.Context(), "the taint of the cordon is gone", func() (bool, error) {
		node, err := in.Client.CoreV1().Nodes().Get(t.Context(), ownNode, getOptions)
		return err == nil && len(node.Spec.Taints) == 1 && isPersons(node.Spec.Taints[0]), err
	}))
}

// expectAlive fails if a pod was deleted or replaced although the server refused the request.
func (in *Installed) expectAlive(t *testing.T, pods ...*corev1.Pod) {
	t.Helper()
	for _, pod := range pods {
		now, err := in.Client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, getOptions)
		must(t, err)
		if now.UID != pod.UID || now.DeletionTimestamp != nil {
			t.Errorf("pod %s was touched", pod.Name)
		}
	}
}
