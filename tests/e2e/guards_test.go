package e2e

import (
	"maps"
	"slices"
	"testing"
)

// Without a budget, guards alone keep pods from going together; the fleet's witness sees whether they do. Pods of other
// nodes and controllers are read by the ServiceAccount, to whom the component `guards` gives the right, and whatever is
// about the own node goes out as that node.
func expectGuarded(t *testing.T, in *Installed) {
	t.Helper()
	f := newFleetWith(t, in.Cluster,
		Deployment("web", 6, Annotate(TerminatesAfter, "200ms"), Annotate(StartsAfter, "700ms")))
	f.startPods(t, in, "--max-unavailable-per-controller=1", "--canary=30s")
	f.offerAll(t, "1.1")
	f.expectUpdated(t, "1.1", 1, "")
	f.expectAuthority(t, "impersonation")

	requests, err := in.Audit.Of("system:serviceaccount:" + agentName + ":" + agentName)
	must(t, err)
	seen := map[string]map[string]int{} // by node: what has been done, as whom
	for _, machine := range f.Machines {
		seen[machine.Node] = map[string]int{}
	}
	for _, request := range requests {
		kinds, ns := seen[request.Node()], request.ObjectRef.Namespace
		// What it may do at all an agent tries elsewhere.
		if kinds == nil || ns != f.Name && !(request.Is("pods") && ns == "") {
			continue
		}
		kind := request.Kind()
		if ns == "" {
			kind += " of the node"
		}
		switch as := request.ImpersonatedUser.Username; as {
		case "":
		case "system:node:" + request.Node():
			kind += " as the node"
		default:
			t.Errorf("%s: %s as %s", request.Node(), kind, as)
		}
		if !request.Accepted() {
			t.Errorf("%s: %s, %d", request.Node(), kind, request.ResponseStatus.Code)
		}
		kinds[kind]++
	}
	drained := 0
	for node, kinds := range seen {
		t.Logf("%s: %v", node, kinds)
		if kinds["create pods/eviction as the node"] == 0 {
			continue // it had no pod when its turn came
		}
		drained++
		want := []string{
			"create pods/eviction as the node", "get deployments", "get replicasets", "list pods",
			"list pods of the node as the node", "watch pods", "watch pods of the node as the node",
		}
		if got := slices.Sorted(maps.Keys(kinds)); !slices.Equal(got, want) {
			t.Errorf("%s has sent %v, want %v", node, got, want)
		}
	}
	if drained < 2 {
		t.Errorf("%d nodes had pods", drained)
	}
}
