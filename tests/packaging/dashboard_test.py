#!/usr/bin/env python3
"""Tests the Grafana dashboard: it is what its program makes of docs/metrics.md, and each of its queries has the expected
values for the recorded series of a small fleet. Needs promtool in PATH."""
import json
import re
import unittest

from fleet_story import METRICS, ROOT, Node, Story, load, promtool

PROGRAM = load(ROOT / "packaging/grafana/make_dashboard.py")
DASHBOARD = json.loads((ROOT / "packaging/grafana/haulout.json").read_text(encoding="utf-8"))
NOW = 479  # minutes since the beginning of the story


def updated(node, waits):
    """An update that succeeds, from minute 120 on. The drain takes 20 minutes and begins after `waits` minutes in line."""
    node.stay("idle", 120)
    node.need = 1
    node.stay("pending", 30, "OutsideWindow", "waiting").stay("waiting", waits, "WaitingForSlot", "waiting")
    node.stay("draining", 20, "Evicting")
    node.drained = [1200]
    node.stay("ready", 1).stay("rebooting", 1).boots(4).stay("unknown", 1, slot=True, back_end=0)
    node.need = 0
    node.stay("verifying", 3, "NodeNotReady").stay("uncordoning", 1)
    node.counts["succeeded"] = 1
    return node.stay("soaking", 10, "Soaking").stay("idle", NOW)


def fleet():
    story = Story(NOW + 1, 60)
    node = {name: Node(story, name, pool="infra" if name in ("n5", "n6") else "workers") for name in
            ("n1", "n2", "n3", "n4", "n5", "n6", "n7", "n9")}
    node["n8"] = Node(story, "n8", version="0.0.9")  # of no pool
    updated(node["n1"], 10)
    updated(node["n2"], 150)
    # n3 waits for the slot, n4 and n9 drain, n5 reboots, n6 has failed, n7 has a dead agent, n8 knows nothing.
    for name, begins in (("n3", 120), ("n4", 240), ("n5", 120), ("n6", 120), ("n9", 470)):
        node[name].stay("idle", begins).need = 1
    node["n3"].stay("pending", 30, "OutsideWindow", "waiting").stay("waiting", NOW, "WaitingForSlot", "waiting")
    # Another pod of the agent ran on n3 before, and its series have not ended yet.
    before = Node(story, "n3", pool="workers")
    before.target["pod"], before.at, before.need, before.needed_since = "haulout-before", 150, 1, 120 * 60
    before.stay("waiting", NOW, "WaitingForSlot", "waiting")
    node["n4"].stay("waiting", 210, "WaitingForSlot", "waiting").stay(
        "draining", NOW, "BlockedByBudget", "waiting", waiting={"BlockedByBudget": 2},
        pods={"queued": 1, "waiting": 2, "terminating": 3, "vanished": 4, "skipped": 5},
        diagnoses=[("BudgetNeverAllows", "trouble")])
    node["n9"].stay("draining", NOW, "BlockedByBudget", "waiting", waiting={"BlockedByBudget": 1},
                    pods={"waiting": 1, "skipped": 5})
    node["n5"].stay("waiting", 335, "WaitingForSlot", "waiting").stay("draining", 13, "Evicting").stay("ready", 1).stay(
        "rebooting", 1).silent(NOW)
    node["n6"].stay("waiting", 180, "WaitingForSlot", "waiting").stay("draining", 100, "Evicting").stay(
        "degraded", NOW, "RolledBack", "trouble")
    node["n7"].stay("idle", 400).silent(NOW)
    node["n8"].stay("idle", NOW + 1, back_end=0, api=0)
    for count, (name, labels) in enumerate((("haulout_evictions_total", {"result": "accepted"}),
                                            ("haulout_evictions_total", {"result": "refused"}),
                                            ("haulout_api_requests_total", {"verb": "get", "resource": "nodes", "code": "200"}),
                                            ("haulout_events_total", {"result": "written"})), 1):
        story.put(name, {**node["n3"].labels, **labels}, 0, NOW + 1, lambda number, count=count: 6 * count * number)
    for name, size in (("n1", 10), ("n2", 30)):
        story.put("process_resident_memory_bytes", node[name].target, 0, NOW + 1, size)
    return story


def one(value):
    return {"": value}


def by(name, **values):
    return {f'{name}="{key}"': value for key, value in values.items()}


