#!/usr/bin/env python3
"""Writes the man pages, from what the program says about itself.

  make_man.py                     writes them
  make_man.py --check             changes nothing; prints a line for each page that is not up to date; exit code 1 if any
  make_man.py --check PROGRAM     also compares with what `PROGRAM COMMAND --help` prints

  haulout.1                       from haulout.1.in, with the list of commands and the flags that all commands have
  haulout-COMMAND.1               what a command does, its flags, examples and exit codes
  haulout-agent.8                 the same for the agent, which is a service
  haulout-as-service.8            from haulout-as-service.8.in

What a command does and its examples come from cli/options/help.cpp, its flags from docs/flags.md, the options of the agent
from docs/configuration.md. Tests of the program keep both of these pages equal to the tables of options. So no program has
to be built for this. COMMAND.in, if it exists, has sections that are written by hand. Version and date are those of
packaging/debian/changelog.
"""
import ast
import email.utils
import pathlib
import re
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "packaging/man"
HELP = "cli/options/help.cpp"
LITERAL = r'"(?:[^"\\\n]|\\.)*"'
CONNECTION = "Connection and logging, for every command that connects"
SECTIONS = {"agent": 8}  # the sections of manuals; all other commands are in section 1
MANUALS = {1: "User Commands", 8: "System Administration"}
# Commands that belong together and have their pages under SEE ALSO.
RELATED = {
    "drain": ["cordon", "uncordon", "retire", "release", "rehearse"], "cordon": ["uncordon", "drain"],
    "uncordon": ["cordon", "drain"], "retire": ["drain"], "status": ["explain", "agent"], "explain": ["status", "agent"],
    "pause": ["resume", "agent"], "resume": ["pause", "agent"], "request-reboot": ["status", "agent"],
    "release": ["drain", "agent"], "rehearse": ["drain", "audit", "agent"], "audit": ["rehearse", "drain", "agent"], "migrate": ["agent", "rehearse"],
    "agent": ["drain", "status", "explain", "pause", "request-reboot"], "fleetlock-serve": ["agent", "status"], "completion": [], "version": [],
}


class Unreadable(Exception):
    """A source does not look as expected."""


# ---- What the sources say

def expected(pattern, code, what):
    """Returns the match of something that help.cpp must have."""
    found = re.search(pattern, code, re.M | re.S)
    if not found:
        raise Unreadable(f"{HELP}: no {what}")
    return found


def literals(text):
    """Joins the string literals of C++ in a text."""
    return "".join(ast.literal_eval(literal) for literal in re.findall(LITERAL, text))


def formatted(code, command):
    """Evaluates the first call of fmt::format in the code of a function of help.cpp. Only the arguments that stand there
    today are understood."""
    call = expected(rf"fmt::format\(\s*((?:{LITERAL}\s*)+),\s*((?:{LITERAL}|[^;\"])*?)\);", code,
                    f'fmt::format("…", …) in the text of {command}')
    argument = rf'(program)|(to_string\(command\))|on \? ({LITERAL})\s*: ({LITERAL})'
    values = []
    for found in re.finditer(argument, call[2]):
        program, name, yes, no = found.groups()
        values.append("haulout" if program else command if name else literals(yes if command == "cordon" else no))
    if re.sub(argument, "", call[2]).replace(",", "").strip():
        raise Unreadable(f"{HELP}: unknown argument in the text of {command}: {call[2]}")
    return literals(call[1]).format(*values)


def summaries(code):
    """Returns command -> summary, in the order of `haulout help`."""
    rows = re.findall(rf"\{{Command::\w+, ({LITERAL}),\s*({LITERAL})\}}", code)
    if not rows:
        raise Unreadable(f"{HELP}: no rows {{Command::…, \"…\", \"…\"}}")
    return {literals(name): literals(summary) for name, summary in rows}


