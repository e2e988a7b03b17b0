#!/usr/bin/env python3
"""Tests the container image: two builds are equal, it is small, other tools can read it, it runs, and it has no shell.

  image_test.py BINARY VERSION        needs skopeo and umoci; running it in its own root needs root or user namespaces
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT = 10_000_000  # bytes, compressed


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class ImageTest(unittest.TestCase):
    binary = version = ""

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="haulout-image-")
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.directory = pathlib.Path(cls.temporary.name)
        cls.digests = [cls.build(cls.directory / name) for name in ("first", "second")]
        cls.oci = cls.directory / "first" / "oci"

    @classmethod
    def build(cls, output):
        script = ROOT / "packaging" / "image" / "build_image.py"
        return run(sys.executable, str(script), "--binary", cls.binary, "--version", cls.version, "--output", str(output),
                   env=dict(os.environ, SOURCE_DATE_EPOCH="1700000000")).strip()

    @classmethod
    def unpacked(cls):
        bundle = cls.directory / "bundle"
        if not bundle.exists():
            rootless = [] if os.geteuid() == 0 else ["--rootless"]
            run("umoci", "unpack", *rootless, "--image", f"{cls.oci}:{cls.version}", str(bundle))
        return bundle / "rootfs"

    def test_the_same_twice(self):
        self.assertEqual(self.digests[0], self.digests[1])
        archives = [(self.directory / name / f"haulout-{self.version}.tar").read_bytes() for name in ("first", "second")]
        self.assertTrue(archives[0] == archives[1], "the archives differ")

    def test_small(self):
        size = sum(file.stat().st_size for file in (self.oci / "blobs").rglob("*") if file.is_file())
        print(f"   the image has {size / 1e6:.1f} MB", file=sys.stderr)
        self.assertLessEqual(size, LIMIT)

    def test_other_tools_read_it(self):
        archive = self.directory / "first" / f"haulout-{self.version}.tar"
        for place in (f"oci:{self.oci}:{self.version}", f"oci-archive:{archive}:{self.version}"):
            self.assertEqual(json.loads(run("skopeo", "inspect", place))["Digest"], self.digests[0])

    def test_it_runs_from_its_own_root(self):
        enter = ["chroot"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "chroot"]
        printed = run(*enter, str(self.unpacked()), "/usr/bin/haulout", "version", env={"PATH": os.environ["PATH"]})
        self.assertIn(self.version, printed)

    def test_what_is_in_it(self):
        rootfs = self.unpacked()
        programs = [path for path in rootfs.rglob("*")
                    if path.is_file() and not path.is_symlink() and os.access(path, os.X_OK) and ".so" not in path.name]
        self.assertEqual([str(path.relative_to(rootfs)) for path in programs], ["usr/bin/haulout"])
        self.assertTrue((rootfs / "usr/share/zoneinfo/Europe/Berlin").is_file())
        self.assertGreater((rootfs / "etc/ssl/certs/ca-certificates.crt").read_text().count("BEGIN CERTIFICATE"), 100)


if __name__ == "__main__":
    ImageTest.binary, ImageTest.version = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
