#!/usr/bin/env python3
"""Pages for users that list what the code has must be complete, and the links between pages must lead somewhere.

States: docs/states.md has the states, duties and transitions of agent/node/state.cpp, in its tables and its diagrams.
Labels: docs/labels.md has each label, annotation, condition and other name with a domain that the code reads or writes.
Links: each relative link of a page leads to a file of this tree, and each anchor to a heading of that file.
Audience: each page of docs is in the index, and those for developers say so in their first sentence.
"""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "SECURITY.md", ROOT / "packaging/README.md", *ROOT.glob("docs/**/*.md")])
# The folders whose programs run in a cluster.
PRODUCT = ["agent", "drain", "k8s", "placement", "cli", "audit"]
# Names with a domain that are no labels, annotations, taints, conditions or keys of an object.
ELSEWHERE = [
    r".*/v\d+((alpha|beta)\d+)?",  # versions of APIs
    r"(client\.)?authentication\.(k8s|kubernetes)\.io/.*",  # parts of kubeconfigs and of identities
    r"kubernetes\.io/csi/",  # a prefix in the status of Nodes
]
FOR_DEVELOPERS = ["behaviours.md", "decisions.md", "numbers.md", "reliability.md", "scenarios.md"]


def text_of(path):
    return (ROOT / path).read_text()


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split(" | ")]


def rows_below(page, heading):
    """Returns the rows of the first table below a heading, without its head."""
    section = page.split(f"\n{heading}\n", 1)[1]
    lines = section[section.index("\n|") + 1:].split("\n\n", 1)[0].splitlines()
    return [cells(line) for line in lines[2:] if line.startswith("|")]


def names_in(text):
    """Returns the string literals that are a name with a domain: "example.com/name", "example.com/"."""
    names = {name for name in re.findall(r'"([a-z0-9.-]+/[A-Za-z0-9._/-]*)"', text)
             if re.search(r"\.(dev|io|sh|com|aws|invalid)/", name)}
    return {name for name in names if not any(re.fullmatch(pattern, name) for pattern in ELSEWHERE)}


