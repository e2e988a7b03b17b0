"""Creates the objects of a world: nodes, workloads with their pods, budgets, volumes."""
from cluster import MIRROR, now_text

NAMESPACES = ("shop", "db", "slow")
BOOT_ID = "3f1c0c4e-7a55-4b0e-9a55-0d9d5c3a1b2c"  # the same for every machine


class Population:
    def __init__(self, rng, cluster):
        self.rng, self.cluster, self.serial = rng, cluster, 0
        for name in NAMESPACES + ("kube-system", "haulout"):
            cluster.put("namespaces", {"metadata": {"name": name}, "status": {"phase": "Active"}})

    def node(self, name, labels=None, **spec):
        self.cluster.put("nodes", {
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}, "annotations": {}},
            "spec": spec,
            "status": {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {
                "cpu": "8", "memory": "16Gi", "pods": "110"}, "nodeInfo": {"bootID": BOOT_ID, "osImage": "Debian"}}})

    def heartbeats(self, node):
        """Creates what a kubelet creates beside its Node."""
        item = self.cluster.get("nodes", node)
        owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": item["metadata"]["uid"]}
        self.cluster.put("csinodes", {"metadata": {"name": node, "ownerReferences": [owner]}, "spec": {"drivers": []}})
        self.cluster.put("leases", {"metadata": {"name": node, "namespace": "kube-node-lease", "ownerReferences": [owner]},
                                    "spec": {"holderIdentity": node}})

    def workload(self, plural, kind, namespace, replicas=1):
        self.serial += 1
        item = self.cluster.put(plural, {"metadata": {"name": f"{kind.lower()}{self.serial}", "namespace": namespace},
                                         "spec": {"replicas": replicas}, "status": {"readyReplicas": replicas}})
        return {"apiVersion": "apps/v1", "kind": kind, "name": item["metadata"]["name"], "uid": item["metadata"]["uid"],
                "controller": True, "blockOwnerDeletion": True}

    def pod(self, namespace, node, owner=None, name=None, grace=30, phase="Running", annotations=None, **spec):
        self.serial += 1
        name = name or (f"{owner['name']}-{self.serial}" if owner else f"bare-{self.serial}")
        metadata = {"name": name, "namespace": namespace, "labels": {"app": owner["name"] if owner else name}}
        if owner:
            metadata["ownerReferences"] = [owner]
        if annotations:
            metadata["annotations"] = annotations
        spec = {"nodeName": node, "terminationGracePeriodSeconds": grace, "priority": 0,
                "containers": [{"name": "c", "image": "app", "resources": {"requests": {"cpu": "10m"}}}], **spec}
        ready = "True" if phase == "Running" else "False"
        return self.cluster.put("pods", {"metadata": metadata, "spec": spec, "status": {
            "phase": phase, "startTime": now_text(-3000), "conditions": [{"type": "Ready", "status": ready}]}})

    def replicas(self, namespace, nodes, budget=None):
        """Creates a ReplicaSet with one pod for each entry of `nodes`. `budget` is its minAvailable; None for no budget."""
        owner = self.workload("replicasets", "ReplicaSet", namespace, len(nodes))
        for node in nodes:
            self.pod(namespace, node, owner)
        if budget is not None:
            self.budget(namespace, owner["name"], budget)
        return owner

    def request(self, pod, requester, node):
        """Creates an EvictionRequest for the pod, as a drain of this Node creates it."""
        metadata, target = pod["metadata"], {"name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        name = f"{'haulout' if requester.startswith('haulout') else 'other'}-{metadata['uid']}"
        self.cluster.put("evictionrequests", {
            "metadata": {"name": name, "namespace": metadata["namespace"], "generation": 1, "creationTimestamp": now_text(),
                         "labels": {"haulout.dev/node-uid": node["metadata"]["uid"]} if name.startswith("haulout") else {},
                         "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", **target}]},
            "spec": {"target": {"pod": target}, "requester": requester, "intent": "Eviction"}})

    def budget(self, namespace, app, keeps):
        self.cluster.put("poddisruptionbudgets", {
            "metadata": {"name": app, "namespace": namespace, "generation": 1},
            "spec": {"minAvailable": keeps, "selector": {"matchLabels": {"app": app}}},
            "status": {"disruptionsAllowed": 0}})

    def stateful(self, namespace, node, volume=False):
        owner = self.workload("statefulsets", "StatefulSet", namespace)
        name, spec = owner["name"] + "-0", {}
        if volume:
            spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data-" + name}}]
            self.volume("pv-" + name, namespace, "data-" + name, node)
        return self.pod(namespace, node, owner, name, **spec)

    def volume(self, name, namespace, claim, node):
        found = self.cluster.put("persistentvolumeclaims", {"metadata": {"name": claim, "namespace": namespace},
                                                            "spec": {"volumeName": name}, "status": {"phase": "Bound"}})
        self.cluster.put("persistentvolumes", {"metadata": {"name": name}, "spec": {
            "claimRef": {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": claim,
                         "uid": found["metadata"]["uid"]}, "csi": {"driver": "d", "volumeHandle": name}},
            "status": {"phase": "Bound"}})
        self.attach(name, node)

    def attach(self, volume, node):
        self.cluster.put("volumeattachments", {"metadata": {"name": f"csi-{volume}-{node}"}, "spec": {
            "attacher": "d", "nodeName": node, "source": {"persistentVolumeName": volume}}, "status": {"attached": True}})

    def released_volume(self, node):
        """Attaches a volume of a deleted claim, which no pod uses. Its controller detaches it 1.5 s later."""
        self.serial += 1
        name = f"old-{self.serial}"
        self.cluster.put("persistentvolumes", {"metadata": {"name": name}, "spec": {
            "claimRef": {"namespace": "db", "name": "gone"}}, "status": {"phase": "Released"}})
        self.attach(name, node)
        self.cluster.later(1.5, lambda: self.cluster.remove("volumeattachments", ("", f"csi-{name}-{node}")))

    def daemons(self, nodes):
        owner = self.workload("daemonsets", "DaemonSet", "kube-system")
        for node in nodes:
            self.pod("kube-system", node, owner, tolerations=[{"operator": "Exists"}])

    def mirror(self, node):
        self.pod("kube-system", node, name="etcd-" + node, annotations={MIRROR: "hash"},
                 priorityClassName="system-node-critical")

    def crowd(self, nodes, volumes=False):
        """Creates the objects of an ordinary cluster, at random."""
        rng = self.rng
        if rng.random() < 0.8:
            self.daemons(nodes)
        for node in nodes:
            if rng.random() < 0.5:
                self.mirror(node)
            for _ in range(rng.randrange(0, 3)):
                self.stateful(rng.choice(NAMESPACES[:2]), node, volumes and rng.random() < 0.7)
            if rng.random() < 0.3:
                self.pod("shop", node, phase=rng.choice(["Succeeded", "Failed"]))
            if rng.random() < 0.3:
                self.pod("shop", node, volumes=[{"name": "tmp", "emptyDir": {}}])
            if volumes and rng.random() < 0.4:
                self.released_volume(node)
        for _ in range(rng.randrange(1, 4)):
            home = [rng.choice(nodes) for _ in range(rng.randrange(1, 5))]
            self.replicas(rng.choice(NAMESPACES[:2]), home, len(home) - 1 if rng.random() < 0.4 else None)
