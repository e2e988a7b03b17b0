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

const (
	hashLabel = appsv1.DefaultDeploymentUniqueLabelKey
	surgeMark = "haulout.dev/surged"
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
		"label added":              body.label("x", "y"),
		"label of Haulout added":   body.label("haulout.dev/x", "y"),
		"label removed":            body.label("app", nil),
		"label changed":            body.label("app", "other"),
		"label kept, but empty":    body.label("app", ""),
		"annotation added":         body.annotation("x", "y"),
		"annotation of Haulout":    body.annotation("haulout.dev/surge", "true"),
		"annotation removed":       body.annotation("haulout.dev/single-replica", nil),
		"annotation changed":       body.annotation("haulout.dev/single-replica", "allow"),
		"safe-to-evict":            body.annotation("cluster-autoscaler.kubernetes.io/safe-to-evict", "true"),
		"finalizer":                metadata([]string{"x/y"}, "finalizers"),
		"another owner":            metadata([]metav1.OwnerReference{owner}, "ownerReferences"),
		"owner added":              metadata(owners, "ownerReferences"),
		"image":                    spec([]corev1.Container{*container}, "containers"),
		"toleration":               spec(append(slices.Clone(keep), corev1.Toleration{Key: "x", Operator: "Exists"}), "tolerations"),
		"deadline":                 spec(1, "activeDeadlineSeconds"),
		"managedFields of a label": metadata(json.RawMessage(fieldsOf(pod, `{"f:metadata":{"f:labels":{"f:x":{}}}}`)), "managedFields"),
	}
	if len(pod.OwnerReferences) > 0 {
		all["no owner"] = metadata([]metav1.OwnerReference{}, "ownerReferences")
	}
	for i, fields := range longFields("v1", "f:metadata") {
		all[fmt.Sprintf("managedFields %d", i)] = metadata(json.RawMessage(fields), "managedFields")
	}
	return all
}