def anchors_of(text):
    """Returns the anchors of the headings of a page, as GitHub makes them."""
    anchors = {}
    for heading in re.findall(r"^#{1,6} +(.+?) *$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        count = anchors.get(anchor, 0)
        anchors[anchor] = count + 1
        if count:
            anchors[f"{anchor}-{count}"] = 1
    return set(anchors)


def links_of(text):
    """Returns the targets of the links of a page, without those in code."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    prose = re.sub(r"^    .*$", "", prose, flags=re.M)
    return re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "code", prose))


class States(unittest.TestCase):
    code = text_of("agent/node/state.cpp")
    page = text_of("docs/states.md")

    def transitions(self):
        names = dict(re.findall(r'Event::(\w+), std::string_view\("([\w-]+)"\)', self.code))
        rows = re.findall(r"Row\{State::(\w+), Event::(\w+), State::(\w+)\}", self.code)
        self.assertGreater(len(rows), 40)
        return [(begin, end, names[event]) for begin, event, end in rows]

    def test_table_has_the_states_and_their_duties(self):
        duties = re.findall(r'StateRow\{State::\w+, "(\w+)", \{Duty::(\w+), Duty::(\w+)', self.code)
        rows = rows_below(self.page, "## The table")
        self.assertEqual([name for name, _, _ in duties], [row[0].strip("`") for row in rows])
        for (name, slot, cordon), row in zip(duties, rows):
            self.assertEqual(slot == "yes", row[3] == "yes", f"{name}: has a slot")
            self.assertEqual(cordon == "yes", row[2] == "yes", f"{name}: cordoned by the agent")

    def test_what_a_person_can_do_names_each_state(self):
        names = re.findall(r'StateRow\{State::\w+, "(\w+)"', self.code)
        rows = rows_below(self.page, "## What you see, and what you can do")
        self.assertEqual(names, [name for row in rows for name in re.findall(r"`(\w+)`", row[0])])

    def test_transitions_are_those_of_the_code(self):
        rows = rows_below(self.page, "## Each transition")
        written = [(row[0].strip("`"), row[1].strip("`"), row[3].strip("`")) for row in rows]
        self.assertEqual(self.transitions(), written)

    def test_diagrams_have_each_transition_once(self):
        drawn = [edge for diagram in re.findall(r"^```mermaid\n(.*?)^```", self.page, re.M | re.S)
                 for edge in re.findall(r"^ +(\w+) --> (\w+): \S", diagram, re.M)]
        self.assertEqual(sorted({(begin, end) for begin, end, _ in self.transitions()}), sorted(drawn))


class Labels(unittest.TestCase):
    page = text_of("docs/labels.md")

    def sources(self):
        return [path for folder in PRODUCT for path in sorted((ROOT / folder).rglob("*.?pp"))]

    def test_has_each_name_of_the_code(self):
        found = {}
        for path in self.sources():
            for name in names_in(path.read_text()):
                found.setdefault(name, path.relative_to(ROOT))
        self.assertGreater(len(found), 30)
        # A prefix is on the page with what follows it.
        missing = [f"{name} ({path})" for name, path in sorted(found.items()) if f"`{name}" not in self.page]
        self.assertEqual([], missing)

    def test_has_each_condition_of_the_code(self):
        header = text_of("agent/node/lifecycle_conditions.hpp")
        conditions = re.findall(r'_condition = "(\w+)"', header)
        self.assertEqual(5, len(conditions))
        for name in conditions:
            self.assertIn(f"condition `{name}`", self.page)

    def test_has_no_name_of_haulout_that_the_code_lacks(self):
        known = set().union(*(re.findall(r"(?:[a-z-]+\.)?haulout\.dev/[a-z-]*", path.read_text()) for path in self.sources()))
        written = {re.sub(r"POINT\.NAME$", "", name) for name in re.findall(r"`((?:[a-z-]+\.)?haulout\.dev/[A-Za-z.-]*)", self.page)}
        self.assertEqual(set(), {name.rstrip("-") for name in written} - {name.rstrip("-") for name in known})


class Snapshots(unittest.TestCase):
    """One command makes a snapshot, with all kinds that the commands list when they read the cluster."""
    command = "".join(re.findall(r'"(.*?)"', text_of("rehearse/snapshot_command.hpp").split("snapshot_command =", 1)[1].split(";")[0]))
    SHORT = {"deploy": "deployments", "ds": "daemonsets", "ns": "namespaces", "pdb": "poddisruptionbudgets",
             "pv": "persistentvolumes", "pvc": "persistentvolumeclaims", "quota": "resourcequotas", "rs": "replicasets",
             "sts": "statefulsets", "svc": "services"}

    def test_command_has_each_kind_that_is_read(self):
        table = text_of("rehearse/snapshot_json.cpp").split("constexpr Kind kinds[]", 1)[1].split("};", 1)[0]
        of_audit = re.search(r"\.more = \{(.*?)\}", text_of("cli/audit/audit_program.cpp"))[1]
        read = re.findall(r'"(\w+)"', table + of_audit)
        self.assertGreater(len(read), 14)
        given = re.fullmatch(r"kubectl get (\S+) -A -o json", self.command)[1].split(",")
        self.assertEqual(sorted(read), sorted(self.SHORT.get(kind, kind) for kind in given))

    def test_pages_and_help_have_this_command(self):
        wanted = f"{self.command} > cluster.json"
        made = [(str(page.relative_to(ROOT)), line.strip()) for page in PAGES for line in page.read_text().splitlines()
                if line.strip().startswith("kubectl get") and "> cluster.json" in line]
        self.assertGreaterEqual(len(made), 4)
        self.assertEqual([], [f"{page}: {line}" for page, line in made if line != wanted])
        # The help has lines of 120 columns at most, so it takes two.
        examples = re.findall(r'"  kinds=(\S+)\\n"\n +"  (kubectl get \$kinds.*?)\\n"', text_of("cli/options/help.cpp"))
        self.assertEqual([wanted, wanted], [line.replace("$kinds", kinds) for kinds, line in examples])


class Links(unittest.TestCase):
    def test_lead_somewhere(self):
        anchors = {}
        broken = []
        for page in PAGES:
            for target in links_of(page.read_text()):
                if re.match(r"[a-z]+:", target):
                    continue
                file, _, anchor = target.partition("#")
                path = (page.parent / file).resolve() if file else page
                if not path.exists():
                    broken.append(f"{page.relative_to(ROOT)}: {target}")
                elif anchor and path.suffix == ".md":
                    if path not in anchors:
                        anchors[path] = anchors_of(path.read_text())
                    if anchor not in anchors[path]:
                        broken.append(f"{page.relative_to(ROOT)}: {target} (no such heading)")
        self.assertEqual([], broken)


class Audience(unittest.TestCase):
    def test_index_has_each_page(self):
        """A page is in docs/README.md, or in the README.md of its folder, which is."""
        indexes = [ROOT / "docs/README.md"]
        listed = set(indexes)
        for index in indexes:
            targets = [target for target in links_of(index.read_text()) if "://" not in target]
            pages = {(index.parent / target.partition("#")[0]).resolve() for target in targets}
            if index != indexes[0]:
                pages = {page for page in pages if index.parent in page.parents}
            indexes += sorted(page for page in pages - listed if page.match("docs/*/README.md"))
            listed |= pages
        missing = [str(page.relative_to(ROOT)) for page in PAGES if ROOT / "docs" in page.parents and page not in listed]
        self.assertEqual([], missing)

    def test_pages_for_developers_say_so(self):
        for name in FOR_DEVELOPERS:
            first = text_of(f"docs/{name}").split("\n\n", 2)[1]
            self.assertTrue(first.startswith("*For developers"), f"docs/{name} begins with: {first[:80]}")


if __name__ == "__main__":
    unittest.main()
