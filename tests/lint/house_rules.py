#!/usr/bin/env python3
"""Checks the rules of this tree that no compiler checks. CONTRIBUTING.md explains why they exist.

  house_rules.py            checks the whole tree; prints one line per finding; exit code 1 if there is any
  house_rules.py PATH…      reports only findings in these files

A rule is a function from a Tree to findings. Every rule has a bad sample in house_rules_test.py that it must catch.
To allow an exception, add the file to the tables below; a comment in the code does not do that.
"""
import collections
import fnmatch
import os
import pathlib
import posixpath
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import class_size as class_size_of  # noqa: E402

Finding = collections.namedtuple("Finding", "path line rule message")

# folder -> the other top-level folders that it may use. Tests may use all folders, and no folder may use tests.
_BELOW_AGENT = {"base", "retry", "http", "k8s", "placement", "drain"}
DIRECTIONS = {
    "base": set(),
    "retry": {"base"},
    "http": {"base", "retry"},
    "k8s": {"base", "retry", "http"},
    "placement": {"base", "retry", "http", "k8s"},
    "drain": {"base", "retry", "http", "k8s", "placement"},
    "agent": _BELOW_AGENT,
    "sim": {"base", "retry", "http", "k8s", "placement"},
    "rehearse": _BELOW_AGENT | {"agent", "sim"},
    "audit": _BELOW_AGENT | {"agent", "sim", "rehearse"},
    "demo": {"base", "retry", "http", "k8s", "placement", "sim"},
    "cli": _BELOW_AGENT | {"agent", "rehearse", "audit"},
}

# include prefix -> the files that may include it
K8S_CODECS = ["k8s/codec*.cpp", "k8s/codec_*.hpp", "k8s/status.cpp", "k8s/kubeconfig*.cpp", "k8s/exec_plugin.cpp"]
LIBRARY_HOMES = {
    "nlohmann/": K8S_CODECS + ["drain/cordon.cpp", "k8s/surge_mark.cpp", "agent/*_json.cpp", "cli/*_json.cpp",
                               "rehearse/*_json.cpp", "agent/process/logging.cpp", "placement/objects.hpp", "sim/*",
                               "tests/*"],
    "boost/json": K8S_CODECS + ["placement/cluster_pages.cpp", "tests/*"],
    "k8s/codec_json": ["k8s/*", "placement/cluster_pages.cpp"],
    "yaml-cpp/": ["k8s/yaml_codec.cpp"],
    "boost/log/": ["agent/process/logging.cpp"],
    "CLI/": ["cli/options/*", "demo/main.cpp"],
    "sdbus-c++/": ["agent/dbus/*", "tests/agent/dbus/*"],
    "prometheus/": ["agent/report/metrics.cpp"],
    "systemd/": ["agent/report/service_manager.cpp"],
    "boost/beast": ["http/*", "tests/*"],
    "boost/asio/ssl": ["http/*", "tests/*"],
    "openssl/": ["http/*", "tests/*"],
}

SDBUS_VERSIONS = ["agent/dbus/sdbus_versions.hpp", "tests/agent/dbus/sdbus_server.hpp"]

# (pattern, files that may use it, what to do instead)
BANNED_WORDS = [
    (r"\b(steady|system|high_resolution)_clock::now\b", ["retry/real_clock.cpp", "cli/main.cpp", "tests/bench/*"],
     "time is a dependency: take a Clock"),
    (r"\bsleep_for\b|\busleep\b|\bnanosleep\b|this_thread::sleep|(?<![\w.>])sleep\(", [], "wait with Clock::sleep_until"),
    (r"\basio::detached\b|,\s*detached\s*\)", [], "an exception would vanish: use a TaskGroup"),
    (r"\bco_spawn\b", ["retry/*", "http/server*.cpp", "cli/main.cpp", "demo/main.cpp", "sim/*", "tests/*"],
     "children belong to a scope: use a TaskGroup"),
    (r"\breset_cancellation_state\b", ["retry/*"], "it changes the caller too; clean up in the scope that survives"),
    (r"\bawaitable_operators\b", [], "its || loses exceptions: use with_deadline or a TaskGroup"),
    (r"\brandom_device\b", ["cli/main.cpp"], "randomness is a dependency: take an Rng"),
    (r"\bstd::(recursive_|shared_)?mutex\b", [], "one thread, one io_context: nothing to lock"),
    # What sdbus-c++ 1.2 and 2.x have in different forms. A build with one of them does not notice that the other refuses it.
    (r"\b(callMethod(Async)?|addMatch|processPending(Request|Event)|message_handler|timeout_usec|enterVariant|getMemberName)\b"
     r"|\bsdbus::(\w+Name|return_slot|signature_of)\b", SDBUS_VERSIONS, "use agent/dbus/sdbus_versions.hpp"),
    (r"\b(register(Method|Property|Signal)|addVTable|finishRegistration)\b|\bsdbus::Error\(\"", SDBUS_VERSIONS,
     "use tests/agent/dbus/sdbus_server.hpp"),
]

