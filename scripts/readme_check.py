"""Checks that the commands and flags in the README and in other pages exist in the binary, and that their links exist in the tree.

  readme_check.py BINARY PAGE...
"""
import pathlib
import re
import subprocess
import sys


def help_of(binary, *command):
    run = subprocess.run([binary, *command, "--help"], capture_output=True, text=True, timeout=10)
    return run.stdout if run.returncode == 0 else None


def problems(text, binary, directory):
    # The word after "haulout" is a command only in code. In plain text it is any word of the sentence.
    code = re.findall(r"`([^`\n]+)`", text) + re.findall(r"^    (.+)$", text, re.M)
    commands = {match for line in code for match in re.findall(r"\bhaulout ([a-z][a-z-]*)", line)}
    # For a command that does not exist, the program prints its own help.
    general = help_of(binary)
    pages = {command: page if page != general else None
             for command, page in ((command, help_of(binary, command)) for command in sorted(commands))}
    for command, page in pages.items():
        if page is None:
            yield f"haulout {command} has no help"
    for line in code:
        used = re.match(r"(?:kubectl )?haulout ([a-z][a-z-]*)(.*)", line)
        # A flag by itself belongs to any of the commands; flags of other programs are not checked.
        if not used and not line.startswith("-"):
            continue
        page = pages.get(used.group(1)) if used else "\n".join(page for page in pages.values() if page)
        if page is None:
            continue
        for flag in re.findall(r"(?<![\w-])(--[a-z][a-z-]+|-[a-z])(?![\w-])", line):
            if not re.search(rf"(?<![\w-]){flag}(?![\w-])", page):
                yield f"{flag} (in `{line.strip()}`) is not in the help of that command"
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        if not (directory / target).exists():
            yield f"link to {target}, which does not exist"


def main(binary, *pages):
    if not pages:
        raise SystemExit(__doc__)
    found = [f"{page}: {problem}" for page in map(pathlib.Path, pages)
             for problem in problems(page.read_text(), str(pathlib.Path(binary).resolve()), page.parent)]
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
