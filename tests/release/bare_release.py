#!/usr/bin/env python3
"""Builds a release twice, each time in a new Debian system with nothing else in it, and compares every byte.
Then installs it in further bare systems, as docs/release.md tells users to.

  bare_release.py DIRECTORY [--keep]     DIRECTORY is for the systems, logs and results; what an earlier run left there is deleted

Each system is the minimal variant of Debian 12 (mmdebstrap), to which only git is added. A clone of the commit of this tree and
`./dev release URL KEY --apt-key NAME` do the rest. The two builds share nothing but the clone, the keys and the configuration of
this machine's apt, and differ in what must not matter: PLACES. Both run at once, with half of the processors each.

Two files of a release have the time at which they were made, and one has a random number: SIGNATURES. Only these may differ.

Needs root, namespaces, mmdebstrap, gpg, openssl, git and a Debian mirror, and some 10 GB of disk. It compiles everything four
times. Exit status 77: cannot run here.
"""
import argparse
import concurrent.futures
import difflib
import io
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import time

TREE = pathlib.Path(__file__).resolve().parents[2]
PAGE = TREE / "docs/release.md"
URL = "https://downloads.example.org/haulout"
APT_KEY = "bare-release@example.org"
PROGRAMS = ("mmdebstrap", "unshare", "chroot", "git", "openssl", "gpg", "readelf", "dpkg-deb")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"  # in every Debian, since apt depends on its package

# Of what a user has, what differs between the two builds. `locale` is made in the system before the build.
PLACES = {
    "one": {"clone": "/root/haulout", "hostname": "one", "umask": "022", "locale": "", "environment": {"TZ": "UTC"}},
    "two": {"clone": "/srv/sources/of/somebody/else/haulout-to-release", "hostname": "a-second-machine", "umask": "027",
            "locale": "de_DE.UTF-8", "environment": {"TZ": "ABC-5:45", "LANG": "de_DE.UTF-8"}},
}

# Files of a release that differ each time -> why.
SIGNATURES = {
    "SHA256SUMS.sig": "an ECDSA signature has a random number",
    "apt/dists/stable/InRelease": "an OpenPGP signature has the time at which it was made",
    "apt/dists/stable/Release.gpg": "an OpenPGP signature has the time at which it was made",
}


class CannotRun(Exception):
    """Why this machine cannot run the test."""


class Failed(Exception):
    """What failed, in words for the user."""


def step(text):
    print(f"   {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", check=False, **options)
    if done.returncode:
        raise Failed(f"{' '.join(str(word) for word in command[:3])} failed:\n{done.stdout}")
    return done.stdout


# --- What differs between two releases


def files_of(directory):
    return {path.relative_to(directory).as_posix(): path for path in sorted(directory.rglob("*")) if path.is_file()}


def differences(one, two):
    """Returns the lines about two directories of a release that should be equal: none if they are."""
    first, second = files_of(one), files_of(two)
    lines = [f"{name}: only in one of them" for name in sorted(first.keys() ^ second.keys())]
    lines += [f"{name}: in neither of them" for name in ["SHA256SUMS", *SIGNATURES] if name not in first | second]
    for name in sorted(first.keys() & second.keys() - SIGNATURES.keys()):
        contents = first[name].read_bytes(), second[name].read_bytes()
        if contents[0] != contents[1]:
            lines += [f"{name}: differs", *(f"    {hint}" for hint in hints(*contents))]
    return lines


def hints(one, two, depth=0):
    """Returns lines that help to find the reason why the contents of two files differ."""
    members = members_of(one), members_of(two)
    if None not in members and depth < 4:
        return hints_about_members(*members, depth)
    if one.startswith(b"\x7fELF") and two.startswith(b"\x7fELF"):
        return hints_about_programs(one, two)
    try:
        texts = one.decode().splitlines(), two.decode().splitlines()
    except UnicodeDecodeError:
        place = next((place for place, (a, b) in enumerate(zip(one, two)) if a != b), min(len(one), len(two)))
        return [f"{len(one)} and {len(two)} bytes; the first that differs is {place}"]
    return list(difflib.unified_diff(*texts, "one", "two", lineterm="", n=0))[2:12]


