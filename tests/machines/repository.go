package machines

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Repository is an archive of Debian packages that the machines' apt reads over HTTP. Offer builds the packages. The
// server ends with the test.
type Repository struct {
	URL string
	dir string
}

// Offered is one version of a package of the repository.
type Offered struct {
	Name, Version string
	Conffile      string            // content of /etc/NAME.conf; empty: there is none
	Postinst      string            // lines of shell
	Files         map[string]string // content of further files, by their absolute path
}

// NewRepository returns a repository without a list of packages. apt cannot use it before the first call of Offer.
func NewRepository(t *testing.T) (*Repository, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(controlPlaneAddress.String(), "0"))
	if err != nil {
		return nil, err
	}
	r := &Repository{URL: "http://" + listener.Addr().String() + "/", dir: t.TempDir()}
	server := &http.Server{Handler: http.FileServer(http.Dir(r.dir))}
	t.Cleanup(func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }()
	return r, nil
}

// Offer builds these packages and makes them the only ones in the repository's list. The files of former packages stay,
// because a machine may be fetching them.
func (r *Repository) Offer(packages ...Offered) error {
	var list bytes.Buffer
	for _, offered := range packages {
		if err := r.add(&list, offered); err != nil {
			return fmt.Errorf("package %s: %w", offered.Name, err)
		}
	}
	release := fmt.Sprintf("Origin: Machines\nLabel: Machines\nSuite: stable\nCodename: stable\nDate: %s\nSHA256:\n %x %d Packages\n",
		time.Now().UTC().Format(time.RFC1123), sha256.Sum256(list.Bytes()), list.Len())
	if err := os.WriteFile(filepath.Join(r.dir, "Packages"), list.Bytes(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.dir, "Release"), []byte(release), 0o644)
}

// add builds a package and appends its entry to the list.
func (r *Repository) add(list *bytes.Buffer, offered Offered) error {
	tree, err := os.MkdirTemp(r.dir, ".tree-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tree)
	control := fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: Nobody <nobody@invalid>\n"+
		"Description: Package of the tests\n", offered.Name, offered.Version)
	share := "usr/share/" + offered.Name + "/version"
	files := map[string]string{"DEBIAN/control": control, share: offered.Version + "\n"}
	if offered.Conffile != "" {
		files["etc/"+offered.Name+".conf"] = offered.Conffile
		files["DEBIAN/conffiles"] = "/etc/" + offered.Name + ".conf\n"
	}
	if offered.Postinst != "" {
		files["DEBIAN/postinst"] = "#!/bin/sh\nset -e\n" + offered.Postinst + "\n"
	}
	for path, content := range offered.Files {
		files[strings.TrimPrefix(path, "/")] = content
	}
	for path, content := range files {
		path = filepath.Join(tree, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			return err
		}
	}
	// os.MkdirTemp creates a directory that only its owner may read. Others must be able to read the root directory of a
	// package.
	if err := os.Chmod(tree, 0o755); err != nil {
		return err
	}
	name := fmt.Sprintf("%s_%s_all.deb", offered.Name, offered.Version)
	path := filepath.Join(r.dir, name)
	output, err := exec.Command("dpkg-deb", "--root-owner-group", "-Zgzip", "--build", tree, path).CombinedOutput()
	if err != nil {
		return fmt.Errorf("dpkg-deb: %w\n%s", err, output)
	}
	deb, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	fmt.Fprintf(list, "%sFilename: %s\nSize: %d\nSHA256: %x\n\n", control, name, len(deb), sha256.Sum256(deb))
	return nil
}

// UseRepository makes this repository the only one of the machine's apt, and installs these packages from it. Packages
// of Debian must be installed before, because apt cannot find them afterwards.
func (m *Machine) UseRepository(ctx context.Context, r *Repository, packages ...string) error {
	if _, err := m.Shell(ctx, "rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/*"); err != nil {
		return err
	}
	if err := m.Write("/etc/apt/sources.list", "deb [trusted=yes] "+r.URL+" ./\n"); err != nil {
		return err
	}
	if _, err := m.Run(ctx, "apt-get", "update", "-q"); err != nil {
		return err
	}
	_, err := m.Run(ctx, append([]string{"apt-get", "install", "-q", "-y"}, packages...)...)
	return err
}

// Installed returns the installed versions of these packages, each as "NAME VERSION STATUS", and the output of
// dpkg --audit, which is empty if all packages are completely installed.
func (m *Machine) Installed(ctx context.Context, packages ...string) (lines []string, wrong string, err error) {
	query := append([]string{"dpkg-query", "-W", "-f", "${Package} ${Version} ${db:Status-Status}\\n"}, packages...)
	text, err := m.Run(ctx, query...)
	if err != nil {
		return nil, "", err
	}
	wrong, err = m.Run(ctx, "dpkg", "--audit")
	return strings.Split(strings.TrimSpace(text), "\n"), strings.TrimSpace(wrong), err
}
