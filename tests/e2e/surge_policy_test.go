package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// tree is the body of a patch.
type tree map[string]any

// with returns a copy in which the field at this path has the value. nil removes a field of the object.
func (b tree) with(value any, path ...string) tree {
	other := maps.Clone(b)
	if other == nil {
		other = tree{}
	}
	if len(path) == 1 {
		other[path[0]] = value
		return other
	}
	inner, _ := other[path[0]].(tree)
	other[path[0]] = inner.with(value, path[1:]...)
	return other
}

func (b tree) label(key string, value any) tree { return b.with(value, "metadata", "labels", key) }
func (b tree) annotation(key string, value any) tree {
	return b.with(value, "metadata", "annotations", key)
}

func (b tree) String() string {
	text, err := json.Marshal(b)
	if err != nil {
		panic(err)
	}
	return string(text)
}

var pointer = strings.NewReplacer("~", "~0", "/", "~1")

// operations returns the merge patch as operations of a JSON patch.
func (b tree) operations(path string) (all []tree) {
	for _, key := range slices.Sorted(maps.Keys(b)) {
		at := path + "/" + pointer.Replace(key)
		switch value := b[key].(type) {
		case tree:
			all = append(all, value.operations(at)...)
		case nil:
			all = append(all, tree{"op": "remove", "path": at})
		default:
			operation := "add"
			if at == "/metadata/uid" {
				operation = "test"
			}
			all = append(all, tree{"op": operation, "path": at, "value": value})
		}
	}
	return all
}

// removes returns true if a field has the value nil, which an apply cannot express.
func (b tree) removes() bool {
	for _, value := range b {
		inner, ok := value.(tree)
		if value == nil || ok && inner.removes() {
			return true
		}
	}
	return false
}

// markOf returns the mark with which an agent releases the pod.
func markOf(pod *corev1.Pod) string {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		owner = &metav1.OwnerReference{Name: "none", UID: "none"}
	}
	return fmt.Sprintf(`{"run":"r1","by":"agent","at":"2026-01-01T00:00:00Z","node":%q,"hash":%q,"owner":%q,"ownerUid":%q,`+
		`"ready":1}`, pod.Spec.NodeName, pod.Labels[hashLabel], owner.Name, owner.UID)
}

// release returns the patch that takes the pod from its ReplicaSet.
func release(pod *corev1.Pod) tree {
	return tree{}.with(pod.UID, "metadata", "uid").label(hashLabel, nil).annotation(surgeMark, markOf(pod))
}

// giveBack returns the patch that gives the pod back to its ReplicaSet.
func giveBack(pod *corev1.Pod) tree {
	return tree{}.with(pod.UID, "metadata", "uid").label(hashLabel, pod.Labels[hashLabel]).annotation(surgeMark, nil)
}

// surgePatch returns a patch that is not persisted.
func surgePatch(pod *corev1.Pod, body tree) Request {
	return patch(podPath(pod)+"?dryRun=All", body.String())
}

// jsonPatchOf returns a JSON patch that is not persisted.
func jsonPatchOf(pod *corev1.Pod, operations ...tree) Request {
	text, err := json.Marshal(operations)
	if err != nil {
		panic(err)
	}
	return Request{Method: http.MethodPatch, Path: podPath(pod) + "?dryRun=All", Type: jsonPatch, Body: string(text)}
}

// forced returns a server-side apply that takes fields from their managers, and is not persisted.
func forced(pod *corev1.Pod, body tree) Request {
	what := apply(podPath(pod), "v1", "Pod", pod.Name, body.String())
	what.Path += "&dryRun=All"
	return what
}

