#!/usr/bin/env python3
"""Checks that the shipped binary contains no part of the demo and no code that only tests use.

  parts_test.py BINARY MAP        MAP is the linker's map of BINARY (-Wl,-Map)

The map names the object file of each piece of the binary. Each object of this tree must come from a folder in PARTS, and
none may be in NOT_SHIPPED. The binary itself is stripped, so it is searched only for the names of classes and for texts.
"""
import pathlib
import re
import sys

# The folders whose libraries the program `haulout` consists of.
PARTS = {"base", "retry", "http", "k8s", "placement", "drain", "agent", "sim", "rehearse", "audit", "cli", "cmake"}
# Objects of these folders that only the demo or tests use.
NOT_SHIPPED = {"sim": {"http_front"}}
# Mangled names of namespaces, and texts of the demo, that the binary must not contain.
FORBIDDEN = [b"7haulout4demo", b"7haulout7testing", b"haulout-demo", b"testing4Test", b"the simulated cluster listens"]


def objects(text):
    """Yields (folder, name) of each object of this tree in the map: both libhaulout_sim.a(store.cpp.o) and
    sim/CMakeFiles/haulout_sim.dir/store.cpp.o."""
    for library, name in set(re.findall(r"\blib(\w+)\.a\(([\w.-]+)\.cpp\.o\)", text)):
        if library.startswith("haulout_"):
            yield library.split("_")[1], name
        elif library in ("worlds", "scenario_support", "seeded_runs", "schedules", "fleet_support"):
            yield "tests", name
    for folder, name in set(re.findall(r"(?:^|[\s:])(\w+)/(?:[\w/-]+/)?CMakeFiles/[\w.-]+\.dir/([\w./-]+)\.cpp\.o", text, re.M)):
        yield folder, name.rsplit("/", 1)[-1]


def problems(binary, text):
    found = sorted(objects(text))
    if ("cli", "main") not in found or not any(folder == "drain" for folder, _ in found):
        yield "the map does not name cli/main.cpp and the objects of drain/: it is not the map of haulout"
    for folder, name in found:
        if folder not in PARTS or name in NOT_SHIPPED.get(folder, ()):
            yield f"{folder}/{name}.cpp is in the binary; it must not be"
    for word in FORBIDDEN:
        if word in binary or word in text.encode():
            yield f"{word.decode()} is in the binary; it must not be"


def main(binary, linked):
    failed = False
    for problem in problems(pathlib.Path(binary).read_bytes(), pathlib.Path(linked).read_text(errors="replace")):
        print(f"{binary}: {problem}")
        failed = True
    print(f"parts_test: {'FAILED' if failed else 'OK'}")
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
