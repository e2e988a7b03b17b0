#!/usr/bin/env python3
"""Tests the programs that write the files of a release, without artefacts. artefacts_test.py checks a whole release."""
import io
import pathlib
import re
import sys
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "packaging/release"), str(ROOT / "packaging/cross"), str(ROOT / "tests/release")]
import bare_release  # noqa: E402
import linked_packages  # noqa: E402
import make_release  # noqa: E402
import make_root  # noqa: E402
import make_tarball  # noqa: E402

EPOCH = 1795262400  # 2026-11-21T12:00:00Z
TARBALLS = {"amd64": ("haulout_0.1.0_linux_amd64.tar.gz", "a" * 64)}
URL = "https://example.org/0.1.0"


def package(name="libssl-dev", how="static", **changed):
    values = {"version": "3.0.19-1~deb12u2+b1", "architecture": "amd64", "source": "openssl 3.0.19-1~deb12u2",
              "homepage": "https://openssl.org/", "license": "Apache-2.0", "files": ["libssl.a"], **changed}
    return linked_packages.Package(name=name, how=how, **values)


class Evidence(unittest.TestCase):
    def test_shared_libraries(self):
        text = (" 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]\n"
                " 0x000000000000000e (SONAME)             Library soname: [libown.so]\n"
                " 0x0000000000000001 (NEEDED)             Shared library: [libsdbus-c++.so.1]\n")
        self.assertEqual(["libc.so.6", "libsdbus-c++.so.1"], linked_packages.needed(text))

    def test_linked_files_are_those_outside_the_tree(self):
        text = ("  2fc  2fc  20  4         /lib/x86_64-linux-gnu/Scrt1.o:(.note.ABI-tag)\n"
                "  300  300  20  4         drain/libhaulout_drain.a(order.cpp.o):(.text)\n"
                "  310  310  20  4         cli/CMakeFiles/haulout.dir/main.cpp.o:(.text)\n"
                "  320  320  20  4         /usr/lib/x86_64-linux-gnu/libyaml-cpp.a(node.cpp.o):(.text)\n"
                "  330  330  20  4         /usr/lib/x86_64-linux-gnu/libyaml-cpp.a(parse.cpp.o):(.text)\n")
        self.assertEqual(["/lib/x86_64-linux-gnu/Scrt1.o", "/usr/lib/x86_64-linux-gnu/libyaml-cpp.a"],
                         linked_packages.linked_files(text))

    def test_headers_are_found_by_their_namespaces(self):
        self.assertEqual([], linked_packages.header_packages("_ZN7haulout3cli4mainEv 3CLI"))
        self.assertEqual(["libcli11-dev", "libfmt-dev"],
                         linked_packages.header_packages("_ZN3CLI3AppC2Ev\n_ZN3fmt2v96detailE\n"))

    def test_each_library_of_the_setup_is_accounted_for(self):
        setup = (ROOT / "scripts/setup.sh").read_text()
        listed = re.search(r"^library_packages=\((.*?)\)", setup, re.S | re.M)[1].split()
        self.assertIn("libssl-dev", listed)
        # These have a library, which readelf or the map shows.
        with_library = {"libboost-json1.81-dev", "libboost-log1.81-dev", "libboost-url1.81-dev", "libssl-dev", "libyaml-cpp-dev",
                        "libhowardhinnant-date-dev", "libsdbus-c++-dev", "libsystemd-dev", "prometheus-cpp-dev"}
        self.assertEqual(set(), set(listed) - with_library - linked_packages.HEADERS.keys() - {"tzdata"})
        self.assertEqual(set(), linked_packages.HEADERS.keys() - set(listed))

    def test_owners(self):
        text = ("diversion by dash from: /bin/sh\n"
                "libc6:amd64: /lib/x86_64-linux-gnu/libc.so.6\n"
                "libssl-dev:amd64, other: /usr/lib/x86_64-linux-gnu/libssl.a\n")
        self.assertEqual({"/lib/x86_64-linux-gnu/libc.so.6": "libc6", "/lib/x86_64-linux-gnu/libssl.a": "libssl-dev"},
                         linked_packages.owners(text))

    def test_files_of_another_root_are_named_as_in_that_root(self):
        text = "libc6:arm64: /build/arm64/root/lib/aarch64-linux-gnu/libc.so.6\n"
        self.assertEqual({"/lib/aarch64-linux-gnu/libc.so.6": "libc6"}, linked_packages.owners(text, "/build/arm64/root"))
        linked = "/build/arm64/root/usr/lib/gcc/aarch64-linux-gnu/12/../../../aarch64-linux-gnu/libc.so.6"
        self.assertEqual("/lib/aarch64-linux-gnu/libc.so.6", linked_packages.without_usr(linked, "/build/arm64/root"))

    def test_files_by_package(self):
        owner = {"/lib/t/libssl.a": "libssl-dev", "/lib/t/libcrypto.a": "libssl-dev", "/lib/t/libc.so.6": "libc6"}
        found = linked_packages.combined({"static": ["/usr/lib/t/libssl.a", "/lib/t/libcrypto.a"], "dynamic": ["/usr/lib/t/libc.so.6"]}, owner)
        self.assertEqual({("libc6", "dynamic"): ["libc.so.6"], ("libssl-dev", "static"): ["libcrypto.a", "libssl.a"]}, found)

    def test_a_library_of_no_package_is_an_error(self):
        with self.assertRaisesRegex(linked_packages.Problem, "no Debian package has /opt/lib/libown.so"):
            linked_packages.combined({"dynamic": ["/opt/lib/libown.so"]}, {})

    def test_license_is_that_of_all_files(self):
        head = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\n"
        for expected, text in [
            ("MIT", head + "Files: debian/*\nLicense: GPL-2+\n\nFiles: *\nCopyright: A\nLicense: Expat\n"),
            ("NOASSERTION", head + "Files: debian/*\nLicense: GPL-2+\n"),
            ("NOASSERTION", head + "Files: *\nLicense: Expat with embedded exception\n"),
            ("NOASSERTION", "This is the GNU C Library.\n\nFiles: *\nLicense: LGPL-2.1+\n"),
        ]:
            self.assertEqual(expected, linked_packages.license_of(text), text)


