#!/usr/bin/env python3
"""Tests the page cli/audit/page.html in a headless Chromium. Needs Debian's package chromium; no network, no port.

With HAULOUT_PICTURES=DIRECTORY, test_every_look also writes a picture of each look into that directory.
"""
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import samples  # noqa: E402
from browser import Browser, Failed  # noqa: E402

WIDE, NARROW = 1280, 360
MOST_BYTES = 45 * 1024
ONE_OF_EACH = {"small": samples.small, "empty": samples.empty, "hostile": samples.hostile}

CLOSED = samples.finding("BudgetNeverOpens", "blocks", "a/b", "It is closed.")
OPEN_EVERYTHING = """(() => {
  document.getElementById('open-all').click();
  document.querySelector('#nodes button')?.click();
})()"""

POOR_CONTRAST = pathlib.Path(__file__).with_name("contrast.js").read_text(encoding="utf-8")


def setUpModule():
    if not shutil.which("chromium"):
        raise SystemExit("this test needs chromium: apt-get install chromium")
    PageTest.folder = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(PageTest.folder.cleanup)
    PageTest.browser = Browser()
    unittest.addModuleCleanup(PageTest.browser.close)


class PageTest(unittest.TestCase):
    """A test with a browser, which all tests of this file share."""

    def setUp(self):
        self.url = None
        self.browser.size(WIDE)
        self.browser.media("light")

    def tearDown(self):
        """No test may leave a word on the console, or a request but that for the page itself."""
        if self.url:
            self.browser.settle()
            self.assertEqual(self.browser.complaints, [])
            self.assertEqual({url.split("#")[0] for url in self.browser.requests}, {self.url})

    def show(self, audit, address="", page=None):
        path = pathlib.Path(self.folder.name, "page.html")
        path.write_text(samples.page(audit) if page is None else page, encoding="utf-8")
        self.url = path.as_uri()
        self.browser.open(self.url + address)

    def js(self, expression):
        return self.browser.js(expression)

    def text(self, selector):
        return self.js(f"document.querySelector({json.dumps(selector)})?.textContent")

    def each(self, selector, value="one.textContent"):
        """Returns a value of each element that a selector finds."""
        return self.js(f"[...document.querySelectorAll({json.dumps(selector)})].map(one => {value})")

    def count(self, selector):
        return self.js(f"document.querySelectorAll({json.dumps(selector)}).length")

    def seen(self, selector):
        return self.js(f"document.querySelector({json.dumps(selector)}).checkVisibility()")

    def focused(self, value="one.textContent.trim()"):
        return self.js(f"(one => {value})(document.activeElement)")

    def choose(self, control, value):
        self.js(f"(() => {{ const control = document.getElementById('{control}'); control.value = {json.dumps(value)};"
                f" control.dispatchEvent(new Event('change', {{ bubbles: true }})); return control.value; }})()")

    def search(self, words):
        """Types into the search box, as a person does."""
        self.js("document.getElementById('search').select()")
        self.browser.type(words)
        self.browser.until(f"document.getElementById('search').value === {json.dumps(words)}")

    def click(self, selector):
        """Clicks the middle of an element with the mouse."""
        self.browser.click_at(*self.middle_of(selector))

    def middle_of(self, selector):
        """Scrolls an element into view and returns where its middle then is."""
        self.js(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{ block: 'center' }})")
        box = self.js(f"document.querySelector({json.dumps(selector)}).getBoundingClientRect().toJSON()")
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def button(self, selector, name, do="click()"):
        """Does something with the button of this name: by a script, since it may be out of the window."""
        self.js(f"[...document.querySelectorAll({json.dumps(selector)})]"
                f".find(one => one.textContent === {json.dumps(name)}).{do}")

    def tab_to(self, condition):
        """Presses Tab until the focused element fulfils a condition."""
        for _ in range(60):
            self.browser.press("Tab")
            if self.js(f"(at => {condition})(document.activeElement)"):
                return
        self.fail(f"Tab does not reach: {condition}")

    def heard(self):
        """Returns the role and the name of everything that a screen reader reads."""
        return [(one["role"]["value"], one.get("name", {}).get("value", "").strip())
                for one in self.browser.call("Accessibility.getFullAXTree")["nodes"] if not one["ignored"]]

    def owners(self):
        return self.each(".opener", "one.querySelector('.name').textContent")

    def nodes(self):
        return self.each("#nodes tr:not(.detail)", "one.querySelector('.name').textContent")

    def node_named(self, name):
        index = self.nodes().index(name)
        return self.js(f"document.querySelectorAll('#nodes tr:not(.detail)')[{index}].querySelector('button').id")


class Template(unittest.TestCase):
    """What can be said of the file without a browser."""

    def setUp(self):
        self.page = samples.TEMPLATE.read_text(encoding="utf-8")

    def test_it_is_small(self):
        self.assertLessEqual(len(self.page.encode()), MOST_BYTES)

    def test_it_refers_to_nothing_outside(self):
        without_namespace = self.page.replace("http://www.w3.org/2000/svg", "")
        for word in ("http:", "https:", "//cdn", "src=", "href=", "@import", "url(", "fetch(", "XMLHttpRequest", "WebSocket",
                     "sendBeacon", "import("):
            self.assertNotIn(word, without_namespace)

    def test_it_makes_no_markup_of_text(self):
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "srcdoc",
                     "DOMParser"):
            self.assertNotIn(word, self.page)

    def test_its_policy_forbids_everything_but_its_own_style_and_script(self):
        policy = re.search(r'http-equiv="Content-Security-Policy"\s+content="([^"]+)"', self.page).group(1)
        self.assertEqual(dict(part.strip().split(" ", 1) for part in policy.split(";")),
                         {"default-src": "'none'", "style-src": "'unsafe-inline'", "script-src": "'unsafe-inline'",
                          "base-uri": "'none'", "form-action": "'none'"})


