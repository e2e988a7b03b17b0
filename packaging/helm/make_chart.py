#!/usr/bin/env python3
"""Writes the parts of the Helm chart that other files of this tree determine.

  make_chart.py            writes them
  make_chart.py --check    changes nothing; prints a line for each part that is not up to date; exit code 1 if there is any

  files/                        copies of the objects in packaging/kustomize (base, components, fleetlock-server), of the
                                alert rules and of dashboards in packaging/grafana, which templates read
  values.schema.json            the schema of `config`, from the tables of docs/configuration.md
  values.yaml                   the list of options below `config`, from the same tables
  Chart.yaml                    the version, from CMakeLists.txt

A test of the program keeps docs/configuration.md equal to the tables of options, so the chart has the options of the
program. The rest of these files is written by hand.
"""
import json
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "packaging/helm/haulout"
# What the DaemonSet sets as flags, which override the file, and what no file may set.
NOT_IN_FILE = {"config", "namespace", "host-root", "check", "release"}
BEGIN = "  # Begin of the list of options. packaging/helm/make_chart.py writes it."
END = "  # End of the list of options."

# The schema must accept what the agent accepts, and may accept more. An empty text resets some options to their default.
DURATION = r"^[+]?(0|(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"
# What a text must look like, by the word in the column `value`.
PATTERNS = {
    "label key": r"^(([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$",
    "URL": r"^([hH][tT][tT][pP][sS]?://.+)?$",
    "URL or file": r"^([hH][tT][tT][pP][sS]?://.+|/.+)?$",
    "directory": r"^(/.*)?$",
    "code=answer": r"^([0-9]+=(yes|no)(,[0-9]+=(yes|no))*)?$",
    "order": r"^(any|zone|asked|label:.+)?$",
    "address:port": r":[1-9][0-9]*$",  # the probes of the DaemonSet need a port
    "numbers, percentages": r"^([0-9]+%?(,[0-9]+%?)*)?$",
}


class Option:
    """A row of the tables of docs/configuration.md."""

    def __init__(self, group, cells):
        self.group = group
        self.name = re.search(r"`--([a-z-]+)`", cells[0]).group(1)
        self.value = cells[1]
        self.default = cells[2].strip("`")
        self.meaning = cells[3]

    def schema(self):
        is_json = re.fullmatch(r"[0-9]+|true|false", self.default)
        default = json.loads(self.default) if is_json else self.default
        shown = {"default": default} if self.default else {}
        return {"description": f"{self.meaning} Value: {self.value}.", **self.or_null(), **shown}

    def or_null(self):
        """Returns form(), but with null, which means the same as no value: a second file of values may say it."""
        form = self.form()
        if "enum" in form:
            return {**form, "enum": [*form["enum"], None]}
        types = form["type"] if isinstance(form["type"], list) else [form["type"]]
        return {**form, "type": [*types, "null"]}

    def form(self):
        """Returns the schema of the value, without description and default."""
        value = self.value
        words = value.split(", ")
        if value in PATTERNS:
            return {"type": "string", "pattern": PATTERNS[value]}
        if value == "true, false":
            return {"enum": [True, False, "true", "false"]}
        if value.endswith("; list"):
            return {"type": ["string", "array"], "items": {"type": "string"}}
        if value == "command":  # the list has its words
            return {"type": ["string", "array"], "items": {"type": "string"}}
        if value == "duration":
            return {"type": ["string", "integer"], "pattern": DURATION, "minimum": 0, "maximum": 0}
        if value.startswith("number, percentage"):
            return {"type": ["string", "integer"], "pattern": "^[0-9]+%?$", "minimum": 0}
        limits = re.fullmatch(r"(\d+) to (\d+)(, unlimited)? \(.*\)", value)
        if limits:
            return {"type": ["integer", "string"], "minimum": int(limits[1]), "maximum": int(limits[2]),
                    "pattern": "^([0-9]+|unlimited)$" if limits[3] else "^[0-9]+$"}
        if len(words) > 1 and "," in self.default:  # a list of words, as one text or as a list
            one = "|".join(words)
            return {"type": ["string", "array"], "pattern": f"^({one})( *, *({one}))*$",
                    "items": {"enum": words}, "minItems": 1}
        if len(words) > 1:
            return {"enum": words}  # without a type, so that the message for `off` without quotes names the words
        return {"type": "string"}

    def lines(self):
        """Returns the lines of values.yaml: the meaning, and the option with its default, all as comments."""
        example = self.default
        if not example and self.value.endswith("; list"):
            example = "[]"
        elif not example and self.value.startswith("number"):
            example = "null"
        elif re.search(r"^$|[{}\[\]\"'#:%,=]|^(off|on|yes|no)$", example):
            example = json.dumps(example)
        return [*comment(self.meaning), f"  #   {self.name}: {example}", "  #"]


