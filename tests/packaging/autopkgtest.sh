#!/usr/bin/env bash
# Tests the Debian package by two programs of Debian, each in a new Debian system: piuparts installs and purges it and looks
# for what is left, and autopkgtest runs the tests in packaging/debian/tests.
#
#   autopkgtest.sh PACKAGE.deb       needs root, mmdebstrap, autopkgtest, piuparts and this machine's Debian mirror; exit
#                                    status 77: cannot run here
#
# No systemd runs in these systems. tests/packaging/deb_test.sh looks at what the maintainer scripts ask of it.
set -euo pipefail

cannot_run() {
  printf '%s\n' "$1" >&2
  exit 77
}

deb=$(readlink -f -- "$1")
tests=$(cd -- "$(dirname -- "$(readlink -f -- "$0")")/../../packaging/debian" && pwd)
((EUID == 0)) || cannot_run "root is needed for the root of a Debian system"
for program in mmdebstrap autopkgtest piuparts; do
  command -v "$program" >/dev/null || cannot_run "$program is missing"
done
if [[ -z ${HAULOUT_AUTOPKGTEST_INSIDE:-} ]]; then
  unshare --mount --pid --fork --mount-proc true 2>/dev/null || cannot_run "no namespaces can be made here"
  # The mounts below end with this namespace, and so do all processes, which piuparts looks for.
  HAULOUT_AUTOPKGTEST_INSIDE=1 exec unshare --mount --pid --fork --mount-proc -- "$0" "$deb"
fi

directory=$(mktemp -d)
trap 'cd /; umount -R "$directory" 2>/dev/null || true; rm -rf -- "$directory"' EXIT
mount -t tmpfs -o size=3g,mode=0755 haulout-autopkgtest "$directory"
cd -- "$directory"
mkdir tmp
root=$directory/root

step() { printf '   %s\n' "$1" >&2; }
# logged COMMAND…: runs the command, and prints its output if it fails.
logged() {
  local status=0
  "$@" >log 2>&1 </dev/null || status=$?
  ((status == 0)) || cat log >&2
  return "$status"
}

codename=$(. /etc/os-release && printf '%s' "$VERSION_CODENAME")
# The URL of the Debian mirror that this machine's apt uses.
mirror=$(apt-get indextargets --format '$(CREATED_BY) $(CODENAME) $(REPO_URI)' | awk -v c="$codename" '$1 == "Packages" && $2 == c {print $3; exit}')
mirror=${mirror:-http://deb.debian.org/debian}
printf 'Acquire::Languages "none";\n' >apt.conf
apt-config dump Acquire | grep -i proxy >>apt.conf || true

step "a Debian system"
TMPDIR=$directory/tmp logged mmdebstrap --quiet --variant=minbase --include=systemd,man-db --skip=cleanup/apt --aptopt="$directory/apt.conf" \
  "$codename" "$root" "$mirror" || cannot_run "mmdebstrap failed, see above"
for file in /etc/resolv.conf /etc/hosts; do [[ ! -e $file ]] || cp -L "$file" "$root$file"; done

step "piuparts: installation and purge"
logged piuparts --existing-chroot "$root" --distribution "$codename" --mirror "$mirror" --no-eatmydata --no-upgrade-test \
  --tmpdir "$directory/tmp" "$deb"

step "autopkgtest"
# What autopkgtest expects of a source package. CMake writes the control file of the real package.
mkdir -p haulout/debian
cp -R -- "$tests/tests" "$tests/changelog" haulout/debian/
{
  printf 'Source: haulout\nMaintainer: %s\n\n' "$(dpkg-deb --field "$deb" Maintainer)"
  dpkg-deb --field "$deb" Package Architecture Description
} >haulout/debian/control
mount -t proc proc "$root/proc"
logged autopkgtest --summary="$directory/summary" "$deb" ./haulout// -- chroot "$root"
ran=$(grep -cE '^[a-z-]+ +PASS' summary) || true  # autopkgtest also succeeds if it has skipped a test
wanted=$(grep -c '^Tests:' haulout/debian/tests/control)
[[ $ran == "$wanted" ]] || {
  cat log >&2
  printf 'autopkgtest: %s of %s tests have passed\n' "$ran" "$wanted" >&2
  exit 1
}
