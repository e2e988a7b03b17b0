"""Which Debian packages are in a binary of Haulout, by what the binary and the map of its linker say.

Three kinds of evidence: the shared libraries that the binary needs (readelf -d), the archives and objects outside this tree
that the linker has taken pieces from (its map), and code of libraries that consist of headers, by the names of their
namespaces in the map. dpkg knows the package of each file. The packages must be those of the machine that has built the binary.
"""
import collections
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


def owners(output):
    """Returns file -> package from the output of dpkg-query -S, each file without /usr."""
    result = {}
    for line in output.splitlines():
        names, colon, path = line.partition(": ")
        if colon and not line.startswith("diversion "):
            result[path.removeprefix("/usr")] = names.split(", ")[0].partition(":")[0]
    return result


def combined(files_by_kind, owner):
    """Returns (package, how) -> files. files_by_kind: how -> files. Raises Problem if no package has a file."""
    result = collections.defaultdict(list)
    for how, files in files_by_kind.items():
        for file in files:
            package = owner.get(file.removeprefix("/usr"))
            if not package:
                raise Problem(f"no Debian package has {file}, which is linked into the binary")
            result[package, how].append(pathlib.PurePosixPath(file).name)
    return {key: sorted(set(names)) for key, names in sorted(result.items())}


def run(*command, may_fail=False):
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"})
    if done.returncode and not may_fail:
        raise Problem(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def described(name, architecture, how, files):
    """Asks dpkg about an installed package."""
    fields = "${Package}\t${Version}\t${Architecture}\t${source:Package} ${source:Version}\t${Homepage}\n"
    answers = [line for line in run("dpkg-query", "-W", f"-f={fields}", name).splitlines()
               if line.split("\t")[2] in (architecture, "all")]
    if not answers:
        raise Problem(f"package {name} is not installed for {architecture}")
    text = pathlib.Path(f"/usr/share/doc/{name}/copyright")
    license_name = license_of(text.read_text(errors="replace")) if text.is_file() else "NOASSERTION"
    return Package(*answers[0].split("\t"), license_name, how, files)


def packages_of(binary, link_map, architecture):
    """Returns the packages of a binary (a path), sorted. link_map is the text of its map."""
    folder = pathlib.Path("/usr/lib", TRIPLETS[architecture])
    libraries = needed(run("readelf", "-d", str(binary)))
    objects = linked_files(link_map)
    if not libraries or not objects:
        raise Problem(f"{binary} needs no library, or its map names none: it is not a binary of Haulout with its map")
    files = {"dynamic": [str(folder / name) for name in libraries], "static": objects}
    paths = sorted({path for names in files.values() for name in names
                    for path in (name, "/usr" + name.removeprefix("/usr"), name.removeprefix("/usr"))})
    found = combined(files, owners(run("dpkg-query", "-S", *paths, may_fail=True)))
    found |= {(name, "headers"): [] for name in header_packages(link_map)}
    return [described(name, architecture, how, names) for (name, how), names in sorted(found.items())]
