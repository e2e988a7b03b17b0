#!/usr/bin/env python3
"""Tests the tests: applies known defects to a scratch copy, one at a time. A seed or a named test must find each defect.

  mutants.py              applies every patch in the folder of this file in turn, builds, runs and prints the table
  mutants.py NAME…        only these patches
  mutants.py --check      only checks that each patch and each line of equivalent.txt still fits this tree and is complete;
                          names the mutants that have no row in docs/reliability.md yet
  mutants.py --random N [--seed S] [--folder F]… [--program P]…
                          N random mutants instead (random_mutants.py): prints their score by folder, and the survivors
                          as diffs. Survivors do not fail the run; a person examines them. Mutants that make no difference
                          are listed with the reason in equivalent.txt, and are never chosen

A mutant is NAME.patch: a unified diff (git apply) with these lines above it:
  What: what is wrong now, in a sentence
  Promise: which promise of the design it breaks
  Programs: drain                whose seeds and tests look for it: drain or fleet

First the unchanged tree must pass; then each mutant must fail. The scratch copy is build/mutants/tree, or the directory of
--tree. Everything in it except build/ is overwritten, so that its build stays incremental. With --preset it is built as
asan-ubsan builds it, for instance, to go on with a build that exists. The exit code is 1 if a mutant
survives, and 2 if a patch does not apply or build or the unchanged tree fails.
With HAULOUT_UPDATE_DOCS=1 each row is also written to docs/reliability.md, where it replaces the older one.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import random_mutants  # noqa: E402

ROOT = HERE.parents[1]
SCRATCH = ROOT / "build/mutants/tree"  # --tree changes it
PRESET = "dev"  # --preset changes it
PAGE = ROOT / "docs/reliability.md"
BEGIN, END = "<!-- mutants: begin -->", "<!-- mutants: end -->"
HEAD = ["| mutant | what is wrong | breaks | first seed that finds it, and how | tests that name it |", "|---|---|---|---|---|"]

# `each` seeds are played at a time, `most` in all. The tests in `tests` run in parallel with them.
PROGRAMS = {
    "drain": {"seeds": "scenario/seeds_test", "filter": "Seeds.EveryPromise*", "each": 20, "most": 200,
              "tests": ["drain/drain_test", "k8s/k8s_test", "http/http_test", "scenario/scenario_test", "cli/cli_test"]},
    "fleet": {"seeds": "fleet/fleet_seeds_test", "filter": "FleetSeeds.EveryPromise*", "each": 10, "most": 100,
              "tests": ["agent/lifecycle/agent_lifecycle_test", "agent/slots/agent_slots_test",
                        "agent/gates/node_gates_test", "agent/config/agent_config_test", "fleet/fleet_test"]},
}
# A mutant may never end. These limits are seconds of CPU time, since elapsed time means little on a busy machine. A program
# that only waits is ended after WAITS times as much elapsed time.
SEEDS_LIMIT, TESTS_LIMIT, WAITS = 240, 240, 5


class Broken(Exception):
    """An error that is not a surviving mutant: exit code 2."""


class Mutant:
    def __init__(self, path):
        self.path = path
        self.name = path.stem
        head = path.read_text(encoding="utf-8").split("\ndiff ", 1)[0].split("\n--- ", 1)[0]
        self.said = dict(re.findall(r"^(What|Promise|Programs): (.+)$", head, re.M))
        missing = {"What", "Promise", "Programs"} - self.said.keys()
        if missing:
            raise Broken(f"{path.name}: no line '{sorted(missing)[0]}: …' above the diff")
        if self.said["Programs"] not in PROGRAMS:
            raise Broken(f"{path.name}: Programs is one of {', '.join(PROGRAMS)}, not {self.said['Programs']}")

    def apply(self, tree, check=False):
        # The scratch copy is inside a git repository, and git must not treat it as a part of that repository.
        alone = dict(os.environ, GIT_CEILING_DIRECTORIES=str(tree.parent))
        command = ["git", "apply", *(["--check"] if check else []), str(self.path)]
        done = subprocess.run(command, cwd=tree, env=alone, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Broken(f"{self.path.name} does not apply any more; make it anew or, if the defect cannot be made any "
                         f"longer, remove it: {done.stderr.strip()}")


def say(text):
    print(text, file=sys.stderr, flush=True)


def sync():
    """Copies the tree to SCRATCH. Writes only files that differ, so that the build stays incremental."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True,
                            check=True).stdout.decode().split("\0")
    names = {name for name in listed if name and (ROOT / name).is_file()}
    for name in names:
        target, content = SCRATCH / name, (ROOT / name).read_bytes()
        if target.is_file() and target.read_bytes() == content:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        target.chmod((ROOT / name).stat().st_mode)
    for target in SCRATCH.rglob("*"):
        relative = target.relative_to(SCRATCH)
        if relative.parts[0] not in ("build", ".git") and target.is_file() and str(relative) not in names:
            target.unlink()