def heads(code):
    """Returns command -> what its help says above the flags."""
    functions = dict(re.findall(r"^std::string (\w+_text)\(std::string_view program[^)]*\) \{\n(.*?)^\}", code, re.M | re.S))
    exit_codes = literals(expected(r"people_exit_codes =\s*(.*?);\n", code, "people_exit_codes")[1])
    people = expected(r"^std::string people_text_of\(.*?^\}", code, "function people_text_of")[0]
    result = {}
    cases = re.findall(r"((?:case Command::\w+:\s*)+)return (\w+_text)\(program", code)
    cases += re.findall(r"(\*command == Command::\w+\))\s+return (\w+_text)\(program", code)
    for names, function in cases:
        for name in re.findall(r"Command::(\w+)", names):
            command = name.replace("_", "-")
            if function not in functions:
                raise Unreadable(f"{HELP}: no function {function}(std::string_view program…)")
            tail = exit_codes if f"return {function}(" in people else ""
            result[command] = formatted(functions[function], command) + tail
    if missing := summaries(code).keys() ^ result.keys():
        raise Unreadable(f"{HELP}: no text, or no row, for {', '.join(sorted(missing))}")
    return result


def tables(page):
    """Yields (heading, rows) of each section with a table of flags; a row is a dictionary by the heads of the columns."""
    for section in page.split("\n## ")[1:]:
        heading, _, text = section.partition("\n")
        lines = [line for line in text.splitlines() if line.startswith("|")]
        if not lines:
            continue
        split = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
        yield heading, [dict(zip(split[0], [re.sub(r"\\([|<])", r"\1", cell) for cell in row])) for row in split[2:]]


class Head:
    """The parts of a help text above the flags."""

    def __init__(self, text):
        parts = re.split(r"^(Usage|Examples|Exit codes):\n", text, flags=re.M)
        named = dict(zip(parts[1::2], parts[2::2]))
        self.description = [" ".join(part.split()) for part in parts[0].strip().split("\n\n")]
        self.usage = [line.strip() for line in named["Usage"].strip().splitlines()]
        self.examples = textwrap.dedent(named.get("Examples", "")).strip("\n")
        # "0 drained   1 not drained": three blanks between codes; what does not begin with a number is a remark.
        items = [item for item in re.split(r" {3,}|\n *", named.get("Exit codes", "").strip()) if item]
        codes = [re.fullmatch(r"(\d+(?:, \d+)*) (.*)", item) for item in items]
        self.exit_codes = [(code[1], code[2]) for code in codes if code]
        self.remarks = [item for item, code in zip(items, codes) if not code]


def edition(changelog):
    """Returns (version, date) of the newest entry of a Debian changelog."""
    version = re.match(r"haulout \((\S+)\)", changelog)[1]
    return version, email.utils.parsedate_to_datetime(re.search(r"^ -- .*>  (.*)$", changelog, re.M)[1]).strftime("%Y-%m-%d")


# ---- roff

