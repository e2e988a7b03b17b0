#!/usr/bin/env python3
"""Mutants of nobody's choice break what runs, and nothing else: tests/mutants/breakers.py."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mutants"))
import breakers  # noqa: E402


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


if __name__ == "__main__":
    unittest.main()
