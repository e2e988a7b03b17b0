package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The test gives two pods other labels during the drain of their node. No pod of the node had these labels before, and
// the budget for them existed before the drain. The drain lists the budgets once more, and evicts the pods when the test
// deletes their budget. New pods would not do, because a budget does not hold a pod that does not run yet.
func TestPodsThatComeUnderAnotherBudget(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	w := newWorld(t)
	must(t, w.AddNode(t.Context(), "old", "old"))
	names := []string{"pod-0", "pod-1"}
	for _, name := range names {
		pod := Pod("early")
		pod.Name = name
		must(t, w.Apply(t.Context(), pod))
	}
	must(t, w.Apply(t.Context(), AtLeast("early", "2"), AtLeast("late", "2")))
	must(t, w.Settle(t.Context(), len(names)))

	drain, err := w.Start(t.Context(), haulout, "drain", w.Node("old"), "--settle=0", "--force")
	must(t, err)
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
	must(t, eachRefused(t.Context(), w, len(names)))
	before := lists()
	for _, name := range names {
		_, err := w.Client.CoreV1().Pods(w.Name).Patch(t.Context(), name, types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"app":"late"}}}`), metav1.PatchOptions{})
		must(t, err)
	}
	must(t, Until(t.Context(), "the budgets to be listed again", func() (bool, error) { return lists() > before, nil }))
	budgets := w.Client.PolicyV1().PodDisruptionBudgets(w.Name)
	must(t, budgets.Delete(t.Context(), "late", metav1.DeleteOptions{}))
	result, err := drain.Wait()
	must(t, err)
	if result.Exit != 0 {
		t.Fatalf("exit %d\n%s%s", result.Exit, result.Stdout, result.Stderr)
	}
	if again := lists() - before; again != 1 {
		t.Errorf("the budgets were listed %d times again", again)
	}
}
