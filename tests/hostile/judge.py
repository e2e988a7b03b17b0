"""Checks the promises that must hold in every world, whatever the server does. Each violation is one line of text.

The judge uses the objects of the cluster and every request that the server received. In the output of the program it
checks only whether there is any, whether it is valid JSON, and whether it contains a text that the server invented for
this world.
"""
import dataclasses
import json

from cluster import is_daemon, is_finished, is_mirror, labels_of, node_of
from responders import REQUESTER, target_of

# Seconds within which the program must report an obstacle. It reports an obstacle at its first retry after five seconds,
# and its retries are up to ten seconds apart.
SAY_WITHIN = 25.0
# In bytes. The memory limit of an agent's container is 128 MiB; an agent must not use more than half of that.
MEMORY_LIMIT = {"agent": 64 * 1048576}
MEMORY_LIMIT_OF_COMMANDS = 320 * 1048576
KNOWN_EXITS = (0, 1, 2, 3)


@dataclasses.dataclass
class Run:
    world: object
    seen: list
    views: dict
    lines: list  # (time, stream, text)
    code: int  # exit code; negative if a signal ended it
    memory: int
    began: float
    ended: float
    stopped: float = 0.0  # time of SIGTERM; 0 if it was not sent
    killed: bool = False  # by SIGKILL, because it did not end after SIGTERM
    busy: float = 0.0  # four times the largest recent delay of the judging process's timers, in seconds

    def carried_out(self, *kinds):
        return [seen for seen in self.seen if seen.kind in kinds and seen.code and not seen.request.query.get("dryRun")]


def removals(run):
    return [seen for seen in run.seen if seen.kind in ("evict", "delete pods") and not seen.request.query.get("dryRun")]


def every_pod_that_was(cluster):
    """Returns UID -> last state of each pod, including deleted pods."""
    return {entry[3]["metadata"]["uid"]: entry[3] for entry in cluster.log if entry[1] == "pods"}


def right_pods(run):
    """P1, P2, P11: evicts and deletes only the right pods, in the right way."""
    world, pods = run.world, every_pod_that_was(run.world.cluster)
    for seen in removals(run):
        body = seen.request.json()
        options = body if seen.kind == "delete pods" else body.get("deleteOptions") or {}
        uid = (options.get("preconditions") or {}).get("uid")
        which = f"pod {seen.namespace}/{seen.name}"
        if not uid:
            yield f"P2: {seen.kind} of {which} without a UID"
            continue
        if (seen.kind == "delete pods") != world.has("--disable-eviction"):
            yield f"P1: {seen.kind} of {which}"
        if "gracePeriodSeconds" in options and not world.has("--grace-period"):
            yield f"P1: a grace period for {which} that nobody asked for"
        pod = pods.get(uid)
        if pod is None:
            yield f"P2: {which} was asked to leave by a UID that no pod had: {uid}"
            continue
        if node_of(pod) not in world.asked:
            yield f"P11: {which} on node {node_of(pod)} was asked to leave; asked were {', '.join(world.asked)}"
        if is_daemon(pod) and world.has("--evict-daemonset-pods"):
            continue
        if is_mirror(pod) or is_daemon(pod):
            yield f"P1: {which} is a {'mirror' if is_mirror(pod) else 'DaemonSet'} pod and was asked to leave"
        elif not world.must_leave(pod):
            yield f"P1: {which} was asked to leave and --pod-selector does not select it"


def right_nodes(run):
    """P1, P11: writes only to nodes that were asked for, and creates and deletes no other objects."""
    for seen in run.carried_out("patch nodes", "patch nodes/status"):
        if seen.name not in run.world.asked and seen.code < 300:
            yield f"P11: node {seen.name} was written; asked were {', '.join(run.world.asked)}"
    own = ("delete pods", "create events") + {"agent": ("create leases", "delete leases"),
                                              "retire": ("delete nodes",)}.get(run.world.command, ())
    if run.world.has("--eviction-requests"):
        own += ("create evictionrequests",)
    for seen in run.seen:
        if seen.kind.startswith(("delete ", "create ")) and seen.kind not in own:
            yield f"P1: {seen.kind} {seen.namespace}/{seen.name}"