def escaped(text):
    """Returns the text as roff shows it unchanged; every hyphen can be copied into a shell."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("^", "\\(ha").replace("~", "\\(ti")
    text = text.replace("'", "\\(aq")
    return "".join(c if ord(c) < 128 else f"\\[u{ord(c):04X}]" for c in text)


def prose(text):
    """Returns lines of running text. What is between backticks, and flags, are bold. A link becomes the name of its page."""
    text, result = re.sub(r"\[[^\]]*\]\(([\w-]+\.md)[^)]*\)", r"docs/\1", text), ""
    for part in re.split(r"(`[^`]+`|(?<![\w-])--[a-z][a-z-]*[a-z])", text):
        code = part.startswith(("`", "--"))
        result += f"\\fB{escaped(part.strip('`'))}\\fR" if code else escaped(part)
    lines = textwrap.wrap(result, 110, break_long_words=False, break_on_hyphens=False)
    return [f"\\&{line}" if line.startswith(".") else line for line in lines]


def paragraphs(texts):
    lines = []
    for text in texts:
        lines += [".PP", *prose(text)]
    return lines[1:]  # a section begins with a paragraph


def literal_block(text):
    lines = [f"\\&{escaped(line)}" if line.startswith(".") else escaped(line) for line in text.splitlines()]
    return [".nf", *lines, ".fi"]


def synopsis(usage):
    """Returns a usage line: what a user types as it is in bold, names of values in italics."""
    words = []
    for word in re.split(r"([\[\]|. ])", usage):
        value = re.fullmatch(r"[A-Z]+|flags", word)
        words.append(f"\\fI{word}\\fR" if value else f"\\fB{escaped(word)}\\fR" if re.match(r"[\w-]", word) else word)
    return "".join(words)


def option(row):
    """Returns the lines of an option: its names, its default, its meaning."""
    names = ", ".join(f"\\fB{escaped(name.strip('` '))}\\fR" for name in (row.get("flag") or row["option"]).split(","))
    default = escaped(row["default"].strip("`")).replace(",", ",\\:").replace("=", "=\\:")  # a long one may be broken there
    value = f"=\\fI{default}\\fR" if default else ""
    kind = [f"Value: {row['value']}."] if row.get("value") else []
    return [".TP", names + value, *prose(" ".join([row["meaning"], *kind]))]


def options(rows):
    """Returns the lines of options. Those that have no effect are in one list at the end."""
    without = [row for row in rows if row["meaning"].startswith("Accepted for compatibility with kubectl")]
    lines = [line for row in rows if row not in without for line in option(row)]
    if without:
        lines += [".PP", *prose(" ".join(["Accepted for compatibility with kubectl, without effect:",
                                          ", ".join(row["flag"] for row in without) + "."]))]
    return lines


def name_of(command):
    return f"haulout-{command}"


def reference(command):
    return f"\\fB{escaped(name_of(command))}\\fR({SECTIONS.get(command, 1)})"


def see_also(command):
    pages = [r"\fBhaulout\fR(1)", *map(reference, RELATED[command])]
    if command in ("drain", "cordon", "uncordon"):
        pages.append(r"\fBkubectl\fR(1)")
    if command == "agent":
        pages += [r"\fBhaulout\-as\-service\fR(8)", r"\fBsystemctl\fR(1)"]
    return [".SH SEE ALSO", *[page + "," for page in pages[:-1]], pages[-1]]


def title(name, section, of_edition):
    """Returns the first lines of a page. Lines are neither stretched nor broken within names, which people search and copy."""
    version, date = of_edition
    return [f'.TH "{escaped(name).upper()}" {section} "{date}" "Haulout {version}" "{MANUALS[section]}"', ".ad l", ".nh"]


def page_of_command(command, summary, head, flags, own, of_edition):
    """Returns the text of a page. flags: (heading, rows) of each group; own: the sections that are written by hand."""
    lines = [*title(name_of(command), SECTIONS.get(command, 1), of_edition), ".SH NAME",
             f"{escaped(name_of(command))} \\- {escaped(summary[0].lower() + summary[1:])}", ".SH SYNOPSIS"]
    for number, usage in enumerate(head.usage):
        lines += [".br"] * (number > 0) + [synopsis(usage)]
    lines += [".SH DESCRIPTION", *paragraphs(head.description)]
    if flags:
        lines += [".SH OPTIONS", *prose("The value after = is the default.")]
        for heading, rows in flags:
            lines += ([f".SS {escaped(heading)}"] if len(flags) > 1 else []) + options(rows)
    if command not in ("agent", "completion", "version"):
        lines += [".PP", "The options for the connection and for logging are in", r"\fBhaulout\fR(1)."]
    if head.examples:
        lines += [".SH EXAMPLES", *literal_block(head.examples)]
    lines += own.rstrip("\n").splitlines()
    lines.append(".SH EXIT STATUS")
    for code, meaning in head.exit_codes:
        lines += [".TP", code, *prose(meaning[0].upper() + meaning[1:] + ".")]
    for remark in head.remarks:
        lines += [".PP", *prose(remark[0].upper() + remark[1:] + ".")]
    if not head.exit_codes:
        lines += ["See", r"\fBhaulout\fR(1)."]
    return "\n".join([*lines, *see_also(command)]) + "\n"


def page_of_program(template, rows, connection, of_edition):
    """Fills in haulout.1.in."""
    commands = [line for command, summary in rows.items() for line in (".TP", reference(command), *prose(summary + "."))]
    pages = [*map(reference, rows)]
    parts = {"@TITLE@": title("haulout", 1, of_edition), "@COMMANDS@": commands, "@CONNECTION@": options(connection),
             "@PAGES@": [page + "," for page in pages]}
    for mark, lines in parts.items():
        if mark not in template:
            raise Unreadable(f"packaging/man/haulout.1.in: {mark} is missing")
        template = template.replace(mark, "\n".join(lines))
    return template


# ---- The pages

def flags_of(command, flags, configuration):
    return configuration if command == "agent" else [(command, flags[command])] if command in flags else []


def pages():
    """Returns file name -> text of every page."""
    code = (ROOT / HELP).read_text()
    flags = dict(tables((ROOT / "docs/flags.md").read_text()))
    configuration = list(tables((ROOT / "docs/configuration.md").read_text()))
    rows, texts = summaries(code), heads(code)
    newest = edition((ROOT / "packaging/debian/changelog").read_text())
    result = {"haulout.1": page_of_program((HERE / "haulout.1.in").read_text(), rows, flags[CONNECTION], newest)}
    service = "haulout-as-service"
    head = "\n".join(title(service, 8, newest))
    result[f"{service}.8"] = (HERE / f"{service}.8.in").read_text().replace("@TITLE@", head)
    for command, summary in rows.items():
        own = HERE / f"{command}.in"
        result[f"{name_of(command)}.{SECTIONS.get(command, 1)}"] = page_of_command(
            command, summary, Head(texts[command]), flags_of(command, flags, configuration),
            own.read_text() if own.is_file() else "", newest)
    return result


def differences(program):
    """Yields what `PROGRAM COMMAND --help` says differently from the sources of the pages."""
    code = (ROOT / HELP).read_text()
    flags = dict(tables((ROOT / "docs/flags.md").read_text()))
    configuration = list(tables((ROOT / "docs/configuration.md").read_text()))
    for command, text in heads(code).items():
        printed = subprocess.run([program, command, "--help"], check=True, capture_output=True, text=True).stdout
        if not printed.startswith(text):
            yield f"{program} {command} --help does not begin as {HELP} says"
        groups = flags_of(command, flags, configuration)
        groups = groups + ([(CONNECTION, flags[CONNECTION])] if len(groups) == 1 and command != "version" else [])
        known = {name for _, rows in groups for row in rows for name in re.findall(r"--[a-z-]+", row.get("flag") or row["option"])}
        shown = set(re.findall(r"^    (?:-\w, )?(--[a-z-]+)", printed[len(text):], re.M))
        shown |= set(re.findall(r"--[a-z-]+", printed.partition("without effect:\n")[2]))
        for name in sorted(known ^ shown):
            yield f"{program} {command} --help and docs/ do not both have {name}"


def main(arguments):
    check = arguments[:1] == ["--check"]
    if not check and arguments or len(arguments) > 2:
        sys.exit(__doc__)
    try:
        wanted = pages()
        problems = list(differences(arguments[1])) if len(arguments) == 2 else []
    except Unreadable as problem:
        sys.exit(f"make_man.py: {problem}")
    have = {path.name for path in HERE.iterdir() if re.search(r"\.[0-9]$", path.name)}
    stale = [name for name, text in wanted.items() if name not in have or (HERE / name).read_text() != text]
    surplus = sorted(have - wanted.keys())
    if check:
        problems += [f"packaging/man/{name} is not up to date: run packaging/man/make_man.py" for name in stale + surplus]
        print("\n".join(problems) or "man pages: OK")
        return bool(problems)
    for name in stale:
        (HERE / name).write_text(wanted[name])
    for name in surplus:
        (HERE / name).unlink()
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