// otherFields returns the patch with each kind of change that an agent must not make, in addition to those of `body`.
func otherFields(pod *corev1.Pod, body tree) map[string]tree {
	metadata := func(value any, key string) tree { return body.with(value, "metadata", key) }
	spec := func(value any, key string) tree { return body.with(value, "spec", key) }
	keep := pod.Spec.Tolerations
	container := pod.Spec.Containers[0].DeepCopy()
	container.Image = "e2e.invalid/other"
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "x", UID: "x"}
	owners := append(slices.Clone(pod.OwnerReferences), owner)
	all := map[string]tree{
		"label added":            body.label("x", "y"),
		"label of Haulout added": body.label("haulout.dev/x", "y"),
		"label removed":          body.label("app", nil),
		"label changed":          body.label("app", "other"),
		"label kept, but empty":  body.label("app", ""),
		"annotation added":       body.annotation("x", "y"),
		"annotation of Haulout":  body.annotation("haulout.dev/surge", "true"),
		"annotation removed":     body.annotation("haulout.dev/single-replica", nil),
		"annotation changed":     body.annotation("haulout.dev/single-replica", "allow"),
		"safe-to-evict":          body.annotation("cluster-autoscaler.kubernetes.io/safe-to-evict", "true"),
		"finalizer":              metadata([]string{"x/y"}, "finalizers"),
		"another owner":          metadata([]metav1.OwnerReference{owner}, "ownerReferences"),
		"owner added":            metadata(owners, "ownerReferences"),
		"image":                  spec([]corev1.Container{*container}, "containers"),
		"toleration":             spec(append(slices.Clone(keep), corev1.Toleration{Key: "x", Operator: "Exists"}), "tolerations"),
		"deadline":               spec(1, "activeDeadlineSeconds"),
		"generateName changed":   metadata("other-", "generateName"),
		"managedFields reset":    metadata([]metav1.ManagedFieldsEntry{}, "managedFields"),
		"managedFields emptied":  metadata(json.RawMessage(`[{}]`), "managedFields"),
	}
	if pod.GenerateName != "" {
		all["generateName removed"] = metadata(nil, "generateName")
	}
	for name, fields := range otherManagers(pod) {
		all["managedFields "+name] = metadata(fields, "managedFields")
	}
	if len(pod.OwnerReferences) > 0 {
		all["no owner"] = metadata([]metav1.OwnerReference{}, "ownerReferences")
	}
	for i, fields := range longFields("v1", "f:metadata") {
		all[fmt.Sprintf("managedFields %d", i)] = metadata(json.RawMessage(fields), "managedFields")
	}
	return all
}

// otherManagers returns the managedFields of a pod, each with another change.
func otherManagers(pod *corev1.Pod) map[string][]metav1.ManagedFieldsEntry {
	entry := func(fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: "thief", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
		}
	}
	all := map[string][]metav1.ManagedFieldsEntry{
		"of a label": append(slices.Clone(pod.ManagedFields), entry(`{"f:metadata":{"f:labels":{"f:x":{}}}}`)),
	}
	for i, old := range pod.ManagedFields {
		if old.Manager != "kube-controller-manager" {
			continue
		}
		replaced := func(name string, now metav1.ManagedFieldsEntry) {
			fields := slices.Clone(pod.ManagedFields)
			fields[i] = now
			all[name] = fields
		}
		without := func(path ...string) metav1.ManagedFieldsEntry {
			now, fields := *old.DeepCopy(), map[string]any{}
			if err := json.Unmarshal(old.FieldsV1.Raw, &fields); err != nil {
				panic(err)
			}
			inner := fields
			for _, key := range path[:len(path)-1] {
				inner = inner[key].(map[string]any)
			}
			if _, there := inner[path[len(path)-1]]; !there {
				panic(fmt.Sprint(path, old))
			}
			delete(inner, path[len(path)-1])
			text, err := json.Marshal(fields)
			if err != nil {
				panic(err)
			}
			now.FieldsV1.Raw = text
			return now
		}
		all["without a manager"] = slices.Delete(slices.Clone(pod.ManagedFields), i, i+1)
		thief, other, version := *old.DeepCopy(), *old.DeepCopy(), *old.DeepCopy()
		thief.Manager, other.Operation, version.APIVersion = "thief", metav1.ManagedFieldsOperationApply, "e2e.invalid/v1"
		replaced("with another manager", thief)
		replaced("with another version", version)
		replaced("with another operation", other)
		replaced("without the spec", without("f:spec"))
		replaced("without a label", without("f:metadata", "f:labels", "f:app"))
		replaced("without generateName", without("f:metadata", "f:generateName"))
		all["with one more manager"] = append(slices.Clone(pod.ManagedFields), thief)
	}
	return all
}

