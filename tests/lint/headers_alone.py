#!/usr/bin/env python3
"""Compiles every header by itself, without the precompiled header of the build. So a file can include it before any other
header.

  headers_alone.py [--jobs N] [HEADER…]     all headers of the tree; prints the errors of those that do not compile

Most of the time would go into the headers that a header includes. So a few headers that many others include are compiled
first, as precompiled headers. Each other header is then compiled with the largest of these that it includes, directly or
through other headers: that one would be compiled for it in any case.
"""
import argparse
import concurrent.futures
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOMS = ("base", "retry", "http", "k8s", "placement", "drain", "agent", "sim", "rehearse", "audit", "cli", "demo", "tests")
# The same flags as in cmake/house.cmake.
FLAGS = ["-std=c++20", "-Wno-pragma-once-outside-header", "-DBOOST_ASIO_SEPARATE_COMPILATION",
         "-DBOOST_BEAST_SEPARATE_COMPILATION", "-DBOOST_ASIO_NO_DEPRECATED", "-DFMT_SHARED", "-Xclang", "-fno-pch-timestamp"]
# Compiles to object files, although nothing uses them: ccache stores objects, so only changed headers are compiled again.
COMPILER = (["ccache"] if shutil.which("ccache") else []) + ["clang++-19"]
# ccache's documentation asks for these where precompiled headers are used.
ENVIRONMENT = dict(os.environ, CCACHE_SLOPPINESS="pch_defines,time_macros,include_file_mtime,include_file_ctime")
# How much time a header costs, compared with one byte of a header of the tree. Estimates: the headers of the libraries
# include many others.
TREE_BYTE, STANDARD_HEADER, LIBRARY_HEADER = 10, 20_000, 300_000
# Instantiates the templates in the precompiled header, instead of in each file that uses it. CMake does the same.
INSTANTIATE = ["-fpch-instantiate-templates"]
# A precompiled header that saves less than this is not worth the time of writing it.
WORTH_IT = 2_000_000


def compiled(arguments):
    """Runs the compiler; returns its errors, or an empty string."""
    run = subprocess.run([*COMPILER, *FLAGS, f"-I{ROOT}", *arguments], cwd=ROOT, env=ENVIRONMENT, capture_output=True,
                         text=True, check=False)
    return (run.stderr or "the compiler failed without a message") if run.returncode else ""


@functools.cache
def included(header):
    """Returns the headers that a header of the tree includes, directly or through other headers of the tree: those of the
    tree, and those of libraries."""
    text = (ROOT / header).read_text(encoding="utf-8")
    own = {name for name in re.findall(r'^#include "([^"]+)"', text, re.M) if (ROOT / name).is_file()}
    foreign = set(re.findall(r"^#include <([^>]+)>", text, re.M))
    for name in list(own):
        further, libraries = included(name)
        own |= further
        foreign |= libraries
    return frozenset(own), frozenset(foreign)


@functools.cache
def cost(header):
    """Estimates the time to compile a header with all that it includes."""
    own, foreign = included(header)
    return (sum(TREE_BYTE * (ROOT / name).stat().st_size for name in own | {header})
            + sum(LIBRARY_HEADER if re.search("[/.]", name) else STANDARD_HEADER for name in foreign))


def choose_precompiled(headers):
    """Returns the headers to be precompiled: one after another the header that saves most, as long as that is worth it."""
    users = {name: [header for header in headers if name in included(header)[0]]
             for name in sorted(set().union(*(included(header)[0] for header in headers)))}
    saved = dict.fromkeys(headers, 0)
    chosen = []

    def gain(name):
        return sum(max(0, cost(name) - saved[header]) for header in users[name]) - cost(name)

    while users:
        best = max(users, key=gain)
        if gain(best) < WORTH_IT:
            break
        chosen.append(best)
        for header in users.pop(best):
            saved[header] = max(saved[header], cost(best))
    return chosen


def precompiled(header, directory):
    """Compiles a header to a precompiled header. Returns its path and the errors of the compiler."""
    source = directory / header.replace("/", ".")
    source.write_text(f'#include "{header}"\n', encoding="utf-8")
    return f"{source}.pch", compiled([*INSTANTIATE, "-xc++-header", str(source), "-o", f"{source}.pch"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("headers", nargs="*", help="relative to the root of the tree")
    asked = parser.parse_args()
    headers = asked.headers or sorted(str(header.relative_to(ROOT)) for room in ROOMS for header in (ROOT / room).rglob("*.hpp"))
    # A fixed place, because ccache distinguishes results by the paths of the files.
    directory = ROOT / "build/headers"
    directory.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool, tempfile.TemporaryDirectory() as scratch:
        prepared = {name: pool.submit(precompiled, name, directory) for name in choose_precompiled(headers)}

        def errors_of(header):
            if header in prepared:
                return prepared[header].result()[1]
            first = []
            parts = [name for name in prepared if name in included(header)[0]]
            if parts:
                path, errors = prepared[max(parts, key=cost)].result()
                first = [] if errors else ["-include-pch", path]
            return compiled([*first, "-c", "-xc++", header, "-o", f"{scratch}/{header.replace('/', '.')}.o"])

        failed = 0
        for header, errors in zip(headers, pool.map(errors_of, headers)):
            if errors:
                failed += 1
                print(f"{header} does not compile alone:\n{errors}", file=sys.stderr)
    print(f"headers alone: {len(headers)} headers, {failed} do not compile")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
