package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The test binds two pods to the node during its drain, without the scheduler. No pod of the node had their labels
// before, and their budget existed before the drain. The drain lists the budgets once more, and evicts the pods when the
// test deletes their budget.
func TestLatePodsWithABudgetOfTheirOwn(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	w := newWorld(t)
	must(t, w.AddNode(t.Context(), "old", "old"))
	must(t, w.Apply(t.Context(), Deployment("web", 1), Budget("web", "0"), AtLeast("late", "2")))
	must(t, w.Settle(t.Context(), 1))

	drain, err := w.Start(t.Context(), haulout, "drain", w.Node("old"), "--settle=0", "--force")
	must(t, err)
	must(t, eachRefused(t.Context(), w, 1)) // the drain has begun
	for _, name := range []string{"late-0", "late-1"} {
		pod := Pod("late")
		pod.Name = name
		pod.Spec.NodeName = w.Node("old")
		must(t, w.Apply(t.Context(), pod))
	}
	must(t, eachRefused(t.Context(), w, 2))
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