class Tarball(unittest.TestCase):
    files = {"haulout": (b"program", 0o755), "LICENSE": (b"license", 0o644)}

    def test_depends_on_nothing_but_its_input(self):
        first = make_tarball.archive(self.files, EPOCH)
        self.assertEqual(first, make_tarball.archive(dict(reversed(self.files.items())), EPOCH))
        self.assertNotEqual(first, make_tarball.archive(self.files, EPOCH + 1))

    def test_entries(self):
        with tarfile.open(fileobj=io.BytesIO(make_tarball.archive(self.files, EPOCH))) as tar:
            entries = [(entry.name, entry.mode, entry.uid, entry.uname, entry.mtime, entry.isfile()) for entry in tar]
            self.assertEqual([("LICENSE", 0o644, 0, "root", EPOCH, True), ("haulout", 0o755, 0, "root", EPOCH, True)], entries)
            self.assertEqual(b"program", tar.extractfile("haulout").read())


class Documents(unittest.TestCase):
    packages = [package(), package("libsdbus-c++1", "dynamic", files=["libsdbus-c++.so.1"], license="NOASSERTION", homepage=""),
                package("libcli11-dev", "headers", files=[]), package("libc6", "dynamic", files=["libc.so.6"])]

    def test_sums_are_sorted_and_in_the_format_of_sha256sum(self):
        self.assertEqual(f"{'1' * 64}  a\n{'0' * 64}  b\n", make_release.sums({"b": "0" * 64, "a": "1" * 64}))

    def test_package_url(self):
        self.assertEqual("pkg:deb/debian/libsdbus-c%2B%2B1@3.0.19-1~deb12u2%2Bb1?arch=amd64&distro=debian-12",
                         make_release.purl(self.packages[1], "debian-12"))

    def test_bill_of_materials_has_each_package_and_how_it_is_linked(self):
        document = make_release.bill_of_materials("haulout_0.1.0_linux_amd64.tar.gz", "a" * 64, "0.1.0", URL, EPOCH,
                                                  self.packages, "debian-12")
        self.assertEqual("2026-11-21T12:00:00Z", document["creationInfo"]["created"])
        own, *others = document["packages"]
        self.assertEqual([{"algorithm": "SHA256", "checksumValue": "a" * 64}], own["checksums"])
        self.assertEqual(f"{URL}/haulout_0.1.0_linux_amd64.tar.gz", own["downloadLocation"])
        self.assertEqual([entry.name for entry in self.packages], [other["name"] for other in others])
        self.assertEqual("linked statically: libssl.a.", others[0]["comment"])
        self.assertIn("uses the version of the machine", others[1]["comment"])
        self.assertNotIn("homepage", others[1])
        self.assertEqual(
            [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-haulout"),
             ("SPDXRef-haulout", "STATIC_LINK", "SPDXRef-libssl-dev-static"),
             ("SPDXRef-haulout", "DYNAMIC_LINK", "SPDXRef-libsdbus-c--1-dynamic"),
             ("SPDXRef-haulout", "STATIC_LINK", "SPDXRef-libcli11-dev-headers"),
             ("SPDXRef-haulout", "DYNAMIC_LINK", "SPDXRef-libc6-dynamic")],
            [(row["spdxElementId"], row["relationshipType"], row["relatedSpdxElement"]) for row in document["relationships"]])

    def test_provenance_names_artefacts_commit_and_what_is_linked(self):
        statement = make_release.provenance({"b.deb": "b" * 64, "a.tar.gz": "a" * 64}, "0.1.0", "c" * 40,
                                            [*self.packages, self.packages[0]], "debian-12")
        self.assertEqual("https://in-toto.io/Statement/v1", statement["_type"])
        self.assertEqual("https://slsa.dev/provenance/v1", statement["predicateType"])
        self.assertEqual([{"name": "a.tar.gz", "digest": {"sha256": "a" * 64}}, {"name": "b.deb", "digest": {"sha256": "b" * 64}}],
                         statement["subject"])
        source, *linked = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
        self.assertEqual({"name": "haulout", "digest": {"gitCommit": "c" * 40}}, source)
        self.assertEqual(len(self.packages), len(linked))
        self.assertIn("buildType", statement["predicate"]["buildDefinition"])
        self.assertIn("id", statement["predicate"]["runDetails"]["builder"])

    def test_libraries_to_install_are_those_that_not_every_debian_has(self):
        self.assertEqual(["libsdbus-c++1"], make_release.libraries_to_install(self.packages))

    def test_package_managers_get_address_and_digest_of_each_architecture(self):
        both = {**TARBALLS, "arm64": ("haulout_0.1.0_linux_arm64.tar.gz", "b" * 64)}
        for make in (make_release.krew_manifest, make_release.homebrew_formula):
            text = make("0.1.0", URL, both, ["libsdbus-c++1"])
            for name, digest in both.values():
                self.assertRegex(text, f'{URL}/{name}"?\n +sha256:? "?{digest}')
            self.assertIn("libsdbus-c++1", text)
            self.assertNotIn("arm64", make("0.1.0", URL, TARBALLS, []))
            self.assertNotIn("on_arm", make("0.1.0", URL, TARBALLS, []))

    def test_date_of_apt(self):
        self.assertEqual("Sat, 21 Nov 2026 12:00:00 +0000", make_release.apt_date(EPOCH))

    def test_distribution(self):
        self.assertEqual("debian-12", make_release.distribution_of('NAME="Debian"\nVERSION_ID="12"\nID=debian\nID_LIKE=x\n'))