def members_of(content):
    """Returns name -> (what an archive says of the member, its content) if the content is an archive, in the order of the archive."""
    if content.startswith(b"!<arch>\n"):
        return members_of_ar(content)
    try:
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            return {entry.name: (f"type {entry.type!r} mode {entry.mode:o} owner {entry.uid}/{entry.gid} {entry.uname}/{entry.gname} "
                                 f"time {entry.mtime} link {entry.linkname}", tar.extractfile(entry).read() if entry.isreg() else b"")
                    for entry in tar}
    except (tarfile.TarError, EOFError, OSError):
        return None


def members_of_ar(content):
    """The same for an archive of `ar`, which is what a Debian package is."""
    result, at = {}, 8
    while at < len(content):
        header = content[at:at + 60].decode(errors="replace")
        size = int(header[48:58])
        result[header[:16].strip()] = (f"mode {header[40:48]} owner {header[28:40]} time {header[16:28]}", content[at + 60:at + 60 + size])
        at += 60 + size + size % 2
    return result


def hints_about_members(one, two, depth):
    lines = []
    # Members whose name is the sum of their content have other names in the other archive.
    only = [[name for name in ours if name not in theirs] for ours, theirs in ((one, two), (two, one))]
    pairs = [(name, name) for name in one if name in two] + (list(zip(*only)) if len(only[0]) == len(only[1]) else [])
    if len(only[0]) != len(only[1]):
        lines += [f"only in one of them: {name}" for names in only for name in names]
    for first, second in pairs:
        (about_one, content_one), (about_two, content_two) = one[first], two[second]
        if about_one != about_two:
            lines += [f"{first}: {about_one}", f"{second}: {about_two}"]
        if content_one != content_two:
            lines += [f"{first}: content differs", *(f"    {hint}" for hint in hints(content_one, content_two, depth + 1))]
    if not lines:
        lines = ["the same members with the same content; in another order" if list(one) != list(two) else
                 "the same members with the same content; packed in another way"]
    return lines[:30]


def sections_of(program):
    """Returns name -> content of each section of an ELF file."""
    listed = subprocess.run(["readelf", "--section-headers", "--wide", "/dev/stdin"], input=program, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, check=False, env={**os.environ, "LC_ALL": "C"}).stdout.decode(errors="replace")
    return {name: (size, program[int(offset, 16):int(offset, 16) + int(size, 16)] if kind != "NOBITS" else b"")
            for name, kind, offset, size in re.findall(r"^ +\[ *\d+\] (\S+) +([A-Z]\S+) +[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+)", listed, re.M)}


def hints_about_programs(one, two):
    sections = sections_of(one), sections_of(two)
    different = [name for name in {**sections[0], **sections[1]} if sections[0].get(name) != sections[1].get(name)]
    texts = [set(re.findall(rb"[\x20-\x7e]{6,}", program)) for program in (one, two)]
    lines = [f"sections that differ: {' '.join(different) or 'none'}"]
    for name, ours, theirs in (("one", *texts), ("two", *reversed(texts))):
        lines += [f"text only in {name}: {text.decode()[:150]}" for text in sorted(ours - theirs, key=lambda text: (b"/" not in text, text))[:5]]
    return lines


# --- Debian systems


def codename():
    found = dict(re.findall(r'^(ID|VERSION_ID|VERSION_CODENAME)="?([^"\n]*)"?$', pathlib.Path("/etc/os-release").read_text(), re.M))
    if (found.get("ID"), found.get("VERSION_ID")) != ("debian", "12"):
        raise CannotRun("this is not Debian 12")
    return found["VERSION_CODENAME"]


