#!/usr/bin/env bash
# Runs a command on Debian 13 (trixie), in this tree.
#
#   trixie.sh COMMAND…        needs root, namespaces, mmdebstrap and this machine's Debian mirror; exit status 77: cannot run
#                             here
#
# The system is build/trixie/root. mmdebstrap makes it at the first call, and ./dev setup installs packages in it; remove it
# for a new one. There the tree has the same path as here. Its directory build is build/trixie/build, since programs for one
# release of Debian are no use on the other. All processes of the command end with it.
set -euo pipefail

cannot_run() {
  printf '%s\n' "$1" >&2
  exit 77
}

tree=$(cd -- "$(dirname -- "$(readlink -f -- "$0")")/.." && pwd)
root=$tree/build/trixie/root
if [[ -z ${HAULOUT_TRIXIE_INSIDE:-} ]]; then
  ((EUID == 0)) || cannot_run "root is needed for the root of a Debian system"
  command -v mmdebstrap >/dev/null || cannot_run "mmdebstrap is missing"
  unshare --mount --pid --fork --mount-proc true 2>/dev/null || cannot_run "no namespaces can be made here"
  HAULOUT_TRIXIE_INSIDE=1 exec unshare --mount --pid --fork --kill-child --mount-proc -- "$0" "$@"
fi

make_root() {
  local codename mirror
  codename=$(. /etc/os-release && printf '%s' "$VERSION_CODENAME")
  # The URL of the Debian mirror that this machine's apt uses. A mirror has all releases.
  mirror=$(apt-get indextargets --format '$(CREATED_BY) $(CODENAME) $(REPO_URI)' |
    awk -v c="$codename" '$1 == "Packages" && $2 == c {print $3; exit}')
  printf 'Acquire::Languages "none";\n' >"$tree/build/trixie/apt.conf"
  apt-config dump Acquire | grep -i proxy >>"$tree/build/trixie/apt.conf" || true
  printf 'making a Debian 13 in %s with mmdebstrap\n' "$root" >&2
  rm -rf -- "$root" "$root.new"
  TMPDIR=$tree/build/trixie mmdebstrap --quiet --mode=root --variant=minbase --aptopt="$tree/build/trixie/apt.conf" \
    trixie "$root.new" "${mirror:-http://deb.debian.org/debian}" >"$tree/build/trixie/mmdebstrap.log" 2>&1 || {
    cat "$tree/build/trixie/mmdebstrap.log" >&2
    return 1
  }
  mv -- "$root.new" "$root"
}

mkdir -p -- "$tree/build/trixie/build"
[[ -e $root/etc/os-release ]] || make_root || cannot_run "mmdebstrap failed, see above"
for file in /etc/resolv.conf /etc/hosts; do [[ ! -e $file ]] || cp -L -- "$file" "$root$file"; done
mkdir -p -- "$root$tree"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 haulout-trixie "$root/tmp"
mount --bind -- "$tree" "$root$tree"
mount --bind -- "$tree/build/trixie/build" "$root$tree/build"
settings=(PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb LC_ALL=C.UTF-8)
for name in CI HAULOUT_JOBS; do [[ -z ${!name:-} ]] || settings+=("$name=${!name}"); done
exec chroot "$root" env -i -C "$tree" "${settings[@]}" "$@"
