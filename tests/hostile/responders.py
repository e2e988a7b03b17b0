"""The controller of EvictionRequests (KEP-4563) and the responders of pods.

The controller makes one Eviction of all open requests for a pod, and calls the pod's responders one after the other. When
none has evicted the pod, the last one, which stands for the eviction API, has its turn. What a responder does stands in its
pod's annotation `responder`:
  moves    deletes the pod after a while, with signs of life before
  silent   never answers; its turn ends when the controller's patience does
  gives-up says that it has finished, and has done nothing
  fails    fails the request at once
  holds    says again and again that it works, and never ends
"""
import functools

from cluster import key_of, node_of, now_text

REQUESTER = "haulout.dev/drain"
EVICTOR = "imperative-eviction.k8s.io/evictor"
PATIENCE = 1.0  # seconds after which the controller ends the turn of a silent responder. The real one waits 20 minutes


def target_of(item):
    return ((item.get("spec") or {}).get("target") or {}).get("pod") or {}


def condition(kind, holds, reason):
    return {"type": kind, "status": "True" if holds else "False", "reason": reason, "message": ""}


class Controller:
    def __init__(self, cluster):
        self.cluster, self.place, self.turns = cluster, len(cluster.log), set()
        cluster.has_responders = True
        cluster.wakes.add(self.look)

    def look(self):
        """Syncs, a little later, each pod about which something has changed."""
        log = self.cluster.log
        for _, plural, kind, item, _ in log[self.place:]:
            if plural == "pods" and kind == "DELETED":
                self.soon(item["metadata"]["namespace"], item["metadata"]["uid"])
            if plural == "evictionrequests" and kind != "DELETED":
                self.soon(item["metadata"]["namespace"], target_of(item).get("uid"))
        self.place = len(log)

    def soon(self, namespace, uid):
        self.cluster.later(0.02, functools.partial(self.sync, namespace, uid))

    def about(self, plural, namespace, uid):
        return [item for item in self.cluster.all(plural)
                if item["metadata"]["namespace"] == namespace and target_of(item).get("uid") == uid]

    def sync(self, namespace, uid):
        pod = next((pod for pod in self.cluster.all("pods") if pod["metadata"]["uid"] == uid), None)
        requests = self.about("evictionrequests", namespace, uid)
        evictions = self.about("evictions", namespace, uid)
        if pod is None:
            for item in requests:
                self.cluster.remove("evictionrequests", key_of(item))
            for item in evictions:
                self.cluster.remove("evictions", key_of(item))
            return
        wanted = [item for item in requests if item["spec"].get("intent") == "Eviction"]
        if not wanted:
            for item in evictions:
                self.cluster.remove("evictions", key_of(item))
        elif not evictions:
            self.begin(pod, wanted)
        else:
            names = {request["spec"]["requester"]: "requester" for request in wanted}
            self.cluster.change("evictions", key_of(evictions[0]), lambda item: item["metadata"]["labels"].update(names))
        self.tell(requests, self.about("evictions", namespace, uid))

    def begin(self, pod, requests):
        names = [one["name"] for one in pod["spec"].get("evictionResponders") or []] + [EVICTOR]
        labels = {request["spec"]["requester"]: "requester" for request in requests}
        metadata = {"name": "pod-" + pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"], "labels": labels,
                    "creationTimestamp": now_text()}
        target = {"pod": {"name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}}
        made = self.cluster.put("evictions", {"metadata": metadata, "spec": {"target": target}, "status": {
            "targetResponders": [{"name": name, "state": "Inactive"} for name in names],
            "responders": [{"name": name} for name in names]}})
        self.turn(key_of(made), made["metadata"]["uid"], 0)

    def edit(self, key, uid, change):
        item = self.cluster.items["evictions"].get(key)
        if item and item["metadata"]["uid"] == uid:
            self.cluster.change("evictions", key, change)
            return self.cluster.items["evictions"].get(key)
        return None

    def turn(self, key, uid, index):
        """Gives the responder with this index its turn."""
        def change(item):
            status = item["status"]
            for place, one in enumerate(status["targetResponders"]):
                one["state"] = "Active" if place == index else "Completed" if place < index else "Inactive"
            if index < len(status["responders"]):
                status["responders"][index]["startTime"] = now_text()
        item = self.edit(key, uid, change)
        if item is None:
            return
        pod = next((pod for pod in self.cluster.all("pods") if pod["metadata"]["uid"] == target_of(item)["uid"]), None)
        if pod is None or index >= len(item["status"]["responders"]) - 1:
            return  # the responder that stands for the eviction API repeats refused evictions, and the drain sends its own
        does = (pod["metadata"].get("annotations") or {}).get("responder", "silent")
        later = self.cluster.later
        if does == "silent":
            later(PATIENCE, lambda: self.turn(key, uid, index + 1))
        elif does == "gives-up":
            later(0.2, lambda: self.turn(key, uid, index + 1))
        elif does == "fails":
            self.edit(key, uid, lambda item: item["status"].update(conditions=[condition("Failed", True, "NoResponder")]))
            self.soon(key[0], target_of(item)["uid"])
        else:
            self.beat(key, uid, index, 4 if does == "moves" else None)

    def beat(self, key, uid, index, left):
        """Gives a sign of life each 0.2 s. After `left` of them the responder deletes the pod."""
        def change(item):
            item["status"]["responders"][index].update(heartbeatTime=now_text(), message=f"moving, {left} left")
        item = self.edit(key, uid, change)
        if item is None:
            return
        target = target_of(item)
        pod = self.cluster.get("pods", target["name"], key[0])
        if left == 0 and pod and pod["metadata"]["uid"] == target["uid"] and node_of(pod):
            self.cluster.terminate((key[0], target["name"]), None)
        if left != 0:
            self.cluster.later(0.2, lambda: self.beat(key, uid, index, left and left - 1))

    def tell(self, requests, evictions):
        """Copies the result to the requests."""
        failed = any(one["status"] == "True" for item in evictions for one in item["status"].get("conditions") or [])
        for request in requests:
            def change(item):
                item["status"] = {"observedGeneration": item["metadata"].get("generation", 1), "conditions": [
                    condition("TargetEvicted", False, "AwaitingEviction"),
                    condition("Failed", failed, "NoResponder" if failed else "AwaitingEviction")]}
            self.cluster.change("evictionrequests", key_of(request), change)
