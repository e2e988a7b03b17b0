"""Stories of fleets as Prometheus records them: the series of agents that go through their states, in the notation of
`promtool test rules`. The labels are those of docs/metrics.md and of the shipped PodMonitor.
"""
import importlib.util
import json
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
RULES = ROOT / "packaging/prometheus/haulout.rules.yaml"
STATES = ["unknown", "idle", "pending", "waiting", "draining", "updating", "ready", "rebooting", "verifying",
          "uncordoning", "soaking", "degraded"]
BUCKETS = [10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400]


def load(path):
    """Loads a program of this tree as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


METRICS = load(ROOT / "packaging/grafana/make_dashboard.py").metric_table((ROOT / "docs/metrics.md").read_text(encoding="utf-8"))


class Series:
    """The samples of one series, one for each scrape. A scrape without an answer has the sample `None`."""

    def __init__(self, length):
        self.samples = [None] * length

    def text(self):
        """Joins equal samples: 1x9 is ten samples of 1; _x9 is nine without a value. Where a series ends, Prometheus
        writes a mark (`stale`), so that queries do not use its last sample."""
        words, start = [], 0
        for end in range(1, len(self.samples) + 1):
            if end == len(self.samples) or self.samples[end] != self.samples[start]:
                value, count = self.samples[start], end - start
                if value is not None:
                    words.append(f"{value:.15g}" if count == 1 else f"{value:.15g}x{count - 1}")
                elif not start:
                    words.append(f"_x{count}")
                else:
                    words += ["stale", f"_x{count - 1}"] if count > 1 else ["stale"]
                start = end
        return " ".join(words)


class Story:
    """A fleet for `length` scrapes, one each `step` seconds."""

    def __init__(self, length, step):
        self.length, self.step, self.series = length, step, {}

    def put(self, name, labels, at, count, value):
        """Gives a series `count` samples from number `at` on: one value, or a function of the number."""
        if name in METRICS or name.rsplit("_", 1)[0] in METRICS:
            kind, known, _ = METRICS[name if name in METRICS else name.rsplit("_", 1)[0]]
            own = set(labels) - {"pod", "job", "instance", "namespace", "container", "endpoint", "exported_node"}
            if name.startswith("process_"):
                own.discard("node")
            if own != known | ({"le"} if kind == "histogram" else set()):
                raise ValueError(f"{name} has the labels {known} on docs/metrics.md, and {own} in the story")
        key = f"{name}{{{','.join(f'{label}={json.dumps(labels[label])}' for label in sorted(labels))}}}"
        series = self.series.setdefault(key, Series(self.length))
        for number in range(at, min(at + count, self.length)):
            series.samples[number] = value(number) if callable(value) else value

    def input_series(self):
        return [{"series": key, "values": series.text()} for key, series in sorted(self.series.items())]


class Node:
    """One node and its agent. Each call of stay() goes on where the one before has ended."""

    def __init__(self, story, name, pool=None, version="0.1.0"):
        self.story, self.name, self.at, self.version = story, name, 0, version
        self.need, self.drained, self.counts = 0, [], {"succeeded": 0, "failed": 0, "given_up": 0}
        # What the record keeps over a reboot.
        self.state, self.since, self.needed_since, self.last_drain, self.last_attempt = None, 0, None, None, None
        self.target = {"job": "haulout/haulout", "instance": f"{name}:9797", "namespace": "haulout", "container": "agent",
                       "endpoint": "metrics", "pod": f"haulout-{name}", "node": name}
        self.pool = pool or ""

    @property
    def labels(self):
        """The labels of each haulout_ metric. The PodMonitor gives each target a label `node`. That of the metric itself,
        which has the same value, is renamed."""
        return {**self.target, "exported_node": self.name}

    def show(self, name, count, value, **labels):
        own = self.labels if name.startswith("haulout_") else self.target
        self.story.put(name, {**own, **labels}, self.at, count, value)

    def stay(self, state, count, reason=None, concern="progress", api=1, back_end=1, slot=None, pods=None, waiting=None,
             diagnoses=()):
        """The agent reports this state in `count` scrapes."""
        self.enter(state, reason)
        self.show("up", count, 1)
        for each in STATES:
            self.show("haulout_state", count, int(each == state), state=each)
        self.show("haulout_state_since_timestamp_seconds", count, self.at * self.story.step)
        self.show("haulout_build_info", count, 1, version=self.version)
        self.show("haulout_pool_info", count, 1, pool=self.pool)
        if self.needed_since is not None:
            self.show("haulout_update_needed_since_timestamp_seconds", count, self.needed_since)
        if self.last_drain is not None:
            self.show("haulout_last_drain_duration_seconds", count, self.last_drain)
        if self.last_attempt is not None:
            how, when = self.last_attempt
            self.show("haulout_last_attempt_timestamp_seconds", count, when, reason=how)
        self.show("haulout_authority_info", count, 1, authority="impersonation")
        self.show("haulout_degraded", count, int(state == "degraded"))
        self.show("haulout_api_up", count, api)
        self.show("haulout_backend_up", count, back_end)
        if back_end:
            self.show("haulout_reboot_required", count, self.need)
        held = state not in ("unknown", "idle", "pending", "waiting") if slot is None else slot
        self.show("haulout_slot_held", count, int(held))
        if reason:
            self.show("haulout_reason_info", count, 1, state=state, reason=reason, concern=concern)
        for phase in ("queued", "waiting", "terminating", "vanished", "skipped"):
            self.show("haulout_drain_pods", count, (pods or {}).get(phase, 0), phase=phase)
        for why, number in (waiting or {}).items():
            self.show("haulout_drain_waiting_pods", count, number, reason=why)
        for code, of_concern in diagnoses:
            self.show("haulout_diagnosis", count, 1, code=code, concern=of_concern)
        for result, number in self.counts.items():
            self.show("haulout_updates_total", count, number, result=result)
        for limit in (*BUCKETS, None):
            within = sum(limit is None or drain <= limit for drain in self.drained)
            self.show("haulout_drain_duration_seconds_bucket", count, within, result="drained", le=f"{limit}.0" if limit else "+Inf")
        self.at += count
        return self

    def enter(self, state, reason):
        """Changes what the record keeps when the node enters a state."""
        now, before = self.at * self.story.step, self.state
        if state == before or state == "unknown":  # an agent that starts does not know its state yet
            return
        if state in ("pending", "waiting", "draining") and self.needed_since is None:
            self.needed_since = now
        if state in ("idle", "uncordoning", "soaking"):
            self.needed_since = None
        if before == "draining" and state in ("updating", "ready"):
            self.last_drain = now - self.since
        if before == "verifying" and state == "uncordoning":
            self.last_attempt = "Updated", now
        if before in ("draining", "updating", "ready", "rebooting", "verifying") and state in ("degraded", "pending"):
            self.last_attempt = reason, now
        self.state, self.since = state, now

    def silent(self, count, up=0):
        """No scrape has an answer: the machine reboots or the agent is dead. With up=None its pod does not exist."""
        if up is not None:
            self.show("up", count, up)
        self.at += count
        return self

    def boots(self, minutes, up=0):
        """The machine is down, and its agent begins anew."""
        self.counts, self.drained = dict.fromkeys(self.counts, 0), []
        return self.silent(minutes, up)

    def exists(self):
        """kube-state-metrics shows the Node in the whole story."""
        self.story.put("kube_node_info", {"job": "kube-state-metrics", "instance": "ksm:8080", "node": self.name}, 0,
                       self.story.length, 1)
        return self


def promtool(tests, evaluation_interval="1m"):
    """Runs `promtool test rules` with the shipped rules. Returns its output, which is empty if all tests pass."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory, "story.yaml")
        # YAML includes JSON.
        path.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": evaluation_interval,
                                    "tests": tests}), encoding="utf-8")
        run = subprocess.run(["promtool", "test", "rules", str(path)], capture_output=True, text=True, check=False)
        return "" if run.returncode == 0 else run.stdout + run.stderr
