package e2e

import (
	"maps"
	"slices"
	"testing"
)

// The workload has no budget, so only the guards limit how many of its pods are evicted at the same time. Fleet checks
// that enough pods are always Ready. The agents read controllers, and pods of other nodes, as the ServiceAccount, to
// which the component `guards` gives the right. All requests about their own node they send as that node.
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
	seen := map[string]map[string]int{} // for each node: the number of requests of each kind, and as whom they were sent
	for _, machine := range f.Machines {
		seen[machine.Node] = map[string]int{}
	}
	for _, request := range requests {
		kinds, ns := seen[request.Node()], request.ObjectRef.Namespace
		// Leaves out requests in other namespaces: by these an agent tests its rights when it starts.
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
			continue // the node had no pods when it got its slot
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