// fieldsOf returns the managedFields of a pod with one more entry.
func fieldsOf(pod *corev1.Pod, fields string) string {
	entry := metav1.ManagedFieldsEntry{
		Manager: "thief", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
	}
	text, err := json.Marshal(append(slices.Clone(pod.ManagedFields), entry))
	if err != nil {
		panic(err)
	}
	return string(text)
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
		"nothing":                  tree{}.with(pod.UID, "metadata", "uid").label("x", "y"),
		"without a mark":           tree{}.label(hashLabel, nil),
		"only the mark":            tree{}.annotation(surgeMark, mark),
		"another value":            good.label(hashLabel, "other"),
		"another value, no mark":   tree{}.label(hashLabel, "other"),
		"an empty label":           good.label(hashLabel, ""),
		"an empty mark":            marked(""),
		"a mark that is no JSON":   marked(strings.Trim(mark, "{}")),
		"a mark with spaces":       instead(`,"by"`, `, "by"`),
		"a mark with escapes":      instead(`"agent"`, `"\"`+strings.ReplaceAll(hash, `"`, `\"`)+`"`),
		"a mark with a list":       instead(`"ready":1`, `"ready":[1]`),
		"a mark with an object":    instead(`"ready":1`, `"ready":{"x":1}`),
		"a mark and more":          marked(mark + "x"),
		"a long mark":              instead(`"agent"`, `"`+strings.Repeat("x", 3000)+`"`),
		"another hash":             instead(hash, `"hash":"other"`),
		"no hash":                  instead(hash+",", ""),
		"the hash elsewhere":       instead(hash, fmt.Sprintf(`"x":%q,"hash":"other"`, pod.Labels[hashLabel])),
		"two hashes":               instead(`"ready":1`, `"ready":1,"hash":"other"`),
		"two owners":               instead(`"ready":1`, `"ready":1,"owner":"other"`),
		"another node in the mark": instead(`"node":"`+ownNode+`"`, `"node":"`+otherNode+`"`),
		"another owner's name":     instead(`"owner":"`+owner.Name+`"`, `"owner":"other"`),
		"another owner's UID":      instead(string(owner.UID), "other"),
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

func deniedPatches(by *AgentToken, pod *corev1.Pod, bodies map[string]tree) (attempts []attempt) {
	for _, name := range slices.Sorted(maps.Keys(bodies)) {
		attempts = append(attempts, denied(name, by, surgePatch(pod, bodies[name])))
		if body := bodies[name]; body["spec"] == nil && body["metadata"].(tree)["ownerReferences"] == nil {
			what := surgePatch(pod, body)
			what.Type = strategicPatch
			attempts = append(attempts, denied(name+", strategic", by, what))
		}
	}
	return attempts
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
	applied := apply(path, "v1", "Pod", pod.Name, `{"metadata":{"labels":{"x":"y"}}}`)
	applied.Path += "&dryRun=All"
	return []attempt{
		denied("status", by, strategic("/status", `{"status":{"phase":"Failed"}}`)),
		denied("readiness by the status", by, strategic("/status", `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`)),
		denied("label by the status", by, strategic("/status", release(pod).String())),
		denied("debug", by, strategic("/ephemeralcontainers", `{"spec":{"ephemeralContainers":[{"name":"x","image":"y"}]}}`)),
		denied("release by ephemeralcontainers", by, strategic("/ephemeralcontainers", release(pod).String())),
		denied("make a pod", by, post("/api/v1/namespaces/work/pods"+dry, string(text))),
		denied("replace", by, replace(path+dry, string(replaced))),
		denied("apply", by, applied),
		denied("apply a pod that is not there", by, apply(path+"x", "v1", "Pod", pod.Name+"x",
			`{"spec":{"containers":[{"name":"main","image":"e2e.invalid/none"}]}}`)),
		denied("delete", by, remove(path+dry, "")),
		denied("delete all", by, remove("/api/v1/namespaces/work/pods"+dry, "")),
	}
}

// deployed creates a Deployment with one pod in the namespace `work`, and returns the pod when it is Ready, or, if node is
// empty, when it exists. Then no node takes it.
func (in *Installed) deployed(t *testing.T, node string) *corev1.Pod {
	t.Helper()
	in.pods++
	name := fmt.Sprintf("web-%d", in.pods)
	object := Deployment(name, 1, Cpu("1"), Annotate("haulout.dev/single-replica", "block"))
	object.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	object.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	_, err := in.Client.AppsV1().Deployments("work").Create(t.Context(), object, metav1.CreateOptions{})
	must(t, err)
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
		denied("resize an unscheduled pod", in.Own, Request{Method: http.MethodPatch, Path: podPath(unscheduled) + "/resize?dryRun=All",
			Type: strategicPatch, Body: `{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"2"}}}]}}`}),
		denied("a pod without owner", in.Own, surgePatch(ownerless, release(ownerless))),
		denied("a pod without the label", in.Own, surgePatch(bare, release(bare))),
		denied("a label for a pod without mark", in.Own, surgePatch(bare, tree{}.label(hashLabel, "abc"))),
		denied("a pod's first label and mark", in.Own, surgePatch(bare, tree{}.label(hashLabel, "abc").annotation(surgeMark, markOf(bare)))),
		denied("the only mark", in.Own, surgePatch(bare, tree{}.annotation(surgeMark, markOf(bare)))),
		allowed("an instance that has gone", in.Own, surgePatch(own, release(own).with("gone", "metadata", "uid")), 422),
	})
	abuses := releaseAbuses(own)
	in.tryAll(t, deniedPatches(in.Own, own, abuses))
	in.tryAll(t, otherWrites(in.Own, own))
	t.Logf("%d abuses of a pod that its ReplicaSet owns", len(abuses))

	in.tryAll(t, []attempt{allowed("release", in.Own, patch(podPath(own), release(own).String()), 200)})
	var released *corev1.Pod
	must(t, Until(t.Context(), "the ReplicaSet lets the pod go", func() (_ bool, err error) {
		released, err = in.Client.CoreV1().Pods("work").Get(t.Context(), own.Name, getOptions)
		return err == nil && len(released.OwnerReferences) == 0, err
	}))
	in.tryAll(t, []attempt{
		denied("release again", in.Own, surgePatch(released, release(own))),
		denied("give another's back", in.Other, surgePatch(released, giveBack(own))),
		denied("give back without a pod", in.Unbound, surgePatch(released, giveBack(own))),
		denied("give back as the node", in.Own.As(ownNode), surgePatch(released, giveBack(own))),
	})
	abuses = returnAbuses(own, released)
	in.tryAll(t, deniedPatches(in.Own, released, abuses))
	in.tryAll(t, otherWrites(in.Own, released))
	t.Logf("%d abuses of a released pod", len(abuses))
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
	in.tryAll(t, []attempt{allowed("remove the mark", in.Own, patch(podPath(own), giveBack(own).String()), 200)})
	must(t, Until(t.Context(), "the ReplicaSet has the pod back", func() (bool, error) {
		list, err := in.Client.CoreV1().Pods("work").List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + own.Labels["app"]})
		return err == nil && len(list.Items) == 1 && metav1.GetControllerOf(&list.Items[0]) != nil, err
	}))
	in.expectAlive(t, second, other, unscheduled, ownerless, bare)
	for _, pod := range []*corev1.Pod{second, other, ownerless, bare} {
		now, err := in.Client.CoreV1().Pods("work").Get(t.Context(), pod.Name, getOptions)
		must(t, err)
		if !maps.Equal(now.Labels, pod.Labels) || !maps.Equal(now.Annotations, pod.Annotations) {
			t.Errorf("%s was changed: labels %v, annotations %v", pod.Name, now.Labels, now.Annotations)
		}
	}
}
