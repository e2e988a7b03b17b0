#!/usr/bin/env python3
"""Signs the apt repository of a release with an OpenPGP key from the keyring of gpg, which GNUPGHOME names.

  openpgp.py KEY      prints the fingerprint of the secret key that KEY names: an address or a fingerprint. Fails unless it
                      names exactly one key, and gpg can sign with it
"""
import subprocess
import sys


class Problem(Exception):
    """What failed, in words for the user."""


def gpg(*arguments, **options):
    try:
        done = subprocess.run(["gpg", "--batch", *(str(word) for word in arguments)], capture_output=True, check=False, **options)
    except FileNotFoundError:
        raise Problem("to sign the apt repository, gpg is needed (Debian's packages gpg and gpg-agent)") from None
    if done.returncode:
        raise Problem(f"gpg failed: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def fingerprints(listed):
    """Returns the fingerprints of the primary keys in the output of gpg --with-colons --list-secret-keys."""
    found, primary = [], False
    for fields in (line.split(":") for line in listed.splitlines()):
        if fields[0] == "fpr" and primary:
            found.append(fields[9])
        primary = fields[0] == "sec"  # the fingerprints of subkeys follow records `ssb`
    return found


def find(name):
    try:
        found = fingerprints(gpg("--with-colons", "--list-secret-keys", "--", name).decode(errors="replace"))
    except Problem as problem:
        raise Problem(f"no secret key '{name}': {problem}") from None
    if len(found) != 1:
        raise Problem(f"{len(found)} secret keys match '{name}'; name one by its fingerprint: {', '.join(found)}")
    # Signing can fail, for example because the key has expired. The user should know that before the build, not after it.
    gpg("--local-user", found[0], "--detach-sign", input=b"")
    return found[0]


def public_key(fingerprint):
    """Returns the public key in the form that `signed-by` in a line of sources.list expects."""
    return gpg("--export-options", "export-minimal", "--export", fingerprint)


def sign(release, fingerprint):
    """Signs the file Release of an apt repository, in both forms that apt reads, beside that file."""
    options = ["--yes", "--local-user", fingerprint]
    gpg(*options, "--armor", "--output", release.with_name("Release.gpg"), "--detach-sign", release)
    gpg(*options, "--output", release.with_name("InRelease"), "--clear-sign", release)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        print(find(sys.argv[1]))
    except Problem as problem:
        sys.exit(f"openpgp.py: {problem}")
