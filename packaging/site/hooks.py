"""Hooks of MkDocs that make a site of pages that are written for a viewer of the source tree.

Places: each file has in the site the place that it has in the tree, so that relative links work in both. Besides the pages,
the site has each picture, and each file and each directory of the tree to which a page links, as a plain page.
Markdown: pages are CommonMark, and Python-Markdown differs from that in lists and in tables.
Diagrams: Graphviz draws the state diagrams, so that no script is needed. Its program `dot` must be installed.
"""
import html
import pathlib
import posixpath
import re
import subprocess
import textwrap

from mkdocs.structure.files import File
from pymdownx.superfences import SuperFencesException

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "packaging/README.md"]
ASSETS = ["iframe-worker.js", "search-flags.js", "site.css"]
# What a page counts in the search. Pages that list everything are long, so a single word counts little there.
BOOST = {"docs/configuration.md": 4, "docs/flags.md": 4, "docs/labels.md": 4, "docs/metrics.md": 4, "docs/reasons.md": 4,
         "CHANGELOG.md": 0.2, "CONTRIBUTING.md": 0.2}
FOR_DEVELOPERS = 0.2
LABEL = 10  # characters in a line of the label of an arrow, so that diagrams stay narrow
LINE_BREAK = "\\n"  # as Graphviz writes it

SOURCE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title} – Haulout</title>
<style>
:root {{ color-scheme: light dark; font-family: system-ui, sans-serif; }}
body {{ margin: 1rem; }}
h1 {{ overflow-wrap: anywhere; }}
pre {{ overflow: auto; font-size: .85rem; }}
</style>
</head>
<body>
<p><a href="{home}">Haulout</a></p>
<main>
<h1>{title}</h1>
{body}
</main>
</body>
</html>
"""


def on_config(config):
    fences = config.mdx_configs.setdefault("pymdownx.superfences", {})
    fences["custom_fences"] = [{"name": "mermaid", "class": "states", "format": drawn}]
    config.theme.static_templates.clear()  # 404.html and sitemap.xml, which need to know the address of the site


def on_files(files, config):
    for file in list(files.documentation_pages()) + list(files.media_files()):
        if file.src_dir == config.docs_dir:
            files.remove(file)
    for name in ASSETS:
        files.append(File.generated(config, "assets/" + name, content=(HERE / name).read_text(encoding="utf-8")))
    ahead = PAGES + sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/**/*.md"))
    for path in ahead:  # grows while it is read
        if files.get_file_from_path(path):
            continue
        if path.endswith(".md"):
            files.append(File(path, str(ROOT), config.site_dir, use_directory_urls=False))
            ahead += linked(path)
        elif path.endswith(".svg"):
            files.append(File(path, str(ROOT), config.site_dir, use_directory_urls=False))
        elif (ROOT / path).is_dir():
            files.append(plain_page(config, path, path + "/files.html", listing(path)))
            ahead += children(path)
        else:
            text = (ROOT / path).read_text(encoding="utf-8")
            files.append(plain_page(config, path, path + ".html", f'<pre tabindex="0">{html.escape(text)}</pre>'))
    return files


def linked(page):
    """Returns what a page links to in the tree. What does not exist is left to the checks of MkDocs."""
    targets = re.findall(r"\]\(([^)\s#:]+)(?:#[^)\s]*)?\)", (ROOT / page).read_text(encoding="utf-8"))
    paths = {posixpath.normpath(posixpath.join(posixpath.dirname(page), target)) for target in targets}
    return sorted(path for path in paths if not path.startswith("..") and (ROOT / path).exists())


def children(directory):
    names = (path.relative_to(ROOT).as_posix() for path in (ROOT / directory).iterdir())
    return sorted(name for name in names if not re.search(r"/(\.[^/]*|__pycache__)$", name))


def listing(directory):
    """Returns links to what is in a directory. A page is shown with its title, too."""
    rows = []
    for path in children(directory):
        name = posixpath.basename(path)
        target, shown = name + ".html", html.escape(name)
        if path.endswith(".md"):
            target = "index.html" if name == "README.md" else name.removesuffix(".md") + ".html"
            title = re.search(r"^# (.+)$", (ROOT / path).read_text(encoding="utf-8"), re.M)
            shown += ": " + html.escape(title.group(1).replace("`", "")) if title else ""
        elif (ROOT / path).is_dir():
            target, shown = name + "/files.html", shown + "/"
        rows.append(f'<li><a href="{target}">{shown}</a></li>')
    return "<ul>\n" + "\n".join(rows) + "\n</ul>"


def plain_page(config, path, place, body):
    home = posixpath.relpath("index.html", posixpath.dirname(place))
    page = File.generated(config, path, content=SOURCE.format(title=html.escape(path), home=home, body=body))
    page.dest_uri = place
    return page


def on_page_markdown(markdown, page, **_):
    usual = FOR_DEVELOPERS if "*For developers" in markdown[:200] else 1
    page.meta["search"] = {"boost": BOOST.get(page.file.src_uri, usual)}
    return "\n".join(python_markdown(markdown.splitlines()))


def python_markdown(lines):
    """Yields the lines with the differences that Python-Markdown needs: what belongs to an item of a list is indented by
    four columns; an item with several parts is followed by an empty line; and a bar in code in a table has no
    backslash."""
    fenced, indent, parts = False, 0, False  # indent: of the text of the item of a list in which the line is
    before = ""
    for line in lines:
        if line.startswith("```"):
            fenced = not fenced
        item = re.match(r"(?:[-*]|\d+\.) +(?=\S)", line)
        if fenced:
            indent = 0
        elif item:
            if parts and before:
                yield ""
            indent, parts = item.end(), False
        elif indent and line.startswith(" " * indent):
            parts = parts or not before
            line = " " * (4 - indent) + line
        elif line and not line.startswith(" "):
            indent, parts = 0, False
        if line.lstrip().startswith("|"):
            line = re.sub(r"`[^`]*`", lambda code: code.group().replace("\\|", "|"), line)
        before = line
        yield line


def on_page_content(content, **_):
    """A table is as wide as its number of columns asks for, and scrolls if the window is narrower, also by keyboard. The
    name of an option stands in one line."""
    def table(found):
        columns = found.group(0).split("</tr>", 1)[0].count("<th")
        return (f'<div class="wide" style="--columns: {columns}" role="region" aria-label="Table" tabindex="0">'
                f"{found.group(0)}</div>")
    content = re.sub(r"<table>.*?</table>", table, content, flags=re.S)
    return re.sub(r"<code>(?=[^<\s]{1,30}</code>)", '<code class="whole">', content)


def on_post_page(output, **_):
    """The theme's search is a dialog without a name."""
    dialog = 'data-md-component="search" role="dialog"'
    return output.replace(dialog, dialog + ' aria-label="Search"')