def right_requests(run):
    """P1, P2, P11: requests the eviction of the right pods, changes no request of others, and leaves none open."""
    world, pods, known = run.world, every_pod_that_was(run.world.cluster), {}
    nodes = {item["metadata"]["uid"]: item["metadata"]["name"] for _, plural, _, item, _ in world.cluster.log if plural == "nodes"}
    for _, plural, _, item, _ in world.cluster.log:
        if plural == "evictionrequests":
            known[item["metadata"]["namespace"], item["metadata"]["name"]] = item

    def is_own(item):
        return (item["spec"].get("requester") == REQUESTER
                and nodes.get(labels_of(item).get("haulout.dev/node-uid")) in world.asked)
    for seen in run.seen:
        if seen.kind == "create evictionrequests":
            target = target_of(seen.request.json())
            pod = pods.get(target.get("uid"))
            if pod is None or pod["metadata"]["name"] != target.get("name") or not world.must_leave(pod):
                yield f"P2: an EvictionRequest for a pod that need not leave: {target}"
            elif node_of(pod) not in world.asked:
                yield f"P11: an EvictionRequest for {seen.namespace}/{target['name']} on node {node_of(pod)}"
            if seen.request.json()["spec"]["requester"] != REQUESTER:
                yield "P1: an EvictionRequest in the name of somebody else"
        if seen.kind == "patch evictionrequests":
            item = known.get((seen.namespace, seen.name))
            if item is None or not is_own(item):
                yield f"P11: the EvictionRequest {seen.namespace}/{seen.name} of others was changed"
    if run.killed or run.code < 0:
        return
    there = {pod["metadata"]["uid"] for pod in world.cluster.all("pods")}
    made = {labels_of(seen.request.json()).get("haulout.dev/node-uid") for seen in run.seen
            if seen.kind == "create evictionrequests"}
    left = [item for item in world.cluster.all("evictionrequests")
            if is_own(item) and item["spec"]["intent"] == "Eviction" and target_of(item).get("uid") in there
            and labels_of(item)["haulout.dev/node-uid"] in made]
    if left and not any("could not be withdrawn" in text for _, _, text in run.lines):
        yield f"P7: {left[0]['metadata']['name']} still asks for the eviction of its pod after the end of the drain"


def right_retirement(run):
    """P1, P2, P11: deletes a Node only by the UID of one that was cordoned, and when nothing is left to evict."""
    log = run.world.cluster.log
    cordoned = {(item["metadata"]["name"], item["metadata"]["uid"]) for _, plural, _, item, _ in log
                if plural == "nodes" and item.get("spec", {}).get("unschedulable")}
    for seen in run.seen:
        if seen.kind != "delete nodes":
            continue
        uid = (seen.request.json().get("preconditions") or {}).get("uid")
        if seen.name not in run.world.asked or (seen.name, uid) not in cordoned:
            yield f"P2: Node {seen.name} was to be deleted by the UID {uid}; asked were {', '.join(run.world.asked)}"
        if seen.code == 200 and not seen.request.query.get("dryRun"):
            yield from harm_of_deletion(log, uid)


def harm_of_deletion(log, uid):
    """Yields what was wrong when the Node with this UID was deleted."""
    pods = {}
    for _, plural, kind, item, before in log:
        if plural == "pods":
            pods[item["metadata"]["uid"]] = item
            if kind == "DELETED":
                del pods[item["metadata"]["uid"]]
        if plural == "nodes" and kind == "DELETED" and item["metadata"]["uid"] == uid:
            left = [pod["metadata"]["name"] for pod in pods.values() if node_of(pod) == item["metadata"]["name"]
                    and not (is_mirror(pod) or is_daemon(pod) or is_finished(pod))]
            if left:
                yield f"P1: Node {item['metadata']['name']} was deleted and {', '.join(left)} had not gone"
            if not before.get("spec", {}).get("unschedulable"):
                yield f"P3: Node {item['metadata']['name']} was deleted and was not cordoned"


