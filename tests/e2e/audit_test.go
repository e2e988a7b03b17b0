package e2e

import (
	"encoding/json"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// auditReport is what the test reads of the output of haulout audit -o json.
type auditReport struct {
	Kind  string
	Nodes []struct {
		Name, Verdict string
		BlockedBy     []struct{ Pod, Owner, Reason string }
	}
	Owners []struct {
		Namespace, Kind, Name string
		Findings              []struct {
			ID, Severity string
			Nodes        []string
		}
	}
}

// An audit of the running cluster names the budget that never opens, the workload behind it and the node that cannot be
// drained, and only reads. The cluster has the worlds of other tests, too, which the test ignores.
func TestAudit(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	w := newWorld(t)
	must(t, w.AddNode(t.Context(), "old", "old"))
	must(t, w.Apply(t.Context(), Deployment("web", 2), Budget("web", "0"), Deployment("solo", 1)))
	must(t, w.Settle(t.Context(), 3))
	must(t, w.AddNode(t.Context(), "new", "new"))
	must(t, Until(t.Context(), "the disruption controller has counted the pods of the budget", func() (bool, error) {
		budget, err := w.Client.PolicyV1().PodDisruptionBudgets(w.Name).Get(t.Context(), "web", metav1.GetOptions{})
		return err == nil && budget.Status.ExpectedPods == 2 && budget.Status.CurrentHealthy == 2, err
	}))

	var report auditReport
	must(t, json.Unmarshal([]byte(run(t, w, 1, haulout, "audit", "--rehearse-at-most=1000", "-o", "json").Stdout), &report))
	if report.Kind != "Audit" {
		t.Errorf("the report has the kind %q", report.Kind)
	}
	found := map[string]bool{}
	for _, owner := range report.Owners {
		for _, finding := range owner.Findings {
			if owner.Namespace == w.Name && slices.Contains(finding.Nodes, w.Node("old")) {
				found[finding.Severity+" "+finding.ID+" "+owner.Kind+"/"+owner.Name] = true
			}
		}
	}
	for _, want := range []string{
		"blocks BudgetNeverOpens Deployment/web", "risk AllReplicasOnOneNode Deployment/web", "risk SingleReplica Deployment/solo",
	} {
		if !found[want] {
			t.Errorf("there should be the finding %q among %v", want, found)
		}
	}
	for _, node := range report.Nodes {
		if node.Name != w.Node("old") {
			continue
		}
		if node.Verdict != "blocked" || len(node.BlockedBy) != 2 {
			t.Errorf("the node should be blocked by two pods: %+v", node)
		}
		for _, culprit := range node.BlockedBy {
			if culprit.Owner != w.Name+"/Deployment/web" || culprit.Reason != "BlockedByBudget" {
				t.Errorf("the budget should block a pod of web, not %+v", culprit)
			}
		}
	}
	expectUntouched(t, w)
}
