# Sourced by ./dev. Builds the container image and the Debian package, and checks packaging/.
# shellcheck shell=bash

# The Debian package that compresses the image.
image_packages=(libdeflate-tools)
# Debian packages that write the Debian package of Haulout. cpack calls `file`, which none of the others depends on.
deb_packages=(dpkg-dev file)
# Debian packages that ./dev release needs.
release_packages=("${deb_packages[@]}" apt-utils gpg gpg-agent qemu-user-static binutils-aarch64-linux-gnu "${image_packages[@]}")
# Debian packages that only ./dev test --all needs, to check the packages of Haulout.
packaging_packages=("${image_packages[@]}" skopeo umoci systemd "${deb_packages[@]}" lintian debootstrap
  mmdebstrap autopkgtest piuparts man-db mandoc
  "${release_packages[@]}" python3-venv ruby)

haulout_version() { sed -n 's/^project(haulout VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt; }

# Exports the time of the last commit for the files in the packages, so that the same source makes identical packages.
source_date() {
  if [[ -z ${SOURCE_DATE_EPOCH:-} ]]; then
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CMakeLists.txt)
  fi
  export SOURCE_DATE_EPOCH
}

build_image() {
  source_date
  say "image: build/image"
  python3 packaging/image/build_image.py --binary "$release_binary" --version "$(haulout_version)" --output build/image >&2
}

