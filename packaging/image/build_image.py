#!/usr/bin/env python3
"""Assembles the container image of Haulout without a container engine: an OCI image layout, as a directory and as one file.

  build_image.py --binary build/release/cli/haulout --version 0.1.0 --output build/image [--arm64 BINARY --root DIRECTORY]

The image contains the binary, the shared libraries that it needs and their loader, the certificates of ca-certificates,
the time zones of tzdata, the users root and nobody, and the copyright files of all these. It contains no shell and no
package manager. All files come from this machine, which must be Debian, in the form in which its packages installed them.
Certificates that were added locally are left out.

With --arm64 the image is for that architecture, too: its name stands for an index of both. The files for arm64 come from a
directory of packaging/cross/make_root.py.

The same files make the same image, byte for byte: entries are sorted, and every time is SOURCE_DATE_EPOCH (default 0).
Prints the digest of the image's manifest or, if it has several, of its index. Needs the standard library of Python, readelf,
dpkg-query and libdeflate-gzip.
"""
import argparse
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "release"))
import linked_packages  # noqa: E402

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
CERTIFICATES = "usr/share/ca-certificates/mozilla"
ZONEINFO = "usr/share/zoneinfo"
NO_ZONES = {"posix", "right", "localtime", "posixrules"}  # duplicates of other zones, or the zone of this machine

TEXTS = {
    "etc/passwd": "root:x:0:0:root:/:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
LINKS = {"lib": "usr/lib", "lib64": "usr/lib64", "var/run": "/run",
         # the paths that Debian's OpenSSL reads
         "usr/lib/ssl/cert.pem": "/etc/ssl/certs/ca-certificates.crt", "usr/lib/ssl/certs": "/etc/ssl/certs"}
DIRECTORIES = ["dev", "etc/haulout", "host", "proc", "run", "sys", "tmp"]  # so that a runtime need not create what it mounts


class Problem(Exception):
    """A file, package or library is missing on this machine. The text says what to do."""


class Tree:
    """The files of the image by their path, without a leading slash."""

    def __init__(self):
        self.files, self.links, self.directories = {}, dict(LINKS), set(DIRECTORIES)

    def add(self, path, content, mode=0o644):
        if path in self.files and self.files[path][0] != content:
            raise Problem(f"two different files would both be /{path}")
        self.files[path] = (content, mode)

    def tar(self, epoch):
        everything = set(self.files) | set(self.links) | self.directories
        parents = {str(parent) for path in everything for parent in pathlib.PurePosixPath(path).parents} - {"."}
        buffer, first_with = io.BytesIO(), {}
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for path in sorted(everything | parents):
                entry = tarfile.TarInfo(path)
                entry.mtime, content = epoch, b""
                if path in self.files:
                    content, entry.mode = self.files[path]
                    if first_with.setdefault((content, entry.mode), path) == path:
                        entry.size = len(content)
                    else:  # a time zone may have several names
                        entry.type, entry.linkname = tarfile.LNKTYPE, first_with[content, entry.mode]
                elif path in self.links:
                    entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, self.links[path], 0o777
                else:
                    entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if path == "tmp" else 0o755
                archive.addfile(entry, io.BytesIO(content) if entry.isreg() else None)
        return buffer.getvalue()


def output_of(*command):
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ, LC_ALL="C"))
    if run.returncode != 0:
        raise Problem(f"{' '.join(command)} failed: {run.stderr.strip()}")
    return run.stdout


class Machine:
    """Where the files of the image come from: this machine, or a directory of packaging/cross/make_root.py."""

    def __init__(self, architecture, made=None):
        self.architecture = architecture
        self.debian = linked_packages.Debian(made)
        self.root = pathlib.Path(self.debian.root or "/")

    def library(self, name):
        triplet = linked_packages.TRIPLETS[self.architecture]
        for folder in (f"lib/{triplet}", f"usr/lib/{triplet}"):
            if (self.root / folder / name).is_file():
                return self.root / folder / name
        raise Problem(f"{name} is not below {self.root}: install its package")

    def libraries(self, binary):
        """Returns the shared libraries and the loader that a program needs."""
        found, new = {}, [pathlib.Path(binary)]
        while new:
            text = output_of("readelf", "--dynamic", "--program-headers", "--wide", str(new.pop()))
            for loader in re.findall(r"program interpreter: /([^\]]+)\]", text):
                found[pathlib.PurePath(loader).name] = self.root / loader
            for name in set(linked_packages.needed(text)) - found.keys():
                found[name] = self.library(name)
                new.append(found[name])
        return [found[name] for name in sorted(found)]

    def place_of(self, library):
        """Returns the path in the image, where /lib is a link to usr/lib."""
        path = str(library.relative_to(self.root))
        return path if path.startswith("usr/") else f"usr/{path}"

    def package_of(self, path):
        """Returns the Debian package of a file. dpkg may know it by the path behind a link only."""
        owners = self.debian.owners_of([str(path), os.path.realpath(path)])
        if not owners:
            raise Problem(f"{path} is in no package of this machine")
        return sorted(owners.values())[0]

    def directory(self, path, package):
        if not (self.root / path).is_dir():
            raise Problem(f"{self.root / path} is missing: apt-get install {package}")
        return self.root / path


def add_libraries(tree, machine, binary):
    packages = set()
    for library in machine.libraries(binary):
        tree.add(machine.place_of(library), library.read_bytes(), 0o755)
        packages.add(machine.package_of(library))
    return packages


