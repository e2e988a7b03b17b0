package machines

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// A machine that ostree updates. Debian's ostree is real, with its units of systemd, and so are the repository, the
// download over HTTP, the deployments and the entries of the boot loader that ostree writes.
//
// Played: the unit ostreeFirmware is the boot loader and the kernel: early at each boot it chooses an entry, and runs the
// program `init` of its deployment. A commit has only that, an os-release, and a file in place of the kernel; the rest of
// the system is the same in all boots. So only ostree, of all programs, has the booted deployment as its root
// (ostreeInDeployment). If `init` fails, the machine resets, as a kernel that panics does.
const (
	ostreeBranch = "machine/stable"
	ostreeRemote = "stable"
	ostreeLog    = "/var/log/ostree-upgrades.log" // the lines of ostreeInDeployment
	ostreeHold   = "/run/ostree-hold"             // while this file exists, no upgrade begins
	commitText   = "a story of the tests"
)

// ostreeFirmware plays the boot loader and the kernel. The entry with the highest version is the first one, as in all
// boot loaders that read such entries. A boot of a deployment uses one of its attempts; the deployment is skipped when
// none is left. The machine shows the deployment's os-release in place of its own.
const ostreeFirmware = `#!/bin/sh
set -e
cd ` + firmwareDir + `
for file in /sysroot/boot/loader/entries/*.conf; do
	echo "$(sed -n 's/^version //p' "$file") $(sed -n 's/^options .*ostree=\([^ ]*\).*/\1/p' "$file")"
done | sort -rn >entries
while read -r version path; do
	deployment=$(readlink -f "/sysroot$path")
	left=left.$(basename "$deployment")
	[ -e "$left" ] || echo %[1]d >"$left"
	attempts=$(cat "$left")
	[ "$attempts" -gt 0 ] || continue
	echo $((attempts - 1)) >"$left"
	sed -n 's/^VERSION_ID=//p' "$deployment/usr/lib/os-release" >>boots
	echo "$deployment" >/run/deployment
	: >/run/ostree-booted
	if "$deployment/usr/lib/machine/init" "$deployment"; then exit; fi
	exec systemctl reboot --force --force
done <entries
exit 1
`

// ostreeMarkGood gives the booted deployment all its attempts again. The systems that count boots have such a unit.
const ostreeMarkGood = `[Unit]
Description=Mark the booted deployment as good (played)
After=multi-user.target
[Service]
Type=oneshot
ExecStart=sh -c 'echo %d >` + firmwareDir + `/left.$(basename $(cat /run/deployment))'
`

// ostreeInDeployment is the machine's /usr/bin/ostree. It runs the real program with the booted deployment as its root,
// in a mount namespace of its own, and writes the begin and the end of each upgrade to a log. The program finds out from
// its root directory which deployment is booted.
const ostreeInDeployment = `#!/bin/sh
set -e
if [ "$1" != --in-own-namespace ]; then
	exec unshare --mount --propagation private "$0" --in-own-namespace "$@"
fi
shift
root=/run/root
mkdir -p $root
mount --bind "$(cat /run/deployment)" $root
mount --bind /sysroot $root/sysroot
mount --bind /sysroot/ostree/deploy/machine/var $root/var
for directory in /boot /run /usr; do mount --bind $directory $root$directory; done
for directory in /dev /proc; do mount --rbind $directory $root$directory; done
run() { chroot $root /usr/bin/ostree.distrib "$@"; }
case "$*" in
"admin upgrade"*)
	echo "begins" >>` + ostreeLog + `
	while [ -e ` + ostreeHold + ` ]; do sleep 0.1; done
	run "$@"
	echo "has installed $(run admin status | sed -n '/^ *Version: /{s///p;q}')" >>` + ostreeLog + ` ;;
*) exec chroot $root /usr/bin/ostree.distrib "$@" ;;
esac
`