class Harness(PageTest):
    """The checks of this file notice what they are for."""

    def test_console_exceptions_and_requests_are_noticed(self):
        self.show(None, page="<!DOCTYPE html><title>t</title><img src=missing.png>"
                             "<script>console.warn('said'); throw new Error('thrown')</script>")
        self.assertTrue(any("said" in one for one in self.browser.complaints), self.browser.complaints)
        self.assertTrue(any("thrown" in one for one in self.browser.complaints), self.browser.complaints)
        self.assertTrue(any(url.endswith("missing.png") for url in self.browser.requests), self.browser.requests)
        self.url = None

    def test_poor_contrast_is_noticed(self):
        self.show(None, page="<!DOCTYPE html><title>t</title><body style='background:#fff'>"
                             "<p style='color:#777'>grey</p><p style='color:#767676'>dark</p>")
        found = self.js(POOR_CONTRAST)
        self.assertEqual((found["seen"], len(found["poor"])), (2, 1), found)

    def test_a_condition_that_never_holds_fails(self):
        self.show(samples.empty())
        with self.assertRaises(Failed):
            self.js("Promise.reject(new Error('no'))")


class Head(PageTest):
    def test_the_title_is_the_verdict(self):
        drains, blocked, unknown = (samples.node(name, name, seconds=1.0) for name in ("drains", "blocked", "notRehearsed"))
        bad = samples.owner("a", "", "Deployment", "b", [CLOSED])
        cases = [
            ([drains, blocked, drains], [], "1 of 3 nodes cannot be drained"),
            ([blocked], [], "1 of 1 node cannot be drained"),
            ([drains, drains], [], "All 2 nodes can be drained"),
            ([drains], [], "The node can be drained"),
            ([drains, drains, unknown], [], "2 of 3 nodes were rehearsed and can be drained"),
            ([drains, drains, unknown], [bad], "1 finding blocks drains, but 2 of 3 nodes were rehearsed and can be drained"),
            ([drains, drains], [bad], "1 finding blocks drains, but each rehearsed drain ended"),
            ([unknown, unknown], [bad], "1 finding blocks drains"),
            ([], [bad, bad], "2 findings block drains"),
            ([unknown], [], "No finding blocks a drain"),
            ([], [], "No finding blocks a drain")]
        for nodes, owners, wanted in cases:
            with self.subTest(wanted):
                self.show(samples.audit(nodes, owners))
                self.assertEqual(self.text("h1"), wanted)
                self.assertEqual(self.js("document.title"), wanted + " – Haulout audit")

    def test_the_summary_has_the_counts(self):
        self.show(samples.small())
        self.assertEqual(self.text("#source"), "Audit of cluster.json, 2026-11-27 23:00 UTC. 9 nodes, 214 pods.")
        self.assertEqual(self.each("#counts dd"),
                         ["2 blocked", "1 without room", "2 not rehearsed", "4 drain", "2 blocking", "4 risks", "2 notes"])
        self.assertEqual(self.js("document.getElementById('share').getAttribute('aria-label')"),
                         "Nodes: 2 blocked, 1 without room, 2 not rehearsed, 4 drain")
        widths = self.each("#share span", "one.getBoundingClientRect().width")
        self.assertAlmostEqual(widths[3] / widths[1], 4, delta=0.1)

    def test_the_assumptions_are_listed(self):
        self.show(samples.small())
        self.assertEqual(self.each("#assumed li"), samples.small()["assumed"])

    def test_an_empty_audit_says_so(self):
        self.show(samples.empty())
        self.assertEqual(self.text("#no-owner"), "No finding.")
        self.assertEqual(self.text("#no-node"), "No node was audited.")
        for one in ("no-owner", "no-node", "no-assumption"):
            self.assertTrue(self.seen("#" + one), one)
        for one in ("table", "open-all", "more-owners", "more-nodes", "share", "filters", "verdicts"):
            self.assertFalse(self.seen("#" + one), one)

    def test_manifests_have_no_nodes(self):
        audit = {**samples.audit([], [samples.owner("a", "", "Deployment", "b", [])], pods=3), "manifests": True}
        self.show(audit)
        self.assertEqual(self.text("#source"), "Audit of cluster.json, 2026-11-27 23:00 UTC. 3 expected pods.")
        self.assertEqual(self.text("#counts"), "Findingsnone")
        self.assertEqual(self.text("#no-node"), "Manifests have no nodes.")

    def test_findings_of_a_baseline_are_counted(self):
        audit = samples.small()
        audit["summary"]["findingsInBaseline"] = 17
        self.show(audit)
        self.assertEqual(self.text("#counts > div:last-child dd:last-child"), "17 in the baseline, left out")

    def test_a_page_without_an_audit_says_so(self):
        for page, wanted in ((samples.TEMPLATE.read_text(encoding="utf-8"), "cannot be read"), (samples.page(None), "")):
            with self.subTest(wanted):
                self.show(None, page=page)
                self.assertEqual(self.text("h1"), "This page has no audit in it")
                self.assertIn(wanted, self.text("#source"))
                self.assertFalse(self.seen("#content"))

    def test_without_scripts_it_says_what_it_is(self):
        self.browser.scripts(False)
        try:
            self.show(samples.small())
            seen = self.js("document.body.innerText")  # the protocol may still ask
        finally:
            self.browser.scripts(True)
        self.assertIn("Haulout audit", seen)
        self.assertIn("JavaScript, which is switched off", seen)
        self.assertNotIn("Namespace", seen)


