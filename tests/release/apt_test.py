#!/usr/bin/env python3
"""Checks the apt repository of a release, and its signatures, by apt and gpgv.

  apt_test.py RELEASE

RELEASE is a directory of `./dev release --apt-key`. Needs apt, gpgv, gpg and gpg-agent. apt and gpg work in directories of their own,
and nothing of this machine is changed.
"""
import contextlib
import filecmp
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "packaging/release"))
import make_release  # noqa: E402
import openpgp  # noqa: E402

RELEASE = None
PAGE = (TREE / "docs/release.md").read_text()
KEYRING = make_release.KEYRING


def new_key(name):
    """Makes a key without a password in gpg's keyring. Returns its fingerprint."""
    openpgp.gpg("--passphrase", "", "--quick-generate-key", name, "ed25519", "sign")
    return openpgp.find(name)


@contextlib.contextmanager
def keyring():
    """gpg with a keyring of its own. A short path, since that of the agent's socket has at most 107 characters."""
    before = os.environ.get("GNUPGHOME")
    with tempfile.TemporaryDirectory(prefix="gpg-", dir="/tmp") as home:
        os.environ["GNUPGHOME"] = home
        try:
            yield home
        finally:
            subprocess.run(["gpgconf", "--kill", "all"], check=False)
            del os.environ["GNUPGHOME"]
            if before is not None:
                os.environ["GNUPGHOME"] = before


