"""Finds single changes that break C++: a condition, a comparison, a constant, a call or a statement. No I/O.

Works on the tokens of one line at a time. Never changes comments, string and character literals, preprocessor lines,
declarations of types, and code that words a message.
"""
import collections
import re

# `line` counts from 0; `what` describes the change for people.
Break = collections.namedtuple("Break", "line what before after")

SWAPS = {" == ": " != ", " != ": " == ", " < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " && ": " || ",
         " || ": " && ", " + ": " - ", " - ": " + ", " += ": " -= ", " -= ": " += "}
WORDS = {"true": "false", "false": "true", "std::min": "std::max", "std::max": "std::min"}
# Lines that build text for people, and lines that only the compiler reads, are skipped.
SKIPPED = re.compile(r"\b(fmt|message|what|text|printable|describe|told|said|static_assert|template|typename|operator|"
                     r"using|namespace|case|noexcept|requires|concept|friend|reserve|default)\b|->\s*decltype|^\s*[#}]")
STATEMENT = re.compile(r"^\s{2,}(?!return\b|co_return\b|if\b|else\b|for\b|while\b|switch\b|throw\b|const\b|auto\b|static\b|"
                       r"constexpr\b|delete\b|CO_TRY\b|CO_CHECK\b|std::abort\b|std::exit\b)"
                       r"(?:(?:\(void\)|co_await )?[\w:.>-]+(?:\[[^\]]*\])?(?:\(.*\)|\+\+|--| [-+|&]?= .*)|(?:\+\+|--)[\w:.>-]+);$")
LEAVES = re.compile(r"^(\s{2,}(?:if \(.*\) |else )?)(continue|break|return|co_return);$")


def masked(text):
    """Returns the text with a blank for each character of a comment, and ~ for each character of a literal."""
    out, place = [], 0
    pattern = re.compile(r"//[^\n]*|/\*.*?\*/|R\"(\w*)\((?:.*?)\)\1\"|\"(?:\\.|[^\"\\\n])*\"|(?<![\w'])'(?:\\.|[^'\\\n])+'", re.S)
    for found in pattern.finditer(text):
        out.append(text[place:found.start()])
        fill = " " if found.group().startswith("/") else "~"
        out.append(re.sub(r"[^\n]", fill, found.group()))
        place = found.end()
    return "".join(out) + text[place:]


def condition_end(line, start):
    """Returns the index after the parenthesis that closes the one at `start`; None if that is on another line."""
    depth = 0
    for place in range(start, len(line)):
        depth += (line[place] == "(") - (line[place] == ")")
        if depth == 0:
            return place + 1
    return None


def replaced(line, start, end, by):
    return line[:start] + by + line[end:]


def breaks_of_line(line, mask):
    """Yields (what, broken line)."""
    for old, new in SWAPS.items():
        for found in re.finditer(re.escape(old), mask):
            yield f"{old.strip()} is {new.strip()}", replaced(line, found.start(), found.end(), new)
    for old, new in WORDS.items():
        for found in re.finditer(rf"(?<![\w:]){old}\b", mask):
            yield f"{old} is {new}", replaced(line, found.start(), found.end(), new)
    for found in re.finditer(r"(?<![\w.'])(\d+)(?![\w.'])", mask):
        other = "1" if found.group() == "0" else str(int(found.group()) + 1)
        yield f"{found.group()} is {other}", replaced(line, found.start(), found.end(), other)
    for found in re.finditer(r"(?<=[(\s])!(?=[\w(*])", mask):
        yield "a ! is gone", replaced(line, found.start(), found.end(), "")
    for found in re.finditer(r"\b(if|while) (?=\()", mask):
        end = condition_end(mask, found.end())
        if end and ";" not in mask[found.end():end]:
            yield "a condition is turned round", replaced(line, found.end(), end, f"(!{line[found.end():end]})")
    if STATEMENT.match(mask):
        yield "a statement is gone", re.match(r"\s*", line).group() + ";"
    if leaves := LEAVES.match(mask):
        yield f"a {leaves[2]} is gone", leaves[1] + ";"


def breaks(text):
    """Returns every Break of a file."""
    found = []
    lines = text.split("\n")
    for number, (line, mask) in enumerate(zip(lines, masked(text).split("\n"))):
        if not mask.strip() or SKIPPED.search(mask) or not line.startswith(" ") and "constexpr" not in mask:
            continue
        found += [Break(number, what, line, after) for what, after in breaks_of_line(line, mask) if after != line]
    return found


def broken(text, one):
    lines = text.split("\n")
    assert lines[one.line] == one.before
    lines[one.line] = one.after
    return "\n".join(lines)
