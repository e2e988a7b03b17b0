#!/usr/bin/env python3
"""Tests that random mutants change only code that runs (tests/mutants/breakers.py), which test programs are run first for
a mutant, and which mutants are never chosen (random_mutants.py)."""
import collections
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mutants"))
import breakers  # noqa: E402
import random_mutants  # noqa: E402


def after(text):
    return [one.after.strip() for one in breakers.breaks(text)]


class Breakers(unittest.TestCase):
    def test_comparisons_and_conditions(self):
        self.assertEqual(after("  if (a < b && !c) return;"),
                         ["if (a <= b && !c) return;", "if (a < b || !c) return;", "if (a < b && c) return;",
                          "if (!(a < b && !c)) return;", "if (a < b && !c) ;"])

    def test_constants_and_words(self):
        self.assertEqual(after("  return std::min(limit, 10);"), ["return std::max(limit, 10);", "return std::min(limit, 11);"])
        self.assertEqual(after("constexpr int most = 0;"), ["constexpr int most = 1;"])

    def test_statements(self):
        self.assertEqual(after("  changed_->notify();"), [";"])
        self.assertEqual(after("  ++count_;"), [";"])
        self.assertEqual(after("  const auto a = f();"), [])
        self.assertEqual(after("  CO_CHECK(f());"), [])

    def test_neither_comments_nor_literals_nor_messages(self):
        self.assertEqual(after('  // if (a == 1)'), [])
        self.assertEqual(after('  call(x, "a == 1 && true");'), [";"])
        self.assertEqual(after("  /* a == 1\n  b == 2 */"), [])
        self.assertEqual(after('  report.message = a == 1 ? "x" : "y";'), [])
        self.assertEqual(after('  R"(if (a == 1)\n  b = 2;)";'), [])

    def test_templates_and_directives_stay(self):
        self.assertEqual(after("#if A == 1"), [])
        self.assertEqual(after("  std::vector<int> list;"), [])

    def test_it_is_put_in_its_line(self):
        text = "void f() {\n  g();\n}\n"
        one = breakers.breaks(text)[0]
        self.assertEqual(breakers.broken(text, one), "void f() {\n  ;\n}\n")


class Rounds(unittest.TestCase):
    def test_its_own_program_comes_first_then_those_that_found_most(self):
        programs = {"tests/fleet/fleet_test": 50, "tests/drain/drain_test": 1, "tests/k8s/k8s_test": 3, "tests/retry/retry_test": 2}
        finds = collections.Counter()
        self.assertEqual(random_mutants.in_order(programs, "drain/evict.cpp", finds),
                         ["tests/drain/drain_test", "tests/retry/retry_test", "tests/k8s/k8s_test", "tests/fleet/fleet_test"])
        finds["tests/fleet/fleet_test"] += 1
        self.assertEqual(random_mutants.in_order(programs, "drain/evict.cpp", finds),
                         ["tests/drain/drain_test", "tests/fleet/fleet_test", "tests/retry/retry_test", "tests/k8s/k8s_test"])

    def test_what_makes_no_difference_is_told_by_its_line(self):
        text = "# Why there is this file.\n\ndrain/a.cpp\n- if (a)\n+ if ((!(a)))\nWhy: a is gone.\n\nk8s/b.cpp\n- f(0);\n+ f(1);\nWhy: f.\n"
        self.assertEqual(random_mutants.accepted(text), {("drain/a.cpp", "if (a)", "if ((!(a)))"): "a is gone.",
                                                         ("k8s/b.cpp", "f(0);", "f(1);"): "f."})
        self.assertEqual(random_mutants.accepted("# Nothing yet.\n"), {})

    def test_a_line_without_a_reason_is_refused(self):
        with self.assertRaises(ValueError):
            random_mutants.accepted("drain/a.cpp\n- if (a)\n+ if ((!(a)))\n")


if __name__ == "__main__":
    unittest.main()
