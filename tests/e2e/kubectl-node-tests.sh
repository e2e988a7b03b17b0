#!/usr/bin/env bash
# Runs kubectl's own tests of its node commands: the functions of test/cmd/node-management.sh, read from the Go module
# of Kubernetes.
#
# Usage: kubectl-node-tests.sh MODULE URL CHECKS
#   MODULE   directory of the module k8s.io/kubernetes
#   URL      of the API server, which has one Node: 127.0.0.1, without a kubelet
#   CHECKS   file to write: a line "LINE pass|FAIL WHAT" for each check, in order; LINE is its line in the script
#
# Runs the `kubectl` that is found in PATH. A check that fails does not end the run. The last line of CHECKS shows that
# the run came to its end.
set -o nounset
module=$1 url=$2 checks=$3

# The helper functions call tput to print in colour.
tput() { :; }
source "$module/hack/lib/test.sh"
source "$module/test/cmd/node-management.sh"
set +o errexit

kube_flags=(-s "$url" --insecure-skip-tls-verify)
id_field=.metadata.name

kube::log::status() { echo "$*"; }
create_and_use_new_namespace() {
  local name="nodes-$$"
  kubectl create namespace "$name"
  kubectl config set-context --current --namespace="$name"
  # Until the ServiceAccount exists, the server refuses pods.
  until kubectl get serviceaccount default >/dev/null 2>&1; do sleep 0.1; done
}

# Each check of kubectl's tests is replaced by a function that runs it and calls note(), which writes whether the check
# passed. note() returns 0, so the run continues after a check that fails. PASSED is the check's exit status.
note() { # LINE PASSED WHAT...
  local line=$1 verdict=FAIL
  [[ $2 != 0 ]] || verdict=pass
  shift 2
  echo "$line $verdict ${*//$'\n'/ }" >>"$checks"
}
for check in get_object_assert if_has_string if_has_not_string; do
  eval "original_$(declare -f "kube::test::$check")"
  eval "kube::test::$check() {
    original_kube::test::$check \"\$@\"
    note \"\${BASH_LINENO[0]}\" \$? $check \"\${@: -2}\"
  }"
done

: >"$checks"
# The list "&& true" keeps errexit, which the tests set, from ending this script when they fail.
run_cluster_management_tests && true
note 0 0 end