def sources(release):
    """Returns the lines of sources.list for Debian's packages, from the places from which this machine's apt gets them."""
    listed = run("apt-get", "indextargets", "--format", "$(CREATED_BY) $(CODENAME) $(REPO_URI) $(COMPONENT)")
    suites = (release, f"{release}-updates", f"{release}-security")
    found = sorted({tuple(words) for line in listed.splitlines() if (words := line.split())[:1] == ["Packages"] and words[1] in suites})
    if not any(suite == release for _, suite, *_ in found):
        raise CannotRun("apt has no lists of Debian's packages on this machine: apt-get update")
    return "".join(f"deb [signed-by={KEYRING}] {uri} {suite} {component}\n" for _, suite, uri, component in found)


def apt_configuration():
    """Returns what the apt of this machine has been told about the network, such as a proxy, and about the age of lists."""
    chosen = r"(?i)Acquire::(.*proxy|Check-(Valid-Until|Date)|https?::|Retries|ForceIPv)"
    lines = run("apt-config", "dump", "Acquire").splitlines(keepends=True)
    return "".join(line for line in lines if re.match(chosen, line))


class Systems:
    """Makes bare Debian systems in a directory, and runs commands in them."""

    def __init__(self, directory):
        self.directory = directory
        self.base = directory / "base.tar"
        self.running = set()
        (directory / "apt.conf").write_text(apt_configuration())
        (directory / "sources.list").write_text(sources(codename()))
        (directory / "tmp").mkdir()

    def end(self):
        """Ends what runs in the systems."""
        for process in list(self.running):
            process.kill()

    def make_base(self):
        command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--aptopt={self.directory / 'apt.conf'}", codename(), self.base,
                   self.directory / "sources.list"]
        run(*command, env={**os.environ, "TMPDIR": str(self.directory / "tmp")})

    def make(self, name):
        root = self.directory / name
        root.mkdir()
        run("tar", "--extract", "--file", self.base, "--directory", root)
        for file in ("/etc/resolv.conf", "/etc/hosts"):
            if os.path.exists(file):
                shutil.copyfile(file, f"{root}{file}")
        return root

    def inside(self, name, script, hostname="bare", umask="022", environment=None):
        """Runs a script of bash in the system `name`, with processes, mounts and a host name of its own. Its output goes to NAME.log."""
        root = self.directory / name
        log = self.directory / f"{name}.log"
        before = log.stat().st_size if log.exists() else 0
        variables = {"HOME": "/root", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM": "dumb",
                     **(environment or {})}
        words = [f"{key}={value}" for key, value in variables.items()]
        outside = (f"set -e; hostname {shlex.quote(hostname)}; cd {shlex.quote(str(root))}; mkdir -p dev/shm; mount -t proc proc proc; "
                   "mount -t tmpfs -o mode=1777 tmp tmp; mount -t tmpfs -o mode=755 run run; mount -t tmpfs -o mode=1777 shm dev/shm; "
                   f"umask {umask}; exec chroot . env -i {shlex.join(words)} bash -euo pipefail -c {shlex.quote(script)}")
        with log.open("ab") as output, subprocess.Popen(
                ["unshare", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "bash", "-c", outside],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT) as process:
            self.running.add(process)
            status = process.wait()
            self.running.remove(process)
        text = log.read_bytes()[before:].decode(errors="replace")
        if status:
            raise Failed(f"in the system {name} (log: {log}):\n{script}\n" + "\n".join(text.splitlines()[-40:]))
        return text


# --- The builds


