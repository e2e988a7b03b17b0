# Sourced by ./dev: what every command needs. Everything for people goes to stderr; stdout is for results.
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

# "; did you mean 'build'?" for a command that begins alike or has the same letters in it, else nothing.
nearest_command() {
  local wanted=$1 known
  for known in demo test build image deb lint tidy sim fuzz bench soak setup help; do
    if [[ $known == "${wanted:0:2}"* || $wanted == *"$known"* || $known == *"$wanted"* ]]; then
      printf "; did you mean './dev %s'?" "$known"
      return
    fi
  done
}

# A compile job of this tree takes up to 1.2 GB: as many as there are cores and gigabytes.
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
