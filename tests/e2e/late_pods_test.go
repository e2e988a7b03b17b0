package e2e

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// During a drain two pods come to the node that nobody has scheduled. No pod of the node had their labels before, and
// their budget existed before the drain. The drain lists the budgets once more, and evicts the pods when this one is
// deleted.
func TestLatePodsWithABudgetOfTheirOwn(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	w := newWorld(t)
	must(t, w.AddNode(t.Context(), "old", "old"))
	must(t, w.Apply(t.Context(), Deployment("web", 1), Budget("web", "0"), AtLeast("late", "2")))
	must(t, w.Settle(t.Context(), 1))

	drain, err := w.Start(t.Context(), haulout, "drain", w.Node("old"), "--settle=0", "--force")
	must(t, err)
	untilRefused := func(what, prefix string) {
		t.Helper()
		must(t, Until(t.Context(), what, func() (bool, error) {
			requests, err := w.Requests()
			for _, request := range requests {
				if request.RefusedEviction() && strings.HasPrefix(request.ObjectRef.Name, prefix) {
					return true, nil
				}
			}
			return false, err
		}))
	}
	untilRefused("the drain to begin", "web-")
	for _, name := range []string{"late-0", "late-1"} {
		pod := Pod("late")
		pod.Name = name
		pod.Spec.NodeName = w.Node("old")
		must(t, w.Apply(t.Context(), pod))
	}
	untilRefused("a late pod to be held", "late-")
	lists := func() int {
		requests, err := w.Requests()
		must(t, err)
		count := 0
		for _, request := range requests {
			if request.Kind() == "list poddisruptionbudgets" {
				count++
			}
		}
		return count
	}
	must(t, Until(t.Context(), "the budgets to be listed again", func() (bool, error) { return lists() > 1, nil }))
	budgets := w.Client.PolicyV1().PodDisruptionBudgets(w.Name)
	must(t, budgets.Delete(t.Context(), "late", metav1.DeleteOptions{}))
	must(t, w.SetBudget(t.Context(), "web", "100%"))
	result, err := drain.Wait()
	must(t, err)
	if result.Exit != 0 {
		t.Fatalf("exit %d\n%s%s", result.Exit, result.Stdout, result.Stderr)
	}
	if count := lists(); count != 2 {
		t.Errorf("the budgets were listed %d times", count)
	}
}