// releaseAbuses returns releases of a pod on the agent's own node that must be refused.
func releaseAbuses(pod *corev1.Pod) map[string]tree {
	good, mark := release(pod), markOf(pod)
	owner := metav1.GetControllerOf(pod)
	marked := func(mark string) tree { return good.annotation(surgeMark, mark) }
	instead := func(old, now string) tree {
		if !strings.Contains(mark, old) {
			panic(old)
		}
		return marked(strings.Replace(mark, old, now, 1))
	}
	hash := fmt.Sprintf(`"hash":%q`, pod.Labels[hashLabel])
	all := map[string]tree{
		"nothing":                   tree{}.with(pod.UID, "metadata", "uid").label("x", "y"),
		"without a mark":            tree{}.label(hashLabel, nil),
		"only the mark":             tree{}.annotation(surgeMark, mark),
		"another value":             good.label(hashLabel, "other"),
		"another value, no mark":    tree{}.label(hashLabel, "other"),
		"an empty label":            good.label(hashLabel, ""),
		"an empty mark":             marked(""),
		"a mark that is no JSON":    marked(strings.Trim(mark, "{}")),
		"a mark with spaces":        instead(`,"by"`, `, "by"`),
		"a mark with escapes":       instead(`"agent"`, `"\"`+strings.ReplaceAll(hash, `"`, `\"`)+`"`),
		"a mark with a list":        instead(`"ready":1`, `"ready":[1]`),
		"a mark with an object":     instead(`"ready":1`, `"ready":{"x":1}`),
		"a mark and more":           marked(mark + "x"),
		"a mark with a new line":    instead(`"agent"`, "\"a\nb\""),
		"a mark with a tab":         instead(`"agent"`, "\"a\tb\""),
		"a mark with 007":           instead(`"ready":1`, `"ready":007`),
		"a mark with a huge number": instead(`"ready":1`, `"ready":1`+strings.Repeat("0", 30)),
		"a long mark":               instead(`"agent"`, `"`+strings.Repeat("x", 3000)+`"`),
		"another hash":              instead(hash, `"hash":"other"`),
		"no hash":                   instead(hash+",", ""),
		"the hash elsewhere":        instead(hash, fmt.Sprintf(`"x":%q,"hash":"other"`, pod.Labels[hashLabel])),
		"two hashes":                instead(`"ready":1`, `"ready":1,"hash":"other"`),
		"two owners":                instead(`"ready":1`, `"ready":1,"owner":"other"`),
		"another node in the mark":  instead(`"node":"`+ownNode+`"`, `"node":"`+otherNode+`"`),
		"another owner's name":      instead(`"owner":"`+owner.Name+`"`, `"owner":"other"`),
		"another owner's UID":       instead(string(owner.UID), "other"),
	}
	for name, body := range otherFields(pod, good) {
		all["release and "+name] = body
	}
	for name, body := range otherFields(pod, tree{}) {
		all["only "+name] = body
	}
	return all
}

