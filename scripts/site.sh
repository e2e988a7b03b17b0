# Sourced by ./dev. Builds the site of the pages in docs/, and tests it.
# shellcheck shell=bash

# Debian packages that the site is built with.
site_packages=(python3-venv graphviz)
site=build/site
site_environment=build/site-environment

# site_programs FOLDER REQUIREMENTS [PIP-OPTIONS…]: installs what a file of requirements names into a virtual environment,
# unless that has been done.
site_programs() {
  local folder=$1 requirements=$2
  shift 2
  if cmp -s "$requirements" "$folder/installed"; then return; fi
  rm -rf "$folder"
  mkdir -p "${folder%/*}"
  python3 -m venv "$folder" >&2 &&
    "$folder/bin/pip" install -q --disable-pip-version-check --require-hashes "$@" -r "$requirements" >&2 &&
    cp "$requirements" "$folder/installed"
}

# Fails if PyPI has not given what the site is built with.
site_generator() { site_programs "$site_environment" packaging/site/requirements.txt; }

build_site() {
  say "site: from README.md, docs/ and what they link to"
  site_generator || die "the site needs the packages of packaging/site/requirements.txt from PyPI: see pip's message above"
  # Without --quiet, which would also hide the warnings that end a strict build. The first variable switches off an
  # announcement of the theme.
  NO_MKDOCS_2_WARNING=1 PYTHONDONTWRITEBYTECODE=1 "$site_environment/bin/mkdocs" build -f packaging/site/mkdocs.yml >&2
}

# The first page is the last line of stdout.
site() {
  (($# == 0)) || usage_error "site takes no arguments"
  setup "${site_packages[@]}"
  build_site
  printf '%s\n' "$PWD/$site/index.html"
}

check_site() {
  local missing axe=build/site-axe
  missing=$(missing_commands chromium dot)
  missing=${missing:+"$missing(Debian's packages chromium and graphviz)"}
  # Of the second package only the file axe.min.js is used, so what it depends on is not installed.
  if [[ -z $missing ]] && ! { site_generator && site_programs "$axe" tests/site/requirements.txt --no-deps; }; then
    missing="packages from PyPI (see above)"
  fi
  if [[ -n $missing ]]; then
    did_not_run "the site needs $missing"
    return
  fi
  build_site
  say "test: the site, in a browser"
  python3 -B tests/site/site_test.py "$site" "$(echo "$axe"/lib/python3*/site-packages/axe_playwright_python/axe.min.js)" >&2
}
