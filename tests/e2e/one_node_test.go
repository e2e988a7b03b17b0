package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// The commands of docs/tasks.md make a pod that runs `haulout agent --release` as the agent of that node runs, and find the
// arguments for --check.
func expectOneNodeTakenOut(t *testing.T, in *Installed) {
	agents, err := in.Client.CoreV1().Pods(agentName).List(t.Context(), metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/name=haulout", FieldSelector: "spec.nodeName=" + ownNode})
	must(t, err)
	if len(agents.Items) != 1 {
		t.Fatalf("%d agents run on the node", len(agents.Items))
	}
	agent := agents.Items[0]
	dir := t.TempDir()
	kubeconfig, err := in.kubeconfigFor("e2e-admin", "system:masters")
	must(t, err)
	run := func(commands string) string {
		command := exec.CommandContext(t.Context(), "sh", "-e", "-c", strings.ReplaceAll(commands, "w17", ownNode))
		command.Dir = dir
		command.Env = []string{"KUBECONFIG=" + kubeconfig, "HOME=" + in.Dir,
			"PATH=" + filepath.Dir(in.Programs.Kubectl) + ":" + os.Getenv("PATH")}
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
		return string(output)
	}
	page := docsPage(t, "tasks.md")

	run(blockWith(t, page, "> release.json"))
	accepted := run("kubectl create -f release.json --dry-run=server -o yaml")
	var pod corev1.Pod
	must(t, yaml.Unmarshal([]byte(accepted), &pod))
	own := agent.Spec.Containers[0]
	container := pod.Spec.Containers[0]
	if want := append(slices.Clone(own.Args), "--release"); !slices.Equal(container.Args, want) {
		t.Errorf("the arguments are %v, want %v", container.Args, want)
	}
	if len(container.VolumeMounts) != len(own.VolumeMounts) || len(pod.Spec.Volumes) != len(agent.Spec.Volumes) {
		t.Errorf("the pod has other mounts: %+v", container.VolumeMounts)
	}
	if pod.Spec.NodeName != ownNode || pod.Spec.ServiceAccountName != agentName || pod.Spec.RestartPolicy != corev1.RestartPolicyNever ||
		pod.Spec.Affinity != nil || container.LivenessProbe != nil || container.ReadinessProbe != nil ||
		len(pod.OwnerReferences) > 0 || len(pod.Labels) > 0 {
		t.Errorf("the pod is %s", accepted)
	}

	find, _, found := strings.Cut(blockWith(t, page, " --check\n"), "kubectl -n haulout exec")
	if !found {
		t.Fatal("docs/tasks.md does not show how --check runs in a pod")
	}
	want := strings.ReplaceAll(strings.Join(own.Args, " "), "$(POD_NAMESPACE)", agentName)
	if args := strings.TrimSpace(run(find + "echo $args")); args != want {
		t.Errorf("the arguments are %q, want %q", args, want)
	}
}

// With the affinity of docs/tasks.md the agent leaves a node that has the label, and comes back when the label is removed.
func (in *releaseOnCluster) expectAgentTakenAway(t *testing.T) {
	var kustomization struct {
		Patches []struct{ Patch string }
	}
	must(t, yaml.Unmarshal([]byte(blockWith(t, docsPage(t, "tasks.md"), "operator: NotIn")), &kustomization))
	var operations []struct {
		Path  string
		Value any
	}
	must(t, yaml.Unmarshal([]byte(kustomization.Patches[0].Patch), &operations))
	if len(operations) != 1 || operations[0].Path != "/spec/template/spec/affinity" {
		t.Fatalf("the patch is %+v", operations)
	}
	values := writeValues(t, "affinity.yaml", map[string]any{"affinity": operations[0].Value})
	before := in.agentPods(t)[0]
	in.helm(t, "upgrade", "haulout", in.Chart, "--reuse-values", "--values", values)
	agent := in.runningAgent(t, &before)

	label := func(change string) {
		_, err := in.AdminKubectl(t.Context(), "label", "node", ownNode, change)
		must(t, err)
	}
	label("example.com/haulout=off")
	must(t, Until(t.Context(), "the agent is gone", func() (bool, error) {
		pods := in.agentPods(t)
		return len(pods) == 0, fmt.Errorf("there are %d pods", len(pods))
	}))
	label("example.com/haulout-")
	in.runningAgent(t, agent)
}

func docsPage(t *testing.T, name string) string {
	t.Helper()
	root, err := sourceRoot()
	must(t, err)
	text, err := os.ReadFile(filepath.Join(root, "docs", name))
	must(t, err)
	return string(text)
}

// blockWith returns the first indented block of a page that contains this text.
func blockWith(t *testing.T, page, text string) string {
	t.Helper()
	block := ""
	for line := range strings.Lines(page + "end\n") {
		if strings.HasPrefix(line, "    ") {
			block += line
			continue
		}
		if strings.Contains(block, text) {
			return block
		}
		block = ""
	}
	t.Fatalf("the page has no block with %q", text)
	return ""
}
