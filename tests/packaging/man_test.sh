#!/usr/bin/env bash
# Checks the man pages: they say what the program prints, and neither man nor mandoc finds anything to warn of.
#
#   man_test.sh PROGRAM              needs man-db and mandoc
set -euo pipefail

program=$(readlink -f -- "$1")
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../packaging/man"
python3 -B make_man.py --check "$program"
failed=""
for page in *.[18]; do
  mandoc -T lint -W warning "$page" || failed=1
  for width in 60 80 120; do
    warnings=$(MANWIDTH=$width LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)
    if [[ -n $warnings ]]; then
      printf '%s, %s columns: %s\n' "$page" "$width" "$warnings"
      failed=1
    fi
  done
done
[[ -z $failed ]]
