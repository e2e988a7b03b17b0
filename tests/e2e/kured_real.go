package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	kuredName = "kured" // of the DaemonSet, the ServiceAccount and the Role in kured's manifests
	kuredLock = "weave.works/kured-node-lock"
	// kured sets it on a node that needs a reboot when another node has the lock. So it shows that kured was refused.
	kuredTaint = "weave.works/kured-node-reboot"
)

// Kured is the program kured itself, installed in a world by its own manifests and with its own rights. The simulated
// kubelets do not run containers, so StartOn runs the program for the pod of a node.
//
// kured runs its commands in the mount namespace of process 1, with all rights. Here that is a namespace of its own: the
// program is process 1 in new namespaces of users, processes and mounts, its /run is a directory of the test, and it
// cannot get the capability to reboot. The command that it runs for a reboot only counts.
type Kured struct {
	*World
	Server string // where kured reaches the API server

	program string
	args    []string // of the container
}

// FindKured returns $HAULOUT_KURED_BIN, beside which kured's manifests must be. It is empty if there is none.
func FindKured() string { return os.Getenv("HAULOUT_KURED_BIN") }

// InstallKured applies kured-rbac.yaml and kured-ds.yaml, in the namespace of the world, and with more arguments. Its
// DaemonSet has its lock on itself, unless an argument says otherwise.
func (w *World) InstallKured(ctx context.Context, program string, more ...string) (*Kured, error) {
	k := &Kured{World: w, Server: w.URL, program: program}
	for _, file := range []string{"kured-rbac.yaml", "kured-ds.yaml"} {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(program), file))
		if err != nil {
			return nil, err
		}
		for _, document := range bytes.Split(text, []byte("\n---\n")) {
			if err := k.create(ctx, document, more); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	if len(k.args) == 0 {
		return nil, fmt.Errorf("the manifests of kured have no DaemonSet")
	}
	return k, nil
}

func (k *Kured) create(ctx context.Context, document []byte, more []string) error {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(document, &kind); err != nil {
		return err
	}
	options := metav1.CreateOptions{}
	rbac := k.Client.RbacV1()
	switch kind.Kind {
	case "ServiceAccount":
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: kuredName}}
		_, err := k.Client.CoreV1().ServiceAccounts(k.Name).Create(ctx, account, options)
		return err
	case "DaemonSet":
		set := &appsv1.DaemonSet{}
		if err := yaml.UnmarshalStrict(document, set); err != nil {
			return err
		}
		set.Namespace = k.Name
		container := &set.Spec.Template.Spec.Containers[0]
		container.SecurityContext = nil // this control plane refuses privileged pods, as it shows that Haulout needs none
		container.Command = append(container.Command, "--ds-namespace="+k.Name, "--period=1s", "--prefer-no-schedule-taint="+kuredTaint)
		container.Command = append(container.Command, more...)
		k.args = container.Command[1:]
		return k.Apply(ctx, set)
	case "Role":
		role := &rbacv1.Role{}
		if err := yaml.UnmarshalStrict(document, role); err != nil {
			return err
		}
		role.Namespace = k.Name
		_, err := rbac.Roles(k.Name).Create(ctx, role, options)
		return err
	case "RoleBinding":
		binding := &rbacv1.RoleBinding{}
		if err := yaml.UnmarshalStrict(document, binding); err != nil {
			return err
		}
		binding.Namespace, binding.Subjects[0].Namespace = k.Name, k.Name
		_, err := rbac.RoleBindings(k.Name).Create(ctx, binding, options)
		return err
	case "ClusterRole": // one for each world, because worlds do not wait for each other
		role := &rbacv1.ClusterRole{}
		if err := yaml.UnmarshalStrict(document, role); err != nil {
			return err
		}
		role.Name += "-" + k.Name
		_, err := rbac.ClusterRoles().Create(ctx, role, options)
		return err
	case "ClusterRoleBinding":
		binding := &rbacv1.ClusterRoleBinding{}
		if err := yaml.UnmarshalStrict(document, binding); err != nil {
			return err
		}
		binding.Name, binding.RoleRef.Name = binding.Name+"-"+k.Name, binding.RoleRef.Name+"-"+k.Name
		binding.Subjects[0].Namespace = k.Name
		_, err := rbac.ClusterRoleBindings().Create(ctx, binding, options)
		return err
	case "": // comments before the first document
		return nil
	}
	return fmt.Errorf("kured has an object of the kind %q, which this test does not know", kind.Kind)
}

// Close deletes what is not in the namespace of the world.
func (k *Kured) Close() {
	ctx := context.Background()
	name := kuredName + "-" + k.Name
	_ = k.Client.RbacV1().ClusterRoles().Delete(ctx, name, metav1.DeleteOptions{})
	_ = k.Client.RbacV1().ClusterRoleBindings().Delete(ctx, name, metav1.DeleteOptions{})
}

// KuredOnNode is kured on one node, with the /run of that machine.
type KuredOnNode struct {
	Node string

	of      *Kured
	run     string
	process *process
	lives   int
}

