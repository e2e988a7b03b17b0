package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
)

const (
	changeOver = "haulout-change-over" // the name under which Haulout holds kured's lock

	// kured looks at its lock 30 to 90 seconds after its start.
	kuredStarts = 150 * time.Second
)

// needKured skips a test without the program of kured, which is no part of this project.
func needKured(t *testing.T) string {
	t.Helper()
	needHaulout(t)
	program := FindKured()
	if program == "" {
		t.Skip("NOT RUN: HAULOUT_KURED_BIN names no program of kured, see README.md")
	}
	return program
}

// newKured returns a world with these nodes and kured's DaemonSet, whose pods are there. No kured runs yet.
func newKured(t *testing.T, nodes []string, args ...string) (*Kured, map[string]*KuredOnNode) {
	t.Helper()
	program := needKured(t)
	w := newWorld(t)
	for _, short := range nodes {
		must(t, w.AddNode(t.Context(), short, "worker"))
	}
	must(t, w.UntilOpen(t.Context(), nodes...))
	return installKured(t, w, program, nodes, args...)
}

func installKured(t *testing.T, w *World, program string, nodes []string, args ...string) (*Kured, map[string]*KuredOnNode) {
	t.Helper()
	k, err := w.InstallKured(t.Context(), program, args...)
	must(t, err)
	t.Cleanup(k.Close)
	on := map[string]*KuredOnNode{}
	for _, short := range nodes {
		one, err := k.OnNode(t.Context(), w.Node(short))
		must(t, err)
		on[short] = one
		t.Cleanup(func() {
			one.Kill()
			if t.Failed() {
				t.Log(one.Log())
			}
		})
	}
	return k, on
}

func (k *Kured) daemonSet(t *testing.T, name string) *appsv1.DaemonSet {
	t.Helper()
	set, err := k.Client.AppsV1().DaemonSets(k.Name).Get(t.Context(), name, getOptions)
	must(t, err)
	return set
}

func (k *Kured) holders(t *testing.T) []string {
	t.Helper()
	names, err := kuredHolders(k.daemonSet(t, kuredName))
	must(t, err)
	return names
}

func (k *Kured) expectHolders(t *testing.T, want ...string) {
	t.Helper()
	if names := k.holders(t); !slices.Equal(names, want) {
		t.Errorf("the lock is held by %v, want %v", names, want)
	}
}

func (k *Kured) untilHeldBy(t *testing.T, want ...string) {
	t.Helper()
	must(t, UntilWithin(t.Context(), kuredStarts, fmt.Sprintf("the lock is held by %v", want), func() (bool, error) {
		names := k.holders(t)
		return slices.Equal(names, want), fmt.Errorf("it is held by %v", names)
	}))
}

// lock runs the command with --hold-lock or --release-lock and returns what it says.
func (k *Kured) lock(t *testing.T, exit int, flags ...string) string {
	t.Helper()
	result := run(t, k.World, exit, haulout, append([]string{"migrate", "kured", "-n", k.Name}, flags...)...)
	return result.Stdout + result.Stderr
}

// untilRefused waits until kured has wanted its lock for this node and has not got it.
func (on *KuredOnNode) untilRefused(t *testing.T) {
	t.Helper()
	must(t, UntilWithin(t.Context(), kuredStarts, "kured waits for its lock", func() (bool, error) {
		node, err := on.of.Client.CoreV1().Nodes().Get(t.Context(), on.Node, getOptions)
		if err != nil {
			return false, err
		}
		return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == kuredTaint }), nil
	}))
	on.expectUntouched(t)
}

func (on *KuredOnNode) expectUntouched(t *testing.T) {
	t.Helper()
	node, err := on.of.Client.CoreV1().Nodes().Get(t.Context(), on.Node, getOptions)
	must(t, err)
	if node.Spec.Unschedulable || on.Reboots() != 0 {
		t.Errorf("%s is not left alone: unschedulable %v, %d reboots", on.Node, node.Spec.Unschedulable, on.Reboots())
	}
}

func (on *KuredOnNode) untilRebooted(t *testing.T) {
	t.Helper()
	must(t, UntilWithin(t.Context(), kuredStarts, "kured reboots "+on.Node, func() (bool, error) {
		return on.Reboots() == 1, fmt.Errorf("%d reboots", on.Reboots())
	}))
}

