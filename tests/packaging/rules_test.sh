#!/usr/bin/env bash
# The alert rules: accepted by Prometheus, and firing for what they say. Needs promtool on PATH.
set -euo pipefail

here=$(cd -- "$(dirname -- "$0")" && pwd)
directory=$(mktemp -d)
trap 'rm -rf -- "$directory"' EXIT
cp "$here/../../packaging/prometheus/haulout.rules.yaml" "$here/rules_test.yaml" "$directory"
promtool check rules "$directory/haulout.rules.yaml" >&2
promtool test rules "$directory/rules_test.yaml" >&2
