#!/usr/bin/env bash
# Tests the signature of a release: as docs/release.md tells people to check it, and with the library of cosign.
#
#   sign_test.sh RELEASE VERIFY-BLOB        RELEASE is a directory of ./dev release; the test copies what it needs of it
set -euo pipefail

release=$(cd -- "$1" && pwd)
verify_blob=$(cd -- "$(dirname -- "$2")" && pwd)/$(basename -- "$2")
cd -- "$(dirname -- "$(readlink -f -- "$0")")/../.."
for part in lib setup build package; do
  # shellcheck source=/dev/null
  source "scripts/$part.sh"
done

directory=$(mktemp -d)
trap 'rm -rf -- "$directory"' EXIT
failed() {
  echo "sign_test: $1" >&2
  exit 1
}

# The commands of the page, each on a line of its own that begins with four blanks.
command_of_page() { grep -oP "(?<=^    )$1.*" docs/release.md | head -n 1; }
check=$(command_of_page "openssl dgst")
cosign=$(command_of_page "cosign verify-blob")
[[ -n $check && -n $cosign ]] || failed "docs/release.md does not say how to check the signature"

key=$directory/key.pem
openssl ecparam -name prime256v1 -genkey -noout -out "$key"
(check_signing_key "$key") || failed "a key of the right kind is refused"
openssl genpkey -algorithm ed25519 -out "$directory/other.pem"
if (check_signing_key "$directory/other.pem") 2>/dev/null; then failed "a key that cosign cannot use is accepted"; fi
if (check_signing_key /dev/null) 2>/dev/null; then failed "a file that is no key is accepted"; fi

cp -- "$release"/SHA256SUMS "$directory/"
sign_release "$directory" "$key"
cd -- "$directory"
openssl pkey -in "$key" -pubout -out haulout.pub
bash -c "$check" >&2 || failed "openssl does not verify the signature"
"$verify_blob" haulout.pub SHA256SUMS.sig SHA256SUMS || failed "the library of cosign does not verify the signature"

echo "0  another-file" >>SHA256SUMS
if bash -c "$check" >&2 2>/dev/null; then failed "openssl verifies a signature of other sums"; fi
if "$verify_blob" haulout.pub SHA256SUMS.sig SHA256SUMS 2>/dev/null; then
  failed "the library of cosign verifies a signature of other sums"
fi