def no_false_success(run):
    """P3, P4: exit code 0 is true."""
    if run.code != 0 or run.world.command == "agent":
        return
    for name in run.world.asked:
        node = run.world.cluster.get("nodes", name)
        if run.world.command == "retire":
            left = [pod["metadata"]["name"] for pod in run.world.cluster.all("pods") if node_of(pod) == name]
            if node or left:
                yield f"P4: exit code 0 and of node {name} there is left: {', '.join(left) or 'its Node'}"
            continue
        cordoned = bool(node and node.get("spec", {}).get("unschedulable"))
        if cordoned != (run.world.command != "uncordon"):
            yield f"P4: exit code 0 and node {name} is {'still' if cordoned else 'not'} cordoned"
        if run.world.command != "drain":
            continue
        if name not in run.views:
            yield f"P3: exit code 0 and the pods of node {name} were never listed"
            continue
        _, pods, was_cordoned = run.views[name]
        left = [pod["metadata"]["name"] for pod in pods if run.world.must_leave(pod)]
        if left or not was_cordoned:
            yield (f"P3: exit code 0 and at the last list of the pods of node {name} "
                   f"{', '.join(left) + ' had not gone' if left else 'it was not cordoned'}")


def moments_of_ready(world):
    """Yields for each time at which a Node got the state `ready`: (node, what was wrong then, or an empty string)."""
    pods, leases, before = {}, {}, {}
    for _, plural, kind, item, _ in world.cluster.log:
        uid, name = item["metadata"]["uid"], item["metadata"]["name"]
        for book, of in ((pods, "pods"), (leases, "leases")):
            if plural == of:
                book[uid] = item
                if kind == "DELETED":
                    del book[uid]
        if plural != "nodes":
            continue
        state = labels_of(item).get("haulout.dev/state")
        if state == "ready" and before.get(name) != "ready":
            left = [pod["metadata"]["name"] for pod in pods.values() if node_of(pod) == name and world.must_leave(pod)]
            holders = [lease.get("spec", {}).get("holderIdentity") for lease in leases.values()]
            wrong = f"{', '.join(left)} had not gone" if left else ""
            if not item.get("spec", {}).get("unschedulable"):
                wrong = "it was not cordoned"
            if "--slots=lease" in world.flags and f"{name}/{uid}" not in holders:
                wrong = "no turn was its own"
            yield name, wrong
        before[name] = state


def ready_is_ready(run):
    """P3, P6: the state label `ready` of a Node is true."""
    if run.world.command != "agent":
        return
    moments = list(moments_of_ready(run.world))
    for name, wrong in moments:
        if wrong:
            yield f"P3: node {name} was called ready and {wrong}"
    if run.world.expect == "ready" and not moments:
        yield f"P8: node {run.world.asked[0]} was not ready after {run.ended - run.began:.0f} s"


def no_crash(run):
    """P7, P12: does not crash, ends after SIGTERM, and uses bounded memory."""
    if run.code < 0 and not run.killed:
        yield f"P12: ended by signal {-run.code}"
    elif run.code not in KNOWN_EXITS and not (run.stopped and run.code == 143) and not run.killed:
        yield f"P12: exit code {run.code}"
    if run.memory > MEMORY_LIMIT.get(run.world.command, MEMORY_LIMIT_OF_COMMANDS):
        yield f"P12: {run.memory // 1048576} MiB of memory"
    if run.killed:
        yield f"P7: it did not end within {run.world.ends_within:.0f} s of SIGTERM"


def says_why(run):
    """P4, P8: a program that fails writes a message to stderr, and a JSON report is valid JSON."""
    if run.code not in (0, 143) and not any(stream == "stderr" for _, stream, _ in run.lines):
        yield f"P8: exit code {run.code} and not a word on stderr"
    stdout = "\n".join(text for _, stream, text in run.lines if stream == "stdout")
    try:
        if run.world.has("-o=json") and stdout:
            json.loads(stdout)
        elif run.world.has("-o=jsonl"):
            for line in stdout.splitlines():
                json.loads(line)
    except ValueError:
        yield "P4: what it writes on stdout is no JSON"


