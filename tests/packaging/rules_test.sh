#!/usr/bin/env bash
# Tests that Prometheus accepts the alert rules, that each alert fires for the condition that it describes, and what the
# default of --prometheus-query finds. Needs promtool in PATH.
set -euo pipefail

cd -- "$(dirname -- "$0")/../.."
directory=$(mktemp -d)
trap 'rm -rf -- "$directory"' EXIT
cp packaging/prometheus/haulout.rules.yaml "$directory"
# docs/configuration.md has the default. Another test checks that the page has the same defaults as the program.
query=$(sed -n 's/^| `--prometheus-query` | PromQL | `\([^`]*\)` .*/\1/p' docs/configuration.md)
if [[ -z $query ]]; then
  echo "docs/configuration.md has no default of --prometheus-query" >&2
  exit 1
fi
tests=$(<tests/packaging/rules_test.yaml)
printf '%s\n' "${tests//@default-query@/$query}" >"$directory/rules_test.yaml"
promtool check rules "$directory/haulout.rules.yaml" >&2
promtool test rules "$directory/rules_test.yaml" >&2