class Root(unittest.TestCase):
    def test_packages_come_from_the_release_of_this_machine(self):
        codename = make_root.codename_of('ID=debian\nVERSION_CODENAME=bookworm\nVERSION_ID="12"\n')
        suites = [line.split()[3] for line in make_root.sources(codename).splitlines()]
        self.assertEqual(["bookworm", "bookworm-updates", "bookworm-security"], suites)

    def test_needs_a_release_of_debian(self):
        for text in ("ID=ubuntu\nVERSION_CODENAME=noble\n", "ID=debian\n"):  # Debian unstable has no codename
            with self.assertRaisesRegex(make_root.Problem, "on a release of Debian only"):
                make_root.codename_of(text)

    def test_links_stay_in_the_root(self):
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory, "root")
            (root / "usr/lib").mkdir(parents=True)
            (root / "usr/lib/libc.so.6").write_text("library")
            (root / "usr/lib/libc.so").symlink_to("/usr/lib/libc.so.6")
            make_root.relative_links(root)
            self.assertEqual("libc.so.6", str((root / "usr/lib/libc.so").readlink()))
            self.assertEqual("library", (root / "usr/lib/libc.so").read_text())


class Artefacts(unittest.TestCase):
    def test_are_those_of_the_version(self):
        names = ["haulout_0.1.0_linux_amd64.tar.gz", "haulout_0.1.0_amd64.deb", "haulout_0.2.0_amd64.deb", "haulout_0x1.0_arm64.deb",
                 "SHA256SUMS", "haulout_0.1.0_linux_amd64.spdx.json"]
        self.assertEqual(({"amd64": names[0]}, {"amd64": names[1]}), make_release.artefacts(names, "0.1.0"))

    def make(self, names, maps=()):
        with tempfile.TemporaryDirectory() as directory:
            for name in names:
                pathlib.Path(directory, name).touch()
            make_release.make(pathlib.Path(directory), "0.1.0", "c" * 40, URL, dict.fromkeys(maps), EPOCH, {})

    def test_a_missing_one_is_an_error(self):
        with self.assertRaisesRegex(linked_packages.Problem, "for each architecture; tarballs: \\[\\], Debian packages: \\[\\]"):
            self.make([])
        with self.assertRaisesRegex(linked_packages.Problem, "tarballs: \\['amd64'\\], Debian packages: \\['arm64'\\]"):
            self.make(["haulout_0.1.0_linux_amd64.tar.gz", "haulout_0.1.0_arm64.deb"], ["amd64"])

    def test_a_missing_image_is_an_error(self):
        with self.assertRaisesRegex(linked_packages.Problem, "has no haulout_0.1.0_image.tar"):
            self.make(["haulout_0.1.0_linux_amd64.tar.gz", "haulout_0.1.0_amd64.deb"], ["amd64"])

    def test_a_missing_map_is_an_error(self):
        with self.assertRaisesRegex(linked_packages.Problem, "no --map for amd64"):
            self.make(["haulout_0.1.0_linux_amd64.tar.gz", "haulout_0.1.0_amd64.deb"])