class Filters(PageTest):
    def matches(self):
        return self.text("#matches")

    def test_search_finds_in_owners_and_nodes(self):
        self.show(samples.small())
        self.assertEqual(self.matches(), "6 owners with findings, 9 nodes.")
        cases = [
            ("postgres-0", ["db/StatefulSet/postgres"], ["gpu-1", "worker-2"]),
            ("QUORUM", ["db/StatefulSet/postgres"], ["worker-2"]),
            ("worker-1", ["shop/Deployment/web"], ["worker-1", "worker-10"]),
            ("web budget", ["shop/Deployment/web"], ["gpu-2", "worker-1"]),
            ("spot", [], ["spot-7"]),
            ("research", ["ml/JobSet/train"], []),
            ("nothing has this", [], [])]
        for words, owners, nodes in cases:
            with self.subTest(words):
                self.search(words)
                self.assertEqual(self.owners(), owners)
                self.assertEqual(self.nodes(), nodes)
                self.assertEqual(self.matches(), f"{len(owners)} of 6 owners and {len(nodes)} of 9 nodes match.")
                self.assertEqual(self.seen("#no-owner"), not owners)
                self.assertEqual(self.seen("#no-node"), not nodes)
        self.assertEqual(self.text("#no-node"), "No node matches the filters.")
        self.click("#clear")
        self.assertEqual(self.matches(), "6 owners with findings, 9 nodes.")
        self.assertEqual(self.focused("one.id"), "search")

    def test_each_filter_alone_and_with_others(self):
        self.show(samples.small())
        cases = [
            ({"severity": "blocks"}, ["shop/Deployment/web", "batch/Job/report-28441"], ["gpu-2", "worker-1"]),
            ({"severity": "note"}, ["db/StatefulSet/postgres", "monitoring/StatefulSet/prometheus-k8s"], ["worker-2"]),
            ({"namespace": "ml"}, ["ml/JobSet/train"], ["gpu-1"]),
            ({"namespace": "(cluster)"}, ["The cluster itself"], []),
            ({"team": "data"}, ["batch/Job/report-28441", "db/StatefulSet/postgres"], ["gpu-2", "worker-2"]),
            ({"team": "data", "severity": "blocks"}, ["batch/Job/report-28441"], ["gpu-2"]),
            ({"verdicts": "notRehearsed"}, None, ["control-1", "control-2"]),
            ({"verdicts": "drains", "team": "data"}, ["batch/Job/report-28441", "db/StatefulSet/postgres"], ["worker-2"])]
        everyone = self.owners()
        for chosen, owners, nodes in cases:
            with self.subTest(chosen):
                for control in ("severity", "namespace", "team", "verdicts"):
                    self.choose(control, chosen.get(control, ""))
                self.assertEqual(self.owners(), everyone if owners is None else owners)
                self.assertEqual(self.nodes(), nodes)

    def test_a_node_matches_by_what_blocks_it(self):
        block = {"pod": "a/b-1", "owner": "a/Deployment/b", "reason": "DisruptionBudget", "text": "The budget is closed."}
        self.show(samples.audit([samples.node("one", "blocked", blockedBy=[block]), samples.node("two", "blocked")],
                                [samples.owner("a", "t", "Deployment", "b", [CLOSED])]))
        cases = [("namespace", "a", ["one"]), ("team", "t", ["one"]), ("severity", "blocks", ["one"]), ("severity", "risk", [])]
        for control, value, nodes in cases:
            self.choose(control, value)
            self.assertEqual(self.nodes(), nodes)
            self.choose(control, "")

    def test_a_severity_shows_only_its_findings(self):
        self.show(samples.small())
        self.choose("severity", "risk")
        self.js("document.getElementById('open-all').click()")
        self.assertEqual(set(self.each(".findings .word, .opener .word")), {"Risk"})
        self.assertEqual(self.js("document.querySelector('.opener .size').textContent"), "1 finding · 1 node")

    def test_there_is_no_choice_of_teams_without_teams(self):
        self.show(samples.audit([], [samples.owner("a", "", "Deployment", "b", [])]))
        self.assertFalse(self.seen("#team"))

    def test_the_number_of_matches_is_announced(self):
        self.show(samples.small())
        self.assertEqual(self.each("#matches", "[one.role, one.ariaLive]"), [["status", "polite"]])

    def test_the_address_carries_the_filters(self):
        self.show(samples.small(), "#team=data&severity=blocks")
        self.assertEqual(self.owners(), ["batch/Job/report-28441"])
        self.choose("severity", "")
        self.search("quorum & co")
        self.assertEqual(self.js("Object.fromEntries(new URLSearchParams(location.hash.slice(1)))"),
                         {"search": "quorum & co", "team": "data"})
        self.js("location.hash = 'verdict=blocked'")
        self.browser.until("document.getElementById('verdicts').value === 'blocked'")
        self.assertEqual(self.nodes(), ["gpu-2", "worker-1"])

    def test_an_address_with_unknown_values_shows_everything(self):
        self.show(samples.small(), "#team=nobody&severity=%3Cimg%3E&verdict=&other=1")
        self.assertEqual(self.matches(), "6 owners with findings, 9 nodes.")


