#!/usr/bin/env python3
"""Checks the files of a release by the programs that will read them.

  artefacts_test.py RELEASE AGAIN TOOLS ARM64

RELEASE and AGAIN are two directories of `./dev release`, made one after the other from the same build; TOOLS has pyspdxtools, krew
and validate-krew-manifest; ARM64 is a directory of packaging/cross/make_root.py. Needs ruby, skopeo and qemu-aarch64-static. Nothing of this machine is changed.
"""
import datetime
import filecmp
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest

RELEASE = AGAIN = SPDX = KREW = ARM64 = None
TREE = pathlib.Path(__file__).resolve().parents[2]
ARCHITECTURES = ["amd64", "arm64"]


def only(pattern):
    """Returns the one file of the release with such a name."""
    found = list(RELEASE.glob(pattern))
    assert len(found) == 1, f"{pattern}: {found}"
    return found[0]


def run(*command, **options):
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)


class Scratch(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.scratch = pathlib.Path(directory.name)

    def succeeds(self, *command, **options):
        done = run(*command, **options)
        self.assertEqual(0, done.returncode, f"{command}: {done.stdout}")
        return done.stdout

    def program(self, architecture):
        directory = self.scratch / architecture
        directory.mkdir()
        self.succeeds("tar", "--extract", "--gzip", "--file", only(f"*_linux_{architecture}.tar.gz"), "--directory", directory)
        emulator = ["qemu-aarch64-static", "-L", ARM64 / "root"] if architecture == "arm64" else []
        return [*emulator, directory / "haulout"]

    def fails(self, *command, **options):
        done = run(*command, **options)
        self.assertNotEqual(0, done.returncode, f"{command}: {done.stdout}")
        return done.stdout


class Files(Scratch):
    def test_two_runs_give_the_same_bytes(self):
        names = [{path.relative_to(top) for path in top.rglob("*") if path.is_file()} for top in (RELEASE, AGAIN)]
        self.assertEqual(*names)
        self.assertGreaterEqual(len(names[0]), 10)
        different = [str(name) for name in names[0] if not filecmp.cmp(RELEASE / name, AGAIN / name, shallow=False)]
        # An OpenPGP signature has the time at which it was made.
        self.assertEqual([], sorted(set(different) - {"apt/dists/stable/InRelease", "apt/dists/stable/Release.gpg"}))

    def test_sums_are_right_and_complete(self):
        self.succeeds("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=RELEASE)
        listed = re.findall(r"^[0-9a-f]{64}  (.+)$", (RELEASE / "SHA256SUMS").read_text(), re.M)
        files = {path.relative_to(RELEASE).as_posix() for path in RELEASE.rglob("*") if path.is_file()}
        self.assertEqual({name for name in files if not name.startswith("apt/")} - {"SHA256SUMS"}, set(listed))

    def test_no_program_names_the_directory_in_which_it_was_built(self):
        for architecture in ARCHITECTURES:
            with tarfile.open(only(f"*_linux_{architecture}.tar.gz")) as tar:
                program = tar.extractfile("haulout").read()
            self.assertIn(b"authority.cpp", program)  # names of sources are in it
            self.assertNotIn(f"{TREE}/".encode(), program)

    def test_everybody_may_enter_the_directories_of_the_packages(self):
        for architecture in ARCHITECTURES:
            listed = self.succeeds("dpkg-deb", "--contents", only(f"haulout_*_{architecture}.deb"))
            directories = [line for line in listed.splitlines() if line.startswith("d")]
            self.assertGreater(len(directories), 5)
            self.assertEqual([], [line for line in directories if not line.startswith("drwxr-xr-x root/root ")])

    def test_program_of_the_tarball_runs(self):
        self.succeeds("tar", "--extract", "--gzip", "--file", only("*_linux_amd64.tar.gz"), "--directory", self.scratch)
        version = only("*_linux_amd64.tar.gz").name.split("_")[1]
        self.assertEqual(f"haulout {version}\n", self.succeeds(self.scratch / "haulout", "version"))
        self.assertTrue((self.scratch / "man/man1/haulout-drain.1").is_file())
        self.succeeds("bash", "-n", self.scratch / "completions/haulout.bash")

    def test_program_names_the_commit_of_the_provenance(self):
        provenance = json.loads(only("*_provenance.json").read_text())
        sources = provenance["predicate"]["buildDefinition"]["resolvedDependencies"]
        commit = next(source["digest"]["gitCommit"] for source in sources if source["name"] == "haulout")
        seconds = int(self.succeeds("git", "-C", TREE, "log", "-1", "--format=%ct", commit))
        time = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        for architecture in ARCHITECTURES:
            info = json.loads(self.succeeds(*self.program(architecture), "version", "-o", "json"))
            # The program adds -dirty if files of the tree were changed when it was built. `./dev release` refuses such a tree.
            self.assertEqual(commit, info["commit"].removesuffix("-dirty"))
            self.assertEqual(time, info["buildDate"])
            self.assertEqual(f"linux/{architecture}", info["platform"])


def fleet():
    """Returns a snapshot: four nodes, and a Deployment with a budget."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "set", "controller": True}
    labels = {"app": "web"}
    ready = {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-21T12:00:00Z"}]}
    nodes = [{"kind": "Node", "apiVersion": "v1", "metadata": {"name": f"node-{i}", "uid": f"node-{i}"},
              "status": {**ready, "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "20"}}} for i in range(4)]
    pods = [{"kind": "Pod", "apiVersion": "v1",
             "metadata": {"name": f"web-{i}", "namespace": "shop", "uid": f"web-{i}", "labels": labels, "ownerReferences": [owner]},
             "spec": {"nodeName": f"node-{i % 4}", "containers": [{"name": "web", "image": "web"}]},
             "status": {"phase": "Running", **ready}} for i in range(10)]
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web"}]}}
    spec = {"replicas": 10, "selector": {"matchLabels": labels}, "template": template}
    others = [{"kind": "ReplicaSet", "apiVersion": "apps/v1", "metadata": {"name": "web", "namespace": "shop", "uid": "set"}, "spec": spec},
              {"kind": "PodDisruptionBudget", "apiVersion": "policy/v1", "metadata": {"name": "web", "namespace": "shop", "uid": "budget"},
               "spec": {"maxUnavailable": "20%", "selector": {"matchLabels": labels}}}]
    return {"kind": "List", "apiVersion": "v1", "items": [*nodes, *pods, *others]}


class Arm64(Scratch):
    def test_program_is_for_this_architecture(self):
        (*_, path) = self.program("arm64")
        self.assertRegex(self.succeeds("readelf", "--file-header", path), r"Machine: +AArch64")

    def test_a_second_build_compiles_nothing(self):
        """ninja builds again whatever depends on a file that does not exist. It shortens a/b/../c to a/c, also if b is a link."""
        known = self.succeeds("ninja", "-C", TREE / "build/release-arm64", "-t", "deps", "CMakeFiles/house_pch.dir/cmake_pch.hxx.pch")
        headers = {line.strip() for line in known.splitlines() if line.startswith("    ")}
        self.assertTrue([name for name in headers if name.endswith("/algorithm")])
        self.assertEqual([], sorted(name for name in headers if not (TREE / "build/release-arm64" / name).exists())[:5])

    def test_both_programs_print_the_same_of_a_fleet(self):
        amd64, arm64 = (self.program(architecture) for architecture in ARCHITECTURES)
        self.assertEqual(self.succeeds(*amd64, "version"), self.succeeds(*arm64, "version"))
        (self.scratch / "fleet.json").write_text(json.dumps(fleet()))
        rehearsal = ["rehearse", "--all", "-f", self.scratch / "fleet.json", "-o", "json"]
        printed = self.succeeds(*amd64, *rehearsal)
        self.assertEqual(4, len(json.loads(printed)["nodes"]))
        self.assertEqual(printed, self.succeeds(*arm64, *rehearsal))

    def test_completions_and_pages_are_those_of_amd64(self):
        files = {}
        for architecture in ARCHITECTURES:
            with tarfile.open(only(f"*_linux_{architecture}.tar.gz")) as tar:
                files[architecture] = {entry.name: tar.extractfile(entry).read() for entry in tar if entry.name != "haulout"}
        self.assertEqual(files["amd64"], files["arm64"])

    def test_packages_depend_on_the_same(self):
        def names(field, architecture):
            depends = self.succeeds("dpkg-deb", "--field", only(f"haulout_*_{architecture}.deb"), field)
            return {re.match(r"[^ ]+", word.strip())[0] for word in depends.split(",")}

        self.assertIn("libsystemd0", names("Depends", "arm64"))
        self.assertEqual(names("Depends", "amd64"), names("Depends", "arm64"))


class Image(Scratch):
    def test_is_an_index_of_both_architectures(self):
        image = only("*_image.tar")
        index = json.loads(self.succeeds("skopeo", "inspect", "--raw", f"oci-archive:{image}"))
        platforms = [(row["platform"]["os"], row["platform"]["architecture"]) for row in index["manifests"]]
        self.assertEqual([("linux", architecture) for architecture in ARCHITECTURES], platforms)

    def test_has_what_each_architecture_needs(self):
        for architecture, loader in {"amd64": "usr/lib64/ld-linux-x86-64.so.2", "arm64": "usr/lib/ld-linux-aarch64.so.1"}.items():
            chosen = self.scratch / architecture
            self.succeeds("skopeo", "copy", "--quiet", "--override-arch", architecture, f"oci-archive:{only('*_image.tar')}", f"dir:{chosen}")
            manifest = json.loads((chosen / "manifest.json").read_text())
            with tarfile.open(only(f"*_linux_{architecture}.tar.gz")) as tar, \
                    tarfile.open(chosen / manifest["layers"][0]["digest"].removeprefix("sha256:")) as layer:
                self.assertEqual(tar.extractfile("haulout").read(), layer.extractfile("usr/bin/haulout").read())
                self.assertIn(loader, layer.getnames())

    def test_for_arm64_runs_from_its_own_root(self):
        self.succeeds("skopeo", "copy", "--quiet", "--override-arch", "arm64", f"oci-archive:{only('*_image.tar')}", f"dir:{self.scratch}/arm64")
        manifest = json.loads((self.scratch / "arm64/manifest.json").read_text())
        root = self.scratch / "root"
        root.mkdir()
        layer = self.scratch / "arm64" / manifest["layers"][0]["digest"].removeprefix("sha256:")
        self.succeeds("tar", "--extract", "--file", layer, "--directory", root)
        self.assertTrue(self.succeeds("qemu-aarch64-static", "-L", root, root / "usr/bin/haulout", "version").startswith("haulout "))


class Manifests(Scratch):
    def unpacked(self, pattern):
        self.succeeds("tar", "--extract", "--gzip", "--file", only(pattern), "--directory", self.scratch)
        (directory,) = self.scratch.iterdir()
        return directory

    def expect_tree(self, shipped, directory):
        files = {path.relative_to(shipped) for path in shipped.rglob("*") if path.is_file()}
        self.assertGreater(len(files), 5)
        self.assertEqual(files, {path.relative_to(directory) for path in directory.rglob("*") if path.is_file()})
        self.assertEqual([], [str(path) for path in files if not filecmp.cmp(shipped / path, directory / path, shallow=False)])

    def test_chart_is_the_tree_under_its_name(self):
        version = only("*_image.tar").name.split("_")[1]
        self.expect_tree(TREE / "packaging/helm/haulout", self.unpacked("haulout-*.tgz"))
        self.assertEqual(f"haulout-{version}.tgz", only("haulout-*.tgz").name)
        self.assertRegex((TREE / "packaging/helm/haulout/Chart.yaml").read_text(), rf"(?m)^version: {re.escape(version)}$")

    def test_kustomize_is_the_tree(self):
        self.expect_tree(TREE / "packaging/kustomize", self.unpacked("*_kustomize.tar.gz"))


class BillOfMaterials(Scratch):
    def test_is_valid(self):
        for architecture in ARCHITECTURES:
            self.succeeds(SPDX, "--infile", only(f"*_linux_{architecture}.spdx.json"), "--version", "SPDX-2.3")

    def test_names_the_same_packages_for_both_architectures(self):
        found = [{entry["name"] for entry in json.loads(only(f"*_linux_{architecture}.spdx.json").read_text())["packages"]}
                 for architecture in ARCHITECTURES]
        self.assertEqual(*found)

    def test_the_validator_finds_a_defect(self):
        document = json.loads(only("*_amd64.spdx.json").read_text())
        del document["packages"][0]["downloadLocation"]
        (self.scratch / "bad.spdx.json").write_text(json.dumps(document))
        self.fails(SPDX, "--infile", self.scratch / "bad.spdx.json", "--version", "SPDX-2.3")

    def test_has_what_the_program_consists_of(self):
        document = json.loads(only("*_amd64.spdx.json").read_text())
        kinds = {row["relatedSpdxElement"]: row["relationshipType"] for row in document["relationships"]}
        found = {entry["name"]: kinds[entry["SPDXID"]] for entry in document["packages"]}
        for name, kind in {"haulout": "DESCRIBES", "libssl-dev": "STATIC_LINK", "libboost-json1.81-dev": "STATIC_LINK",
                           "libyaml-cpp-dev": "STATIC_LINK", "libboost1.81-dev": "STATIC_LINK", "libcli11-dev": "STATIC_LINK",
                           "libfmt-dev": "STATIC_LINK", "nlohmann-json3-dev": "STATIC_LINK", "libc6": "DYNAMIC_LINK",
                           "libstdc++6": "DYNAMIC_LINK", "libsdbus-c++1": "DYNAMIC_LINK"}.items():
            self.assertEqual(kind, found.get(name), name)
        for entry in document["packages"][1:]:
            version = self.succeeds("dpkg-query", "-W", "-f=${Version}\n", entry["name"])
            self.assertIn(entry["versionInfo"], version.splitlines())

    def test_the_page_names_the_libraries_to_install(self):
        libraries = re.search(r"libraries of another distribution: (.*)", (RELEASE / "krew/haulout.yaml").read_text())[1]
        page = (TREE / "docs/release.md").read_text()
        self.assertIn(f"\n    apt install {libraries.replace(',', '')}\n", page)


class Provenance(Scratch):
    def test_subjects_are_the_artefacts(self):
        statement = json.loads(only("*_provenance.json").read_text())
        subjects = {entry["name"]: entry["digest"]["sha256"] for entry in statement["subject"]}
        files = [path for pattern in ("*.tar.gz", "*.tgz", "*.deb", "*_image.tar") for path in RELEASE.glob(pattern)]
        self.assertEqual(7, len(files))
        self.assertEqual({path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}, subjects)


class Krew(Scratch):
    def test_manifest_is_valid(self):
        self.succeeds(KREW / "validate-krew-manifest", "-manifest", RELEASE / "krew/haulout.yaml", "-skip-install")

    def install(self, archive):
        return [KREW / "krew", "install", "--manifest", RELEASE / "krew/haulout.yaml", "--archive", archive]

    def test_installs_the_plugin(self):
        environment = {**os.environ, "KREW_ROOT": str(self.scratch / "krew"), "KREW_NO_UPGRADE_CHECK": "1"}
        self.succeeds(*self.install(only("*_linux_amd64.tar.gz")), env=environment)
        self.assertIn("drain", self.succeeds(self.scratch / "krew/bin/kubectl-haulout", "help"))
        self.assertTrue(list((self.scratch / "krew/store/haulout").rglob("LICENSE")))

    def test_refuses_another_archive(self):
        environment = {**os.environ, "KREW_ROOT": str(self.scratch / "krew"), "KREW_NO_UPGRADE_CHECK": "1"}
        other = self.scratch / "other.tar.gz"
        other.write_bytes(only("*_linux_amd64.tar.gz").read_bytes() + b"\n")
        self.assertIn("checksum does not match", self.fails(*self.install(other), env=environment))


class Homebrew(Scratch):
    def test_is_ruby(self):
        self.succeeds("ruby", "-wc", RELEASE / "homebrew/haulout.rb")

    def test_installs_what_the_tarball_has(self):
        with tarfile.open(only("*_linux_amd64.tar.gz")) as tar:
            names = tar.getnames()
        body = re.search(r"def install\n(.*?)\n  end\n", (RELEASE / "homebrew/haulout.rb").read_text(), re.S)[1]
        wanted = re.findall(r'(?:install|Dir\[) ?"([^"]+)"', body)
        self.assertGreaterEqual(len(wanted), 6)
        for pattern in wanted:
            self.assertTrue([name for name in names if pathlib.PurePath(name).match(pattern)], pattern)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    RELEASE, AGAIN, TOOLS, ARM64 = (pathlib.Path(argument).absolute() for argument in sys.argv[1:])
    SPDX, KREW = TOOLS / "spdx/bin/pyspdxtools", TOOLS / "krew"
    unittest.main(argv=sys.argv[:1])
