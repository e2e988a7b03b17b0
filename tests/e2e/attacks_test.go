package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// change is a change of a Node. If mayBe is true, an agent that impersonates the Node may make it on its own Node.
type change struct {
	name, path, body string
	types            []string // content types of patches that can express this change
	mayBe            bool
}

var patchTypes = []string{mergePatch, strategicPatch, applyPatch}

// The annotations for autoscalers, and the one that names those that the agent has set.
const (
	scaleDown    = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	doNotDisrupt = "karpenter.sh/do-not-disrupt"
	heldMark     = "haulout.dev/held-autoscalers"
)

// The taint of an agent whose node waits for its update, a person's taint that looks like it, and their marks.
const (
	waitingMark = "haulout.dev/waiting-taint"
	ourTaint    = `{"key":"example.com/waits","value":"yes","effect":"PreferNoSchedule","timeAdded":"2026-01-02T00:00:00Z"}`
	ourMark     = `"example.com/waits=yes:PreferNoSchedule@2026-01-02T00:00:00Z"`
	theirTaint  = `{"key":"example.com/person","value":"x","effect":"PreferNoSchedule","timeAdded":"2026-01-01T00:00:00Z"}`
	theirMark   = `"example.com/person=x:PreferNoSchedule@2026-01-01T00:00:00Z"`
)

