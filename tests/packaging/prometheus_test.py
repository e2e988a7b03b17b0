#!/usr/bin/env python3
"""Tests that a real Prometheus reads real agents of a simulated cluster, and that the shipped alert rules and all queries
of the dashboard work on what it has read: prometheus_test.py HAULOUT HAULOUT-DEMO. Needs prometheus in PATH."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request
import uuid

from fleet_story import METRICS, ROOT, RULES

TARGET = {"job", "instance", "node", "exported_node"}
NODES = ["node-1", "node-2"]
# These need an update that has ended, a drain under way, or a day.
MAY_BE_EMPTY = {"Mean time of a drain, last day", "Forecast: time that is left", "Forecast: end", "Nodes by state",
                "Nodes by reason", "Nodes by reason, over time", "Pods that cannot be evicted, by reason",
                "Diagnoses of drains", "Pods of drains, by phase", "Time of drains, last day",
                "Duration of drains, last day", "Degraded nodes by reason", "Attempts that failed, last day, by reason",
                "Trouble in the last day, by reason", "Alerts that fire"}


def open_port(process):
    """Returns the port on which the process listens, or None."""
    try:
        links = [os.readlink(f"/proc/{process.pid}/fd/{each}") for each in os.listdir(f"/proc/{process.pid}/fd")]
        tables = [pathlib.Path(f"/proc/{process.pid}/net/{name}").read_text(encoding="ascii") for name in ("tcp", "tcp6")]
    except FileNotFoundError:
        return None
    sockets = {link.removeprefix("socket:[").removesuffix("]") for link in links if link.startswith("socket:[")}
    for line in "\n".join(tables).splitlines():
        words = line.split()
        if len(words) > 9 and words[3] == "0A" and words[9] in sockets:
            return int(words[1].rpartition(":")[2], 16)
    return None


class Scraped(unittest.TestCase):
    haulout = demo = ""

    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def start(self, name, *command):
        log = open(self.directory / f"{name}.log", "wb")
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        def end():
            process.terminate()
            process.wait()
            log.close()
        self.addCleanup(end)
        process.name = name
        return process

    def until(self, what, ask, *processes):
        """Asks until the answer is something, and returns it. Fails if one of the processes has ended."""
        end = time.monotonic() + 120
        while True:
            answer = ask()
            if answer:
                return answer
            for each in processes:
                if each.poll() is not None:
                    self.fail(f"{each.name} ended before {what}: {(self.directory / f'{each.name}.log').read_text()}")
            if time.monotonic() > end:
                self.fail(f"not within two minutes: {what}")
            time.sleep(0.05)

    def agent(self, node, kubeconfig):
        root = self.directory / node
        for folder in ("run", "etc/haulout", "proc/sys/kernel/random"):
            (root / folder).mkdir(parents=True)
        (root / "proc/sys/kernel/random/boot_id").write_text(f"{uuid.uuid4()}\n")
        (root / "etc/os-release").write_text('ID=demo\nPRETTY_NAME="Demo OS"\n')
        return self.start(node, self.haulout, "agent", "--kubeconfig", kubeconfig, "--node-name", node, "--host-root", root,
                          "--authority", "serviceaccount", "--backend", "file", "--sentinel", "/run/reboot-required",
                          "--reboot-method", "none", "--metrics-address", "127.0.0.1:0",
                          # The nodes of this cluster are not Ready, and such nodes count as unavailable.
                          "--max-unavailable", "3")

    def test_the_runbooks_name_commands_that_exist(self):
        page = (ROOT / "docs/alerts.md").read_text(encoding="utf-8")
        commands = set(re.findall(r"(?:`|    )haulout ([a-z-]+)", page))
        self.assertLess({"status", "explain"}, commands)
        for command in commands:
            run = subprocess.run([self.haulout, command, "--help"], capture_output=True, text=True, check=False)
            self.assertEqual(0, run.returncode, command)
            self.assertIn(f"haulout {command} ", run.stdout)

    def test_a_prometheus_reads_agents(self):
        kubeconfig = self.directory / "kubeconfig"
        cluster = self.start("cluster", self.demo, "--kubeconfig", kubeconfig, "--world", ROOT / "demo/fleet.yaml")
        self.until("the cluster is there", lambda: kubeconfig.exists() and kubeconfig.stat().st_size, cluster)
        agents = {node: self.agent(node, kubeconfig) for node in NODES}
        ports = {node: self.until(f"{node} serves metrics", lambda each=each: open_port(each), each, cluster)
                 for node, each in agents.items()}
        # As with the shipped PodMonitor, each target has the label `node`.
        targets = [{"targets": [f"127.0.0.1:{port}"], "labels": {"node": node}} for node, port in ports.items()]
        configuration = self.directory / "prometheus.yml"
        configuration.write_text(json.dumps({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(RULES)], "scrape_configs": [{"job_name": "haulout", "static_configs": targets}]}))
        server = self.start("prometheus", "prometheus", f"--config.file={configuration}",
                            f"--storage.tsdb.path={self.directory}/data", "--web.listen-address=127.0.0.1:0")
        port = self.until("Prometheus listens", lambda: open_port(server), server)

        def ask(path, **arguments):
            url = f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(arguments)}"
            try:
                with urllib.request.urlopen(url, timeout=10) as answer:
                    return json.load(answer)["data"]
            except urllib.error.HTTPError as error:
                if error.code == 503:  # it starts
                    return None
                self.fail(f"{url}: {error.read().decode()}")

        def query(text):
            text = text.replace("$pool", "default").replace("$node", ".*")
            return [(each["metric"], each["value"][1]) for each in (ask("query", query=text) or {"result": []})["result"]]

        running = (cluster, server, *agents.values())
        self.until("both agents are read", lambda: len(query('up{job="haulout"} == 1')) == 2, *running)
        self.until("both are idle", lambda: len(query('haulout_state{state="idle"} == 1')) == 2, *running)
        version = subprocess.run([self.haulout, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
        info = query("haulout_build_info")
        self.assertEqual(sorted((node, version, "1") for node in NODES),
                         sorted((labels["node"], labels["version"], value) for labels, value in info))

        def evaluated():
            rules = [rule for group in (ask("rules") or {"groups": []})["groups"] for rule in group["rules"]]
            return rules if rules and all(rule["health"] != "unknown" for rule in rules) else None
        rules = self.until("the rules are evaluated", evaluated, *running)
        self.assertEqual([], [(rule["name"], rule.get("lastError")) for rule in rules if rule["health"] != "ok"])
        self.assertEqual(RULES.read_text(encoding="utf-8").count("- alert: "), sum(rule["type"] == "alerting" for rule in rules))
        self.assertEqual([], query('ALERTS{alertstate="firing"}'))

        # What the agents export is what docs/metrics.md has.
        exported = {}
        for labels in ask("series", **{"match[]": '{job="haulout"}'}):
            name = labels.pop("__name__")
            base = name.removesuffix("_bucket").removesuffix("_count").removesuffix("_sum")
            if name not in METRICS and base in METRICS:
                name = base
                labels.pop("le", None)
            exported.setdefault(name, set()).update(set(labels) - TARGET)
        for name, labels in exported.items():
            if name.startswith(("haulout_", "process_")):
                self.assertIn(name, METRICS)
                self.assertEqual(METRICS[name][1] - {"node"}, labels, name)
        # The others are absent without a reason, without a need, and outside of a drain.
        absent = {"haulout_reason_info", "haulout_drain_waiting_pods", "haulout_diagnosis",
                  "haulout_update_needed_since_timestamp_seconds", "haulout_last_drain_duration_seconds",
                  "haulout_last_attempt_timestamp_seconds"}
        self.assertEqual(absent, set(METRICS) - set(exported))

        # Prometheus prefers OpenMetrics. Only that format has units.
        known = ask("targets/metadata", match_target='{node="node-1"}')
        kinds = {each["metric"]: (each["type"], each["unit"]) for each in known}
        self.assertEqual(("histogram", "seconds"), kinds["haulout_drain_duration_seconds"])
        self.assertEqual(("counter", "seconds"), kinds["process_cpu_seconds"])
        self.assertEqual({name.removesuffix("_total") for name in set(METRICS) - absent}, set(kinds))

        # A drain. No program reboots the node afterwards, so it stays drained.
        (self.directory / "node-1/run/reboot-required").touch()
        self.until("node-1 is drained", lambda: query("haulout_last_drain_duration_seconds > 0"), *running)
        ((labels, since),) = query("time() - haulout_update_needed_since_timestamp_seconds")
        ((_, drain),) = query("haulout_last_drain_duration_seconds")
        self.assertEqual("node-1", labels["node"])
        self.assertLess(float(drain), float(since))
        self.assertEqual({"default"}, {labels["pool"] for labels, _ in query("haulout_pool_info")})

        dashboard = json.loads((ROOT / "packaging/grafana/haulout.json").read_text(encoding="utf-8"))
        panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
        for panel in panels:
            for target in panel["targets"]:
                text = target["expr"]
                if panel["title"] in MAY_BE_EMPTY:
                    query(text)
                else:
                    self.until(f"values of {panel['title']}", lambda text=text: query(text), *running)
        of = {panel["title"]: panel["targets"][0]["expr"] for panel in panels}
        self.assertEqual([({}, "2")], query(of["Nodes"]))
        self.assertEqual(sorted(NODES), sorted(labels["node"] for labels, _ in query(of["State and reason of each node"])))

        # A dead agent.
        agents["node-2"].kill()
        self.until("Prometheus has seen that an agent is dead",
                   lambda: query(of["Agents that do not answer"]) == [({}, "1")], cluster, server, agents["node-1"])
        self.assertEqual([({}, "1")], query(of["Nodes"]))


if __name__ == "__main__":
    Scraped.haulout, Scraped.demo = map(os.path.abspath, sys.argv[1:3])
    unittest.main(argv=sys.argv[:1])
