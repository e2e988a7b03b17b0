package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// PublicWorld is a folder of manifests with the shape of a public project, and the README.md beside them, which lists
// what an audit finds in them.
type PublicWorld struct {
	Name, Dir string
	Project   string // owner/name on GitHub
	Version   string
	Nodes     int
	// The node with the most pods of this controller, or with this pod, is drained.
	Drained string
	Rows    []PublicRow
}

// PublicRow is a row of the table in a README.md: a finding in the manifests, in the cluster or in both, or a pod that
// blocks the drain of its node.
type PublicRow struct {
	Where  string // manifests, cluster, both, drain
	What   string // "risk SingleReplica", "blocked BlockedByBudget"
	Owners []string
	Why    string
}

// PublicWorlds reads all these worlds, sorted by name.
func PublicWorlds() (worlds []PublicWorld, err error) {
	root, err := sourceRoot()
	if err != nil {
		return nil, err
	}
	dirs, err := filepath.Glob(filepath.Join(root, "tests", "e2e", "worlds", "*"))
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		world, err := readPublicWorld(dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
		worlds = append(worlds, world)
	}
	return worlds, nil
}

func readPublicWorld(dir string) (world PublicWorld, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		return world, err
	}
	world = PublicWorld{Name: filepath.Base(dir), Dir: dir}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if key, value, found := strings.Cut(line, ": "); found {
			switch key {
			case "- Project":
				world.Project = value
			case "- Version":
				world.Version = value
			case "- Nodes":
				if _, err := fmt.Sscan(value, &world.Nodes); err != nil {
					return world, err
				}
			case "- Drained":
				_, world.Drained, _ = strings.Cut(value, " of ")
			}
		}
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		if !strings.HasPrefix(line, "|") || len(cells) != 4 {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		row := PublicRow{Where: cells[0], What: cells[1], Owners: strings.Split(cells[2], ", "), Why: cells[3]}
		switch row.Where {
		case "where":
		case "manifests", "cluster", "both", "drain":
			world.Rows = append(world.Rows, row)
		default:
			return world, fmt.Errorf("unknown row: %s", line)
		}
	}
	if world.Project == "" || world.Version == "" || world.Nodes == 0 || world.Drained == "" || len(world.Rows) == 0 {
		return world, fmt.Errorf("README.md lacks the project, its version, the number of nodes, the drained node or the findings")
	}
	return world, nil
}

// Expected returns "SEVERITY ID OWNER" of the findings in the manifests or in the cluster, or what blocks drains, sorted.
func (p PublicWorld) Expected(where string) (found []string) {
	for _, row := range p.Rows {
		if row.Where == where || row.Where == "both" && where != "drain" {
			for _, owner := range row.Owners {
				found = append(found, row.What+" "+owner)
			}
		}
	}
	slices.Sort(found)
	return found
}

var nodeInManifest = regexp.MustCompile(`\bnode-([abc])\b`)

