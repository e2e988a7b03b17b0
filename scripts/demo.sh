# Sourced by ./dev: the main job, shown on a cluster that this machine makes up.
# shellcheck shell=bash

demo_directory=""
demo_cluster=""

demo_cleanup() {
  if [[ -n $demo_cluster ]]; then
    kill "$demo_cluster" 2>/dev/null || true
    wait "$demo_cluster" 2>/dev/null || true
  fi
  [[ -z $demo_directory ]] || rm -rf -- "$demo_directory"
}

# start_cluster COMMAND…: runs it until the demo ends; it is ready when it has written $demo_directory/kubeconfig.
start_cluster() {
  local patience=600
  "$@" >"$demo_directory/log" 2>&1 </dev/null &
  demo_cluster=$!
  until [[ -s $demo_directory/kubeconfig ]]; do
    if ! kill -0 "$demo_cluster" 2>/dev/null || ((patience-- == 0)); then
      cat "$demo_directory/log" >&2
      die "the cluster did not start: $*"
    fi
    sleep 0.1
  done
}

demo() {
  local real="" began status=0
  case ${1:-} in
    "") ;;
    --real) real=1 ;;
    *) usage_error "demo: unknown argument $1" ;;
  esac
  setup
  build_release
  demo_directory=$(mktemp -d)
  trap demo_cleanup EXIT
  if [[ -n $real ]]; then
    e2e_environment || die "no control plane, no real demo (see above); ./dev demo needs none"
    say "demo: starting a real control plane with the workloads of demo/cluster.yaml"
    mkdir -p build/e2e
    go build -C tests/e2e -buildvcs=false -o "$PWD/build/e2e/demo-cluster" ./demo-cluster >&2 ||
      die "tests/e2e/demo-cluster could not be built: see above"
    start_cluster build/e2e/demo-cluster --kubeconfig "$demo_directory/kubeconfig" --world demo/cluster.yaml
  else
    say "demo: starting the simulated cluster of demo/cluster.yaml on 127.0.0.1"
    start_cluster "$release_binary" demo-cluster --listen 127.0.0.1:0 --kubeconfig "$demo_directory/kubeconfig" \
      --world demo/cluster.yaml
  fi
  local -a drain=(haulout drain node-1 --ignore-daemonsets --delete-emptydir-data --max-concurrent 5)
  say "demo: ${drain[*]}"
  began=$SECONDS
  "$release_binary" "${drain[@]:1}" --kubeconfig "$demo_directory/kubeconfig" || status=$?
  say "demo: haulout ended with exit code $status after $((SECONDS - began)) s; the cluster is stopped"
  return "$status"
}