// untilSchedulable waits for a cordon (false) or an uncordon (true).
func (on *KuredOnNode) untilSchedulable(t *testing.T, schedulable bool) {
	t.Helper()
	must(t, UntilWithin(t.Context(), kuredStarts, fmt.Sprintf("%s is schedulable: %v", on.Node, schedulable),
		func() (bool, error) {
			node, err := on.of.Client.CoreV1().Nodes().Get(t.Context(), on.Node, getOptions)
			return err == nil && node.Spec.Unschedulable != schedulable, err
		}))
}

func expectSays(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("it does not say %q: %s", part, text)
		}
	}
}

// The program that these tests run as kured cannot reach the machine on which they run.
func TestRealKuredIsSealed(t *testing.T) {
	t.Parallel()
	_, on := newKured(t, []string{"a"})
	shell := func(commands string, change func([]string) []string) (string, error) {
		environment, err := on["a"].environment()
		must(t, err)
		command := exec.CommandContext(t.Context(), "unshare", on["a"].sealedCommand("sh", "-c", commands)...)
		command.Env = change(environment)
		output, err := command.CombinedOutput()
		return string(output), err
	}
	same := func(environment []string) []string { return environment }
	output, err := shell(`nsenter -m/proc/1/ns/mnt -- ls /run `, same)
	if err != nil || !strings.HasPrefix(output, "count-reboot\nsecrets\n") {
		t.Fatalf("%v: %s", err, output)
	}
	// If anything is not as it should be, nothing is run.
	inner, err := os.Readlink("/proc/self/ns/user")
	must(t, err)
	for name, value := range map[string]string{
		"KURED_REBOOT_COMMAND": "/bin/systemctl reboot", "KURED_REBOOT_METHOD": "signal", "OUTER_PID": "", "OUTER_MNT": "",
	} {
		wrong := func(environment []string) []string {
			return slices.DeleteFunc(environment, func(one string) bool { return strings.HasPrefix(one, name+"=") })
		}
		if value != "" {
			without := wrong
			wrong = func(environment []string) []string { return append(without(environment), name+"="+value) }
		}
		if output, err := shell("echo runs", wrong); err == nil || strings.Contains(output, "runs") {
			t.Errorf("it runs with %s=%s: %s", name, value, output)
		}
	}
	if output, err := shell("readlink /proc/self/ns/user", same); err != nil || strings.TrimSpace(output) == inner {
		t.Errorf("it has the users of this machine: %v: %s", err, output)
	}
}

// Haulout has the lock: kured waits. It gives the lock back: kured goes on. A node has it: it stays with that node, also
// after kured was killed, until kured has started again and gives it back.
func TestRealKuredTakesTurnsWithHaulout(t *testing.T) {
	t.Parallel()
	k, on := newKured(t, []string{"a"}, "--lock-release-delay=10s")
	a := on["a"]
	must(t, k.Apply(t.Context(), Deployment("web", 1)))
	must(t, k.Settle(t.Context(), 2))

	k.lock(t, 0, "--hold-lock")
	must(t, a.Need(true))
	must(t, a.Start())
	a.untilRefused(t)
	k.expectHolders(t, changeOver)

	k.lock(t, 0, "--release-lock") // the way back
	a.untilRebooted(t)
	expectSays(t, k.lock(t, 1, "--hold-lock"), "held by "+a.Node)
	expectSays(t, k.lock(t, 1, "--release-lock"), "held by "+a.Node)

	a.Kill()
	must(t, a.Need(false))
	expectSays(t, k.lock(t, 1, "--hold-lock"), "held by "+a.Node)
	k.expectHolders(t, a.Node)
	a.untilSchedulable(t, false)

	must(t, a.Start())
	a.untilSchedulable(t, true)
	expectSays(t, k.lock(t, 1, "--hold-lock"), "held by "+a.Node, "--lock-release-delay")
	k.untilHeldBy(t)
	k.lock(t, 0, "--hold-lock")
	k.expectHolders(t, changeOver)
}

// lockWatch records who has held the lock, in order.
type lockWatch struct {
	mu      sync.Mutex
	holders []string
	problem error
}

func (k *Kured) watchLock(t *testing.T) *lockWatch {
	t.Helper()
	seen := &lockWatch{}
	source := cache.NewListWatchFromClient(k.Client.AppsV1().RESTClient(), "daemonsets", k.Name,
		fields.OneTermEqualSelector("metadata.name", kuredName))
	informer := cache.NewSharedInformer(source, &appsv1.DaemonSet{}, 0)
	_, err := informer.AddEventHandler(handlers(func(set *appsv1.DaemonSet, _ bool) {
		names, err := kuredHolders(set)
		seen.mu.Lock()
		defer seen.mu.Unlock()
		text := strings.Join(names, "+")
		if err != nil {
			seen.problem = err
		} else if len(seen.holders) == 0 || seen.holders[len(seen.holders)-1] != text {
			seen.holders = append(seen.holders, text)
		}
	}))
	must(t, err)
	go informer.RunWithContext(t.Context())
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("the DaemonSet cannot be watched")
	}
	return seen
}

