package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// outcome is what a drain did to a world. It does not depend on generated names: pods are counted by application, for
// example "db=1 web=3".
type outcome struct {
	done       bool   // exit status 0
	left       string // pods that are still on the drained nodes
	evicted    string // pods of the drained nodes whose eviction the server accepted
	namesakes  string // pods of other nodes whose eviction the server accepted
	deleted    string
	cordoned   string // short names of the nodes
	unexpected string // anything else that must make the test fail
}

// row is one world, which each tool drains once.
type row struct {
	name string
	// build prepares the node "old"; a node "new" is added after it.
	build func(*setup)
	// args replace the node's name in the command line.
	args  []string
	flags []string
	// meanwhile runs while the drain runs.
	meanwhile func(context.Context, *World) error
	// want is what kubectl does, and also what haulout does, unless `differs` explains why haulout does something else.
	want    outcome
	differs string
	haulout outcome
	// The minor version of the kubectl that does what haulout does. Zero: each kubectl differs.
	agreed int
	// check makes further checks in the world of one tool.
	check func(*testing.T, *World)
}

// setup collects what runs on the node "old" before the node "new" exists.
type setup struct {
	*World
	t     *testing.T
	pods  int
	disks *Disks // only for workloads of the benchmark that have disks
}

func (s *setup) add(pods int, objects ...any) {
	s.t.Helper()
	must(s.t, s.Apply(s.t.Context(), objects...))
	s.pods += pods
}

func (s *setup) settled() {
	s.t.Helper()
	must(s.t, s.Settle(s.t.Context(), s.pods))
}

func TestDifferential(t *testing.T) {
	for _, r := range slices.Concat(filterRows(), budgetRows(), flagRows(), signalRows()) {
		if r.agreed != 0 && cluster.Minor >= r.agreed {
			r.want, r.differs = r.haulout, ""
		}
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			t.Run("kubectl", func(t *testing.T) {
				t.Parallel()
				compare(t, r.want, drainOnce(t, r, cluster.Kubectl()))
			})
			t.Run("haulout", func(t *testing.T) {
				t.Parallel()
				needHaulout(t)
				want := r.want
				if r.differs != "" {
					want = r.haulout
					t.Logf("differs from kubectl on purpose: %s", r.differs)
				}
				compare(t, want, drainOnce(t, r, haulout))
			})
		})
	}
}

func compare(t *testing.T, want, got outcome) {
	t.Helper()
	if want != got {
		t.Errorf("the drain left another world behind\nwant %+v\ngot  %+v", want, got)
	}
}

func drainOnce(t *testing.T, r row, tool Tool) outcome {
	s := &setup{World: newWorld(t), t: t}
	must(t, s.AddNode(t.Context(), "old", "old"))
	r.build(s)
	s.settled()
	must(t, s.AddNode(t.Context(), "new", "new"))

	args := []string{"drain"}
	if r.args == nil {
		args = append(args, s.Node("old"))
	}
	for _, arg := range slices.Concat(r.args, r.flags) {
		args = append(args, strings.ReplaceAll(arg, "WORLD", s.Name))
	}
	if tool == haulout {
		args = append(args, "--settle=0")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	run, err := s.Start(ctx, tool, args...)
	must(t, err)
	if r.meanwhile != nil {
		if err := r.meanwhile(ctx, s.World); err != nil {
			t.Errorf("meanwhile: %v", err)
		}
	}
	result, err := run.Wait()
	t.Logf("%s %s: exit %d after %.1f s\n%s%s", tool.Name, strings.Join(args, " "), result.Exit,
		result.Wall.Seconds(), result.Stdout, result.Stderr)
	must(t, err)
	if r.check != nil {
		r.check(t, s.World)
	}
	return observe(t, s.World, result)
}

// observe reads the API and the audit log. The mark that the server puts on an evicted pod shows which pod instance an
// eviction was for, because kubectl does not name the UID.
func observe(t *testing.T, w *World, result Result) outcome {
	t.Helper()
	got := outcome{done: result.Exit == 0}
	nodes, err := w.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: poolLabel + "=" + w.Name})
	must(t, err)
	drained := map[string]bool{}
	var cordoned []string
	for _, node := range nodes.Items {
		drained[node.Name] = node.Labels["role"] == "old"
		if node.Spec.Unschedulable {
			cordoned = append(cordoned, strings.TrimPrefix(node.Name, w.Name+"-"))
		}
	}
	got.cordoned = strings.Join(cordoned, " ")

	pods, err := w.Client.CoreV1().Pods(w.Name).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	got.left = count(pods.Items, func(pod corev1.Pod) string {
		return onlyIf(drained[pod.Spec.NodeName], pod.Labels["app"])
	})
	records := w.Kubelets.Pods(w.Name)
	got.evicted = count(records, func(pod PodRecord) string {
		return onlyIf(pod.Evicted && drained[pod.Node], pod.App)
	})
	got.namesakes = count(records, func(pod PodRecord) string {
		return onlyIf(pod.Evicted && !drained[pod.Node], pod.App)
	})

	requests, err := w.Requests()
	must(t, err)
	accepted := 0
	for _, request := range requests {
		if request.IsEviction() && request.Accepted() {
			accepted++
		}
	}
	marked := len(slices.DeleteFunc(records, func(pod PodRecord) bool { return !pod.Evicted }))
	if accepted < marked {
		got.unexpected = fmt.Sprintf("%d pods evicted, but %d evictions accepted", marked, accepted)
	}
	apps := map[string]string{}
	for _, pod := range w.Kubelets.Pods(w.Name) {
		apps[pod.Name] = pod.App
	}
	got.deleted = count(requests, func(request AuditEvent) string {
		asked := request.Verb == "delete" && request.Is("pods") && request.Accepted() &&
			len(request.RequestObject.DryRun) == 0
		return onlyIf(asked, apps[request.ObjectRef.Name])
	})
	return got
}

func onlyIf(condition bool, text string) string {
	if condition {
		return text
	}
	return ""
}

// count returns how many items have each non-empty key, as text.
func count[T any](items []T, key func(T) string) string {
	counts := map[string]int{}
	for _, item := range items {
		if k := key(item); k != "" {
			counts[k]++
		}
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s=%d", k, counts[k]))
	}
	return strings.Join(parts, " ")
}
