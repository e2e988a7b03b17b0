#!/usr/bin/env bash
# Tests the Debian package in a new Debian system: it is installed, checked, upgraded, removed and purged.
#
#   deb_test.sh PACKAGE.deb          needs root, debootstrap and this machine's Debian mirror; exit status 77: cannot run here
#
# No systemd runs in that system. A script in place of systemctl records its arguments and executes the commands that
# need no running systemd. So the test sees which units the maintainer scripts enable and start, and that they ask
# policy-rc.d.
set -euo pipefail

cannot_run() {
  printf '%s\n' "$1" >&2
  exit 77
}

deb=$(readlink -f -- "$1")
((EUID == 0)) || cannot_run "root is needed for a debootstrap root"
command -v debootstrap >/dev/null || cannot_run "debootstrap is missing"
if [[ -z ${HAULOUT_DEB_TEST_INSIDE:-} ]]; then
  unshare --mount true 2>/dev/null || cannot_run "no mount namespace can be made here"
  # The mounts below end with this namespace.
  HAULOUT_DEB_TEST_INSIDE=1 exec unshare --mount -- "$0" "$deb"
fi

directory=$(mktemp -d)
trap 'umount -R "$directory" 2>/dev/null || true; rm -rf -- "$directory"' EXIT
mount -t tmpfs -o size=2g,mode=0755 haulout-deb-test "$directory"
root=$directory/root

codename=$(. /etc/os-release && printf '%s' "$VERSION_CODENAME")
# The URL of the Debian mirror that this machine's apt uses.
mirror=$(apt-get indextargets --format '$(CREATED_BY) $(CODENAME) $(REPO_URI)' | awk -v c="$codename" '$1 == "Packages" && $2 == c {print $3; exit}')
debootstrap --variant=minbase --include=systemd "$codename" "$root" ${mirror:+"$mirror"} >"$directory/log" 2>&1 || {
  tail -n 20 "$directory/log" >&2
  cannot_run "debootstrap failed, see above"
}
mount -t proc proc "$root/proc"
mkdir -p "$root/run/systemd/system" "$root/opt"
for file in /etc/resolv.conf /etc/hosts; do [[ ! -e $file ]] || cp -L "$file" "$root$file"; done
apt-config dump Acquire | grep -i proxy >"$root/etc/apt/apt.conf.d/99proxy" || true

in_root() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }
apt() { in_root apt-get -q -y --no-install-recommends "$@" >"$directory/log" 2>&1 || { tail -n 30 "$directory/log" >&2; fail "apt-get $*"; }; }
fail() {
  printf 'deb_test: FAILED: %s\n' "$1" >&2
  [[ ! -s $root/var/log/systemctl ]] || sed 's/^/  systemctl /' "$root/var/log/systemctl" >&2
  exit 1
}
step() { printf '   %s\n' "$1" >&2; }

mv "$root/usr/bin/systemctl" "$root/usr/bin/systemctl.real"
cat >"$root/usr/bin/systemctl" <<'END'
#!/bin/sh
echo "$@" >>/var/log/systemctl
case "$*" in *is-active*) [ ! -e /opt/not-running ] || exit 3 ;; esac
case "$*" in *"start haulout"*) [ ! -e /opt/does-not-start ] || exit 1 ;; esac
case $1 in cat) cat "/usr/lib/systemd/system/$2" ;; esac
case $1 in --root=*) exec systemctl.real "$@" ;; esac
END
cat >"$root/usr/sbin/policy-rc.d" <<'END'
#!/bin/sh
echo "$@" >>/var/log/policy-rc.d
[ -e /opt/may-start ] || exit 101
END
rm "$root/usr/bin/journalctl" "$root/usr/bin/systemd-run"  # replaced in place: maintainer scripts get their PATH from apt
cat >"$root/usr/bin/journalctl" <<'END'
#!/bin/sh
echo "no kubelet.conf yet"
END
cat >"$root/usr/bin/systemd-run" <<'END'
#!/bin/sh
echo "$@" >>/var/log/systemd-run
exit 1
END
chmod 755 "$root"/usr/bin/{systemctl,journalctl,systemd-run} "$root/usr/sbin/policy-rc.d"
told() { grep -qE -- "$1" "$root/var/log/systemctl" 2>/dev/null; }
wanted=$root/etc/systemd/system/multi-user.target.wants/haulout.service

# Makes a second version of the package, for the upgrade.
dpkg-deb --raw-extract "$deb" "$directory/next"
version=$(dpkg-deb --field "$deb" Version)
sed -i "s/^Version: .*/Version: $version+next/" "$directory/next/DEBIAN/control"
dpkg-deb --build "$directory/next" "$root/opt/next.deb" >/dev/null
cp "$deb" "$root/opt/haulout.deb"

step "install, where policy-rc.d lets nothing start"
apt update
apt install /opt/haulout.deb
[[ $(in_root haulout version) == *"$version"* ]] || fail "haulout version does not say $version"
[[ $(in_root kubectl-haulout version) == *"$version"* ]] || fail "kubectl-haulout does not run"
for completion in bash-completion/completions/haulout zsh/vendor-completions/_haulout fish/vendor_completions.d/haulout.fish; do
  [[ $(<"$root/usr/share/$completion") == *haulout* ]] || fail "/usr/share/$completion is not there"