COLUMNS = 120  # as in .clang-format
# The scenarios 1 to this number must have a row in docs/scenarios.md. A number never changes; new ones follow at the end.
SCENARIOS = 77

CODE = (".cpp", ".hpp")
TEXT = CODE + (".py", ".sh", ".go", ".md", ".txt", ".cmake", ".json", ".yaml", ".yml", ".html")
LINT = ["tests/lint/*"]  # contains the words that it forbids


class Tree:
    """The files of the tree: paths relative to the root, with '/', and their text."""

    def __init__(self, files):
        self.files = dict(sorted(files.items()))

    @classmethod
    def read(cls, root):
        files = {}
        for folder, folders, names in os.walk(root):
            # build/ may have whole file systems of machines in it.
            skipped = {"build", ".git", ".cache", ".venv"} if folder == str(root) else set()
            folders[:] = [name for name in folders if name not in skipped and name != "__pycache__"]
            for path in (pathlib.Path(folder, name) for name in names):
                name = path.relative_to(root).as_posix()
                wanted = path.suffix in TEXT or name == "dev" or name.startswith(".ci/")
                if wanted and name != ".git" and path.is_file():
                    files[name] = path.read_text(encoding="utf-8", errors="replace")
        return cls(files)

    def code(self):
        """Yields (path, line number, line without // comment) of all C++."""
        for path, text in self.files.items():
            if path.endswith(CODE):
                for number, line in enumerate(text.splitlines(), 1):
                    yield path, number, re.sub(r"(?<!:)//.*$", "", line)

    def lines(self, suffixes=None):
        for path, text in self.files.items():
            if suffixes is None or path.endswith(suffixes):
                for number, line in enumerate(text.splitlines(), 1):
                    yield path, number, line

    def headers(self):
        return {path: text for path, text in self.files.items() if path.endswith(".hpp")}


def at_home(path, homes):
    return any(fnmatch.fnmatchcase(path, home) for home in homes)


def folder(path):
    return path.split("/", 1)[0]


def room_of_target(target):
    """Returns the folder of a library: haulout_agent_gates belongs to agent/."""
    return target.split("_", 1)[0]


def directions(tree):
    """Folders use each other only in these directions: base <- retry <- http <- k8s <- placement <- drain <- agent <- cli;
    placement <- sim <- rehearse <- audit <- cli; sim <- demo."""
    for path, number, line in tree.code():
        include = re.match(r'\s*#\s*include\s*"([^"/]+)/', line)
        if include:
            yield from wrong_direction(path, number, include.group(1))
    for path, number, line in tree.lines("CMakeLists.txt"):
        for target in re.findall(r"\bhaulout_(\w+)", line.split("#", 1)[0]):
            yield from wrong_direction(path, number, room_of_target(target))


def wrong_direction(path, number, used):
    own = folder(path)
    if own not in DIRECTIONS or used == own or used in DIRECTIONS[own] or (used not in DIRECTIONS and used != "tests"):
        return
    allowed = ", ".join(sorted(DIRECTIONS[own])) or "no other"
    yield Finding(path, number, "directions", f"{own}/ must not use {used}/ (it may use: {allowed})")