// Objects reads the manifests for a world, whose namespace replaces theirs. The names node-a, node-b and node-c become
// those of its nodes.
func (p PublicWorld) Objects(w *World) (objects []runtime.Object, err error) {
	files, err := filepath.Glob(filepath.Join(p.Dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		text = nodeInManifest.ReplaceAllFunc(text, func(name []byte) []byte {
			return []byte(w.Node(strings.TrimPrefix(string(name), "node-")))
		})
		found, err := DecodeWorld(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, object := range found {
			if err := settleIn(w, object); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

// settleIn moves an object into the namespace of the world. An object without a namespace gets a name of its own, and
// its webhooks ask about nothing outside of the world. The pods of a Job have ended.
func settleIn(w *World, object runtime.Object) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	here := func(where *admissionregistrationv1.WebhookClientConfig, selector **metav1.LabelSelector) {
		where.Service.Namespace = w.Name
		if *selector == nil {
			*selector = &metav1.LabelSelector{}
		}
		(*selector).MatchLabels = merged((*selector).MatchLabels, map[string]string{corev1.LabelMetadataName: w.Name})
	}
	switch object := object.(type) {
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		object.Name = w.Name + "-" + object.Name
		for i := range object.Webhooks {
			here(&object.Webhooks[i].ClientConfig, &object.Webhooks[i].NamespaceSelector)
		}
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		object.Name = w.Name + "-" + object.Name
		for i := range object.Webhooks {
			here(&object.Webhooks[i].ClientConfig, &object.Webhooks[i].NamespaceSelector)
		}
	case *batchv1.Job:
		accessor.SetNamespace(w.Name)
		object.Spec.Template.Annotations = merged(object.Spec.Template.Annotations, map[string]string{Becomes: "Succeeded"})
	default:
		accessor.SetNamespace(w.Name)
	}
	return nil
}

// expectedPods returns how many pods these objects have on so many nodes, and the claims of their pods.
func expectedPods(objects []runtime.Object, nodes int) (pods int, claims []string) {
	count := func(replicas *int32) int {
		if replicas == nil {
			return 1
		}
		return int(*replicas)
	}
	for _, object := range objects {
		switch object := object.(type) {
		case *appsv1.Deployment:
			pods += count(object.Spec.Replicas)
		case *appsv1.StatefulSet:
			for i := range count(object.Spec.Replicas) {
				for _, claim := range object.Spec.VolumeClaimTemplates {
					claims = append(claims, fmt.Sprintf("%s-%s-%d", claim.Name, object.Name, i))
				}
			}
			pods += count(object.Spec.Replicas)
		case *appsv1.DaemonSet:
			pods += nodes
		case *batchv1.Job:
			pods += count(object.Spec.Parallelism)
		case *corev1.Pod:
			pods++
		case *corev1.PersistentVolumeClaim:
			claims = append(claims, object.Name)
		}
	}
	return pods, claims
}

// ApplyPublic creates the objects of a world with the shape of a public project, in which every pod runs. The scheduler
// places the pods on the nodes that the world says, so that equal pods are spread.
func (w *World) ApplyPublic(ctx context.Context, disks *Disks, world PublicWorld) error {
	objects, err := world.Objects(w)
	if err != nil {
		return err
	}
	pods, claims := expectedPods(objects, world.Nodes)
	for _, short := range []string{"a", "b", "c"}[:world.Nodes] {
		if err := disks.AddNode(ctx, short); err != nil {
			return err
		}
	}
	if err := w.UntilOpen(ctx, []string{"a", "b", "c"}[:world.Nodes]...); err != nil {
		return err
	}
	for _, claim := range claims {
		if err := disks.Add(ctx, Disk{Claim: claim, Mode: corev1.ReadWriteOnce}); err != nil {
			return err
		}
	}
	for _, object := range objects {
		if err := w.createPublic(ctx, object); err != nil {
			return fmt.Errorf("create %T: %w", object, err)
		}
	}
	return w.Settle(ctx, pods)
}

// createPublic creates also the kinds that only these worlds have. The claims exist already.
func (w *World) createPublic(ctx context.Context, object runtime.Object) (err error) {
	options := metav1.CreateOptions{}
	hooks := w.Client.AdmissionregistrationV1()
	switch object := object.(type) {
	case *corev1.PersistentVolumeClaim:
	case *corev1.Service:
		_, err = w.Client.CoreV1().Services(w.Name).Create(ctx, object, options)
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		_, err = hooks.ValidatingWebhookConfigurations().Create(ctx, object, options)
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		_, err = hooks.MutatingWebhookConfigurations().Create(ctx, object, options)
	default:
		err = w.create(ctx, object)
	}
	return err
}

// ClosePublic deletes what belongs to no namespace.
func (w *World) ClosePublic() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	hooks := w.Client.AdmissionregistrationV1()
	if list, err := hooks.ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{}); err == nil {
		for _, hook := range list.Items {
			if strings.HasPrefix(hook.Name, w.Name+"-") {
				_ = hooks.ValidatingWebhookConfigurations().Delete(ctx, hook.Name, metav1.DeleteOptions{})
			}
		}
	}
	if list, err := hooks.MutatingWebhookConfigurations().List(ctx, metav1.ListOptions{}); err == nil {
		for _, hook := range list.Items {
			if strings.HasPrefix(hook.Name, w.Name+"-") {
				_ = hooks.MutatingWebhookConfigurations().Delete(ctx, hook.Name, metav1.DeleteOptions{})
			}
		}
	}
}