done
[[ -x $root/usr/share/haulout/hooks/notify && -f $root/usr/share/haulout/notify.conf ]] || fail "the hook notify is not there"
[[ ! -e $root/etc/haulout/hooks.d && ! -e $root/etc/haulout/notify.conf ]] || fail "the hook notify is on by default"
bash -n "$root/usr/share/bash-completion/completions/haulout" || fail "bash cannot read its completion"
[[ -L $wanted ]] || fail "the service is not enabled"
grep -q haulout "$root/var/log/policy-rc.d" || fail "policy-rc.d was not asked"
! told '(^| )(start|restart) haulout' || fail "the service was started against policy-rc.d"

step "man finds a page for each command"
apt install man-db
commands=$(in_root haulout help | sed -n '/^Commands:$/,/^$/s/^  \([a-z-]\+\) .*/haulout-\1/p')
[[ $commands == *haulout-drain* && $commands == *haulout-agent* ]] || fail "haulout help lists no commands: $commands"
for page in haulout kubectl-haulout haulout-as-service $commands; do
  file=$(in_root man --where "$page") || fail "there is no man page $page"
  [[ $(in_root man --local-file "$file") == *"$page - "* ]] || fail "man does not show $file"
done

if in_root haulout --help | grep -qE '^ +agent\b'; then
  step "haulout agent --check"
  mkdir -p "$root/host/proc/sys/kernel/random" "$root/host/etc" "$root/host/run"
  cp "$root/proc/sys/kernel/random/boot_id" "$root/host/proc/sys/kernel/random/"
  cp -L "$root/etc/os-release" "$root/host/etc/"
  status=0
  in_root haulout agent --check --host-root /host --max-unavailable nonsense 2>/dev/null || status=$?
  ((status == 2)) || fail "--check ends with $status for a bad configuration, not with 2"
  status=0
  in_root haulout agent --check --host-root /host --slots none >"$directory/check" 2>&1 || status=$?
  # There is no API server, and --check must report that. But everything else that the agent needs must be there.
  ((status == 1 || status == 3)) || fail "--check ends with $status without an API server: $(cat "$directory/check")"
  grep -q '^ok  *config  *the configuration is valid$' "$directory/check" || fail "--check does not say that the configuration is valid"
fi

step "upgrade: the administrator's configuration stays, the agent is restarted"
echo 'pool: mine' >>"$root/etc/haulout/config.yaml"
touch "$root/opt/may-start"
: >"$root/var/log/systemctl"
apt install /opt/next.deb
[[ $(in_root dpkg-query -W -f '${Version}' haulout) == "$version+next" ]] || fail "it was not upgraded"
grep -q '^pool: mine' "$root/etc/haulout/config.yaml" || fail "the configuration was overwritten"
[[ -L $wanted ]] || fail "the service is no longer enabled"
told '(^| )restart haulout' || fail "the service was not restarted"
! told '(^| )stop haulout' || fail "the service was stopped during the upgrade"

step "a service that does not start: the reason is printed, and the package is installed"
touch "$root/opt/does-not-start"
apt install --reinstall /opt/next.deb
rm "$root/opt/does-not-start"
grep -q "no kubelet.conf yet" "$directory/log" || fail "nobody says why the service has not started"

step "upgrade again: what the administrator has disabled stays so"
rm "$wanted"
apt install --allow-downgrades /opt/haulout.deb
[[ ! -e $wanted ]] || fail "the service was enabled again"

step "remove: the agent is stopped, and gives up though it did not run; the configuration stays"
: >"$root/var/log/systemctl"
touch "$root/opt/not-running"
apt remove haulout
told '(^| )stop haulout' || fail "the service was not stopped"
told '(^| )reset-failed haulout' || fail "a service that had failed stays in systemctl --failed"
grep -q -- "agent --release$" "$root/var/log/systemd-run" || fail "it was not given up as the service runs"
grep -q "could not release this node" "$directory/log" || fail "without an API server nobody says that nothing was given up"
[[ ! -e $root/usr/bin/haulout && ! -e $root/usr/lib/systemd/system/haulout.service ]] || fail "something is left"
[[ -e $root/etc/haulout/config.yaml ]] || fail "the configuration has gone"

step "purge: nothing is left, also not the secrets of the hook notify; what else is a hook stays"
apt install /opt/haulout.deb
hooks=$root/etc/haulout/hooks.d
mkdir -p "$hooks"/{before-drain,after-boot} "$root/etc/haulout/notify.d"
ln -s /usr/share/haulout/hooks/notify "$hooks/before-drain/10-notify"
ln -s /usr/share/haulout/hooks/notify "$hooks/after-boot/90-notify"
printf '#!/bin/sh\n' >"$hooks/after-boot/50-mine"
install -m 600 "$root/usr/share/haulout/notify.conf" "$root/etc/haulout/notify.conf"
install -m 600 "$root/usr/share/haulout/notify.conf" "$root/etc/haulout/notify.d/more.conf"
apt purge haulout
left=$(cd "$root/etc/haulout" && find . -type f -o -type l)
[[ $left == ./hooks.d/after-boot/50-mine ]] || fail "after a purge this is in /etc/haulout: $left"
rm -r "$root/etc/haulout"
apt install /opt/haulout.deb
mkdir -p "$hooks/before-drain" "$root/opt/haulout-targets"
ln -s /opt/haulout-targets "$root/etc/haulout/notify.d"
ln -s /usr/share/haulout/hooks/notify "$hooks/before-drain/10-notify"
apt purge haulout
[[ -L $root/etc/haulout/notify.d ]] || fail "a link of the administrator has gone"
rm "$root/etc/haulout/notify.d"
rmdir "$root/etc/haulout"
left=$(cd "$root" && find . -xdev -iname '*haulout*' ! -path './opt/*' ! -path './var/log/*')
[[ -z $left ]] || fail "this is left: $left"
