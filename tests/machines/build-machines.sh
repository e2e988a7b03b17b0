#!/usr/bin/env bash
# Builds what the tests in this folder need besides the control plane of tests/e2e: the programs of a node (kubelet,
# containerd, its shim, ctr), the program of the workload, and the file system from which every machine is copied.
#
# Usage: build-machines.sh PACKAGE.deb [DIR]    DIR: default <root>/build/machines
#
# PACKAGE.deb is Haulout's package. Only its dependencies are read: the machines have no connection to a mirror, so the
# cache of their apt must contain these packages, and those of single tests. Needs root, Go 1.26 or newer, mmdebstrap and
# the Debian mirror of this computer. A part in DIR is built again only if its sources have changed. A first build takes
# four minutes on two cores if Go has already compiled the control plane of tests/e2e.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=$(cd -- "$here/../.." && pwd)
deb=$(readlink -f -- "$1")
out=${2:-$root/build/machines}

# The packages of every machine. systemd, logind, D-Bus, polkit and journald are what the agent meets on a real node;
# runc and the CNI plugins run its pods; curl is for the package's hook `notify`; the others are tools of the kubelet and of
# the tests.
packages=(
  systemd systemd-sysv dbus libpam-systemd polkitd apt
  runc containernetworking-plugins iptables conntrack kmod
  iproute2 procps mount ca-certificates curl tzdata faketime
)

# The packages that only single tests install: another program that installs updates, and tools that write images.
later=(unattended-upgrades needrestart rauc rauc-service squashfs-tools ostree ostree-boot)

say() { printf 'machines: %s\n' "$*" >&2; }

# Arguments: program, module folder, package, environment, tags. Does not build a program that is newer than its go.mod.
build() {
  local program=$out/bin/$1 folder=$2
  if [[ -x $program && ! $folder/go.mod -nt $program ]]; then return; fi
  say "building $1"
  (cd "$folder" && env $4 go build -tags "${5:-}" -ldflags '-s -w' -o "$program" "$3")
  touch "$program"
}

programs() {
  # Leaves out storage drivers that the machines do not use and that need headers of C libraries.
  local unused="no_btrfs no_devmapper no_zfs"
  mkdir -p "$out/bin"
  for program in containerd containerd-shim-runc-v2 ctr; do
    build "$program" "$here/containerd" "github.com/containerd/containerd/v2/cmd/$program" CGO_ENABLED=0 "$unused"
  done
  # Uses the settings of the control plane, so that Go's cache already has its packages.
  build kubelet "$root/tests/e2e" k8s.io/kubernetes/cmd/kubelet GOTOOLCHAIN=local
  # These programs are part of this folder. go build rebuilds them only if their sources have changed.
  (cd "$here" && CGO_ENABLED=0 GOTOOLCHAIN=local go build -o "$out/bin/workload" ./workload)
  (cd "$here" && CGO_ENABLED=0 GOTOOLCHAIN=local go build -o "$out/bin/runc" ./runc-without-limits)
}

# The base tree. Its machine-id is empty, so that every copy gets its own at the first boot.
base() {
  local depends key mirror codename listing
  codename=$(. /etc/os-release && printf '%s' "$VERSION_CODENAME")
  mirror=$(apt-get indextargets --format '$(CREATED_BY) $(CODENAME) $(REPO_URI)' |
    awk -v c="$codename" '$1 == "Packages" && $2 == c {print $3; exit}')
  depends=$(dpkg-deb --field "$deb" Depends | sed 's/([^)]*)//g; s/|[^,]*//g; s/,/ /g')
  listing="$codename ${packages[*]} ${later[*]} $depends $(sed -n '/^base()/,/^}/p' "${BASH_SOURCE[0]}")"
  key=$(sha256sum <<<"$listing" | cut -d' ' -f1)
  if [[ -e $out/base/etc/os-release && $(cat "$out/base.key" 2>/dev/null) == "$key" ]]; then return; fi
  say "making the base file system with mmdebstrap"
  rm -rf "$out/base" "$out/base.key"
  # mmdebstrap writes its temporary files to a directory of its own.
  mkdir -p "$out/tmp"
  TMPDIR=$out/tmp mmdebstrap --quiet --variant=minbase --skip=cleanup/apt,cleanup/reproducible \
    --include="$(IFS=,; printf '%s' "${packages[*]}")" \
    --customize-hook="chroot \"\$1\" apt-get install -q -y -d --no-install-recommends $depends ${later[*]}" \
    --customize-hook='rm -f "$1/etc/hostname" "$1/etc/resolv.conf"; : >"$1/etc/machine-id"' \
    "$codename" "$out/base" ${mirror:+"$mirror"} >"$out/base.log" 2>&1 || {
    tail -n 30 "$out/base.log" >&2
    return 1
  }
  printf '%s\n' "$key" >"$out/base.key"
}

# Runs both at the same time: mmdebstrap mostly waits for the mirror and the disk, and the compiler uses the processor.
base &
made=$!
trap wait EXIT
programs
wait "$made"
say "programs and base file system are in $out"
