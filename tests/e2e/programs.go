// Package e2e runs a real Kubernetes control plane on loopback and judges drains on it.
//
// It is written in Go on client-go, from the same module versions as the control plane, so that the judge shares no
// code with the judged: what Haulout's own client and codec get wrong, this package does not get wrong with them.
package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Programs are the paths of the control plane's programs and of kubectl.
type Programs struct {
	Etcd, APIServer, ControllerManager, Scheduler, Kubectl string
}

// FindPrograms looks in $HAULOUT_E2E_BIN, else where build-control-plane.sh puts them. The error says what to do.
func FindPrograms() (Programs, error) {
	dir := os.Getenv("HAULOUT_E2E_BIN")
	if dir == "" {
		root, err := sourceRoot()
		if err != nil {
			return Programs{}, err
		}
		dir = filepath.Join(root, "build", "e2e", "bin")
	}
	var missing []string
	find := func(name string) string {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err != nil || info.Mode()&0o111 == 0 {
			missing = append(missing, name)
		}
		return path
	}
	programs := Programs{
		Etcd:              find("etcd"),
		APIServer:         find("kube-apiserver"),
		ControllerManager: find("kube-controller-manager"),
		Scheduler:         find("kube-scheduler"),
		Kubectl:           find("kubectl"),
	}
	if len(missing) > 0 {
		return Programs{}, fmt.Errorf("no %s in %s: run tests/e2e/build-control-plane.sh, which builds them, "+
			"or set HAULOUT_E2E_BIN to a directory that has them", strings.Join(missing, ", "), dir)
	}
	return programs, nil
}

// FindHaulout looks at $HAULOUT_BIN, else where the release build puts the binary.
func FindHaulout() (string, error) {
	return findBuilt("HAULOUT_BIN", "cli", "haulout")
}

// FindDemo looks at $HAULOUT_DEMO_BIN, else where the release build puts the program that serves a simulated cluster.
func FindDemo() (string, error) {
	return findBuilt("HAULOUT_DEMO_BIN", "demo", "haulout-demo")
}

func findBuilt(variable, folder, name string) (string, error) {
	path := os.Getenv(variable)
	if path == "" {
		root, err := sourceRoot()
		if err != nil {
			return "", err
		}
		path = filepath.Join(root, "build", "release", folder, name)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(path); err != nil || info.Mode()&0o111 == 0 {
		return "", fmt.Errorf("no %s binary at %s: run ./dev build, or set %s", name, path, variable)
	}
	return path, nil
}

// sourceRoot walks up from the working directory, which go test sets to the package's.
func sourceRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "CMakePresets.json")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("not inside Haulout's source tree")
		}
	}
}
