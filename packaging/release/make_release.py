#!/usr/bin/env python3
"""Writes what belongs to a release, next to its artefacts.

  make_release.py DIRECTORY --version 0.1.0 --commit COMMIT --url https://example.org/0.1.0 --map amd64=build/release/cli/haulout.map

DIRECTORY has haulout_VERSION_linux_ARCH.tar.gz (make_tarball.py), haulout_VERSION_ARCH.deb and haulout_VERSION_image.tar
(packaging/image/build_image.py). --url is the address below which
the files of DIRECTORY will be found, --map the map of the linker of each architecture, --root the directory of
packaging/cross/make_root.py with which an architecture was built that is not that of this machine, --apt-key the fingerprint
of the key in gpg's keyring that signs the apt repository. Written are

  haulout-VERSION.tgz                    the Helm chart
  haulout_VERSION_kustomize.tar.gz       base and components for kustomize
  haulout_VERSION_linux_ARCH.spdx.json   the packages of which the program consists, as SPDX 2.3
  haulout_VERSION_provenance.json        from which commit the artefacts were built: an in-toto statement with SLSA provenance
  krew/haulout.yaml, homebrew/haulout.rb   for the package managers krew and Homebrew
  apt/                                   an apt repository with the Debian packages
  haulout-archive-keyring.gpg            the public part of --apt-key
  SHA256SUMS                             of all files except those in apt/, which has sums of its own

The same input makes the same files, byte for byte, except for the signatures of the apt repository, which have the time at which
they were made. Every other time is SOURCE_DATE_EPOCH (default 0). The network is not used. Needs readelf,
dpkg-query, apt-ftparchive and, with --apt-key, gpg, on the machine that has built the artefacts.
"""
import argparse
import datetime
import email.utils
import gzip
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import linked_packages  # noqa: E402
import make_tarball  # noqa: E402
import openpgp  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What begins the names of the kind of build and of the builder in the provenance. They are names, not addresses.
NAMES = "https://haulout.dev/build"
KEYRING = "haulout-archive-keyring.gpg"
SUMMARY = "Take Kubernetes nodes safely through operating system updates"
RELATIONSHIPS = {"dynamic": "DYNAMIC_LINK", "static": "STATIC_LINK", "headers": "STATIC_LINK"}
# Libraries that every Debian has.
EVERYWHERE = {"libc6", "libgcc-s1", "libstdc++6"}


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def in_json(value):
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def sums(digests):
    """Returns the text of SHA256SUMS. digests: path -> digest."""
    return "".join(f"{digest}  {path}\n" for path, digest in sorted(digests.items()))


def purl(package, distribution):
    """Returns the package URL of a Debian package. distribution: its name and version, like debian-12."""
    version = urllib.parse.quote(package.version, safe="~.-")
    name = urllib.parse.quote(package.name, safe="~.-")
    return f"pkg:deb/{distribution.split('-')[0]}/{name}@{version}?arch={package.architecture}&distro={distribution}"


def spdx_package(package, distribution):
    """Returns a Debian package as a package of SPDX."""
    how = {"dynamic": "linked dynamically", "static": "linked statically", "headers": "code of its headers is compiled in"}
    comment = how[package.how] + (": " + ", ".join(package.files) if package.files else "")
    if package.how == "dynamic":
        comment += ". The program uses the version of the machine on which it runs; this is the one it was built with"
    return {
        "SPDXID": spdx_id(package), "name": package.name, "versionInfo": package.version,
        "supplier": "Organization: Debian", "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
        **({"homepage": package.homepage} if package.homepage else {}),
        "sourceInfo": f"Debian source package {package.source}", "licenseConcluded": "NOASSERTION",
        "licenseDeclared": package.license, "copyrightText": "NOASSERTION", "comment": comment + ".",
        "primaryPackagePurpose": "LIBRARY",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                          "referenceLocator": purl(package, distribution)}],
    }


def spdx_id(package):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", f"{package.name}-{package.how}")


def bill_of_materials(tarball, digest, version, url, epoch, packages, distribution):
    """Returns the SPDX document of a tarball: its name, its digest, and what its program consists of."""
    name = tarball.removesuffix(".tar.gz")
    own = {
        "SPDXID": "SPDXRef-haulout", "name": "haulout", "versionInfo": version, "packageFileName": tarball,
        "supplier": "Organization: Haulout maintainers", "downloadLocation": f"{url}/{tarball}", "filesAnalyzed": False,
        "checksums": [{"algorithm": "SHA256", "checksumValue": digest}],
        "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0",
        "copyrightText": "Copyright 2026 The Haulout authors", "primaryPackagePurpose": "APPLICATION",
    }
    relationships = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-haulout")]
    relationships += [("SPDXRef-haulout", RELATIONSHIPS[package.how], spdx_id(package)) for package in packages]
    created = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
        "documentNamespace": f"{url}/{name}.spdx.json-{digest}",
        "creationInfo": {"created": created, "creators": ["Organization: Haulout maintainers", f"Tool: make_release-{version}"]},
        "packages": [own, *(spdx_package(package, distribution) for package in packages)],
        "relationships": [{"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}
                          for one, kind, other in relationships],
    }