// returnAbuses returns patches of a released pod on the agent's own node that must be refused. `before` is the pod as it
// was before the release.
func returnAbuses(before, pod *corev1.Pod) map[string]tree {
	good, mark := giveBack(before), markOf(before)
	all := map[string]tree{
		"another hash":             good.label(hashLabel, "other"),
		"a part of the hash":       good.label(hashLabel, before.Labels[hashLabel][1:]),
		"an empty hash":            good.label(hashLabel, ""),
		"back with another mark":   good.annotation(surgeMark, strings.Replace(mark, `"ready":1`, `"ready":2`, 1)),
		"only the mark goes":       tree{}.annotation(surgeMark, nil),
		"the mark changes":         tree{}.annotation(surgeMark, mark+" "),
		"the mark gets a new hash": tree{}.annotation(surgeMark, strings.Replace(mark, before.Labels[hashLabel], "x", 1)),
		"another hash and mark": tree{}.label(hashLabel, "other").
			annotation(surgeMark, strings.Replace(mark, before.Labels[hashLabel], "other", 1)),
	}
	for name, body := range otherFields(pod, good) {
		all["give back and "+name] = body
	}
	for name, body := range otherFields(pod, tree{}) {
		all["only "+name] = body
	}
	return all
}

// deniedPatches returns each of the patches in each form that can express it.
func deniedPatches(by *AgentToken, pod *corev1.Pod, bodies map[string]tree) (attempts []attempt) {
	for _, name := range slices.Sorted(maps.Keys(bodies)) {
		body := bodies[name]
		metadata, _ := body["metadata"].(tree)
		attempts = append(attempts, denied(name, by, surgePatch(pod, body)),
			denied(name+", JSON patch", by, jsonPatchOf(pod, body.operations("")...)))
		if body["spec"] == nil && metadata["ownerReferences"] == nil {
			what := surgePatch(pod, body)
			what.Type = strategicPatch
			attempts = append(attempts, denied(name+", strategic", by, what))
		}
		if metadata["managedFields"] == nil && !body.removes() {
			attempts = append(attempts, denied(name+", apply", by, forced(pod, body)))
		}
	}
	return attempts
}

// jsonPatches returns operations that only a JSON patch has. The pod is owned and has its label.
func jsonPatches(by *AgentToken, pod *corev1.Pod) []attempt {
	const label, mark = "/metadata/labels/" + hashLabel, "/metadata/annotations/haulout.dev~1surged"
	row := func(name string, more ...tree) attempt {
		return denied(name, by, jsonPatchOf(pod, append(release(pod).operations(""), more...)...))
	}
	return []attempt{
		allowed("release by a JSON patch", by, jsonPatchOf(pod, release(pod).operations("")...), 200),
		denied("move the label", by, jsonPatchOf(pod, tree{"op": "move", "from": label, "path": mark})),
		denied("replace the label", by, jsonPatchOf(pod, tree{"op": "replace", "path": label, "value": "x"})),
		row("copy a label", tree{"op": "copy", "from": "/metadata/labels/app", "path": "/metadata/labels/x"}),
		row("all labels", tree{"op": "replace", "path": "/metadata/labels", "value": tree{}}),
		row("all annotations", tree{"op": "remove", "path": "/metadata/annotations"}),
		row("one owner", tree{"op": "remove", "path": "/metadata/ownerReferences/0"}),
		row("not the controller", tree{"op": "replace", "path": "/metadata/ownerReferences/0/controller", "value": false}),
		row("one image", tree{"op": "replace", "path": "/spec/containers/0/image", "value": "e2e.invalid/other"}),
		row("one manager", tree{"op": "remove", "path": "/metadata/managedFields/0"}),
		row("another manager", tree{"op": "replace", "path": "/metadata/managedFields/0/manager", "value": "thief"}),
	}
}

