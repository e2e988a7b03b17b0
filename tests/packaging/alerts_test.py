#!/usr/bin/env python3
"""Tests the shipped alert rules on stories of fleets: in one each alert fires, in the other one none does. Tests that
docs/alerts.md has a section for each alert. Needs promtool in PATH."""
import pathlib
import re
import unittest

from fleet_story import METRICS, ROOT, RULES, STATES, Node, Story, promtool

DAY = 24 * 60
RULES_TEXT = RULES.read_text(encoding="utf-8")
# name -> the text of its rule
ALERTS = {text.split("\n", 1)[0]: text for text in re.split(r"- alert: ", RULES_TEXT)[1:]}
EVERYWHERE = {"expr": 'count_over_time(ALERTS{alertstate="firing"}[20d])'}


def labels_of(alert, **labels):
    return "{" + ",".join(f'{name}="{value}"' for name, value in {"alertname": alert, **labels}.items()) + "}"


def fires(at, *alerts):
    """At this minute exactly these alerts fire."""
    samples = [{"labels": "ALERTS" + alert.replace("{", '{alertstate="firing",'), "value": 1} for alert in alerts]
    return {"expr": 'ALERTS{alertstate="firing"}', "eval_time": f"{at}m", "exp_samples": samples}


def said_of(alert, labels, summary, description, at=130):
    """At this minute the alert fires once, with these texts."""
    annotations = {"runbook_url": f"docs/alerts.md#{alert.lower()}", "summary": summary, "description": description}
    return {"eval_time": f"{at}m", "alertname": alert,
            "exp_alerts": [{"exp_labels": {"severity": "warning", **labels}, "exp_annotations": annotations}]}


def update(node, drain=12, down=4, up=0, soak=10):
    """An update that goes well. While the machine reboots, it does not answer."""
    node.need = 1
    node.stay("pending", 30, "OutsideWindow", "waiting")
    node.stay("waiting", 45, "WaitingForSlot", "waiting")
    node.stay("draining", drain, "Evicting", pods={"queued": 3, "waiting": 1, "terminating": 2, "vanished": 4, "skipped": 5},
              waiting={"BlockedByBudget": 1}, diagnoses=[("OnlyReplicaEvicted", "waiting")])
    node.stay("updating", 5, "Updating")
    node.stay("ready", 1)
    node.stay("rebooting", 1)
    node.boots(down, up)
    node.stay("unknown", 1, slot=True, back_end=0)
    node.need = 0
    node.stay("verifying", 3, "NodeNotReady")
    node.stay("uncordoning", 1, "Uncordoning")
    node.counts["succeeded"] = 1
    node.stay("soaking", soak, "Soaking")
    return node


