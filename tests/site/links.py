"""Reads the HTML files of a site, and tells which links lead nowhere and what is loaded from elsewhere."""
import html.parser
import pathlib
import posixpath
import re
import urllib.parse

# The attributes by which an element loads something. A link of <a> is followed only by a person.
LOADS = {"audio": ["src"], "embed": ["src"], "iframe": ["src"], "img": ["src", "srcset"], "input": ["src"], "link": ["href"],
         "object": ["data"], "script": ["src"], "source": ["src", "srcset"], "track": ["src"], "video": ["src", "poster"],
         "image": ["href", "xlink:href"], "use": ["href", "xlink:href"]}
FOREIGN = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//|[a-z][a-z0-9+.-]*:(?!//)", re.I)
OF_STYLE = re.compile(r"""url\(\s*['"]?([^'")]+)|@import\s+['"]([^'"]+)""", re.I)
CODE = ("code", "pre", "script", "style", "svg", "title")


class Page(html.parser.HTMLParser):
    """What a page refers to. `links`: the targets of <a>. `loads`: what the browser fetches by itself. `text`: the text
    of the article outside code."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.loads, self.text = set(), [], [], []
        self.inside = []  # the open elements that are of interest
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values and (name == "id" or tag == "a")}
        if tag in ("a", "area") and "href" in values:
            self.links.append(values["href"])
        if tag != "link" or values.get("rel") not in ("next", "prev", "canonical", "edit"):
            for name in LOADS.get(tag, []):
                self.loads += [part.split()[0] for part in values.get(name, "").split(", ") if part.strip()]
        self.loads += of_style(values.get("style", ""))
        if tag in CODE or tag == "article":
            self.inside.append(tag)

    def handle_endtag(self, tag):
        if self.inside and self.inside[-1] == tag:
            self.inside.pop()

    def handle_data(self, data):
        if self.inside[-1:] == ["style"]:
            self.loads += of_style(data)
        elif self.inside[-1:] == ["article"]:
            self.text.append(data)


def of_style(text):
    return [first or second for first, second in OF_STYLE.findall(text)]


class Site:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.pages = {path.relative_to(self.folder).as_posix(): Page(path.read_text(encoding="utf-8"))
                      for path in sorted(self.folder.rglob("*.html"))}

    def broken(self):
        """Returns 'page: target' for each link, and for each thing that is loaded, that does not exist in the site."""
        return [f"{name}: {target}" for name, page in self.pages.items() for target in page.links + page.loads
                if not FOREIGN.match(target) and not self.exists(name, target)]

    def exists(self, page, target):
        path, _, anchor = target.partition("#")
        path = urllib.parse.unquote(path.partition("?")[0])
        place = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
        if place.startswith("..") or path.startswith("/") or not (self.folder / place).is_file():
            return False
        anchor = urllib.parse.unquote(anchor)
        return not anchor or place in self.pages and anchor in self.pages[place].anchors

    def foreign(self):
        """Returns 'file: target' for whatever a page or a style sheet loads from elsewhere. data: is in the file itself."""
        loads = [(name, target) for name, page in self.pages.items() for target in page.loads]
        for path in sorted(self.folder.rglob("*.css")):
            name = path.relative_to(self.folder).as_posix()
            loads += [(name, target) for target in of_style(path.read_text(encoding="utf-8"))]
        return [f"{name}: {target}" for name, target in loads if FOREIGN.match(target) and not target.startswith("data:")]
