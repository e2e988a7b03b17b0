#!/usr/bin/env bash
# Tests the systemd unit: systemd knows every setting in it, and `systemd-analyze security` gives an exposure of at most
# 2.5. Needs systemd-analyze, but no running systemd.
set -euo pipefail

unit=$(cd -- "$(dirname -- "$0")/../../packaging/systemd" && pwd)/haulout.service
directory=$(mktemp -d)
trap 'rm -rf -- "$directory"' EXIT

# Removes what refers to files that are not installed here: the program and the documentation.
copy=$directory/haulout.service
sed -e "s|^ExecStart=/usr/bin/haulout|ExecStart=$(command -v true)|" -e '/^Documentation=/d' "$unit" >"$copy"
status=0
said=$(systemd-analyze verify --recursive-errors=no "$copy" 2>&1) || status=$?
if ((status)) || [[ -n $said ]]; then
  printf 'systemd-analyze verify: exit %d\n%s\n' "$status" "$said" >&2
  exit 1
fi

# haulout-as-service runs the agent with the settings of the unit and of a drop-in, except those that would make it a
# service.
mkdir "$directory/bin"
cat >"$directory/bin/systemctl" <<END
#!/bin/sh
cat '$unit'
printf '\n# a drop-in\n[Service]\nEnvironment="HAULOUT_POOL=a b" \\\\\n  X=1\nExecStart=\nExecStart=/usr/bin/haulout agent --pool "c d"\n'
END
printf '#!/bin/sh\nprintf "%%s\\n" "$@"\n' >"$directory/bin/systemd-run"
chmod 755 "$directory"/bin/*
PATH=$directory/bin:$PATH "$(dirname -- "$unit")/../debian/haulout-as-service" --check >"$directory/asked"
fail() {
  printf 'haulout-as-service: %s\n' "$1" >&2
  cat "$directory/asked" >&2
  exit 1
}
[[ $(tail -n 1 "$directory/asked") == 'exec /usr/bin/haulout agent --pool "c d" --check' ]] || fail "another command"
for setting in ProtectHome=yes ProtectProc=invisible 'SystemCallFilter=~@privileged @resources' CapabilityBoundingSet= \
  'Environment="HAULOUT_POOL=a b"    X=1'; do
  grep -qxF -- "$setting" "$directory/asked" || fail "without $setting"
done
! grep -E '^(Type|Restart|RuntimeDirectory|WatchdogSec|ExecStart|WantedBy|After)' "$directory/asked" >&2 || fail "too much"

# systemd 252 and newer: --threshold is the exposure times ten.
systemd-analyze security --offline=true --threshold=25 --no-pager "$unit" >"$directory/security" || {
  grep -v '^✓' "$directory/security" >&2
  exit 1
}
tail -n 1 "$directory/security" >&2
