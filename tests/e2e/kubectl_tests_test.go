package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What kubectl's tests expect and Haulout does differently on purpose; docs/behaviours.md says why.
var otherThanKubectl = []string{
	// Haulout lists all pods of the node and applies the selector itself.
	"fieldSelector=spec.nodeName%3D127.0.0.1&labelSelector=type%3Dtest-pod",
}

// kubectlCheck is a check of kubectl's tests: its line in their script, what it checks, and whether it passed.
type kubectlCheck struct {
	line, what string
	passed     bool
}

func (c kubectlCheck) String() string { return c.line + " " + c.what }

// A program `kubectl` that runs Haulout for drain, cordon and uncordon, and writes whether each of these commands
// succeeded.
const kubectlWithHaulout = `#!/usr/bin/env bash
tool=%[1]q
for word; do
  case $word in
  drain | cordon | uncordon) tool=%[2]q; break ;;
  -*) ;;
  *) break ;;
  esac
done
"$tool" "$@"
code=$?
[[ $code == 0 ]] && ended=0 || ended=1
for word; do
  case $word in drain | cordon | uncordon) echo "$ended $*" >>%[3]q; break ;; esac
done
exit "$code"
`

// kubectlsTests runs kubectl's tests with `tool` for drain, cordon and uncordon. It returns the checks, and whether
// each of these commands succeeded.
func kubectlsTests(t *testing.T, c *ControlPlane, module, tool string) (checks []kubectlCheck, commands []string) {
	t.Helper()
	client, err := c.adminClient()
	must(t, err)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "127.0.0.1"}}
	_, err = client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
	must(t, err)
	defer func() { must(t, client.CoreV1().Nodes().Delete(t.Context(), node.Name, metav1.DeleteOptions{})) }()

	dir := t.TempDir()
	identity, err := c.CA.Client("admin", "system:masters")
	must(t, err)
	kubeconfig, err := c.Access(identity).Write(dir)
	must(t, err)
	log := filepath.Join(dir, "commands")
	wrapper := fmt.Sprintf(kubectlWithHaulout, c.Programs.Kubectl, tool, log)
	must(t, os.Mkdir(filepath.Join(dir, "bin"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "bin", "kubectl"), []byte(wrapper), 0o700))
	results := filepath.Join(dir, "checks")
	run := exec.CommandContext(t.Context(), "bash", "kubectl-node-tests.sh", module, c.URL, results)
	run.Env = []string{"HOME=" + dir, "KUBECONFIG=" + kubeconfig,
		"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH")}
	output, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	t.Logf("%s", output)
	for line := range strings.Lines(contents(t, results)) {
		fields := strings.SplitN(strings.TrimSpace(line), " ", 3)
		checks = append(checks, kubectlCheck{line: fields[0], passed: fields[1] == "pass", what: fields[2]})
	}
	return checks, strings.Split(strings.TrimSpace(contents(t, log)), "\n")
}

// kubernetesModule returns the directory of the Go module from which the control plane is built.
func kubernetesModule(t *testing.T) (string, error) {
	download := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "k8s.io/kubernetes")
	download.Dir = cluster.Programs.Module
	output, err := download.Output()
	if err != nil {
		return "", err
	}
	var module struct{ Dir string }
	err = json.Unmarshal(output, &module)
	return module.Dir, err
}

func contents(t *testing.T, file string) string {
	t.Helper()
	bytes, err := os.ReadFile(file)
	must(t, err)
	return string(bytes)
}

// Runs kubectl's own tests of its node commands, once with kubectl and once with Haulout for drain, cordon and
// uncordon. Haulout passes all checks that kubectl passes here, and each of its commands succeeds if kubectl's does.
func TestKubectlsOwnTests(t *testing.T) {
	t.Parallel()
	needKubernetes(t, 36, "kubectl with the log lines that its tests read here")
	needHaulout(t)
	module, err := kubernetesModule(t)
	if err != nil {
		cannotRun(t, fmt.Sprintf("the Go module of Kubernetes, which has kubectl's tests, cannot be found: %v", err))
	}
	own, err := StartControlPlane(t.Context(), cluster.Programs)
	must(t, err)
	defer own.Stop()
	theirs, theirCommands := kubectlsTests(t, own, module, own.Programs.Kubectl)
	ours, ourCommands := kubectlsTests(t, own, module, haulout.Path)

	if len(theirs) != len(ours) || theirs[len(theirs)-1].what != "end" {
		t.Fatalf("%d checks with kubectl, %d with Haulout", len(theirs), len(ours))
	}
	count := func(checks []kubectlCheck) (passed int) {
		for _, check := range checks {
			if check.passed {
				passed++
			}
		}
		return passed
	}
	t.Logf("of %d checks kubectl passes %d, Haulout %d", len(theirs), count(theirs), count(ours))
	for i, check := range theirs {
		if !check.passed {
			t.Logf("kubectl fails %v", check)
			continue
		}
		deliberate := slices.ContainsFunc(otherThanKubectl, func(part string) bool { return strings.Contains(check.what, part) })
		if !ours[i].passed && !deliberate {
			t.Errorf("kubectl passes, Haulout fails %v", ours[i])
		}
	}
	if !slices.Equal(theirCommands, ourCommands) {
		t.Errorf("the commands ended\n%s\nwith kubectl, and\n%s\nwith Haulout", strings.Join(theirCommands, "\n"),
			strings.Join(ourCommands, "\n"))
	}
}
