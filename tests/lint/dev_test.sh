#!/usr/bin/env bash
# Tests ./dev as a program: usage errors, which packages the setup asks for, and that it never removes one. Scripts of this
# test replace apt-get and apt-cache.
set -euo pipefail
root=$(cd -- "$(dirname -- "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT
failures=0

# check NAME EXPECTED-STATUS PATTERN COMMAND…: runs the command. Its output must contain PATTERN, or, if that begins
# with "!", must not contain the rest of it.
check() {
  local name=$1 expected=$2 pattern=$3 status=0 output
  shift 3
  output=$("$@" 2>&1) || status=$?
  local good=1
  ((status == expected)) || good=0
  if [[ $pattern == !* ]]; then
    [[ $output != *"${pattern:1}"* ]] || good=0
  else
    [[ $output == *"$pattern"* ]] || good=0
  fi
  ((good)) && return
  printf 'FAILED: %s: exit code %s (expected %s), output (expected %s):\n%s\n' "$name" "$status" "$expected" "$pattern" "$output"
  failures=$((failures + 1))
}

check "help" 0 "usage: ./dev COMMAND" "$root/dev"
check "unknown command" 2 "did you mean './dev build'" "$root/dev" buildd
check "unknown argument" 2 "unknown argument --reel" "$root/dev" demo --reel
check "what only the drain can" 2 "./dev demo drain --real" "$root/dev" demo --real
check "unknown argument of the drain" 2 "unknown argument --reel" "$root/dev" demo drain --reel
check "sim without a number" 2 "needs a number" "$root/dev" sim --seeds many
check "sim without anything" 2 "--seeds N or --seed K" "$root/dev" sim
check "hostile without anything" 2 "--seeds N or --seed K" "$root/dev" hostile
check "release without an address" 2 "release needs the address" "$root/dev" release 0.2.0
check "from another directory" 0 "usage: ./dev COMMAND" env -C / "$root/dev" help

# A machine on which no package is installed. `apt-get -s` prints the file $scratch/plan. apt-cache knows the packages whose
# names are files in $scratch/known; `apt-get update` makes them known.
cat >"$scratch/dpkg-query" <<'STUB'
#!/bin/sh
exit 1
STUB
cat >"$scratch/apt-get" <<STUB
#!/bin/sh
case " \$* " in
  *" -s "*) cat "$scratch/plan"; [ ! -e "$scratch/no-way" ] ;;
  *" update "*) echo updated >>"$scratch/calls"; rm -f "$scratch/no-way"; [ ! -e "$scratch/new" ] || mv "$scratch/new" "$scratch/known" ;;
  *) echo "\$*" >>"$scratch/calls" ;;
esac
STUB
cat >"$scratch/apt-cache" <<STUB
#!/bin/sh
for package; do :; done
[ -e "$scratch/known/\$package" ] || exit 100
echo "Package: \$package"
STUB
mkdir "$scratch/known"
touch "$scratch/known/libboost1.81-dev"
printf '#!/bin/sh\nexec "$@"\n' >"$scratch/sudo"
chmod +x "$scratch/dpkg-query" "$scratch/apt-get" "$scratch/apt-cache" "$scratch/sudo"
setup() { env -u HAULOUT_SKIP_SETUP PATH="$scratch:$PATH" "$root/dev" setup; }

printf 'Inst clang-19 (1)\nConf clang-19 (1)\n' >"$scratch/plan"
check "setup installs" 0 "clang-19" setup
check "setup asks for what it names, in one go" 0 "install -y -q --no-install-recommends clang-19" cat "$scratch/calls"
check "setup does not update without need" 0 "!updated" cat "$scratch/calls"
check "setup installs Debian 12's Boost" 0 "libboost1.81-dev libboost-json1.81-dev" cat "$scratch/calls"
check "and no other" 0 "!1.83" cat "$scratch/calls"

