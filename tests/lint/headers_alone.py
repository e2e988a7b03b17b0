#!/usr/bin/env python3
"""Compiles every header by itself, without the precompiled header of the build. So a file can include it before any other
header.

  headers_alone.py [--jobs N] [HEADER…]     all headers of the tree; prints the errors of those that do not compile

Most of the time would go into the libraries that a header includes, directly or through other headers of the tree. So
each header is compiled with a precompiled header that has as many of these libraries as possible, and no other.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOMS = ("base", "retry", "http", "k8s", "placement", "drain", "agent", "sim", "rehearse", "cli", "demo", "tests")
# The same flags as in cmake/house.cmake.
FLAGS = ["-std=c++20", "-Wno-pragma-once-outside-header", "-DBOOST_ASIO_SEPARATE_COMPILATION",
         "-DBOOST_BEAST_SEPARATE_COMPILATION", "-DBOOST_ASIO_NO_DEPRECATED", "-DFMT_SHARED", "-Xclang", "-fno-pch-timestamp"]
# Compiles to object files, although nothing uses them: ccache stores objects, so only changed headers are compiled again.
COMPILER = (["ccache"] if shutil.which("ccache") else []) + ["clang++-19"]
# ccache's documentation asks for these where precompiled headers are used.
ENVIRONMENT = dict(os.environ, CCACHE_SLOPPINESS="pch_defines,time_macros,include_file_mtime,include_file_ctime")
# A precompiled header for fewer headers costs more time than it saves.
WORTH_IT = 3


def compiled(arguments):
    """Runs the compiler; returns its errors, or an empty string."""
    run = subprocess.run([*COMPILER, *FLAGS, f"-I{ROOT}", *arguments], cwd=ROOT, env=ENVIRONMENT, capture_output=True,
                         text=True, check=False)
    return (run.stderr or "the compiler failed without a message") if run.returncode else ""


def libraries_of(header, seen):
    """Returns the headers of libraries, except those of the C++ standard library, that a header of the tree includes."""
    if header in seen or not (ROOT / header).is_file():
        return set()
    seen.add(header)
    text = (ROOT / header).read_text(encoding="utf-8")
    found = {name for name in re.findall(r"^#include <([^>]+)>", text, re.M) if "/" in name or "." in name}
    for name in re.findall(r'^#include "([^"]+)"', text, re.M):
        found |= libraries_of(name, seen)
    return found


def largest_part(names, sets):
    """Returns the largest of the sets that has no other libraries than `names`, or None."""
    return max((one for one in sets if one <= names), key=lambda one: (len(one), sorted(one)), default=None)


def precompiled(libraries, directory):
    """Returns the path of a precompiled header with these libraries. Raises RuntimeError if they do not compile."""
    text = "".join(f"#include <{name}>\n" for name in sorted(libraries))
    source = directory / (hashlib.sha256(text.encode()).hexdigest()[:16] + ".hpp")
    source.write_text(text, encoding="utf-8")
    errors = compiled(["-xc++-header", str(source), "-o", f"{source}.pch"])
    if errors:
        raise RuntimeError(errors)
    return f"{source}.pch"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("headers", nargs="*", type=pathlib.Path)
    asked = parser.parse_args()
    headers = asked.headers or sorted(header.relative_to(ROOT) for room in ROOMS for header in (ROOT / room).rglob("*.hpp"))
    libraries = {header: frozenset(libraries_of(str(header), set())) for header in headers}
    uses = collections.Counter(libraries.values())
    shared = {names for names in uses if names and uses[names] >= WORTH_IT}
    # A fixed place, because ccache distinguishes results by the paths of the files.
    directory = ROOT / "build/headers"
    directory.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool, tempfile.TemporaryDirectory() as scratch:
        prepared = {names: pool.submit(precompiled, names, directory) for names in sorted(shared, key=sorted)}

        def errors_of(header):
            part = largest_part(libraries[header], prepared)
            first = ["-include-pch", prepared[part].result()] if part else []
            return compiled([*first, "-c", "-xc++", str(header), "-o", f"{scratch}/{str(header).replace('/', '.')}.o"])

        failed = 0
        for header, errors in zip(headers, pool.map(errors_of, headers)):
            if errors:
                failed += 1
                print(f"{header} does not compile alone:\n{errors}", file=sys.stderr)
    print(f"headers alone: {len(headers)} headers, {failed} do not compile")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