def make_keys(directory):
    """Makes a key for the sums and, in a keyring of gpg, one for the apt repository."""
    directory.mkdir(mode=0o700)
    run("openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", directory / "key.pem")
    run("openssl", "pkey", "-in", directory / "key.pem", "-pubout", "-out", directory / "haulout.pub")
    home = pathlib.Path(run("mktemp", "--directory", "/tmp/gpg-XXXXXX").strip())  # the path of the agent's socket must be short
    try:
        environment = {**os.environ, "GNUPGHOME": str(home)}
        run("gpg", "--batch", "--passphrase", "", "--quick-generate-key", APT_KEY, "ed25519", "sign", env=environment)
        run("gpgconf", "--kill", "all", env=environment)
        shutil.copytree(home, directory / "gnupg", ignore=lambda _, names: [name for name in names if name.startswith("S.")])
    finally:
        shutil.rmtree(home)


def make_clone(directory):
    """Makes a repository that has this commit and those before it, and nothing else of this tree's. Returns the commit."""
    if changed := run("git", "-C", TREE, "status", "--porcelain").strip():
        raise Failed(f"commit these changes first, or put them away:\n{changed}")
    run("git", "-c", "init.defaultBranch=main", "init", "--quiet", "--bare", directory)
    run("git", "-C", directory, "fetch", "--quiet", "--no-tags", TREE, "HEAD:refs/heads/main")
    return run("git", "-C", directory, "rev-parse", "main").strip()


def build(systems, name, jobs):
    """Builds a release in a new system, and copies it to NAME-release."""
    place = PLACES[name]
    root = systems.make(name)
    shutil.copytree(systems.directory / "source.git", root / "srv/haulout.git")
    shutil.copytree(systems.directory / "keys/gnupg", root / "root/.gnupg")
    shutil.copyfile(systems.directory / "keys/key.pem", root / "root/key.pem")
    options = {"hostname": place["hostname"], "umask": place["umask"]}
    step(f"{name}: git, and a clone in {place['clone']}")
    packages = "git locales" if place["locale"] else "git"
    systems.inside(name, f"apt-get update -q && apt-get install -q -y --no-install-recommends {packages}", **options)
    if place["locale"]:
        systems.inside(name, f"localedef -i {place['locale'].partition('.')[0]} -f UTF-8 {place['locale']}", **options)
    systems.inside(name, f"git clone -q /srv/haulout.git {place['clone']}", **options)
    # As in the image of a container, which has no lists of packages.
    systems.inside(name, "apt-get clean; rm -rf /var/lib/apt/lists/*", **options)
    step(f"{name}: ./dev release, with {jobs} job(s), as {place['hostname']}, umask {place['umask']}, {place['environment']}")
    began = time.monotonic()
    printed = systems.inside(name, f"cd {place['clone']} && ./dev release {URL} /root/key.pem --apt-key {APT_KEY}",
                             environment={"HAULOUT_JOBS": str(jobs), **place["environment"]}, **options)
    step(f"{name}: built after {(time.monotonic() - began) / 60:.0f} minutes")
    release = root / printed.splitlines()[-1].removeprefix("/")
    shutil.copytree(release, systems.directory / f"{name}-release")


def compare(directory):
    one, two = (directory / f"{name}-release" for name in PLACES)
    found = differences(one, two)
    (directory / "differences").write_text("".join(f"{line}\n" for line in found))
    names = [name for name in files_of(one) if name not in SIGNATURES]
    if found:
        raise Failed("the two releases differ:\n" + "\n".join(found[:80]) + f"\n(whole list: {directory / 'differences'})")
    step(f"both have the same {len(names)} files, byte for byte")
    for name, why in SIGNATURES.items():
        step(f"not compared: {name} ({why})")


# --- The user


def command_of_page(pattern):
    """Returns the commands of docs/release.md that match, each a line that begins with four blanks."""
    found = re.findall(rf"^    ({pattern}.*)$", PAGE.read_text(), re.M)
    if not found:
        raise Failed(f"docs/release.md has no command {pattern}")
    return found