# Debian 13, first with lists of packages, then without.
rm "$scratch/calls" "$scratch/known/libboost1.81-dev"
touch "$scratch/known/libboost1.83-dev"
check "setup knows Debian 13" 0 "libboost1.83-dev" setup
check "setup installs Debian 13's Boost" 0 "libboost1.83-dev libboost-json1.83-dev" cat "$scratch/calls"
check "and does not update without need" 0 "!updated" cat "$scratch/calls"
check "and installs no other Boost" 0 "!1.81" cat "$scratch/calls"
rm "$scratch/calls"
mv "$scratch/known" "$scratch/new"
check "setup updates to learn the name of Boost" 0 "libboost1.83-dev" setup
check "and then installs that" 0 "libboost1.83-dev libboost-json1.83-dev" cat "$scratch/calls"
mv "$scratch/known/libboost1.83-dev" "$scratch/known/libboost1.81-dev"

rm "$scratch/calls"
touch "$scratch/no-way"
check "setup updates when apt knows no way" 0 "apt-get update" setup
check "and then installs" 0 "install -y -q" cat "$scratch/calls"

# A bare system has no openssl, gpg, python3 and git, with which a release looks at its keys and at the tree.
if [[ $(dpkg --print-architecture) == amd64 ]]; then
  release() { env -u HAULOUT_SKIP_SETUP PATH="$scratch:$PATH" "$root/dev" release https://example.org "$scratch/no-key"; }
  rm "$scratch/calls"
  check "a release looks at its key" 1 "is not a private key" release
  for package in openssl gpg python3 git file; do
    check "and has installed $package before" 0 " $package " sed 's/$/ /' "$scratch/calls"
  done
fi

tags() {
  cd -- "$root"
  source "$root/scripts/lib.sh"
  source "$root/scripts/package.sh"
  check_tags "$@" && echo accepted
}
version=$(sed -n 's/^project(haulout VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
check "a released commit may have no tag" 0 accepted tags
check "and that of its version, beside others" 0 accepted tags nightly "v$version"
check "but not that of another version" 1 "has the tag v99.0.0, but the version in CMakeLists.txt is $version" tags "v$version" v99.0.0

# release_system CODENAME: runs the check of the system on which a release is made.
release_system() {
  cd -- "$root"
  source "$root/scripts/lib.sh"
  source "$root/scripts/package.sh"
  dpkg() { echo amd64; }
  printf 'ID=debian\n%s\n' "${1:+VERSION_CODENAME=$1}" >"$scratch/os-release"
  check_release_system "$scratch/os-release" && echo accepted
}
check "a release is made on Debian 12" 0 accepted release_system bookworm
check "but not on Debian 13, whose libraries are newer" 1 "a release is made on Debian 12 (bookworm)" release_system trixie
check "and not on a system without a name" 1 "a release is made on Debian 12 (bookworm)" release_system ""

rm "$scratch/calls"
printf 'Remv libboost1.74-dev [1.74]\nInst clang-19 (1)\n' >"$scratch/plan"
check "setup refuses to remove" 1 "would remove these packages to install ours, so nothing was done: libboost1.74-dev" setup
check "and has changed nothing" 1 "No such file" cat "$scratch/calls"

# Runs the arguments as steps of ./dev test. The summary counts every step, and a step that fails does not keep the next
# one from running.
steps() {
  cd -- "$scratch"
  mkdir -p build/results
  source "$root/scripts/lib.sh"
  source "$root/scripts/test.sh"
  fails_early() { false; echo "went on after a failure"; }
  counts_seven() { echo "7 0" >"$counts"; }
  cannot_run() { echo "0 0" >"$counts"; }
  crashes_late() { echo "5 0" >"$counts"; return 1; }
  local name
  rm -f build/results/step-*
  for name in "$@"; do step "$name" "$name"; done
  summary
}
# Runs the first argument as a step at the same time as the steps of the other arguments.
steps_beside() {
  cd -- "$scratch"
  mkdir -p build/results
  source "$root/scripts/lib.sh"
  source "$root/scripts/test.sh"
  waits_for_the_other() { until [[ -e build/other ]]; do sleep 0.01; done; echo "3 ${1:-0}" >"$counts"; }
  fails_then() { waits_for_the_other 2; }
  lets_it_go() { touch build/other; echo "7 0" >"$counts"; }
  local first=$1 name
  lane() { step "$first" "$first"; }
  rm -f build/other build/results/step-*
  beside lane
  shift
  for name in "$@"; do step "$name" "$name"; done
  join_beside
  summary
}
export -f steps steps_beside
export root scratch
check "failures count" 1 "12 passed, 2 failed" bash -euo pipefail -c "steps fails_early counts_seven crashes_late"
says_why() { echo "this is why" >&2; return 1; }
# Replaces tee: writes only when the step has ended, and prints nothing. So the output that the check sees comes from
# the summary.
tee() { local all; all=$(cat); printf '%s\n' "$all" >"$1"; }
export -f says_why tee
for _ in 1 2 3 4 5 6 7 8; do
  check "the summary has what failed to its end" 1 "this is why" bash -euo pipefail -c "steps says_why"
done
unset -f tee
names_two() { printf '3 2\none case\nanother\n' >"$counts"; return 1; }
names_many() { { echo "0 23"; seq -f 'case %g' 23; } >"$counts"; return 1; }
export -f names_two names_many
check "the last lines name what failed" 1 "names_two: one case" bash -euo pipefail -c "steps counts_seven names_two"
check "and count it" 1 "10 passed, 2 failed" bash -euo pipefail -c "steps counts_seven names_two"
check "only some of many are named" 1 "and 3 more" bash -euo pipefail -c "steps names_many"
check "and no more" 1 "!case 21" bash -euo pipefail -c "steps names_many"
check "a step ends where it fails" 1 "!went on" bash -euo pipefail -c "steps fails_early"
check "what did not run is said" 0 "NOT RUN" bash -euo pipefail -c "steps cannot_run counts_seven"
check "steps run beside each other" 0 "10 passed, 0 failed" timeout 60 bash -euo pipefail -c "steps_beside waits_for_the_other lets_it_go"
check "a step beside others may fail" 1 "10 passed, 2 failed" timeout 60 bash -euo pipefail -c "steps_beside fails_then lets_it_go"
# The first step holds the write end of a pipe while another step ends the run. `read` returns when the pipe is closed,
# which shows that the first step has ended, too.
interrupted() {
  mkfifo "$scratch/held"
  bash -euo pipefail -c "steps_beside holds_the_pipe is_interrupted" >/dev/null 2>&1 &
  local end
  read -r end <"$scratch/held" || end=closed
  echo "the pipe is ${end:-closed}"
}
holds_the_pipe() { exec 3>"$scratch/held"; touch build/holds; timeout --foreground 60 tail -f /dev/null; }  # tail inherits it
is_interrupted() { until [[ -e build/holds ]]; do sleep 0.01; done; kill -TERM "$$"; }
export -f interrupted holds_the_pipe is_interrupted
check "a step beside others ends with the run" 0 "the pipe is closed" timeout 60 bash -euo pipefail -c interrupted
# On this host no process can create a namespace, not even one of root.
printf '#!/bin/sh\nexit 1\n' >"$scratch/unshare"
chmod +x "$scratch/unshare"
no_machines() { PATH=$scratch:$PATH steps machines_tests counts_seven; }
export -f no_machines
check "machines that cannot run are said" 0 "THE TESTS ON REAL MACHINES DID NOT RUN" \
  env -u CI bash -euo pipefail -c no_machines
check "they count as not run" 0 "7 passed, 0 failed" env -u CI bash -euo pipefail -c no_machines
check "in CI they count as failed" 1 "7 passed, 1 failed" env CI=true bash -euo pipefail -c no_machines
check "a run without any test is none" 1 "no test ran" bash -euo pipefail -c "steps cannot_run"

((failures == 0)) && echo "all as expected"
exit $((failures > 0))