# title of the panel -> the expected values of each of its queries at the end of the story
EXPECTED = {
    "Nodes": [one(7)],
    "Out": [one(3)],
    "Waiting": [one(1)],
    "Degraded": [one(1)],
    "Silent": [one(1)],
    "Agents that do not answer": [one(2)],
    "Need a reboot": [one(4)],
    "Oldest needed reboot": [one((NOW - 120) * 60)],
    "Updated, last day": [one(2)],
    "Mean time of a drain, last day": [one(20 * 60)],
    # Five nodes are left, two are done, and the first one began at minute 160.
    "Forecast: time that is left": [one(5 * (NOW - 160) * 60 / 2)],
    "Forecast: end": [one((NOW * 60 + 5 * (NOW - 160) * 60 / 2) * 1000)],
    "Nodes by state": [by("state", idle=3, waiting=1, draining=2, degraded=1), one(1)],
    "Needed reboots and held slots": [one(4), one(3)],
    "Nodes by reason": [{'concern="waiting",reason="WaitingForSlot"': 1, 'concern="waiting",reason="BlockedByBudget"': 2,
                         'concern="trouble",reason="RolledBack"': 1}],
    "Pods that cannot be evicted, by reason": [by("reason", BlockedByBudget=3)],
    "Diagnoses of drains": [{'code="BudgetNeverAllows",concern="trouble"': 1}],
    # n5 is silent, and has its slot since its drain. The query has missed the minute in which it was rebooting.
    "Nodes that hold a slot": [{'node="n4",state="draining"': (NOW - 450) * 60, 'node="n9",state="draining"': (NOW - 470) * 60,
                                'node="n5",state="ready"': (NOW - 468) * 60,
                                'node="n6",state="degraded"': (NOW - 400) * 60}],
    "Need a reboot, by pool": [by("pool", workers=3, infra=1)],
    "Out, by pool": [by("pool", workers=2, infra=1)],
    "Age of needed reboots": [by("node", n3=(NOW - 120) * 60, n4=(NOW - 240) * 60, n6=(NOW - 120) * 60, n9=(NOW - 470) * 60)],
    "Nodes by reason, over time": [{'concern="waiting",reason="WaitingForSlot"': 1,
                                    'concern="waiting",reason="BlockedByBudget"': 2, 'concern="trouble",reason="RolledBack"': 1}],
    "Pods of drains, by phase": [by("phase", queued=1, waiting=3, terminating=3, vanished=4, skipped=10)],
    "Time of drains, last day": [by("node", n1=1200, n2=1200, n4=1800, n5=780, n6=6000, n9=600)],
    # Both drains are in the bucket from 600 to 1200 seconds.
    "Duration of drains, last day": [one(900), one(1140)],
    "Last drain of each node": [by("node", n1=1200, n2=1200)],
    "Evictions": [by("result", accepted=0.1, refused=0.2)],
    "Updates that ended, last day": [by("result", succeeded=2, failed=0, given_up=0)],
    "Degraded nodes by reason": [by("reason", RolledBack=1)],
    "Attempts that failed, last day, by reason": [by("reason", RolledBack=1)],
    "Trouble in the last day, by reason": [by("reason", RolledBack=1)],
    "Alerts that fire": [by("alertname", HauloutDegraded=1, HauloutAgentDown=1, HauloutNeedUnknown=1, HauloutCutOff=1,
                            HauloutDrainNeverEnds=1)],
    "Agents by version": [{'version="0.1.0"': 6, 'version="0.0.9"': 1}],
    "Agents by authority": [by("authority", impersonation=7)],
    "Agents without an answer": [one(1), one(1)],
    "Requests to the API server": [{'code="200"': 0.3}],
    "Events of the Nodes": [by("result", written=0.4)],
    "Memory of the agents": [one(30), one(20)],
    "State and reason of each node": [{
        'node="n1",state="idle"': (NOW - 201) * 60, 'node="n2",state="idle"': (NOW - 341) * 60,
        'node="n8",state="idle"': NOW * 60,
        'concern="waiting",node="n3",reason="WaitingForSlot",state="waiting"': (NOW - 150) * 60,
        'concern="waiting",node="n4",reason="BlockedByBudget",state="draining"': (NOW - 450) * 60,
        'concern="waiting",node="n9",reason="BlockedByBudget",state="draining"': (NOW - 470) * 60,
        'concern="trouble",node="n6",reason="RolledBack",state="degraded"': (NOW - 400) * 60}],
}


