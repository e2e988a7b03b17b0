"""Which Debian packages are in a binary of Haulout, by what the binary and the map of its linker say.

Three kinds of evidence: the shared libraries that the binary needs (readelf -d), the archives and objects outside this tree
that the linker has taken pieces from (its map), and code of libraries that consist of headers, by the names of their
namespaces in the map. dpkg knows the package of each file. The packages must be those with which the binary was built: those
of this machine, or those in a directory of packaging/cross/make_root.py.
"""
import collections
import os
import pathlib
import re
import subprocess

TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}

# Packages with headers only -> what the mangled names of their functions contain. release_test.py checks that each package
# of scripts/setup.sh is either here or has a library.
HEADERS = {
    "libboost1.81-dev": r"N5boost",
    "libcli11-dev": r"N3CLI",
    "libfmt-dev": r"N3fmt2v\d",
    "nlohmann-json3-dev": r"N8nlohmann",
}

# Names of licenses in machine-readable copyright files -> SPDX.
LICENSES = {
    "Apache-2.0": "Apache-2.0", "BSD-2-clause": "BSD-2-Clause", "BSD-3-clause": "BSD-3-Clause", "BSL-1.0": "BSL-1.0",
    "Expat": "MIT", "GPL-2+": "GPL-2.0-or-later", "LGPL-2.1+": "LGPL-2.1-or-later", "MIT": "MIT", "Zlib": "Zlib",
}

# A package and how it is in the binary: `how` is dynamic, static or headers; `files` are the libraries and objects.
Package = collections.namedtuple("Package", "name version architecture source homepage license how files")


class Problem(Exception):
    """Something is missing on this machine or in the binary. The text says what."""


def needed(dynamic_section):
    """Returns the names of the shared libraries in the output of readelf -d."""
    return re.findall(r"\(NEEDED\)\s+Shared library: \[([^\]]+)\]", dynamic_section)


def linked_files(link_map):
    """Returns the archives and objects in a map of lld that are not of this tree: those with an absolute path."""
    return sorted(set(re.findall(r"\s(/[^\s:()]+\.(?:a|o))[(:]", link_map)))


def header_packages(link_map):
    return sorted(name for name, pattern in HEADERS.items() if re.search(pattern, link_map))


def license_of(copyright_text):
    """Returns the SPDX name of the license of `Files: *` in a machine-readable copyright file, or NOASSERTION."""
    if not re.match(r"Format(-Specification)?:\s*https?://", copyright_text):
        return "NOASSERTION"
    for stanza in re.split(r"\n\s*\n", copyright_text):
        if re.search(r"^Files:\s*\*\s*$", stanza, re.M) and (found := re.search(r"^License:[ \t]*(\S.*)$", stanza, re.M)):
            return LICENSES.get(found[1].strip(), "NOASSERTION")
    return "NOASSERTION"


def without_usr(path, root=""):
    """Returns the path in the root directory, and without /usr: some packages have their libraries in /lib, some in /usr/lib."""
    return os.path.normpath(path).removeprefix(root).removeprefix("/usr")


def owners(output, root=""):
    """Returns file -> package from the output of dpkg-query -S, each file as without_usr() returns it."""
    result = {}
    for line in output.splitlines():
        names, colon, path = line.partition(": ")
        if colon and not line.startswith("diversion "):
            result[without_usr(path, root)] = names.split(", ")[0].partition(":")[0]
    return result


def combined(files_by_kind, owner, root=""):
    """Returns (package, how) -> files. files_by_kind: how -> files. Raises Problem if no package has a file."""
    result = collections.defaultdict(list)
    for how, files in files_by_kind.items():
        for file in files:
            package = owner.get(without_usr(file, root))
            if not package:
                raise Problem(f"no Debian package has {file}, which is linked into the binary")
            result[package, how].append(pathlib.PurePosixPath(file).name)
    return {key: sorted(set(names)) for key, names in sorted(result.items())}


class Debian:
    """Asks dpkg about packages: those of this machine or, with `made`, those in a directory of packaging/cross/make_root.py."""

    def __init__(self, made=None):
        self.root = f"{made.absolute()}/root" if made else ""
        self.environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
        if made:
            self.environment["DPKG_ADMINDIR"] = f"{made.absolute()}/dpkg"

    def run(self, *command, may_fail=False):
        done = subprocess.run(command, capture_output=True, text=True, env=self.environment)
        if done.returncode and not may_fail:
            raise Problem(f"{' '.join(command)}: {done.stderr.strip()}")
        return done.stdout

    def owners_of(self, files):
        paths = sorted({f"{self.root}{usr}{without_usr(file, self.root)}" for file in files for usr in ("", "/usr")})
        return owners(self.run("dpkg-query", "-S", *paths, may_fail=True), self.root)

    def described(self, name, architecture, how, files):
        fields = "${Package}\t${Version}\t${Architecture}\t${source:Package} ${source:Version}\t${Homepage}\n"
        answers = [line for line in self.run("dpkg-query", "-W", f"-f={fields}", name).splitlines()
                   if line.split("\t")[2] in (architecture, "all")]
        if not answers:
            raise Problem(f"package {name} is not installed for {architecture}")
        text = pathlib.Path(f"{self.root}/usr/share/doc/{name}/copyright")
        license_name = license_of(text.read_text(errors="replace")) if text.is_file() else "NOASSERTION"
        return Package(*answers[0].split("\t"), license_name, how, files)


def packages_of(binary, link_map, architecture, made=None):
    """Returns the packages of a binary (a path), sorted. link_map is the text of its map, `made` as in Debian."""
    debian = Debian(made)
    folder = f"{debian.root}/usr/lib/{TRIPLETS[architecture]}"
    libraries = needed(debian.run("readelf", "-d", str(binary)))
    objects = linked_files(link_map)
    if not libraries or not objects:
        raise Problem(f"{binary} needs no library, or its map names none: it is not a binary of Haulout with its map")
    # The loader, which a binary for arm64 needs, is not beside the other libraries.
    loaders = {path.name: str(path) for path in pathlib.Path(f"{debian.root}/lib").glob("ld-linux*")}
    files = {"dynamic": [loaders.get(name, f"{folder}/{name}") for name in libraries], "static": objects}
    found = combined(files, debian.owners_of([path for names in files.values() for path in names]), debian.root)
    found |= {(name, "headers"): [] for name in header_packages(link_map)}
    return [debian.described(name, architecture, how, names) for (name, how), names in sorted(found.items())]
