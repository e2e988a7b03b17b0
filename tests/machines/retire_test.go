package machines

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	retirePrograms = "/etc/haulout/retire.d"
	shippedCleanUp = "/usr/share/haulout/retire.d/50-kubeadm"
	adminConfig    = "/root/admin.conf"
	nothingLeft    = "nothing of the node is left on this machine\n"
)

var retiredWork = Work{App: "shop", Replicas: 4, Promised: 3, Lingers: time.Second, Grace: 30}

// A machine is retired with the program that the package ships, as docs/cli.md says. The pods move under their budget,
// the kubelet is stopped, what kubeadm, kubelet and network plugin have left is gone, and so is the Node. The machine
// is not rebooted. On a second machine, another Node of the same name comes during the clean-up, and is not deleted.
func TestRetireLocal(t *testing.T) {
	notInCore(t)
	f := NewFleet(t, needs, 2, func(m *Machine) error {
		if err := m.Write("/etc/haulout/config.yaml", "slots: none\n"); err != nil {
			return err
		}
		return m.writeAs("/usr/local/bin/ctr", []byte("#!/bin/sh\nexec "+programs+"/ctr \"$@\"\n"), 0o755)
	})
	ctx := t.Context()
	for _, m := range f.Machines {
		must(t, f.installForRetirement(ctx, m))
	}
	must(t, f.deployOnEachNode(ctx, "log"))
	must(t, f.Deploy(ctx, retiredWork))
	m := f.Machines[0]
	r := retired{f, t, m}
	boot, err := m.BootID(ctx)
	must(t, err)

	r.refuses("has no program that cleans up this machine")
	_, err = m.Shell(ctx, "mkdir -p "+retirePrograms+" && ln -s "+shippedCleanUp+" "+retirePrograms)
	must(t, err)
	must(t, r.leaveMore(ctx))
	r.refuses("node/"+f.Machines[1].Name+" cannot be retired, so nothing was changed", f.Machines[1].Name)
	before := r.left(ctx)
	plan := r.retire(ctx, 0, "--dry-run=client")
	for _, action := range []string{"systemctl disable --now kubelet.service", "ctr -a /run/containerd/containerd.sock -n k8s.io tasks delete", "umount /var/lib/kubelet/pods/",
		"rm -f -- " + kubeletKubeconfig, "ip link delete cni0", "ip link delete flannel.1", "iptables-nft -X KUBE-TEST"} {
		if !strings.Contains(plan, "would run: "+action) {
			t.Errorf("the dry run does not name %q:\n%s", action, plan)
		}
	}
	if now := r.left(ctx); now != before {
		t.Errorf("the dry run has changed the machine from\n%s\nto\n%s", before, now)
	}
	if node := f.Witness.Node(m.Name); node.Spec.Unschedulable {
		t.Error("the dry run has cordoned the node")
	}

	f.Line.Note(m.Name, "BEGINS: haulout retire --local")
	report := r.retire(ctx, 0)
	f.Line.Note(m.Name, "ENDS: haulout retire --local")
	t.Logf("haulout retire --local says\n%s", report)
	_, err = f.Client.CoreV1().Nodes().Get(ctx, m.Name, metav1.GetOptions{})
	if !errors.IsNotFound(err) {
		t.Errorf("the Node is left (%v)", err)
	}
	if now := r.left(ctx); now != "" {
		t.Errorf("left on the machine:\n%s", now)
	}
	if now, err := m.BootID(ctx); err != nil || now != boot || f.Reboots(m.Name) != 0 {
		t.Errorf("the machine was rebooted: boot %s, before %s (%v)", now, boot, err)
	}
	must(t, f.UntilWhole(ctx, retiredWork))
	if _, least := f.Witness.Promised(retiredWork.App); least < retiredWork.Promised {
		t.Errorf("%d pods were Ready", least)
	}
	again, err := m.Run(ctx, shippedCleanUp)
	if err != nil || again != nothingLeft {
		t.Errorf("a second run of the program says (%v)\n%s", err, again)
	}
	r.refuses("does not exist in this cluster")
	for _, violation := range f.Witness.Violations() {
		t.Error(violation)
	}
	f.Witness.Release(retiredWork.App)
	f.namesakeDuringCleanUp(t, f.Machines[1])
}

// namesakeDuringCleanUp retires a machine whose Node is deleted and created again while its clean-up runs.
func (f *Fleet) namesakeDuringCleanUp(t *testing.T, m *Machine) {
	t.Helper()
	const begun, goOn = "/run/clean-up-begun", "/run/clean-up-go-on"
	ctx := t.Context()
	must(t, f.Client.PolicyV1().PodDisruptionBudgets("default").Delete(ctx, retiredWork.App, metav1.DeleteOptions{}))
	must(t, f.Client.AppsV1().Deployments("default").Delete(ctx, retiredWork.App, metav1.DeleteOptions{}))
	hold := "#!/bin/sh\n[ \"$HAULOUT_DRY_RUN\" = 1 ] && exit\ntouch " + begun + "\nuntil [ -e " + goOn + " ]; do sleep 0.1; done\n"
	must(t, m.writeAs(retirePrograms+"/60-hold", []byte(hold), 0o755))
	_, err := m.Run(ctx, "ln", "-s", shippedCleanUp, retirePrograms)
	must(t, err)
	old := f.Witness.Node(m.Name)
	r := retired{f, t, m}
	ended := make(chan string)
	go func() {
		output, err := r.run(ctx)
		ended <- fmt.Sprintf("%v\n%s", err, output)
	}()
	must(t, f.Until(ctx, 3*time.Minute, "the clean-up waits", func() (bool, error) {
		_, err := m.Run(ctx, "test", "-e", begun)
		return err == nil, err
	}))
	nodes := f.Client.CoreV1().Nodes()
	must(t, nodes.Delete(ctx, m.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(old.UID))}))
	var namesake *corev1.Node
	must(t, f.Until(ctx, time.Minute, "the Node is created again", func() (bool, error) {
		var err error
		namesake, err = nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Name}}, metav1.CreateOptions{})
		return err == nil, err
	}))
	f.Line.Note(m.Name, "another Node has its name")
	_, err = m.Run(ctx, "touch", goOn)
	must(t, err)
	output := <-ended
	if !strings.Contains(output, "exit status 1") || !strings.Contains(output, "another Node has its name") {
		t.Errorf("haulout retire --local ends with %s", output)
	}
	now, err := nodes.Get(ctx, m.Name, metav1.GetOptions{})
	must(t, err)
	if now.UID != namesake.UID || now.UID == old.UID || now.UID == types.UID("") || now.Spec.Unschedulable {
		t.Errorf("the Node that came during the clean-up was changed: %s, unschedulable %v", now.UID, now.Spec.Unschedulable)
	}
}

