"""A small cluster: objects with revisions, and the controllers that drains and agents depend on. No HTTP.

Timers do the work of kubelet, ReplicaSet, budget, node and volume controllers; the caller passes `later(seconds, call)`.
Objects are plain dicts. The cluster replaces them and never changes them in place, so that a snapshot does not change.
"""
import copy
import datetime

# plural -> (API path before it, kind, whether it is namespaced)
RESOURCES = {
    "nodes": ("/api/v1", "Node", False),
    "namespaces": ("/api/v1", "Namespace", False),
    "pods": ("/api/v1", "Pod", True),
    "services": ("/api/v1", "Service", True),
    "configmaps": ("/api/v1", "ConfigMap", True),
    "persistentvolumes": ("/api/v1", "PersistentVolume", False),
    "persistentvolumeclaims": ("/api/v1", "PersistentVolumeClaim", True),
    "csinodes": ("/apis/storage.k8s.io/v1", "CSINode", False),
    "volumeattachments": ("/apis/storage.k8s.io/v1", "VolumeAttachment", False),
    "poddisruptionbudgets": ("/apis/policy/v1", "PodDisruptionBudget", True),
    "daemonsets": ("/apis/apps/v1", "DaemonSet", True),
    "deployments": ("/apis/apps/v1", "Deployment", True),
    "replicasets": ("/apis/apps/v1", "ReplicaSet", True),
    "statefulsets": ("/apis/apps/v1", "StatefulSet", True),
    "leases": ("/apis/coordination.k8s.io/v1", "Lease", True),
    "events": ("/apis/events.k8s.io/v1", "Event", True),
    "evictionrequests": ("/apis/lifecycle.k8s.io/v1alpha1", "EvictionRequest", True),
    "evictions": ("/apis/lifecycle.k8s.io/v1alpha1", "Eviction", True),
}
ALPHA = ("evictionrequests", "evictions")  # served only in worlds with responders
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
MIRROR = "kubernetes.io/config.mirror"


def now_text(ahead=0.0):
    at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=ahead)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def api_version(plural):
    return RESOURCES[plural][0].removeprefix("/apis/").removeprefix("/api/")


def key_of(item):
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


def controller_of(pod):
    return next((owner for owner in pod["metadata"].get("ownerReferences") or [] if owner.get("controller")), None)


def is_mirror(pod):
    return MIRROR in (pod["metadata"].get("annotations") or {})


def is_daemon(pod):
    owner = controller_of(pod)
    return owner is not None and owner["kind"] == "DaemonSet"


def is_terminating(item):
    return "deletionTimestamp" in item["metadata"]


def is_finished(pod):
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def is_ready(pod):
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod.get("status", {}).get("conditions", []))


def node_of(pod):
    return pod.get("spec", {}).get("nodeName", "")


def labels_of(item):
    return item["metadata"].get("labels") or {}


def matches(labels, wanted):
    return all(labels.get(key) == value for key, value in wanted.items())