class Nodes(PageTest):
    def sorted_by(self):
        return self.each("#columns th[aria-sort]", "[one.textContent, one.ariaSort]")

    def press_column(self, name):
        self.button("#columns button", name, "focus()")
        self.browser.press("Enter")
        self.assertEqual(self.focused(), name)
        return self.nodes()

    def test_worst_first(self):
        self.show(samples.small())
        self.assertEqual(self.sorted_by(), [["Verdict", "ascending"]])
        self.assertEqual(self.nodes(), ["gpu-2", "worker-1", "gpu-1", "control-1", "control-2", "spot-7", "worker-2", "worker-3",
                                        "worker-10"])

    def test_each_column_sorts_both_ways(self):
        self.show(samples.small())
        names = ["control-1", "control-2", "gpu-1", "gpu-2", "spot-7", "worker-1", "worker-2", "worker-3", "worker-10"]
        self.assertEqual(self.press_column("Node"), names)
        self.assertEqual(self.sorted_by(), [["Node", "ascending"]])
        self.assertEqual(self.press_column("Node"), names[::-1])
        self.assertEqual(self.sorted_by(), [["Node", "descending"]])
        self.assertEqual(self.press_column("Pods")[:3], ["worker-10", "worker-1", "worker-2"])
        self.assertEqual(self.sorted_by(), [["Pods", "descending"]])
        self.assertEqual(self.press_column("Pods")[:3], ["spot-7", "gpu-2", "gpu-1"])
        without_time = ["control-1", "control-2", "gpu-2", "worker-1"]
        slowest = ["worker-2", "gpu-1", "worker-3", "worker-10", "spot-7"]
        self.assertEqual(self.press_column("Time"), slowest + without_time)
        self.assertEqual(self.press_column("Time"), slowest[::-1] + without_time)
        self.assertEqual(self.press_column("Blocked by")[:2], ["worker-1", "gpu-2"])
        self.assertEqual(self.press_column("Pool")[:2], ["control-1", "control-2"])
        self.assertEqual(self.press_column("Verdict")[-2:], ["worker-3", "worker-10"])

    def test_a_row_says_what_blocks(self):
        self.show(samples.small())
        rows = self.each("#nodes tr", "[...one.cells].map(cell => cell.textContent.trim())")
        self.assertEqual(rows[:3], [["gpu-2not ready", "Blocked", "gpu", "4", "–", "batch/Job/report-28441 StuckTerminating"],
                                    ["worker-1", "Blocked", "workers", "31", "–", "shop/Deployment/web DisruptionBudget, 2 pods"],
                                    ["gpu-1", "Drains without room", "gpu", "6", "1m33s", "2 pods without room elsewhere"]])
        self.assertEqual([row[4] for row in rows[5:]], ["3s", "3m04s", "42s", "9.3s"])

    def test_a_chosen_node_shows_everything_about_it(self):
        self.show(samples.small())
        self.click("#" + self.node_named("worker-1"))
        self.assertEqual(self.each(".detail .rows .list li"),
                         ["shop/web-6f7c9-x2x1z", "shop/web-6f7c9-k8k2q"])
        detail = self.text(".detail")
        for part in ("The budget shop/web allows no disruption", "BudgetNeverOpens of shop/Deployment/web",
                     "5 pods; the drain does not end."):
            self.assertIn(part, detail)
        self.assertEqual(detail.count("The budget shop/web allows no disruption"), 1)
        self.click("#" + self.node_named("gpu-1"))
        self.assertEqual(self.count(".detail"), 1)
        self.assertIn("ml/train-1", self.text(".detail"))
        self.click("#" + self.node_named("spot-7"))
        self.assertIn("No finding.", self.text(".detail"))
        self.assertIn("No pod has to leave.", self.text(".detail"))
        self.click("#" + self.node_named("control-1"))
        self.assertIn("This drain was not rehearsed.", self.text(".detail"))
        self.click("#" + self.node_named("control-1"))
        self.assertIsNone(self.text(".detail"))

    def test_the_findings_of_a_node_are_worst_first(self):
        findings = [samples.finding(severity, severity, "a/b", "Text.", nodes=["one"]) for severity in ("note", "blocks", "risk")]
        self.show(samples.audit([samples.node("one", "drains")], [samples.owner("a", "", "Deployment", "b", findings)]))
        self.click("#node-0")
        self.assertEqual(self.each(".detail .word"), ["Blocks", "Risk", "Note"])

    def test_a_drain_blocked_by_the_cluster_or_as_a_whole(self):
        webhook = {"pod": "a/b", "owner": "Cluster", "reason": "Webhook", "text": "A webhook refuses."}
        whole = {"pod": "", "owner": "", "reason": "refused", "text": "Refused."}
        self.show(samples.audit([samples.node("one", "blocked", blockedBy=[webhook, whole])],
                                [samples.owner("", "", "Cluster", "", [CLOSED])]))
        self.click("#node-0")
        self.assertEqual(self.each(".detail .rows > li", "one.innerText.replace(/\\s+/g, ' ')"),
                         ["The cluster itself: A webhook refuses. a/b", "Refused."])
        self.assertEqual(self.each(".detail .rows .list li"), ["a/b"])
        self.click(".detail .rows button")
        self.assertIn("The cluster itself", self.focused())

    def test_a_node_leads_to_the_owner_although_filters_hide_it(self):
        self.show(samples.small())
        self.search("spot-7 nothing")
        self.search("worker-1")
        self.choose("namespace", "shop")
        self.click("#" + self.node_named("worker-1"))
        self.choose("namespace", "")
        self.search("report-28441-q7")
        self.click("#" + self.node_named("worker-1"))
        self.click("#" + self.node_named("worker-1"))
        self.button(".detail button", "shop/Deployment/web")
        self.assertIn("shop/Deployment/web", self.focused())
        self.assertEqual(self.focused("one.ariaExpanded"), "true")
        self.assertEqual(self.text("#matches"), "6 owners with findings, 9 nodes.")


