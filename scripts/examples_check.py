"""Checks that the agent accepts each configuration of a directory, as its README says, that the README names each, and
that the agent accepts each configuration that a page shows.

  examples_check.py DIRECTORY BINARY PAGE...
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

ACCEPTED = "ok      config       the configuration is valid"
NO_CLUSTER = 3  # exit code
# Blocks of YAML in pages that are no configurations of agents: kustomizations, values of the Helm chart, and Butane.
OTHERS = ("patches:", "resources:", "fleetlockServer:", "variant:")


def refusal(binary, file):
    """Returns why the agent refuses a configuration, or an empty text."""
    # Without a cluster the check ends after the configuration: the environment names none, and neither does the file.
    run = subprocess.run([binary, "agent", "--check", "--config", file], capture_output=True, text=True, timeout=30,
                         env={"PATH": "/usr/bin:/bin", "KUBECONFIG": "/nonexistent"})
    if run.stdout.splitlines()[:1] == [ACCEPTED] and run.returncode == NO_CLUSTER:
        return ""
    return f"exit code {run.returncode}: {run.stdout}{run.stderr}"


def problems(directory, binary):
    readme = (directory / "README.md").read_text()
    if ACCEPTED not in readme:
        yield f"README.md does not show the line \"{ACCEPTED}\""
    files = sorted(directory.glob("*.yaml"))
    if not files:
        yield "no *.yaml"
    for file in files:
        if why := refusal(binary, file):
            yield f"{file.name}: {why}"
        if f"({file.name})" not in readme:
            yield f"{file.name} is not in README.md"


def problems_of_pages(pages, binary):
    checked = 0
    for page in pages:
        for block in re.findall(r"^ *```yaml\n(.*?)^ *```", page.read_text(), re.M | re.S):
            text = textwrap.dedent(block)
            if text.startswith(OTHERS):
                continue
            checked += 1
            with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
                file.write(text)
                file.flush()
                if why := refusal(binary, file.name):
                    yield f"{page}: {why}"
    if pages and not checked:
        yield "no page shows a configuration"


def main(directory, binary, *pages):
    binary = str(pathlib.Path(binary).resolve())
    found = [f"{directory}: {problem}" for problem in problems(pathlib.Path(directory), binary)]
    found += problems_of_pages([pathlib.Path(page) for page in pages], binary)
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