// tainted returns a patch of the mark and of all taints.
func tainted(mark string, taints ...string) string {
	return fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}},"spec":{"taints":[%s]}}`, waitingMark, mark,
		strings.Join(taints, ","))
}

// taintChanges returns changes of taints and their mark that no agent may make. The Node has a person's taint.
func taintChanges() []change {
	spec := func(name, body string) change { return change{name, "", body, patchTypes[:2], false} }
	with := func(name, key, effect string) change {
		taint := fmt.Sprintf(`{"key":%q,"effect":%q,"timeAdded":"2026-01-02T00:00:00Z"}`, key, effect)
		return spec(name, tainted(`"`+key+`=:`+effect+`@2026-01-02T00:00:00Z"`, theirTaint, taint))
	}
	timeless := `{"key":"example.com/waits","effect":"PreferNoSchedule"}`
	strict := `{"key":"example.com/waits","effect":"NoSchedule"}`
	return []change{
		spec("a taint without the mark", tainted("null", theirTaint, ourTaint)),
		spec("a taint with another mark", tainted(`"none"`, theirTaint, ourTaint)),
		spec("a taint without a time", tainted(`"example.com/waits=:PreferNoSchedule@"`, theirTaint, timeless)),
		spec("a second taint", tainted(ourMark, theirTaint, ourTaint, strict)),
		spec("a mark without its taint", annotations(waitingMark, ourMark)),
		spec("a person's taint claimed", annotations(waitingMark, theirMark)),
		spec("a person's taint claimed and gone", tainted(`null`)),
		spec("a person's taint replaced", tainted(ourMark, ourTaint)),
		{"a mark by the status", "/status", annotations(waitingMark, theirMark), patchTypes[:2], false},
		with("a taint that keeps pods away", "example.com/waits", "NoSchedule"),
		with("a taint that evicts", "example.com/waits", "NoExecute"),
		with("out of service", "node.kubernetes.io/out-of-service", "PreferNoSchedule"),
		with("a key of Kubernetes", "kubernetes.io/x", "PreferNoSchedule"),
		with("a key of a project", "readiness.k8s.io/x", "PreferNoSchedule"),
		with("a key of Cluster API", "node.cluster.x-k8s.io/x", "PreferNoSchedule"),
		with("a key of Karpenter", "karpenter.sh/disrupted", "PreferNoSchedule"),
		with("a key of the autoscaler", "ToBeDeletedByClusterAutoscaler", "PreferNoSchedule"),
	}
}

// taintWork returns what an agent with its ServiceAccount does with its taint, and what it may not do meanwhile.
func taintWork(by *AgentToken) []attempt {
	at := nodePath(ownNode)
	return []attempt{
		allowed("its taint", by, patch(at, tainted(ourMark, theirTaint, ourTaint)), 200),
		denied("the mark gone, the taint left", by, patch(at, annotations(waitingMark, "null"))),
		denied("the mark none, the taint left", by, patch(at, annotations(waitingMark, `"none"`))),
		denied("a person's taint in its place", by, patch(at, tainted(theirMark, theirTaint, ourTaint))),
		denied("its taint gone with a person's", by, patch(at, tainted("null"))),
		denied("its taint gone with the mark claiming", by, patch(at, tainted(theirMark, theirTaint))),
		allowed("another taint of its own", by, patch(at, tainted(strings.Replace(ourMark, "waits", "next", 1), theirTaint,
			strings.Replace(ourTaint, "waits", "next", 1))), 200),
		allowed("its taint gone", by, patch(at, tainted("null", theirTaint)), 200),
		allowed("the mark of an update in which a person removed it", by, patch(at, annotations(waitingMark, `"none"`)), 200),
		allowed("no mark", by, patch(at, annotations(waitingMark, "null")), 200),
	}
}

// annotations returns a patch of annotations: names, each followed by its value as JSON.
func annotations(pairs ...string) string {
	var all []string
	for i := 0; i+1 < len(pairs); i += 2 {
		all = append(all, fmt.Sprintf("%q:%s", pairs[i], pairs[i+1]))
	}
	return `{"metadata":{"annotations":{` + strings.Join(all, ",") + `}}}`
}

// nodeChanges returns a change for each kind of field of a Node. Changes of the status are not sent as merge patches,
// because these would replace whole lists.
func nodeChanges() []change {
	spec := func(name, body string) change { return change{name, "", body, patchTypes, false} }
	status := func(name, body string) change {
		return change{name, "/status", body, []string{strategicPatch, applyPatch}, false}
	}
	at := `"lastHeartbeatTime":"2026-01-01T00:00:00Z","lastTransitionTime":"2026-01-01T00:00:00Z"`
	told := func(kind, status, message string) string {
		return fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":%q,"reason":"X","message":%q,%s}]}}`, kind, status,
			message, at)
	}
	conditionOf := func(kind string) string { return told(kind, "True", "haulout: x") }
	many := []string{}
	for i := range 40 {
		many = append(many, fmt.Sprintf(`"haulout.dev/x%d":""`, i))
	}
	changes := []change{
		spec("label", `{"metadata":{"labels":{"tier":"gold"}}}`),
		spec("pool", `{"metadata":{"labels":{"node-pool":"gold"}}}`),
		spec("zone", `{"metadata":{"labels":{"topology.kubernetes.io/zone":"b"}}}`),
		spec("system", `{"metadata":{"labels":{"kubernetes.io/os":"hurd"}}}`),
		spec("role", `{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":""}}}`),
		spec("many labels", `{"metadata":{"labels":{`+strings.Join(many, ",")+`}}}`),
		spec("annotation", `{"metadata":{"annotations":{"x/y":"z"}}}`),
		spec("network", `{"metadata":{"annotations":{"flannel.alpha.coreos.com/public-ip":"10.0.0.9"}}}`),
		// The Node has no annotation scaleDown, and a person's annotation doNotDisrupt.
		spec("scale-down without the mark", annotations(scaleDown, `"true"`)),
		spec("the mark without scale-down", annotations(heldMark, `"`+scaleDown+`"`)),
		spec("scale-down with another mark", annotations(scaleDown, `"true"`, heldMark, `"x`+scaleDown+`"`)),
		spec("scale-down with another value", annotations(scaleDown, `"false"`, heldMark, `"`+scaleDown+`"`)),
		spec("a person's annotation claimed", annotations(heldMark, `"`+doNotDisrupt+`"`)),
		spec("a person's annotation claimed, too",
			annotations(scaleDown, `"true"`, heldMark, `"`+scaleDown+","+doNotDisrupt+`"`)),
		spec("a person's annotation changed", annotations(doNotDisrupt, `"false"`, heldMark, `"`+doNotDisrupt+`"`)),
		{"a person's annotation gone", "", annotations(doNotDisrupt, `null`), patchTypes[:2], false},
		{"a person's annotation gone with the mark", "", annotations(doNotDisrupt, `null`, heldMark, `"none"`),
			patchTypes[:2], false},
		spec("annotation of another", `{"metadata":{"annotations":{"e2e.haulout.dev/keep":"no"}}}`),
		spec("finalizer", `{"metadata":{"finalizers":["x/y"]}}`),
		spec("owner", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"x","uid":"x"}]}}`),
		spec("provider", `{"spec":{"providerID":"x"}}`),
		spec("pod network", `{"spec":{"podCIDR":"10.9.0.0/24","podCIDRs":["10.9.0.0/24"]}}`),
		spec("taint", `{"spec":{"taints":[{"key":"x","effect":"NoExecute"}]}}`),
		{"label gone", "", `{"metadata":{"labels":{"kubernetes.io/os":null}}}`, patchTypes[:2], false},
		{"annotation gone", "", `{"metadata":{"annotations":{"e2e.haulout.dev/keep":null}}}`, patchTypes[:2], false},
		{"no conditions", "/status", `{"status":{"conditions":null}}`, patchTypes[:1], false},
		status("label by the status", `{"metadata":{"labels":{"tier":"gold"}}}`),
		status("annotation by the status", `{"metadata":{"annotations":{"x/y":"z"}}}`),
		status("Ready", conditionOf("Ready")),
		status("a condition", conditionOf("KernelDeadlock")),
		status("ours in the name of another", told("Drained", "True", "kubectl: drained")),
		status("ours that is not True", told("Drained", "False", "haulout: x")),
		status("like ours", conditionOf("HauloutMaintenanceX")),
		status("capacity", `{"status":{"capacity":{"cpu":"1"}}}`),
		status("allocatable", `{"status":{"allocatable":{"cpu":"1"}}}`),
		status("address", `{"status":{"addresses":[{"type":"InternalIP","address":"10.0.0.9"}]}}`),
		status("port", `{"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":9}}}}`),
		status("boot", `{"status":{"nodeInfo":{"bootID":"x","machineID":"","systemUUID":"","kernelVersion":"","osImage":"",`+
			`"containerRuntimeVersion":"","kubeletVersion":"","kubeProxyVersion":"","operatingSystem":"","architecture":""}}}`),
		status("image", `{"status":{"images":[{"names":["x"],"sizeBytes":1}]}}`),
		status("volume", `{"status":{"volumesInUse":["x"]}}`),
		status("attached", `{"status":{"volumesAttached":[{"name":"x","devicePath":"x"}]}}`),
		{"cordon", "", `{"spec":{"unschedulable":true},"metadata":{"annotations":{"haulout.dev/cordon":"{}"}}}`, patchTypes, true},
		{"our label", "", `{"metadata":{"labels":{"haulout.dev/state":"degraded"}}}`, patchTypes, true},
		{"balancers", "", excluded, patchTypes, true},
		{"autoscalers held", "", annotations(scaleDown, `"true"`, heldMark, `"`+scaleDown+`"`), patchTypes, true},
	}
	for _, kind := range []string{
		"HauloutMaintenance", "MaintenancePlanned", "DrainInProgress", "Drained", "MaintenanceInProgress",
	} {
		changes = append(changes, change{kind, "/status", conditionOf(kind), []string{strategicPatch}, true})
	}
	return append(changes, taintChanges()...)
}

func (c change) of(node, kind string) Request {
	if path := nodePath(node) + c.path; kind == applyPatch {
		return apply(path, "v1", "Node", node, c.body)
	} else {
		return Request{Method: http.MethodPatch, Path: path + "?dryRun=All", Type: kind, Body: c.body}
	}
}

// nodeAttacks returns all changes of another Node, and those changes of the agent's own Node that must be refused: if
// `isOwn` is true, the ones that an agent never makes, otherwise all of them.
func nodeAttacks(by *AgentToken, isOwn bool) (attempts []attempt) {
	for _, c := range nodeChanges() {
		for _, kind := range c.types {
			if !isOwn || !c.mayBe {
				attempts = append(attempts, denied(c.name+" of the own Node", by, c.of(ownNode, kind)))
			}
			attempts = append(attempts, denied(c.name+" of another Node", by, c.of(otherNode, kind)))
			if kind == applyPatch && c.path == "" {
				attempts = append(attempts, denied(c.name+" of no Node", by, c.of("ghost", kind)))
			}
		}
	}
	return append(attempts,
		denied("make a Node", by, post("/api/v1/nodes", `{"metadata":{"name":"ghost"}}`)),
		denied("make the own Node", by, post("/api/v1/nodes", `{"metadata":{"name":"`+ownNode+`"}}`)),
		denied("all Nodes", by, remove("/api/v1/nodes", "")),
		denied("the own Node", by, remove(nodePath(ownNode), "")))
}

func replace(path, body string) Request {
	return Request{Method: http.MethodPut, Path: path, Type: "application/json", Body: body}
}

func connections(by *AgentToken, pod *corev1.Pod) (attempts []attempt) {
	for _, sub := range []string{"exec?command=sh&container=main", "attach?container=main", "portforward", "proxy", "proxy/x"} {
		attempts = append(attempts, denied(sub, by, get(podPath(pod)+"/"+sub)), denied(sub, by, post(podPath(pod)+"/"+sub, "")))
	}
	return attempts
}

// podAttacks returns everything that may be done to a pod, except its eviction from the agent's own node.
func podAttacks(by *AgentToken, pod *corev1.Pod) []attempt {
	path := podPath(pod)
	attempts := []attempt{
		denied("read", by, get(path)),
		denied("log", by, get(path+"/log")),
		denied("delete", by, remove(path, "")),
		denied("delete at once", by, remove(path, `{"gracePeriodSeconds":0}`)),
		denied("label", by, patch(path, `{"metadata":{"labels":{"x":"y"}}}`)),
		denied("finalizer", by, patch(path, `{"metadata":{"finalizers":null}}`)),
		denied("status", by, patch(path+"/status", `{"status":{"phase":"Failed"}}`)),
		denied("debug", by, patch(path+"/ephemeralcontainers", `{"spec":{"ephemeralContainers":[]}}`)),
		denied("resize", by, patch(path+"/resize", `{"spec":{"containers":[]}}`)),
		denied("bind", by, post(path+"/binding", `{"metadata":{"name":"`+pod.Name+`"},"target":{"name":"`+ownNode+`"}}`)),
		denied("replace", by, replace(path, `{"metadata":{"name":"`+pod.Name+`"}}`)),
		denied("apply", by, apply(path, "v1", "Pod", pod.Name, `{"metadata":{"labels":{"x":"y"}}}`)),
		denied("evict without a UID", by, evict(pod, eviction(pod, ""))),
		denied("evict with an empty UID", by, evict(pod, eviction(pod, `,"deleteOptions":{"preconditions":{"uid":""}}`))),
		denied("evict with another grace", by, evict(pod, evictionOf(pod, `,"gracePeriodSeconds":0`))),
		denied("evict, older API", by, evict(pod, strings.Replace(eviction(pod, ""), "policy/v1", "policy/v1beta1", 1))),
	}
	return append(attempts, connections(by, pod)...)
}

// longFields returns managedFields that are longer than the object they describe, or that describe other fields than it
// has.
func longFields(version, field string) (all []string) {
	entry := func(manager int, fields string) string {
		return fmt.Sprintf(`{"manager":"m%d","operation":"Update","apiVersion":%q,"time":"2026-01-01T00:00:00Z",`+
			`"fieldsType":"FieldsV1","fieldsV1":%s}`, manager, version, fields)
	}
	long := strings.Repeat("x", 10_000)
	wide, many := []string{}, []string{}
	for i := range 20 {
		wide = append(wide, fmt.Sprintf(`"f:x%d":{}`, i))
		many = append(many, entry(i, `{"`+field+`":{}}`))
	}
	for _, fields := range []string{
		`{` + strings.Join(wide, ",") + `}`, `{"` + field + `":{` + strings.Join(wide, ",") + `}}`,
		`{"` + field + `":{"f:` + long + `":{}}}`, `{"` + field + `":{"f:x":{"f:y":{"f:z":{}}}}}`, `{"f:` + long + `":{}}`,
	} {
		all = append(all, "["+entry(0, fields)+"]")
	}
	return append(all, "["+strings.Join(many, ",")+"]")
}

// turnAttacks returns Leases that must not be accepted as slots.
func turnAttacks(by *AgentToken) (attempts []attempt) {
	owner := func(more string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","name":%q,"uid":%q%s}`, by.Node, by.NodeUID, more)
	}
	lease := func(name, metadata string) Request {
		return post(leasesPath+"?dryRun=All", fmt.Sprintf(`{"metadata":{"name":%q,%s},"spec":{"holderIdentity":%q}}`,
			name, metadata, by.Holder()))
	}
	pool := `"labels":{"haulout.dev/pool":"default"}`
	good := pool + `,"ownerReferences":[` + owner("") + `]`
	for _, name := range []string{
		"haulout-default-00", "haulout-default-10000", "haulout-default-1" + strings.Repeat("0", 26), "haulout-default",
		"haulout-default-", "haulout-default-x", "haulout--0x", "leader", "xhaulout-default-0", "haulout-default-0.x",
	} {
		attempts = append(attempts, denied("name", by, lease(strings.TrimRight(name, "-"), good)))
	}
	for name, metadata := range map[string]string{
		"finalizer":         good + `,"finalizers":["x/y"]`,
		"holds the Node":    pool + `,"ownerReferences":[` + owner(`,"blockOwnerDeletion":true`) + `]`,
		"controls the Node": pool + `,"ownerReferences":[` + owner(`,"controller":true`) + `]`,
		"no owner":          pool,
		"two owners":        pool + `,"ownerReferences":[` + owner("") + `,{"apiVersion":"v1","kind":"Node","name":"x","uid":"x"}]`,
		"annotation":        good + `,"annotations":{"x":"` + strings.Repeat("y", 250_000) + `"}`,
		"no label":          `"ownerReferences":[` + owner("") + `]`,
		"another pool":      strings.Replace(good, "default", "other", 1),
		"another label":     strings.Replace(good, `{"haulout`, `{"x":"y","haulout`, 1),
		"a zone beside":     strings.Replace(good, `"labels":{`, `"labels":{"haulout.dev/zone":"a",`, 1),
	} {
		attempts = append(attempts, denied(name, by, lease("haulout-default-0", metadata)))
	}
	for _, fields := range longFields("coordination.k8s.io/v1", "f:spec") {
		attempts = append(attempts, denied("managedFields", by, lease("haulout-default-0", good+`,"managedFields":`+fields)))
	}
	return append(attempts,
		denied("a zone without its label", by, lease("haulout-default.a-0", good)),
		denied("another holder", by, post(leasesPath, strings.Replace(by.slot("haulout-default-0"), by.Holder(), "x/y", 1))),
		denied("elsewhere", by, post("/apis/coordination.k8s.io/v1/namespaces/default/leases", by.slot("haulout-default-0"))))
}