// ofKured returns kured's requests so far that are about its DaemonSet.
func (k *Kured) ofKured(t *testing.T, verb string) []AuditEvent {
	t.Helper()
	all, err := k.Audit.Of("system:serviceaccount:" + k.Name + ":" + kuredName)
	must(t, err)
	return slices.DeleteFunc(all, func(e AuditEvent) bool { return e.Verb != verb || !e.Is("daemonsets") })
}

// untilAskedAgain waits until kured has tried twice more to get its lock: each time it reads its DaemonSet twice.
func (k *Kured) untilAskedAgain(t *testing.T) {
	t.Helper()
	before := len(k.ofKured(t, "get"))
	must(t, Until(t.Context(), "kured asks again", func() (bool, error) {
		now := len(k.ofKured(t, "get"))
		return now >= before+4, fmt.Errorf("it has asked %d times", now-before)
	}))
}

// conflicts returns how many of these requests the server refused because the DaemonSet had changed meanwhile.
func conflicts(requests []AuditEvent) int {
	count := 0
	for _, request := range requests {
		if request.Is("daemonsets") && request.ResponseStatus.Code == http.StatusConflict {
			count++
		}
	}
	return count
}

// kured and Haulout want the lock at the same moment, 50 times: one of them gets it. kured cannot drain its node because
// of a budget, so it gives the lock back after a second and wants it again a second later. Both reach the API server
// through slow connections. So each often reads that the lock is free, and writes after the other one has.
func TestRealKuredRacesForTheLock(t *testing.T) {
	t.Parallel()
	k, on := newKured(t, []string{"a"}, "--drain-timeout=1s")
	a := on["a"]
	must(t, k.Apply(t.Context(), Deployment("web", 1), Budget("web", "0")))
	must(t, k.Settle(t.Context(), 2))
	slow, err := StartProxy(k.URL)
	must(t, err)
	defer slow.Stop()
	slow.Slow(30 * time.Millisecond)
	k.Server = slow.URL
	identity, err := k.CA.Client(k.User, "system:masters", RunGroup)
	must(t, err)
	access := k.Access(identity)
	access.Server = slow.URL
	slowly, err := access.Write(k.Home)
	must(t, err)

	seen := k.watchLock(t)
	must(t, a.Need(true))
	must(t, a.Start())
	k.untilHeldBy(t, a.Node)
	won := map[string]int{}
	for round := range 50 {
		k.untilHeldBy(t)
		// kured reads its lock twice before it takes it.
		begun := len(k.ofKured(t, "get"))
		must(t, Until(t.Context(), "kured looks at its lock", func() (bool, error) {
			return len(k.ofKured(t, "get")) > begun+round%2, nil
		}))
		kubeconfig := k.Kubeconfig
		if round%4 > 1 {
			kubeconfig = slowly
		}
		ours, err := k.StartWith(t.Context(), kubeconfig, haulout, "migrate", "kured", "-n", k.Name, "--hold-lock")
		must(t, err)
		result, err := ours.Wait()
		must(t, err)
		switch result.Exit {
		case 0:
			won[changeOver]++
			k.expectHolders(t, changeOver)
			if won[changeOver]%5 == 0 {
				k.untilAskedAgain(t)
				k.expectHolders(t, changeOver)
			}
			k.lock(t, 0, "--release-lock")
		case 1:
			won[a.Node]++
			expectSays(t, result.Stderr, "held by "+a.Node)
		default:
			t.Fatalf("exit %d: %s", result.Exit, result.Stderr)
		}
	}
	k.untilHeldBy(t)
	seen.mu.Lock()
	defer seen.mu.Unlock()
	must(t, seen.problem)
	turns := map[string]int{}
	for i, holder := range seen.holders {
		turns[holder]++
		if i > 0 && holder != "" && seen.holders[i-1] != "" {
			t.Errorf("the lock went from %s to %s without being free", seen.holders[i-1], holder)
		}
	}
	if turns[changeOver] != won[changeOver] || turns[a.Node] < won[a.Node] || a.Reboots() != 0 {
		t.Errorf("the turns are %v, with %d reboots", turns, a.Reboots())
	}
	requests, err := k.Requests()
	must(t, err)
	late := map[string]int{a.Node: conflicts(k.ofKured(t, "update")), changeOver: conflicts(requests)}
	t.Logf("won %v, were too late with their write %v", won, late)
	for _, who := range []string{a.Node, changeOver} {
		if won[who] == 0 || late[who] == 0 {
			t.Errorf("%s won %d times and was too late %d times, so there was no race", who, won[who], late[who])
		}
	}
}