class Differences(unittest.TestCase):
    """Between two releases that should be equal."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.one, self.two = pathlib.Path(directory.name, "one"), pathlib.Path(directory.name, "two")
        for release in (self.one, self.two):
            for name in ("SHA256SUMS", *bare_release.SIGNATURES):
                (release / name).parent.mkdir(parents=True, exist_ok=True)
                (release / name).write_text("the same\n")

    def put(self, name, one, two):
        (self.one / name).write_bytes(one)
        (self.two / name).write_bytes(two)

    def found(self):
        return bare_release.differences(self.one, self.two)

    def test_equal_releases_have_none(self):
        self.assertEqual([], self.found())

    def test_signatures_may_differ_and_nothing_else(self):
        for name in bare_release.SIGNATURES:
            self.put(name, b"one", b"two")
        self.assertEqual([], self.found())
        self.put("SHA256SUMS", b"same\none\n", b"same\ntwo\n")
        self.assertEqual(["SHA256SUMS: differs", "    @@ -2 +2 @@", "    -one", "    +two"], self.found())

    def test_a_file_that_only_one_has(self):
        (self.two / "more").touch()
        (self.one / "SHA256SUMS").unlink()
        self.assertEqual(["SHA256SUMS: only in one of them", "more: only in one of them"], self.found())

    def test_a_signature_that_none_has(self):
        for release in (self.one, self.two):
            (release / "SHA256SUMS.sig").unlink()
        self.assertEqual(["SHA256SUMS.sig: in neither of them"], self.found())

    def test_of_an_archive_its_members_are_named(self):
        files = {"haulout": (b"program", 0o755), "LICENSE": (b"license", 0o644)}
        self.put("a.tar.gz", make_tarball.archive(files, EPOCH), make_tarball.archive({**files, "LICENSE": (b"other", 0o600)}, EPOCH))
        text = "\n".join(self.found())
        self.assertRegex(text, r"^a\.tar\.gz: differs\n.*LICENSE: .* mode 644 .*\n.*LICENSE: .* mode 600 ")
        self.assertIn("LICENSE: content differs\n        @@ -1 +1 @@\n        -license\n        +other", text)
        self.assertNotIn("haulout", text)

    def test_of_a_debian_package_the_members_of_its_members_are_named(self):
        def package(content):
            data = make_tarball.archive({"usr/bin/haulout": (content, 0o755)}, EPOCH)
            return b"!<arch>\n" + f"{'data.tar.gz':16}{EPOCH:<12}{0:<6}{0:<6}{'100644':8}{len(data):<10}`\n".encode() + data

        self.put("a.deb", package(b"one"), package(b"two"))
        self.assertIn("usr/bin/haulout: content differs", "\n".join(self.found()))

    def test_members_that_are_named_after_their_content_are_compared(self):
        self.put("image.tar", *(make_tarball.archive({"index": (b"index", 0o644), name: (name.encode(), 0o644)}, EPOCH) for name in ("sum1", "sum2")))
        text = "\n".join(self.found())
        self.assertIn("sum1: content differs", text)
        self.assertNotIn("index", text)

    def test_of_a_program_the_text_with_the_path_of_the_build_is_named(self):
        self.put("program", b"\x7fELF\0/root/haulout/a.cpp\0abcdefg\0", b"\x7fELF\0/srv/haulout/a.cpp\0abcdefg\0")
        self.assertEqual(["text only in one: /root/haulout/a.cpp", "text only in two: /srv/haulout/a.cpp"],
                         [line.strip() for line in self.found()[2:]])


if __name__ == "__main__":
    unittest.main()
