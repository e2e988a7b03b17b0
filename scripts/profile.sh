# Sourced by ./dev. Makes cmake/hot.profdata, which says what the release program runs most in rehearsals and drains.
# shellcheck shell=bash

profile_runs=build/profile/runs

# train NAME COMMAND…: runs the command, which writes a profile, and makes $profile_runs/NAME.text of it.
train() {
  local name=$1
  shift
  note "$name: ${*##*/}"
  LLVM_PROFILE_FILE=$PWD/$profile_runs/$name.%p.profraw "$@" >"$profile_runs/$name.log" 2>&1 || {
    tail -n 20 "$profile_runs/$name.log" >&2
    die "$1 failed: see above"
  }
  llvm-profdata-19 merge -text -o "$profile_runs/$name.text" "$profile_runs/$name".*.profraw
}

# Drains some nodes of a simulated cluster. The cluster runs in a program of the release, because only the drains are measured.
train_drain() {
  local name=$1
  shift
  rm -f "$demo_directory/kubeconfig"
  start_simulated_cluster --world "$profile_runs/fleet.json"
  train "$name" build/profile/cli/haulout drain node-000{0,1,2,3} --parallel 4 --settle 0 --ignore-daemonsets \
    --kubeconfig "$demo_directory/kubeconfig" "$@"
  kill "$demo_cluster"
}

# A rehearsal runs far more instructions than a drain. So drains count twenty times here, to become faster as well.
profile() {
  (($# == 0)) || usage_error "profile takes no arguments"
  local -a guards=(--wait-volumes --check-fit=warn --single-replica=warn --canary=30s --max-unavailable-per-controller=100%)
  demo_begin
  build_preset profile haulout rehearse_bench
  say "profile: training"
  rm -rf "$profile_runs"
  mkdir -p "$profile_runs"
  local writer=build/profile/tests/bench/rehearse_bench size
  export LLVM_PROFILE_FILE=/dev/null
  for size in "200 10" "100 30"; do
    # shellcheck disable=SC2086  # two numbers
    "$writer" --write $size >"$profile_runs/fleet.json"
    train "rehearse-${size/ /x}" build/profile/cli/haulout rehearse --all -f "$profile_runs/fleet.json"
  done
  train_drain drain
  train_drain guarded "${guards[@]}"
  (
    cd -- "$profile_runs"
    python3 "$root/scripts/hot_profile.py" rehearse-200x10.text rehearse-100x30.text drain.text guarded.text
    llvm-profdata-19 merge -o "$root/cmake/hot.profdata" rehearse-200x10.text.hot rehearse-100x30.text.hot \
      -weighted-input=20,drain.text.hot -weighted-input=20,guarded.text.hot
  )
  note "cmake/hot.profdata: $(stat -c %s cmake/hot.profdata) bytes"
}
