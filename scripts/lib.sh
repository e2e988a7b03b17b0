# Sourced by ./dev. Functions that every command needs. Messages for people go to stderr; stdout is for results.
# shellcheck shell=bash

say() { printf '\n== %s\n' "$*" >&2; }
note() { printf '   %s\n' "$*" >&2; }
warn() { printf '!! %s\n' "$*" >&2; }
die() {
  warn "$@"
  exit 1
}
usage_error() {
  warn "$1"
  warn "./dev help lists the commands"
  exit 2
}

on_ci() { [[ ${CI:-} == true ]]; }

# Prints "; did you mean './dev build'?" if a known command begins with the same two letters, contains the text or is
# contained in it. Otherwise prints nothing.
nearest_command() {
  local wanted=$1 known
  for known in demo test build image deb release site lint tidy sim hostile fuzz bench profile mutants soak setup help; do
    if [[ $known == "${wanted:0:2}"* || $wanted == *"$known"* || $known == *"$wanted"* ]]; then
      printf "; did you mean './dev %s'?" "$known"
      return
    fi
  done
}

# Prints the number of compile jobs. A job needs up to 1.2 GB, so cores and available memory limit the number.
jobs() {
  if [[ -n ${HAULOUT_JOBS:-} ]]; then
    printf '%s' "$HAULOUT_JOBS"
    return
  fi
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable:/ {print int($2 / 1200000)}' /proc/meminfo)
  ((memory >= 1)) || memory=1
  printf '%s' $((cores < memory ? cores : memory))
}
