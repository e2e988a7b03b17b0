"""Counts tests, for the last lines of `./dev test`: "PASSED FAILED", and below it the names of those that failed.

  results.py ctest JUNIT GTEST_DIRECTORY   prints both: the cases of every gtest executable, other tests as one
  results.py go COUNTS_FILE                reads `go test -json`, prints it for people, writes both to the file
"""
import json
import pathlib
import sys
import xml.etree.ElementTree as xml


def gtest_counts(report):
    """Returns (passed, names of the failed) of one gtest report. Both are empty if the report cannot be read."""
    try:
        root = xml.parse(report).getroot()
    except (OSError, xml.ParseError):
        return 0, []
    cases = [case for case in root.iter("testcase") if case.get("result") == "completed"]
    failed = [f"{case.get('classname')}.{case.get('name')}" for case in cases if case.find("failure") is not None]
    return len(cases) - len(failed), failed


def count_ctest(junit, gtest_directory):
    """Returns (passed, names of the failed)."""
    try:
        tests = list(xml.parse(junit).getroot().iter("testcase"))
    except (OSError, xml.ParseError):
        return 0, ["ctest wrote no report"]
    passed = 0
    failed = []
    for test in tests:
        if test.get("status") in ("disabled", "notrun"):
            continue
        good = test.get("status") == "run" and test.find("failure") is None
        name = test.get("name")
        ok, bad = gtest_counts(pathlib.Path(gtest_directory, name + ".xml"))
        passed += 1 if good and not ok and not bad else ok
        # A timeout, a crash or a sanitizer's report fails an executable whose cases had all passed.
        failed += [f"{name} {case}" for case in bad] if bad else [] if good else [name]
    return passed, failed


def count_go(lines, out):
    """Returns (passed, names of the failed). Counts only tests without subtests, because a test with subtests passes and
    fails with them."""
    outcome = {}  # (package, test or None) -> pass | fail | skip
    printed = {}
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            print(line, end="", file=out)  # the compiler's own output
            continue
        key = (event.get("Package") or event.get("ImportPath"), event.get("Test"))
        action = event.get("Action")
        if action in ("output", "build-output"):
            if key[1] is None:
                print(event["Output"], end="", file=out, flush=True)
            else:
                printed.setdefault(key, []).append(event["Output"])
        elif action in ("pass", "fail", "skip"):
            outcome[key] = action
            if key[1] is not None:
                if action == "fail":
                    print("".join(printed.get(key, [])), end="", file=out)
                print(f"{action:4} {key[1]} ({event.get('Elapsed', 0):.1f} s)", file=out, flush=True)
                printed.pop(key, None)
    tests = {key for key in outcome if key[1] is not None}
    parents = {(package, test.rsplit("/", 1)[0]) for package, test in tests if "/" in test}
    leaves = tests - parents
    passed = sum(1 for key in leaves if outcome[key] == "pass")
    failed = sorted(test for package, test in leaves if outcome[(package, test)] == "fail")
    for (package, test), result in outcome.items():
        # Counts a failure of the package that no test shows: it did not compile, it panicked, or a test with subtests
        # failed although its subtests passed.
        if test is None and result == "fail" and not any(
                other == package and outcome[(other, name)] == "fail" for other, name in leaves):
            failed.append(package)
    return passed, failed


def text_of(passed, failed):
    return "".join(f"{line}\n" for line in [f"{passed} {len(failed)}", *failed])


def main(arguments):
    if len(arguments) == 3 and arguments[0] == "ctest":
        print(text_of(*count_ctest(arguments[1], arguments[2])), end="")
        return 0
    if len(arguments) == 2 and arguments[0] == "go":
        passed, failed = count_go(sys.stdin, sys.stdout)
        pathlib.Path(arguments[1]).write_text(text_of(passed, failed))
        return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
