#!/usr/bin/env python3
"""Makes the pictures of README.md: a rehearsed drain, and a rehearsed fleet, as `haulout rehearse --timeline` draws them.

  make_pictures.py BINARY            writes docs/pictures
  make_pictures.py --check BINARY    fails if the program would draw them in another way

The cluster of the pictures is made up here. A rehearsal depends on nothing else, so the pictures are always the same.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

PICTURES = pathlib.Path(__file__).resolve().parents[2] / "docs/pictures"
BEGIN, NOW = "2026-11-01T09:00:00Z", "2026-11-28T09:00:00Z"
CONTROL_PLANE = [f"control-{n}" for n in (1, 2, 3)]
WORKERS = [f"worker-{n}" for n in (1, 2, 3, 4, 5, 6)]
HASH = "7d9c8b5f4"
SUFFIXES = ["2xkqz", "5tnvw", "8hc4p", "9mlfd", "b7rjg", "dz6ws"]
# Namespace, name, the workers of its pods, its grace period, its budget. The drain in the picture is that of worker-3.
DEPLOYMENTS = [
    ("shop", "web", [1, 2, 3, 3, 4, 5], 30, {"minAvailable": 5}),
    ("shop", "checkout", [3, 1, 4], 60, {"maxUnavailable": 1}),
    ("shop", "cart", [3, 3, 5, 2], 20, None),
    ("shop", "search", [3, 6], 45, None),
    ("mail", "sender", [4], 30, None),
]
STATEFUL_SETS = [("data", "orders", [3, 1, 6], 90, {"maxUnavailable": 1})]


def uid(namespace, name):
    return f"{namespace}-{name}"


def an_object(api, kind, namespace, name, spec, status, labels=None, owner=None):
    metadata = {"name": name, "uid": uid(namespace, name), "resourceVersion": "1", "generation": 1, "creationTimestamp": BEGIN}
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = labels
    if owner:
        api_of_owner, kind_of_owner, name_of_owner = owner
        metadata["ownerReferences"] = [{"apiVersion": api_of_owner, "kind": kind_of_owner, "name": name_of_owner,
                                        "uid": uid(namespace, name_of_owner), "controller": True, "blockOwnerDeletion": True}]
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec, "status": status}


def node(name, labels):
    room = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": NOW, "lastTransitionTime": NOW}
    return an_object("v1", "Node", "", name, {}, {"allocatable": room, "capacity": room, "conditions": [ready]},
                     {"kubernetes.io/hostname": name, **labels})


def workload(kind, namespace, name, workers, grace, budget):
    labels = {"app": name}
    pod = {"terminationGracePeriodSeconds": grace,
           "containers": [{"name": name, "image": name, "resources": {"requests": {"cpu": "500m", "memory": "512Mi"}}}]}
    count = len(workers)
    status = {"observedGeneration": 1, "replicas": count, "readyReplicas": count, "availableReplicas": count}

    def spec(selected):
        return {"replicas": count, "selector": {"matchLabels": selected},
                "template": {"metadata": {"labels": selected}, "spec": pod}}

    if kind == "Deployment":
        yield an_object("apps/v1", kind, namespace, name, spec(labels), {**status, "updatedReplicas": count})
        of_pods, replica_set = {**labels, "pod-template-hash": HASH}, f"{name}-{HASH}"
        yield an_object("apps/v1", "ReplicaSet", namespace, replica_set, spec(of_pods), status, of_pods, ("apps/v1", kind, name))
        owner, names = ("apps/v1", "ReplicaSet", replica_set), [f"{replica_set}-{suffix}" for suffix in SUFFIXES]
    else:
        yield an_object("apps/v1", kind, namespace, name, {**spec(labels), "serviceName": name}, status)
        of_pods, owner, names = labels, ("apps/v1", kind, name), [f"{name}-{number}" for number in range(count)]
    conditions = [{"type": each, "status": "True", "lastTransitionTime": NOW}
                  for each in ("PodScheduled", "Initialized", "ContainersReady", "Ready")]
    for pod_name, worker in zip(names, workers):
        yield an_object("v1", "Pod", namespace, pod_name, {**pod, "nodeName": WORKERS[worker - 1]},
                        {"phase": "Running", "startTime": NOW, "conditions": conditions}, of_pods, owner)
    if budget:
        healthy = budget.get("minAvailable", count - budget.get("maxUnavailable", 0))
        yield an_object("policy/v1", "PodDisruptionBudget", namespace, name, {"selector": {"matchLabels": labels}, **budget},
                        {"observedGeneration": 1, "expectedPods": count, "currentHealthy": count, "desiredHealthy": healthy,
                         "disruptionsAllowed": count - healthy})


def cluster():
    items = [node(name, {"node-role.kubernetes.io/control-plane": ""}) for name in CONTROL_PLANE]
    items += [node(name, {}) for name in WORKERS]
    for name in CONTROL_PLANE:
        items[CONTROL_PLANE.index(name)]["spec"] = {
            "taints": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]}
    for kind, each in (("Deployment", DEPLOYMENTS), ("StatefulSet", STATEFUL_SETS)):
        for row in each:
            items += workload(kind, *row)
    return {"apiVersion": "v1", "kind": "List", "items": items}


def pictures(binary):
    """Returns the text of each picture."""
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        (place / "cluster.json").write_text(json.dumps(cluster()))
        (place / "agents.yaml").write_text("max-unavailable: 2\nsoak: 1m\n")
        for name, arguments in (("drain.svg", ["worker-3", "--ignore-daemonsets"]), ("fleet.svg", ["--all", "--config", "agents.yaml"])):
            subprocess.run([binary, "rehearse", *arguments, "-f", "cluster.json", "--timeline", name], cwd=place, check=True,
                           stdout=subprocess.DEVNULL)
        return {path.name: path.read_text() for path in sorted(place.glob("*.svg"))}


def main(arguments):
    check = arguments[:1] == ["--check"]
    if len(arguments) != 1 + check:
        raise SystemExit(__doc__)
    drawn = pictures(str(pathlib.Path(arguments[-1]).resolve()))
    if not check:
        for name, text in drawn.items():
            (PICTURES / name).write_text(text)
        return 0
    kept = {path.name: path.read_text() for path in sorted(PICTURES.glob("*.svg"))}
    for name in sorted(set(drawn) | set(kept)):
        if drawn.get(name) != kept.get(name):
            print(f"docs/pictures/{name} is not what the program draws: run packaging/pictures/make_pictures.py BINARY", file=sys.stderr)
    return int(drawn != kept)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
