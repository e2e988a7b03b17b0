"""The API of a Cluster: returns for a request the answer of kube-apiserver 1.36. No sockets, no faults."""
import asyncio
import copy
import dataclasses
import json
import re
import urllib.parse

from cluster import ALPHA, RESOURCES, api_version, is_finished, is_ready, is_terminating, key_of, labels_of, matches, node_of, now_text

REASONS = {400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 405: "MethodNotAllowed",
           409: "Conflict", 410: "Expired", 422: "Invalid", 429: "TooManyRequests", 500: "InternalError",
           503: "ServiceUnavailable", 504: "Timeout"}


@dataclasses.dataclass
class Request:
    method: str
    path: str
    query: dict
    body: bytes = b""

    @classmethod
    def parse(cls, method, target, body=b""):
        path, _, query = target.partition("?")
        return cls(method, urllib.parse.unquote(path), dict(urllib.parse.parse_qsl(query)), body)

    def json(self):
        try:
            found = json.loads(self.body)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


@dataclasses.dataclass
class Answer:
    code: int
    body: bytes
    headers: dict = dataclasses.field(default_factory=lambda: {"Content-Type": "application/json"})


@dataclasses.dataclass
class Route:
    """The target of a request. Faults and judges use `kind`, for example "list pods", "evict" or "patch nodes"."""
    kind: str
    plural: str = ""
    namespace: str = ""
    name: str = ""


def status(code, message, reason=None, **more):
    reason = REASONS.get(code) if reason is None else reason
    text = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "code": code}
    if reason:
        text["reason"] = reason
    return Answer(code, json.dumps({**text, **more}).encode())


