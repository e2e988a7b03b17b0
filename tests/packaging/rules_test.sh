#!/usr/bin/env bash
# The alert rules: accepted by Prometheus, and firing for what they say; and what the default of --prometheus-query finds.
# Needs promtool on PATH.
set -euo pipefail

cd -- "$(dirname -- "$0")/../.."
directory=$(mktemp -d)
trap 'rm -rf -- "$directory"' EXIT
cp packaging/prometheus/haulout.rules.yaml "$directory"
# A test compares that page with the program.
query=$(sed -n 's/^| `--prometheus-query` | PromQL | `\([^`]*\)` .*/\1/p' docs/configuration.md)
if [[ -z $query ]]; then
  echo "docs/configuration.md has no default of --prometheus-query" >&2
  exit 1
fi
tests=$(<tests/packaging/rules_test.yaml)
printf '%s\n' "${tests//@default-query@/$query}" >"$directory/rules_test.yaml"
promtool check rules "$directory/haulout.rules.yaml" >&2
promtool test rules "$directory/rules_test.yaml" >&2
