#!/usr/bin/env python3
"""Compiles every header by itself, without the precompiled header. So a file can include it before any other header.

  headers_alone.py [--jobs N] [HEADER…]     all headers of the tree; prints the errors of those that do not compile
"""
import argparse
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOMS = ("base", "retry", "http", "k8s", "placement", "drain", "agent", "sim", "rehearse", "cli", "demo", "tests")
# The same flags as in cmake/house.cmake.
FLAGS = ["-std=c++20", "-c", "-xc++", "-Wno-pragma-once-outside-header", "-DBOOST_ASIO_SEPARATE_COMPILATION",
         "-DBOOST_BEAST_SEPARATE_COMPILATION", "-DBOOST_ASIO_NO_DEPRECATED", "-DFMT_SHARED"]


# Compiles to object files, although nothing uses them: ccache stores objects, so only changed headers are compiled again.
COMPILER = (["ccache"] if shutil.which("ccache") else []) + ["clang++-19"]


def errors_of(header):
    with tempfile.TemporaryDirectory() as directory:
        run = subprocess.run([*COMPILER, *FLAGS, f"-I{ROOT}", str(header), "-o", f"{directory}/header.o"], cwd=ROOT,
                             capture_output=True, text=True)
    return run.stderr if run.returncode else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("headers", nargs="*", type=pathlib.Path)
    asked = parser.parse_args()
    headers = asked.headers or sorted(header.relative_to(ROOT) for room in ROOMS for header in (ROOT / room).rglob("*.hpp"))
    with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        failed = 0
        for header, errors in zip(headers, pool.map(errors_of, headers)):
            if errors:
                failed += 1
                print(f"{header} does not compile alone:\n{errors}", file=sys.stderr)
    print(f"headers alone: {len(headers)} headers, {failed} do not compile")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
