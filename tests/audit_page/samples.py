"""Audits for the tests of the page, in the shape of `haulout audit -o json`, and the page made of one."""
import json
import pathlib

TEMPLATE = pathlib.Path(__file__).resolve().parents[2] / "cli/audit/page.html"
PLACEHOLDER = "/*AUDIT-JSON*/null"


def page(audit):
    """Returns the page with the audit in it, made as the program makes it."""
    template = TEMPLATE.read_text(encoding="utf-8")
    if template.count(PLACEHOLDER) != 1:
        raise ValueError(f"{TEMPLATE} must have {PLACEHOLDER} once")
    return template.replace(PLACEHOLDER, json.dumps(audit, ensure_ascii=False).replace("<", "\\u003c"))


def finding(identity, severity, thing, text, way_out="", nodes=(), pods=()):
    return {"id": identity, "severity": severity, "object": thing, "text": text, "wayOut": way_out, "nodes": list(nodes),
            "pods": list(pods), "key": f"{identity}|{thing}"}


def owner(namespace, team, kind, name, findings, pods=4):
    order = ["blocks", "risk", "note"]
    worst = min((one["severity"] for one in findings), key=order.index, default="note")
    return {"namespace": namespace, "team": team, "kind": kind, "name": name, "pods": pods, "worst": worst,
            "findings": findings}


def node(name, verdict, pool="workers", pods=30, seconds=None, **more):
    made = {"name": name, "pool": pool, "ready": True, "cordoned": False, "pods": pods, "verdict": verdict,
            "blockedBy": [], "withoutRoom": [], "timeline": [], **more}
    if seconds is not None:
        made["seconds"] = seconds
    return made


def audit(nodes, owners, assumed=(), pods=None):
    counts = {"blocks": 0, "risk": 0, "note": 0}
    for one in owners:
        for found in one["findings"]:
            counts[found["severity"]] += 1
    return {"apiVersion": "haulout.dev/v1", "kind": "Audit", "time": "2026-11-27T23:00:00Z", "source": "cluster.json",
            "assumed": list(assumed), "nodes": nodes, "owners": owners,
            "summary": {"nodes": len(nodes), "pods": sum(one["pods"] for one in nodes) if pods is None else pods,
                        "owners": len(owners), "findings": counts,
                        "nodesThatDrain": sum(one["verdict"] == "drains" for one in nodes),
                        "nodesBlocked": sum(one["verdict"] == "blocked" for one in nodes)}}


def empty():
    return audit([], [], pods=0)


def small():
    """Nine nodes and six owners, with each severity, each verdict and each kind of bar."""
    budget = "The budget shop/web allows no disruption: minAvailable is 4 and the Deployment has 4 replicas."
    blocked = {"pod": "shop/web-6f7c9-x2x1z", "owner": "shop/Deployment/web", "reason": "DisruptionBudget", "text": budget}
    timeline = [
        {"pod": "shop/cart-5d8-aa1", "owner": "shop/Deployment/cart", "evicted": 0.4, "gone": 31.2},
        {"pod": "shop/cart-5d8-aa2", "owner": "shop/Deployment/cart", "waitFrom": 0.4, "evicted": 33.0, "gone": 63.5},
        {"pod": "db/postgres-0", "owner": "db/StatefulSet/postgres", "waitFrom": 1.0, "evicted": 64.0, "gone": 184.0},
        {"pod": "monitoring/prometheus-k8s-0", "owner": "monitoring/StatefulSet/prometheus-k8s", "evicted": 0.9, "gone": 140.0}]
    stuck = timeline[:2] + [{"pod": "shop/web-6f7c9-x2x1z", "owner": "shop/Deployment/web", "waitFrom": 0.5},
                            {"pod": "batch/report-28441-q7", "owner": "batch/Job/report-28441", "evicted": 0.6},
                            {"pod": "batch/idle", "owner": ""}]
    nodes = [
        node("worker-1", "blocked", blockedBy=[blocked, {**blocked, "pod": "shop/web-6f7c9-k8k2q"}], timeline=stuck, pods=31),
        node("worker-2", "drains", seconds=184.0, timeline=timeline, pods=28),
        node("worker-3", "drains", seconds=42.4, timeline=timeline[:1], pods=9, cordoned=True),
        node("worker-10", "drains", seconds=9.3, timeline=timeline[:1], pods=110),
        node("gpu-1", "drainsWithoutRoom", pool="gpu", seconds=93.5, pods=6, timeline=timeline[1:3],
             withoutRoom=["ml/train-0", "ml/train-1"]),
        node("gpu-2", "blocked", pool="gpu", pods=4, ready=False, timeline=stuck[3:],
             blockedBy=[{"pod": "batch/report-28441-q7", "owner": "batch/Job/report-28441", "reason": "StuckTerminating",
                         "text": "The pod has the finalizer example.com/archive and has been terminating for 3 days."}]),
        node("control-1", "notRehearsed", pool="control-plane", pods=12),
        node("control-2", "notRehearsed", pool="control-plane", pods=11),
        node("spot-7", "drains", pool="spot", seconds=3.0, pods=3)]
    web = [finding("BudgetNeverOpens", "blocks", "shop/PodDisruptionBudget/web", budget,
                   "Set maxUnavailable: 1, or run one replica more than minAvailable.", ["worker-1", "gpu-2"],
                   ["shop/web-6f7c9-x2x1z", "shop/web-6f7c9-k8k2q"]),
           finding("AllReplicasOnOneNode", "risk", "shop/Deployment/web",
                   "All 4 replicas run on worker-1: its drain stops the service.",
                   "Add a topologySpreadConstraint over kubernetes.io/hostname.", ["worker-1"], ["shop/web-6f7c9-x2x1z"])]
    owners = [
        owner("shop", "payments", "Deployment", "web", web),
        owner("batch", "data", "Job", "report-28441", [
            finding("FinalizerHangs", "blocks", "batch/Pod/report-28441-q7",
                    "The finalizer example.com/archive has kept this pod for 3 days.",
                    "Find out why the controller of example.com/archive does not remove it.", ["gpu-2"],
                    ["batch/report-28441-q7"])], 1),
        owner("db", "data", "StatefulSet", "postgres", [
            finding("QuorumUnprotected", "risk", "db/StatefulSet/postgres",
                    "Three replicas form a quorum, and no budget protects it.",
                    "Create a PodDisruptionBudget with maxUnavailable: 1.", ["worker-2"], ["db/postgres-0"]),
            finding("LongGrace", "note", "db/StatefulSet/postgres", "Its pods may take 20 minutes to terminate.",
                    "Lower terminationGracePeriodSeconds if 20 minutes are not needed.", ["worker-2"], ["db/postgres-0"])], 3),
        owner("", "", "Cluster", "", [
            finding("WebhookOnEvictions", "risk", "ValidatingWebhookConfiguration/policy.example.com",
                    "Each eviction is asked of a webhook with failurePolicy Fail and one replica.",
                    "Give its service two replicas, or exclude pods/eviction from its rules.")], 0),
        owner("ml", "research", "JobSet", "train", [
            finding("GangBroken", "risk", "ml/JobSet/train", "A drain of gpu-1 evicts 2 of the 8 members of this gang.",
                    "Drain the nodes of the gang together.", ["gpu-1"], ["ml/train-0", "ml/train-1"])], 8),
        owner("monitoring", "platform", "StatefulSet", "prometheus-k8s", [
            finding("EmptyDir", "note", "monitoring/StatefulSet/prometheus-k8s",
                    "Its pods lose an emptyDir of 40 GiB when they are evicted.",
                    "Use a PersistentVolumeClaim if the data matters.", ["worker-2"], ["monitoring/prometheus-k8s-0"])], 2)]
    return audit(nodes, owners, ["The simulated kubelets terminate a pod after half of its grace period.",
                                 "Images are present on every node.", "No other program drains at the same time."])