// With --concurrency 2, a node that has one of the two places keeps it, and no other node gets the second one.
func TestRealKuredWithTwoPlaces(t *testing.T) {
	t.Parallel()
	k, on := newKured(t, []string{"a", "b", "c"}, "--concurrency=2")
	a, b, c := on["a"], on["b"], on["c"]
	must(t, a.Need(true))
	must(t, a.Start())
	a.untilRebooted(t)

	expectSays(t, k.lock(t, 1, "--hold-lock"), a.Node)
	k.expectHolders(t, changeOver, a.Node)
	for _, one := range []*KuredOnNode{b, c} {
		must(t, one.Need(true))
		must(t, one.Start())
	}
	b.untilRefused(t)
	c.untilRefused(t)

	a.Kill()
	must(t, a.Need(false))
	must(t, a.Start())
	k.untilHeldBy(t, changeOver)
	a.untilSchedulable(t, true)
	k.lock(t, 0, "--hold-lock")
	k.expectHolders(t, changeOver)
	b.expectUntouched(t)
	c.expectUntouched(t)

	k.lock(t, 0, "--release-lock")
	b.untilRebooted(t)
	c.untilRebooted(t)
	k.expectHolders(t, b.Node, c.Node)
}

// With --lock-ttl, kured itself takes the lock of a node when its time is over. Until then the node has it.
func TestRealKuredWithATimeLimit(t *testing.T) {
	t.Parallel()
	for name, concurrency := range map[string]string{"one": "1", "two": "2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, on := newKured(t, []string{"a", "b"}, "--concurrency="+concurrency, "--lock-ttl=30s")
			a, b := on["a"], on["b"]
			must(t, a.Need(true))
			must(t, a.Start())
			a.untilRebooted(t)
			a.Kill()
			expectSays(t, k.lock(t, 1, "--hold-lock"), a.Node)
			must(t, UntilWithin(t.Context(), time.Minute, "the time is over", func() (bool, error) {
				result, err := k.Run(t.Context(), haulout, "migrate", "kured", "-n", k.Name, "--hold-lock")
				if err == nil && result.Exit == 0 {
					expectSays(t, result.Stdout, a.Node, "--lock-ttl")
				}
				return err == nil && result.Exit == 0, fmt.Errorf("%w, exit %d: %s", err, result.Exit, result.Stderr)
			}))
			k.expectHolders(t, changeOver)
			must(t, b.Need(true))
			must(t, b.Start())
			b.untilRefused(t)
		})
	}
}

// kured itself gives the lock to the next node when the time of a node is over. Haulout goes by the same rule.
func TestRealKuredGivesAnExpiredLockToTheNextNode(t *testing.T) {
	t.Parallel()
	k, on := newKured(t, []string{"a", "b"}, "--lock-ttl=5s")
	a, b := on["a"], on["b"]
	must(t, a.Need(true))
	must(t, a.Start())
	a.untilRebooted(t)
	a.Kill()
	must(t, b.Need(true))
	must(t, b.Start())
	b.untilRebooted(t)
	k.expectHolders(t, b.Node)
}

// kured has its lock on another DaemonSet than its own. Haulout takes the lock there.
func TestRealKuredWithItsLockElsewhere(t *testing.T) {
	t.Parallel()
	k, on := newKured(t, []string{"a"}, "--ds-name=locks")
	a := on["a"]
	must(t, k.Apply(t.Context(), DaemonSet("locks")))
	role, err := k.Client.RbacV1().Roles(k.Name).Get(t.Context(), kuredName, getOptions)
	must(t, err)
	role.Rules = append(role.Rules, rbacv1.PolicyRule{
		APIGroups: []string{"apps"}, Resources: []string{"daemonsets"}, ResourceNames: []string{"locks"}, Verbs: []string{"update"}})
	_, err = k.Client.RbacV1().Roles(k.Name).Update(t.Context(), role, metav1.UpdateOptions{})
	must(t, err)

	k.lock(t, 0, "--hold-lock")
	if names, err := kuredHolders(k.daemonSet(t, "locks")); err != nil || !slices.Equal(names, []string{changeOver}) {
		t.Errorf("the lock is held by %v (%v)", names, err)
	}
	must(t, a.Need(true))
	must(t, a.Start())
	a.untilRefused(t)
	k.lock(t, 0, "--release-lock")
	a.untilRebooted(t)
}

