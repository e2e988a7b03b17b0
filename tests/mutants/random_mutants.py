"""Mutants of nobody's choice: random places are broken one at a time, and the tests that depend on them have to notice.

Used by mutants.py --random N --seed S. For each: the file is broken in the scratch copy, then each test program that is
made of it is built and run, its own first, until one fails. What does not compile, or compiles to the same code, is drawn
again. Pure but for Round, which builds and runs.
"""
import dataclasses
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

import breakers

FOLDERS = ("drain", "agent/lifecycle", "agent/slots", "agent/gates", "k8s", "http")
# Those that play many seeds come last.
LATE = ("seeds_test", "fleet_test", "crash_points_test", "fleet_seeds_test", "agent_rehearsal_test")
LEAST_LIMIT = 30  # seconds; a program gets five times what it took on the sound tree, and no less than this


@dataclasses.dataclass
class Verdict:
    path: str
    one: breakers.Break
    found_by: str  # empty: it survived

    def diff(self):
        return (f"--- a/{self.path}\n+++ b/{self.path}\n@@ -{self.one.line + 1} +{self.one.line + 1} @@ {self.one.what}\n"
                f"-{self.one.before}\n+{self.one.after}\n")


def all_places(root, folders):
    """(path, Break) of every place that can be broken."""
    for folder in folders:
        for path in sorted((root / folder).glob("*.cpp")):
            name = path.relative_to(root).as_posix()
            for one in breakers.breaks(path.read_text(encoding="utf-8")):
                yield name, one


def drawn(root, folders, seed):
    """All places in random order, each folder's turn in turn, so that a large one does not crowd out the others."""
    rng = random.Random(seed)
    heaps = {folder: [] for folder in folders}
    for name, one in all_places(root, folders):
        heaps[name.rsplit("/", 1)[0]].append((name, one))
    for heap in heaps.values():
        rng.shuffle(heap)
    while any(heaps.values()):
        for heap in heaps.values():
            if heap:
                yield heap.pop()


def in_order(programs, path):
    """The program that is named after the file's folder, then those of the same library, then the quick ones."""
    own = path.rsplit("/", 1)[0].replace("/", "_")

    def rank(program):
        name = program.rsplit("/", 1)[-1]
        return (name != own + "_test", not name.startswith(own), name in LATE, programs[program])
    return sorted(programs, key=rank)


def score(verdicts):
    """Table by folder."""
    lines = ["| folder | broken | found | |", "|---|---|---|---|"]
    for folder in sorted({verdict.path.rsplit("/", 1)[0] for verdict in verdicts}):
        of = [verdict for verdict in verdicts if verdict.path.rsplit("/", 1)[0] == folder]
        found = sum(bool(verdict.found_by) for verdict in of)
        lines.append(f"| `{folder}` | {len(of)} | {found} | {100 * found // len(of)} % |")
    return "\n".join(lines)