class Owners(PageTest):
    def test_worst_first_as_the_audit_has_them(self):
        self.show(samples.small())
        self.assertEqual(self.owners(), ["shop/Deployment/web", "batch/Job/report-28441", "db/StatefulSet/postgres",
                                         "The cluster itself", "ml/JobSet/train", "monitoring/StatefulSet/prometheus-k8s"])
        self.assertEqual(self.each(".opener .word"),
                         ["Blocks", "Blocks", "Risk", "Risk", "Risk", "Note"])

    def test_the_keyboard_alone_opens_an_owner_and_a_drain(self):
        self.show(samples.small())
        self.tab_to("at.classList.contains('opener')")
        self.assertIn("shop/Deployment/web", self.focused())
        panel = "document.getElementById(document.activeElement.getAttribute('aria-controls'))"
        self.assertFalse(self.js(panel + ".checkVisibility()"))
        self.browser.press("Enter")
        self.assertEqual(self.focused("one.ariaExpanded"), "true")
        self.assertTrue(self.js(panel + ".checkVisibility()"))
        self.browser.press(" ")
        self.assertEqual(self.focused("one.ariaExpanded"), "false")
        self.assertFalse(self.js(panel + ".checkVisibility()"))
        self.browser.press("Enter")
        self.tab_to("at.classList.contains('link') && at.textContent === 'gpu-2'")
        self.browser.press("Enter")
        self.assertEqual(self.focused(), "gpu-2")
        self.assertEqual(self.focused("one.ariaExpanded"), "true")
        self.tab_to("at.getAttribute('role') === 'option'")
        self.assertIn("report-28441-q7", self.text(".times"))

    def test_a_finding_has_its_way_out_nodes_and_pods(self):
        self.show(samples.small())
        self.click(".opener")
        first = ".finding:first-child "
        facts = [*self.each(first + "h4"), *self.each(first + "p"), *self.each(first + "dt",
                 "one.textContent + ': ' + [...one.nextSibling.querySelectorAll('li')].map(li => li.textContent).join(', ')")]
        self.assertEqual(facts, ["BlocksBudgetNeverOpensshop/PodDisruptionBudget/web",
                                    "The budget shop/web allows no disruption: minAvailable is 4 and the Deployment has 4 replicas.",
                                    "Way out: ", "Nodes: worker-1, gpu-2", "Pods: shop/web-6f7c9-x2x1z, shop/web-6f7c9-k8k2q"])
        self.assertEqual(self.text(".facts dd"), "Set maxUnavailable: 1, or run one replica more than minAvailable.")

    def test_open_all_and_close_all(self):
        self.show(samples.small())
        for wanted, told in ((6, "Close all"), (0, "Open all")):
            self.click("#open-all")
            self.assertEqual(self.count(".opener[aria-expanded=true]"), wanted)
            self.assertEqual(self.text("#open-all"), told)

    def test_an_open_owner_stays_open_when_filters_change(self):
        self.show(samples.small())
        self.click(".opener")
        self.search("web")
        self.assertEqual(self.js("document.querySelector('.opener').ariaExpanded"), "true")
        self.assertEqual(self.count(".finding"), 2)

    def test_a_node_that_filters_hide_is_shown_when_it_is_chosen(self):
        self.show(samples.small())
        self.choose("verdicts", "drains")
        self.click(".opener")
        self.button(".findings button", "gpu-2")
        self.assertEqual(self.focused(), "gpu-2")
        self.assertIsNotNone(self.text(".detail"))

    def test_an_owner_without_findings_says_so(self):
        self.show(samples.audit([], [samples.owner("a", "", "Deployment", "b", [])]))
        self.assertEqual(self.text(".preview"), "No finding.")
        self.click(".opener")
        self.assertEqual(self.text(".findings"), "No finding.")

    def test_a_long_list_of_nodes_opens_where_it_stands(self):
        names = [f"n-{number}" for number in range(33)]
        owner = samples.owner("a", "", "Deployment", "b", [samples.finding("X", "risk", "a/b", "Text.", nodes=names)])
        self.show(samples.audit([samples.node(name, "drains") for name in names], [owner]))
        self.click(".opener")
        shown = "[...document.querySelectorAll('.findings li')].map(one => one.textContent)"
        self.assertEqual(self.js(shown), names[:20] + ["and 13 more"])
        self.js("document.querySelector('.findings li:last-child button').focus()")
        self.browser.press("Enter")
        self.assertEqual(self.js(shown), names)
        self.assertEqual(self.focused(), "n-20")