// turnsOfOthers returns changes of a Lease that another node holds, and changes of the own Lease that no agent makes.
func turnsOfOthers(by *AgentToken, other string) (attempts []attempt) {
	for _, body := range []string{
		`{"spec":{"holderIdentity":null}}`, `{"spec":{"holderIdentity":"` + by.Holder() + `"}}`,
		`{"metadata":{"finalizers":["x/y"]}}`, `{"metadata":{"labels":{"haulout.dev/pool":"x"}}}`,
		`{"metadata":{"ownerReferences":null}}`, `{"metadata":{"annotations":{"x":"y"}}}`,
	} {
		attempts = append(attempts, denied("change", by, patch(other, body)))
	}
	name := other[strings.LastIndex(other, "/")+1:]
	return append(attempts, denied("delete", by, remove(other, "")),
		denied("apply", by, apply(other, "coordination.k8s.io/v1", "Lease", name, `{"spec":{"holderIdentity":"x"}}`)),
		denied("delete all", by, remove(leasesPath, "")))
}

func eventBody(name, more string) string {
	return `{"metadata":{"name":"` + name + `"},"eventTime":"2026-01-01T00:00:00.000000Z","action":"Drain",` +
		`"reason":"Draining","type":"Normal"` + more + `}`
}

// eventAttacks returns requests about Events that must be refused. The Event `others` is about another Node, `own`
// about the agent's own Node.
func eventAttacks(by *AgentToken, own, others string) (attempts []attempt) {
	from := `,"reportingController":"haulout.dev/agent","reportingInstance":"` + by.Node + `"`
	about := `,"regarding":{"apiVersion":"v1","kind":"Node","name":"` + by.Node + `"}`
	long := strings.Repeat("x", 250_000)
	for name, more := range map[string]string{
		"another Node":      from + strings.Replace(about, by.Node, otherNode, 1),
		"a pod":             from + strings.Replace(about, "Node", "Pod", 1),
		"nothing":           from,
		"another reporter":  strings.Replace(from, "haulout.dev/agent", "kubelet", 1) + about,
		"another instance":  strings.Replace(from, by.Node, otherNode, 1) + about,
		"long field":        from + strings.Replace(about, `"v1"`, `"v1","fieldPath":"`+long+`"`, 1),
		"long UID":          from + strings.Replace(about, `"v1"`, `"v1","uid":"`+long+`"`, 1),
		"long version":      from + strings.Replace(about, `"v1"`, `"`+long+`"`, 1),
		"something related": from + about + `,"related":{"kind":"Node","name":"` + long + `"}`,
	} {
		attempts = append(attempts, denied(name, by, post(eventsPath+"?dryRun=All", eventBody("thief", more))))
	}
	for name, metadata := range map[string]string{
		"label": `"labels":{"x":"y"}`, "annotation": `"annotations":{"x":"` + long + `"}`, "finalizer": `"finalizers":["x/y"]`,
		"owner": `"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"x","uid":"x"}]`,
	} {
		body := strings.Replace(eventBody("thief", from+about), `"name":"thief"`, `"name":"thief",`+metadata, 1)
		attempts = append(attempts, denied(name, by, post(eventsPath+"?dryRun=All", body)))
		for _, event := range []string{own, others} {
			attempts = append(attempts, denied(name, by, patch(eventsPath+"/"+event+"?dryRun=All", `{"metadata":{`+metadata+`}}`)))
		}
	}
	for _, fields := range longFields("events.k8s.io/v1", "f:metadata") {
		body := strings.Replace(eventBody("thief", from+about), `"name":"thief"`, `"name":"thief","managedFields":`+fields, 1)
		attempts = append(attempts, denied("managedFields", by, post(eventsPath+"?dryRun=All", body)))
	}
	series := `{"series":{"count":9,"lastObservedTime":"2026-01-01T00:00:00.000000Z"}}`
	for _, event := range []string{own, others} {
		attempts = append(attempts, denied("delete", by, remove(eventsPath+"/"+event, "")))
	}
	return append(attempts,
		denied("repeat another's", by, patch(eventsPath+"/"+others, series)),
		denied("older API", by, post("/api/v1/namespaces/default/events",
			`{"metadata":{"name":"thief"},"involvedObject":{"kind":"Node","name":"`+by.Node+`","namespace":"default"}}`)),
		denied("delete all", by, remove(eventsPath, "")))
}

