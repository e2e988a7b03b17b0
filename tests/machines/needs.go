// Package machines runs Haulout's package on real machines: systemd-nspawn boots a real systemd as PID 1, with logind,
// D-Bus, journald and apt; a real kubelet and containerd run the pods, and a real control plane serves the API.
//
// The tests change nothing of the host: they run in namespaces of their own (see room.go), which end with the test.
package machines

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"haulout.dev/haulout/tests/e2e"
)

// Needs holds the files that the tests use and do not make themselves.
type Needs struct {
	Root     string // root of the source tree
	Build    string // the directory build/machines
	Package  string // the Debian package under test
	Image    string // the container image under test
	Programs e2e.Programs
}

// FindNeeds returns what the tests need. Its error says what is missing and what to do.
func FindNeeds() (*Needs, error) {
	root, err := sourceRoot()
	if err != nil {
		return nil, err
	}
	n := &Needs{Root: root, Build: filepath.Join(root, "build", "machines")}
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("machines need root, for namespaces, mounts and veths")
	}
	for _, program := range []string{"systemd-nspawn", "nsenter", "ip"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("%s is missing: run ./dev test --machines, which installs it", program)
		}
	}
	var missing []string
	for _, path := range []string{"base/etc/os-release", "base.key", "bin/kubelet", "bin/containerd",
		"bin/containerd-shim-runc-v2", "bin/ctr", "bin/runc", "bin/workload"} {
		if _, err := os.Stat(filepath.Join(n.Build, path)); err != nil {
			missing = append(missing, path)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("no %s in %s: run ./dev test --machines, which makes them", strings.Join(missing, ", "),
			n.Build)
	}
	if n.Package, err = findOne("HAULOUT_DEB", filepath.Join(root, "build", "deb", "haulout_*.deb"), "./dev deb"); err != nil {
		return nil, err
	}
	if n.Image, err = findOne("HAULOUT_IMAGE", filepath.Join(root, "build", "image", "haulout-*.tar"), "./dev image"); err != nil {
		return nil, err
	}
	n.Programs, err = e2e.FindPrograms()
	return n, err
}

// kernelDisk returns the path of the disk that build-kernel-disk.sh makes.
func (n *Needs) kernelDisk() string { return filepath.Join(n.Build, "kernel.disk") }

// findOne returns the file that an environment variable names, or else the only file that matches the pattern.
// `command` is the command that makes such a file, for the error.
func findOne(variable, pattern, command string) (string, error) {
	if path := os.Getenv(variable); path != "" {
		return filepath.Abs(path)
	}
	found, err := filepath.Glob(pattern)
	if err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%d files match %s: run %s, or set %s", len(found), pattern, command, variable)
	}
	return found[0], nil
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