class Timeline(PageTest):
    # For each pod: [kind, begin, end] of each bar, in per cent of the width of the chart.
    BARS = """[...document.querySelectorAll('.pod')].map(pod => {
      const whole = pod.querySelector('svg').getBoundingClientRect();
      const share = x => (x - whole.left) / whole.width * 100;
      return [...pod.querySelectorAll('rect')].map(bar => {
        const box = bar.getBoundingClientRect();
        return [bar.getAttribute('class'), share(box.left), share(box.right)];
      });
    })"""

    def test_bars_stand_where_the_times_are(self):
        self.show(samples.small())
        self.click("#" + self.node_named("worker-2"))
        found = self.js(self.BARS)
        wanted = [[["leave", 0.4, 31.2]], [["wait", 0.4, 33.0], ["leave", 33.0, 63.5]],
                  [["wait", 1.0, 64.0], ["leave", 64.0, 184.0]], [["leave", 0.9, 140.0]]]
        self.assertEqual([[bar[0] for bar in row] for row in found], [[bar[0] for bar in row] for row in wanted])
        for row, wanted_row in zip(found, wanted):
            for (_, left, right), (_, start, end) in zip(row, wanted_row):
                self.assertAlmostEqual(left, start / 1.84, delta=0.2)
                self.assertAlmostEqual(right, end / 1.84, delta=0.2)
        self.assertEqual(self.each(".axis text"), ["0s", "1m00s", "2m00s", "3m00s"])

    def test_what_does_not_end_reaches_the_end(self):
        self.show(samples.small())
        self.click("#" + self.node_named("worker-1"))
        found = self.js(self.BARS)
        self.assertEqual([bar[0] for bar in found[2] + found[3]], ["wait open-end", "leave open-end"])
        self.assertAlmostEqual(found[2][0][2], 100, delta=0.2)
        self.assertEqual(found[4], [])
        self.click("#" + self.node_named("gpu-2"))  # its only pod begins to terminate at the last known time
        (kind, left, right), = self.js(self.BARS)[0]
        self.assertEqual(kind, "leave open-end")
        self.assertGreater(right - left, 20)
        self.click("#" + self.node_named("worker-1"))
        self.assertEqual(self.each(".pod .number"), ["31s", "1m03s", "stays", "stays", "stays"])

    def test_a_wait_after_the_eviction_is_no_wait_for_it(self):
        row = {"pod": "a/b", "owner": "a/Deployment/b", "waitFrom": 60.0, "evicted": 1.0}
        self.show(samples.audit([samples.node("one", "blocked", timeline=[row])], []))
        self.click("#node-0")
        self.assertEqual([bar[0] for bar in self.js(self.BARS)[0]], ["leave open-end"])
        self.assertEqual(self.text(".pod .unseen"), " of a/Deployment/b terminates from 1s to the end.")

    def test_waits_and_terminations_differ_in_colour_and_height(self):
        self.show(samples.small())
        self.click("#" + self.node_named("worker-2"))
        looks = [self.each(".pod " + kind, "[getComputedStyle(one).fill, one.getBoundingClientRect().height]")[0]
                 for kind in (".wait", ".leave")]
        self.assertEqual(looks[0][0], "rgb(196, 118, 12)")
        self.assertEqual(looks[1][0], "rgb(59, 125, 216)")
        self.assertLess(looks[0][1] + 3, looks[1][1])

    def test_focus_and_arrow_keys_tell_the_times(self):
        self.show(samples.small())
        self.click("#" + self.node_named("worker-1"))
        self.tab_to("at.getAttribute('role') === 'option'")
        pods = ["shop/cart-5d8-aa1 of shop/Deployment/cart terminates from 0.4s to 31s (30s).",
                "shop/cart-5d8-aa2 of shop/Deployment/cart waits from 0.4s to 33s (32s), then terminates from 33s to 1m03s (30s).",
                "shop/web-6f7c9-x2x1z of shop/Deployment/web waits from 0.5s to the end.",
                "batch/report-28441-q7 of batch/Job/report-28441 terminates from 0.6s to the end.",
                "batch/idle is not evicted."]
        self.js("window.kept = 0; addEventListener('keydown', event => { window.kept += !event.defaultPrevented; })")
        for key, index in ((None, 0), ("ArrowDown", 1), ("ArrowDown", 2), ("ArrowUp", 1), ("End", 4), ("ArrowDown", 4),
                           ("PageUp", 0), ("PageDown", 4), ("Home", 0), ("ArrowUp", 0)):
            if key:
                self.browser.press(key)
            self.assertEqual(self.text(".times"), pods[index], key)
            self.assertEqual(self.each(".pod", "one.ariaSelected).indexOf('true'"), index)
            self.assertEqual(self.count(".pod[tabindex=\"0\"]"), 1)
        self.assertEqual(self.js("window.kept"), 0, "a key moves the focus and scrolls the page, too")
        self.browser.press("Tab")
        self.assertNotEqual(self.focused("one.getAttribute('role')"), "option")
        self.browser.press("Tab", shift=True)
        self.assertEqual(self.focused("one.getAttribute('role')"), "option")
        self.assertEqual([name for role, name in self.heard() if role == "option" and "/" in name], pods)

    def test_the_mouse_tells_the_times(self):
        self.show(samples.small())
        self.click("#" + self.node_named("worker-1"))
        place = self.middle_of(".pod:nth-child(3)")
        self.browser.move_to(*place)
        self.browser.until("document.querySelector('.times').textContent.startsWith('shop/web-6f7c9-x2x1z of')")
        self.browser.click_at(*place)
        self.assertEqual(self.focused("one.querySelector('.name').textContent"), "shop/web-6f7c9-x2x1z")
        self.browser.move_to(place[0], place[1] + self.each(".pod", "one.getBoundingClientRect().height")[2])
        self.browser.until("document.querySelector('.times').textContent.startsWith('batch/report-28441-q7 of')")
        self.browser.move_to(1, 1)  # away: the times are again those of the pod with the focus
        self.browser.until("document.querySelector('.times').textContent.startsWith('shop/web-6f7c9-x2x1z of')")