def no_cycles(tree):
    """No folder, of any level, uses a folder that uses it, directly or indirectly."""
    uses = collections.defaultdict(dict)  # folder -> folder that it uses -> the first such include
    for path, number, line in tree.code():
        include = re.match(r'\s*#\s*include\s*"([^"]+)/[^"/]+"', line)
        own = path.rpartition("/")[0]
        if include and folder(path) in DIRECTIONS and include.group(1) != own and folder(include.group(1)) in DIRECTIONS:
            uses[own].setdefault(include.group(1), (path, number))

    def reach(start):
        seen, ahead = set(), [start]
        while ahead:
            for used in uses[ahead.pop()]:
                if used not in seen:
                    seen.add(used)
                    ahead.append(used)
        return seen

    reached = {own: reach(own) for own in list(uses)}
    for own in list(uses):
        for used, (path, number) in uses[own].items():
            if own in reached.get(used, ()):
                yield Finding(path, number, "no_cycles", f"{own}/ uses {used}/, which uses {own}/: one of them must not")


def library_homes(tree):
    """Only the files in LIBRARY_HOMES include a library."""
    for path, number, line in tree.code():
        include = re.match(r'\s*#\s*include\s*[<"]([^>"]+)', line)
        for prefix, homes in LIBRARY_HOMES.items():
            if include and include.group(1).startswith(prefix) and folder(path) != "cmake" and not at_home(path, homes):
                yield Finding(path, number, "library_homes", f"{prefix}… belongs to {', '.join(homes)}")


def banned_words(tree):
    """Only the files in BANNED_WORDS use these words."""
    for path, number, line in tree.code():
        for pattern, homes, instead in BANNED_WORDS:
            found = re.search(pattern, line)
            if found and not at_home(path, homes):
                yield Finding(path, number, "banned_words", f"{found.group(0)}: {instead}")


def header_guard(tree):
    for path, text in tree.headers().items():
        if not re.search(r"^#pragma once$", text, re.M):
            yield Finding(path, 1, "header_guard", "a header needs #pragma once")


def header_contract(tree):
    """A header states what it does, what it may fail with, whether it can be cancelled, and who owns what."""
    for path, text in tree.headers().items():
        if not re.match(r"// \S", text):
            yield Finding(path, 1, "header_contract", "a header opens with its contract, as // comment")


def includes_fmt(tree):
    """A file that uses fmt includes it, or its own header does. The precompiled header is only for speed."""
    for path, text in tree.files.items():
        own = tree.files.get(path.removesuffix(".cpp") + ".hpp", "") if path.endswith(".cpp") else ""
        if path.endswith(CODE) and re.search(r"\bfmt::", re.sub(r"//.*", "", text)) and "#include <fmt/" not in text + own:
            yield Finding(path, 1, "includes_fmt", "it uses fmt:: and does not include <fmt/format.h>")


def header_namespace(tree):
    for path, number, line in tree.code():
        if path.endswith(".hpp") and re.search(r"\busing\s+namespace\b", line):
            yield Finding(path, number, "header_namespace", "using namespace in a header reaches all who include it")


def one_object_one_file(tree):
    """The functions of a class are defined in one source. A class that is too large for that is split by meaning."""
    places = collections.defaultdict(dict)  # namespace and class -> source -> line of the first function there
    definition = re.compile(r"^(?![\s#}]|using\b|return\b)[^;={}()]*?\b((?:[A-Z]\w*::)+)(?:~?\w+|operator[^\s(]+)\(", re.M)
    for path, text in tree.files.items():
        if not path.endswith(".cpp") or folder(path) not in DIRECTIONS:
            continue
        text = re.sub(r"//.*", "", text)
        namespace = re.search(r"^namespace haulout::([\w:]+) \{", text, re.M)
        for found in definition.finditer(text):
            name = (namespace.group(1) + "::" if namespace else "") + found.group(1).removesuffix("::")
            places[name].setdefault(path, text.count("\n", 0, found.start(1)) + 1)
    for name, sources in places.items():
        if len(sources) > 1:
            path, line = list(sources.items())[-1]
            yield Finding(path, line, "one_object_one_file", f"{name} is defined in {', '.join(sources)}: split it by meaning")


