# Sourced by ./dev. Fuzzing: each target has its initial inputs in tests/fuzz/corpus and writes what it finds to build/fuzz.
# shellcheck shell=bash

fuzz_names() { (cd tests/fuzz/corpus && printf '%s\n' *); }

# The directory for new inputs, and libFuzzer's seed. 0 means another seed in each run.
fuzz_corpus=build/fuzz/corpus
fuzz_seed=0

# fuzz_one TARGET SECONDS: fuzzes one target and prints one line about it. Fails if an input broke something.
fuzz_one() {
  local target=$1 seconds=$2 log=build/fuzz/$1.log status=0 runs
  mkdir -p "$fuzz_corpus/$target" build/fuzz/found
  build/asan-ubsan/tests/fuzz/fuzz "$target" "$fuzz_corpus/$target" "tests/fuzz/corpus/$target" -seed="$fuzz_seed" \
    -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
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

# fuzz_some SECONDS TARGET…: fuzzes the targets one after the other and marks those that fail.
fuzz_some() {
  local seconds=$1 target
  shift
  for target in "$@"; do
    fuzz_one "$target" "$seconds" || touch "build/fuzz/failed/$target"
  done
}

# fuzz_all SECONDS TARGET…: fuzzes two targets at a time. Fails if an input broke one of them.
fuzz_all() {
  local seconds=$1 half=$((($# - 1) / 2)) pid
  shift
  export UBSAN_OPTIONS=print_stacktrace=1
  ASAN_SYMBOLIZER_PATH=$(command -v llvm-symbolizer-19 || true)
  export ASAN_SYMBOLIZER_PATH
  rm -rf build/fuzz/failed
  mkdir -p build/fuzz/failed
  fuzz_some "$seconds" "${@:1:half}" &
  pid=$!
  fuzz_some "$seconds" "${@:half+1}"
  wait "$pid"
  [[ -z $(find build/fuzz/failed -type f) ]]
}

# Starts from the corpora of the tree and a fixed seed, so that a run is nearly the same each time. A failure then belongs
# to the change that causes it, and does not appear by chance in the test of an unrelated change.
fuzz_the_same() {
  build_preset asan-ubsan fuzz
  say "fuzz: 30 s for each target, from the same seed"
  fuzz_seed=1
  fuzz_corpus=build/fuzz/fresh
  rm -rf "$fuzz_corpus"
  local names=()
  mapfile -t names < <(fuzz_names)
  fuzz_all 30 "${names[@]}"
}

fuzz() {
  local seconds=60 names=()
  while (($#)); do
    case $1 in
      --time)
        [[ ${2:-} =~ ^([0-9]+)([smh]?)$ ]] || usage_error "fuzz: --time needs a duration: 30s, 10m, 1h"
        seconds=${BASH_REMATCH[1]}
        case ${BASH_REMATCH[2]} in
          m) seconds=$((seconds * 60)) ;;
          h) seconds=$((seconds * 3600)) ;;
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
  say "fuzz: $seconds s each; seeds in tests/fuzz/corpus, inputs that find a defect in build/fuzz/found"
  fuzz_all "$seconds" "${names[@]}"
}