// otherWrites returns writes to a pod by another way than a patch of the pod itself.
func otherWrites(by *AgentToken, pod *corev1.Pod) []attempt {
	path, dry := podPath(pod), "?dryRun=All"
	strategic := func(sub, body string) Request {
		return Request{Method: http.MethodPatch, Path: path + sub + dry, Type: strategicPatch, Body: body}
	}
	made := Pod("thief")
	made.APIVersion, made.Kind = "v1", "Pod"
	text, err := json.Marshal(made)
	if err != nil {
		panic(err)
	}
	whole := pod.DeepCopy()
	whole.APIVersion, whole.Kind, whole.Labels["x"] = "v1", "Pod", "y"
	replaced, err := json.Marshal(whole)
	if err != nil {
		panic(err)
	}
	return []attempt{
		denied("status", by, strategic("/status", `{"status":{"phase":"Failed"}}`)),
		denied("readiness by the status", by, strategic("/status", `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`)),
		denied("label by the status", by, strategic("/status", release(pod).String())),
		denied("debug", by, strategic("/ephemeralcontainers", `{"spec":{"ephemeralContainers":[{"name":"x","image":"y"}]}}`)),
		denied("release by ephemeralcontainers", by, strategic("/ephemeralcontainers", release(pod).String())),
		denied("make a pod", by, post("/api/v1/namespaces/work/pods"+dry, string(text))),
		denied("replace", by, replace(path+dry, string(replaced))),
		denied("apply a pod that is not there", by, apply(path+"x", "v1", "Pod", pod.Name+"x",
			`{"spec":{"containers":[{"name":"main","image":"e2e.invalid/none"}]}}`)),
		denied("delete", by, remove(path+dry, "")),
		denied("delete all", by, remove("/api/v1/namespaces/work/pods"+dry, "")),
	}
}

// otherReads returns what an agent with the component surge may not read or open, although it may list all pods. RBAC
// alone refuses it.
func otherReads(by *AgentToken, pod *corev1.Pod) []attempt {
	return append(connections(by, pod), denied("read", by, get(podPath(pod))), denied("log", by, get(podPath(pod)+"/log")),
		denied("bind", by, post(podPath(pod)+"/binding", `{"metadata":{"name":"`+pod.Name+`"},"target":{"name":"`+ownNode+`"}}`)))
}

// deployed creates a Deployment with one pod in the namespace `work`, and returns the pod when it is Ready, or, if node is
// empty, when it exists. Then no node takes it.
func (in *Installed) deployed(t *testing.T, node string, options ...PodOption) *corev1.Pod {
	t.Helper()
	in.pods++
	options = append([]PodOption{Cpu("1"), Annotate("haulout.dev/single-replica", "block"), onlyOn(node)}, options...)
	object := Deployment(fmt.Sprintf("web-%d", in.pods), 1, options...)
	_, err := in.Client.AppsV1().Deployments("work").Create(t.Context(), object, metav1.CreateOptions{})
	must(t, err)
	return in.podOf(t, object.Name, node)
}

// bareSet creates a ReplicaSet without a Deployment, whose selector does not name the label that its pod has, and returns
// the pod when it is Ready.
func (in *Installed) bareSet(t *testing.T, node string) *corev1.Pod {
	t.Helper()
	in.pods++
	from := Deployment(fmt.Sprintf("set-%d", in.pods), 1, onlyOn(node), func(pod *corev1.PodTemplateSpec) {
		pod.Labels[hashLabel] = "abc"
	})
	_, err := in.Client.AppsV1().ReplicaSets("work").Create(t.Context(), &appsv1.ReplicaSet{
		ObjectMeta: from.ObjectMeta,
		Spec:       appsv1.ReplicaSetSpec{Replicas: from.Spec.Replicas, Selector: from.Spec.Selector, Template: from.Spec.Template},
	}, metav1.CreateOptions{})
	must(t, err)
	return in.podOf(t, from.Name, node)
}

func onlyOn(node string) PodOption {
	return func(pod *corev1.PodTemplateSpec) {
		pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
}

// podOf waits for the pod of an app, and returns it when it is Ready, or, if node is empty, when it exists.
func (in *Installed) podOf(t *testing.T, name, node string) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	must(t, Until(t.Context(), "a pod of the Deployment is there", func() (bool, error) {
		list, err := in.Client.CoreV1().Pods("work").List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
		if err != nil || len(list.Items) != 1 {
			return false, err
		}
		pod = &list.Items[0]
		return node == "" || podReady(pod), nil
	}))
	return pod
}