class Cluster:
    def __init__(self, rng, later):
        self.rng, self.later = rng, later
        self.revision = 1000
        self.serial = 0
        self.items = {plural: {} for plural in RESOURCES}
        self.log = []  # (revision, plural, type, object after, object before)
        self.wakes = set()  # called after each change
        self.dead_kubelets = set()  # nodes on which a pod is deleted only with grace period 0
        self.lasting = {}  # pod UID -> seconds from its deletion request until it is deleted, at most its grace period
        self.leaked = set()  # names of VolumeAttachments that no controller removes
        self.comes_back = True  # whether controllers replace pods
        self.has_responders = False  # whether the alpha API of EvictionRequests is served

    # ---- storage
    def fresh_uid(self):
        self.serial += 1
        return f"{self.rng.getrandbits(32):08x}-0000-4000-8000-{self.serial:012d}"

    def get(self, plural, name, namespace=""):
        return self.items[plural].get((namespace, name))

    def all(self, plural):
        return list(self.items[plural].values())

    def put(self, plural, item):
        self.revision += 1
        item = copy.deepcopy(item)
        metadata = item["metadata"]
        metadata["resourceVersion"] = str(self.revision)
        metadata.setdefault("uid", self.fresh_uid())
        metadata.setdefault("creationTimestamp", now_text(-3600))
        item.setdefault("kind", RESOURCES[plural][1])
        item.setdefault("apiVersion", api_version(plural))
        before = self.items[plural].get(key_of(item))
        self.items[plural][key_of(item)] = item
        self.log.append((self.revision, plural, "MODIFIED" if before else "ADDED", item, before))
        self.react(plural, item, before)
        return item

    def change(self, plural, key, edit):
        item = self.items[plural].get(key)
        if item is None:
            return None
        changed = copy.deepcopy(item)
        edit(changed)
        return item if changed == item else self.put(plural, changed)

    def remove(self, plural, key, uid=None):
        item = self.items[plural].get(key)
        if item is None or uid not in (None, item["metadata"]["uid"]):
            return
        del self.items[plural][key]
        self.revision += 1
        last = copy.deepcopy(item)
        last["metadata"]["resourceVersion"] = str(self.revision)
        self.log.append((self.revision, plural, "DELETED", last, item))
        self.react(plural, None, item)

    # ---- controllers
    def react(self, plural, item, before):
        if plural == "nodes" and item:
            self.later(0.005, lambda: self.taint(key_of(item)))
        if plural == "nodes" and item is None:
            self.later(0.3, lambda: self.collect(before))
        if plural == "pods":
            changed = item or before
            self.count_budgets(changed["metadata"].get("namespace", ""))
            if item is None:
                self.later(0.02, lambda: self.detach(before))
                self.later(0.03, lambda: self.replace(before))
        if plural == "poddisruptionbudgets" and item:
            self.count_budgets(item["metadata"]["namespace"])
        for wake in list(self.wakes):
            wake()

    def collect(self, gone):
        """Deletes what belonged to a deleted Node: what it owns and, unless it was created again, its pods and volumes."""
        name, uid = gone["metadata"]["name"], gone["metadata"]["uid"]
        for plural in ("leases", "csinodes"):
            for item in self.all(plural):
                if any(owner["uid"] == uid for owner in item["metadata"].get("ownerReferences") or []):
                    self.remove(plural, key_of(item))
        if self.get("nodes", name):
            return
        for pod in self.all("pods"):
            if node_of(pod) == name:
                self.remove("pods", key_of(pod))
        for attachment in self.all("volumeattachments"):
            if attachment["spec"]["nodeName"] == name:
                self.remove("volumeattachments", key_of(attachment))

    def taint(self, key):
        def edit(node):
            spec = node.setdefault("spec", {})
            taints = [taint for taint in spec.get("taints") or [] if taint["key"] != UNSCHEDULABLE]
            if spec.get("unschedulable"):
                have = [taint for taint in spec.get("taints") or [] if taint["key"] == UNSCHEDULABLE]
                taints += have or [{"key": UNSCHEDULABLE, "effect": "NoSchedule", "timeAdded": now_text()}]
            if taints or "taints" in spec:
                spec["taints"] = taints
        self.change("nodes", key, edit)

    def count_budgets(self, namespace):
        pods = [pod for pod in self.all("pods") if pod["metadata"].get("namespace") == namespace]
        for budget in self.all("poddisruptionbudgets"):
            if budget["metadata"]["namespace"] != namespace:
                continue
            chosen = [pod for pod in pods if self.selects(budget, pod)]
            healthy = sum(is_ready(pod) and not is_terminating(pod) for pod in chosen)
            wanted = budget["spec"].get("minAvailable", 0)
            status = {"currentHealthy": healthy, "desiredHealthy": wanted, "expectedPods": len(chosen),
                      "disruptionsAllowed": max(0, healthy - wanted),
                      "observedGeneration": budget["metadata"].get("generation", 1)}

            def edit(changed, status=status):
                changed["status"] = status
            self.change("poddisruptionbudgets", key_of(budget), edit)

    @staticmethod
    def selects(budget, pod):
        return matches(labels_of(pod), (budget["spec"].get("selector") or {}).get("matchLabels") or {})

    def replace(self, gone):
        """Does what the controller of a deleted pod does: creates another pod, which gets a schedulable node."""
        owner = controller_of(gone)
        if not self.comes_back or owner is None or owner["kind"] not in ("ReplicaSet", "StatefulSet"):
            return
        metadata = {key: value for key, value in gone["metadata"].items()
                    if key in ("namespace", "labels", "annotations", "ownerReferences")}
        if owner["kind"] == "StatefulSet":
            metadata["name"] = gone["metadata"]["name"]
            if self.get("pods", metadata["name"], metadata["namespace"]):
                return
        else:
            self.serial += 1
            metadata["name"] = f"{owner['name']}-x{self.serial}"
        metadata["creationTimestamp"] = now_text()
        spec = {key: value for key, value in gone["spec"].items() if key != "nodeName"}
        self.put("pods", {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})
        self.later(0.02, lambda: self.bind((metadata["namespace"], metadata["name"])))

    def bind(self, key):
        pod = self.items["pods"].get(key)
        if pod is None or node_of(pod):
            return
        open_nodes = [n["metadata"]["name"] for n in self.all("nodes") if not n.get("spec", {}).get("unschedulable")]
        if not open_nodes:
            self.later(0.3, lambda: self.bind(key))
            return
        chosen = self.rng.choice(sorted(open_nodes))
        self.change("pods", key, lambda pod: pod["spec"].update(nodeName=chosen))
        self.later(0.1, lambda: self.start(key))

    def start(self, key):
        def edit(pod):
            if not is_terminating(pod):
                pod["status"] = {"phase": "Running", "startTime": now_text(),
                                 "conditions": [{"type": "Ready", "status": "True"}]}
        self.change("pods", key, edit)

    def detach(self, gone):
        node, namespace = node_of(gone), gone["metadata"].get("namespace", "")
        for volume in gone["spec"].get("volumes") or []:
            claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
            found = self.get("persistentvolumeclaims", claim, namespace) if claim else None
            if found is None:
                continue
            name = found["spec"].get("volumeName")
            for attachment in self.all("volumeattachments"):
                uses = attachment["spec"]["source"].get("persistentVolumeName") == name
                if uses and attachment["spec"]["nodeName"] == node and attachment["metadata"]["name"] not in self.leaked:
                    key = key_of(attachment)
                    self.later(0.2, lambda key=key: self.remove("volumeattachments", key))

    # ---- what the API server itself does with pods
    def terminate(self, key, grace):
        """Does what a DELETE does. `grace` is the grace period in seconds, or None for the pod's own."""
        pod = self.items["pods"][key]
        own = pod["spec"].get("terminationGracePeriodSeconds", 30)
        seconds = own if grace is None else max(grace, 1) if grace < 0 else grace
        uid = pod["metadata"]["uid"]
        if is_finished(pod) or not node_of(pod) or seconds == 0:
            self.remove("pods", key)
            return
        if is_terminating(pod) and seconds >= pod["metadata"].get("deletionGracePeriodSeconds", 30):
            return

        def edit(pod):
            pod["metadata"]["deletionTimestamp"] = now_text(seconds)
            pod["metadata"]["deletionGracePeriodSeconds"] = seconds
        self.change("pods", key, edit)
        if node_of(pod) in self.dead_kubelets:
            return
        lasts = min(seconds, self.lasting.get(uid, self.rng.choice([0.01, 0.05, 0.2, 0.5])))
        self.later(lasts, lambda: self.remove("pods", key, uid))
