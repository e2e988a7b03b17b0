#!/usr/bin/env python3
"""Tests the parts of the hostile worlds: the API, the judges, which must find violations, and that seeds are repeatable."""
import asyncio
import json
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "hostile"))
import hostile  # noqa: E402
import judge  # noqa: E402
import oddities  # noqa: E402
import worlds  # noqa: E402
from api import Api, Request, route  # noqa: E402
from server import Seen  # noqa: E402


def calm(seed=1, theme="calm"):
    return worlds.make(seed, theme, lambda *_: None)


def ask(world, method, target, body=None):
    request = Request.parse(method, target, json.dumps(body).encode() if body else b"")
    return Api(world.cluster).handle(request, route(request))


def a_run(world, seen=(), code=0, lines=(), views=None, **more):
    return judge.Run(world, list(seen), views or {}, list(lines), code, 1, 0.0, 1.0, **more)


def eviction_of(pod, uid=None):
    options = {"preconditions": {"uid": uid}} if uid else {}
    body = json.dumps({"metadata": {"name": pod["metadata"]["name"]}, "deleteOptions": options}).encode()
    return Seen(0.5, "evict", Request("POST", "", {}, body), "shop", pod["metadata"]["name"], code=201)


class Answers(unittest.TestCase):
    def setUp(self):
        self.world = calm(1, "closed_budget")
        self.pod = next(pod for pod in self.world.cluster.all("pods") if pod["spec"]["nodeName"] == "n1")
        self.path = f"/api/v1/namespaces/shop/pods/{self.pod['metadata']['name']}"

    def test_a_closed_budget_and_a_wrong_uid_refuse(self):
        self.assertEqual(ask(self.world, "POST", self.path + "/eviction", {"metadata": {}}).code, 429)
        self.world.cluster.remove("poddisruptionbudgets", ("shop", self.pod["metadata"]["labels"]["app"]))
        wrong = {"deleteOptions": {"preconditions": {"uid": "x"}}}
        self.assertEqual(ask(self.world, "POST", self.path + "/eviction", wrong).code, 409)
        right = {"deleteOptions": {"preconditions": {"uid": self.pod["metadata"]["uid"]}}}
        self.assertEqual(ask(self.world, "POST", self.path + "/eviction", right).code, 201)
        self.assertIn("deletionTimestamp", json.loads(ask(self.world, "GET", self.path).body)["metadata"])

    def test_lists_select_and_have_pages(self):
        one = json.loads(ask(self.world, "GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1").body)
        self.assertEqual({pod["spec"]["nodeName"] for pod in one["items"]}, {"n1"})
        page = json.loads(ask(self.world, "GET", "/api/v1/nodes?limit=1").body)
        self.assertEqual((len(page["items"]), "continue" in page["metadata"]), (1, True))

    def test_a_patch_of_an_older_revision_conflicts(self):
        stale = {"metadata": {"resourceVersion": "1"}, "spec": {"unschedulable": True}}
        self.assertEqual(ask(self.world, "PATCH", "/api/v1/nodes/n1", stale).code, 409)

    def test_kinds_of_requests(self):
        for method, target, kind in (("GET", "/api/v1/pods?watch=1", "watch pods"), ("GET", "/api/v1/nodes/n1", "get nodes"),
                                     ("PATCH", "/api/v1/nodes/n1/status", "patch nodes/status"),
                                     ("GET", "/api/v1/namespaces/shop", "get namespaces"),
                                     ("POST", "/api/v1/namespaces/a/pods/b/eviction", "evict")):
            self.assertEqual(route(Request.parse(method, target)).kind, kind)


class Judges(unittest.TestCase):
    def setUp(self):
        self.world = calm(3, "closed_budget")
        self.world.expect, self.world.flags = "open", []
        self.pods = {pod["spec"]["nodeName"]: pod for pod in self.world.cluster.all("pods")}

    def judged(self, *seen, **more):
        more.setdefault("code", 1)
        return [verdict.split(":")[0] for verdict in
                judge.verdicts(a_run(self.world, seen, lines=[(0.9, "stderr", "error: no")], **more))]

    def test_an_eviction_without_uid_and_of_another_node(self):
        ours, other = self.pods["n1"], self.pods["n2"]
        self.assertEqual(self.judged(eviction_of(ours, ours["metadata"]["uid"])), [])
        self.assertEqual(self.judged(eviction_of(ours)), ["P2"])
        self.assertEqual(self.judged(eviction_of(ours, "of nobody")), ["P2"])
        self.assertEqual(self.judged(eviction_of(other, other["metadata"]["uid"])), ["P11"])

    def test_a_success_that_is_none(self):
        self.assertEqual(self.judged(code=0), ["P4", "P3"])
        self.world.cluster.change("nodes", ("", "n1"), lambda node: node["spec"].update(unschedulable=True))
        self.assertEqual(self.judged(code=0, views={"n1": (0.5, [self.pods["n1"]], True)}), ["P3"])
        self.assertEqual(self.judged(code=0, views={"n1": (0.5, [], True)}), [])

    def test_crashes_silence_and_hanging(self):
        self.assertEqual(self.judged(code=-6), ["P12"])
        self.assertEqual(self.judged(code=7), ["P12"])
        self.assertEqual(self.judged(code=-9, killed=True, stopped=0.5), ["P7"])
        self.assertEqual([v[:2] for v in judge.verdicts(a_run(self.world, code=1))], ["P8"])

    def test_what_stands_in_the_way_has_to_be_said(self):
        self.world.expect, self.world.obstacle = "told", "stands"
        stands = Seen(0.1, "list pods", Request("GET", "", {}), "", "", "stands")
        quiet = a_run(self.world, [stands], 143, stopped=40.0)
        self.assertTrue(any("P8" in verdict for verdict in judge.verdicts(quiet)))
        told = a_run(self.world, [stands], 143, [(7.0, "stdout", "waiting")], stopped=7.1)
        self.assertEqual(judge.verdicts(told), [])


class Seeds(unittest.TestCase):
    def test_a_seed_repeats_its_world(self):
        for seed in range(1, 60):
            theme = worlds.theme_of(seed)
            one, other = calm(seed, theme), calm(seed, theme)
            self.assertEqual(one.arguments(1), other.arguments(1))
            for mine, others in zip(one.cluster.log, other.cluster.log, strict=True):
                self.assertEqual((mine[:3], mine[3]["metadata"]["uid"]), (others[:3], others[3]["metadata"]["uid"]))

    def test_odd_objects_keep_what_protects_them(self):
        rng = random.Random(1)
        for pod in calm(5).cluster.all("pods") * 50:
            strange = oddities.odd(rng, "pods", pod, rng.random() < 0.5)
            for part in ("name", "namespace", "uid", "ownerReferences", "annotations"):
                self.assertEqual(strange["metadata"].get(part), pod["metadata"].get(part))
            self.assertEqual(strange["spec"]["nodeName"], pod["spec"]["nodeName"])

    def test_worlds_that_are_always_played_exist(self):
        for theme, seed in hostile.ALWAYS:
            self.assertEqual(calm(seed, theme).theme, theme)


if __name__ == "__main__":
    asyncio.set_event_loop(asyncio.new_event_loop())
    unittest.main()