def provenance(digests, version, commit, packages, distribution):
    """Returns the in-toto statement about the artefacts. digests: name -> digest; packages: of all architectures."""
    linked = {purl(package, distribution): package for package in packages}
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in sorted(digests.items())],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": f"{NAMES}/dev-release/v1",
                "externalParameters": {"command": "./dev release", "version": version},
                "resolvedDependencies": [{"name": "haulout", "digest": {"gitCommit": commit}},
                                         *({"uri": uri} for uri in sorted(linked))],
            },
            "runDetails": {"builder": {"id": f"{NAMES}/maintainer"}},
        },
    }


def libraries_to_install(packages):
    """Returns the packages whose shared libraries the program needs and that not every Debian has."""
    return sorted({package.name for package in packages if package.how == "dynamic"} - EVERYWHERE)


def krew_manifest(version, url, tarballs, libraries):
    """Returns the manifest of the plugin. tarballs: architecture -> (name, digest)."""
    platforms = "".join(f"""\
  - selector:
      matchLabels:
        os: linux
        arch: {architecture}
    uri: {url}/{name}
    sha256: {digest}
    bin: haulout
    files:
    - from: haulout
      to: .
    - from: LICENSE
      to: .
""" for architecture, (name, digest) in sorted(tarballs.items()))
    return f"""\
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: haulout
spec:
  version: v{version}
  homepage: {url}
  shortDescription: Drain nodes safely, and see why they are not updated
  description: |
    Drains nodes with the flags of kubectl drain, names what blocks a drain, and
    shows and controls the agents that take nodes through updates of their
    operating systems. kubectl haulout help lists the commands.
  caveats: |
    The program is built on Debian 12 and needs these packages, or the same
    libraries of another distribution: {', '.join(libraries)}
  platforms:
{platforms}"""


def homebrew_formula(version, url, tarballs, libraries):
    """Returns the formula. tarballs: architecture -> (name, digest)."""
    blocks = {"amd64": "on_intel", "arm64": "on_arm"}
    sources = "".join(f"""\
    {blocks[architecture]} do
      url "{url}/{name}"
      sha256 "{digest}"
    end
""" for architecture, (name, digest) in sorted(tarballs.items()))
    return f"""\
class Haulout < Formula
  desc "{SUMMARY}"
  homepage "{url}"
  version "{version}"
  license "Apache-2.0"

  depends_on :linux

  on_linux do
{sources}\
  end

  def install
    bin.install "haulout"
    bin.install_symlink "haulout" => "kubectl-haulout"
    bash_completion.install "completions/haulout.bash" => "haulout"
    zsh_completion.install "completions/_haulout"
    fish_completion.install "completions/haulout.fish"
    man1.install Dir["man/man1/*"]
    man8.install Dir["man/man8/*"]
  end

  def caveats
    <<~EOS
      The program is built on Debian 12 and needs these packages, or the same
      libraries of another distribution: {', '.join(libraries)}
    EOS
  end

  test do
    assert_match version.to_s, shell_output("#{{bin}}/haulout version")
  end
end
"""


def apt_date(epoch):
    return email.utils.format_datetime(datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc))


def write_apt(directory, debs, version, epoch):
    """Writes the apt repository. debs: architecture -> path of its package."""
    shutil.rmtree(directory, ignore_errors=True)
    pool = directory / "pool/main/h/haulout"
    pool.mkdir(parents=True)
    for deb in debs.values():
        shutil.copyfile(deb, pool / deb.name)
    suite = directory / "dists/stable"

    def ftparchive(*arguments):
        return subprocess.run(["apt-ftparchive", *arguments], cwd=directory, check=True, capture_output=True).stdout

    for architecture in sorted(debs):
        folder = suite / f"main/binary-{architecture}"
        folder.mkdir(parents=True)
        listed = ftparchive("--arch", architecture, "packages", "pool")
        (folder / "Packages").write_bytes(listed)
        (folder / "Packages.gz").write_bytes(gzip.compress(listed, 9, mtime=epoch))
    fields = {"Origin": "Haulout", "Label": "Haulout", "Suite": "stable", "Codename": "stable", "Version": version,
              "Architectures": " ".join(sorted(debs)), "Components": "main", "Date": apt_date(epoch),
              "Description": SUMMARY}
    chosen = [word for name, value in fields.items() for word in ("-o", f"APT::FTPArchive::Release::{name}={value}")]
    (suite / "Release").write_bytes(ftparchive(*chosen, "release", "dists/stable"))


def artefacts(names, version):
    """Returns (tarballs, debs), each architecture -> name."""
    escaped = re.escape(version)
    tarballs = {found[1]: found[0] for name in names if (found := re.fullmatch(rf"haulout_{escaped}_linux_(\w+)\.tar\.gz", name))}
    debs = {found[1]: found[0] for name in names if (found := re.fullmatch(rf"haulout_{escaped}_(\w+)\.deb", name))}
    return tarballs, debs


