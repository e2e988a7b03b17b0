"""Makes odd objects: optional fields that are absent, null or empty, and fields of another type.

Can change every path of an object, and of the optional fields that its kind may have. Keeps the fields that identify the
object, its node and what protects it, because without these no program could decide correctly.
"""
import copy

KEPT = {"", "kind", "apiVersion", "metadata", "metadata.name", "metadata.namespace", "metadata.uid",
        "metadata.resourceVersion", "metadata.deletionTimestamp", "spec", "spec.nodeName", "metadata.ownerReferences",
        "metadata.annotations", "spec.unschedulable", "metadata.labels", "spec.selector", "spec.minAvailable"}
KEPT_BELOW = ("metadata.ownerReferences.", "metadata.annotations.", "metadata.labels.", "spec.selector.")
# Resources whose owners, labels and annotations protect nothing, so that these may change, too.
LOOSE = ("persistentvolumes", "persistentvolumeclaims", "volumeattachments", "namespaces", "services", "daemonsets",
         "replicasets", "statefulsets", "deployments", "events", "leases")
# Fields that the API's schema allows and that the fake cluster does not set by itself.
MORE = {
    "pods": {"spec": {"priority": 7, "priorityClassName": "x", "tolerations": [{"operator": "Exists"}],
                      "containers": [{"name": "c", "ports": [{"containerPort": 1, "name": "webhook"}]}]},
             "status": {"containerStatuses": [{"name": "c", "image": "csi-attacher", "state": {"waiting": {"reason": "X"}}}],
                        "initContainerStatuses": [{"state": {"running": {}}}],
                        "conditions": [{"type": "Ready", "status": "True"}, {"type": "PodScheduled", "status": "False"}]}},
    "nodes": {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
                         "nodeInfo": {"bootID": "1", "osImage": "x", "kernelVersion": "6"},
                         "volumesInUse": ["kubernetes.io/csi/d^v"], "volumesAttached": [{"name": "x", "devicePath": ""}]}},
    "persistentvolumes": {"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
        {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"]}]}]}}}, "status": {"phase": "Released"}},
    "volumeattachments": {"spec": {"attacher": "d"}, "status": {"attached": True, "detachError": {"message": "no"}}},
    "poddisruptionbudgets": {"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}, "status": {
        "disruptedPods": {"x": "2026-01-01T00:00:00Z"}, "conditions": [{"type": "DisruptionAllowed", "status": "True"}]}},
    "namespaces": {"status": {"phase": "Active", "conditions": [{"type": "X", "status": "True", "message": "m"}]}},
    "replicasets": {"metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "u",
                                                      "controller": True}]}},
}
OTHER_TYPES = (None, True, 0, -1, 1.5, 2**63, "", "x", "\u0000\ud7ff", [], [None], [[]], {}, {"": {}})


def add(target, more):
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(target.get(key), dict):
            add(target[key], value)
        else:
            target.setdefault(key, copy.deepcopy(value))


def paths(value, place=()):
    yield place
    if isinstance(value, dict):
        for key in sorted(value):
            yield from paths(value[key], (*place, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from paths(item, (*place, index))


def may_change(plural, place):
    name = ".".join(str(part) for part in place if not isinstance(part, int))
    if name in ("metadata.name", "metadata.uid", "metadata.resourceVersion", "metadata.namespace", "kind", "apiVersion"):
        return False
    if plural in LOOSE:
        return name not in ("", "metadata")
    return name not in KEPT and not name.startswith(KEPT_BELOW)


def empty(value):
    return type(value)() if isinstance(value, (dict, list, str)) else None


def hit(item, place, change):
    """Replaces the value at `place` by change(value), or removes it if change() returns Ellipsis."""
    parent = item
    for part in place[:-1]:
        parent = parent[part]
    value = change(parent[place[-1]])
    if value is not ...:
        parent[place[-1]] = value
    elif isinstance(parent, dict):
        del parent[place[-1]]
    else:
        parent.pop(place[-1])


def odd(rng, plural, item, wrong_types=False):
    """Returns a copy of the object with one to three odd fields."""
    item = copy.deepcopy(item)
    if rng.random() < 0.7:
        add(item, MORE.get(plural, {}))
    for _ in range(rng.randrange(1, 4)):
        places = [place for place in paths(item) if place and may_change(plural, place)]
        if not places:
            break
        ways = [lambda value: ..., lambda value: None, empty]
        if wrong_types:
            ways = [lambda value: copy.deepcopy(rng.choice(OTHER_TYPES))]
        hit(item, rng.choice(places), rng.choice(ways))
    return item
