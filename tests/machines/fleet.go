package machines

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"haulout.dev/haulout/tests/e2e"
)

// Fleet is a control plane with real machines as its nodes, and a Witness that checks the promises.
type Fleet struct {
	*e2e.ControlPlane
	Client   *kubernetes.Clientset
	Machines []*Machine
	Line     *Timeline
	Witness  *Witness
	Package  string // path of the package that Install installs

	needs    *Needs
	watching context.Context

	mu       sync.Mutex
	reboots  map[string]int
	left     map[string]int
	byPerson bool
}

// bootLimit is how long machines may take to boot and become Ready, on a host that does other work.
const bootLimit = 5 * time.Minute

// nodeGrace is Kubernetes' default time after which a node without heartbeats is not Ready. It is longer than the
// outage of the API server in a test. Otherwise the nodes, which cannot send heartbeats during the outage, would be not
// Ready after it, and so would their pods.
const nodeGrace = 50 * time.Second

// NewFleet returns when all machines are Ready nodes. Their names are m1, m2, … Everything ends with the test.
// `prepare` is called for each machine before its first boot.
func NewFleet(t *testing.T, needs *Needs, size int, prepare ...func(*Machine) error) *Fleet {
	t.Helper()
	f, err := newFleet(t, needs, size, prepare)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func newFleet(t *testing.T, needs *Needs, size int, prepare []func(*Machine) error) (*Fleet, error) {
	ctx := t.Context()
	f := &Fleet{Package: needs.Package, needs: needs, reboots: map[string]int{}, left: map[string]int{}}
	var err error
	if f.Line, err = NewTimeline(t, needs); err != nil {
		return f, err
	}
	reach := e2e.Reach{Addresses: []net.IP{controlPlaneAddress, serviceAddress}, NodeGrace: nodeGrace}
	if f.ControlPlane, err = e2e.StartReachableControlPlane(ctx, needs.Programs, reach); err != nil {
		return f, err
	}
	t.Cleanup(f.Stop)
	watching, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	go f.Supervise(watching)
	config, err := f.AdminConfig()
	if err != nil {
		return f, err
	}
	if f.Client, err = kubernetes.NewForConfig(config); err != nil {
		return f, err
	}
	f.watching = watching
	if f.Witness, err = Watch(watching, f.Client, f.Line); err != nil {
		return f, err
	}
	f.Line.Note("control", "the control plane runs")
	for number := range size {
		if err := f.addMachine(t, number+1, prepare); err != nil {
			return f, err
		}
	}
	return f, f.UntilReady(ctx)
}

func (f *Fleet) addMachine(t *testing.T, number int, prepare []func(*Machine) error) error {
	name := fmt.Sprintf("m%d", number)
	console := storyFile(t, f.needs, name+".console")
	_ = os.Remove(console)
	machine, err := NewMachine(f.needs, name, number, console)
	if err != nil {
		return err
	}
	f.Machines = append(f.Machines, machine)
	t.Cleanup(func() {
		f.keepJournal(t, machine)
		if err := machine.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	})
	machine.Ended = func(reboot bool) {
		f.Line.Note(name, "%s", map[bool]string{true: "REBOOTS", false: "POWER OFF"}[reboot])
		if reboot {
			f.judgeReboot(name)
		}
	}
	if err := MakeNode(machine, f.ControlPlane); err != nil {
		return err
	}
	for _, prepared := range prepare {
		if err := prepared(machine); err != nil {
			return err
		}
	}
	f.Line.Note(name, "power on")
	return machine.PowerOn()
}

// judgeReboot checks, when a machine has gone down for a reboot, that no pods but those of DaemonSets were on it, and
// that its node was `rebooting` and cordoned.
func (f *Fleet) judgeReboot(name string) {
	left := len(f.Witness.PodsOn(name))
	f.mu.Lock()
	f.reboots[name]++
	f.left[name] = left
	byPerson := f.byPerson
	f.mu.Unlock()
	if byPerson {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	pods, err := f.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
	if err != nil {
		f.Witness.Violate("%s reboots, and its pods are not known: %v", name, err)
		return
	}
	for _, pod := range pods.Items {
		// Pods of DaemonSets stay on the node and end with the machine.
		if owner := metav1.GetControllerOf(&pod); owner == nil || owner.Kind != "DaemonSet" {
			f.Witness.Violate("%s reboots under pod %s", name, pod.Name)
		}
	}
	node, err := f.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil || node.Labels[stateLabel] != "rebooting" || !node.Spec.Unschedulable {
		f.Witness.Violate("%s reboots in state %q, unschedulable %v (%v)", name, node.Labels[stateLabel],
			node.Spec.Unschedulable, err)
	}
}

// PersonReboots announces that a person causes all further reboots. They may happen while pods run.
func (f *Fleet) PersonReboots() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.byPerson = true
}

// LeftAtReboot returns how many pods were on a machine when it last went down for a reboot.
func (f *Fleet) LeftAtReboot(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.left[name]
}

// Reboots returns how often a machine has rebooted, not counting power cuts.
func (f *Fleet) Reboots(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reboots[name]
}

// keepJournal writes the journal of a machine to a file beside the time line. If the test failed, it prints the end of
// the agent's log.
func (f *Fleet) keepJournal(t *testing.T, m *Machine) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	text, err := m.Run(ctx, "journalctl", "--no-pager", "-o", "short-precise")
	if err != nil {
		text = err.Error()
	}
	path := storyFile(t, f.needs, m.Name+".journal")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Log(err)
	}
	if t.Failed() {
		t.Logf("%s: the journal is in %s; the agent's end of it:\n%s", m.Name, path, m.Journal(ctx, "haulout"))
	}
}

