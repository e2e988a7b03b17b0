#!/usr/bin/env python3
"""Makes the Grafana dashboard haulout.json. Its queries may name only metrics and labels of docs/metrics.md, and the
descriptions of its panels have the help texts of that page.

  make_dashboard.py           writes haulout.json
  make_dashboard.py --check   fails if haulout.json is not what this program would write
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DASHBOARD = ROOT / "packaging/grafana/haulout.json"

# Labels that no metric has of itself: Prometheus adds them to everything that it reads from one agent.
TARGET_LABELS = {"job", "instance"}
# Series that Prometheus makes itself.
OF_PROMETHEUS = {"up": set(), "ALERTS": {"alertname", "alertstate", "severity"}}
GROUPING = {"by", "on"}
WORDS = GROUPING | {"and", "or", "unless", "count", "sum", "max", "min", "avg", "time", "timestamp", "vector", "bool",
                    "group_left", "rate", "increase", "resets", "histogram_quantile", "last_over_time", "topk",
                    "max_over_time", "min_over_time", "sum_over_time"}


class Unknown(Exception):
    """A query names something that does not exist."""


def metric_table(page):
    """Returns name -> (type, labels, help text) of the metrics on docs/metrics.md."""
    table = {}
    for line in page.splitlines():
        row = re.fullmatch(r"\| `(\w+)` \| (gauge|counter|histogram) \| ([^|]*) \| (.*) \|", line)
        if row:
            name, kind, labels, text = row.groups()
            of_node = {"node"} if name.startswith("haulout_") else set()
            table[name] = kind, set(re.findall(r"`(\w+)`", labels)) | of_node, re.sub(r"\[(.*?)\]\(.*?\)", r"\1", text)
    return table


def metrics_of(query, table):
    """Returns the metrics of a query, in order. Raises Unknown if one, or a label of the query, does not exist."""
    found, known, asked = [], set(TARGET_LABELS), set()
    rest = re.sub(r"\[[\w:]+\]", "", query)  # ranges
    for words in re.findall(r"\b(?:by|on|group_left) \(([^)]*)\)", rest):
        asked |= set(re.findall(r"\w+", words))
    rest = re.sub(r"\b(by|on|group_left) \([^)]*\)", "", rest)
    for name, braces in re.findall(r"([A-Za-z_]\w*)(\{[^}]*\})?", rest):
        if name in WORDS and not braces:
            continue
        base = re.sub(r"_(bucket|count|sum)$", "", name)
        if name in OF_PROMETHEUS:
            labels = OF_PROMETHEUS[name] | {"node"}
        elif name in table and table[name][0] != "histogram":
            labels = table[name][1]
        elif base != name and base in table and table[base][0] == "histogram":
            labels = table[base][1] | ({"le"} if name.endswith("_bucket") else set())
            name = base
        else:
            raise Unknown(f"there is no metric {name}: {query}")
        for label in re.findall(r"(\w+)\s*[=!]", re.sub(r'"[^"]*"', "", braces or "")):
            if label not in labels | TARGET_LABELS:
                raise Unknown(f"{name} has no label {label}: {query}")
        known |= labels
        if name not in found:
            found.append(name)
    for label in asked - known:
        raise Unknown(f"no metric of the query has the label {label}: {query}")
    return found


# -- the queries. Each agent exports the series of its own node. Where an agent was replaced, the series of both pods may
# exist for some minutes, so each query first reduces them to one for each node.

SELECTED = 'node=~"$node"'
# Excludes the nodes of other pools than the chosen one. With the choice "All" it excludes nothing, not even a node of which
# nobody knows the pool.
IN_POOL = 'unless on (node) haulout_pool_info{pool!~"$pool"}'
# The same for series of the last day. Some of them have ended, and at its start an agent knew no pool.
WAS_IN_POOL = 'unless on (node) last_over_time(haulout_pool_info{pool!~"$pool",pool!=""}[1d])'


def each(metric, matchers="", labels="node"):
    """One value for each node, or for each node and the other labels."""
    return f"(max by ({labels}) ({metric}{{{matchers + ',' if matchers else ''}{SELECTED}}}) {IN_POOL})"


def increase(metric, time, matchers="", function="increase"):
    """The increase of a counter for each agent and each of its labels."""
    return f"({function}({metric}{{{matchers + ',' if matchers else ''}{SELECTED}}}[{time}]) {WAS_IN_POOL})"


# In these states the node is cordoned by its agent.
OUT_STATES = 'state=~"draining|updating|ready|rebooting|verifying|uncordoning"'
WAITS = 'state=~"pending|waiting"'
IS_DRAINING = 'state="draining"'
# In these states a node may hold a slot.
HOLDER_STATES = 'state=~"draining|updating|ready|rebooting|verifying|uncordoning|soaking|degraded"'
POOL_IS_KNOWN = 'pool!=""'
IS_DEGRADED = 'state="degraded"'
REPORTS = each("haulout_state")
NEED = each("haulout_reboot_required")
# A node that reboots exports nothing. What it has exported last shows that it is out. A dead one is out for an hour.
OUT = f"(last_over_time(({each('haulout_state', OUT_STATES)})[1h:1m]) == 1)"
AGE_OF_NEED = f"(time() - {each('haulout_update_needed_since_timestamp_seconds')})"
FAILED = each("haulout_last_attempt_timestamp_seconds", 'reason!~"Updated|NotNeeded"', "node, reason")
UPDATED = each("haulout_last_attempt_timestamp_seconds", 'reason="Updated"')
LEFT = f"(count((last_over_time(({NEED})[1h:1m]) == 1) or on (node) {OUT}) or vector(0))"
DONE = f"count({UPDATED} > time() - 6 * 3600)"
SINCE_FIRST = f"(time() - min_over_time(timestamp(count({each('haulout_state', OUT_STATES)} == 1))[6h:5m]))"
FORECAST = f"{LEFT} * {SINCE_FIRST} / {DONE}"
IN_STATE = f"(time() - {each('haulout_state_since_timestamp_seconds')})"
REASONS = each("haulout_reason_info", labels="node, state, reason, concern")
DRAINING = f"({each('haulout_state', IS_DRAINING)} == 1)"
DRAINED_IN = f"({each('haulout_state', IS_DRAINING)})[1d:1m]"
DRAINS = increase("haulout_drain_duration_seconds_bucket", "1d", 'result="drained"')
LAST_DRAIN = each("haulout_last_drain_duration_seconds")
# A node that reboots keeps its slot, and a dead one keeps it for good. So these use what the node has exported last.
HOLDS_SLOT = f"(last_over_time(({each('haulout_slot_held')})[1h:2m]) == 1)"
STATE_OF_HOLDER = f"(last_over_time(({each('haulout_state', HOLDER_STATES, 'node, state')})[1h:2m]) == 1)"
HELD_FOR = f"(time() - last_over_time(({each('haulout_state_since_timestamp_seconds')})[1h:2m]))"
# The pool of each node, one for each, also if it was in another pool within the hour.
POOL = f"topk by (node) (1, last_over_time(({each('haulout_pool_info', POOL_IS_KNOWN, 'node, pool')})[1h:1m]))"

RED, ORANGE, GREEN = "red", "orange", "green"


def stat(title, text, query, unit="short", width=4, warn=None, no_value=None):
    return {"type": "stat", "title": title, "text": text, "queries": [(query, "")], "unit": unit, "width": width,
            "height": 4, "warn": warn, "no_value": no_value}


def graph(title, text, queries, unit="short", width=12, stacked=False):
    return {"type": "timeseries", "title": title, "text": text, "queries": queries, "unit": unit, "width": width,
            "height": 8, "stacked": stacked}


def bars(title, text, query, legend, unit="short", width=8, no_value=None):
    return {"type": "bargauge", "title": title, "text": text, "queries": [(query, legend)], "unit": unit, "width": width,
            "height": 8, "no_value": no_value}


def table_of(title, text, query, value, unit="s", width=24):
    return {"type": "table", "title": title, "text": text, "queries": [(query, "")], "unit": unit, "width": width,
            "height": 9, "value": value}


PANELS = [
    "The fleet",
    stat("Nodes", "Nodes whose agents report.", f"count({REPORTS})"),
    stat("Out", "Nodes that are cordoned for their update. A node that reboots reports nothing; it counts for an hour.",
         f"count({OUT}) or vector(0)"),
    stat("Waiting", "Nodes that need an update and wait for a gate or for a slot.",
         f"sum({each('haulout_state', WAITS)})"),
    stat("Degraded", "Nodes whose update failed. Each needs a person.", f"sum({each('haulout_degraded')})", warn=RED),
    stat("Silent", "Nodes that are out and report nothing now: they reboot, or they have not come back.",
         f"count({OUT} unless on (node) {REPORTS}) or vector(0)", warn=ORANGE),
    stat("Agents that do not answer", "Agents that Prometheus knows and cannot read.",
         f'count(up{{job=~".*haulout.*"}} == 0 {WAS_IN_POOL}) or vector(0)', warn=ORANGE),
    stat("Need a reboot", "Nodes whose operating system needs a reboot.", f"sum({NEED})"),
    stat("Oldest needed reboot", "For how long a node has needed a reboot or an update.", f"max({AGE_OF_NEED})", unit="s",
         no_value="none"),
    stat("Updated, last day", "Nodes whose last update ended well in the last day.",
         f"count({UPDATED} > time() - 86400) or vector(0)"),
    stat("Mean time of a drain, last day", "Of the nodes that were updated in the last day.",
         f"avg({LAST_DRAIN} and on (node) ({UPDATED} > time() - 86400))", unit="s", no_value="none"),
    stat("Forecast: time that is left", "The nodes that are left, at the speed since the first update of the last six "
         "hours. Times in which no window is open are not part of it.", FORECAST, unit="s", no_value="no node is done"),
    stat("Forecast: end", "The end of the roll-out if updates go on as in the last six hours, without a pause.",
         f"(time() + {FORECAST}) * 1000", unit="dateTimeAsIso", no_value="no node is done"),
    graph("Nodes by state", "Silent nodes have left a state in which they were cordoned.",
          [(f"sum by (state) ({each('haulout_state', labels='node, state')}) > 0", "{{state}}"),
           (f"count({OUT} unless on (node) {REPORTS})", "silent")], stacked=True),
    graph("Needed reboots and held slots", "", [(f"sum({NEED})", "need a reboot"),
                                                (f"sum({each('haulout_slot_held')})", "hold a slot")]),
    table_of("State and reason of each node", "For how long each node has been in its state.",
             f"{REASONS} * on (node) group_left () {IN_STATE} or "
             f"({each('haulout_state', labels='node, state')} == 1 unless on (node) {REASONS}) * on (node) group_left () "
             f"{IN_STATE}", "in this state for"),
    "What blocks",
    bars("Nodes by reason", "Why nodes do not go on. docs/reasons.md has what to do.",
         f"count by (reason, concern) ({REASONS})", "{{reason}} ({{concern}})", no_value="no node waits"),
    bars("Pods that cannot be evicted, by reason", "haulout explain NODE names these pods and what holds them.",
         f"sum by (reason) ({each('haulout_drain_waiting_pods', labels='node, reason')})", "{{reason}}", no_value="none"),
    bars("Diagnoses of drains", "haulout explain NODE has their texts.",
         f"sum by (code, concern) ({each('haulout_diagnosis', labels='node, code, concern')})", "{{code}} ({{concern}})",
         no_value="none"),
    table_of("Nodes that hold a slot", "Nodes with the reason WaitingForSlot wait for these. A silent node is shown for an "
             "hour, with the state that it had at most two minutes before.",
             f"{STATE_OF_HOLDER} * on (node) group_left () {HELD_FOR} and on (node) {HOLDS_SLOT}", "in this state for",
             width=12),
    bars("Need a reboot, by pool", "", f"count by (pool) ({POOL} and on (node) ({NEED} == 1))", "{{pool}}", width=6,
         no_value="none"),
    bars("Out, by pool", "", f"count by (pool) ({POOL} and on (node) {OUT})", "{{pool}}", width=6, no_value="none"),
    bars("Age of needed reboots", "For how long each node has needed a reboot or an update: the 25 oldest.",
         f"topk(25, {AGE_OF_NEED})", "{{node}}", unit="s", width=12, no_value="none"),
    graph("Nodes by reason, over time", "",
          [(f"count by (reason, concern) ({REASONS})", "{{reason}} ({{concern}})")], stacked=True),
    "Drains",
    graph("Pods of drains, by phase", "Only nodes that drain now.",
          [(f"sum by (phase) ({each('haulout_drain_pods', labels='node, phase')} and on (node) {DRAINING})", "{{phase}}")],
          width=8, stacked=True),
    bars("Time of drains, last day", "How long each node was draining, in all its drains.",
         f"sum_over_time({DRAINED_IN}) * 60 > 0", "{{node}}", unit="s", no_value="none"),
    graph("Duration of drains, last day", "A reboot ends the agent. So a drain counts here only if Prometheus has read "
          "the metrics between the end of the drain and the reboot.",
          [(f"histogram_quantile({share}, sum by (le) ({DRAINS}))", name)
           for share, name in (("0.5", "half of them, at most"), ("0.9", "nine of ten, at most"))], unit="s", width=8),
    bars("Last drain of each node", "The 25 longest. This is exact, also if the node has rebooted since.",
         f"topk(25, {LAST_DRAIN})", "{{node}}", unit="s", no_value="none"),
    graph("Evictions", "", [(f"sum by (result) ({increase('haulout_evictions_total', '5m', function='rate')})",
                             "{{result}}")], unit="reqps", width=8),
    graph("Updates that ended, last day", "A result counts only if Prometheus has read the metrics before and after it.",
          [(f"sum by (result) ({increase('haulout_updates_total', '1d')})", "{{result}}")], width=8),
    "Failures",
    bars("Degraded nodes by reason", "Why updates failed.",
         f"count by (reason) ({each('haulout_reason_info', IS_DEGRADED, 'node, reason')})",
         "{{reason}}", width=6, no_value="none"),
    bars("Attempts that failed, last day, by reason", "Nodes whose last attempt failed in the last day. haulout explain NODE "
         "has the attempts before it.", f"count by (reason) ({FAILED} > time() - 86400)", "{{reason}}", width=6,
         no_value="none"),
    bars("Trouble in the last day, by reason", "Nodes that have shown a reason that may not end without a person.",
         "count by (reason) (max by (node, reason) (max_over_time("
         f'haulout_reason_info{{concern="trouble",{SELECTED}}}[1d])) {WAS_IN_POOL})', "{{reason}}", width=6, no_value="none"),
    bars("Alerts that fire", "These need packaging/prometheus/haulout.rules.yaml. docs/alerts.md has what to do.",
         'count by (alertname) (ALERTS{alertname=~"Haulout.*",alertstate="firing"})', "{{alertname}}", width=6,
         no_value="none"),
    "The agents",
    bars("Agents by version", "", f"count by (version) ({each('haulout_build_info', labels='node, version')})", "{{version}}"),
    bars("Agents by authority", "", f"count by (authority) ({each('haulout_authority_info', labels='node, authority')})",
         "{{authority}}"),
    graph("Agents without an answer", "From the API server, or from the operating system's update tool.",
          [(f"count(({each('haulout_api_up')}) == 0) or vector(0)", "API server"),
           (f"count(({each('haulout_backend_up')}) == 0) or vector(0)", "back end")], width=8),
    graph("Requests to the API server", "",
          [(f"sum by (code) ({increase('haulout_api_requests_total', '5m', function='rate')})", "{{code}}")], unit="reqps",
          width=8),
    graph("Events of the Nodes", "",
          [(f"sum by (result) ({increase('haulout_events_total', '5m', function='rate')})", "{{result}}")], unit="reqps",
          width=8),
    graph("Memory of the agents", "",
          [(f'{function}(process_resident_memory_bytes{{job=~".*haulout.*"}} {WAS_IN_POOL})', name)
           for function, name in (("max", "largest"), ("avg", "mean"))], unit="bytes", width=8),
]

SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def description(panel, table):
    lines = [panel["text"]] if panel["text"] else []
    names = []
    for query, legend in panel["queries"]:
        found = metrics_of(query, table)
        known = set(TARGET_LABELS).union(*(table[name][1] if name in table else OF_PROMETHEUS[name] | {"node"} for name in found))
        for label in re.findall(r"\{\{(\w+)\}\}", legend):
            if label not in known:
                raise Unknown(f"the legend {legend} has a label that the query lacks: {query}")
        chosen = metrics_of(query.replace(IN_POOL, "").replace(WAS_IN_POOL, ""), table)
        names += [name for name in chosen if name in table and name not in names]
    return "\n\n".join(lines + [f"{name}: {table[name][2]}" for name in names])


def target(number, query, legend, panel):
    instant = panel["type"] != "timeseries"
    made = {"refId": chr(ord("A") + number), "datasource": SOURCE, "editorMode": "code", "expr": query,
            "instant": instant, "range": not instant, "format": "table" if panel["type"] == "table" else "time_series"}
    if legend:
        made["legendFormat"] = legend
    return made


def look(panel):
    """The options of a panel that depend on its type."""
    kind = panel["type"]
    custom, overrides = {}, []
    steps = [{"color": GREEN, "value": None}]
    if kind == "timeseries":
        custom = {"lineWidth": 1, "fillOpacity": 40 if panel["stacked"] else 0,
                  "stacking": {"group": "A", "mode": "normal" if panel["stacked"] else "none"}}
        options = {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
                   "tooltip": {"mode": "multi", "sort": "desc"}}
    elif kind == "table":
        overrides = [{"matcher": {"id": "byName", "options": "Value"},
                      "properties": [{"id": "displayName", "value": panel["value"]}, {"id": "unit", "value": panel["unit"]}]}]
        options = {"showHeader": True, "cellHeight": "sm", "frameIndex": 0, "sortBy": [{"displayName": panel["value"], "desc": True}]}
    else:
        reduce = {"values": False, "calcs": ["lastNotNull"], "fields": ""}
        if panel.get("warn"):
            steps.append({"color": panel["warn"], "value": 1})
        if kind == "stat":
            options = {"reduceOptions": reduce, "colorMode": "value", "graphMode": "none", "textMode": "auto",
                       "justifyMode": "auto", "orientation": "auto", "wideLayout": True, "showPercentChange": False,
                       "percentChangeColorMode": "standard"}
        else:
            options = {"reduceOptions": reduce, "displayMode": "basic", "orientation": "horizontal", "valueMode": "color",
                       "showUnfilled": True, "namePlacement": "auto", "sizing": "auto", "minVizWidth": 8,
                       "minVizHeight": 16, "maxVizHeight": 300,
                       "legend": {"displayMode": "list", "placement": "bottom", "showLegend": False, "calcs": []}}
    defaults = {"unit": panel["unit"], "min": 0, "thresholds": {"mode": "absolute", "steps": steps}}
    if panel["unit"] in ("dateTimeAsIso",) or kind == "table":
        del defaults["min"]
    if kind == "table":
        defaults["unit"] = "short"
    if panel.get("no_value"):
        defaults["noValue"] = panel["no_value"]
    if custom:
        defaults["custom"] = custom
    made = {"fieldConfig": {"defaults": defaults, "overrides": overrides}, "options": options}
    if kind == "table":
        made["transformations"] = [{"id": "organize", "options": {"excludeByName": {"Time": True}, "indexByName": {},
                                                                  "renameByName": {}}}]
    return made


def choice(name, label, query):
    """A variable with which a person chooses what the dashboard shows."""
    return {"name": name, "label": label, "type": "query", "datasource": SOURCE, "definition": query,
            "query": {"query": query, "refId": name}, "refresh": 2, "sort": 1, "regex": "", "multi": True,
            "includeAll": True, "allValue": ".*", "hide": 0, "skipUrlSync": False, "options": [],
            "current": {"selected": True, "text": ["All"], "value": ["$__all"]}}


def dashboard(page):
    table = metric_table(page)
    if not table:
        raise Unknown("docs/metrics.md has no table of metrics")
    panels, x, y, height = [], 0, 0, 0
    for number, panel in enumerate(PANELS, 1):
        width = 24 if isinstance(panel, str) else panel["width"]
        if x + width > 24:
            x, y, height = 0, y + height, 0
        place = {"x": x, "y": y, "w": width, "h": 1 if isinstance(panel, str) else panel["height"]}
        x, height = x + width, max(height, place["h"])
        if isinstance(panel, str):
            panels.append({"id": number, "type": "row", "title": panel, "collapsed": False, "gridPos": place, "panels": []})
            continue
        panels.append({"id": number, "type": panel["type"], "title": panel["title"],
                       "description": description(panel, table), "datasource": SOURCE, "gridPos": place,
                       "targets": [target(index, query, legend, panel)
                                   for index, (query, legend) in enumerate(panel["queries"])], **look(panel)})
    source = {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "regex": "",
              "refresh": 1, "multi": False, "includeAll": False, "hide": 0, "skipUrlSync": False, "options": [],
              "current": {"selected": False, "text": "default", "value": "default"}}
    variables = [source, choice("pool", "Pool", "label_values(haulout_pool_info, pool)"),
                 choice("node", "Node", 'label_values(haulout_pool_info{pool=~"$pool"}, node)')]
    return {"uid": "haulout", "title": "Haulout", "description": "Updates of the operating systems of Kubernetes nodes.",
            "tags": ["haulout", "kubernetes"], "schemaVersion": 39, "version": 1, "editable": True, "graphTooltip": 1,
            "timezone": "", "refresh": "1m", "time": {"from": "now-6h", "to": "now"}, "timepicker": {}, "links": [],
            "fiscalYearStartMonth": 0, "weekStart": "", "annotations": {"list": []}, "templating": {"list": variables},
            "panels": panels}


def main(arguments):
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    text = json.dumps(dashboard((ROOT / "docs/metrics.md").read_text(encoding="utf-8")), indent=2, ensure_ascii=False) + "\n"
    if not arguments:
        DASHBOARD.write_text(text, encoding="utf-8")
    elif not DASHBOARD.exists() or DASHBOARD.read_text(encoding="utf-8") != text:
        print("packaging/grafana/haulout.json is old; run packaging/grafana/make_dashboard.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