def success(code=200):
    return Answer(code, b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":%d}' % code)


def not_found(plural, name):
    return status(404, f'{plural} "{name}" not found', details={"name": name, "kind": plural})


def other_uid(kind, name, uid):
    return status(409, f'Operation cannot be fulfilled on {kind} "{name}": the UID in the precondition ({uid}) does not '
                  "match the UID in record", details={"name": name, "kind": kind})


def route(request):
    path = re.fullmatch(r"/(?:api/v1|apis/[^/]+/[^/]+)(?:/namespaces/(?P<ns>[^/]+)(?=/))?/(?P<plural>[a-z]+)"
                        r"(?:/(?P<name>[^/]+))?(?:/(?P<sub>\w+))?", request.path)
    if not path:
        return Route("discover" if request.method == "GET" else "other")
    plural, name, sub = path["plural"], path["name"] or "", path["sub"] or ""
    if plural not in RESOURCES:
        return Route("review" if "reviews" in plural else "other", plural)
    verb = {"GET": "get" if name else "watch" if "watch" in request.query else "list", "PATCH": "patch",
            "DELETE": "delete", "POST": "create"}.get(request.method, "other")
    kind = "evict" if sub == "eviction" else f"{verb} {plural}{'/' + sub if sub else ''}"
    return Route(kind, plural, path["ns"] or "", name)


def merge(target, patch):
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            inner = target.get(key)
            target[key] = inner if isinstance(inner, dict) else {}
            merge(target[key], value)
        else:
            target[key] = value


def merge_conditions(target, patch):
    """Implements only the part of a strategic merge patch that Haulout sends: conditions by type."""
    conditions = (patch.get("status") or {}).pop("conditions", [])
    merge(target, patch)
    have = target.setdefault("status", {}).setdefault("conditions", [])
    for condition in conditions:
        have[:] = [old for old in have if old["type"] != condition.get("type")]
        if "$patch" not in condition:
            have.append(condition)


class Selector:
    """The field and label selectors of a list or a watch. With `lies` they match every object."""

    def __init__(self, request, namespace="", lies=False):
        self.namespace = namespace
        field = request.query.get("fieldSelector", "")
        self.fields = dict(re.findall(r"([\w.]+)=([^=,!]+)(?:,|$)", field)) if "!" not in field and not lies else {}
        label = request.query.get("labelSelector", "")
        self.labels = dict(re.findall(r"([\w./-]+)=([^=,!]*)(?:,|$)", label)) if not lies else {}
        self.present = [key for key in label.split(",") if re.fullmatch(r"[\w./-]+", key)] if not lies else []
        self.live_only = "status.phase!=" in field

    def __call__(self, item):
        metadata = item["metadata"]
        if self.namespace and metadata.get("namespace") != self.namespace:
            return False
        have = {"spec.nodeName": node_of(item), "metadata.name": metadata["name"],
                "metadata.namespace": metadata.get("namespace", "")}
        if self.live_only and is_finished(item):
            return False
        return (all(have.get(k) == v for k, v in self.fields.items()) and matches(labels_of(item), self.labels)
                and all(key in labels_of(item) for key in self.present))


class Api:
    def __init__(self, cluster, shape=lambda plural, item: item):
        self.cluster = cluster
        self.shape = shape  # returns an object as it is sent
        self.pages = {}  # continue token -> (items left, revision)
        self.encoded = {}  # (plural, uid, revision) -> text

    def encode(self, plural, item):
        key = plural, item["metadata"]["uid"], item["metadata"]["resourceVersion"]
        if key not in self.encoded:
            self.encoded[key] = json.dumps(self.shape(plural, item))
        return self.encoded[key]

    def handle(self, request, found):
        """Returns the Answer to any request except a watch."""
        verb = found.kind.split(" ")[0]
        if found.plural in ALPHA and not self.cluster.has_responders:
            return status(404, "the server could not find the requested resource")
        if found.kind == "evict":
            return self.evict(request, found)
        if found.kind == "delete pods":
            return self.remove_pod(request, found, request.json())
        if found.kind == "review":
            return self.review(request, found)
        if verb == "list":
            return self.list(request, found)
        if not found.plural:
            return status(404, "the server could not find the requested resource")
        if verb == "create":
            return self.create(request, found)
        item = self.cluster.get(found.plural, found.name, found.namespace)
        if item is None:
            return not_found(found.plural, found.name)
        if verb == "get":
            return Answer(200, self.encode(found.plural, item).encode())
        if verb == "patch":
            return self.patch(request, found, item)
        if verb == "delete":
            wanted = request.json().get("preconditions") or {}
            if wanted.get("uid") not in (None, item["metadata"]["uid"]):
                return other_uid(RESOURCES[found.plural][1], found.name, wanted["uid"])
            if wanted.get("resourceVersion") not in (None, item["metadata"]["resourceVersion"]):
                return status(409, f'Operation cannot be fulfilled on {found.plural} "{found.name}": the ResourceVersion in '
                              "the precondition does not match the ResourceVersion in record",
                              details={"name": found.name, "kind": found.plural})
            self.cluster.remove(found.plural, key_of(item))
            return success()
        return status(405, "the server does not allow this method on the requested resource")

    def list(self, request, found, lies=False):
        if found.plural in ALPHA and not self.cluster.has_responders:
            return status(404, "the server could not find the requested resource")
        limit = int(request.query.get("limit", 0))
        token = request.query.get("continue")
        if token:
            if token not in self.pages:
                return status(410, "The provided continue parameter is too old to display a consistent list result.")
            left, revision = self.pages[token]
        else:
            chosen = Selector(request, found.namespace, lies)
            left = [item for _, item in sorted(self.cluster.items[found.plural].items()) if chosen(item)]
            revision = self.cluster.revision
        metadata = {"resourceVersion": str(revision)}
        page = left[:limit] if limit else left
        if len(page) < len(left):
            metadata["continue"] = f"page-{len(self.pages)}"
            self.pages[metadata["continue"]] = left[limit:], revision
        head = json.dumps({"kind": RESOURCES[found.plural][1] + "List", "apiVersion": api_version(found.plural),
                           "metadata": metadata})
        items = ",".join(self.encode(found.plural, item) for item in page)
        return Answer(200, (head[:-1] + ', "items": [' + items + "]}").encode())

    def patch(self, request, found, item):
        patch = request.json()
        wanted = (patch.get("metadata") or {}).pop("resourceVersion", None)
        if wanted not in (None, item["metadata"]["resourceVersion"]):
            return status(409, f'Operation cannot be fulfilled on {found.plural} "{found.name}": the object has been '
                          "modified; please apply your changes to the latest version and try again",
                          details={"name": found.name, "kind": found.plural})
        uid = (patch.get("metadata") or {}).pop("uid", None)
        if uid not in (None, item["metadata"]["uid"]):
            return other_uid(RESOURCES[found.plural][1], found.name, uid)
        if request.query.get("dryRun"):
            shown = copy.deepcopy(item)
            merge(shown, patch)
            return Answer(200, json.dumps(shown).encode())
        if found.plural in ALPHA:
            patch.setdefault("metadata", {})["generation"] = item["metadata"].get("generation", 1) + 1
        edit = merge_conditions if found.kind.endswith("/status") else merge
        changed = self.cluster.change(found.plural, key_of(item), lambda target: edit(target, patch))
        return Answer(200, self.encode(found.plural, changed).encode())

    def create(self, request, found):
        item = request.json()
        metadata = item.setdefault("metadata", {})
        if RESOURCES[found.plural][2]:
            metadata["namespace"] = found.namespace
        if not metadata.get("name"):
            return status(422, "metadata.name: Required value")
        if self.cluster.get(found.plural, metadata["name"], found.namespace):
            return status(409, f'{found.plural} "{metadata["name"]}" already exists', "AlreadyExists")
        if request.query.get("dryRun"):
            metadata.update(uid="00000000-0000-4000-8000-000000000000", resourceVersion="1")
            return Answer(201, json.dumps(item).encode())
        if found.plural in ALPHA:
            metadata.update(generation=1, creationTimestamp=now_text())
        made = self.cluster.put(found.plural, item)
        return Answer(201, self.encode(found.plural, made).encode())

    def review(self, request, found):
        item = request.json()
        if found.plural == "selfsubjectreviews":
            item["status"] = {"userInfo": {"username": "somebody", "groups": ["system:authenticated"]}}
        else:
            item["status"] = {"allowed": True}
        return Answer(201, json.dumps(item).encode())

    def evict(self, request, found):
        pod = self.cluster.get("pods", found.name, found.namespace)
        if pod is None:
            return not_found("pods", found.name)
        budgets = [budget for budget in self.cluster.all("poddisruptionbudgets")
                   if budget["metadata"]["namespace"] == found.namespace and self.cluster.selects(budget, pod)]
        asks = not (is_finished(pod) or is_terminating(pod) or not is_ready(pod))
        if asks and len(budgets) > 1:
            return status(500, "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
                          "support.", "")
        if asks and budgets and budgets[0]["status"]["disruptionsAllowed"] < 1:
            seen = budgets[0]["status"]
            cause = {"reason": "DisruptionBudget", "message":
                     f"The disruption budget {budgets[0]['metadata']['name']} needs {seen['desiredHealthy']} healthy pods "
                     f"and has {seen['currentHealthy']} currently"}
            return status(429, "Cannot evict pod as it would violate the pod's disruption budget.",
                          details={"causes": [cause]})
        return self.remove_pod(request, found, request.json().get("deleteOptions") or {}, 201)

    def remove_pod(self, request, found, options, code=200):
        pod = self.cluster.get("pods", found.name, found.namespace)
        if pod is None:
            return not_found("pods", found.name)
        uid = (options.get("preconditions") or {}).get("uid")
        if uid not in (None, pod["metadata"]["uid"]):
            return other_uid("Pod", found.name, uid)
        if not request.query.get("dryRun"):
            self.cluster.terminate(key_of(pod), options.get("gracePeriodSeconds"))
        return success(code)


class Watch:
    """The events of one watch, in order, after a revision."""

    def __init__(self, api, request, found, lies=False):
        self.api, self.plural = api, found.plural
        self.selector = Selector(request, found.namespace, lies)
        try:
            revision = int(request.query.get("resourceVersion", "0") or 0)
        except ValueError:
            revision = 0
        self.revision = revision
        log = api.cluster.log
        self.place = next((i for i, entry in enumerate(log) if entry[0] > revision), len(log))
        self.news = asyncio.Event()
        api.cluster.wakes.add(self.news.set)

    def close(self):
        self.api.cluster.wakes.discard(self.news.set)

    def take(self):
        """Returns the events since the last call, as (type, object)."""
        log, events = self.api.cluster.log, []
        while self.place < len(log):
            revision, plural, kind, item, before = log[self.place]
            self.place += 1
            self.revision = revision
            if plural != self.plural:
                continue
            is_ours, was_ours = kind != "DELETED" and self.selector(item), before is not None and self.selector(before)
            if is_ours:
                events.append(("MODIFIED" if was_ours else "ADDED", item))
            elif was_ours:
                events.append(("DELETED", item))
        self.news.clear()
        return events

    def line(self, kind, item):
        return ('{"type":"%s","object":%s}\n' % (kind, self.api.encode(self.plural, item))).encode()

    def bookmark(self):
        kind = RESOURCES[self.plural][1]
        item = {"kind": kind, "apiVersion": api_version(self.plural), "metadata": {"resourceVersion": str(self.revision)}}
        return (json.dumps({"type": "BOOKMARK", "object": item}) + "\n").encode()
