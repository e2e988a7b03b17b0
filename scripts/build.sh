# Sourced by ./dev: configuring and building.
# shellcheck shell=bash

# build_preset PRESET TARGET…; all output on stderr.
build_preset() {
  local preset=$1
  shift
  say "build: $preset ($*)"
  mkdir -p build
  cmake --preset "$preset" >"build/$preset.configure.log" 2>&1 || {
    cat "build/$preset.configure.log" >&2
    return 1
  }
  cmake --build --preset "$preset" -j "$(jobs)" --target "$@" >&2
}

release_binary=build/release/agent/haulout

build_release() {
  build_preset release all
  [[ -x $release_binary ]] || die "the build has not made $release_binary"
}

build() {
  (($# == 0)) || usage_error "build takes no arguments"
  setup
  build_release
  printf '%s\n' "$PWD/$release_binary"
}

# GCC 12 builds this program without a warning and wrongly: configuring with it must fail and name the way out.
check_gcc_refused() {
  say "GCC 12 must be refused"
  local log
  if (($(g++ -dumpversion | cut -d. -f1) > 12)); then
    note "this machine's g++ is $(g++ -dumpversion): nothing to refuse"
    return 0
  fi
  rm -rf build/gcc-refused
  if log=$(cmake -S . -B build/gcc-refused -G Ninja -DCMAKE_CXX_COMPILER=g++ 2>&1); then
    warn "cmake accepted $(g++ --version | head -n 1)"
    return 1
  fi
  if ! grep -q "Use clang" <<<"$(tr -s ' \n' ' ' <<<"$log")"; then
    printf '%s\n' "$log" >&2
    warn "configuring failed, but not with the sentence that says what to use instead"
    return 1
  fi
}

tidy() {
  say "clang-tidy"
  build_preset dev all  # the compile commands use the precompiled headers
  run-clang-tidy-19 -p build/dev -quiet -j "$(jobs)" "^$PWD/(retry|http|k8s|drain|sim|agent)/.*\.cpp$" \
    >build/tidy.log 2>&1 || {
    grep -v -e '^\[ *[0-9]*/[0-9]*\]' -e 'warnings\? generated' build/tidy.log >&2
    return 1
  }
}
