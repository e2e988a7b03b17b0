// Package e2e runs a real Kubernetes control plane on loopback and checks drains on it.
//
// It is written in Go and uses client-go, of the same module versions as the control plane. So the tests share no code
// with Haulout, and do not repeat a mistake of Haulout's own client and codec.
package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Programs holds the paths of the control plane's programs and of kubectl.
type Programs struct {
	Etcd, APIServer, ControllerManager, Scheduler, Kubectl string
	// Further flags of the API server.
	APIServerFlags []string
	// The directory of the go.mod that builds them, without etcd, which is that of tests/e2e.
	Module string
}

// Next returns the same programs with the API server of next/go.mod, which is of a newer Kubernetes, and further flags for
// it. The error says what to do if it is missing.
func (p Programs) Next(flags ...string) (Programs, error) {
	dir := filepath.Dir(p.Etcd)
	p.APIServer = filepath.Join(dir, "next", "kube-apiserver")
	p.APIServerFlags = flags
	if info, err := os.Stat(p.APIServer); err != nil || info.Mode()&0o111 == 0 {
		return Programs{}, fmt.Errorf("no next/kube-apiserver in %s: run tests/e2e/build-control-plane.sh, which builds it", dir)
	}
	return p, nil
}

// FindPrograms returns the programs in $HAULOUT_E2E_BIN, or else in the directory of build-control-plane.sh. With
// HAULOUT_E2E_KUBERNETES=NAME they are those of NAME/go.mod, which are in the directory NAME there. The error says what to do
// if they are missing.
func FindPrograms() (Programs, error) {
	root, err := sourceRoot()
	if err != nil {
		return Programs{}, err
	}
	dir := os.Getenv("HAULOUT_E2E_BIN")
	if dir == "" {
		dir = filepath.Join(root, "build", "e2e", "bin")
	}
	which, hint := os.Getenv("HAULOUT_E2E_KUBERNETES"), ""
	switch which {
	case "":
	case "next", "1.30", "1.29":
		hint = " with HAULOUT_E2E_KUBERNETES=" + which
	default:
		return Programs{}, fmt.Errorf("HAULOUT_E2E_KUBERNETES is %q, and must be empty, next, 1.30 or 1.29", which)
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
		APIServer:         find(filepath.Join(which, "kube-apiserver")),
		ControllerManager: find(filepath.Join(which, "kube-controller-manager")),
		Scheduler:         find(filepath.Join(which, "kube-scheduler")),
		Kubectl:           find(filepath.Join(which, "kubectl")),
		Module:            filepath.Join(root, "tests", "e2e", which),
	}
	if len(missing) > 0 {
		return Programs{}, fmt.Errorf("no %s in %s: run tests/e2e/build-control-plane.sh%s, which builds them, "+
			"or set HAULOUT_E2E_BIN to a directory that has them", strings.Join(missing, ", "), dir, hint)
	}
	return programs, nil
}

// FindHaulout returns $HAULOUT_BIN, or else the binary of the release build.
func FindHaulout() (string, error) {
	return findBuilt("HAULOUT_BIN", "cli", "haulout")
}

// FindDemo returns $HAULOUT_DEMO_BIN, or else the program of the release build that serves a simulated cluster.
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

// sourceRoot returns the root of the source tree, which it finds from the working directory upwards. go test sets that
// to the package's directory.
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
