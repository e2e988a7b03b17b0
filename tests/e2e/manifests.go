package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// manifests returns the directory with the kustomizations that Haulout ships.
func manifests() (string, error) {
	root, err := sourceRoot()
	return filepath.Join(root, "packaging", "kustomize"), err
}

// kustomization writes a kustomization with the shipped base and these components, as a user would, and returns its
// directory.
func kustomization(dir string, components ...string) (string, error) {
	return kustomizationWith(dir, nil, components...)
}

// kustomizationWith does the same with further kustomizations beside the base.
func kustomizationWith(dir string, more []string, components ...string) (string, error) {
	shipped, err := manifests()
	if err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp(dir, "kustomize-"); err != nil {
		return "", err
	}
	// kustomize accepts only relative paths, and the temporary directory may be a symbolic link.
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	relative, err := filepath.Rel(dir, shipped)
	if err != nil {
		return "", err
	}
	text := "resources:\n"
	for _, resource := range append([]string{"base"}, more...) {
		text += fmt.Sprintf("- %s\n", filepath.Join(relative, resource))
	}
	text += "components:\n"
	for _, component := range components {
		text += fmt.Sprintf("- %s\n", filepath.Join(relative, "components", component))
	}
	return dir, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600)
}

// AdminKubectl runs kubectl as the cluster's administrator and returns its output.
func (c *Cluster) AdminKubectl(ctx context.Context, args ...string) (string, error) {
	kubeconfig, err := c.kubeconfigFor("e2e-admin", "system:masters")
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, c.Programs.Kubectl, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+c.Dir)
	output, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("kubectl %v: %w\n%s", args, err, output)
	}
	return string(output), err
}