// hashed creates a pod that has the label of a Deployment's pod, and no owner.
func (in *Installed) hashed(t *testing.T, node string) *corev1.Pod {
	t.Helper()
	in.pods++
	pod := Pod(fmt.Sprintf("pod-%d", in.pods), Annotate("haulout.dev/single-replica", "block"))
	pod.Spec.NodeName = node
	pod.Labels[hashLabel] = "abc"
	pod, err := in.Client.CoreV1().Pods("work").Create(t.Context(), pod, metav1.CreateOptions{})
	must(t, err)
	return pod
}

// podNow returns the pod as it is now.
func (in *Installed) podNow(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	now, err := in.Client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, getOptions)
	must(t, err)
	return now
}

// untilReleased waits until the ReplicaSet has let the pod go, and returns the pod.
func (in *Installed) untilReleased(t *testing.T, pod *corev1.Pod) (now *corev1.Pod) {
	t.Helper()
	must(t, Until(t.Context(), "the ReplicaSet lets the pod go", func() (_ bool, err error) {
		now, err = in.Client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, getOptions)
		return err == nil && len(now.OwnerReferences) == 0, err
	}))
	return now
}

// expectNotReleased checks that an agent cannot release pods that no ReplicaSet would let go.
func expectNotReleased(t *testing.T, in *Installed) {
	t.Helper()
	ending := in.deployed(t, ownNode, Grace(3600), Annotate(TerminatesAfter, "1h"))
	finished, bare := in.deployed(t, ownNode), in.bareSet(t, ownNode)
	must(t, in.Client.CoreV1().Pods("work").Delete(t.Context(), ending.Name, metav1.DeleteOptions{}))
	_, err := in.Client.CoreV1().Pods("work").Patch(t.Context(), finished.Name, types.MergePatchType,
		[]byte(`{"status":{"phase":"Failed"}}`), metav1.PatchOptions{}, "status")
	must(t, err)
	ending, finished = in.podNow(t, ending), in.podNow(t, finished)
	in.tryAll(t, []attempt{
		denied("a pod that terminates", in.Own, surgePatch(ending, release(ending))),
		denied("a pod that has failed", in.Own, surgePatch(finished, release(finished))),
		denied("a pod of a ReplicaSet without a Deployment", in.Own, surgePatch(bare, release(bare))),
	})
	must(t, in.Client.CoreV1().Pods("work").Delete(t.Context(), ending.Name, *metav1.NewDeleteOptions(0)))
	in.expectAlive(t, finished, bare)
}

// expectFirstAnnotation checks that an agent may release a pod without annotations, and give it back.
func expectFirstAnnotation(t *testing.T, in *Installed) {
	t.Helper()
	pod := in.deployed(t, ownNode, func(pod *corev1.PodTemplateSpec) { pod.Annotations = nil })
	if len(pod.Annotations) > 0 {
		t.Fatalf("the pod has annotations: %v", pod.Annotations)
	}
	in.tryAll(t, []attempt{
		denied("another annotation", in.Own, surgePatch(pod, tree{}.annotation("x", "y"))),
		denied("two first annotations", in.Own, surgePatch(pod, release(pod).annotation("x", "y"))),
		allowed("the first annotation", in.Own, patch(podPath(pod), release(pod).String()), 200),
	})
	in.untilReleased(t, pod)
	in.tryAll(t, []attempt{
		denied("back with an annotation", in.Own, surgePatch(pod, giveBack(pod).annotation("x", "y"))),
		allowed("the label", in.Own, patch(podPath(pod), giveBack(pod).annotation(surgeMark, markOf(pod)).String()), 200),
		allowed("the last annotation goes", in.Own, patch(podPath(pod), giveBack(pod).String()), 200),
	})
	now := in.podNow(t, pod)
	if len(now.Annotations) > 0 || !maps.Equal(now.Labels, pod.Labels) {
		t.Errorf("annotations %v, labels %v", now.Annotations, now.Labels)
	}
}

