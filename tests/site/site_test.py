#!/usr/bin/env python3
"""Tests the site of the pages in docs/: its files, and in a headless Chromium what a person does with them.

  site_test.py SITE AXE     the folder of the built site, and the file axe.min.js of axe-core

Needs Debian's package chromium; no network, no port. With HAULOUT_PICTURES=DIRECTORY it also writes pictures of pages.
"""
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(pathlib.Path(__file__).parent), str(ROOT / "tests/audit_page")]
from browser import Browser  # noqa: E402
from links import Page, Site  # noqa: E402

WIDE, NARROW = 1280, 390
LOOKED_AT = ["index.html", "docs/labels.html", "docs/states.html"]
# The window has a mouse. The theme lets code that scrolls be reached by keyboard only where something can hover.
A_MOUSE = "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4"
LEAST_PAGES = 56  # those of docs/ and five more
# What Markdown looks like if it was not understood.
MARKUP = [r"\*\*", r"\]\(", r"``", r"^\s*\|", r"\|\s*$", r"^\s*[-*] ", r"^\s*#+ "]


def pages_of(site):
    """Returns the pages that are made of Markdown: those with an article."""
    return {name: page for name, page in site.pages.items() if page.text}


class Files(unittest.TestCase):
    maxDiff = None

    def test_each_link_leads_somewhere(self):
        self.assertEqual([], SITE.broken())

    def test_nothing_is_loaded_from_elsewhere(self):
        self.assertEqual([], SITE.foreign())

    def test_each_page_is_there(self):
        for page in ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "packaging/README.md",
                     *(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/**/*.md"))]:
            place = re.sub(r"README\.html$", "index.html", page.removesuffix(".md") + ".html")
            self.assertIn(place, pages_of(SITE))
        self.assertGreaterEqual(len(pages_of(SITE)), LEAST_PAGES)

    def test_no_markup_is_left_in_the_text(self):
        found = [f"{name}: {text.strip()[:80]}" for name, page in pages_of(SITE).items() for text in page.text
                 if any(re.search(markup, text, re.M) for markup in MARKUP)]
        self.assertEqual([], found)


class Checks(unittest.TestCase):
    """The checks of the files notice what they are for."""

    def site(self, files):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name, text in files.items():
            path = pathlib.Path(folder.name, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return Site(folder.name)

    def test_dead_links_are_noticed(self):
        site = self.site({
            "a.html": "<a href='b/c.html#there'></a><a href='b/c.html#gone'></a><a href='gone.html'></a><a href='#here'></a>"
                      "<a href='/a.html'></a><a href='../a.html'></a><a href='b'></a><a href='https://example.com/'></a>"
                      "<a href='d%20e.txt'></a><img src=gone.png>",
            "b/c.html": "<h2 id=there></h2><a href='../a.html'></a><a href='?x#there'></a>", "d e.txt": ""})
        self.assertEqual(["b/c.html#gone", "gone.html", "#here", "/a.html", "../a.html", "b", "gone.png"],
                         [one.removeprefix("a.html: ") for one in site.broken()])

    def test_what_is_loaded_from_elsewhere_is_noticed(self):
        site = self.site({
            "a.html": "<img src=https://x.example/1><script src=//x.example/2></script><link rel=stylesheet href=HTTP://x.example/3>"
                      "<style>p { background: url('https://x.example/4') }</style><i style='background:url(//x.example/5)'></i>"
                      "<img srcset='a.png 1x, https://x.example/6 2x'><a href=https://example.com/></a><img src='data:,x'>",
            "a.css": "@import 'https://x.example/7'; @font-face { src: url(https://x.example/8) } p { background: url(a.png) }"})
        self.assertEqual(list("12345678"), sorted(one[-1] for one in site.foreign()))

    def test_markup_is_noticed_outside_code_only(self):
        for text, wanted in (("<p>**bold**</p>", True), ("<p>| a | b |</p>", True), ("<p>see [this](that)</p>", True),
                             ("<p>one\n- two</p>", True), ("<p><code>**</code> is bold</p>", False), ("<pre>| a |</pre>", False)):
            page = Page(f"<article>{text}</article>")
            self.assertEqual(wanted, any(re.search(one, part, re.M) for one in MARKUP for part in page.text), text)


class InTheBrowser(unittest.TestCase):
    """What a person does with the site, from files. No page may write to the console or ask another host for anything."""

    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.browser = Browser(more=[A_MOUSE])
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.browser.size(WIDE)
        self.browser.media("light")

    def open(self, page):
        self.browser.open((SITE.folder.resolve() / page).as_uri())

    def tearDown(self):
        self.browser.settle()
        self.check_manners()

    def check_manners(self):
        self.assertEqual([], self.browser.complaints)
        self.assertEqual([], [url for url in self.browser.requests if not url.startswith(("file:", "data:"))])

    def js(self, expression):
        return self.browser.js(expression)

    def background(self):
        return self.js("getComputedStyle(document.body).backgroundColor")

    def look(self, page, scheme, width):
        """Opens a page in one of its looks."""
        self.browser.size(width)
        self.browser.media(scheme)
        self.open(page)

    def search(self, words):
        """Types into the search box. The theme looks at it when a key is released."""
        self.js("document.querySelector('.md-search__input').focus()")
        self.js("document.querySelector('.md-search__input').select()")
        self.browser.type(words)
        self.browser.press("End")

    def test_search_finds_pages(self):
        self.open("docs/states.html")
        for words, found in (("RebootLoop", "docs/reasons.html"), ("haulout.dev/record", "docs/labels.html"),
                             ("--max-unavailable", "docs/configuration.html")):
            with self.subTest(words):
                self.search(words)
                self.browser.until("[...document.querySelectorAll('.md-search-result__link')]"
                                   f".some(one => one.href.includes({json.dumps(found)}))")

    def test_a_found_page_opens(self):
        self.open("index.html")
        self.search("glossary")
        link = "document.querySelector('.md-search-result__link')"
        self.browser.until(f"{link} !== null")
        wanted = self.js(f"{link}.href.split(/[?#]/)[0]")
        self.browser.follow(f"{link}.click()")
        self.assertTrue(self.js(f"location.href.startsWith({json.dumps(wanted)})"))
        self.assertIn("glossary", self.js("document.querySelector('article').textContent.toLowerCase()"))

    def test_dark_mode_follows_the_system(self):
        self.open("index.html")
        light = self.background()
        self.browser.media("dark")
        self.browser.until("document.body.dataset.mdColorScheme === 'slate'")
        self.assertNotEqual(light, self.background())

    def test_dark_mode_switches_and_stays(self):
        self.open("index.html")
        light = self.background()
        try:
            for _ in range(2):  # from that of the system to light, and then to dark
                self.js("[...document.querySelectorAll('.md-header__button[for^=__palette]')]"
                        ".find(one => one.checkVisibility()).click()")
                self.browser.settle()
            dark = self.background()
            self.assertNotEqual(light, dark)
            self.open("docs/states.html")
            self.assertEqual(dark, self.background())
        finally:
            self.js("localStorage.clear()")

    def test_no_page_is_wider_than_a_narrow_window(self):
        wide = []
        for name in pages_of(SITE):
            self.look(name, "light", NARROW)
            if self.js("document.documentElement.scrollWidth") > NARROW:
                wide.append(name)
            self.check_manners()
        self.assertEqual([], wide)

    def test_wide_tables_scroll(self):
        self.look("docs/comparison.html", "light", NARROW)
        self.assertTrue(self.js("[...document.querySelectorAll('.wide')].some(one => { one.scrollLeft = 50;"
                                " return one.scrollWidth > one.clientWidth && one.scrollLeft === 50; })"))

    def test_diagrams_are_drawn(self):
        self.open("docs/states.html")
        text = (ROOT / "docs/states.md").read_text(encoding="utf-8")
        states = {name for edge in re.findall(r"^    (\w+) --> (\w+): ", text, re.M) for name in edge}
        drawn = self.js("[...document.querySelectorAll('.states svg text')].map(one => one.textContent)")
        self.assertEqual(12, len(states))
        self.assertEqual(set(), states - set(drawn))
        self.assertEqual(text.count(" --> "), self.js("document.querySelectorAll('.states svg .edge').length"))

    def test_pictures_are_shown(self):
        self.open("index.html")
        pictures = len(re.findall(r"^!\[", (ROOT / "README.md").read_text(encoding="utf-8"), re.M))
        self.assertGreaterEqual(pictures, 2)
        widths = self.js("[...document.querySelectorAll('article img')].map(one => one.complete && one.naturalWidth)")
        self.assertEqual([], [width for width in widths if not width])
        self.assertEqual(pictures, len(widths))

    def test_lists_and_tables_are_as_written(self):
        cases = [("docs/examples/index.html", "li pre", "haulout agent --check"), ("docs/cli.html", "li table", "default of retire"),
                 ("docs/commands.html", "td code", "haulout completion bash|zsh|fish"), ("docs/hooks.html", "li table", "variable")]
        for page, selector, wanted in cases:
            with self.subTest(page):
                self.open(page)
                found = self.js(f"[...document.querySelectorAll('article {selector}')].map(one => one.textContent)")
                self.assertTrue(any(wanted in " ".join(one.split()) for one in found), found)

    def test_axe_finds_nothing_serious(self):
        axe = AXE.read_text(encoding="utf-8")
        for page in LOOKED_AT:
            for scheme, width in (("light", WIDE), ("dark", NARROW)):
                with self.subTest(page=page, scheme=scheme, width=width):
                    self.look(page, scheme, width)
                    self.js(axe + "; undefined")
                    result = self.js("axe.run(document, { preload: false }).then(found => ({ passes: found.passes.length,"
                                     " violations: found.violations.map(one => [one.impact, one.id, one.nodes.length,"
                                     " one.nodes[0].html.slice(0, 200), one.nodes[0].failureSummary]) }))")
                    self.assertGreater(result["passes"], 20)
                    self.assertEqual([], [one for one in result["violations"] if one[0] in ("serious", "critical")])

    def test_axe_notices_what_it_is_for(self):
        self.open("index.html")
        self.js(AXE.read_text(encoding="utf-8") + "; undefined")
        self.js("document.querySelector('article').append(Object.assign(document.createElement('p'),"
                " { textContent: 'pale', style: 'color: #ccc; background: #fff' }))")
        found = self.js("axe.run(document, { preload: false }).then(found => found.violations.map(one => one.id))")
        self.assertIn("color-contrast", found)

    def test_pictures(self):
        folder = os.environ.get("HAULOUT_PICTURES")
        if not folder:
            self.skipTest("HAULOUT_PICTURES names no folder")
        pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
        for page in LOOKED_AT:
            for scheme in ("light", "dark"):
                for width in (WIDE, NARROW):
                    self.look(page, scheme, width)
                    name = f"{pathlib.PurePath(page).stem}-{scheme}-{width}.png"
                    pathlib.Path(folder, name).write_bytes(self.browser.picture())


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    if not shutil.which("chromium"):
        raise SystemExit("this test needs chromium: apt-get install chromium")
    SITE, AXE = Site(sys.argv[1]), pathlib.Path(sys.argv[2])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