class Round:
    """Builds and runs in a scratch copy whose build is configured."""

    def __init__(self, tree, jobs, say):
        self.tree, self.jobs, self.say = tree, jobs, say
        self.build_dir = tree / "build/dev"
        self.takes = {}  # program -> seconds on the sound tree

    def ninja(self, *arguments):
        return subprocess.run(["ninja", "-C", str(self.build_dir), "-j", self.jobs, *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)

    def programs(self):
        """Every test program that is no lint, as a target."""
        listed = subprocess.run(["ctest", "--test-dir", str(self.build_dir), "--show-only=json-v1"], capture_output=True,
                                text=True, check=True).stdout
        names = []
        for test in json.loads(listed)["tests"]:
            labels = next((p["value"] for p in test.get("properties", []) if p["name"] == "LABELS"), [])
            if set(labels) & {"unit", "scenario", "io", "seeds"}:
                names.append(test["name"])
        made = self.ninja("-t", "targets", "all").stdout
        return [target for target in re.findall(r"^(tests/\S+): CXX_EXECUTABLE", made, re.M)
                if target.rsplit("/", 1)[-1] in names]

    def dependents(self, programs, path):
        """Those that are made of this source file."""
        source = str(self.tree / path)
        real = str((self.tree / path).resolve())
        return [program for program in programs
                if {source, real, path} & set(self.ninja("-t", "inputs", program).stdout.split("\n"))]

    def run(self, program, limit):
        try:
            done = subprocess.run([self.build_dir / program], cwd=self.build_dir / program.rsplit("/", 1)[0], timeout=limit,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

    def sound(self, programs):
        """Builds them and runs each once. The first that fails, or None."""
        done = self.ninja(*programs)
        if done.returncode:
            return "the build: " + done.stdout[-2000:]
        for program in programs:
            began = time.monotonic()
            if not self.run(program, 900):
                return program
            self.takes[program] = time.monotonic() - began
        return None

    def code(self, path):
        """The machine code of this file's object, without what only a debugger reads."""
        found = next(self.build_dir.rglob(pathlib.Path(path).name + ".o"), None)
        folder = path.rsplit("/", 1)[0]
        for found in self.build_dir.rglob(pathlib.Path(path).name + ".o"):
            if found.relative_to(self.build_dir).as_posix().startswith(folder + "/CMakeFiles/"):
                with tempfile.NamedTemporaryFile() as bare:
                    subprocess.run(["objcopy", "--strip-debug", found, bare.name], check=True)
                    return found.relative_to(self.build_dir).as_posix(), pathlib.Path(bare.name).read_bytes()
        return "", b""

    def judge(self, path, one, programs):
        """A Verdict, or None when it is no mutant at all."""
        target = self.tree / path
        whole = target.read_text(encoding="utf-8")
        thing, before = self.code(path)
        target.write_text(breakers.broken(whole, one), encoding="utf-8")
        try:
            if not thing or self.ninja(thing).returncode or self.code(path)[1] == before:
                return None
            for program in in_order({program: self.takes[program] for program in programs}, path):
                if self.ninja(program).returncode:
                    return None
                if not self.run(program, max(LEAST_LIMIT, 5 * self.takes[program])):
                    return Verdict(path, one, program.rsplit("/", 1)[-1])
            return Verdict(path, one, "")
        finally:
            target.write_text(whole, encoding="utf-8")


def play(tree, asked, say):
    """The verdicts on `asked.random` mutants."""
    folders = asked.folder or FOLDERS
    run = Round(tree, asked.jobs, say)
    programs = [target for target in run.programs()
                if not asked.program or target.rsplit("/", 1)[-1] in asked.program]
    chosen, by_file, verdicts = drawn(tree, folders, asked.seed), {}, []
    first = {path: run.dependents(programs, path) for path in
             {str(next((tree / folder).glob("*.cpp")).relative_to(tree)) for folder in folders}}
    needed = sorted({program for found in first.values() for program in found})
    say(f"the sound tree, which must pass: {len(needed)} test programs")
    if failed := run.sound(needed):
        raise RuntimeError(f"the sound tree fails: {failed}")
    for path, one in chosen:
        if len(verdicts) == asked.random:
            break
        began = time.monotonic()
        if path not in by_file:
            by_file[path] = [program for program in run.dependents(programs, path) if program in run.takes]
        verdict = run.judge(path, one, by_file[path])
        if verdict is None:
            continue
        verdicts.append(verdict)
        say(f"{len(verdicts)} of {asked.random}: {path}:{one.line + 1}: {one.what}: "
            f"{'found by ' + verdict.found_by if verdict.found_by else 'SURVIVED'} ({time.monotonic() - began:.0f} s)")
        if not verdict.found_by:
            sys.stdout.write(verdict.diff())
            sys.stdout.flush()
    # What is built is the sound tree again.
    run.ninja(*needed)
    return verdicts