// commitScript commits an image. The arguments are the name of the system, its version, and the end of `init`.
const commitScript = `rm -rf /root/tree
	mkdir -p /root/tree
	cd /root/tree
	mkdir -p usr/etc usr/bin usr/sbin usr/lib64 usr/lib/machine usr/lib/modules/played var boot dev proc run sys tmp sysroot
	ln -s sysroot/ostree ostree
	for name in bin sbin lib lib64; do ln -s usr/$name $name; done
	echo "in place of a kernel" >usr/lib/modules/played/vmlinuz
	printf 'ID=machine-os\nNAME="%s"\nVERSION_ID=%s\nPRETTY_NAME="%s %s"\n' "$1" "$2" "$1" "$2" >usr/lib/os-release
	printf '#!/bin/sh\n%s\n' "$3" >usr/lib/machine/init
	chmod 755 usr/lib/machine/init
	ostree --repo=/root/repo commit --branch=` + ostreeBranch + ` --subject="` + commitText + `" \
		--add-metadata-string=version="$2" --owner-uid=0 --owner-gid=0 /root/tree`

// Commits is a repository of ostree that the machines read over HTTP. The server ends with the test.
type Commits struct {
	URL     string
	builder *Builder
}

// NewCommits returns a repository without a commit.
func NewCommits(t *testing.T, needs *Needs) (*Commits, error) {
	builder, err := newBuildTree(t, needs)
	if err != nil {
		return nil, err
	}
	_, err = inTree(t.Context(), builder.root, `apt-get install -q -y --no-install-recommends ostree
		ostree --repo=/root/repo init --mode=archive`)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(controlPlaneAddress.String(), "0"))
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: http.FileServer(http.Dir(filepath.Join(builder.root, "root/repo")))}
	t.Cleanup(func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }()
	return &Commits{URL: "http://" + listener.Addr().String(), builder: builder}, nil
}

// Add commits an image as the newest one of the branch, and returns the version by which the agents name it. If it does
// not boot, its program `init` fails.
func (c *Commits) Add(ctx context.Context, version string, boots bool) (string, error) {
	end := map[bool]string{true: `exec mount --bind "$1/usr/lib/os-release" /usr/lib/os-release`, false: "exit 1"}[boots]
	output, err := inTree(ctx, c.builder.root, commitScript, systemName, version, end)
	checksum := strings.TrimSpace(output)
	if err == nil && len(checksum) != 64 {
		err = fmt.Errorf("ostree commit printed %q", output)
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s (%s)", version, checksum[:12]), nil
}

// MakeSysroot prepares the disk of a machine that is off, as a factory does: ostree is installed, and the newest commit
// is deployed.
func (c *Commits) MakeSysroot(ctx context.Context, m *Machine) error {
	_, err := inTree(ctx, m.Disk, `apt-get install -q -y --no-install-recommends ostree ostree-boot
		mkdir -p /sysroot `+firmwareDir+`
		ostree admin init-fs --modern /sysroot
		ostree admin os-init --sysroot=/sysroot machine
		ostree config --repo=/sysroot/ostree/repo set sysroot.bootloader none
		ostree --repo=/sysroot/ostree/repo remote add --no-gpg-verify "$1" "$2" "$3"
		ostree --repo=/sysroot/ostree/repo pull "$1" "$3"
		ostree admin deploy --sysroot=/sysroot --os=machine "$1:$3"
		ln -s sysroot/ostree /ostree
		rmdir /boot
		ln -s sysroot/boot /boot
		dpkg-divert --local --rename --add /usr/bin/ostree`, ostreeRemote, c.URL, ostreeBranch)
	if err != nil {
		return err
	}
	for path, content := range map[string]string{
		ostreeLog: "", "/etc/systemd/system/firmware.service": playedFirmwareUnit,
	} {
		if err := m.Write(path, content); err != nil {
			return err
		}
	}
	for path, content := range map[string]string{
		machinePrograms + "firmware": fmt.Sprintf(ostreeFirmware, bootAttempts), "/usr/bin/ostree": ostreeInDeployment,
	} {
		if err := m.writeAs(path, []byte(content), 0o755); err != nil {
			return err
		}
	}
	return errors.Join(m.enable("firmware", "sysinit"), m.AddUnit("mark-good", fmt.Sprintf(ostreeMarkGood, bootAttempts)))
}

// Deployments returns what ostree knows about the deployments of this machine.
func (m *Machine) Deployments(ctx context.Context) (string, error) {
	return m.Run(ctx, "ostree", "admin", "status")
}