def class_size(tree):
    """A class is one idea."""
    for path, text in tree.files.items():
        if path.endswith(CODE) and folder(path) in DIRECTIONS:
            for line, message in class_size_of.too_large(text):
                yield Finding(path, line, "class_size", message)


def cmake_sources(tree):
    """Every source that a CMakeLists.txt names exists. Some targets are configured only with sanitizers."""
    for path, number, line in tree.lines("CMakeLists.txt"):
        for source in re.findall(r"(?<![\w./${}-])([\w/]+\.cpp)\b", line.split("#", 1)[0]):
            if source not in tree.files and path.rpartition("/")[0] + "/" + source not in tree.files:
                yield Finding(path, number, "cmake_sources", f"there is no {source}")


def comment_width(tree):
    """Checks the width of comments. clang-format does not reflow them, since that would break lists and tables."""
    for path, number, line in tree.lines((".cpp", ".hpp")):
        if line.lstrip().startswith("//") and len(line) > COLUMNS:
            yield Finding(path, number, "comment_width", f"{len(line)} characters: {COLUMNS} at most")


def unfinished(tree):
    """The tree contains no marks of unfinished work."""
    for path, number, line in tree.lines():
        found = re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line)
        if found and not at_home(path, LINT):
            yield Finding(path, number, "unfinished", f"{found.group(0)}: do it, or write it down where work is planned")


def own_words(tree):
    """The tree mentions no paths of one machine and no documents that are not in it."""
    known = {path for path in tree.files if path.endswith(".md")}
    known |= {path.rsplit("/", 1)[-1] for path in known}
    for path, number, line in tree.lines():
        if at_home(path, LINT):
            continue
        place = re.search(r"""(?:^|[\s"'`(=])((?:/work|\.\./shared|shared/notes)/[\w./-]*)""", line)
        if place:
            yield Finding(path, number, "own_words", f"{place.group(1)} is a place on one machine")
        for document in re.findall(r"(?<![\w./:-])([\w./-]*\w\.md)\b", re.sub(r"https?://\S+", "", line)):
            if posixpath.normpath(posixpath.join(posixpath.dirname(path), document)) not in known and document not in known:
                yield Finding(path, number, "own_words", f"{document} is not in this tree")


# The tables of options, and what makes flags, help and pages of them.
OPTION_TABLES = ["drain/option_table.*", "agent/config/option_table.*", "cli/options/*"]
DEFAULT_LITERALS = [
    (r"\bchrono::(?:milli)?(?:seconds|minutes|hours)\(\s*\d", "a time"),
    (r"\bshown_default\s*=\s*\"", "a shown default"),
    (r"(?i)\bdefaults?(?: value)?(?: is|:)? (?:`|'|\\\"|\d|(?:true|false|on|off|unlimited|none|auto)\b)", "a default in a text"),
    (r"\)\s*,\s*\"[^\"\n]*\"\s*,\s*\"", "a text between the values and the meaning of a row"),
]


def option_defaults(tree):
    """The default of an option stands in its options struct and nowhere else: a row of a table of options, a help text
    and a page take it from there (Values::show)."""
    for path, text in tree.files.items():
        if not at_home(path, OPTION_TABLES):
            continue
        for pattern, what in DEFAULT_LITERALS:
            for found in re.finditer(pattern, text):
                yield Finding(path, text.count("\n", 0, found.start()) + 1, "option_defaults",
                              f"{what}: a default stands in the options struct, and is shown from there")


def dev_commands(tree):
    """Every ./dev command in the documents exists."""
    commands = set(re.findall(r"^  ([a-z|]+)(?: \||\))", tree.files.get("dev", ""), re.M)) | {"help"}
    for path, number, line in tree.lines(".md"):
        for command in re.findall(r"\./dev ([a-z]+)", line):
            if command not in commands:
                yield Finding(path, number, "dev_commands", f"./dev has no command '{command}'")


def test_names(tree):
    """Returns name -> (path, line) of every test: Suite.Name of GoogleTest, Name of Go."""
    names = {}
    for path, text in tree.files.items():
        if path.startswith("tests/") and path.endswith(".cpp"):
            for found in re.finditer(r"\bTEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)", text):
                names[f"{found.group(1)}.{found.group(2)}"] = (path, text.count("\n", 0, found.start()) + 1)
        if path.startswith("tests/") and path.endswith("_test.go"):
            for found in re.finditer(r"^func (Test\w+)\(", text, re.M):
                names[found.group(1)] = (path, text.count("\n", 0, found.start()) + 1)
    return names