// Kinds of objects that an agent does not use, or only reads. `reads` is the only verb that it may use; empty: none.
var kinds = []struct{ path, name, reads string }{
	{"/api/v1/namespaces/haulout/secrets", "x", ""},
	{"/api/v1/namespaces/haulout/configmaps", "haulout", "get"},
	{"/api/v1/namespaces/kube-system/configmaps", "x", ""},
	{"/api/v1/namespaces/haulout/serviceaccounts", "haulout", ""},
	{"/api/v1/namespaces/haulout/resourcequotas", "haulout-slots", ""},
	{"/api/v1/namespaces/haulout/limitranges", "x", ""},
	{"/api/v1/namespaces", "haulout", "get"},
	{"/api/v1/namespaces/default/services", "kubernetes", "get"},
	{"/api/v1/namespaces/default/endpoints", "kubernetes", ""},
	{"/api/v1/persistentvolumes", "x", "get"},
	{"/api/v1/namespaces/work/persistentvolumeclaims", "x", "get"},
	{"/apis/apps/v1/namespaces/haulout/daemonsets", "haulout", "get"},
	{"/apis/apps/v1/namespaces/work/deployments", "x", ""},
	{"/apis/policy/v1/namespaces/work/poddisruptionbudgets", "x", "list"},
	{"/apis/storage.k8s.io/v1/volumeattachments", "x", "list"},
	{"/apis/storage.k8s.io/v1/csinodes", ownNode, ""},
	{"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", otherNode, ""},
	{"/apis/rbac.authorization.k8s.io/v1/clusterroles", "haulout-impersonation", ""},
	{"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", "haulout-impersonation", ""},
	{"/apis/rbac.authorization.k8s.io/v1/namespaces/haulout/rolebindings", "haulout-fleet", ""},
	{"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", "haulout-own-node", ""},
	{"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings", "haulout-own-node", ""},
	{"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", "x", ""},
	{"/apis/certificates.k8s.io/v1/certificatesigningrequests", "x", ""},
	{"/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "x", ""},
	{"/apis/apiregistration.k8s.io/v1/apiservices", "x", ""},
	{"/apis/scheduling.k8s.io/v1/priorityclasses", "haulout", ""},
	{"/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", "x", ""},
	{"/apis/networking.k8s.io/v1/namespaces/haulout/networkpolicies", "x", ""},
}

// otherKinds tries every verb on each of these kinds. If `acting` is true, the agent impersonates its node, and even
// requests that only read must be refused.
func otherKinds(by *AgentToken, acting bool) (attempts []attempt) {
	for _, kind := range kinds {
		one := kind.path + "/" + kind.name
		for verb, what := range map[string]Request{
			"get": get(one), "list": get(kind.path), "watch": get(kind.path + "?watch=1&timeoutSeconds=1"),
			"create": post(kind.path, "{}"), "update": replace(one, "{}"), "patch": patch(one, "{}"),
			"delete": remove(one, ""), "deletecollection": remove(kind.path, ""),
		} {
			if !acting && (verb == kind.reads || verb == "watch" && kind.reads == "list") {
				continue
			}
			attempts = append(attempts, denied(verb, by, what))
		}
	}
	return append(attempts,
		denied("token", by, post("/api/v1/namespaces/haulout/serviceaccounts/haulout/token", "{}")),
		denied("review a token", by, post("/apis/authentication.k8s.io/v1/tokenreviews", "{}")),
		denied("review access", by, post("/apis/authorization.k8s.io/v1/subjectaccessreviews", "{}")),
		denied("through a kubelet", by, get(nodePath(ownNode)+"/proxy/pods")))
}

// impersonations returns requests that impersonate other users than the agent's own node.
func impersonations(by *AgentToken) (attempts []attempt) {
	for _, user := range []string{
		"system:node:" + otherNode, "system:node:ghost", "system:admin", "system:kube-controller-manager",
		"system:serviceaccount:kube-system:default", "system:anonymous",
	} {
		other := *by
		other.as = user
		attempts = append(attempts, denied("as "+user, &other, get(nodePath(ownNode))),
			denied("as "+user, &other, patch(nodePath(otherNode), cordon)))
	}
	return attempts
}

// A thief has the token of an agent that runs with the shipped manifests. The thief tries every verb, and every change
// of a Node, a pod, a slot and an Event: as the agent's node, as its ServiceAccount, and with a token without a pod.
// The server refuses all of it.
func expectAttacksFail(t *testing.T, in *Installed) {
	own, other := in.pod(t, ownNode), in.pod(t, otherNode)
	acting, plain := in.Own.As(ownNode), in.Own
	mine, theirs := in.event(t), in.eventAbout(t, otherNode)
	in.tryAll(t, []attempt{allowed("a turn of another", in.Other, post(leasesPath, in.Other.slot("haulout-default-7")), 201)})
	table := slices.Concat(
		nodeAttacks(acting, true), nodeAttacks(plain, false), nodeAttacks(in.Unbound, false),
		nodeAttacks(plain.As(otherNode), false), nodeAttacks(in.Unbound.As(ownNode), false),
		podAttacks(acting, own), podAttacks(acting, other), podAttacks(plain, own), podAttacks(plain, other),
		podAttacks(in.Unbound, own), podAttacks(plain.As(otherNode), other),
		turnAttacks(plain), turnsOfOthers(plain, leasesPath+"/haulout-default-7"),
		eventAttacks(plain, mine, theirs),
		otherKinds(plain, false), otherKinds(acting, true), impersonations(plain), impersonations(in.Unbound),
		[]attempt{
			denied("replace a turn", plain, replace(leasesPath+"/haulout-default-7", plain.slot("haulout-default-7"))),
			denied("evict another node's pod", acting, evict(other, evictionOf(other, ""))),
			denied("evict another node's pod", plain, evict(other, evictionOf(other, ""))),
			denied("evict the own pod", plain, evict(own, evictionOf(own, ""))),
			denied("turns as the node", acting, post(leasesPath, plain.slot("haulout-default-0"))),
			denied("a turn without a pod", in.Unbound, post(leasesPath, plain.slot("haulout-default-0"))),
		})
	in.tryAll(t, table)
	t.Logf("%d requests", len(table))
	in.tryAll(t, []attempt{allowed("the turn goes back", in.Other, remove(leasesPath+"/haulout-default-7", ""), 200)})
	in.expectAlive(t, own, other)
	in.expectNodeUntouched(t)
}

// The ServiceAccount has all rights of the cluster, so that only the policies can refuse its requests.
func expectPolicyAttacksFail(t *testing.T, in *Installed) {
	mine, theirs := in.event(t), in.eventAbout(t, otherNode)
	in.tryAll(t, []attempt{allowed("a turn of another", in.Other, post(leasesPath, in.Other.slot("haulout-default-7")), 201)})
	in.tryAll(t, slices.Concat(
		nodeAttacks(in.Own, true), turnAttacks(in.Own), turnsOfOthers(in.Own, leasesPath+"/haulout-default-7"),
		eventAttacks(in.Own, mine, theirs),
		[]attempt{denied("a turn without a pod", in.Unbound, post(leasesPath, in.Own.slot("haulout-default-0")))}))
	expectConditionsOfOthersStay(t, in)
	in.tryAll(t, []attempt{allowed("the turn goes back", in.Other, remove(leasesPath+"/haulout-default-7", ""), 200)})
	in.expectNodeUntouched(t)
}

// Another program has written a condition of one of the agents' types. An agent may take it over only while it is False.
func expectConditionsOfOthersStay(t *testing.T, in *Installed) {
	t.Helper()
	at := nodePath(ownNode) + "/status"
	set := func(status string) {
		t.Helper()
		_, err := in.Client.CoreV1().Nodes().PatchStatus(t.Context(), ownNode, []byte(fmt.Sprintf(
			`{"status":{"conditions":[{"type":"Drained","status":%q,"reason":"Storage","message":"storage operator"}]}}`, status)))
		must(t, err)
	}
	strategic := func(body string) Request {
		return Request{Method: http.MethodPatch, Path: at + "?dryRun=All", Type: strategicPatch, Body: body}
	}
	ours := strategic(`{"status":{"conditions":[{"type":"Drained","status":"True","reason":"X","message":"haulout: x"}]}}`)
	gone := strategic(`{"status":{"conditions":[{"type":"Drained","$patch":"delete"}]}}`)
	set("True")
	in.tryAll(t, []attempt{denied("another's condition taken over", in.Own, ours), denied("another's condition gone", in.Own, gone)})
	set("False")
	in.tryAll(t, []attempt{allowed("a condition that is False taken over", in.Own, ours, 200)})
	_, err := in.Client.CoreV1().Nodes().PatchStatus(t.Context(), ownNode,
		[]byte(`{"status":{"conditions":[{"type":"Drained","$patch":"delete"}]}}`))
	must(t, err)
}

func isPersons(taint corev1.Taint) bool {
	return taint.Key == "example.com/person" && taint.Value == "x"
}

func (in *Installed) expectNodeUntouched(t *testing.T) {
	t.Helper()
	nodes, err := in.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, node := range nodes.Items {
		switch {
		case node.Name == "ghost":
			t.Error("there is a Node that nobody may make")
		case node.Name == ownNode && node.Spec.Unschedulable, node.Labels["tier"] != "", len(node.Finalizers) > 0,
			node.Name == ownNode && node.Annotations["e2e.haulout.dev/keep"] != "yes",
			node.Name == ownNode && node.Annotations[doNotDisrupt] != "true", node.Annotations[scaleDown] != "",
			node.Name == ownNode && !slices.ContainsFunc(node.Spec.Taints, isPersons), node.Annotations[waitingMark] != "":
			t.Errorf("Node %s was changed: %+v", node.Name, node)
		}
	}
}
