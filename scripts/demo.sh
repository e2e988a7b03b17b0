# Sourced by ./dev. Shows Haulout at work on a cluster that runs on this machine.
# shellcheck shell=bash

demo_directory=""
demo_processes=()

# Ends all processes of the demo and deletes its files, however the demo has ended.
demo_cleanup() {
  local process
  for process in "${demo_processes[@]}"; do kill "$process" 2>/dev/null || true; done
  for process in "${demo_processes[@]}"; do wait "$process" 2>/dev/null || true; done
  [[ -z $demo_directory ]] || rm -rf -- "$demo_directory"
}

demo_begin() {
  setup
  build_release
  demo_directory=$(mktemp -d)
  trap demo_cleanup EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
}

# start_cluster COMMAND…: runs COMMAND until the demo ends. Waits up to a minute until COMMAND has written
# $demo_directory/kubeconfig; then the cluster is ready.
start_cluster() {
  local patience=600
  "$@" >"$demo_directory/log" 2>&1 </dev/null &
  demo_cluster=$!
  demo_processes+=("$demo_cluster")
  until [[ -s $demo_directory/kubeconfig ]]; do
    if ! kill -0 "$demo_cluster" 2>/dev/null || ((patience-- == 0)); then
      cat "$demo_directory/log" >&2
      die "the cluster did not start: $*"
    fi
    sleep 0.1
  done
}

start_simulated_cluster() {
  start_cluster "$demo_binary" --listen 127.0.0.1:0 --kubeconfig "$demo_directory/kubeconfig" "$@"
}

# -- ./dev demo drain: haulout drain takes one node out of service.

demo_drain() {
  local real="" began status=0
  case ${1:-} in
    "") ;;
    --real) real=1 ;;
    *) usage_error "demo drain: unknown argument $1" ;;
  esac
  demo_begin
  if [[ -n $real ]]; then
    e2e_environment || die "no control plane, no real demo (see above); ./dev demo drain needs none"
    say "demo: starting a real control plane with the workloads of demo/cluster.yaml"
    mkdir -p build/e2e
    go build -C tests/e2e -buildvcs=false -o "$PWD/build/e2e/demo-cluster" ./demo-cluster >&2 ||
      die "tests/e2e/demo-cluster could not be built: see above"
    start_cluster build/e2e/demo-cluster --kubeconfig "$demo_directory/kubeconfig" --world demo/cluster.yaml
  else
    say "demo: starting the simulated cluster of demo/cluster.yaml on 127.0.0.1"
    start_simulated_cluster --world demo/cluster.yaml
  fi
  local -a drain=(haulout drain node-1 --ignore-daemonsets --delete-emptydir-data --max-concurrent 5)
  say "demo: ${drain[*]}"
  began=$SECONDS
  "$release_binary" "${drain[@]:1}" --kubeconfig "$demo_directory/kubeconfig" || status=$?
  say "demo: haulout ended with exit code $status after $((SECONDS - began)) s; the cluster is stopped"
  return "$status"
}

# -- ./dev demo: a fleet of nodes updates itself.

demo_fleet=(node-1 node-2 node-3)
# The times are short, since these machines reboot in seconds. All other options have the agent's defaults.
demo_agent=(--settle 2s --soak 2s --backend file --sentinel /run/reboot-required --reboot-method command)

machine_boots() {
  local root=$1
  rm -rf -- "$root/run"
  mkdir -p "$root/run" "$root/etc/haulout" "$root/proc/sys/kernel/random"
  cat /proc/sys/kernel/random/uuid >"$root/proc/sys/kernel/random/boot_id"
  printf 'ID=demo\nPRETTY_NAME="Demo OS"\n' >"$root/etc/os-release"
  rm -f -- "$root/off"
}

# machine NODE: simulates the machine of a node until SIGTERM. The machine's files are in a directory that the agent uses
# as the root of its host. The agent reboots the machine by creating the file `off` there. Then the agent is killed, as by
# a power cut, and three seconds later the machine has another boot ID, a new agent and no pending update.
machine() {
  local root=$demo_directory/machines/$1 runs=""
  trap '[[ -z $runs ]] || kill -KILL "$runs"; exit 0' TERM
  while true; do
    "$release_binary" agent --kubeconfig "$demo_directory/kubeconfig" --node-name "$1" --host-root "$root" \
      --authority serviceaccount "${demo_agent[@]}" --reboot-command "touch '$root/off'" >>"$root.log" 2>&1 </dev/null &
    runs=$!
    until [[ -e $root/off ]]; do
      kill -0 "$runs" || return 1
      sleep 0.1
    done
    kill -KILL "$runs"
    wait "$runs" || true
    sleep 3 &
    runs=$!
    wait "$runs"
    machine_boots "$root"
  done
}

demo_update() {
  local node process line status=0 began verdict=""
  local -a machines=()
  demo_begin
  for node in "${demo_fleet[@]}"; do machine_boots "$demo_directory/machines/$node"; done
  say "demo: three nodes update themselves under a workload"
  note "simulated: a cluster (demo/fleet.yaml) on 127.0.0.1, and three machines that boot"
  note "           in three seconds. After three seconds all three need a reboot."
  note "real:      an agent for each machine: haulout agent ${demo_agent[*]:0:4}"
  note "           ${demo_agent[*]:4}"
  note "           and the output that follows: haulout status -w"
  note "A judge in the API server sees every object and request, and prints at the end which promises were kept."
  printf '\n' >&2
  start_simulated_cluster --world demo/fleet.yaml --machines "$demo_directory/machines" --verdict "$demo_directory/verdict"
  began=$SECONDS
  for node in "${demo_fleet[@]}"; do
    machine "$node" 2>/dev/null &
    machines+=("$!")
    demo_processes+=("$!")
  done
  "$release_binary" status -w --kubeconfig "$demo_directory/kubeconfig" </dev/null &
  local watch=$!
  demo_processes+=("$watch")
  sleep 3
  for node in "${demo_fleet[@]}"; do echo "kernel 6.1.120 is installed" >"$demo_directory/machines/$node/run/reboot-required"; done
  until [[ -e $demo_directory/verdict ]]; do
    for process in "${machines[@]}" "$demo_cluster" "$watch"; do
      kill -0 "$process" 2>/dev/null || verdict="a process of the demo ended before the update was over"
    done
    [[ -z $verdict ]] || break
    sleep 0.2
  done
  kill -TERM "$watch" 2>/dev/null || true
  wait "$watch" 2>/dev/null || true
  kill -TERM "$demo_cluster" 2>/dev/null || true
  wait "$demo_cluster" || status=$?
  if [[ -n $verdict ]]; then
    status=1
  elif ((status == 0)); then
    verdict="every promise was kept"
  else
    verdict="A PROMISE WAS BROKEN"
  fi
  say "demo: $verdict ($((SECONDS - began)) s)"
  if [[ -e $demo_directory/verdict ]]; then
    while IFS= read -r line; do note "$line"; done <"$demo_directory/verdict"
  fi
  if ((status != 0)); then
    for node in "${demo_fleet[@]}"; do
      warn "the end of the log of the agent on $node"
      tail -n 8 "$demo_directory/machines/$node.log" >&2 || true
    done
    cat "$demo_directory/log" >&2
  fi
  return "$status"
}

demo() {
  case ${1:-} in
    "") demo_update ;;
    drain)
      (($# <= 2)) || usage_error "demo drain: unknown argument $3"
      demo_drain "${@:2}"
      ;;
    --real) usage_error "demo: only the drain runs on a real control plane: ./dev demo drain --real" ;;
    *) usage_error "demo: unknown argument $1" ;;
  esac
}
