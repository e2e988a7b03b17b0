package machines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A machine with two slots, A and B, that RAUC updates. Debian's RAUC with its D-Bus service is real, and so are the
// signed bundle, the image in it (squashfs), and the file system that is mounted from the booted slot.
//
// Played: a slot is a file instead of a partition. The unit playedFirmware is the boot loader: early at each boot it
// chooses a slot, and runs the program `init` of the slot's image. An image has only that and an os-release; the rest of
// the system is the same in all boots. If `init` fails, the machine resets, as a kernel that panics does.
const (
	slotsDir          = "/var/lib/slots"
	raucBundle        = "/var/lib/updates/stable.raucb" // --update-bundle of the agents
	raucLog           = "/var/log/rauc-handlers.log"    // the lines of raucHandler
	raucHold          = "/run/rauc-hold"                // while this file exists, no installation goes on to write
	raucCompatible    = "machine"
	bundleDescription = "a story of the tests"
)

// playedFirmware plays the boot loader and the kernel. A boot of a slot uses one of its attempts; the slot is skipped when
// none is left. RAUC reads the booted slot from /proc/cmdline, and os-release shows the version.
//
// The machine shares the loop devices with the host, and nspawn creates no nodes for them.
const playedFirmware = `#!/bin/sh
set -e
cd ` + firmwareDir + `
mknod -m 600 /dev/loop-control c 10 237
for number in $(seq 0 63); do mknod -m 600 /dev/loop$number b 7 $number; done
for slot in $(cat order); do
	left=$(cat left.$slot)
	[ "$left" -gt 0 ] || continue
	echo $((left - 1)) >left.$slot
	echo $slot >>boots
	echo "$(cat /proc/cmdline) rauc.slot=$slot" >/run/cmdline
	mount --bind /run/cmdline /proc/cmdline
	mkdir -p /run/slot
	if mount -t squashfs -o loop,ro ` + slotsDir + `/$slot.img /run/slot && /run/slot/init; then exit; fi
	exec systemctl reboot --force --force
done
`

// raucBootloader gives RAUC access to the variables of playedFirmware (bootloader=custom).
const raucBootloader = `#!/bin/sh
set -e
cd ` + firmwareDir + `
case $1 in
get-primary)
	for slot in $(cat order); do
		if [ "$(cat left.$slot)" -gt 0 ]; then echo $slot; exit; fi
	done
	exit 1 ;;
set-primary)
	echo %[1]d >left.$2
	case $2 in A) echo A B >order ;; B) echo B A >order ;; esac ;;
get-state)
	if [ "$(cat left.$2)" -gt 0 ]; then echo good; else echo bad; fi ;;
set-state)
	case $3 in good) echo %[1]d >left.$2 ;; bad) echo 0 >left.$2 ;; esac ;;
esac
`

// raucHandler runs before and after RAUC writes a bundle.
const raucHandler = `#!/bin/sh
set -e
version=$(sed -n 's/^version=//p' "$RAUC_BUNDLE_MOUNT_POINT/manifest.raucm")
case $0 in
*/pre-install)
	echo "begins to install $version" >>` + raucLog + `
	while [ -e ` + raucHold + ` ]; do sleep 0.1; done ;;
*/post-install)
	echo "has installed $version" >>` + raucLog + ` ;;
esac
`

const raucConfig = `[system]
compatible=` + raucCompatible + `
bootloader=custom
data-directory=/var/lib/rauc
[handlers]
bootloader-custom-backend=` + machinePrograms + `bootloader
pre-install=` + machinePrograms + `pre-install
post-install=` + machinePrograms + `post-install
[keyring]
path=keyring.pem
[slot.rootfs.0]
device=` + slotsDir + `/A.img
type=raw
bootname=A
[slot.rootfs.1]
device=` + slotsDir + `/B.img
type=raw
bootname=B
`

// Debian has no such unit. RAUC's manual recommends one, and the agent leaves this to the system.
const markGoodUnit = `[Unit]
Description=Mark the booted slot as good
After=multi-user.target
[Service]
Type=oneshot
ExecStart=rauc status mark-good
`

// NewBuilder returns a builder with RAUC and the key with which bundles are signed; the machines have only the certificate.
// It ends with the test.
func NewBuilder(t *testing.T, needs *Needs) (*Builder, error) {
	b, err := newBuildTree(t, needs)
	if err != nil {
		return nil, err
	}
	_, err = inTree(t.Context(), b.root, `apt-get install -q -y --no-install-recommends rauc squashfs-tools
		openssl req -x509 -newkey rsa:2048 -nodes -keyout /root/key.pem -out /root/cert.pem -subj /CN=builder -days 7`)
	return b, err
}

// Certificate returns the certificate against which the machines check bundles.
func (b *Builder) Certificate() ([]byte, error) {
	return os.ReadFile(filepath.Join(b.root, "root/cert.pem"))
}

