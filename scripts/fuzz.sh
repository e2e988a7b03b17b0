# Sourced by ./dev. Fuzzing: each target has its initial inputs in tests/fuzz/corpus and writes what it finds to build/fuzz.
# shellcheck shell=bash

fuzz_names() { (cd tests/fuzz/corpus && printf '%s\n' *); }

# The directory for new inputs, and libFuzzer's seed. 0 means another seed in each run.
fuzz_corpus=build/fuzz/corpus
fuzz_seed=0

# An input that takes longer than so many seconds is a defect.
fuzz_timeout=10

# What comes before the program: nothing, or the command that runs it at the same addresses each time.
fuzz_prefix=()

# fuzz_one TARGET LIMIT: fuzzes one target until libFuzzer's argument LIMIT ends it (-runs=N or -max_total_time=SECONDS),
# and prints one line about it. Fails if an input broke something. The inputs of the tree are given in the order of their
# names, because libFuzzer reads a directory in the order in which the file system has it.
fuzz_one() {
  local target=$1 limit=$2 log=build/fuzz/$1.log status=0 runs
  mkdir -p "$fuzz_corpus/$target" build/fuzz/found
  find "tests/fuzz/corpus/$target" -type f | LC_ALL=C sort | paste -sd, >"build/fuzz/$target.inputs"
  "${fuzz_prefix[@]}" build/asan-ubsan/tests/fuzz/fuzz "$target" "$fuzz_corpus/$target" \
    -seed_inputs="@build/fuzz/$target.inputs" -seed="$fuzz_seed" \
    "$limit" -timeout="$fuzz_timeout" -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/found/$target-" >"$log" 2>&1 || status=$?
  runs=$(awk '/^stat::number_of_executed_units/ {print $2}' "$log")
  if ((status == 0)); then
    note "$(printf '%-18s %9d runs' "$target" "${runs:-0}")"
    return 0
  fi
  warn "$target: found something after ${runs:-?} runs (whole log: $log)"
  tail -n 40 "$log" >&2
  return 1
}

# fuzz_some LIMIT TARGET…: fuzzes the targets one after the other and marks those that fail. LIMIT is a function that
# prints the limit of a target for fuzz_one.
fuzz_some() {
  local limit=$1 target
  shift
  for target in "$@"; do
    fuzz_one "$target" "$("$limit" "$target")" || touch "build/fuzz/failed/$target"
  done
}

# fuzz_all LIMIT TARGET…: fuzzes two targets at a time, each as fuzz_some does. Fails if an input broke one of them.
fuzz_all() {
  local limit=$1 half=$((($# - 1) / 2)) pid
  shift
  export UBSAN_OPTIONS=print_stacktrace=1
  ASAN_SYMBOLIZER_PATH=$(command -v llvm-symbolizer-19 || true)
  export ASAN_SYMBOLIZER_PATH
  rm -rf build/fuzz/failed
  mkdir -p build/fuzz/failed
  fuzz_some "$limit" "${@:1:half}" &
  pid=$!
  fuzz_some "$limit" "${@:half+1}"
  wait "$pid"
  [[ -z $(find build/fuzz/failed -type f) ]]
}

# The number of inputs for each target in fuzz_the_same(): 200,000, and fewer for targets that would need more than some
# fifteen seconds for them.
declare -A fuzz_runs=(
  [window]=10000 [kured]=10000 [agent_config]=20000 [snapshot]=20000 [audit]=20000
  [image_tools]=50000 [kubeconfig]=50000 [record]=50000 [yaml]=50000
  [exec_credential]=100000 [objects]=100000 [pause]=100000
)
fixed_runs() { echo "-runs=${fuzz_runs[$1]:-200000}"; }

# Starts from the corpora of the tree and a fixed seed, and tries a fixed number of inputs, on a slow machine as on a fast one.
# A failure then mostly belongs to the change that causes it, and rarely appears by chance in the test of an unrelated change.
# libFuzzer's choices depend on addresses, too, so the program gets the same addresses each time, if the machine allows that
# (some container engines do not). Most targets then try the same inputs in each run of one build; a few do not quite. As a
# step of ./dev test, counts the targets and names those that failed.
fuzz_the_same() {
  build_preset asan-ubsan fuzz
  say "fuzz: a fixed number of inputs for each target, from the same seed"
  fuzz_seed=1
  fuzz_corpus=build/fuzz/fresh
  fuzz_timeout=60  # in seconds of the clock, and the machine does other work meanwhile
  if setarch -R true 2>/dev/null; then fuzz_prefix=(setarch -R); fi
  rm -rf "$fuzz_corpus"
  local names=() status=0 failed=()
  mapfile -t names < <(fuzz_names)
  fuzz_all fixed_runs "${names[@]}" || status=$?
  mapfile -t failed < <(find build/fuzz/failed -type f -printf '%f\n' | sort)
  {
    echo "$((${#names[@]} - ${#failed[@]})) ${#failed[@]}"
    if ((${#failed[@]})); then printf '%s\n' "${failed[@]}"; fi
  } >"$counts"
  return "$status"
}

seconds_each() { echo "-max_total_time=$fuzz_seconds"; }

fuzz() {
  fuzz_seconds=60
  local names=()
  while (($#)); do
    case $1 in
      --time)
        [[ ${2:-} =~ ^([0-9]+)([smh]?)$ ]] || usage_error "fuzz: --time needs a duration: 30s, 10m, 1h"
        fuzz_seconds=${BASH_REMATCH[1]}
        case ${BASH_REMATCH[2]} in
          m) fuzz_seconds=$((fuzz_seconds * 60)) ;;
          h) fuzz_seconds=$((fuzz_seconds * 3600)) ;;
        esac
        shift 2
        ;;
      *)
        [[ -d tests/fuzz/corpus/$1 ]] || usage_error "fuzz: there is no target $1; there are: $(fuzz_names | tr '\n' ' ')"
        names+=("$1")
        shift
        ;;
    esac
  done
  ((${#names[@]})) || mapfile -t names < <(fuzz_names)
  setup
  build_preset asan-ubsan fuzz
  say "fuzz: $fuzz_seconds s each; seeds in tests/fuzz/corpus, inputs that find a defect in build/fuzz/found"
  fuzz_all seconds_each "${names[@]}"
}