// OnNode prepares a machine on which kured does not run yet.
func (k *Kured) OnNode(ctx context.Context, node string) (*KuredOnNode, error) {
	run, err := os.MkdirTemp(k.Dir, "kured-")
	if err != nil {
		return nil, err
	}
	on := &KuredOnNode{Node: node, of: k, run: run}
	token, err := k.Client.CoreV1().ServiceAccounts(k.Name).CreateToken(
		ctx, kuredName, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	secrets := filepath.Join(run, "secrets/kubernetes.io/serviceaccount")
	if err := os.MkdirAll(secrets, 0o755); err != nil {
		return nil, err
	}
	for path, text := range map[string]string{
		filepath.Join(secrets, "token"):  token.Status.Token,
		filepath.Join(secrets, "ca.crt"): string(k.CA.PEM),
		on.file("count-reboot"):          "echo rebooted >>/run/reboots\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	return on, nil
}

func (on *KuredOnNode) file(name string) string { return filepath.Join(on.run, name) }

// sealed runs the program in its namespaces. It does not run it if anything is not as the comment of Kured says. Each
// condition is a command of its own, because sh -e ignores a failure before &&.
const sealed = `
[ "$$" = 1 ]
[ "$(readlink /proc/self/ns/pid)" != "$OUTER_PID" ]
[ "$(readlink /proc/self/ns/mnt)" != "$OUTER_MNT" ]
[ "$(readlink /proc/1/ns/mnt)" = "$(readlink /proc/self/ns/mnt)" ]
bounds=$(sed -n 's/^CapBnd:[[:space:]]*//p' /proc/self/status)
[ $((0x$bounds >> 22 & 1)) = 0 ]
[ "$KURED_REBOOT_METHOD" = command ]
[ "$KURED_REBOOT_COMMAND" = "/bin/sh /run/count-reboot" ]
mount --bind "$1" /run
[ -f /run/count-reboot ]
[ ! -e /run/systemd ]
shift
exec "$@"
`

// sealedCommand returns the arguments that run the program in namespaces of its own, from unshare on.
func (on *KuredOnNode) sealedCommand(args ...string) []string {
	command := []string{"--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc",
		"setpriv", "--bounding-set=-sys_boot", "sh", "-eu", "-c", sealed, "sh", on.run}
	return append(command, args...)
}

func (on *KuredOnNode) environment() ([]string, error) {
	server, err := url.Parse(on.of.Server)
	if err != nil {
		return nil, err
	}
	outer := map[string]string{}
	for name, path := range map[string]string{"OUTER_PID": "/proc/self/ns/pid", "OUTER_MNT": "/proc/self/ns/mnt"} {
		if outer[name], err = os.Readlink(path); err != nil {
			return nil, err
		}
	}
	return []string{
		"PATH=" + os.Getenv("PATH"), "OUTER_PID=" + outer["OUTER_PID"], "OUTER_MNT=" + outer["OUTER_MNT"],
		"KUBERNETES_SERVICE_HOST=" + server.Hostname(), "KUBERNETES_SERVICE_PORT=" + server.Port(),
		// The manifest has this variable.
		"KURED_NODE_ID=" + on.Node,
		// Variables replace flags. These are about the machine, which is not that of the manifest.
		"KURED_REBOOT_SENTINEL=/run/reboot-required", "KURED_REBOOT_METHOD=command",
		"KURED_REBOOT_COMMAND=/bin/sh /run/count-reboot", "KURED_METRICS_HOST=127.0.0.1", "KURED_METRICS_PORT=0",
	}, nil
}

// Start starts kured. It looks at its lock for the first time after 30 to 90 seconds.
func (on *KuredOnNode) Start() error {
	environment, err := on.environment()
	if err != nil {
		return err
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		return err
	}
	on.lives++
	on.process, err = startProcessIn(environment, on.run, fmt.Sprintf("kured-%d", on.lives), unshare,
		on.sealedCommand(append([]string{on.of.program}, on.of.args...)...)...)
	return err
}

// Kill ends kured as a machine that goes down does.
func (on *KuredOnNode) Kill() {
	if on.process != nil {
		on.process.kill()
	}
}

// Need says whether the machine needs a reboot.
func (on *KuredOnNode) Need(reboot bool) error {
	if reboot {
		return os.WriteFile(on.file("reboot-required"), nil, 0o600)
	}
	return os.Remove(on.file("reboot-required"))
}

// Reboots returns how often kured has rebooted the machine.
func (on *KuredOnNode) Reboots() int {
	text, _ := os.ReadFile(on.file("reboots"))
	return strings.Count(string(text), "\n")
}

// Log returns the logs of all lives.
func (on *KuredOnNode) Log() string {
	text := ""
	for life := 1; life <= on.lives; life++ {
		data, _ := os.ReadFile(on.file(fmt.Sprintf("kured-%d.log", life)))
		text += fmt.Sprintf("--- kured %d of %s\n%s", life, on.Node, data)
	}
	return text
}

// kuredHolders returns the names in the annotation with kured's lock. kured has two formats for it.
func kuredHolders(set *appsv1.DaemonSet) ([]string, error) {
	type entry struct {
		NodeID string `json:"nodeID"`
	}
	var lock struct {
		entry
		Locks []entry `json:"locks"`
	}
	text, found := set.Annotations[kuredLock]
	if !found {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &lock); err != nil {
		return nil, err
	}
	var names []string
	for _, one := range append(lock.Locks, lock.entry) {
		if one.NodeID != "" && !slices.Contains(names, one.NodeID) {
			names = append(names, one.NodeID)
		}
	}
	slices.Sort(names)
	return names, nil
}
