"""Mutants of nobody's choice: random places are broken one at a time, and the tests that depend on them have to notice.

Used by mutants.py --random N --seed S. For each: the file is broken in the scratch copy, then the test programs that are
made of it are built and run, its own first, then those that have found most so far, until one fails. What does not
compile, or compiles to the same code, is drawn again, and so is what equivalent.txt names. Pure but for Round, which
builds and runs.
"""
import collections
import dataclasses
import json
import math
import os
import pathlib
import random
import re
import resource
import subprocess
import sys
import tempfile
import time

import breakers

FOLDERS = ("drain", "agent/lifecycle", "agent/node", "agent/slots", "agent/gates", "k8s", "http")
# Those that play many seeds come last.
LATE = ("seeds_test", "fleet_test", "crash_points_test", "fleet_seeds_test", "rehearse_test")
# A mutant may never come to an end. A program gets so many times what it took on the sound tree, of the processor and of
# the clock, and no fewer seconds than these. A busy machine makes the one longer by little and the other by much.
TIMES, LEAST_WORK, LEAST_LIMIT = 5, 5, 60
SPLIT = 8  # seconds of a processor; what takes longer on the sound tree is run in as many parts as there are jobs
AT_ONCE = 4  # programs that are built together, so that linking keeps all cores busy and little is built in vain
EQUIVALENT = pathlib.Path(__file__).with_name("equivalent.txt")


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


def accepted(text):
    """{(path, line, broken line): why} of equivalent.txt: breaks that make no difference which anybody could see."""
    found = {}
    for block in re.split(r"\n\s*\n", re.sub(r"^#.*\n", "", text, flags=re.M).strip()):
        if not block:
            continue
        lines = block.strip().split("\n")
        if len(lines) != 4 or lines[1][:2] != "- " or lines[2][:2] != "+ " or lines[3][:5] != "Why: ":
            raise ValueError(f"{EQUIVALENT.name}: not a path, '- ' and the line, '+ ' and the broken one, 'Why: ': {lines[0]}")
        found[lines[0], lines[1][2:], lines[2][2:]] = lines[3][5:]
    return found


def key(path, one):
    return path, one.before.strip(), one.after.strip()


def stale(root, known):
    """The first of them that cannot be made any longer, as path and line; or None."""
    possible = {key(path, one) for path, one in all_places(root, FOLDERS)}
    return next((f"{path}: {after}" for path, before, after in known if (path, before, after) not in possible), None)


def in_order(programs, path, finds):
    """Its own program, those of the same library, those that found most so far, the quick ones. `programs`: seconds."""
    own = path.rsplit("/", 1)[0].replace("/", "_")

    def rank(program):
        name = program.rsplit("/", 1)[-1]
        return (name != own + "_test", not name.startswith(own), -finds[program], name in LATE, programs[program])
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
        self.takes, self.works = {}, {}  # program -> seconds on the sound tree; seconds of a processor
        self.finds = collections.Counter()  # program -> mutants that it found
        self.inputs = {}  # program -> what it is made of
        self.sound_code = {}  # path -> its object and the code in it, in the sound tree

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
        for program in programs:
            if program not in self.inputs:
                self.inputs[program] = set(self.ninja("-t", "inputs", program).stdout.split("\n"))
        same = {str(self.tree / path), str((self.tree / path).resolve()), path}
        return [program for program in programs if same & self.inputs[program]]

    def start(self, program, part, parts):
        """Until its first test fails."""
        work = math.ceil(max(LEAST_WORK, TIMES * self.works.get(program, 900)))
        alone = dict(os.environ, GTEST_TOTAL_SHARDS=str(parts), GTEST_SHARD_INDEX=str(part))
        return subprocess.Popen([self.build_dir / program, "--gtest_fail_fast"], env=alone,
                                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (work, work)),
                                cwd=self.build_dir / program.rsplit("/", 1)[0], stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)

    def limit(self, program):
        return max(LEAST_LIMIT, TIMES * self.takes.get(program, 900))

    def first_to_fail(self, programs):
        """Runs them in this order, `jobs` at a time, until one fails or has had its time. None when all of them pass."""
        waiting = []
        for program in programs:
            parts = int(self.jobs) if self.works.get(program, 0) > SPLIT else 1
            waiting += [(program, part, parts) for part in range(parts)]
        running = {}  # process -> program, when it began
        try:
            while waiting or running:
                while waiting and len(running) < int(self.jobs):
                    program, part, of = waiting.pop(0)
                    running[self.start(program, part, of)] = program, time.monotonic()
                time.sleep(0.02)
                for process, (program, began) in list(running.items()):
                    took = time.monotonic() - began
                    ended, status, usage = os.wait4(process.pid, os.WNOHANG)
                    if not ended and took < self.limit(program):
                        continue
                    if ended:
                        process.returncode = os.waitstatus_to_exitcode(status)
                    if process.returncode != 0:
                        return program
                    self.takes.setdefault(program, took)
                    self.works.setdefault(program, usage.ru_utime + usage.ru_stime)
                    del running[process]
        finally:
            for process in running:
                process.kill()
                process.wait()
        return None

    def sound(self, programs):
        """Builds them and runs each once. The first that fails, or None."""
        done = self.ninja(*programs)
        if done.returncode:
            return "the build: " + done.stdout[-2000:]
        return self.first_to_fail(programs)

    def code(self, path):
        """Its object, and the machine code in there without what only a debugger reads."""
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
        # The first break of a file comes upon the sound object, later ones upon that of the break before.
        if path not in self.sound_code:
            self.sound_code[path] = self.code(path)
        thing, sound = self.sound_code[path]
        target.write_text(breakers.broken(whole, one), encoding="utf-8")
        try:
            if not thing or self.ninja(thing).returncode or self.code(path)[1] == sound:
                return None
            waiting = in_order({program: self.works[program] for program in programs}, path, self.finds)
            at_once = 1  # its own program finds most
            while waiting:
                some, waiting, at_once = waiting[:at_once], waiting[at_once:], AT_ONCE
                if self.ninja(*some).returncode:
                    return None
                if failed := self.first_to_fail(some):
                    self.finds[failed] += 1
                    return Verdict(path, one, failed.rsplit("/", 1)[-1])
            return Verdict(path, one, "")
        finally:
            target.write_text(whole, encoding="utf-8")


def play(tree, asked, say):
    """The verdicts on `asked.random` mutants."""
    folders = asked.folder or FOLDERS
    run = Round(tree, asked.jobs, say)
    programs = [target for target in run.programs()
                if not asked.program or target.rsplit("/", 1)[-1] in asked.program]
    known = accepted(EQUIVALENT.read_text(encoding="utf-8"))
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
        if key(path, one) in known:
            continue
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
