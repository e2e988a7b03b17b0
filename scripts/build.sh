# Sourced by ./dev. Configures and builds.
# shellcheck shell=bash

# build_preset PRESET TARGET…: configures and builds; all output goes to stderr.
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

release_binary=build/release/cli/haulout
demo_binary=build/release/demo/haulout-demo

build_release() {
  build_preset release all
  [[ -x $release_binary ]] || die "the build has not made $release_binary"
}

arm64_binary=build/release-arm64/cli/haulout

# build_for_arm64 PRESET TARGET…: builds for arm64 on this machine, whatever its architecture is. The programs that write the
# packages need the Debian packages for arm64, too: ca-certificates is for the container image.
build_for_arm64() {
  say "build: Debian packages for arm64 in build/arm64"
  python3 -B packaging/cross/make_root.py --arch arm64 --output build/arm64 \
    "${library_packages[@]}" "${test_library_packages[@]}" "libstdc++-$(g++ -dumpversion | cut -d. -f1)-dev" ca-certificates >&2
  build_preset "$@"
}

build_arm64() { build_for_arm64 release-arm64 haulout; }

build() {
  (($# == 0)) || usage_error "build takes no arguments"
  setup
  build_release
  printf '%s\n' "$PWD/$release_binary"
}

# GCC 12 miscompiles this program without a warning. So configuring with it must fail, with an error that names the remedy.
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
    warn "configuring failed, but not with the message that says what to use instead"
    return 1
  fi
}

tidy_packages=(libclang-19-dev llvm-19-dev)  # to build the clang-tidy plugin tests/lint/own_code.cpp

# Checks that clang-tidy with the plugin ($1) finds each mistake of the sample in the line of the mistake, and no others.
tidy_notices() {
  local sample=tests/lint/tidy_sample.cpp named found
  named=$(grep -noP '(?<=// )[a-z0-9]+(-[a-z0-9]+)+$' "$sample" | sort)
  found=$({ clang-tidy-19 "--load=$1" -quiet "$sample" -- -std=c++20 2>/dev/null || true; } |
    sed -nE 's/.*tidy_sample\.cpp:([0-9]+):.*\[([a-z0-9-]+),-warnings-as-errors\]$/\1:\2/p' | sort)
  [[ -n $named && $named == "$found" ]] && return
  warn "clang-tidy does not find what $sample names (<), or finds something else (>):"
  diff <(printf '%s\n' "$named") <(printf '%s\n' "$found") >&2
  return 1
}

tidy() {
  say "clang-tidy"
  local plugin=$PWD/build/own_code.so
  build_preset dev house_pch  # the compile commands use this precompiled header
  clang++-19 -std=c++17 -O1 -fPIC -fno-rtti -shared -isystem "$(llvm-config-19 --includedir)" tests/lint/own_code.cpp \
    -o "$plugin" >&2
  tidy_notices "$plugin"
  run-clang-tidy-19 -load "$plugin" -p build/dev -quiet -j "$(jobs)" "^$PWD/(base|retry|http|k8s|placement|drain|agent|sim|rehearse|audit|cli|demo)/.*\.cpp$" \
    >build/tidy.log 2>&1 || {
    grep -v -e '^\[ *[0-9]*/[0-9]*\]' -e 'warnings\? generated' build/tidy.log >&2
    return 1
  }
}