def cmake(failed, *arguments):
    done = subprocess.run(["cmake", *arguments], cwd=SCRATCH, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    if done.returncode:
        raise Broken(f"{failed}:\n" + "\n".join(done.stdout.splitlines()[-30:]))


def prepare():
    """Makes the scratch copy equal to the tree and configures its build."""
    SCRATCH.mkdir(parents=True, exist_ok=True)
    sync()
    cmake("does not configure", "--preset", PRESET)


def build(programs, jobs):
    cmake("does not build", "--build", "--preset", PRESET, "-j", jobs, "--target", *sorted({path.split("/")[-1] for path in programs}))


def run(program, limit, arguments=(), **environment):
    """Returns the output (until the time limit, if that ended the program) and the end: ok, failed, crashed or hangs."""
    try:
        done = subprocess.run(["prlimit", f"--cpu={limit}:{limit + 5}", SCRATCH / "build" / PRESET / "tests" / program, *arguments],
                              cwd=SCRATCH, timeout=WAITS * limit, text=True, errors="replace", stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False, env=dict(os.environ, **environment))
    except subprocess.TimeoutExpired as hung:
        return (hung.stdout or b"").decode(errors="replace"), "hangs"
    if done.returncode == -signal.SIGXCPU:
        return done.stdout, "hangs"
    return done.stdout, "ok" if done.returncode == 0 else "failed" if done.returncode == 1 else "crashed"


def first_seed(kind):
    """Returns the first seed that fails and its message; None if no seed fails."""
    spec = PROGRAMS[kind]

    def play(first, count):
        return run(spec["seeds"], SEEDS_LIMIT, ["--gtest_filter=" + spec["filter"]], HAULOUT_FIRST_SEED=str(first),
                   HAULOUT_SEEDS=str(count))

    for first in range(1, spec["most"] + 1, spec["each"]):
        text, ended = play(first, spec["each"])
        if ended == "ok":
            continue
        found = re.findall(r"seed (\d+) \(.*\n((?:  \S.*\n)+)", text)
        two_ways = re.search(r"seed (\d+) went two ways", text)
        if found:
            seed, lines = found[0]
            return int(seed), lines.splitlines()[0].strip()
        if two_ways:
            return int(two_ways[1]), "went two ways"
        for seed in range(first, first + spec["each"]):
            _, ended = play(seed, 1)
            if ended != "ok":
                return seed, "the program " + ended
        raise Broken(f"seeds {first} to {first + spec['each'] - 1} fail together and none of them alone:\n{text[-2000:]}")
    return None


def programs_of(kind):
    return [PROGRAMS[kind]["seeds"], *PROGRAMS[kind]["tests"]]


def failing_tests(program):
    """Returns the names of the program's tests that fail."""
    text, ended = run(program, TESTS_LIMIT)
    if ended == "ok":
        return []
    named = list(dict.fromkeys(re.findall(r"^\[  FAILED  \] ([\w/.]+)(?:,|\s|$)", text, re.M)))
    if ended in ("crashed", "hangs"):
        running = re.findall(r"^\[ RUN      \] (\S+)", text, re.M)
        named += [f"{running[-1]} ({ended})"] if running else [f"{program} ({ended})"]
    return [name for name in named if "." in name]


def found_by(kind, jobs):
    """Returns the result of first_seed(), and the names of all tests that fail. Runs the seeds and the tests in
    parallel."""
    with concurrent.futures.ThreadPoolExecutor(int(jobs)) as pool:
        seed = pool.submit(first_seed, kind)
        # The longest program is the last one in the list and starts first.
        named = list(pool.map(failing_tests, reversed(PROGRAMS[kind]["tests"])))
        return seed.result(), [name for names in reversed(named) for name in names]


def row(mutant, seed, tests):
    by_seed = f"{seed[0]}: {seed[1]}" if seed else f"none of {PROGRAMS[mutant.said['Programs']]['most']}"
    by_test = f"`{tests[0]}`" + (f" and {len(tests) - 1} more" if len(tests) > 1 else "") if tests else "none"
    return f"| `{mutant.name}` | {mutant.said['What']} | {mutant.said['Promise']} | {by_seed} | {by_test} |"


def by_name(lines):
    """Returns the rows among these lines of a page, by the names of their mutants."""
    return {line.split("`")[1]: line for line in lines if line.startswith("| `")}


def without_row(text, names):
    """Returns the names of the mutants that have no row in the table of the page."""
    table = text.split(BEGIN)[1].split(END)[0]
    return sorted(set(names) - by_name(table.splitlines()).keys())


def merged(text, rows, names):
    """Returns the page with these rows in its table. Keeps the older rows of other mutants that still exist."""
    before, rest = text.split(BEGIN)
    table, after = rest.split(END)
    kept = by_name([*table.splitlines(), *rows])
    lines = [BEGIN, *HEAD, *(kept[name] for name in sorted(kept) if name in names), END]
    return before + "\n".join(lines) + after


def play_random(asked):
    prepare()
    try:
        verdicts = random_mutants.play(SCRATCH, asked, say)
    except RuntimeError as failed:
        raise Broken(str(failed)) from failed
    print(random_mutants.score(verdicts))
    found = sum(bool(verdict.found_by) for verdict in verdicts)
    say(f"{found} of {len(verdicts)} found (--seed {asked.seed})")
    return 0


def main():
    global SCRATCH, PRESET
    parser = argparse.ArgumentParser(description="known defects against the tests: each must be found")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--check", action="store_true", help="only whether each patch still applies")
    parser.add_argument("--jobs", default=os.environ.get("HAULOUT_JOBS", "2"))
    parser.add_argument("--tree", type=pathlib.Path, metavar="DIR", help="the scratch copy")
    parser.add_argument("--preset", default=PRESET, help="how the scratch copy is built (CMakePresets.json)")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="so many at random places instead")
    parser.add_argument("--seed", type=int, default=1, help="where these are")
    parser.add_argument("--folder", action="append", choices=random_mutants.FOLDERS, help="only there; may be repeated")
    parser.add_argument("--program", action="append", help="only these test programs look for them; may be repeated")
    asked = parser.parse_args()
    if asked.random < 0 or asked.random and asked.names:
        raise Broken("--random takes a number of mutants and no names")
    PRESET = asked.preset
    if asked.tree:
        SCRATCH = asked.tree.resolve()
    if asked.random and PRESET != "dev":
        raise Broken("--random builds the preset dev only")
    if asked.random:
        return play_random(asked)
    mutants = [Mutant(path) for path in sorted(HERE.glob("*.patch"))]
    unknown = set(asked.names) - {mutant.name for mutant in mutants}
    if unknown:
        raise Broken(f"there is no mutant {sorted(unknown)[0]}; there are: {', '.join(m.name for m in mutants)}")
    for mutant in mutants:
        mutant.apply(ROOT, check=True)
    try:
        gone = random_mutants.stale(ROOT, random_mutants.accepted(random_mutants.EQUIVALENT.read_text(encoding="utf-8")))
    except ValueError as wrong:
        raise Broken(str(wrong)) from wrong
    if gone:
        raise Broken(f"{random_mutants.EQUIVALENT.name}: this line is not there or cannot be broken so any longer; {gone}")
    for kind in PROGRAMS:
        for program in programs_of(kind):
            folder, name = program.rsplit("/", 1)
            made = ROOT / "tests" / folder / "CMakeLists.txt"
            if not made.is_file() or f"haulout_test({name} " not in made.read_text(encoding="utf-8"):
                raise Broken(f"tests/{folder} makes no program {name}: correct PROGRAMS")
    if asked.check:
        print(f"{len(mutants)} mutants apply")
        if lacking := without_row(PAGE.read_text(encoding="utf-8"), [mutant.name for mutant in mutants]):
            print(f"{len(lacking)} of them have no row in {PAGE.relative_to(ROOT)} yet: {', '.join(lacking)}")
        return 0
    chosen = [mutant for mutant in mutants if not asked.names or mutant.name in asked.names]

    prepare()
    kinds = sorted({mutant.said["Programs"] for mutant in chosen})
    say(f"the sound tree, which must pass: {', '.join(kinds)}")
    build([program for kind in kinds for program in programs_of(kind)], asked.jobs)
    for kind in kinds:
        seed, tests = found_by(kind, asked.jobs)
        if seed:
            raise Broken(f"the sound tree fails: {kind} seed {seed[0]}: {seed[1]}")
        if tests:
            raise Broken(f"the sound tree fails: {', '.join(tests)}")

    rows, survivors, unbuilt = [], [], []
    for mutant in chosen:
        began = time.monotonic()
        kind = mutant.said["Programs"]
        sync()
        mutant.apply(SCRATCH)
        try:
            build(programs_of(kind), asked.jobs)
        except Broken as broken:
            say(f"mutants: {mutant.path.name} {broken}")
            unbuilt.append(mutant.name)
            continue
        seed, tests = found_by(kind, asked.jobs)
        rows.append(row(mutant, seed, tests))
        if not seed and not tests:
            survivors.append(mutant.name)
        if os.environ.get("HAULOUT_UPDATE_DOCS"):
            page = merged(PAGE.read_text(encoding="utf-8"), rows[-1:], {mutant.name for mutant in mutants})
            PAGE.write_text(page, encoding="utf-8")
        say(f"{rows[-1]} {time.monotonic() - began:.0f} s")
    sync()
    print("\n".join([*HEAD, *rows]))
    say(f"{len(rows) - len(survivors)} of {len(chosen)} found" + (f"; SURVIVED: {', '.join(survivors)}" if survivors else "") +
        (f"; DO NOT BUILD: {', '.join(unbuilt)}" if unbuilt else ""))
    return 2 if unbuilt else 1 if survivors else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Broken as broken:
        say(f"mutants: {broken}")
        sys.exit(2)
