# Sourced by ./dev: the container image, and the checks of packaging/.
# shellcheck shell=bash

# What ./dev test --all needs beyond the others to check the packages.
packaging_packages=(skopeo umoci systemd)

haulout_version() { sed -n 's/^project(haulout VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt; }

# The same source makes the same packages: their times are those of the last commit.
source_date() {
  if [[ -z ${SOURCE_DATE_EPOCH:-} ]]; then
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CMakeLists.txt)
  fi
  export SOURCE_DATE_EPOCH
}

image() {
  (($# == 0)) || usage_error "image takes no arguments"
  setup
  build_release
  source_date
  say "image: build/image"
  python3 packaging/image/build_image.py --binary "$release_binary" --version "$(haulout_version)" --output build/image >&2
  printf '%s\n' "$PWD/build/image/haulout-$(haulout_version).tar"
}

# A check that cannot run here is a failure in CI, and else says so where nobody overlooks it.
did_not_run() {
  warn ""
  warn "NOT CHECKED: $1"
  warn ""
  if on_ci; then return 1; fi
  echo "0 0" >"$counts"
}

# Those of the commands that are not there.
missing_commands() {
  local command
  for command in "$@"; do
    command -v "$command" >/dev/null || printf '%s ' "$command"
  done
}

check_image() {
  say "packaging: container image"
  local missing
  missing=$(missing_commands skopeo umoci)
  if [[ -n $missing ]]; then
    did_not_run "the container image needs $missing"
    return
  fi
  build_release
  python3 tests/packaging/image_test.py "$release_binary" "$(haulout_version)" >&2
}

check_unit() {
  say "packaging: systemd unit"
  if [[ -n $(missing_commands systemd-analyze) ]]; then
    did_not_run "the systemd unit needs systemd-analyze"
    return
  fi
  tests/packaging/unit_test.sh
}
