"""Checks that the agent accepts each configuration of a directory, as its README says, and that the README names each.

  examples_check.py DIRECTORY BINARY
"""
import pathlib
import subprocess
import sys

ACCEPTED = "ok      config       the configuration is valid"
NO_CLUSTER = 3  # exit code


def problems(directory, binary):
    readme = (directory / "README.md").read_text()
    if ACCEPTED not in readme:
        yield f"README.md does not show the line \"{ACCEPTED}\""
    files = sorted(directory.glob("*.yaml"))
    if not files:
        yield "no *.yaml"
    for file in files:
        # Without a cluster the check ends after the configuration: the environment names none, and neither does the file.
        run = subprocess.run([binary, "agent", "--check", "--config", file], capture_output=True, text=True, timeout=30,
                             env={"PATH": "/usr/bin:/bin", "KUBECONFIG": "/nonexistent"})
        if run.stdout.splitlines()[:1] != [ACCEPTED] or run.returncode != NO_CLUSTER:
            yield f"{file.name}: exit code {run.returncode}: {run.stdout}{run.stderr}"
        if f"({file.name})" not in readme:
            yield f"{file.name} is not in README.md"


def main(directory, binary):
    found = list(problems(pathlib.Path(directory), str(pathlib.Path(binary).resolve())))
    for problem in found:
        print(f"{directory}: {problem}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
