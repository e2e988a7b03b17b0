#!/usr/bin/env python3
"""Keeps the hot functions of profiles.

  hot_profile.py [--share SHARE] PROFILE…    each in the text form of llvm-profdata; writes PROFILE.hot for each

A function is hot if one of the profiles needs it to reach SHARE of the sum of its counters (default 0.99), when the functions
with the largest counters are taken first. What is left out is compiled as without a profile. A profile of the whole program
would be six times as large.
"""
import argparse
import sys

HEAD = "# IR level Instrumentation Flag\n:ir\n"


def records_of(path):
    """Returns the records of a profile: by name and hash of the function, the sum of its counters and its text."""
    with open(path, encoding="utf-8") as file:
        content = file.read()
    if not content.startswith(HEAD):
        sys.exit(f"{path} is no profile of clang -fprofile-generate in the text form of llvm-profdata")
    records = {}
    for text in content.removeprefix(HEAD).strip("\n").split("\n\n"):
        name, function_hash, count, *values = [line for line in text.split("\n") if not line.startswith("#")]
        records[name, function_hash] = sum(map(int, values[:int(count)])), text
    return records


def hot(records, share):
    """Returns the keys of the functions with the largest counters that together have this share of all."""
    wanted = share * sum(total for total, _ in records.values())
    kept, reached = set(), 0
    for key, (total, _) in sorted(records.items(), key=lambda record: -record[1][0]):
        if reached >= wanted:
            break
        reached += total
        kept.add(key)
    return kept


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=0.99)
    parser.add_argument("profiles", nargs="+")
    asked = parser.parse_args()
    profiles = {path: records_of(path) for path in asked.profiles}
    kept = set().union(*(hot(records, asked.share) for records in profiles.values()))
    for path, records in profiles.items():
        with open(f"{path}.hot", "w", encoding="utf-8") as file:
            file.write(HEAD)
            file.writelines(f"{text}\n\n" for key, (_, text) in records.items() if key in kept)
    print(f"{len(kept)} of {len(set().union(*profiles.values()))} functions are hot", file=sys.stderr)


if __name__ == "__main__":
    main()