// `haulout migrate kured` knows each option of this kured: those of its help, and those that its manifest names as
// comments. The values are their defaults and examples there.
func TestRealKuredOptions(t *testing.T) {
	t.Parallel()
	k, _ := newKured(t, []string{"a"})
	help, _ := exec.CommandContext(t.Context(), k.program, "--help").CombinedOutput() // older ones end with 2
	set := k.daemonSet(t, kuredName)
	container := &set.Spec.Template.Spec.Containers[0]
	flags := regexp.MustCompile(`(?m)^ +--([a-z-]+)`).FindAllStringSubmatch(string(help), -1)
	if len(flags) < 40 {
		t.Fatalf("kured has only these flags: %v", flags)
	}
	for _, flag := range flags {
		container.Args = append(container.Args, "--"+flag[1]+"=1")
	}
	expectKnown(t, k, set, len(flags))

	manifest, err := os.ReadFile(filepath.Join(filepath.Dir(k.program), "kured-ds.yaml"))
	must(t, err)
	comments := regexp.MustCompile(`(?m)^# +- (--.*?)( +#.*)?$`).FindAllStringSubmatch(string(manifest), -1)
	if len(comments) < 30 {
		t.Fatalf("kured's manifest has only these comments: %v", comments)
	}
	container.Args = nil
	for _, comment := range comments {
		container.Args = append(container.Args, comment[1])
	}
	expectKnown(t, k, set, 30)
}

func expectKnown(t *testing.T, k *Kured, set *appsv1.DaemonSet, least int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kured.json")
	set.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"}
	manifest, err := json.Marshal(set)
	must(t, err)
	must(t, os.WriteFile(file, manifest, 0o600))
	var migration struct {
		Options []struct {
			Option, Result, Message string
			Given                   []string
		}
	}
	result := run(t, k.World, 1, haulout, "migrate", "kured", "-f", file, "-o", "json")
	must(t, json.Unmarshal([]byte(result.Stdout), &migration))
	if len(migration.Options) < least {
		t.Errorf("only %d options are named, want %d", len(migration.Options), least)
	}
	for _, option := range migration.Options {
		if option.Result == "unknown" || option.Option == "" {
			t.Errorf("%v: %s", option.Given, option.Message)
		}
	}
}

// kured is killed while its node is cordoned. The agents of Haulout, which run now, leave this node alone as one that a
// person has cordoned, and update no other one beside it. When it is uncordoned, all are updated.
func TestRealKuredLeavesACordon(t *testing.T) {
	t.Parallel()
	program := needKured(t)
	f := newFleet(t, cluster)
	k, on := installKured(t, f.World, program, []string{"a"})
	a := on["a"]
	must(t, a.Need(true))
	must(t, a.Start())
	a.untilRebooted(t)
	a.Kill()
	must(t, k.Client.AppsV1().DaemonSets(k.Name).Delete(t.Context(), kuredName, metav1.DeleteOptions{}))

	f.startAgents(t)
	f.offerAll(t, "1.1")
	reason := func(machine *Machine, want string) {
		must(t, UntilWithin(t.Context(), time.Minute, machine.Node+" says "+want, func() (bool, error) {
			node, err := f.Client.CoreV1().Nodes().Get(t.Context(), machine.Node, getOptions)
			if err != nil {
				return false, err
			}
			return node.Labels["haulout.dev/reason"] == want, fmt.Errorf("state %s, reason %s: %s",
				node.Labels["haulout.dev/state"], node.Labels["haulout.dev/reason"], node.Annotations["haulout.dev/message"])
		}))
	}
	reason(f.Machines[0], "CordonedByPerson")
	reason(f.Machines[1], "WaitingForSlot")
	reason(f.Machines[2], "WaitingForSlot")
	for _, machine := range f.Machines {
		if machine.Boots() != 0 {
			t.Errorf("%s was rebooted", machine.Node)
		}
	}
	run(t, f.World, 0, f.Kubectl(), "uncordon", a.Node)
	f.expectUpdated(t, "1.1", 1, f.Name)
}