class Alerts(unittest.TestCase):
    maxDiff = None

    def check(self, story, expressions, rules=(), interval="1m"):
        said = promtool([{"interval": f"{story.step}s", "input_series": story.input_series(),
                          "promql_expr_test": expressions, "alert_rule_test": list(rules)}], interval)
        self.assertEqual("", said)

    def test_an_update_that_goes_well_fires_nothing(self):
        story = Story(DAY, 60)
        names = [f"n{number}" for number in range(1, 9)]
        for number, name in enumerate(names):
            # A DaemonSet's pod keeps its address while the machine is down, or does not exist; n8 takes long to boot.
            node = Node(story, name, pool="workers").exists()
            node.stay("idle", 20 + 40 * number)
            update(node, drain=10 + 5 * number, down=25 if name == "n8" else 4, up=0 if number % 2 else None,
                   soak=90 if name == "n1" else 10)
            node.stay("idle", 60)
            node.silent(1)  # a scrape that takes too long
            node.stay("idle", 100)
            node.silent(6, up=None)  # the DaemonSet replaces the agent
            node.version = "0.2.0"
            node.stay("idle", DAY)
        # This node was removed while its agent was idle.
        Node(story, "gone").stay("idle", 300)
        states = set()
        for key in story.series:
            states |= set(re.findall(r'haulout_state\{.*state="(\w+)"', key)) if 1 in story.series[key].samples else set()
        self.assertEqual(set(STATES) - {"degraded"}, states)
        self.check(story, [{**EVERYWHERE, "eval_time": f"{DAY - 1}m", "exp_samples": []},
                           {"expr": "count(haulout_build_info)", "eval_time": f"{DAY - 1}m",
                            "exp_samples": [{"labels": "{}", "value": len(names)}]}])

    def test_each_alert_fires_when_it_should(self):
        story = Story(DAY, 60)
        # Two do not come back from their reboot: of one the pod still exists. Two others have a dead agent.
        for name, updates, up in (("lost", True, 0), ("gone", True, None), ("down", False, 0), ("dead", False, None)):
            node = Node(story, name).exists()
            if updates:
                node.need = 1
                node.stay("draining", 10, "Evicting").stay("ready", 1).stay("rebooting", 2)
            else:
                node.stay("idle", 13)
            node.silent(DAY, up)
        # Their agents die while they keep their slots.
        Node(story, "soaked").exists().stay("soaking", 13, "Soaking").silent(DAY, None)
        Node(story, "broken").exists().stay("idle", 10).stay("degraded", 3, "RolledBack").silent(DAY, None)
        # The machine was lost in its update, and the Node deleted.
        Node(story, "deleted").stay("rebooting", 13).silent(DAY, None)
        Node(story, "failed").stay("idle", 5).stay("degraded", DAY, "RolledBack", "trouble")
        Node(story, "stuck").stay("draining", DAY, "Evicting")
        Node(story, "soaks").stay("soaking", DAY, "ConditionNotMet")
        Node(story, "trouble").stay("pending", DAY, "PauseUnknown", "trouble")
        Node(story, "blocked").stay("draining", 100, "BlockedByBudget", "waiting",
                                    diagnoses=[("BudgetNeverAllows", "trouble")]).stay("idle", DAY)
        Node(story, "blind").stay("idle", DAY, back_end=0)
        Node(story, "alone").stay("idle", DAY, api=0)
        down = labels_of("HauloutAgentDown", severity="warning", **Node(story, "down").target)
        lost_target = labels_of("HauloutAgentDown", severity="warning", **Node(story, "lost").target)
        degraded = labels_of("HauloutDegraded", severity="warning", **Node(story, "failed").labels)
        unknown = labels_of("HauloutNeedUnknown", severity="warning", **Node(story, "blind").labels)
        cut_off = labels_of("HauloutCutOff", severity="warning", **Node(story, "alone").labels)
        never_ends = labels_of("HauloutDrainNeverEnds", severity="warning", node="blocked", code="BudgetNeverAllows")
        lost = [labels_of("HauloutAgentLost", severity="critical", node=name) for name in ("lost", "gone", "soaked", "broken")]
        soaks = labels_of("HauloutSoakHeldUp", severity="warning", node="soaks", reason="ConditionNotMet")
        trouble = labels_of("HauloutTrouble", severity="warning", node="trouble", reason="PauseUnknown")
        missing = labels_of("HauloutAgentMissing", severity="warning", node="dead")
        stuck = labels_of("HauloutStuck", severity="warning", node="stuck")
        after_half_an_hour = [degraded, never_ends, cut_off]
        self.check(story, [
            fires(4), fires(9), fires(11, degraded, never_ends), fires(29, degraded, never_ends),
            fires(31, *after_half_an_hour), fires(42, *after_half_an_hour),
            fires(45, *after_half_an_hour, down, lost_target, *lost), fires(59, *after_half_an_hour, down, lost_target, *lost),
            fires(62, *after_half_an_hour, down, lost_target, *lost, soaks, trouble, unknown),
            fires(80, *after_half_an_hour, down, lost_target, *lost, soaks, trouble, unknown, missing),
            # The drain of `blocked` has ended. `stuck` has been in its state for more than two hours.
            fires(130, degraded, cut_off, down, lost_target, *lost, soaks, trouble, unknown, missing, stuck),
        ], [
            said_of("HauloutAgentMissing", {"node": "dead"}, "Node dead exists, and its agent has reported nothing for an hour.",
                    "If the agent does not run, its node gets no updates. Check whether a pod of the agent runs on the node."),
            said_of("HauloutNeedUnknown", Node(story, "blind").labels, "It is unknown whether node blind needs a reboot.",
                    "The back end (usually the operating system's update tool) gives no usable answer. Run haulout agent "
                    "--check on the node to see why."),
            said_of("HauloutCutOff", Node(story, "alone").labels,
                    "The agent of node alone gets no answer from the API server.",
                    "Check the API server and the connection of the node to it. The agent starts nothing until the server "
                    "answers, and then continues by itself."),
        ])

    def test_waits_for_days_and_overdue(self):
        step = 240
        story = Story(16 * DAY * 60 // step, step)
        waits, held, updated, rolled_back, late = [
            Node(story, name) for name in ("waits", "held", "updated", "rolled-back", "late")]
        waits.need = held.need = updated.need = rolled_back.need = 1
        rolled_back.stay("idle", story.length, "RolledBack", "waiting")
        # Prometheus knows `late` since a day only, and it needs an update that needs no reboot. The record knows more.
        late.silent(15 * DAY // 4, up=None)
        late.needed_since = 0
        late.stay("pending", story.length, "OutsideWindow", "waiting")
        waits.stay("waiting", story.length, "WaitingForSlot", "waiting")
        held.stay("pending", story.length, "Paused", "waiting")
        updated.stay("pending", 2 * DAY // 4, "OutsideWindow", "waiting")
        updated.need = 0
        updated.stay("idle", story.length)
        waits_for_days = labels_of("HauloutWaitsForDays", severity="info", node="waits")
        overdue = [labels_of("HauloutUpdateOverdue", severity="info", node=name)
                   for name in ("waits", "held", "rolled-back", "late")]
        # An alert about nodes that wait must not close their gate: they would wait for its end.
        page = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
        gate = re.search(r"^\| `--prometheus-query` \| PromQL \| `([^`]+)`", page, re.M).group(1)
        self.check(story, [fires(3 * DAY - 8), fires(3 * DAY + 8, waits_for_days), fires(14 * DAY - 8, waits_for_days),
                           fires(14 * DAY + 8, waits_for_days, *overdue[:3]),
                           fires(15 * DAY + 8, waits_for_days, *overdue),
                           {"expr": gate, "eval_time": f"{14 * DAY + 8}m", "exp_samples": []}],
                   [{"eval_time": f"{14 * DAY + 8}m", "alertname": "HauloutUpdateOverdue", "exp_alerts": [
                       {"exp_labels": {"severity": "info", "node": name},
                        "exp_annotations": {
                            "runbook_url": "docs/alerts.md#hauloutupdateoverdue",
                            "summary": f"Node {name} has needed a reboot or an update for two weeks.",
                            "description": "Its label haulout.dev/reason shows which gate is closed, or what the node waits "
                                           "for."}} for name in ("waits", "held", "rolled-back")]}], "4m")

    def test_no_agent_at_all(self):
        story = Story(120, 60)
        Node(story, "n1").stay("idle", 20).silent(120, up=None)
        no_agents = labels_of("HauloutNoAgents", severity="warning")
        self.check(story, [fires(49), fires(51, no_agents)], [
            said_of("HauloutNoAgents", {}, "Prometheus has had no metrics of any agent for half an hour.",
                    "No node gets updates, or Prometheus does not find the agents. Until it does, none of the alerts about a "
                    "node can fire.", at=56)])

    def test_every_alert_is_in_a_story(self):
        here = pathlib.Path(__file__).read_text(encoding="utf-8")
        self.assertEqual([], [name for name in ALERTS if f'labels_of("{name}"' not in here])

    def test_every_alert_has_a_runbook_and_every_runbook_an_alert(self):
        page = (ROOT / "docs/alerts.md").read_text(encoding="utf-8")
        sections = re.findall(r"^## (Haulout\w+)$", page, re.M)
        self.assertEqual(list(ALERTS), sections)
        for name, text in ALERTS.items():
            self.assertEqual([f"docs/alerts.md#{name.lower()}"], re.findall(r"runbook_url: (\S+)", text), name)
        for name, text in zip(sections, re.split(r"^## Haulout\w+$", page, flags=re.M)[1:]):
            severity = re.search(r"severity: (\w+)", ALERTS[name]).group(1)
            self.assertIn(f"Severity: {severity}.", text, name)
            for part in ("**Meanwhile.**", "**First.**", "**Causes.**", "**Silence.**"):
                self.assertEqual(1, text.count(part), f"{name}: {part}")
            self.assertIn(f"alertname={name}", text)

    def test_alerts_name_only_metrics_that_exist(self):
        rules = re.sub(r"^\s*#.*$", "", RULES_TEXT, flags=re.M)
        used = set(re.findall(r"\bhaulout_\w+(?!\S*:)", rules.replace("node:haulout_updating:max", "")))
        self.assertEqual(set(), used - set(METRICS))


if __name__ == "__main__":
    unittest.main()