def add_certificates(tree, machine):
    """Adds the certificates of the package. The bundle of the machine also contains what its administrator trusts."""
    files = sorted(machine.directory(CERTIFICATES, "ca-certificates").glob("*.crt"))
    tree.add("etc/ssl/certs/ca-certificates.crt", b"".join(file.read_bytes().rstrip() + b"\n" for file in files))
    return {"ca-certificates"}


def add_zones(tree, machine):
    zones = machine.directory(ZONEINFO, "tzdata")
    for path in sorted(zones.rglob("*")):
        relative = path.relative_to(zones)
        if relative.parts[0] not in NO_ZONES and path.is_file():
            tree.add(f"usr/share/zoneinfo/{relative}", path.read_bytes())
    return {"tzdata"}


def assemble(binary, machine):
    tree = Tree()
    tree.add("usr/bin/haulout", pathlib.Path(binary).read_bytes(), 0o755)
    for path, text in TEXTS.items():
        tree.add(path, text.encode())
    packages = add_libraries(tree, machine, binary) | add_certificates(tree, machine) | add_zones(tree, machine)
    for package in packages:
        tree.add(f"usr/share/doc/{package}/copyright", (machine.root / f"usr/share/doc/{package}/copyright").read_bytes())
    license_file = pathlib.Path(__file__).resolve().parents[2] / "LICENSE"
    tree.add("usr/share/doc/haulout/copyright", license_file.read_bytes())
    return tree


def as_json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


class Layout:
    """Writes an OCI image layout (image-spec 1.0)."""

    def __init__(self):
        self.files = {"oci-layout": as_json({"imageLayoutVersion": "1.0.0"})}

    def blob(self, media_type, content):
        digest = hashlib.sha256(content).hexdigest()
        self.files[f"blobs/sha256/{digest}"] = content
        return {"mediaType": f"application/vnd.oci.image.{media_type}", "digest": f"sha256:{digest}", "size": len(content)}


def gzipped(content):
    """The result is about 3 % smaller than that of gzip -9, and without a time."""
    try:
        return subprocess.run(["libdeflate-gzip", "-12", "-c"], input=content, capture_output=True, check=True).stdout
    except FileNotFoundError:
        raise Problem("libdeflate-gzip is missing: apt-get install libdeflate-tools") from None


def add_manifest(layout, tree, architecture, version, created, epoch):
    """Returns the descriptor of the manifest."""
    layer = tree.tar(epoch)
    config = layout.blob("config.v1+json", as_json({
        "created": created, "architecture": architecture, "os": "linux",
        "config": {
            "Entrypoint": ["/usr/bin/haulout"], "WorkingDir": "/",
            "Labels": {"org.opencontainers.image.title": "haulout", "org.opencontainers.image.version": version,
                       "org.opencontainers.image.licenses": "Apache-2.0"},
        },
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
        "history": [{"created": created, "created_by": "build_image.py"}],
    }))
    return layout.blob("manifest.v1+json", as_json({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config,
        "layers": [layout.blob("layer.v1.tar+gzip", gzipped(layer))],
    }))


def index_of(manifests):
    return as_json({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": manifests})


def layout_of(trees, version, epoch):
    """Returns the layout, and the digest of what has the name of the version. trees: architecture -> its files."""
    created = output_of("date", "--utc", f"--date=@{epoch}", "+%Y-%m-%dT%H:%M:%SZ").strip()
    layout = Layout()
    manifests = [dict(add_manifest(layout, tree, architecture, version, created, epoch),
                      platform={"architecture": architecture, "os": "linux"}) for architecture, tree in sorted(trees.items())]
    named = manifests[0] if len(manifests) == 1 else layout.blob("index.v1+json", index_of(manifests))
    layout.files["index.json"] = index_of([dict(named, annotations={"org.opencontainers.image.ref.name": version})])
    return layout, named["digest"]


def write(layout, output, version, epoch):
    directory = output / "oci"
    shutil.rmtree(directory, ignore_errors=True)
    with tarfile.open(output / f"haulout-{version}.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        for path, content in sorted(layout.files.items()):
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
            (directory / path).write_bytes(content)
            entry = tarfile.TarInfo(path)
            entry.size, entry.mtime, entry.mode = len(content), epoch, 0o644
            archive.addfile(entry, io.BytesIO(content))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, type=pathlib.Path)
    parser.add_argument("--version", required=True)
    parser.add_argument("--output", required=True, type=pathlib.Path, help="a directory; it is made")
    parser.add_argument("--arm64", type=pathlib.Path, metavar="BINARY")
    parser.add_argument("--root", type=pathlib.Path, metavar="DIRECTORY")
    arguments = parser.parse_args()
    if bool(arguments.arm64) != bool(arguments.root):
        parser.error("--arm64 and --root belong together")
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    try:
        own = ARCHITECTURES[os.uname().machine]
        trees = {own: assemble(arguments.binary, Machine(own))}
        if arguments.arm64:
            trees["arm64"] = assemble(arguments.arm64, Machine("arm64", arguments.root))
        layout, digest = layout_of(trees, arguments.version, epoch)
    except (Problem, linked_packages.Problem, OSError) as problem:
        sys.exit(f"build_image: {problem}")
    arguments.output.mkdir(parents=True, exist_ok=True)
    write(layout, arguments.output, arguments.version, epoch)
    print(digest)


if __name__ == "__main__":
    main()