// UntilReady waits until every machine is a Ready node to which pods may go.
func (f *Fleet) UntilReady(ctx context.Context) error {
	for _, machine := range f.Machines {
		err := f.Until(ctx, bootLimit, machine.Name+" is Ready", func() (bool, error) {
			node := f.Witness.Node(machine.Name)
			if node == nil {
				return false, fmt.Errorf("there is no Node")
			}
			return nodeReady(node) && len(node.Spec.Taints) == 0, fmt.Errorf("taints %v", node.Spec.Taints)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Until calls `ask` until it returns true. It fails at once when the witness has recorded a violation of a promise.
func (f *Fleet) Until(ctx context.Context, limit time.Duration, what string, ask func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		done, err := ask()
		if done {
			return nil
		}
		if violations := f.Witness.Violations(); len(violations) > 0 {
			return fmt.Errorf("before %s: %s", what, strings.Join(violations, "; "))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain until %s (%w); last: %v", what, ctx.Err(), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// UntilState waits until a node has this state.
func (f *Fleet) UntilState(ctx context.Context, limit time.Duration, name, state string) error {
	return f.Until(ctx, limit, name+" is "+state, func() (bool, error) {
		node := f.Witness.Node(name)
		if node == nil {
			return false, fmt.Errorf("there is no Node")
		}
		return node.Labels[stateLabel] == state,
			fmt.Errorf("state %s, reason %s", node.Labels[stateLabel], node.Labels[reasonLabel])
	})
}

// UntilBackInService waits until the kubelet of a machine reports another boot than `boot`, and its node is idle, Ready
// and schedulable. It returns the new boot's id.
func (f *Fleet) UntilBackInService(ctx context.Context, limit time.Duration, m *Machine, boot string) (string, error) {
	return f.untilBackInService(ctx, limit, m.Name, boot, m.BootID)
}

func (f *Fleet) untilBackInService(ctx context.Context, limit time.Duration, name, boot string,
	bootID func(context.Context) (string, error)) (string, error) {
	now := ""
	err := f.Until(ctx, limit, name+" has rebooted and is back in service", func() (bool, error) {
		node := f.Witness.Node(name)
		now = node.Status.NodeInfo.BootID
		return now != boot && nodeReady(node) && !node.Spec.Unschedulable && node.Labels[stateLabel] == "idle",
			fmt.Errorf("boot %s, Ready %v, unschedulable %v, state %s %s", now, nodeReady(node), node.Spec.Unschedulable,
				node.Labels[stateLabel], node.Labels[reasonLabel])
	})
	if err != nil {
		return "", err
	}
	own, err := bootID(ctx)
	if err == nil && own != now {
		err = fmt.Errorf("%s runs boot %s, its kubelet reports %s", name, own, now)
	}
	return now, err
}

// Kubectl runs kubectl as the cluster's administrator.
func (f *Fleet) Kubectl(ctx context.Context, input string, args ...string) (string, error) {
	identity, err := f.CA.Client("machines-admin", "system:masters")
	if err != nil {
		return "", err
	}
	kubeconfig, err := f.Access(identity).Write(f.Dir)
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, f.Programs.Kubectl, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+f.Dir)
	command.Stdin = strings.NewReader(input)
	output, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("kubectl %v: %w\n%s", args, err, output)
	}
	return string(output), err
}

// agents is the group of the users as which the agents connect.
const agents = "haulout:machines"

// AllowAgents gives the rights of the shipped manifests to the group of the agents.
func (f *Fleet) AllowAgents(ctx context.Context) error {
	const account = "  - kind: ServiceAccount\n    name: haulout\n    namespace: haulout\n"
	const group = "  - kind: Group\n    name: " + agents + "\n    apiGroup: rbac.authorization.k8s.io\n"
	shipped := filepath.Join(f.needs.Root, "packaging", "kustomize")
	for _, name := range []string{"base/namespace.yaml", "base/rbac-fleet.yaml", "components/policies-only/rbac-policies.yaml"} {
		text, err := os.ReadFile(filepath.Join(shipped, name))
		if err != nil {
			return err
		}
		if strings.Contains(name, "rbac") && !strings.Contains(string(text), account) {
			return fmt.Errorf("%s binds its roles to other subjects than this expects", name)
		}
		if _, err := f.Kubectl(ctx, strings.ReplaceAll(string(text), account, group), "apply", "-f", "-"); err != nil {
			return err
		}
	}
	return nil
}

// Install installs Haulout's package on a machine as packaging/README.md says, with Leases as slots, and returns when
// the agent is idle.
func (f *Fleet) Install(ctx context.Context, m *Machine, more string) error {
	kubeconfig, err := f.agentAccess(m.Name)
	if err != nil {
		return err
	}
	if err := m.WriteSecret(agentKubeconfig, kubeconfig); err != nil {
		return err
	}
	if err := m.Write(agentConfigFile, agentConfig(m.Name)+more); err != nil {
		return err
	}
	return f.installPackage(ctx, m)
}

// installPackage installs Haulout's package on a machine that has its configuration, and returns when the agent is idle.
func (f *Fleet) installPackage(ctx context.Context, m *Machine) error {
	if err := f.CopyPackage(m); err != nil {
		return err
	}
	if _, err := m.Run(ctx, "apt-get", "install", "-q", "-y", "-o", "Dpkg::Options::=--force-confold", packagePath); err != nil {
		return err
	}
	f.Line.Note(m.Name, "package installed")
	return f.UntilState(ctx, 2*time.Minute, m.Name, "idle")
}

const (
	packagePath     = "/opt/haulout.deb"
	agentKubeconfig = "/etc/haulout/kubeconfig"
	agentConfigFile = "/etc/haulout/config.yaml"
)

// agentAccess returns the kubeconfig for the agent on a machine.
func (f *Fleet) agentAccess(name string) ([]byte, error) {
	identity, err := f.CA.Client("agent-"+name, agents)
	if err != nil {
		return nil, err
	}
	return writeAccess(f.AccessFrom(controlPlaneAddress, identity))
}

func agentConfig(node string) string {
	return "kubeconfig: " + agentKubeconfig + "\nauthority: serviceaccount\nnode-name: " + node + "\n"
}

// CopyPackage writes the package under test to the disk of a machine.
func (f *Fleet) CopyPackage(m *Machine) error {
	content, err := os.ReadFile(f.Package)
	if err != nil {
		return err
	}
	return m.writeAs(packagePath, content, 0o644)
}

// InstallAll installs the package on all machines, with the same further lines of configuration.
func (f *Fleet) InstallAll(ctx context.Context, more string) error {
	if err := f.AllowAgents(ctx); err != nil {
		return err
	}
	problems := make(chan error, len(f.Machines))
	for _, machine := range f.Machines {
		go func() { problems <- f.Install(ctx, machine, more) }()
	}
	var all error
	for range f.Machines {
		all = errors.Join(all, <-problems)
	}
	return all
}

// Work is a Deployment with a budget.
type Work struct {
	App      string
	Replicas int
	Promised int           // minAvailable of the budget
	Lingers  time.Duration // how long its pods run after SIGTERM
	Grace    int64         // terminationGracePeriodSeconds
}

// Deploy creates the workload and returns when all its pods are Ready. From then on, the witness checks its budget.
func (f *Fleet) Deploy(ctx context.Context, work Work) error {
	labels := map[string]string{appLabel: work.App}
	replicas := int32(work.Replicas)
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: work.App},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: &work.Grace,
					TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
						MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
						LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
					}},
					Containers: []corev1.Container{{
						Name: "main", Image: workloadImage, ImagePullPolicy: corev1.PullNever,
						Args: []string{"-lingers", work.Lingers.String()},
					}},
				},
			},
		},
	}
	least := intstr.FromInt(work.Promised)
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: work.App},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: labels},
		},
	}
	if _, err := f.Client.PolicyV1().PodDisruptionBudgets("default").Create(ctx, budget, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := f.Client.AppsV1().Deployments("default").Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := f.UntilWhole(ctx, work); err != nil {
		return err
	}
	f.Witness.Promise(work.App, work.Promised)
	f.Line.Note("workload", "%s: %d pods are Ready, the budget promises %d", work.App, work.Replicas, work.Promised)
	return nil
}

