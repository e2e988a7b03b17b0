"""Finds classes that are too large: more than 25 methods or 20 members are more than one idea. Reads only the text.

house_rules.py uses it. EXCEPTIONS has larger classes, each with the size that it must not exceed and the reason.
"""
import re

MOST_METHODS, MOST_MEMBERS = 25, 20

# class -> (methods, members, why)
EXCEPTIONS = {
    "Pipeline": (89, 23, "one state machine without I/O: each answer, event and question of a drain is a method"),
}

_TEXT = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|//[^\n]*|/\*.*?\*/', re.S)
_CLASS = re.compile(r"\b(class|struct)\s+((?:\w+::)*\w+)(?:\s+final)?\s*(?::[^;{()]*)?\{")
# The end of a function that is defined in its class.
_FUNCTION = re.compile(r"\)\s*(const|noexcept|override|final|->[\w:<>,\s*&]+|\s)*(:[^{}]*(\{\}[^{}]*)*)?\{\}$")
_NO_MEMBER = re.compile(r"(using|friend|static_assert|typedef|enum)\b|(class|struct)\s+\w+(\s+final)?(\s*:.*)?\s*(\{\})?$")


def _declarations(text):
    """Returns the declarations in the class whose body begins here. The bodies of its functions and classes are {}."""
    depth, found, current = 1, [], ""
    for c in text:
        if c == "{":
            depth += 1
            current += "{}" if depth == 2 else ""
        elif c == "}":
            depth -= 1
            if depth == 0:
                return found
            if depth == 1 and _FUNCTION.search(current):
                found.append(current)
                current = ""
        elif depth == 1 and c == ";":
            found.append(current)
            current = ""
        elif depth == 1:
            current += c
    return found


def _without_templates(text):
    while re.search(r"<[^<>]*>", text):
        text = re.sub(r"<[^<>]*>", "", text)
    return text


def sizes(text):
    """Yields (name, whether it is a class, line, methods, members) for each class and struct of a file."""
    text = _TEXT.sub(lambda m: '""' if m[0][0] in "R\"'" else "\n" * m[0].count("\n"), text)
    text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
    for found in _CLASS.finditer(text):
        methods = members = 0
        for declaration in _declarations(text[found.end():]):
            declaration = re.sub(r"\b(public|private|protected)\s*:", "", declaration).strip()
            if not declaration or _NO_MEMBER.match(declaration) or re.search(r"=\s*(delete|default)$", declaration):
                continue
            head = _without_templates(re.split(r"=(?!=)|\{", declaration)[0])
            if "(" in head:
                methods += 1
            elif not re.match(r"(static\s+)?(inline\s+)?constexpr", head):
                members += head.count(",") + 1
        yield found[2], found[1] == "class", text.count("\n", 0, found.start()) + 1, methods, members


def too_large(text):
    """Yields (line, message) for each class that is too large. A struct is data: its members do not count."""
    for name, is_class, line, methods, members in sizes(text):
        most_methods, most_members, _ = EXCEPTIONS.get(name, (MOST_METHODS, MOST_MEMBERS, ""))
        if methods > most_methods or (is_class and members > most_members):
            yield line, (f"{name} has {methods} methods and {members} members; {most_methods} and {most_members} at most: "
                         "split it by meaning")