class Large(PageTest):
    """2,000 nodes and 500 owners: only what is looked at is drawn."""

    def test_only_the_first_rows_are_drawn(self):
        self.show(samples.large())
        self.assertEqual(self.text("h1"), "200 of 2,000 nodes cannot be drained")
        self.assertEqual([len(self.nodes()), len(self.owners())], [100, 25])
        self.assertLess(self.count("*"), 3000)
        self.assertEqual(self.text("#more-nodes"), "Show 100 more of 1,900 nodes")
        self.click("#more-nodes")
        self.assertEqual(len(self.nodes()), 200)
        self.assertEqual(self.focused(), self.nodes()[100])
        self.click("#more-owners")
        self.assertEqual(len(self.owners()), 125)
        self.assertIn(self.owners()[25], self.focused())
        self.search("node-1234")
        self.assertEqual(self.text("#matches"), "7 of 500 owners and 1 of 2,000 nodes match.")
        self.click("#clear")
        self.choose("severity", "blocks")
        self.choose("namespace", "team-7")
        self.assertEqual(len(self.owners()), 4)  # of 167 that block, every fortieth
        self.assertEqual(self.text("#more-owners:not([hidden])"), None)

    def test_a_node_far_down_is_drawn_when_it_is_chosen(self):
        self.show(samples.large())
        self.choose("severity", "note")
        self.click(".opener")
        name = self.text(".findings .list button")
        self.assertNotIn(name, self.nodes())
        self.click(".findings .list button")
        self.assertIn(name, self.nodes())
        self.assertEqual(self.focused(), name)
        self.assertEqual(self.count(".pod"), 30)


class Hostile(PageTest):
    def test_no_text_becomes_markup(self):
        self.show(samples.hostile())
        self.js(OPEN_EVERYTHING)
        for name in self.each("#nodes button[id]", "one.id"):
            self.js(f"document.getElementById('{name}').click()")
        self.browser.settle()
        self.assertEqual(self.count("img, iframe, object, embed, a, base, link"), 0)
        self.assertEqual(self.count("script"), 2)
        attributes = {name for one in self.each("*", "one.getAttributeNames()") for name in one}
        self.assertEqual({name for name in attributes if name.startswith("on")}, set())
        self.assertEqual(self.js("document.title"), "1 of 4 nodes cannot be drained – Haulout audit")
        self.assertIn(samples.MARKUP, self.text("#nodes"))
        self.assertIn(samples.MARKUP, self.text("#owners"))
        self.assertIn(samples.MARKUP, self.text("#assumed"))
        self.assertIn(samples.MARKUP, self.each("#namespace option"))

    def test_each_hostile_text_can_be_searched_and_filtered(self):
        self.show(samples.hostile())
        self.search(samples.MARKUP[:20])
        self.assertEqual(len(self.owners()), 1)
        self.choose("namespace", samples.MARKUP)
        self.assertEqual(len(self.owners()), 1)

    def test_audits_of_wrong_types_throw_nothing(self):
        for audit in ({}, [], {"nodes": 3, "owners": "x", "summary": 7, "assumed": {}},
                      {"nodes": [{}], "owners": [{}], "summary": {"nodes": "many", "findings": []}},
                      {"nodes": [{"name": 7, "timeline": [{"evicted": None, "gone": "x"}], "blockedBy": [{}]}],
                       "owners": [{"findings": [{}]}]}):
            with self.subTest(json.dumps(audit)):
                self.show(audit)
                self.js(OPEN_EVERYTHING)
                self.assertTrue(self.seen("#content"))
                self.assertEqual(self.browser.complaints, [])