// Image returns the image of a version. If it does not boot, its program `init` fails.
func (b *Builder) Image(ctx context.Context, version string, boots bool) ([]byte, error) {
	end := map[bool]string{true: "exec mount --bind /run/slot/os-release /usr/lib/os-release", false: "exit 1"}[boots]
	_, err := inTree(ctx, b.root, `rm -rf /root/image /root/bundle
		mkdir -p /root/image /root/bundle
		printf 'ID=machine-os\nNAME="%s"\nVERSION_ID=%s\nPRETTY_NAME="%s %s"\n' "$1" "$2" "$1" "$2" >/root/image/os-release
		printf '#!/bin/sh\n%s\n' "$3" >/root/image/init
		chmod 755 /root/image/init
		mksquashfs /root/image /root/bundle/rootfs.squashfs -all-root -no-progress`, systemName, version, end)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(b.root, "root/bundle/rootfs.squashfs"))
}

// Bundle returns a signed bundle with the image of a version.
func (b *Builder) Bundle(ctx context.Context, version string, boots bool) ([]byte, error) {
	if _, err := b.Image(ctx, version, boots); err != nil {
		return nil, err
	}
	manifest := "[update]\ncompatible=" + raucCompatible + "\nversion=" + version + "\ndescription=" + bundleDescription + "\n" +
		"[image.rootfs]\nfilename=rootfs.squashfs\n"
	if err := os.WriteFile(filepath.Join(b.root, "root/bundle/manifest.raucm"), []byte(manifest), 0o644); err != nil {
		return nil, err
	}
	_, err := inTree(ctx, b.root, `rm -f /root/out.raucb
		rauc bundle --cert=/root/cert.pem --key=/root/key.pem /root/bundle /root/out.raucb`)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(b.root, "root/out.raucb"))
}

// MakeSlots prepares the disk of a machine that is off, as a factory does: RAUC is installed, and slot A has the image
// of `version`. RAUC knows no bundle of that image. It calls unsquashfs to read the manifest of a bundle.
func (b *Builder) MakeSlots(ctx context.Context, m *Machine, version string) error {
	image, err := b.Image(ctx, version, true)
	if err != nil {
		return err
	}
	certificate, err := b.Certificate()
	if err != nil {
		return err
	}
	if _, err := inTree(ctx, m.Disk, "apt-get install -q -y --no-install-recommends rauc rauc-service squashfs-tools"); err != nil {
		return err
	}
	for path, content := range map[string]string{
		"/etc/rauc/system.conf": raucConfig, "/etc/rauc/keyring.pem": string(certificate), raucLog: "",
		firmwareDir + "/order": "A B\n", firmwareDir + "/left.A": fmt.Sprintln(bootAttempts), firmwareDir + "/left.B": "0\n",
		slotsDir + "/A.img": string(image), slotsDir + "/B.img": "",
		"/etc/systemd/system/firmware.service": playedFirmwareUnit,
	} {
		if err := m.Write(path, content); err != nil {
			return err
		}
	}
	for name, content := range map[string]string{
		"firmware": playedFirmware, "bootloader": fmt.Sprintf(raucBootloader, bootAttempts), "pre-install": raucHandler,
		"post-install": raucHandler,
	} {
		if err := m.writeAs(machinePrograms+name, []byte(content), 0o755); err != nil {
			return err
		}
	}
	return errors.Join(m.enable("firmware", "sysinit"), m.AddUnit("rauc-mark-good", markGoodUnit))
}

// Publish makes a bundle the one that the machine's agent is to install, and lets the agent look for it.
func (f *Fleet) Publish(ctx context.Context, m *Machine, bundle []byte, version string) error {
	if err := m.writeAs(raucBundle, bundle, 0o644); err != nil {
		return err
	}
	f.Line.Note(m.Name, "bundle %s is published", version)
	return f.LookAnew(ctx, m)
}

// raucStatus is the part of the answer of `rauc status` that the tests read.
type raucStatus struct {
	Booted  string `json:"booted"`
	Primary string `json:"boot_primary"`
	Slots   []map[string]struct {
		State  string `json:"state"`
		Status struct {
			Bundle struct {
				Version string `json:"version"`
			} `json:"bundle"`
		} `json:"slot_status"`
	} `json:"slots"`
}

// Rauc runs the command with which the agent asks RAUC, and returns its answer, decoded and as text.
func (m *Machine) Rauc(ctx context.Context) (status raucStatus, text string, err error) {
	// RAUC writes messages to stderr.
	text, err = m.Shell(ctx, "rauc status --detailed --output-format=json 2>/dev/null")
	if err != nil {
		return status, text, err
	}
	return status, text, json.Unmarshal([]byte(text), &status)
}

// version returns the version of the bundle in this slot; empty if there is none.
func (s raucStatus) version(slot string) string {
	for _, each := range s.Slots {
		if found, ok := each[slot]; ok {
			return found.Status.Bundle.Version
		}
	}
	return ""
}
