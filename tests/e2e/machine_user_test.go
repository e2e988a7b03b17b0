package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// packaging/README.md describes an agent on a machine with the kubeconfig of a user who may write Leases. With the
// settings that it names, and no others, --check reports no problem, and the agent updates its node with a Lease as its
// slot. Without any one of these settings --check fails and names it, and without the right it fails for that reason.
func TestMachineOfAUserWhoMayWriteLeases(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	w := newWorld(t)
	must(t, w.AddNode(t.Context(), "m1", "worker"))
	must(t, w.UntilOpen(t.Context(), "m1"))
	machine, err := w.NewMachine(w.Node("m1"))
	must(t, err)
	t.Cleanup(machine.Close)

	kubeconfig := w.userWith(t, "leases", append(agentRules(), leaseRule())...)
	settings := settingsForAUser(t, kubeconfig, machine.Node)
	if len(settings) != 3 {
		t.Errorf("packaging/README.md names %d settings: %v", len(settings), settings)
	}
	own := []string{"--namespace", w.Name, "--pool-label", poolLabel, "--backend", "flatcar", "--settle", "500ms"}
	check := func(settings []string) Result {
		args := append([]string{"agent", "--check", "--host-root", machine.Root, "--config", configOf(t, settings)}, own...)
		run, err := w.StartWith(t.Context(), "", haulout, args...)
		must(t, err)
		result, err := run.Wait()
		must(t, err)
		return result
	}
	if result := check(settings); result.Exit != 0 {
		t.Errorf("as the README says: exit %d\n%s%s", result.Exit, result.Stdout, result.Stderr)
	}
	for i, missing := range settings {
		rest := append(append([]string{}, settings[:i]...), settings[i+1:]...)
		key, _, _ := strings.Cut(missing, ":")
		if result := check(rest); result.Exit == 0 || !strings.Contains(result.Stderr, key) {
			t.Errorf("without %s: exit %d, and the error must name the setting\n%s%s", missing, result.Exit, result.Stdout, result.Stderr)
		}
	}
	mayNot := settingsForAUser(t, w.userWith(t, "no-leases", agentRules()...), machine.Node)
	if result := check(mayNot); result.Exit == 0 || !strings.Contains(result.Stderr, "Leases") {
		t.Errorf("a user who may not write Leases: exit %d, and the error must say so\n%s%s", result.Exit, result.Stdout, result.Stderr)
	}

	turns, err := w.Client.CoordinationV1().Leases(w.Name).Watch(t.Context(), metav1.ListOptions{})
	must(t, err)
	defer turns.Stop()
	must(t, machine.StartAgent(haulout, nil, append([]string{"--config", configOf(t, settings)}, own...)...))
	must(t, machine.Offer("1.1"))
	must(t, UntilWithin(t.Context(), time.Minute, "the node is updated", func() (bool, error) {
		node, err := w.Client.CoreV1().Nodes().Get(t.Context(), machine.Node, getOptions)
		if err != nil {
			return false, err
		}
		return machine.Version() == "1.1" && node.Labels["haulout.dev/state"] == "idle",
			fmt.Errorf("version %s\n%s", machine.Version(), machine.Log())
	}))
	// The slot's Lease is already deleted, but the watch still delivers the event of its creation.
	for {
		select {
		case event := <-turns.ResultChan():
			lease, ok := event.Object.(*coordinationv1.Lease)
			if ok && event.Type == watch.Added && strings.HasPrefix(*lease.Spec.HolderIdentity, machine.Node+"/") {
				return
			}
		case <-time.After(10 * time.Second):
			t.Fatal("no turn was a Lease of this node")
		}
	}
}

// settingsForAUser returns the lines of config.yaml that the README names, in its order.
func settingsForAUser(t *testing.T, kubeconfig, node string) []string {
	t.Helper()
	root, err := sourceRoot()
	must(t, err)
	text, err := os.ReadFile(filepath.Join(root, "packaging", "README.md"))
	must(t, err)
	_, after, found := strings.Cut(strings.Join(strings.Fields(string(text)), " "),
		"slots come from: `slots: fleetlock`, or `slots: none` for a machine on its own. ")
	if !found || !strings.HasPrefix(after, "With a `kubeconfig` of a user who may write Leases, slots as Leases work too") {
		t.Fatal("packaging/README.md says no more that a user may write Leases")
	}
	sentence, _, _ := strings.Cut(after, ". ")
	values := map[string]string{"kubeconfig": kubeconfig, "node-name": node}
	var settings []string
	for _, quoted := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(sentence, -1) {
		setting := quoted[1]
		if value, ours := values[setting]; ours {
			setting += ": " + value
		}
		if !strings.Contains(setting, "config.yaml") {
			settings = append(settings, setting)
		}
	}
	return settings
}

func configOf(t *testing.T, settings []string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	must(t, os.WriteFile(path, []byte(strings.Join(settings, "\n")+"\n"), 0o600))
	return path
}

// userWith creates a user with this name and these rights, and returns the path of a kubeconfig.
func (w *World) userWith(t *testing.T, name string, rules ...rbacv1.PolicyRule) string {
	t.Helper()
	user := w.Name + "-" + name
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}
	_, err := w.Client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	must(t, err)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}
	_, err = w.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{})
	must(t, err)
	identity, err := w.CA.Client(user)
	must(t, err)
	kubeconfig, err := w.Access(identity).Write(w.Home)
	must(t, err)
	return kubeconfig
}

func leaseRule() rbacv1.PolicyRule {
	return rule("coordination.k8s.io", "leases", "get", "list", "watch", "create", "delete")
}

// agentRules returns the rights that an agent needs besides those for slots.
func agentRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule("", "nodes", "get", "list", "watch", "patch"), rule("", "nodes/status", "patch"),
		rule("", "pods", "list", "watch"), rule("", "pods/eviction", "create"),
		rule("policy", "poddisruptionbudgets", "list", "watch"), rule("apps", "daemonsets", "get"),
		rule("storage.k8s.io", "volumeattachments", "list", "watch"), rule("", "persistentvolumes", "get"),
		rule("", "configmaps", "get", "list", "watch"), rule("events.k8s.io", "events", "create", "patch"),
	}
}