def drawn(source, language, css_class, options, md, **_):
    """Returns a state diagram of Mermaid's notation as SVG. Knows only the notation that the pages use."""
    graph = ['digraph { nodesep=0.15; ranksep=0.25',
             'node [shape=box, style=rounded, fontname="sans-serif", fontsize=12, height=0.3, margin="0.08,0.04"]',
             'edge [fontname="sans-serif", fontsize=11, arrowsize=0.7]']
    lines = source.strip().splitlines()
    if lines[0] != "stateDiagram-v2":
        raise SuperFencesException(f"{HERE.name}/hooks.py draws only stateDiagram-v2, and not {lines[0]}")
    spoken = []
    for line in lines[1:]:
        arrow = re.fullmatch(r" +(\w+|\[\*\]) --> (\w+)(?:: ([^\"\\]+))?", line)
        if not arrow:
            raise SuperFencesException(f"{HERE.name}/hooks.py cannot draw this line of a diagram: {line}")
        begin, end, label = arrow.groups()
        if begin == "[*]":
            begin = "start"
            graph.append("start [shape=point, height=0.1]")
        lines_of_label = textwrap.wrap(label or "", LABEL, break_long_words=False)
        graph.append(f'"{begin}" -> "{end}" [label="{LINE_BREAK.join(lines_of_label)}"]')
        spoken.append(f"{begin} to {end}" + (f": {label}" if label else ""))
    try:
        run = subprocess.run(["dot", "-Tsvg"], input="\n".join([*graph, "}"]), capture_output=True, text=True, check=True)
    except FileNotFoundError as error:
        raise SuperFencesException("the diagrams need the program dot (Debian's package graphviz)") from error
    svg = re.sub(r' id="[^"]*"|<!--.*?-->|<title>.*?</title>', "", run.stdout[run.stdout.index("<svg"):], flags=re.S)
    name = html.escape("State diagram. " + "; ".join(spoken), quote=True)
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{name}" ', 1)
    return f'<div class="{css_class}" role="region" aria-label="State diagram" tabindex="0">{svg}</div>'