class Accessibility(PageTest):
    def test_every_look(self):
        for name, sample in ONE_OF_EACH.items():
            for width in (WIDE, NARROW):
                for scheme in ("light", "dark"):
                    self.browser.size(width)
                    self.browser.media(scheme)
                    self.show(sample())
                    self.js(OPEN_EVERYTHING)
                    self.browser.settle()
                    self.keep_picture(width, f"{name}-{width}-{scheme}.png")
                    for check in (self.contrast, self.fits, self.names, self.structure):
                        with self.subTest(f"{check.__name__} {name} {width} {scheme}"):
                            check(name, width, scheme)
                    self.assertEqual(self.browser.complaints, [])

    def keep_picture(self, width, name):
        folder = os.environ.get("HAULOUT_PICTURES")
        if not folder:
            return
        self.js("scrollTo(0, 0)")
        self.browser.size(width, self.js("document.documentElement.scrollHeight"))  # so that nothing sticks over the rest
        self.browser.settle()
        pathlib.Path(folder, name).write_bytes(self.browser.picture())
        self.browser.size(width)

    def contrast(self, name, _, scheme):
        """Text has enough contrast to its background, in both schemes."""
        found = self.js(POOR_CONTRAST)
        self.assertGreater(found["seen"], {"empty": 10}.get(name, 60))
        self.assertEqual(found["poor"], [])
        background = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 27)"}[scheme]
        self.assertEqual(self.js("getComputedStyle(document.body).backgroundColor"), background)

    def fits(self, _, width, __):
        """Nothing is wider than the window."""
        self.assertLessEqual(self.js("document.documentElement.scrollWidth"), width)
        ends = self.each("main *", "one.checkVisibility() && !one.closest('.pod, svg, .unseen, select') &&"
                                   " [one.getBoundingClientRect().right, one.outerHTML.slice(0, 80)]")
        self.assertEqual([end for end in ends if end and end[0] > width + 1], [])

    def names(self, name, _, __):
        """Each control has a name, as a screen reader hears it, and each thing that opens says whether it is open."""
        roles = {"button", "searchbox", "combobox", "option", "listbox", "textbox", "table", "columnheader", "search",
                 "navigation", "region"}
        found = self.heard()
        self.assertEqual([one for one in found if one[0] in roles and not one[1]], [])
        self.assertIn("main", [one[0] for one in found])
        if name != "empty":
            for role in ("search", "navigation", "searchbox", "combobox", "status"):
                self.assertIn(role, [one[0] for one in found])
            self.assertEqual([one[1] for one in found if one[0] == "columnheader"],
                             ["Node", "Verdict", "Pool", "Pods", "Time", "Blocked by"])
            self.assertEqual([one[0] for one in found].count("row"), self.count("tr"))
            opened = self.each("[aria-controls]",
                               "[one.ariaExpanded, !!document.getElementById(one.getAttribute('aria-controls'))]")
            self.assertEqual([one for one in opened if one[0] not in ("true", "false") or not one[1]], [])

    def structure(self, *_):
        """Headings leave out no level, columns have their heads, ids are unique, the language is known."""
        levels = self.each("h1, h2, h3, h4, h5, h6", "one.checkVisibility() && Number(one.tagName[1])")
        levels = [level for level in levels if level]
        self.assertEqual(levels.count(1), 1)
        self.assertEqual([pair for pair in zip(levels, levels[1:]) if pair[1] > pair[0] + 1], [])
        self.assertEqual(self.each("th", "one.scope"), ["col"] * 6)
        self.assertEqual(self.js("[document.documentElement.lang, document.querySelectorAll('main').length]"), ["en", 1])
        ids = self.each("[id]", "one.id")
        self.assertEqual(len(ids), len(set(ids)))

    def test_each_tab_stop_shows_its_focus_and_none_is_a_trap(self):
        self.show(samples.small())
        self.js(OPEN_EVERYTHING)
        self.js("document.getElementById('search').focus()")
        stops = []
        for _ in range(200):
            self.browser.press("Tab")
            stop = self.js("""(at => {
              const box = at.getBoundingClientRect(), style = getComputedStyle(at);
              return at === document.body ? null : [at.id || at.textContent.trim().slice(0, 30), style.outlineStyle,
                parseFloat(style.outlineWidth), box.bottom > 0 && box.top < innerHeight && box.width > 0];
            })(document.activeElement)""")
            if stop is None:
                break
            stops.append(stop)
        self.assertIsNone(stop, "Tab never leaves the page")
        self.assertGreater(len(stops), 35)
        self.assertEqual([one for one in stops if one[1] in ("none", "") or one[2] < 2 or not one[3]], [])
        self.assertTrue({"severity", "namespace", "team", "clear", "open-all", "verdicts"} <= {one[0] for one in stops})

    def test_the_jumps_move_the_focus(self):
        self.show(samples.small())
        for wanted in ("owners-title", "nodes-title", "assumed-title"):
            self.click(f"[data-to={wanted}]")
            self.assertEqual(self.focused("one.id"), wanted)

    def test_buttons_are_large_enough_to_touch(self):
        self.browser.size(NARROW)
        self.show(samples.small())
        heights = self.each("button:not(.link), input, select",
                            "one.checkVisibility() ? [one.getBoundingClientRect().height, one.textContent] : [99]")
        self.assertEqual([one for one in heights if one[0] < 24], [])


class Paper(PageTest):
    def test_print_shows_all_that_matches_and_no_controls(self):
        self.show(samples.large(300, 60))
        self.choose("verdicts", "drains")
        self.js("addEventListener('beforeprint', () => {"
                " window.printed = ['#nodes tr', '.finding'].map(one => document.querySelectorAll(one).length); })")
        matching = self.js("document.getElementById('matches').textContent.match(/[\\d,]+/g).map(Number)")
        self.browser.call("Page.printToPDF")
        self.assertEqual(matching, [60, 60, 210, 300])
        self.assertEqual(self.text("#more-owners"), "Show the other 35 owners")
        self.assertEqual(self.js("window.printed"), [210, 60])
        self.browser.until("document.querySelectorAll('.finding').length === 0")
        self.browser.media("dark", "print")
        for one in ("filters", "verdicts", "open-all"):
            self.assertFalse(self.seen("#" + one), one)
        self.assertEqual(self.js("getComputedStyle(document.body).color"), "rgb(0, 0, 0)")
        self.assertEqual(self.js("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")
        self.assertEqual(self.js(POOR_CONTRAST)["poor"], [])


if __name__ == "__main__":
    unittest.main()
