#!/usr/bin/env python3
"""Unpacks Debian packages of another architecture into a directory, so that a compiler can build for it.

  make_root.py --arch arm64 --output DIRECTORY PACKAGE…

The packages come from this machine's release of Debian, with its updates and security updates. Everything that they depend on is
unpacked, too; recommended packages are not. No program of the packages runs, so any machine can do this, without root rights. Written are

  DIRECTORY/root     the files of the packages
  DIRECTORY/dpkg     what dpkg knows of them. With DPKG_ADMINDIR=DIRECTORY/dpkg, dpkg-query and dpkg-shlibdeps find the package of
                     a file by its whole path: DIRECTORY/root/usr/lib/…
  DIRECTORY/versions that path, and the packages with their versions

If the same packages are there already in the same versions, nothing is changed. Needs apt and dpkg-deb, and the network.
"""
import argparse
import email
import os
import pathlib
import re
import shutil
import subprocess
import sys

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
ARCHIVE = "http://deb.debian.org/debian"
SECURITY = "http://deb.debian.org/debian-security"
MERGED = ("bin", "lib", "lib64", "sbin")  # directories of which Debian has made links to those in /usr


class Problem(Exception):
    """What failed, in words for the user."""


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False,
                          **{"env": {**os.environ, "LC_ALL": "C"}} | options)
    if done.returncode:
        raise Problem(f"{' '.join(str(word) for word in command[:2])} failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def sources(codename):
    """Returns the text of sources.list. codename: of this machine's release, from /etc/os-release."""
    suites = [(ARCHIVE, codename), (ARCHIVE, f"{codename}-updates"), (SECURITY, f"{codename}-security")]
    return "".join(f"deb [signed-by={KEYRING}] {uri} {suite} main\n" for uri, suite in suites)


def codename_of(os_release):
    found = dict(re.findall(r'^(ID|VERSION_CODENAME)="?([^"\n]*)"?$', os_release, re.M))
    if found.get("ID") != "debian" or not found.get("VERSION_CODENAME"):
        raise Problem("packages of another architecture can be unpacked on a release of Debian only")
    return found["VERSION_CODENAME"]


class Apt:
    """apt-get with its configuration, lists and cache in a directory of its own."""

    def __init__(self, directory, architecture):
        for name in ("etc/apt/apt.conf.d", "etc/apt/preferences.d", "etc/apt/sources.list.d", "etc/apt/trusted.gpg.d",
                     "var/lib/apt/lists/partial", "var/cache/apt/archives/partial", "var/lib/dpkg"):
            (directory / name).mkdir(parents=True, exist_ok=True)
        (directory / "var/lib/dpkg/status").touch()
        codename = codename_of(pathlib.Path("/etc/os-release").read_text())
        (directory / "etc/apt/sources.list").write_text(sources(codename))
        configuration = directory / "apt.conf"
        configuration.write_text(
            f'Dir "{directory}";\nDir::State::status "{directory}/var/lib/dpkg/status";\nAPT::Sandbox::User "root";\n'
            f'APT::Architecture "{architecture}";\nAPT::Architectures {{ "{architecture}"; }};\n'
            'APT::Install-Recommends "false";\nAcquire::Languages "none";\nAcquire::Retries "3";\n')
        self.environment = {**os.environ, "APT_CONFIG": str(configuration), "LC_ALL": "C"}
        self.archives = directory / "var/cache/apt/archives"

    def get(self, *arguments):
        return run("apt-get", "-qq", "-y", *arguments, env=self.environment)

    def planned(self, packages):
        """Returns the names and versions of all packages that belong to `packages`, as sorted lines."""
        plan = self.get("install", "--simulate", *packages)
        return sorted(f"{name} {version}" for name, version in re.findall(r"^Inst (\S+) \((\S+)", plan, re.M))

    def download(self, packages):
        shutil.rmtree(self.archives)
        (self.archives / "partial").mkdir(parents=True)
        self.get("install", "--download-only", *packages)
        return sorted(self.archives.glob("*.deb"))


def unpack(debs, root, database):
    (database / "info").mkdir(parents=True)
    (database / "updates").mkdir()
    (database / "info/format").write_text("1\n")  # the names of files name the architecture
    stanzas = []
    for deb in debs:
        extract(deb, root)
        stanzas.append(registered(deb, root, database))
    (database / "status").write_text("\n".join(stanzas))


def extract(deb, root):
    # `dpkg-deb --extract` would replace the links that link_directories() has made.
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as packed:
        run("tar", "--extract", "--keep-directory-symlink", "--no-same-owner", "--directory", root, stdin=packed.stdout)
    if packed.returncode:
        raise Problem(f"{deb} cannot be unpacked")


def registered(deb, root, database):
    """Writes what dpkg keeps of an installed package, except for its entry in the status file, which it returns."""
    fields = run("dpkg-deb", "--field", deb)
    package = email.message_from_string(fields)
    name = package["Package"] + (":" + package["Architecture"] if package["Multi-Arch"] == "same" else "")
    control = database / "control"
    run("dpkg-deb", "--control", deb, control)
    for kind in ("symbols", "shlibs"):
        if (control / kind).is_file():
            shutil.copyfile(control / kind, database / "info" / f"{name}.{kind}")
    shutil.rmtree(control)
    contents = re.findall(r"^\S+ +\S+ +\d+ \S+ \S+ \.(/.*?)/?(?: -> .*| link to .*)?$", run("dpkg-deb", "--contents", deb), re.M)
    places = [f"/usr{path}" if path.split("/")[1] in MERGED else path for path in contents]
    (database / "info" / f"{name}.list").write_text("".join(f"{root}{path}\n" for path in places))
    return fields.rstrip("\n").replace("\nVersion:", "\nStatus: install ok installed\nVersion:", 1) + "\n"


def link_directories(root):
    """No package has these links."""
    for name in MERGED:
        (root / "usr" / name).mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(f"usr/{name}")


def relative_links(root):
    """Links to absolute paths would lead out of the root."""
    for folder, directories, files in os.walk(root):
        for path in (pathlib.Path(folder, name) for name in directories + files):
            if path.is_symlink() and (target := os.readlink(path)).startswith("/"):
                path.unlink()
                path.symlink_to(os.path.relpath(f"{root}{target}", path.parent))


def make(architecture, output, packages):
    output = output.absolute()
    apt = Apt(output / "apt", architecture)
    apt.get("update")
    wanted = "".join(f"{line}\n" for line in [output, *apt.planned(packages)])
    versions = output / "versions"
    if versions.is_file() and versions.read_text() == wanted:
        return
    versions.unlink(missing_ok=True)  # until everything is there
    for name in ("root", "dpkg"):
        shutil.rmtree(output / name, ignore_errors=True)
    link_directories(output / "root")
    unpack(apt.download(packages), output / "root", output / "dpkg")
    relative_links(output / "root")
    shutil.rmtree(apt.archives)
    versions.write_text(wanted)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", required=True)
    parser.add_argument("--output", required=True, type=pathlib.Path)
    parser.add_argument("packages", nargs="+", metavar="PACKAGE")
    options = parser.parse_args()
    try:
        make(options.arch, options.output, options.packages)
    except (Problem, OSError) as problem:
        sys.exit(f"make_root.py: {problem}")


if __name__ == "__main__":
    main()