class Apt(unittest.TestCase):
    """apt-get with its configuration, lists, cache and status in a directory of its own, and a copy of the repository."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.scratch = pathlib.Path(directory.name)
        self.root = self.scratch / "root"
        for name in ("etc/apt/apt.conf.d", "etc/apt/preferences.d", "etc/apt/sources.list.d", "etc/apt/trusted.gpg.d",
                     "var/lib/apt/lists/partial", "var/cache/apt/archives/partial", "var/lib/dpkg", "var/log/apt"):
            (self.root / name).mkdir(parents=True)
        shutil.copyfile("/var/lib/dpkg/status", self.root / "var/lib/dpkg/status")
        self.without_haulout()
        self.repository = self.scratch / "repository"
        shutil.copytree(RELEASE / "apt", self.repository)
        self.suite = self.repository / "dists/stable"
        self.use("signed-by")
        self.configure("amd64")

    def use(self, option, public_key=None):
        """Writes the line of the page that has the option. public_key: of the user, by default that of the release."""
        line = re.search(rf"^ +echo '(deb \[{option}=\S+\] .*)' > ", PAGE, re.M)[1]
        line = re.sub(r"signed-by=\S+\]", f"signed-by={public_key or RELEASE / KEYRING}]", line)
        line = re.sub(r"https://\S+", f"file:{self.repository}", line)
        (self.root / "etc/apt/sources.list").write_text(f"{line}\n")

    def configure(self, architecture):
        (self.scratch / "apt.conf").write_text(
            f'Dir "{self.root}";\nDir::State::status "{self.root}/var/lib/dpkg/status";\nAPT::Sandbox::User "root";\n'
            f'APT::Architecture "{architecture}";\nAPT::Architectures {{ "{architecture}"; }};\nAPT::Install-Recommends "false";\n')
        self.environment = {**os.environ, "APT_CONFIG": str(self.scratch / "apt.conf"), "LC_ALL": "C"}

    def without_haulout(self):
        """The package may be installed on this machine."""
        status = self.root / "var/lib/dpkg/status"
        stanzas = status.read_text(errors="surrogateescape").split("\n\n")
        kept = [stanza for stanza in stanzas if not stanza.startswith("Package: haulout\n")]
        status.write_text("\n\n".join(kept), errors="surrogateescape")

    def apt(self, *arguments, fails=False):
        done = subprocess.run(["apt-get", *arguments], env=self.environment, cwd=self.scratch, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(fails, done.returncode != 0, f"apt-get {arguments}: {done.stdout}")
        return done.stdout

    def gets_the_package(self, architecture):
        (deb,) = RELEASE.glob(f"haulout_*_{architecture}.deb")
        self.apt("update")
        self.apt("download", "haulout")
        self.assertTrue(filecmp.cmp(deb, self.scratch / deb.name, shallow=False))

    def refuses_the_repository(self, reason):
        self.assertRegex(self.apt("update", fails=True), reason)
        self.apt("download", "haulout", fails=True)

    def other_key(self):
        """Returns the fingerprint of a new key, and a file with its public part. gpg has this key until the end of the test."""
        self.enterContext(keyring())
        fingerprint = new_key("Somebody else <else@example.org>")
        public_key = self.scratch / "other.gpg"
        public_key.write_bytes(openpgp.public_key(fingerprint))
        return fingerprint, public_key


class Signed(Apt):
    def test_apt_finds_downloads_and_would_install_the_package(self):
        self.gets_the_package("amd64")
        self.assertRegex(self.apt("install", "--simulate", "haulout"), r"(?m)^Inst haulout \(\S+ Haulout:\S*stable \[amd64\]\)")

    def test_apt_downloads_the_package_for_arm64(self):
        self.configure("arm64")
        self.gets_the_package("arm64")

    def test_either_signature_is_enough(self):
        (self.suite / "InRelease").unlink()
        self.gets_the_package("amd64")
        shutil.copyfile(RELEASE / "apt/dists/stable/InRelease", self.suite / "InRelease")
        for name in ("Release", "Release.gpg"):
            (self.suite / name).unlink()
        self.gets_the_package("amd64")

    def test_both_sign_the_same(self):
        signed = subprocess.run(["gpgv", "--keyring", RELEASE / KEYRING, "--output", "-", self.suite / "InRelease"],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
        self.assertEqual((self.suite / "Release").read_bytes(), signed)

    def test_the_command_of_the_page_checks_the_signature(self):
        command = re.search(r"^    (gpgv .*)$", PAGE, re.M)[1]
        for name, succeeds in (("InRelease", True), ("Release", False)):
            words = shlex.split(command.replace("InRelease", name))
            done = subprocess.run(words, cwd=RELEASE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            self.assertEqual(succeeds, done.returncode == 0, words)

    def test_the_key_is_public_and_among_the_sums(self):
        packets = subprocess.run(["gpg", "--list-packets", RELEASE / KEYRING], capture_output=True, text=True, check=True).stdout
        self.assertIn(":public key packet:", packets)
        self.assertNotIn("secret", packets)
        self.assertRegex((RELEASE / "SHA256SUMS").read_text(), rf"(?m)^[0-9a-f]{{64}}  {KEYRING}$")

    def test_apt_refuses_a_changed_release_in_one_file(self):
        signed = self.suite / "InRelease"
        signed.write_text(signed.read_text().replace("Origin: Haulout", "Origin: Another"))
        self.refuses_the_repository("BADSIG")

    def test_apt_refuses_a_changed_release_beside_its_signature(self):
        (self.suite / "InRelease").unlink()
        release = self.suite / "Release"
        release.write_text(release.read_text().replace("Origin: Haulout", "Origin: Another"))
        self.refuses_the_repository("BADSIG")

    def test_apt_refuses_a_repository_whose_signatures_were_removed(self):
        for name in ("InRelease", "Release.gpg"):
            (self.suite / name).unlink()
        self.refuses_the_repository("is not signed")

    def test_apt_refuses_a_changed_package(self):
        self.apt("update")
        (packed,) = self.repository.rglob("*_amd64.deb")
        content = packed.read_bytes()
        packed.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        self.assertRegex(self.apt("download", "haulout", fails=True), "Hash Sum mismatch|unexpected size")

    def test_apt_refuses_a_changed_list(self):
        for listed in self.repository.rglob("Packages*"):
            listed.write_bytes(listed.read_bytes() + b"\n")
        self.assertRegex(self.apt("update", fails=True), "Hash Sum mismatch|unexpected size")

    def test_apt_refuses_what_another_key_has_signed(self):
        """The attacker has changed the package, and has made all lists again."""
        fingerprint, public_key = self.other_key()
        (deb,) = self.repository.rglob("*_amd64.deb")
        make_release.write_apt(self.repository, {"amd64": self.another_package(deb)}, "9", 0)
        openpgp.sign(self.suite / "Release", fingerprint)
        self.refuses_the_repository("NO_PUBKEY|not signed")
        self.use("signed-by", public_key)  # it is only the key that apt does not accept
        self.apt("update")
        self.assertIn("Inst haulout (9 ", self.apt("install", "--simulate", "--no-install-recommends", "haulout"))

    def another_package(self, deb):
        subprocess.run(["dpkg-deb", "--raw-extract", deb, self.scratch / "unpacked"], check=True)
        control = self.scratch / "unpacked/DEBIAN/control"
        control.write_text(re.sub(r"(?m)^Version: .*$", "Version: 9", control.read_text()))
        changed = self.scratch / "haulout_9_amd64.deb"
        subprocess.run(["dpkg-deb", "-Znone", "--root-owner-group", "--build", self.scratch / "unpacked", changed],
                       stdout=subprocess.DEVNULL, check=True)
        return changed

    def test_apt_accepts_no_other_key_of_the_user(self):
        _, public_key = self.other_key()
        self.use("signed-by", public_key)
        self.refuses_the_repository("NO_PUBKEY")


class NotSigned(Apt):
    """The repository of a release without --apt-key."""

    def setUp(self):
        super().setUp()
        for name in ("InRelease", "Release.gpg"):
            (self.suite / name).unlink()
        self.use("trusted")

    def test_apt_finds_downloads_and_would_install_the_package(self):
        self.gets_the_package("amd64")
        self.assertRegex(self.apt("install", "--simulate", "haulout"), r"(?m)^Inst haulout \(\S+ Haulout:\S*stable \[amd64\]\)")

    def test_apt_refuses_a_changed_package(self):
        self.apt("update")
        (packed,) = self.repository.rglob("*_amd64.deb")
        content = packed.read_bytes()
        packed.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        self.assertRegex(self.apt("download", "haulout", fails=True), "Hash Sum mismatch|unexpected size")


class Keys(unittest.TestCase):
    def setUp(self):
        self.enterContext(keyring())

    def test_is_found_by_address_and_by_fingerprint(self):
        fingerprint = new_key("One <one@example.org>")
        self.assertRegex(fingerprint, "^[0-9A-F]{40}$")
        self.assertEqual(fingerprint, openpgp.find("one@example.org"))
        self.assertEqual(fingerprint, openpgp.find(fingerprint))

    def test_must_exist(self):
        with self.assertRaisesRegex(openpgp.Problem, "no secret key 'nobody@example.org'"):
            openpgp.find("nobody@example.org")

    def test_must_be_named_without_doubt(self):
        both = [new_key(f"{name} <{name}@example.org>") for name in ("one", "two")]
        with self.assertRaisesRegex(openpgp.Problem, "2 secret keys match 'example.org'") as raised:
            openpgp.find("example.org")
        for fingerprint in both:
            self.assertIn(fingerprint, str(raised.exception))

    def test_must_be_able_to_sign(self):
        openpgp.gpg("--passphrase", "", "--faked-system-time", "20200101T000000", "--quick-generate-key", "old@example.org",
                    "ed25519", "sign", "1d")
        with self.assertRaisesRegex(openpgp.Problem, "gpg failed"):
            openpgp.find("old@example.org")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    RELEASE = pathlib.Path(sys.argv[1]).absolute()
    unittest.main(argv=sys.argv[:1])
