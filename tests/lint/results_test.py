#!/usr/bin/env python3
"""Tests scripts/results.py: the last lines of `./dev test` must be true."""
import io
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import results  # noqa: E402

GTEST = """<testsuites><testsuite name="S">
  <testcase name="a" classname="S" status="run" result="completed"/>
  <testcase name="b" classname="S" status="run" result="completed"><failure message="no"/></testcase>
  <testcase name="c" classname="S" status="run" result="skipped"/>
</testsuite></testsuites>"""


class Ctest(unittest.TestCase):
    def count(self, junit, **reports):
        with tempfile.TemporaryDirectory() as directory:
            pathlib.Path(directory, "ctest.xml").write_text(f"<testsuite>{junit}</testsuite>")
            for name, text in reports.items():
                pathlib.Path(directory, name + ".xml").write_text(text)
            return results.count_ctest(str(pathlib.Path(directory, "ctest.xml")), directory)

    def test_cases_of_an_executable_count_each(self):
        self.assertEqual(self.count('<testcase name="x" status="fail"><failure/></testcase>', x=GTEST), (1, ["x S.b"]))

    def test_other_tests_count_as_one(self):
        self.assertEqual(self.count('<testcase name="x" status="run"/><testcase name="y" status="fail"/>'), (1, ["y"]))

    def test_a_crash_after_the_last_case_is_a_failure(self):
        self.assertEqual(self.count('<testcase name="x" status="fail"/>', x=GTEST.replace('<failure message="no"/>', "")),
                         (2, ["x"]))

    def test_an_executable_without_report_that_failed_is_a_failure(self):
        self.assertEqual(self.count('<testcase name="x" status="fail"/>', x="<testsuites"), (0, ["x"]))

    def test_no_report_at_all_is_a_failure(self):
        self.assertEqual(results.count_ctest("/nonexistent", "/nonexistent"), (0, ["ctest wrote no report"]))


class Go(unittest.TestCase):
    def count(self, *events):
        lines = [event if isinstance(event, str) else json.dumps({"Package": "p", **event}) for event in events]
        self.printed = io.StringIO()
        return results.count_go(lines, self.printed)

    def test_leaves_count(self):
        self.assertEqual(self.count(
            {"Action": "pass", "Test": "T/a"}, {"Action": "output", "Test": "T/b", "Output": "because\n"},
            {"Action": "fail", "Test": "T/b"}, {"Action": "fail", "Test": "T"}, {"Action": "skip", "Test": "U"},
            {"Action": "fail"}), (1, ["T/b"]))
        self.assertIn("because", self.printed.getvalue())

    def test_a_package_that_does_not_compile_fails(self):
        self.assertEqual(self.count("x.go:1: syntax error\n", {"Action": "fail"}), (0, ["p"]))
        self.assertIn("syntax error", self.printed.getvalue())

    def test_a_panic_outside_of_any_test_fails(self):
        self.assertEqual(self.count({"Action": "pass", "Test": "T"}, {"Action": "fail"}), (1, ["p"]))


class Text(unittest.TestCase):
    def test_the_counts_come_first_and_the_names_below(self):
        self.assertEqual(results.text_of(3, ["a", "b c"]), "3 2\na\nb c\n")
        self.assertEqual(results.text_of(3, []), "3 0\n")


if __name__ == "__main__":
    unittest.main()
