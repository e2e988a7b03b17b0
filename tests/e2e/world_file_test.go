package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDecodeWorld(t *testing.T) {
	const node = `{apiVersion: v1, kind: Node, metadata: {name: n1}}`
	for _, c := range []struct {
		name, text string
		want       int
		problem    string
	}{
		{"one object", node, 1, ""},
		{"two documents", node + "\n---\n" + node, 2, ""},
		{"a document of comments", "# nothing\n---\n" + node, 1, ""},
		{"a list", "{apiVersion: v1, kind: List, items: [" + node + ", " + node + ", " + node + "]}", 3, ""},
		{"unknown kind", "{apiVersion: v1, kind: Knot, metadata: {name: n1}}", 0, `"Knot"`},
		{"unknown field", "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Node, metadat: {}}]}", 0, "items[0]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			objects, err := DecodeWorld([]byte(c.text))
			if c.problem != "" {
				if err == nil || !strings.Contains(err.Error(), c.problem) {
					t.Fatalf("error %v does not name %s", err, c.problem)
				}
				return
			}
			must(t, err)
			if len(objects) != c.want {
				t.Errorf("%d objects, want %d", len(objects), c.want)
			}
		})
	}
}

func TestDecodeWorldReadsTheDemo(t *testing.T) {
	root, err := sourceRoot()
	must(t, err)
	text, err := os.ReadFile(filepath.Join(root, "demo", "cluster.yaml"))
	must(t, err)
	objects, err := DecodeWorld(text)
	must(t, err)
	nodes := 0
	for _, object := range objects {
		if _, ok := object.(*corev1.Node); ok {
			nodes++
		}
	}
	if nodes == 0 || nodes == len(objects) {
		t.Errorf("%d objects, %d of them nodes", len(objects), nodes)
	}
}

func TestForRealScheduler(t *testing.T) {
	annotated := func(key, value string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{key: value}}}
	}
	t.Run("a preferred node becomes an affinity that outweighs spreading", func(t *testing.T) {
		given := annotated(PrefersNode, "n1")
		got, err := ForRealScheduler(given)
		must(t, err)
		if given.Spec.Affinity != nil {
			t.Error("the given template has changed")
		}
		terms := got.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		if len(terms) != 1 || terms[0].Preference.MatchFields[0].Values[0] != "n1" {
			t.Errorf("terms %+v", terms)
		}
		spread := got.Spec.TopologySpreadConstraints
		if len(spread) != 1 || spread[0].LabelSelector == nil || spread[0].WhenUnsatisfiable != corev1.ScheduleAnyway {
			t.Errorf("spread %+v", spread)
		}
	})
	for _, c := range []struct {
		name, key, value string
		good             bool
	}{
		{"a duration", TerminatesAfter, "1m30s", true},
		{"no duration", StartsAfter, "soon", false},
		{"what no kubelet here does", worldPrefix + "never-terminates", "true", false},
		{"somebody else's", "example.com/starts-after", "soon", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ForRealScheduler(annotated(c.key, c.value))
			if (err == nil) != c.good {
				t.Errorf("error %v", err)
			}
			if got.Spec.Affinity != nil || got.Annotations[c.key] != c.value {
				t.Errorf("template %+v", got)
			}
		})
	}
}
