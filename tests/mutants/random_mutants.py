"""Random mutants: breaks random places one at a time; the tests that depend on a place have to notice.

Used by mutants.py --random N --seed S. For each mutant, it breaks the file in the scratch copy. Then it builds and runs the
test programs that contain the file until one fails: first the file's own program, then those that have found most so far. A
mutant that does not compile, that compiles to the same code, or that equivalent.txt lists, is replaced by another one. Only
Round does I/O, apart from reading files: it builds and runs.
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
# Programs that play many seeds run last.
LATE = ("seeds_test", "fleet_test", "crash_points_test", "fleet_seeds_test", "rehearse_test")
# A mutant may never end. The limits of a program are TIMES its CPU time and TIMES its elapsed time on the unchanged tree, and
# at least LEAST_WORK and LEAST_LIMIT seconds. A busy machine increases the CPU time a little and the elapsed time much.
TIMES, LEAST_WORK, LEAST_LIMIT = 5, 5, 60
SPLIT = 8  # seconds of CPU time; a program that takes longer on the unchanged tree runs in as many parts as there are jobs
AT_ONCE = 4  # number of programs built together: linking keeps all cores busy, and few programs are built in vain
EQUIVALENT = pathlib.Path(__file__).with_name("equivalent.txt")


@dataclasses.dataclass
class Verdict:
    path: str
    one: breakers.Break
    found_by: str  # name of the program that failed; empty if the mutant survived

    def diff(self):
        return (f"--- a/{self.path}\n+++ b/{self.path}\n@@ -{self.one.line + 1} +{self.one.line + 1} @@ {self.one.what}\n"
                f"-{self.one.before}\n+{self.one.after}\n")


def all_places(root, folders):
    """Yields (path, Break) for every place that can be broken."""
    for folder in folders:
        for path in sorted((root / folder).glob("*.cpp")):
            name = path.relative_to(root).as_posix()
            for one in breakers.breaks(path.read_text(encoding="utf-8")):
                yield name, one


def drawn(root, folders, seed):
    """Yields all places in random order, in turn from each folder, so that a large folder does not dominate."""
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
    """Parses equivalent.txt, the breaks without a visible effect. Returns {(path, line, broken line): why}."""
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
    """Returns path and line of the first entry of `known` that cannot be made any longer; None if there is none."""
    possible = {key(path, one) for path, one in all_places(root, FOLDERS)}
    return next((f"{path}: {after}" for path, before, after in known if (path, before, after) not in possible), None)


def in_order(programs, path, finds):
    """Sorts `programs` (program -> seconds) for the file `path`: the file's own program, those of the same library, those
    that have found most so far, and the quick ones first."""
    own = path.rsplit("/", 1)[0].replace("/", "_")

    def rank(program):
        name = program.rsplit("/", 1)[-1]
        return (name != own + "_test", not name.startswith(own), -finds[program], name in LATE, programs[program])
    return sorted(programs, key=rank)


def score(verdicts):
    """Returns the table of the scores by folder."""
    lines = ["| folder | broken | found | |", "|---|---|---|---|"]
    for folder in sorted({verdict.path.rsplit("/", 1)[0] for verdict in verdicts}):
        of = [verdict for verdict in verdicts if verdict.path.rsplit("/", 1)[0] == folder]
        found = sum(bool(verdict.found_by) for verdict in of)
        lines.append(f"| `{folder}` | {len(of)} | {found} | {100 * found // len(of)} % |")
    return "\n".join(lines)


class Round:
    """Builds and runs test programs in a scratch copy whose build is configured."""

    def __init__(self, tree, jobs, say):
        self.tree, self.jobs, self.say = tree, jobs, say
        self.build_dir = tree / "build/dev"
        self.takes, self.works = {}, {}  # program -> elapsed seconds and CPU seconds on the unchanged tree
        self.finds = collections.Counter()  # program -> number of mutants that it found
        self.inputs = {}  # program -> the files that it is built from
        self.sound_code = {}  # path -> its object file and the machine code in that, in the unchanged tree

    def ninja(self, *arguments):
        return subprocess.run(["ninja", "-C", str(self.build_dir), "-j", self.jobs, *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)

    def programs(self):
        """Returns the build targets of all test programs except lint."""
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
        """Returns the programs that are built from this source file."""
        for program in programs:
            if program not in self.inputs:
                self.inputs[program] = set(self.ninja("-t", "inputs", program).stdout.split("\n"))
        same = {str(self.tree / path), str((self.tree / path).resolve()), path}
        return [program for program in programs if same & self.inputs[program]]

    def start(self, program, part, parts):
        """Starts one part of the program. It runs until its first test fails."""
        work = math.ceil(max(LEAST_WORK, TIMES * self.works.get(program, 900)))
        alone = dict(os.environ, GTEST_TOTAL_SHARDS=str(parts), GTEST_SHARD_INDEX=str(part))
        return subprocess.Popen([self.build_dir / program, "--gtest_fail_fast"], env=alone,
                                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (work, work)),
                                cwd=self.build_dir / program.rsplit("/", 1)[0], stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)

    def limit(self, program):
        return max(LEAST_LIMIT, TIMES * self.takes.get(program, 900))

    def first_to_fail(self, programs):
        """Runs the programs in this order, `jobs` at a time, until one fails or exceeds its limit. Returns that one; None if all
        pass."""
        waiting = []
        for program in programs:
            parts = int(self.jobs) if self.works.get(program, 0) > SPLIT else 1
            waiting += [(program, part, parts) for part in range(parts)]
        running = {}  # process -> (program, start time)
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
        """Builds the programs and runs each once. Returns the first that fails, or None."""
        done = self.ninja(*programs)
        if done.returncode:
            return "the build: " + done.stdout[-2000:]
        return self.first_to_fail(programs)

    def code(self, path):
        """Returns the object file of a source file, and its content without debug information."""
        folder = path.rsplit("/", 1)[0]
        for found in self.build_dir.rglob(pathlib.Path(path).name + ".o"):
            if found.relative_to(self.build_dir).as_posix().startswith(folder + "/CMakeFiles/"):
                with tempfile.NamedTemporaryFile() as bare:
                    subprocess.run(["objcopy", "--strip-debug", found, bare.name], check=True)
                    return found.relative_to(self.build_dir).as_posix(), pathlib.Path(bare.name).read_bytes()
        return "", b""

    def judge(self, path, one, programs):
        """Returns a Verdict, or None if the break does not compile or changes no machine code."""
        target = self.tree / path
        whole = target.read_text(encoding="utf-8")
        # When a file is first changed, its object is that of the unchanged tree. Later it is that of the change before.
        if path not in self.sound_code:
            self.sound_code[path] = self.code(path)
        thing, sound = self.sound_code[path]
        target.write_text(breakers.broken(whole, one), encoding="utf-8")
        try:
            if not thing or self.ninja(thing).returncode or self.code(path)[1] == sound:
                return None
            waiting = in_order({program: self.works[program] for program in programs}, path, self.finds)
            at_once = 1  # the file's own program finds most mutants
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
    """Returns the verdicts on `asked.random` mutants."""
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
    # Builds the unchanged tree again.
    run.ninja(*needed)
    return verdicts