def comment(text):
    return textwrap.wrap(text, 118, initial_indent="  # ", subsequent_indent="  # ", break_on_hyphens=False,
                         break_long_words=False)


def options():
    """Yields the options that a configuration file may have, with the DaemonSet's own defaults."""
    text = (ROOT / "packaging/kustomize/base/daemonset.yaml").read_text()
    own = {name.lower().replace("_", "-"): value
           for name, value in re.findall(r'name: HAULOUT_DEFAULT_(\w+)\n +value: "?([^"\n]*)"?\n', text)}
    group = ""
    for line in (ROOT / "docs/configuration.md").read_text().splitlines():
        group = line[3:] if line.startswith("## ") else group
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)][1:-1]
        if len(cells) == 4 and "`--" in cells[0]:
            option = Option(group, cells)
            option.default = own.get(option.name, option.default)
            if option.name not in NOT_IN_FILE:
                yield option


def schema(text, table):
    """Replaces the schema of `config`."""
    whole = json.loads(text)
    whole["properties"]["config"]["properties"] = {option.name: option.schema() for option in table}
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def values(text, table):
    """Replaces the list of options."""
    lines, group = [], ""
    for option in table:
        if option.group != group:
            group = option.group
            lines += [f"  # {'-' * 20} {group} {'-' * 20}", "  #"]
        lines += option.lines()
    before, rest = text.split(BEGIN + "\n")
    after = rest.split(END + "\n")[1]
    return before + "\n".join([BEGIN, "  #", *lines, END, ""]) + after


def chart(text):
    """Replaces the versions."""
    version = re.search(r"^project\(haulout VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M).group(1)
    text = re.sub(r"^version: .*$", f"version: {version}", text, flags=re.M)
    return re.sub(r"^appVersion: .*$", f'appVersion: "{version}"', text, flags=re.M)


def copies():
    """Yields (path in the chart, text) of the files that the templates read."""
    kustomize = ROOT / "packaging/kustomize"
    objects = [path for pattern in ("base/*.yaml", "components/**/*.yaml", "fleetlock-server/*.yaml")
               for path in kustomize.glob(pattern)]
    for path in sorted(objects):
        if path.name not in ("kustomization.yaml", "config.yaml"):
            yield f"files/{path.relative_to(kustomize)}", path.read_text()
    for path in sorted((ROOT / "packaging/grafana").glob("*.json")):
        yield f"files/grafana/{path.name}", path.read_text()
    yield "files/haulout.rules.yaml", (ROOT / "packaging/prometheus/haulout.rules.yaml").read_text()


def parts():
    """Yields (path in the chart, text) of every file that this program writes."""
    table = list(options())
    yield from copies()
    for name, change in (("values.schema.json", lambda text: schema(text, table)),
                         ("values.yaml", lambda text: values(text, table)), ("Chart.yaml", chart)):
        yield name, change((CHART / name).read_text())


def main(arguments):
    if arguments not in ([], ["--check"]):
        sys.exit(__doc__)
    wanted = dict(parts())
    have = {path.relative_to(CHART).as_posix(): path for path in (CHART / "files").rglob("*") if path.is_file()}
    stale = [name for name, text in wanted.items()
             if not (CHART / name).is_file() or (CHART / name).read_text() != text]
    surplus = sorted(have.keys() - wanted.keys())
    if arguments:
        for name in stale + surplus:
            print(f"packaging/helm/haulout/{name} is not up to date: run packaging/helm/make_chart.py")
        return bool(stale or surplus)
    for name in stale:
        (CHART / name).parent.mkdir(parents=True, exist_ok=True)
        (CHART / name).write_text(wanted[name])
    for name in surplus:
        have[name].unlink()
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