def large(nodes=2000, owners=500):
    verdicts = ["drains"] * 7 + ["blocked", "drainsWithoutRoom", "notRehearsed"]
    severities = ["blocks", "risk", "note"]

    def step(number, pod):
        return {"pod": f"team-{(number + pod) % 40}/app-{(number * 7 + pod) % owners}-{pod}",
                "owner": f"team-{pod % 40}/Deployment/app-{pod}", "waitFrom": 0.0, "evicted": 1.5 * pod, "gone": 1.5 * pod + 30}

    def a_node(number):
        verdict = verdicts[number % 10]
        seconds = None if verdict in ("blocked", "notRehearsed") else 30 + number * 7 % 900
        return node(f"node-{number:04}", verdict, pool=f"pool-{number % 12}", pods=20 + number % 90, seconds=seconds,
                    timeline=[step(number, pod) for pod in range(30)])

    def an_owner(number):
        namespace, name = f"team-{number % 40}", f"app-{number}"
        found = finding("SingleReplica", severities[number * 3 // owners], f"{namespace}/Deployment/{name}",
                        f"Finding of app {number}.", "Run two replicas.",
                        [f"node-{(number * 4 + other) % nodes:04}" for other in range(30)], [f"{namespace}/{name}-0"])
        return owner(namespace, f"squad-{number % 25}", "Deployment", name, [found])

    return audit([a_node(number) for number in range(nodes)], [an_owner(number) for number in range(owners)])


MARKUP = '<img src=x onerror="document.title=\'hacked\'">'


def hostile():
    """Markup, a script's end, directions of writing, very long names and values of wrong types in each text."""
    endings = '</script><script>document.title="hacked"</script><!--<script>'
    turned = "\u202egnp.exe\u2066\u2028\u2029 \u0000&lt;b&gt;"
    long = "x" * 253
    found = finding(MARKUP, "blocks", endings, MARKUP + endings, "javascript:alert(1)" + turned,
                    [MARKUP, endings, "constructor"], [long, turned])
    bad = finding("__proto__", "toString", "hasOwnProperty", long * 8, nodes=["__proto__"])
    nodes = [
        node(MARKUP, "blocked", pool=endings, blockedBy=[{"pod": MARKUP, "owner": endings, "reason": MARKUP, "text": MARKUP}],
             timeline=[{"pod": MARKUP, "owner": endings, "waitFrom": 0.0, "evicted": 1e9, "gone": 2e9},
                       {"pod": long, "owner": turned, "waitFrom": -5}]),
        node(long, "toString", pool=turned, withoutRoom=[MARKUP, long], seconds=-1.0),
        {"name": "constructor", "verdict": "__proto__", "pods": "many", "seconds": "soon", "blockedBy": None, "timeline": [{}]},
        {"name": "__proto__", "verdict": "drains", "pods": 1}]
    owners = [{**owner(MARKUP, endings, MARKUP, endings, [found]), "findings": [found, bad]},
              {"namespace": turned, "kind": "Deployment", "name": long, "worst": "constructor"}]
    return {"kind": "Audit", "time": MARKUP, "source": endings, "assumed": [MARKUP, turned, long], "nodes": nodes,
            "owners": owners, "summary": {"nodes": 4, "nodesBlocked": 1}}
