package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The reasons in the scheduler's message about a pod for which it found no node, without those that come from nodes of
// other tests.
var shortages = regexp.MustCompile(`\d+ (Insufficient \S+?|Too many pods|` +
	`node\(s\) didn't (?:match pod|satisfy existing pods) anti-affinity rules|` +
	`node\(s\) didn't match PersistentVolume's node affinity)[,.]`)

// fitWorld returns a world with a large and a small pod on the node "old", and a node "new" of which so many CPUs are
// used.
func fitWorld(t *testing.T, taken string) *World {
	t.Helper()
	w := newWorld(t)
	must(t, w.AddNode(t.Context(), "old", "old"))
	fast := Annotate(TerminatesAfter, "300ms")
	must(t, w.Apply(t.Context(), Deployment("large", 1, Cpu("400"), fast), Deployment("small", 1, Cpu("200"), fast)))
	must(t, w.Settle(t.Context(), 2))
	must(t, w.AddNode(t.Context(), "new", "new"))
	filler := Pod("taken", Cpu(taken))
	filler.Spec.NodeName = w.Node("new")
	must(t, w.Apply(t.Context(), filler))
	must(t, w.Settle(t.Context(), 3))
	must(t, w.UntilOpen(t.Context(), "new"))
	return w
}

// fits returns what the report predicts for each workload: the node on which its pod fits, or the resources that are
// missing.
func fits(t *testing.T, w *World, report Report) map[string]string {
	t.Helper()
	said := map[string]string{}
	for _, fit := range report.Fits {
		app, _, _ := strings.Cut(strings.TrimPrefix(fit.Pod, w.Name+"/"), "-")
		switch fit.Fit {
		case "fits":
			said[app] = fit.Node
		case "does-not-fit":
			said[app] = fmt.Sprint(shortages.FindAllString(fit.Message, -1))
			if !slices.Contains(fit.Plugins, "NodeResourcesFit") {
				t.Errorf("%s: which plugins say no? %v", fit.Pod, fit.Plugins)
			}
		default:
			t.Errorf("%s: %s: %s", fit.Pod, fit.Fit, fit.Message)
		}
	}
	return said
}

// verdicts returns what the scheduler decided about the replacements, in the form of fits().
func verdicts(t *testing.T, w *World) map[string]string {
	t.Helper()
	found := map[string]string{}
	must(t, Until(t.Context(), "the scheduler has decided", func() (bool, error) {
		list, err := w.Client.CoreV1().Pods(w.Name).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		clear(found)
		for _, pod := range list.Items {
			app := pod.Labels["app"]
			for _, condition := range pod.Status.Conditions {
				if app == "taken" || condition.Type != corev1.PodScheduled {
					continue
				}
				found[app] = pod.Spec.NodeName
				if condition.Status == corev1.ConditionFalse {
					before, _, _ := strings.Cut(condition.Message, " preemption:")
					found[app] = fmt.Sprint(shortages.FindAllString(before, -1))
				}
			}
		}
		return len(found) == 2, nil
	}))
	return found
}

// The check before the drain predicts for each pod what the real scheduler then decides about its replacement. With
// --check-fit=block, a pod that does not fit ends the drain before anything is changed.
func TestFitAgreesWithTheScheduler(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	for _, c := range []struct {
		name, taken string
		large       string // the resources that are missing; empty: it fits
	}{
		{"one does not fit", "700", "[1 Insufficient cpu,]"},
		{"all fit", "400", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := fitWorld(t, c.taken)
			want := map[string]string{"large": c.large, "small": w.Node("new")}
			if c.large == "" {
				want["large"] = w.Node("new")
			} else {
				refused := run(t, w, 1, haulout, "drain", w.Node("old"), "--settle=0", "--check-fit=block")
				if !strings.Contains(refused.Stderr, "Insufficient cpu") {
					t.Errorf("it does not say why:\n%s", refused.Stderr)
				}
				compare(t, outcome{left: "large=1 small=1"}, observe(t, w, refused))
				expectNode(t, w, false, false)
			}
			policy := "--check-fit=require"
			if c.large != "" {
				policy = "--check-fit=warn"
			}
			report, err := run(t, w, 0, haulout, "drain", w.Node("old"), "--settle=0", "-o", "json", policy).Report()
			must(t, err)
			said, found := fits(t, w, report), verdicts(t, w)
			if fmt.Sprint(said) != fmt.Sprint(want) || fmt.Sprint(found) != fmt.Sprint(want) {
				t.Errorf("want %v\nbefore the drain: %v\nthe scheduler:    %v", want, said, found)
			}
		})
	}
}