def queries():
    """Returns (title of the panel, query) of all panels."""
    return [(panel["title"], each["expr"]) for panel in DASHBOARD["panels"] for each in panel.get("targets", [])]


def expect(query, values, pool=".*", node=".*"):
    query = query.replace("$pool", pool).replace("$node", node)
    return {"expr": f"round({query}, 0.02)", "eval_time": f"{NOW}m",
            "exp_samples": [{"labels": f"{{{labels}}}", "value": value} for labels, value in values.items()]}


class Dashboard(unittest.TestCase):
    maxDiff = None

    def test_it_is_what_its_program_makes(self):
        self.assertEqual(0, PROGRAM.main(["--check"]))

    def test_each_query_has_its_values(self):
        expected = [(title, values) for title, each in EXPECTED.items() for values in each]
        self.assertEqual(sorted(title for title, _ in expected), sorted(title for title, _ in queries()))
        order = {title: iter(each) for title, each in EXPECTED.items()}
        tests = [expect(query, next(order[title])) for title, query in queries()]
        # The variables choose nodes. A node without a pool is in the choice "All" only.
        query = dict(queries())
        tests += [expect(query["Nodes"], one(1), pool="infra"), expect(query["Out"], one(1), pool="infra"),
                  expect(query["Out"], one(1), node="n4|n8"), expect(query["Silent"], one(0), pool="workers"),
                  expect(query["Agents that do not answer"], one(1), pool="infra"),
                  expect(query["Age of needed reboots"], by("node", n4=(NOW - 240) * 60), node="n4"),
                  expect(query["Updated, last day"], one(0), pool="infra"),
                  expect(query["Need a reboot, by pool"], by("pool", infra=1), pool="infra"),
                  expect(query["Memory of the agents"], {}, pool="infra"),
                  expect(query["Forecast: time that is left"], {}, pool="infra")]
        self.assertEqual("", promtool([{"interval": "1m", "input_series": fleet().input_series(),
                                        "promql_expr_test": tests}]))

    def test_a_fleet_that_is_up_to_date(self):
        story = Story(NOW + 1, 60)
        for name in ("n1", "n2"):
            Node(story, name).stay("idle", NOW + 1)
        query = dict(queries())
        tests = [expect(query[title], values) for title, values in (
            ("Out", one(0)), ("Silent", one(0)), ("Waiting", one(0)), ("Degraded", one(0)), ("Need a reboot", one(0)),
            ("Agents that do not answer", one(0)), ("Oldest needed reboot", {}), ("Updated, last day", one(0)), ("Nodes that hold a slot", {}),
            ("Last drain of each node", {}), ("Attempts that failed, last day, by reason", {}), ("Mean time of a drain, last day", {}),
            ("Alerts that fire", {}), ("Nodes by reason", {}))]
        self.assertEqual("", promtool([{"interval": "1m", "input_series": story.input_series(), "promql_expr_test": tests}]))

    def test_a_metric_or_a_label_that_does_not_exist_is_refused(self):
        for query in ("max(haulout_stat)", 'haulout_state{phase="idle"}', "sum by (reason) (haulout_state)",
                      "haulout_drain_duration_seconds", "haulout_state_bucket", "max by (node) (process_open_fds)",
                      "haulout_state * on (zone) group_left () haulout_degraded", 'count(up{pod="a"})'):
            with self.assertRaises(PROGRAM.Unknown, msg=query):
                PROGRAM.metrics_of(query, METRICS)
        self.assertEqual(["haulout_drain_duration_seconds", "up"], PROGRAM.metrics_of(
            'sum by (le) (rate(haulout_drain_duration_seconds_bucket{result="drained"}[5m])) or up', METRICS))
        with self.assertRaises(PROGRAM.Unknown):
            PROGRAM.description({"text": "", "queries": [("sum by (state) (haulout_state)", "{{reason}}")]}, METRICS)

    def test_each_haulout_metric_is_on_it(self):
        shown = " ".join(query for _, query in queries())
        self.assertEqual([], [name for name in METRICS if name.startswith("haulout_") and not re.search(rf"\b{name}", shown)])

    def test_no_panel_covers_another(self):
        taken = set()
        for panel in DASHBOARD["panels"]:
            place = panel["gridPos"]
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
            self.assertEqual(set(), cells & taken, panel["title"])
            self.assertLessEqual(place["x"] + place["w"], 24, panel["title"])
            taken |= cells


if __name__ == "__main__":
    unittest.main()