def use(systems):
    """Installs the release in bare systems, with the commands of docs/release.md."""
    release = systems.directory / f"{next(iter(PLACES))}-release"
    version = next(release.glob("haulout_*_amd64.deb")).name.split("_")[1]
    has_version = f"haulout version | grep -xF 'haulout {version}'"
    update, quiet = "apt-get update -q", "DEBIAN_FRONTEND=noninteractive"

    def new(name):
        root = systems.make(name)
        shutil.copytree(release, root / "srv/haulout")
        shutil.copyfile(systems.directory / "keys/haulout.pub", root / "srv/haulout/haulout.pub")

    step("a user checks the sums and their signatures")
    new("check")
    systems.inside("check", f"{update}; {quiet} apt-get install -q -y --no-install-recommends openssl gpgv")
    checks = [command_of_page("sha256sum")[0], command_of_page("openssl dgst")[0], command_of_page("gpgv")[0]]
    for command in checks:
        systems.inside("check", f"cd /srv/haulout; {command}")
    systems.inside("check", f"cd /srv/haulout; echo changed >>SHA256SUMS; ! {checks[1]}")

    step("a user installs the Debian package, and removes it")
    new("package")
    systems.inside("package", f"{update}; cd /srv/haulout; {quiet} apt-get install -q -y ./haulout_{version}_amd64.deb; {has_version}")
    systems.inside("package", "haulout help >/dev/null; kubectl-haulout help >/dev/null; test -f /etc/haulout/config.yaml")
    systems.inside("package", f"{quiet} apt-get purge -q -y haulout; if command -v haulout; then exit 1; fi; test ! -e /etc/haulout")

    step("a user unpacks the tarball")
    new("tarball")
    libraries = command_of_page("apt install lib")[0].replace("apt install", f"{quiet} apt-get install -q -y --no-install-recommends")
    systems.inside("tarball", f"{update}; {libraries}; cd /usr/local/bin; tar -xzf /srv/haulout/haulout_{version}_linux_amd64.tar.gz; {has_version}")

    step("a user installs from the apt repository, with its key")
    new("repository")
    install_key, line = command_of_page("install -D .*keyring")[0], command_of_page("echo 'deb .signed-by=")[0]
    line = re.sub(r"https://\S+", "file:/srv/haulout/apt", line)
    systems.inside("repository", f"cd /srv/haulout; {install_key}; {line}; {update}; {quiet} apt-get install -q -y haulout; {has_version}")
    said = systems.inside("repository", "apt-cache policy haulout")
    if "file:/srv/haulout/apt" not in said:
        raise Failed(f"haulout did not come from its apt repository:\n{said}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--keep", action="store_true", help="keep the systems; otherwise they are kept only if something failed")
    options = parser.parse_args()
    directory = options.directory.absolute()
    if os.geteuid() != 0:
        raise CannotRun("root is needed for the root of a Debian system")
    if missing := [program for program in PROGRAMS if not shutil.which(program)]:
        raise CannotRun(f"{', '.join(missing)} missing")
    if subprocess.run(["unshare", "--mount", "--pid", "--uts", "--ipc", "--fork", "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        raise CannotRun("no namespaces can be made here")
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    systems = Systems(directory)
    commit = make_clone(directory / "source.git")
    make_keys(directory / "keys")
    step(f"commit {commit}")
    step("a bare Debian system")
    systems.make_base()
    jobs = os.environ.get("HAULOUT_JOBS") or max(1, len(os.sched_getaffinity(0)) // len(PLACES))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # otherwise the builds would go on
    with concurrent.futures.ThreadPoolExecutor() as pool:
        try:
            for done in concurrent.futures.as_completed([pool.submit(build, systems, name, jobs) for name in PLACES]):
                done.result()
        finally:
            systems.end()
    compare(directory)
    use(systems)
    if not options.keep:
        for name in [*PLACES, "check", "package", "tarball", "repository"]:
            shutil.rmtree(directory / name)
    step("done")


if __name__ == "__main__":
    try:
        main()
    except CannotRun as reason:
        print(f"bare_release.py: {reason}", file=sys.stderr)
        sys.exit(77)
    except Failed as problem:
        sys.exit(f"bare_release.py: {problem}")
