package e2e

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// runAs runs haulout with this kubeconfig.
func runAs(t *testing.T, w *World, access Access, args ...string) Result {
	t.Helper()
	kubeconfig, err := access.Write(w.Home)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	run, err := w.StartWith(ctx, kubeconfig, haulout, args...)
	must(t, err)
	result, err := run.Wait()
	must(t, err)
	return result
}

func smallWorld(t *testing.T, objects ...any) *World {
	t.Helper()
	w := newWorld(t)
	must(t, w.AddNode(t.Context(), "old", "old"))
	must(t, w.Apply(t.Context(), objects...))
	must(t, w.Settle(t.Context(), 2))
	must(t, w.AddNode(t.Context(), "new", "new"))
	return w
}

// A drain with a kubelet's certificate drains the kubelet's own node, although the server does not let it read budgets,
// or a pod that is already deleted.
func TestKubeletIdentity(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	w := smallWorld(t, StatefulSet("db", 2), Budget("db", "1"))
	identity, err := w.CA.Client("system:node:"+w.Node("old"), "system:nodes")
	must(t, err)
	result := runAs(t, w, w.Access(identity), "drain", w.Node("old"), "--settle=0", "--timeout=4m")
	if result.Exit != 0 {
		t.Fatalf("exit %d\n%s%s", result.Exit, result.Stdout, result.Stderr)
	}
	w.User = "system:node:" + w.Node("old")
	compare(t, outcome{done: true, evicted: "db=2", cordoned: "old"}, observe(t, w, result))

	other := runAs(t, w, w.Access(identity), "drain", w.Node("new"), "--settle=0", "--timeout=30s")
	if other.Exit != 3 {
		t.Errorf("another node: exit %d, want 3\n%s%s", other.Exit, other.Stdout, other.Stderr)
	}
}

// serviceAccount creates a ServiceAccount with these rules and returns its Access.
func serviceAccount(t *testing.T, w *World, rules ...rbacv1.PolicyRule) Access {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "drainer"}}
	accounts := w.Client.CoreV1().ServiceAccounts(w.Name)
	_, err := accounts.Create(t.Context(), account, metav1.CreateOptions{})
	must(t, err)
	if len(rules) > 0 {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.Name}, Rules: rules}
		_, err = w.Client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
		must(t, err)
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: w.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: w.Name},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: w.Name, Name: "drainer"}},
		}
		_, err = w.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{})
		must(t, err)
	}
	token, err := accounts.CreateToken(t.Context(), "drainer", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(t, err)
	return Access{Server: w.URL, CA: w.CA.PEM, Token: token.Status.Token}
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// If a right is missing, the command ends before it changes anything, and its message names a rule that would grant the
// right.
func TestRBACDenied(t *testing.T) {
	drainRules := []rbacv1.PolicyRule{
		rule("", "nodes", "get", "patch"), rule("", "pods", "get", "list", "watch"),
		rule("policy", "poddisruptionbudgets", "list", "watch"), rule("", "pods/eviction", "create"),
		rule("apps", "daemonsets", "get"),
	}
	for _, r := range []struct {
		name  string
		rules []rbacv1.PolicyRule
		exit  int
		names []string // words that the suggested rule must contain
	}{
		{"nothing permitted", nil, 3, []string{"nodes", "get"}},
		{"no right to list pods", drainRules[:1], 3, []string{"pods", "list"}},
		{"no right to evict", drainRules[:3], 3, []string{"pods/eviction", "create"}},
		{"no right to cordon", append([]rbacv1.PolicyRule{rule("", "nodes", "get")}, drainRules[1:]...), 3,
			[]string{"nodes", "patch"}},
		{"budgets not visible", append(append([]rbacv1.PolicyRule{}, drainRules[:2]...), drainRules[3:]...), 0, nil},
		{"all that is needed", drainRules, 0, nil},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			needHaulout(t)
			w := smallWorld(t, Deployment("web", 2))
			access := serviceAccount(t, w, r.rules...)
			result := runAs(t, w, access, "drain", w.Node("old"), "--settle=0", "--timeout=30s")
			if result.Exit != r.exit {
				t.Errorf("exit %d, want %d\n%s%s", result.Exit, r.exit, result.Stdout, result.Stderr)
			}
			if r.exit == 0 {
				return
			}
			for _, word := range append(r.names, "apiGroups", "resources", "verbs") {
				if !strings.Contains(result.Stderr, word) {
					t.Errorf("the message names no %q:\n%s", word, result.Stderr)
				}
			}
			expectNode(t, w, false, false)
		})
	}
}

// Every failure of the connection or of the authentication is exit status 3. If the node does not exist, the exit status
// is 1.
func TestConnectionErrors(t *testing.T) {
	foreign, err := NewAuthority("foreign")
	must(t, err)
	expired, err := cluster.CA.ClientUntil(time.Now().Add(-time.Hour), "run-expired", "system:masters")
	must(t, err)
	unknown, err := foreign.Client("run-foreign", "system:masters")
	must(t, err)
	closed, err := freePorts(1)
	must(t, err)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { silent.Close() })

	for _, r := range []struct {
		name string
		bend func(*Access)
		args []string
		exit int
	}{
		{name: "nothing wrong", exit: 0},
		{name: "by name", bend: func(a *Access) { a.Server = strings.Replace(a.Server, "127.0.0.1", "localhost", 1) }},
		{name: "wrong CA", bend: func(a *Access) { a.CA = foreign.PEM }, exit: 3},
		{name: "name mismatch", bend: func(a *Access) { a.TLSServerName = "elsewhere.invalid" }, exit: 3},
		{name: "expired client certificate", bend: func(a *Access) { a.Identity = expired }, exit: 3},
		{name: "unknown client certificate", bend: func(a *Access) { a.Identity = unknown }, exit: 3},
		{name: "bad token", bend: func(a *Access) { a.Identity, a.Token = Identity{}, "no-token" }, exit: 3},
		{name: "connection refused", bend: func(a *Access) {
			a.Server = fmt.Sprintf("https://127.0.0.1:%d", closed[0])
		}, exit: 3},
		{name: "server says nothing", bend: func(a *Access) { a.Server = "https://" + silent.Addr().String() }, exit: 3},
		{name: "no such host", bend: func(a *Access) { a.Server = "https://no-such-host.invalid" }, exit: 3},
		{name: "plain HTTP", bend: func(a *Access) { a.Server = strings.Replace(a.Server, "https:", "http:", 1) }, exit: 3},
		{name: "unknown node", args: []string{"drain", "no-such-node"}, exit: 1},
		{name: "no node matches", args: []string{"drain", "-l", "no=such"}, exit: 1},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			needHaulout(t)
			w := newWorld(t)
			must(t, w.AddNode(t.Context(), "old", "old"))
			identity, err := w.CA.Client(w.User, "system:masters")
			must(t, err)
			access := w.Access(identity)
			if r.bend != nil {
				r.bend(&access)
			}
			args := r.args
			if args == nil {
				args = []string{"drain", w.Node("old"), "--settle=0"}
			}
			result := runAs(t, w, access, args...)
			if result.Exit != r.exit {
				t.Errorf("exit %d, want %d\n%s%s", result.Exit, r.exit, result.Stdout, result.Stderr)
			}
			if r.exit != 0 && result.Stderr == "" {
				t.Error("there is no message")
			}
			expectNode(t, w, r.exit == 0, r.exit == 0)
		})
	}
}
