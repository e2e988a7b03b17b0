#!/usr/bin/env python3
"""Tests scripts/hot_profile.py, which keeps the hot functions of a profile."""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import hot_profile  # noqa: E402


def record(name, *counters):
    return "\n".join([name, "# Func Hash:", "7", "# Num Counters:", str(len(counters)), "# Counter Values:",
                      *map(str, counters)]) + "\n\n"


class HotProfile(unittest.TestCase):
    def keep(self, *profiles, share="0.9"):
        with tempfile.TemporaryDirectory() as directory:
            paths = [pathlib.Path(directory, f"{number}.text") for number in range(len(profiles))]
            for path, content in zip(paths, profiles):
                path.write_text(content, encoding="utf-8")
            with mock.patch.object(sys, "argv", ["hot_profile.py", "--share", share, *map(str, paths)]), \
                    contextlib.redirect_stderr(io.StringIO()):
                hot_profile.main()
            return [pathlib.Path(f"{path}.hot").read_text(encoding="utf-8") for path in paths]

    def test_the_functions_with_the_largest_counters_are_kept(self):
        hot, warm, cold = record("hot", 80, 5), record("warm", 10), record("cold", 4, 1)
        self.assertEqual(self.keep(hot_profile.HEAD + cold + warm + hot), [hot_profile.HEAD + warm + hot])

    def test_what_is_hot_in_one_profile_is_kept_in_all(self):
        one = hot_profile.HEAD + record("a", 100) + record("b", 1) + record("c", 1)
        other = hot_profile.HEAD + record("a", 1) + record("b", 100) + record("c", 1)
        self.assertEqual(self.keep(one, other), [one.removesuffix(record("c", 1)), other.removesuffix(record("c", 1))])

    def test_the_values_of_a_function_stay_with_it(self):
        values = record("a", 100).removesuffix("\n") + "# Num Value Kinds:\n1\n# ValueKind = IPVK_MemOPSize:\n1\n0\n\n"
        self.assertEqual(self.keep(hot_profile.HEAD + values), [hot_profile.HEAD + values])

    def test_another_file_is_refused(self):
        with self.assertRaisesRegex(SystemExit, "no profile of clang"):
            self.keep("mode: set\n")


if __name__ == "__main__":
    unittest.main()
