package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Helm runs the program helm with the shipped chart. It reads and writes no settings of the user.
type Helm struct {
	program, home string
	kubeconfig    string // empty: without a cluster
	version       string // of Kubernetes, for which the chart is rendered
	Chart         string
}

// NewHelm finds the helm that build-control-plane.sh builds beside the control plane. The error says what to do if it is
// missing.
func (c *ControlPlane) NewHelm(home, kubeconfig string) (Helm, error) {
	root, err := sourceRoot()
	if err != nil {
		return Helm{}, err
	}
	dir := filepath.Dir(c.Programs.Etcd)
	version := c.Version()
	if c.Minor < 36 { // the chart with its default values needs that
		version = "v1.36.0"
	}
	h := Helm{filepath.Join(dir, "helm"), home, kubeconfig, version, filepath.Join(root, "packaging", "helm", "haulout")}
	if info, err := os.Stat(h.program); err != nil || info.Mode()&0o111 == 0 {
		return Helm{}, fmt.Errorf("no helm in %s: run tests/e2e/build-control-plane.sh, which builds it", dir)
	}
	return h, nil
}

// Examples returns the files with values that are shipped beside the chart.
func (h Helm) Examples() ([]string, error) {
	examples, err := filepath.Glob(filepath.Join(filepath.Dir(h.Chart), "examples", "*.yaml"))
	if err == nil && len(examples) == 0 {
		err = errors.New("there are no examples of values")
	}
	return examples, err
}

// Run runs helm and returns its standard output. The error has its standard error.
func (h Helm) Run(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, h.program, args...)
	command.Env = []string{"HOME=" + h.home, "KUBECONFIG=" + h.kubeconfig, "PATH=" + os.Getenv("PATH"),
		"HELM_CACHE_HOME=" + h.home, "HELM_CONFIG_HOME=" + h.home, "HELM_DATA_HOME=" + h.home}
	var errs bytes.Buffer
	command.Stderr = &errs
	output, err := command.Output()
	if err != nil {
		err = fmt.Errorf("helm %v: %w\n%s%s", args, err, errs.String(), output)
	}
	return string(output), err
}

// Template returns the manifests of a release `haulout` that is stored in the namespace `default`, for the Kubernetes of
// the control plane, or for 1.36 if that is older, unless the arguments name another one.
func (h Helm) Template(ctx context.Context, args ...string) (string, error) {
	return h.Run(ctx, slices.Concat([]string{"template", "haulout", h.Chart, "--kube-version=" + h.version}, args)...)
}

// Objects are Kubernetes objects by kind, namespace and name, as "Role default/haulout-events".
type Objects map[string]map[string]any

// ParseObjects reads manifests. It fails if two of them are the same object.
func ParseObjects(manifests string) (Objects, error) {
	objects := Objects{}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifests)))
	for {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		var object map[string]any
		if err := yaml.UnmarshalStrict(text, &object); err != nil {
			return nil, err
		}
		if object == nil {
			continue // only comments
		}
		metadata, _ := object["metadata"].(map[string]any)
		name := fmt.Sprint(metadata["name"])
		if namespace, ok := metadata["namespace"]; ok {
			name = fmt.Sprintf("%v/%s", namespace, name)
		}
		key := fmt.Sprintf("%v %s", object["kind"], name)
		if _, twice := objects[key]; twice {
			return nil, fmt.Errorf("%s exists twice", key)
		}
		objects[key] = object
	}
}

// leaves returns a line for each value of each object.
func (o Objects) leaves() map[string]bool {
	lines := map[string]bool{}
	var walk func(string, any)
	walk = func(path string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for key, member := range value {
				walk(path+"."+key, member)
			}
			if len(value) == 0 {
				lines[path+": {}"] = true
			}
		case []any:
			for i, item := range value {
				walk(fmt.Sprintf("%s[%d]", path, i), item)
			}
			if len(value) == 0 {
				lines[path+": []"] = true
			}
		default:
			lines[fmt.Sprintf("%s: %v (%T)", path, value, value)] = true
		}
	}
	for key, object := range o {
		walk(key+" ", object)
	}
	return lines
}

// Changes returns what the objects have that the others lack, with a plus, and the opposite, with a minus.
func (o Objects) Changes(others Objects) []string {
	mine, theirs := o.leaves(), others.leaves()
	var changes []string
	for line := range mine {
		if !theirs[line] {
			changes = append(changes, "+ "+line)
		}
	}
	for line := range theirs {
		if !mine[line] {
			changes = append(changes, "- "+line)
		}
	}
	slices.Sort(changes)
	return changes
}