def tree_archive(directory, name, epoch):
    """Returns the bytes of a .tar.gz with the files of a directory, below `name`."""
    files = {f"{name}/{path.relative_to(directory).as_posix()}": (path.read_bytes(), 0o644)
             for path in directory.rglob("*") if path.is_file()}
    return make_tarball.archive(files, epoch)


def write_manifests(directory, version, epoch):
    """Writes what installs the image in a cluster. Returns the names of the files."""
    archives = {f"haulout-{version}.tgz": tree_archive(ROOT / "packaging/helm/haulout", "haulout", epoch),
                f"haulout_{version}_kustomize.tar.gz": tree_archive(ROOT / "packaging/kustomize", "kustomize", epoch)}
    for name, content in archives.items():
        (directory / name).write_bytes(content)
    return list(archives)


def packages_in(tarball, link_map, architecture, root):
    with tempfile.TemporaryDirectory() as scratch, tarfile.open(tarball) as tar:
        binary = pathlib.Path(scratch, "haulout")
        binary.write_bytes(tar.extractfile("haulout").read())
        return linked_packages.packages_of(binary, link_map.read_text(errors="replace"), architecture, root)


def distribution_of(os_release):
    """Returns the name and version of a distribution, like debian-12, from the text of /etc/os-release."""
    found = dict(re.findall(r'^(ID|VERSION_ID)="?([^"\n]*)"?$', os_release, re.M))
    return f"{found['ID']}-{found['VERSION_ID']}"


def make(directory, version, commit, url, maps, epoch, roots, apt_key=None):
    tarballs, debs = artefacts([path.name for path in directory.iterdir()], version)
    if not tarballs or tarballs.keys() != debs.keys():
        raise linked_packages.Problem(f"{directory} must have a tarball and a Debian package of version {version} for each "
                                      f"architecture; tarballs: {sorted(tarballs)}, Debian packages: {sorted(debs)}")
    if missing := tarballs.keys() - maps.keys():
        raise linked_packages.Problem(f"no --map for {', '.join(sorted(missing))}")
    distribution = distribution_of(pathlib.Path("/etc/os-release").read_text())
    image = f"haulout_{version}_image.tar"
    if not (directory / image).is_file():
        raise linked_packages.Problem(f"{directory} has no {image}")
    artefact_names = [*tarballs.values(), *debs.values(), image, *write_manifests(directory, version, epoch)]
    digests = {name: sha256((directory / name).read_bytes()) for name in artefact_names}
    named = {architecture: (name, digests[name]) for architecture, name in tarballs.items()}
    everything, texts = [], {}
    for architecture, name in sorted(tarballs.items()):
        packages = packages_in(directory / name, maps[architecture], architecture, roots.get(architecture))
        everything += packages
        document = bill_of_materials(name, digests[name], version, url, epoch, packages, distribution)
        texts[name.removesuffix(".tar.gz") + ".spdx.json"] = in_json(document)
    texts[f"haulout_{version}_provenance.json"] = in_json(provenance(digests, version, commit, everything, distribution))
    texts["krew/haulout.yaml"] = krew_manifest(version, url, named, libraries_to_install(everything))
    texts["homebrew/haulout.rb"] = homebrew_formula(version, url, named, libraries_to_install(everything))
    contents = {path: text.encode() for path, text in texts.items()}
    write_apt(directory / "apt", {architecture: directory / name for architecture, name in debs.items()}, version, epoch)
    if apt_key:
        openpgp.sign(directory / "apt/dists/stable/Release", apt_key)
        contents[KEYRING] = openpgp.public_key(apt_key)
    for path, content in contents.items():
        (directory / path).parent.mkdir(exist_ok=True)
        (directory / path).write_bytes(content)
    (directory / "SHA256SUMS").write_text(sums(digests | {path: sha256(content) for path, content in contents.items()}))


def by_architecture(values):
    return {architecture: pathlib.Path(path) for architecture, _, path in (value.partition("=") for value in values)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--version", required=True)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--map", action="append", required=True, metavar="ARCH=FILE")
    parser.add_argument("--root", action="append", default=[], metavar="ARCH=DIRECTORY")
    parser.add_argument("--apt-key", metavar="FINGERPRINT")
    options = parser.parse_args()
    if not re.fullmatch(r"[0-9a-f]{40}", options.commit):
        parser.error(f"--commit is a commit of 40 digits, not {options.commit}")
    try:
        make(options.directory, options.version, options.commit, options.url.rstrip("/"), by_architecture(options.map),
             int(os.environ.get("SOURCE_DATE_EPOCH", "0")), by_architecture(options.root), options.apt_key)
    except (linked_packages.Problem, openpgp.Problem) as problem:
        sys.exit(f"make_release.py: {problem}")


if __name__ == "__main__":
    main()