// expectFieldsBounded checks that a thief who applies the label as ever another manager cannot fill the managedFields of
// the pod, which must have its label and its mark.
func (in *Installed) expectFieldsBounded(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	for i := range 30 {
		what := forced(pod, tree{}.label(hashLabel, pod.Labels[hashLabel]))
		what.Path = strings.Replace(what.Path, "fieldManager=thief", fmt.Sprintf("fieldManager=thief-%d", i), 1)
		what.Path = strings.Replace(what.Path, "&dryRun=All", "", 1)
		code, status, err := in.Own.Send(t.Context(), what)
		must(t, err)
		if code == http.StatusForbidden {
			return
		}
		if code != http.StatusOK {
			t.Fatalf("%d %s", code, status.Message)
		}
	}
	t.Errorf("the pod has %d managers", len(in.podNow(t, pod).ManagedFields))
}

// expectSurgeHeld checks that an agent may release a pod of its own node and give it back, and may change nothing else of
// any pod. The component surge must be applied.
func expectSurgeHeld(t *testing.T, in *Installed) {
	t.Helper()
	own, second, other := in.deployed(t, ownNode), in.deployed(t, ownNode), in.deployed(t, otherNode)
	unscheduled, ownerless, bare := in.deployed(t, ""), in.hashed(t, ownNode), in.pod(t, ownNode)
	must(t, Until(t.Context(), "the policies of surge are in force", func() (bool, error) {
		good, _, err := in.Own.Send(t.Context(), surgePatch(own, release(own)))
		if err != nil {
			return false, err
		}
		bad, _, err := in.Own.Send(t.Context(), surgePatch(own, release(own).label("x", "y")))
		return good == http.StatusOK && bad == http.StatusForbidden, err
	}))
	in.tryAll(t, []attempt{
		denied("another node's pod", in.Own, surgePatch(other, release(other))),
		denied("the own pod, by another agent", in.Other, surgePatch(own, release(own))),
		denied("without a pod", in.Unbound, surgePatch(own, release(own))),
		denied("as the node", in.Own.As(ownNode), surgePatch(own, release(own))),
		denied("as another node", in.Own.As(otherNode), surgePatch(other, release(other))),
		denied("an unscheduled pod", in.Own, surgePatch(unscheduled, release(unscheduled))),
		denied("a pod without owner", in.Own, surgePatch(ownerless, release(ownerless))),
		denied("a pod without the label", in.Own, surgePatch(bare, release(bare))),
		denied("a label for a pod without mark", in.Own, surgePatch(bare, tree{}.label(hashLabel, "abc"))),
		denied("a pod's first label and mark", in.Own, surgePatch(bare, tree{}.label(hashLabel, "abc").annotation(surgeMark, markOf(bare)))),
		denied("the only mark", in.Own, surgePatch(bare, tree{}.annotation(surgeMark, markOf(bare)))),
		allowed("an instance that has gone", in.Own, surgePatch(own, release(own).with("gone", "metadata", "uid")), 422),
	})
	if cluster.Minor >= 33 { // older servers have no such subresource
		in.tryAll(t, []attempt{denied("resize an unscheduled pod", in.Own, Request{Method: http.MethodPatch,
			Path: podPath(unscheduled) + "/resize?dryRun=All", Type: strategicPatch,
			Body: `{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"2"}}}]}}`})})
	}
	abuses := releaseAbuses(own)
	in.tryAll(t, deniedPatches(in.Own, own, abuses))
	in.tryAll(t, jsonPatches(in.Own, own))
	in.tryAll(t, otherWrites(in.Own, own))
	in.tryAll(t, []attempt{
		denied("the label by apply", in.Own, forced(own, tree{}.label(hashLabel, "other"))),
		denied("the same label by apply", in.Own, forced(own, tree{}.label(hashLabel, own.Labels[hashLabel]))),
		denied("the mark by apply", in.Own, forced(own, tree{}.annotation(surgeMark, markOf(own)))),
	})
	expectNotReleased(t, in)
	expectFirstAnnotation(t, in)

	in.tryAll(t, []attempt{allowed("release", in.Own, patch(podPath(own), release(own).String()), 200)})
	released := in.untilReleased(t, own)
	in.tryAll(t, []attempt{
		denied("release again", in.Own, surgePatch(released, release(own))),
		denied("give another's back", in.Other, surgePatch(released, giveBack(own))),
		denied("give back without a pod", in.Unbound, surgePatch(released, giveBack(own))),
		denied("give back as the node", in.Own.As(ownNode), surgePatch(released, giveBack(own))),
	})
	back := returnAbuses(own, released)
	in.tryAll(t, deniedPatches(in.Own, released, back))
	in.tryAll(t, otherWrites(in.Own, released))
	in.tryAll(t, []attempt{
		denied("another label by apply", in.Own, forced(released, tree{}.label(hashLabel, "other"))),
		denied("another mark by apply", in.Own, forced(released, giveBack(own).annotation(surgeMark, "{}"))),
		allowed("the label by apply", in.Own, forced(released, tree{}.label(hashLabel, own.Labels[hashLabel])), 200),
		allowed("back by a JSON patch", in.Own, jsonPatchOf(released, giveBack(own).operations("")...), 200),
	})
	t.Logf("%d abuses of a pod that its ReplicaSet owns, %d of a released one", len(abuses), len(back))
	if len(abuses)+len(back) <= 100 {
		t.Error("docs/security.md says that these tests try more than 100 abuses")
	}
	must(t, Until(t.Context(), "the pod is not changed any more", func() (bool, error) {
		now, err := in.Client.CoreV1().Pods("work").Get(t.Context(), own.Name, getOptions)
		return err == nil && now.ResourceVersion == released.ResourceVersion, err
	}))
	// A person gives the label back, but leaves the mark.
	labelled := in.hashed(t, ownNode)
	labelled, err := in.Client.CoreV1().Pods("work").Patch(t.Context(), labelled.Name, types.MergePatchType,
		[]byte(tree{}.annotation(surgeMark, markOf(labelled)).String()), metav1.PatchOptions{})
	must(t, err)
	in.tryAll(t, []attempt{
		denied("the mark of another hash", in.Own, surgePatch(labelled, giveBack(labelled).label(hashLabel, "other"))),
		denied("label and mark", in.Own, surgePatch(labelled, giveBack(labelled).label(hashLabel, nil))),
		allowed("the mark goes", in.Own, surgePatch(labelled, giveBack(labelled)), 200),
		allowed("release once more", in.Own, surgePatch(second, release(second)), 200),
		allowed("give back in one step", in.Own, surgePatch(released, giveBack(own)), 200),
		allowed("give back the label", in.Own, patch(podPath(own), giveBack(own).annotation(surgeMark, markOf(own)).String()), 200),
	})
	in.expectFieldsBounded(t, own)
	in.tryAll(t, []attempt{allowed("remove the mark", in.Own, patch(podPath(own), giveBack(own).String()), 200)})
	must(t, Until(t.Context(), "the ReplicaSet has the pod back", func() (bool, error) {
		list, err := in.Client.CoreV1().Pods("work").List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + own.Labels["app"]})
		return err == nil && len(list.Items) == 1 && metav1.GetControllerOf(&list.Items[0]) != nil, err
	}))
	in.expectAlive(t, second, other, unscheduled, ownerless, bare)
	for _, pod := range []*corev1.Pod{second, other, ownerless, bare} {
		now := in.podNow(t, pod)
		if !maps.Equal(now.Labels, pod.Labels) || !maps.Equal(now.Annotations, pod.Annotations) {
			t.Errorf("%s was changed: labels %v, annotations %v", pod.Name, now.Labels, now.Annotations)
		}
	}
}