def scenarios(tree):
    """docs/scenarios.md has a row '| 3 | what happens | `Suite.S03_Name` |' for each scenario and each test S<number>_….
    The last column of its other tables contains tests, too."""
    page = "docs/scenarios.md"
    tests = test_names(tree)
    claimed, numbers = set(), set()
    for number, line in enumerate(tree.files.get(page, "").splitlines(), 1):
        row = re.match(r"\|\s*(\d+)\s*\|(.*)\|([^|]*)\|\s*$", line)
        if not row:
            others = re.match(r"\|.*\|([^|]*)\|\s*$", line)
            for name in re.findall(r"`([A-Za-z]\w*(?:\.\w+)?)`", others.group(1) if others else ""):
                if name not in tests:
                    yield Finding(page, number, "scenarios", f"there is no test {name}")
            continue
        scenario, listed = int(row.group(1)), re.findall(r"[A-Za-z]\w*(?:\.\w+)?", row.group(3))
        if scenario in numbers:
            yield Finding(page, number, "scenarios", f"scenario {scenario} stands here twice")
        numbers.add(scenario)
        if not listed:
            yield Finding(page, number, "scenarios", f"scenario {scenario} names no test")
        for name in listed:
            claimed.add(name)
            prefix = re.search(r"(?:^|\.)S(\d+)_", name)
            if name not in tests:
                yield Finding(page, number, "scenarios", f"scenario {scenario}: there is no test {name}")
            elif prefix and int(prefix.group(1)) != scenario:
                yield Finding(page, number, "scenarios", f"scenario {scenario} names {name}, which is another's")
    for scenario in range(1, SCENARIOS + 1) if page in tree.files else []:
        if scenario not in numbers:
            yield Finding(page, 1, "scenarios", f"scenario {scenario} has no row")
    for name, (path, line) in tests.items():
        if re.search(r"\.S\d+_", name) and name not in claimed:
            yield Finding(path, line, "scenarios", f"{name} has no row in {page}")


def behaviours(tree):
    """docs/behaviours.md has rows '| K1 | what others do | **as there**, … | `drain/a.cpp` | `Suite.Name` |'. Their files and
    tests exist. Only rows with "left out" or "not yet" need no test."""
    page = "docs/behaviours.md"
    tests = test_names(tree)
    numbers = set()
    for number, line in enumerate(tree.files.get(page, "").splitlines(), 1):
        row = re.match(r"\|\s*([A-Z]\d+)\s*\|[^|]*\|\s*(.*?)\s*\|([^|]*)\|([^|]*)\|\s*$", line)
        if not row:
            if re.match(r"\|\s*[A-Z]\d+\s*\|", line):
                yield Finding(page, number, "behaviours", "a row has a number and four columns more")
            continue
        name, verdict = row.group(1), re.match(r"\*\*(as there|differs|left out|not yet)\*\*", row.group(2))
        if name in numbers:
            yield Finding(page, number, "behaviours", f"row {name} stands here twice")
        numbers.add(name)
        if not verdict:
            yield Finding(page, number, "behaviours", f"row {name} begins with none of: as there, differs, left out, not yet")
        for place in re.findall(r"`([^`]+)`", row.group(3)):
            if place not in tree.files and not any(path.startswith(place.rstrip("/") + "/") for path in tree.files):
                yield Finding(page, number, "behaviours", f"row {name}: {place} is not in this tree")
        shown = re.findall(r"`([^`]+)`", row.group(4))
        for test in shown:
            if test not in tests:
                yield Finding(page, number, "behaviours", f"row {name}: there is no test {test}")
        if not shown and verdict and verdict.group(1) in ("as there", "differs"):
            yield Finding(page, number, "behaviours", f"row {name} names no test")