// Relax makes the budget of a workload allow one disruption at a time, and returns when the budget is in force.
func (f *Fleet) Relax(ctx context.Context, work Work) error {
	return f.promise(ctx, work, work.Replicas-1)
}

// promise changes the budget of a workload. The witness demands so many Ready pods only when the controller has
// accepted the budget.
func (f *Fleet) promise(ctx context.Context, work Work, ready int) error {
	f.Witness.Release(work.App)
	patch := fmt.Sprintf(`{"spec":{"minAvailable":%d}}`, ready)
	budgets := f.Client.PolicyV1().PodDisruptionBudgets("default")
	budget, err := budgets.Patch(ctx, work.App, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		return err
	}
	// Until the disruption controller has seen the change, evictions are checked against the old number.
	err = f.Until(ctx, time.Minute, "the budget of "+work.App+" is in force", func() (bool, error) {
		now, err := budgets.Get(ctx, work.App, metav1.GetOptions{})
		return err == nil && now.Status.ObservedGeneration >= budget.Generation, err
	})
	if err != nil {
		return err
	}
	f.Witness.Promise(work.App, ready)
	f.Line.Note("workload", "%s: the budget promises %d", work.App, ready)
	return nil
}

// UntilWhole waits until all pods of a workload are Ready.
func (f *Fleet) UntilWhole(ctx context.Context, work Work) error {
	return f.Until(ctx, 3*time.Minute, "all pods of "+work.App+" are Ready", func() (bool, error) {
		f.Witness.mu.Lock()
		defer f.Witness.mu.Unlock()
		ready := f.Witness.ready(work.App)
		return ready == work.Replicas, fmt.Errorf("%d of %d", ready, work.Replicas)
	})
}

// NeedsReboot writes the files by which Debian's packages show that the machine must be rebooted.
func (m *Machine) NeedsReboot(ctx context.Context) error {
	_, err := m.Shell(ctx, "touch /run/reboot-required && echo linux-image-amd64 >/run/reboot-required.pkgs")
	return err
}