image() {
  (($# == 0)) || usage_error "image takes no arguments"
  setup "${image_packages[@]}"
  build_release
  build_image
  printf '%s\n' "$PWD/build/image/haulout-$(haulout_version).tar"
}

# write_deb PRESET DIRECTORY
write_deb() {
  source_date
  say "deb: $2"
  rm -rf -- "$2"
  # The directories of the package get their rights from the umask, so it must not be that of who builds the package.
  (umask 022 && cpack --config "build/$1/CPackConfig.cmake" -G DEB -B "$PWD/$2") >"$2.log" 2>&1 || {
    cat "$2.log" >&2
    return 1
  }
  rm -rf -- "$2/_CPack_Packages"
}

build_deb() { write_deb release build/deb; }

# dpkg-shlibdeps, which cpack runs, finds the libraries and their packages in the directory of packaging/cross/make_root.py.
build_deb_arm64() { DPKG_ADMINDIR=$PWD/build/arm64/dpkg DEB_HOST_ARCH=arm64 write_deb release-arm64 build/deb-arm64; }

deb() {
  (($# == 0)) || usage_error "deb takes no arguments"
  setup "${deb_packages[@]}"
  build_release
  build_deb
  printf '%s\n' "$PWD"/build/deb/*.deb
}

# build_for_release: what write_release packs.
build_for_release() {
  build_release
  build_deb
  build_arm64
  build_deb_arm64
}

# write_release DIRECTORY URL [FINGERPRINT]: writes the files of a release of this commit, from the release binaries and the
# Debian packages. They will be downloaded from URL. The key of gpg with the fingerprint signs the apt repository.
write_release() {
  local directory=$1 url=$2 apt_key=${3:-} version
  version=$(haulout_version)
  source_date
  rm -rf -- "$directory"
  mkdir -p -- "$directory"
  cp -- "build/deb/haulout_${version}_amd64.deb" "build/deb-arm64/haulout_${version}_arm64.deb" "$directory/"
  python3 -B packaging/release/make_tarball.py --binary "$release_binary" --version "$version" --arch amd64 \
    --output "$directory" >&2
  python3 -B packaging/release/make_tarball.py --binary "$arm64_binary" --version "$version" --arch arm64 \
    --output "$directory" --completions-by "$release_binary" >&2
  python3 -B packaging/image/build_image.py --binary "$release_binary" --arm64 "$arm64_binary" --root build/arm64 \
    --version "$version" --output "$directory/image" >&2
  mv -- "$directory/image/haulout-$version.tar" "$directory/haulout_${version}_image.tar"
  rm -rf -- "$directory/image"
  python3 -B packaging/release/make_release.py "$directory" --version "$version" --commit "$(git rev-parse HEAD)" \
    --url "$url" --map "amd64=$release_binary.map" --map "arm64=$arm64_binary.map" --root arm64=build/arm64 \
    ${apt_key:+--apt-key "$apt_key"}
}

# sign_release DIRECTORY KEY: signs SHA256SUMS, and so all files of which it has the sums, in the form of `cosign sign-blob`.
sign_release() {
  openssl dgst -sha256 -sign "$2" "$1/SHA256SUMS" | base64 -w 0 >"$1/SHA256SUMS.sig"
}

# Fails unless the file is a key that cosign can verify with, too.
check_signing_key() {
  local kind
  kind=$(openssl pkey -in "$1" -noout -text 2>/dev/null) || die "$1 is not a private key that openssl can read without a password"
  [[ $kind == *prime256v1* ]] || die "$1 is not a key of the curve P-256: openssl ecparam -name prime256v1 -genkey -noout -out KEY"
}

# check_tags TAG…: the tags of a released commit. One that names a version must name that of the source.
check_tags() {
  local tag
  for tag in "$@"; do
    [[ ! $tag =~ ^v[0-9] || $tag == "v$(haulout_version)" ]] ||
      die "the commit has the tag $tag, but the version in CMakeLists.txt is $(haulout_version):" \
        "set that version in a commit and tag it, or remove the tag"
  done
}

# check_release_system FILE: FILE is the os-release of the system on which a release is made.
check_release_system() {
  # shellcheck disable=SC1090  # which file it is, is not known here
  [[ $(dpkg --print-architecture) == amd64 && $(. "$1" && printf '%s' "${VERSION_CODENAME:-}") == bookworm ]] ||
    die "a release is made on Debian 12 (bookworm) for amd64 only: its programs and packages need the libraries of the Debian" \
      "on which they were built, or newer ones"
}

release() {
  local url="" key="" apt_key=""
  while (($#)); do
    case $1 in
      --apt-key)
        [[ -n ${2:-} ]] || usage_error "release: --apt-key needs the address or the fingerprint of a key in gpg's keyring"
        apt_key=$2
        shift
        ;;
      -*) usage_error "release: unknown option $1" ;;
      *)
        [[ -z $url || -z $key ]] || usage_error "release: too many arguments: $1"
        if [[ -z $url ]]; then url=$1; else key=$1; fi
        ;;
    esac
    shift
  done
  [[ $url == https://* ]] ||
    usage_error "release needs the address from which its files will be downloaded, https://…, and then, if you sign it, a key"
  check_release_system /etc/os-release
  setup "${release_packages[@]}"  # before the checks below: a bare Debian has no openssl, python3, gpg and git
  if [[ -n $key ]]; then check_signing_key "$key"; fi
  if [[ -n $apt_key ]]; then apt_key=$(python3 -B packaging/release/openpgp.py "$apt_key"); fi
  # The provenance names a commit, so the artefacts must be built from it.
  local changed
  changed=$(git status --porcelain) || die "a release is made in a git repository"
  [[ -z $changed ]] || die "commit these changes first, or put them away:" "$changed"
  local -a tags
  mapfile -t tags < <(git tag --points-at HEAD)
  check_tags "${tags[@]}"
  build_for_release
  local directory
  directory=build/release-$(haulout_version)
  say "release: $directory"
  write_release "$directory" "$url" "$apt_key"
  [[ -n $apt_key ]] || note "the apt repository is not signed, because no --apt-key was given"
  if [[ -n $key ]]; then
    sign_release "$directory" "$key"
  else
    note "the sums are not signed, because no KEY was given"
  fi
  printf '%s\n' "$PWD/$directory"
}

# did_not_run REASON: reports clearly that a check cannot run on this machine. In CI that is a failure.
did_not_run() {
  warn ""
  warn "NOT CHECKED: $1"
  warn ""
  count_as_not_run
}

# Prints the commands that are not installed.
missing_commands() {
  local command
  for command in "$@"; do
    command -v "$command" >/dev/null || printf '%s ' "$command"
  done
}

# Checks that the release binary has no part of the demo and no code that only tests use.
check_parts() {
  build_release
  python3 tests/packaging/parts_test.py "$release_binary" "$release_binary.map" >&2
}

check_image() {
  say "packaging: container image"
  check_parts
  local missing
  missing=$(missing_commands skopeo umoci)
  if [[ -n $missing ]]; then
    did_not_run "the container image needs $missing"
    return
  fi
  build_release
  python3 tests/packaging/image_test.py "$release_binary" "$(haulout_version)" >&2
}

# promtool and prometheus are in Debian's package prometheus. Installing that would start a server, so this function only
# unpacks it.
find_promtool() {
  local own=$PWD/build/promtool
  if [[ -z $(missing_commands promtool prometheus) ]]; then return 0; fi
  if [[ ! -x $own/usr/bin/promtool ]]; then
    mkdir -p "$own"
    note "promtool from Debian's package prometheus into build/promtool"
    (cd "$own" && apt-get download -qq prometheus && dpkg-deb --extract prometheus_*.deb .) >&2 || return 1
  fi
  PATH=$own/usr/bin:$PATH
}

check_rules() {
  say "packaging: alert rules and dashboard"
  if ! find_promtool; then
    did_not_run "the alert rules and the dashboard need promtool and prometheus (Debian's package prometheus)"
    return
  fi
  tests/packaging/rules_test.sh
  python3 -B tests/packaging/alerts_test.py >&2
  python3 -B tests/packaging/dashboard_test.py >&2
  build_release
  python3 -B tests/packaging/prometheus_test.py "$release_binary" "$demo_binary" >&2
}

# Checks the dashboard against the types that Grafana publishes for Go.
check_dashboard_schema() {
  say "packaging: schema of the dashboard"
  if ! find_go; then
    did_not_run "the schema of the dashboard needs Go 1.26"
    return
  fi
  (cd tests/packaging/dashboard_schema && go vet ./... && go test -count=1 ./...) >&2
}

check_unit() {
  say "packaging: systemd unit"
  if [[ -n $(missing_commands systemd-analyze) ]]; then
    did_not_run "the systemd unit needs systemd-analyze"
    return
  fi
  tests/packaging/unit_test.sh
}

# Tests the hook that the package ships.
check_notify() {
  say "packaging: the hook notify"
  local missing
  missing=$(missing_commands curl openssl)
  if [[ -n $missing ]]; then
    did_not_run "the hook notify needs $missing"
    return
  fi
  python3 -B tests/packaging/notify_test.py >&2
}

check_man() {
  say "packaging: man pages"
  local missing
  missing=$(missing_commands man mandoc)
  if [[ -n $missing ]]; then
    did_not_run "the man pages need $missing"
    return
  fi
  build_release
  tests/packaging/man_test.sh "$release_binary" >&2
}

# The validator of SPDX documents comes from PyPI into build/release-tools, krew and the library of cosign from the Go module
# proxy.
find_release_tools() {
  local tools=$PWD/build/release-tools
  find_go || return 1
  mkdir -p "$tools/krew"
  (cd tests/release/krew && go build -o "$tools/krew/" tool) >&2 || return 1
  (cd tests/release/sigstore && go vet . && go build -o "$tools/verify-blob" .) >&2 || return 1
  if [[ ! -x $tools/spdx/bin/pyspdxtools ]]; then
    python3 -m venv "$tools/spdx" >&2 || return 1
    "$tools/spdx/bin/pip" install -q --disable-pip-version-check spdx-tools==0.8.5 >&2 || return 1
  fi
}

# write_signed_releases DIRECTORY…: writes releases whose apt repositories are signed with one new key. The key is gone afterwards.
write_signed_releases() (
  GNUPGHOME=$(mktemp -d /tmp/gpg-XXXXXX)  # a short path, because that of the agent's socket has at most 107 characters
  export GNUPGHOME
  trap 'gpgconf --kill all; rm -rf -- "$GNUPGHOME"' EXIT
  gpg --batch --quiet --passphrase '' --quick-generate-key test@example.org ed25519 sign >&2
  local key directory
  key=$(python3 -B packaging/release/openpgp.py test@example.org)
  for directory in "$@"; do
    write_release "$directory" https://downloads.example.org/haulout "$key"
  done
)

check_release() {
  say "packaging: files of a release"
  local missing one=build/release-test/one two=build/release-test/two
  missing=$(missing_commands ruby skopeo apt-ftparchive gpg gpg-agent gpgv lintian git qemu-aarch64-static aarch64-linux-gnu-objdump)
  if [[ -n $missing ]]; then
    did_not_run "the files of a release need $missing"
    return
  fi
  if ! find_release_tools; then
    did_not_run "the files of a release need Go 1.26, krew and sigstore from a Go module proxy, and spdx-tools from PyPI"
    return
  fi
  build_for_release
  lint_deb build/deb-arm64/*.deb
  write_signed_releases "$one" "$two"
  python3 -B tests/release/artefacts_test.py "$one" "$two" build/release-tools build/arm64 >&2
  python3 -B tests/release/apt_test.py "$one" >&2
  tests/release/sign_test.sh "$one" build/release-tools/verify-blob >&2
}

# lint_deb PACKAGE.deb: fails for whatever lintian finds that packaging/debian/lintian-overrides does not explain.
lint_deb() {
  # lintian takes letters in machine code for misspelt words. Which words these are changes with every build.
  lintian --allow-root --pedantic --display-info --fail-on error,warning,info,pedantic --suppress-tags spelling-error-in-binary \
    --tag-display-limit 0 "$1" >&2
}

check_deb() {
  say "packaging: Debian package"
  local missing status=0
  missing=$(missing_commands dpkg-shlibdeps lintian)
  if [[ -n $missing ]]; then
    did_not_run "the Debian package needs $missing"
    return
  fi
  build_release
  build_deb
  local deb first
  deb=$(echo build/deb/*.deb)
  first=$(sha256sum <"$deb")
  build_deb
  [[ $(sha256sum <"$deb") == "$first" ]] || die "the same source made two different packages"
  lint_deb "$deb"
  tests/packaging/deb_test.sh "$deb" || status=$?
  if ((status == 77)); then
    did_not_run "the Debian package was not installed: see above"
    return
  fi
  return "$status"
}

# Has Debian's own programs test the package.
check_debian_tests() {
  say "packaging: autopkgtest and piuparts"
  local status=0
  build_release
  build_deb
  tests/packaging/autopkgtest.sh build/deb/*.deb || status=$?
  if ((status == 77)); then
    did_not_run "autopkgtest and piuparts: see above"
    return
  fi
  return "$status"
}