def comparison(tree):
    """docs/comparison.md has rows '| D1 | a feature | yes: by an option | no | … | [`Suite.Name`](../tests/a_test.cpp) |'. What
    Haulout has is shown by a test. Each test is in the file to which its link leads."""
    page = "docs/comparison.md"
    tests = test_names(tree)
    numbers, columns = set(), 0
    for number, line in enumerate(tree.files.get(page, "").splitlines(), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if cells and cells[0] == "#":
            columns = len(cells)
        shown = re.findall(r"\[`([^`]+)`\]\(\.\./([^)]+)\)", line)
        for name, path in shown:
            if name in tests and tests[name][0] != path or path not in tree.files:
                yield Finding(page, number, "comparison", f"{name} is not in {path}")
            elif name not in tests and name != pathlib.PurePath(path).name:
                yield Finding(page, number, "comparison", f"there is no test {name}")
        if not cells or not re.fullmatch(r"[A-Z]\d+", cells[0]):
            continue
        if cells[0] in numbers:
            yield Finding(page, number, "comparison", f"row {cells[0]} stands here twice")
        numbers.add(cells[0])
        if len(cells) != columns:
            yield Finding(page, number, "comparison", f"row {cells[0]} has {len(cells)} columns, and its table has {columns}")
            continue
        ours = re.match(r"(yes|part|no)(?=:|$)", cells[2])
        if not ours or any(cell not in ("yes", "part", "no", "–") for cell in cells[3:-1]):
            yield Finding(page, number, "comparison", f"row {cells[0]} has another answer than yes, part, no or –")
        elif ours.group(1) != "no" and not shown:
            yield Finding(page, number, "comparison", f"row {cells[0]} names no test")


def formatting(tree):
    """Checks C++ with clang-format and the file .clang-format, and Go with gofmt if that is installed."""
    program = shutil.which("clang-format-19") or shutil.which("clang-format")
    if not program:
        yield Finding("dev", 1, "formatting", "clang-format-19 is missing: ./dev setup")
        return
    # One run over all files names those that differ; starting the program for each file takes a minute.
    code = [path for path in tree.files if path.endswith(CODE)]
    on_disk = all((ROOT / path).is_file() and (ROOT / path).read_text(encoding="utf-8", errors="replace") == tree.files[path] for path in code)
    if code and on_disk:
        check = subprocess.run([program, "--style=file", "--dry-run", *code], capture_output=True, text=True, cwd=ROOT)
        code = sorted(set(re.findall(r"^([^:\n]+):\d+:\d+: warning:", check.stderr, re.M)))
    for path in code:
        text = tree.files[path]
        run = subprocess.run([program, "--style=file", f"--assume-filename={path}"], input=text, capture_output=True,
                             text=True, cwd=ROOT)
        yield from compare(path, text, run, f"clang-format-19 -i {path}")
    gofmt = shutil.which("gofmt")
    for path, text in tree.files.items():
        if gofmt and path.endswith(".go"):
            run = subprocess.run([gofmt], input=text, capture_output=True, text=True)
            yield from compare(path, text, run, f"gofmt -w {path}")


def compare(path, text, run, remedy):
    if run.returncode:
        yield Finding(path, 1, "formatting", run.stderr.strip() or "the formatter failed")
    elif run.stdout != text:
        pairs = zip(text.splitlines() + [""], run.stdout.splitlines() + [""])
        line = next((number for number, (have, want) in enumerate(pairs, 1) if have != want), 1)
        yield Finding(path, line, "formatting", f"not as the formatter has it: {remedy}")


RULES = [directions, no_cycles, library_homes, banned_words, header_guard, header_contract, includes_fmt, header_namespace, one_object_one_file, class_size, cmake_sources, comment_width,
         unfinished, own_words, option_defaults, dev_commands, scenarios, behaviours, comparison,
         formatting]
ROOT = pathlib.Path(__file__).resolve().parents[2]


def main(only):
    tree = Tree.read(ROOT)
    only = {pathlib.Path(path).resolve().relative_to(ROOT).as_posix() for path in only}
    findings = [finding for rule in RULES for finding in rule(tree) if not only or finding.path in only]
    for path, line, rule, message in sorted(findings):
        print(f"{path}:{line}: [{rule}] {message}")
    print(f"house rules: {len(RULES)} rules, {len(tree.files)} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