// installForRetirement installs the package, with an agent that uses the kubelet's credentials, and the kubeconfig of an
// administrator.
func (f *Fleet) installForRetirement(ctx context.Context, m *Machine) error {
	identity, err := f.CA.Client("retires", "system:masters")
	if err != nil {
		return err
	}
	kubeconfig, err := writeAccess(f.AccessFrom(controlPlaneAddress, identity))
	if err != nil {
		return err
	}
	if err := m.WriteSecret(adminConfig, kubeconfig); err != nil {
		return err
	}
	return f.installPackage(ctx, m)
}

// deployOnEachNode creates a DaemonSet and returns when all its pods are Ready. They run until the clean-up.
func (f *Fleet) deployOnEachNode(ctx context.Context, name string) error {
	labels := map[string]string{appLabel: name}
	set := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "main", Image: workloadImage, ImagePullPolicy: corev1.PullNever,
				}}},
			},
		},
	}
	if _, err := f.Client.AppsV1().DaemonSets("default").Create(ctx, set, metav1.CreateOptions{}); err != nil {
		return err
	}
	return f.UntilWhole(ctx, Work{App: name, Replicas: len(f.Machines)})
}

// retired is a machine that is to be retired.
type retired struct {
	*Fleet
	t *testing.T
	m *Machine
}

func (r *retired) run(ctx context.Context, more ...string) (string, error) {
	words := []string{"haulout", "retire", "--local", "--kubeconfig", adminConfig, "--settle=1s", "--timeout=3m"}
	return r.m.Run(ctx, append(words, more...)...)
}

// retire runs haulout retire --local, and checks its exit status.
func (r *retired) retire(ctx context.Context, exit int, more ...string) string {
	r.t.Helper()
	output, err := r.run(ctx, more...)
	if (err == nil) != (exit == 0) || exit != 0 && !strings.Contains(err.Error(), fmt.Sprintf("exit status %d", exit)) {
		r.t.Fatalf("haulout retire --local %v: %v, want exit status %d\n%s", more, err, exit, output)
	}
	return output
}

// refuses checks that haulout retire --local ends with exit status 1 and this reason.
func (r *retired) refuses(reason string, more ...string) {
	r.t.Helper()
	if output := r.retire(r.t.Context(), 1, more...); !strings.Contains(output, reason) {
		r.t.Errorf("haulout retire --local %v does not say %q:\n%s", more, reason, output)
	}
}

// leaveMore adds what this machine would have with kubeadm, kube-proxy and flannel.
func (r *retired) leaveMore(ctx context.Context) error {
	_, err := r.m.Shell(ctx, "set -e; echo x >/etc/kubernetes/bootstrap-kubelet.conf; mkdir -p /var/lib/cni/results; "+
		"echo x >/var/lib/cni/results/pods-1; ip link add flannel.1 type bridge; ip link add foreign type bridge; "+
		"iptables -t nat -N KUBE-TEST; iptables -t nat -A POSTROUTING -j KUBE-TEST; iptables -t nat -N FOREIGN; "+
		"iptables -t nat -A POSTROUTING -j FOREIGN")
	if err == nil {
		r.Line.Note(r.m.Name, "more leftovers are made")
	}
	return err
}

// left lists what the machine has of a node. It fails if something is missing that does not belong to a node.
func (r *retired) left(ctx context.Context) string {
	r.t.Helper()
	text, err := r.m.Shell(ctx, `
for unit in kubelet haulout; do systemctl is-active $unit >/dev/null && echo "unit $unit"; systemctl is-enabled $unit 2>/dev/null | grep -x enabled; done
ls -A /etc/kubernetes /etc/kubernetes/pki /var/lib/kubelet /etc/cni/net.d /var/lib/cni 2>/dev/null | grep -v '^/' | grep .
awk '$5 ~ "^/var/lib/kubelet/" { print "mount", $5 }' /proc/self/mountinfo
ctr -n k8s.io containers ls -q
ip -o link show | awk -F': ' '{ sub(/@.*/, "", $2); print $2 }' | grep -E '^(cni0|flannel.1|cali|veth)'
ip netns list
iptables-save | grep -E 'KUBE-|CNI-'
ip link show foreign >/dev/null && iptables -t nat -C POSTROUTING -j FOREIGN || echo "something foreign is missing"
exit 0`)
	must(r.t, err)
	return text
}