def obstacle_since(run):
    """Returns the time at which the program first met the obstacle; 0 if it did not."""
    met = [seen.at for seen in run.seen if (seen.fault == run.world.obstacle if run.world.obstacle else seen.code == 429)]
    return min(met, default=0.0)


def told_since(run, since):
    return [at for at, _, text in run.lines if at >= since and text.strip()]


def as_expected(run):
    world = run.world
    if world.exits and run.code not in world.exits:
        yield f"exit code {run.code}, right would be {' or '.join(map(str, world.exits))}"
    if world.expect == "done" and not world.exits and run.code != 0:
        told = f"; ended after {run.stopped - run.began:.0f} s" if run.stopped else ""
        faults = sorted({f"{seen.kind} ({seen.fault})" for seen in run.seen if seen.fault})
        yield f"P4, P10: exit code {run.code}{told}, although nothing but this stood in its way: {', '.join(faults) or 'nothing'}"
    if world.expect == "untouched":
        touched = [seen.kind for seen in run.carried_out("patch nodes", "evict", "delete pods")]
        if run.code == 0 or touched:
            yield f"P4: exit code {run.code}, and there was sent: {', '.join(touched) or 'nothing'}"
    since = obstacle_since(run)
    if world.expect == "told":
        if not since and run.code not in (0, 143):
            yield f"exit code {run.code} before anything stood in its way"
        told = told_since(run, since)
        limit = SAY_WITHIN + run.busy
        if since and not (told and min(told) - since <= limit) and (run.stopped or run.ended) - since > limit - 1:
            yield f"P8: something stood in its way for {(run.stopped or run.ended) - since:.0f} s and nothing was said"
        if since and run.code == 0:
            yield "P4: exit code 0, although something stood in its way"
    if world.expect == "cause":
        if since and run.code not in (1, 3):
            yield f"P4: exit code {run.code}, although something stood in its way"
        if since and not any(world.marker in text for _, _, text in run.lines):
            yield "P8: its deadline passed and nothing that was written names what stood in its way"
    if world.quick:
        first = [seen.at for seen in removals(run)]
        quick = [seen.at for seen in removals(run) if seen.namespace == world.quick]
        if first and (not quick or min(quick) - min(first) > world.quick_limit + run.busy):
            yield f"P9: the pod in namespace {world.quick} was not asked within {world.quick_limit:.0f} s of the first"


def keeps_its_distance(run):
    """P10: every retry has a pause. No legitimate cause leads to more failed requests in a second than this limit."""
    times = sorted(seen.at for seen in run.seen if seen.fault or seen.code >= 400)
    limit = 60 + 3 * len(every_pod_that_was(run.world.cluster))
    for first, last in zip(times, times[limit:]):
        if last - first < 1:
            yield f"P10: {limit} requests that failed within a second"
            return


def obeys_retry_after(run):
    """P10: after an answer with Retry-After: 1 a command does not repeat the request within a second."""
    told = {}
    if run.world.command == "agent":  # several parts of an agent send the same request
        return
    for seen in run.seen:
        key = seen.kind, seen.request.path, seen.request.query.get("continue")
        if seen.kind in ("get nodes", "patch nodes", "list nodes") and key in told and seen.at - told[key] < 0.9:
            yield f"P10: {seen.kind} {seen.at - told[key]:.2f} s after an answer with Retry-After: 1"
        told.pop(key, None)
        if seen.fault.endswith(" after 1"):
            told[key] = seen.at


def verdicts(run):
    found = []
    for rule in (right_pods, right_nodes, right_requests, right_retirement, no_false_success, ready_is_ready, no_crash, says_why, as_expected, keeps_its_distance,
                 obeys_retry_after):
        lines = list(dict.fromkeys(rule(run)))
        found += lines if len(lines) < 3 else [f"{lines[0]} (and {len(lines) - 1} more like this)"]
    return found
