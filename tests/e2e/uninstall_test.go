package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The commands in packaging/README.md remove what agents have written to a Node, and nothing else.
func expectNothingLeft(t *testing.T, in *Installed) {
	nodes := in.Client.CoreV1().Nodes()
	written := []byte(`{"metadata":{"labels":{"haulout.dev/state":"idle","haulout.dev/reason":"Paused",
		"haulout.dev/reboot-required":"false","haulout.dev/pool":"default","kept":"yes"},
		"annotations":{"haulout.dev/record":"{}","haulout.dev/message":"m","haulout.dev/pause":";mine",
		"haulout.dev/waiting-taint":"example.com/waits=yes:PreferNoSchedule@2026-01-02T00:00:00Z"}},
		"spec":{"taints":[` + theirTaint + `,` + ourTaint + `]},
		"status":{"conditions":[{"type":"HauloutMaintenance","status":"False"},
		{"type":"Drained","status":"True","reason":"DrainCompleted","message":"haulout: no pod"},
		{"type":"MaintenanceInProgress","status":"True","reason":"Ready","message":"haulout: drained"},
		{"type":"MaintenancePlanned","status":"True","reason":"Storage","message":"by the storage operator"},
		{"type":"DrainInProgress","status":"False","reason":"Done"}]}}`)
	for _, subresource := range [][]string{nil, {"status"}} {
		_, err := nodes.Patch(t.Context(), ownNode, types.StrategicMergePatchType, written, metav1.PatchOptions{},
			subresource...)
		must(t, err)
	}
	before, err := nodes.Get(t.Context(), ownNode, getOptions)
	must(t, err)

	kubeconfig, err := in.kubeconfigFor("e2e-admin", "system:masters")
	must(t, err)
	command := exec.CommandContext(t.Context(), "sh", "-e", "-c", uninstallCommands(t))
	command.Env = []string{"KUBECONFIG=" + kubeconfig, "HOME=" + in.Dir,
		"PATH=" + filepath.Dir(in.Programs.Kubectl) + ":" + os.Getenv("PATH")}
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}

	node, err := nodes.Get(t.Context(), ownNode, getOptions)
	must(t, err)
	for key := range merged(node.Labels, node.Annotations) {
		if strings.HasPrefix(key, "haulout.dev/") && key != "haulout.dev/pause" {
			t.Errorf("%s is left", key)
		}
	}
	if node.Labels["kept"] != "yes" || node.Annotations["haulout.dev/pause"] != ";mine" {
		t.Errorf("what people wrote has gone: %v %v", node.Labels, node.Annotations)
	}
	if len(node.Spec.Taints) != 1 || !isPersons(node.Spec.Taints[0]) {
		t.Errorf("the taints are %v", node.Spec.Taints)
	}
	types := map[corev1.NodeConditionType]bool{}
	for _, condition := range node.Status.Conditions {
		types[condition.Type] = true
	}
	ours := types["HauloutMaintenance"] || types["Drained"] || types["MaintenanceInProgress"]
	theirs := types["MaintenancePlanned"] && types["DrainInProgress"]
	if ours || !theirs || len(node.Status.Conditions) != len(before.Status.Conditions)-3 {
		t.Errorf("conditions: %+v", node.Status.Conditions)
	}
}

// uninstallCommands returns the commands of packaging/README.md that clean the Nodes after an uninstallation.
func uninstallCommands(t *testing.T) string {
	t.Helper()
	root, err := sourceRoot()
	must(t, err)
	text, err := os.ReadFile(filepath.Join(root, "packaging", "README.md"))
	must(t, err)
	_, after, found := strings.Cut(string(text), "keep what the agents wrote about them until it is removed:\n\n")
	if !found {
		t.Fatal("packaging/README.md says no more how Nodes are cleaned")
	}
	var commands []string
	for line := range strings.Lines(after) {
		if !strings.HasPrefix(line, "    ") {
			break
		}
		commands = append(commands, line)
	}
	return strings.Join(commands, "")
}
