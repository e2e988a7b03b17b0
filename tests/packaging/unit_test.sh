#!/usr/bin/env bash
# The systemd unit: nothing in it that systemd does not know, and an exposure of 2.5 at most. Needs systemd-analyze, but no
# running systemd.
set -euo pipefail

unit=$(cd -- "$(dirname -- "$0")/../../packaging/systemd" && pwd)/haulout.service
directory=$(mktemp -d)
trap 'rm -rf -- "$directory"' EXIT

# What it refers to is not installed here.
copy=$directory/haulout.service
sed -e "s|^ExecStart=/usr/bin/haulout|ExecStart=$(command -v true)|" -e '/^Documentation=/d' "$unit" >"$copy"
status=0
said=$(systemd-analyze verify --recursive-errors=no "$copy" 2>&1) || status=$?
if ((status)) || [[ -n $said ]]; then
  printf 'systemd-analyze verify: exit %d\n%s\n' "$status" "$said" >&2
  exit 1
fi

# 252 and newer: --threshold is exposure times ten.
systemd-analyze security --offline=true --threshold=25 --no-pager "$unit" >"$directory/security" || {
  grep -v '^✓' "$directory/security" >&2
  exit 1
}
tail -n 1 "$directory/security" >&2
