"""Themes: each is a function that fills a world with objects, a command and faults. THEMES has their frequencies."""
import faults
import responders
from cluster import controller_of, is_terminating, key_of, labels_of, node_of
from plans import Rule

ALL = ("get ", "list ", "watch ", "evict", "patch ", "delete ", "review", "create ")
READS = ("get nodes", "list pods", "list poddisruptionbudgets", "get daemonsets")
SURVIVABLE_AFTER_CONTACT = {**faults.SURVIVABLE, **faults.HALVES}


# ---- commands
def drain(world, *flags, settle=True):
    rng = world.rng
    world.flags = ["--force", "--ignore-daemonsets", "--delete-emptydir-data", *flags]
    if settle:
        world.flags.append("--settle=" + rng.choice(["0s", "100ms", "300ms"]))
    for chance, flag in ((0.15, "--disable-eviction"), (0.2, "--max-concurrent=" + rng.choice("125")),
                         (0.2, "--chunk-size=" + rng.choice("0123")), (0.3, "-o=" + rng.choice(["json", "jsonl"])),
                         (0.1, "--grace-period=1"), (0.1, "--uncordon-on-failure"), (0.05, "--respect-do-not-disrupt"),
                         (0.1, "--pod-rule=kind:ReplicaSet=wait-completed=" + rng.choice(["300ms", "2s"])),
                         (0.1, "--pod-rule=app=web=last"), (0.1, "--cluster-api-labels=all"),
                         (0.1, "--evict-daemonset-pods=app")):
        if rng.random() < chance:
            world.flags.append(flag)


def names(world, count):
    world.asked = world.targets = world.nodes[:count]


def selector(world):
    """Selects two nodes by their label."""
    world.targets = ["-l", "pool=a"]
    world.asked = [n["metadata"]["name"] for n in world.cluster.all("nodes") if labels_of(n).get("pool") == "a"]


def any_command(world, volumes=False):
    """Chooses one of the commands that write, for one or several nodes, by name or by selector."""
    rng = world.rng
    world.command = rng.choice(["drain", "drain", "drain", "cordon", "uncordon"])
    if rng.random() < 0.35:
        selector(world)
    else:
        names(world, rng.choice([1, 1, 2]))
    if world.command == "drain":
        more = [flag for chance, flag in ((0.15, "--check-fit=warn"), (0.3 if volumes else 0, "--wait-volumes"),
                                          (0.1, "--canary=1s"), (0.1, "--max-unavailable-per-controller=1"))
                if rng.random() < chance]
        drain(world, *more)
    if world.command == "uncordon":
        for name in world.nodes:
            world.cluster.change("nodes", ("", name), lambda node: node["spec"].update(unschedulable=True))


# ---- themes
def calm(world, people):
    people.crowd(world.nodes, True)
    any_command(world, True)


def one_fault(world, people):
    """One request meets a fault that passes."""
    people.crowd(world.nodes, True)
    any_command(world, True)
    first = ["list nodes"] if world.targets[0] == "-l" else []
    kinds = {"drain": [*READS, "list pods", "watch ", "patch nodes", "evict", "review"]}.get(
        world.command, ["get nodes", "patch nodes"])
    world.plan.rules = [Rule((world.rng.choice([*first, *first, *kinds]),), faults.SURVIVABLE, 1.0,
                             world.rng.choice([1, 1, 1, 2, 3]), 1)]


def weather(world, people):
    people.crowd(world.nodes, True)
    any_command(world, True)
    world.plan.rules = [Rule((kind,), faults.SURVIVABLE, world.rng.choice([0.1, 0.3]), 1, 2) for kind in ALL]
    world.plan.rules += [Rule((kind,), faults.HALVES, 0.2, 3, 2) for kind in ALL]
    world.plan.watch_rules = [Rule(("event",), faults.WATCH_PASSING, 0.1, 1, 3)]


def silent_at_first(world, people):
    """The server does not accept connections at first."""
    people.crowd(world.nodes)
    any_command(world)
    world.mute = world.rng.choice([0.3, 1.0, 2.5])


def nonsense(world, people):
    people.crowd(world.nodes, True)
    any_command(world, True)
    world.expect = "open"
    world.plan.rules = [Rule((kind,), {**faults.NONSENSE, **faults.HALVES}, world.rng.choice([0.1, 0.5]),
                             world.rng.choice([1, 2]), world.rng.choice([1, 3])) for kind in ALL]
    world.plan.watch_rules = [Rule(("event",), {**faults.WATCH_NONSENSE, **faults.WATCH_PASSING}, 0.2, 1, 4)]


def always_nonsense(world, people):
    """From some request on, requests of one kind only get nonsense; all other requests get correct answers."""
    people.crowd(world.nodes, True)
    world.expect = "open"
    names(world, 1)
    drain(world, *(["--wait-volumes"] if world.rng.random() < 0.5 else []))
    kind = world.rng.choice([*READS, "list volumeattachments", "get persistentvolumes", "patch nodes", "evict"])
    name = world.rng.choice(sorted(faults.NONSENSE))
    world.plan.rules = [Rule((kind,), {name: faults.NONSENSE[name]}, first=world.rng.choice([1, 2, 3]))]


def odd_watches(world, people):
    people.crowd(world.nodes)
    names(world, world.rng.choice([1, 2]))
    drain(world)
    world.expect = "open"
    world.plan.copies = world.rng.choice([1, 2])
    world.plan.watch_rules = [Rule(("event",), {**faults.WATCH_NONSENSE, **faults.WATCH_PASSING}, 0.4, 1, 6)]


def repeated_watches(world, people):
    """Old events are repeated, every event may come twice, and watches break. None of that changes the outcome."""
    people.crowd(world.nodes)
    names(world, world.rng.choice([1, 2]))
    drain(world)
    world.plan.copies = world.rng.choice([1, 2])
    table = {**faults.WATCH_PASSING, "replays": faults.WATCH_NONSENSE["replays"]}
    world.plan.watch_rules = [Rule(("event",), table, 0.3, 1, 4)]


def stands_at_the_end(world, people):
    """When all pods were deleted, the check of that fails permanently, while the watches work."""
    people.crowd(world.nodes)
    names(world, 1)
    people.replicas("shop", world.asked)
    world.expect = world.rng.choice(["told", "cause"])
    drain(world, *(["--timeout=15s"] if world.expect == "cause" else []))
    world.marker = f"obstacle-{world.seed}"
    world.plan.standing(world.rng.choice(["list pods", "get nodes"]), message=world.marker, when=world.empty)


def stands_in_the_middle(world, people):
    people.crowd(world.nodes, True)
    names(world, 1)
    people.stateful("db", world.nodes[0], True)
    world.expect = world.rng.choice(["told", "cause"])
    drain(world, "--wait-volumes", *(["--timeout=15s"] if world.expect == "cause" else []))
    world.marker = f"obstacle-{world.seed}"
    removal = "delete pods" if world.has("--disable-eviction") else "evict"
    world.plan.standing(world.rng.choice(["list pods", "patch nodes", removal, "list volumeattachments"]),
                        message=world.marker)
    if world.expect == "cause" and world.rng.random() < 0.5:
        world.plan.rules[0].table = {"stands": faults.refusal(500, message=world.marker)}


def liars(world, people):
    """The server, or a proxy in front of it, ignores selectors."""
    people.crowd(world.nodes)
    people.replicas("shop", world.nodes)
    world.expect = "open"
    if world.rng.random() < 0.3:
        selector(world)
        drain(world, "--timeout=5s")
        world.plan.liars = ("list nodes",)
    else:
        names(world, world.rng.choice([1, 2]))
        drain(world, "--timeout=5s")
        world.plan.liars = world.rng.choice([("list pods",), ("watch pods",), ("list pods", "watch pods"),
                                             ("watch nodes",)])
    world.plan.lie_every = world.rng.choice([1, 2, 3])


def odd_objects(world, people):
    people.crowd(world.nodes, True)
    for _ in range(2):
        people.released_volume(world.nodes[0])
    world.expect = "open"
    names(world, world.rng.choice([1, 1, 2]))
    volumes = ["--wait-volumes"] if world.rng.random() < 0.6 else []
    fit = ["--check-fit=" + world.rng.choice(["warn", "block"])] if world.rng.random() < 0.3 else []
    guards = ["--max-unavailable-per-controller=1"] if world.rng.random() < 0.2 else []
    drain(world, "--timeout=4s", *volumes, *fit, *guards)
    world.odd_shapes = world.rng.choice([0.2, 0.7])
    world.wrong_types = world.rng.random() < 0.3


def unknown_name(world, people):
    """One of several names does not exist: the command changes nothing."""
    people.crowd(world.nodes)
    world.command = world.rng.choice(["drain", "drain", "cordon", "uncordon"])
    if world.command == "drain":
        drain(world)
    if world.command == "uncordon":
        world.cluster.change("nodes", ("", world.nodes[0]), lambda node: node["spec"].update(unschedulable=True))
    world.asked = world.nodes[:2]
    world.targets = [*world.asked, "nope"]
    world.rng.shuffle(world.targets)
    world.expect, world.exits = "untouched", (1,)
    if world.rng.random() < 0.3:
        world.plan.rules = [Rule(("get nodes",), faults.SURVIVABLE, 1.0, world.rng.choice([1, 2]), 1)]


def fit_lists(world, people):
    """The lists of --check-fit fail. If one fails once, the drain continues; if they always fail, it must change nothing."""
    people.crowd(world.nodes)
    people.replicas("shop", world.nodes)
    names(world, 1)
    if world.rng.random() < 0.5:
        drain(world, "--check-fit=warn", "--chunk-size=1")
        world.plan.rules = [Rule(("list nodes",), {"expired": faults.refusal(410)}, 1.0, world.rng.choice([2, 3]), 1)]
        return
    world.expect = "untouched"
    drain(world, "--check-fit=require", "--timeout=4s")
    table = {name: faults.NONSENSE[name] for name in ("a pod", "{}", "no items", "a list of nothing", "a success", "html 200")}
    name = world.rng.choice(sorted(table))
    world.plan.rules = [Rule(("list nodes",), {name: table[name]})]
    # The first list of pods is that of the node, so only the list of all pods in the cluster fails.
    world.plan.rules.append(Rule(("list pods",), {name: table[name]}, first=2))


def dead_kubelet(world, people):
    """Pods of the node stay terminating unless the drain requests a shorter grace period."""
    node = world.nodes[0]
    names(world, 1)
    people.crowd(world.nodes[1:])
    owner = people.workload("replicasets", "ReplicaSet", "shop")
    grace = world.rng.choice([0, 1])
    if grace == 0:
        world.cluster.dead_kubelets.add(node)
    for _ in range(world.rng.randrange(1, 6)):
        pod = people.pod("shop", node, owner, grace=3600)
        world.cluster.lasting[pod["metadata"]["uid"]] = 3600
        if world.rng.random() < 0.8 or not any(is_terminating(p) for p in world.cluster.all("pods")):
            world.cluster.terminate(("shop", pod["metadata"]["name"]), None)
    drain(world)
    world.flags = [flag for flag in world.flags if not flag.startswith("--grace-period")] + [f"--grace-period={grace}"]
    world.patience = 15


def slow_admission(world, people):
    """Evictions in one namespace take seconds. The drain must send those of other namespaces in time."""
    names(world, 1)
    owner = people.workload("replicasets", "ReplicaSet", "slow", 40)
    for _ in range(40):
        people.pod("slow", world.nodes[0], owner)
    # This namespace is the last one in the order of the pods' keys.
    world.cluster.put("namespaces", {"metadata": {"name": "zebra"}})
    people.pod("zebra", world.nodes[0], people.workload("replicasets", "ReplicaSet", "zebra"))
    drain(world)
    world.flags = [flag for flag in world.flags if not flag.startswith("--max-concurrent")]
    world.plan.slow = {"slow": world.rng.choice([3.0, 4.0])}
    world.quick = "zebra"


def closed_budget(world, people):
    names(world, 1)
    home = world.nodes[:3]
    owner = people.replicas("shop", home, len(home))
    drain(world)
    world.flags = [flag for flag in world.flags if flag != "--disable-eviction"]
    if world.rng.random() < 0.5:
        world.cluster.later(2.0, lambda: world.cluster.remove("poddisruptionbudgets", ("shop", owner["name"])))
    else:
        world.expect = "told"
        world.marker = owner["name"]
        world.obstacle = ""  # the obstacle is the first refused eviction (429)


def short_timeout(world, people):
    """An empty node and a deadline that is not longer than --settle: the drain succeeds or reports wrong usage."""
    world.exits = (0, 2)
    names(world, 1)
    people.daemons(world.nodes)
    drain(world, "--timeout=3s", settle=False)


def monsters(world, people):
    people.crowd(world.nodes)
    names(world, 1)
    world.expect = "open"
    if world.rng.random() < 0.5:
        world.patience = 8
        agent_of(world)
    else:
        drain(world, "--timeout=5s")
    world.plan.rules = [Rule(("list pods", "list poddisruptionbudgets", "get nodes"), faults.MONSTERS, 0.5, 2, 2)]
    if world.rng.random() < 0.3:
        world.plan.watch_rules = [Rule(("event",), faults.WATCH_MONSTERS, 0.5, 1, 1)]


def retired(world, people):
    """Nodes are retired. Sometimes a pod is not to be evicted, or another Node takes the name of the first one."""
    rng = world.rng
    people.crowd(world.nodes, True)
    names(world, rng.choice([1, 1, 2]))
    for name in world.nodes:
        people.heartbeats(name)
    drain(world, "--check-fit=" + rng.choice(["off", "warn"]))
    world.flags = [flag for flag in world.flags if flag != "-o=jsonl"]
    world.command = "retire"
    course = rng.choice(["calm", "survivable", "survivable", "nonsense", "stays", "namesake"])
    if course == "survivable":
        world.plan.rules = [Rule((kind,), faults.SURVIVABLE, 0.15, 1, 2) for kind in ALL]
    if course == "nonsense":
        world.expect = "open"
        world.plan.rules = [Rule((kind,), {**faults.NONSENSE, **faults.HALVES}, 0.2, 1, 2) for kind in ALL]
        world.odd_shapes = rng.choice([0, 0.3])
    if course == "stays":
        world.expect, world.exits = "open", (1,)
        people.pod("shop", world.nodes[0], people.workload("replicasets", "ReplicaSet", "shop"))
        world.pod_labels = {"app": "nothing"}
        world.flags.append("--pod-selector=app=nothing")
    if course == "namesake":
        world.expect = "open"

        def replace():
            item = world.cluster.get("nodes", world.nodes[0])
            world.cluster.remove("nodes", ("", world.nodes[0]))
            if item:
                people.node(world.nodes[0], labels_of(item))
        world.cluster.later(rng.choice([0.2, 0.6, 1.0, 1.5]), replace)


def ask_responders(world, people):
    """Gives pods responders, and creates requests that others, or an earlier drain, have made."""
    rng, cluster = world.rng, world.cluster
    world.controller = responders.Controller(cluster)
    people.replicas("shop", [*world.nodes, *world.asked])
    for pod in cluster.all("pods"):
        if (controller_of(pod) or {}).get("kind") not in ("ReplicaSet", "StatefulSet") or rng.random() < 0.3:
            continue
        does = rng.choice(["moves", "moves", "silent", "gives-up", "fails"])

        def edit(pod, does=does):
            pod["metadata"].setdefault("annotations", {})["responder"] = does
            pod["spec"]["evictionResponders"] = [{"name": "a.example/mover", "priority": 1000}]
        pod = cluster.change("pods", key_of(pod), edit)
        node = cluster.get("nodes", node_of(pod))
        if rng.random() < 0.3 or node_of(pod) not in world.asked:
            people.request(pod, responders.REQUESTER, node)
        if rng.random() < 0.2:
            people.request(pod, "a.example/autoscaler", node)


def asked_responders(world, people):
    """Pods with responders are asked by EvictionRequests before they are evicted."""
    rng = world.rng
    people.crowd(world.nodes, True)
    names(world, rng.choice([1, 1, 2]))
    ask_responders(world, people)
    drain(world, "--eviction-requests=responders", "--eviction-request-limit=" + rng.choice(["1s", "3s"]))
    course = rng.choice(["calm", "survivable", "survivable", "nonsense", "odd", "liars", "refused", "held", "stopped", "unserved"])
    requests = ("evictionrequests", "list evictions", "watch evictions")
    if course == "survivable":
        world.plan.rules = [Rule((kind,), faults.SURVIVABLE, 0.2, 1, 3) for kind in (*ALL, *requests)]
        world.plan.watch_rules = [Rule(("event",), faults.WATCH_PASSING, 0.2, 1, 3)]
    if course in ("nonsense", "odd", "liars"):
        world.expect = "open"
    if course == "nonsense":
        world.plan.rules = [Rule((kind,), {**faults.NONSENSE, **faults.HALVES}, 0.4, 1, 4) for kind in requests]
        world.plan.watch_rules = [Rule(requests[1:], {**faults.WATCH_NONSENSE, **faults.WATCH_PASSING}, 0.3, 1, 4)]
    if course == "odd":
        world.odd_shapes, world.wrong_types = rng.choice([0.3, 0.8]), rng.random() < 0.4
    if course == "liars":
        world.plan.liars = rng.choice([("list evictionrequests",), ("watch evictionrequests",), ("list evictions",),
                                       ("list evictionrequests", "watch evictionrequests", "list evictions", "watch evictions")])
        world.plan.lie_every = rng.choice([1, 2])
    if course == "refused":
        table = {"refused": faults.refusal(rng.choice([403, 403, 404, 422]))}
        world.plan.rules = [Rule((rng.choice([*requests, "create evictionrequests"]),), table, first=rng.choice([1, 1, 2]))]
    if course in ("held", "stopped"):
        holds = people.pod("shop", world.asked[0], people.workload("replicasets", "ReplicaSet", "shop"),
                           annotations={"responder": "holds"}, evictionResponders=[{"name": "a.example/mover", "priority": 9}])
        people.request(holds, "a.example/autoscaler", world.cluster.get("nodes", world.asked[0]))
        world.expect = "open"
        # A responder does not keep a pod from a drain that deletes it. A wait must be shorter than the deadline.
        world.flags = [flag for flag in world.flags if flag != "--disable-eviction" and "wait-completed=2s" not in flag]
        world.flags.append("--timeout=" + rng.choice(["2s", "4s"]))
        if course == "stopped":
            # If the answer to a request was lost, the drain looks for the request for ten seconds.
            world.patience, world.ends_within = rng.choice([0.3, 0.6, 1.0, 1.5]), 20
        if rng.random() < 0.5:
            world.exits = (1,) if course == "held" else ()
        else:
            world.plan.rules = [Rule((kind,), faults.SURVIVABLE, 0.2, 1, 2) for kind in requests]
    if course == "unserved":
        world.cluster.has_responders = False


def agent_of(world):
    """Runs an agent whose machine needs a reboot. The agent does not reboot it (--reboot-method=none)."""
    world.command = "agent"
    world.flags = ["--node-name", world.nodes[0], "--authority=serviceaccount", "--backend=file",
                   "--sentinel=/run/reboot-required", "--reboot-method=none", "--settle=200ms", "--config=",
                   "--slots=" + world.rng.choice(["none", "lease"])]


def agent(world, people):
    """Runs an agent until its Node is `ready`."""
    people.crowd(world.nodes, True)
    world.expect = "ready"
    names(world, 1)
    agent_of(world)
    weather = world.rng.choice(["calm", "survivable", "survivable", "nonsense"])
    if weather == "survivable":
        world.plan.rules = [Rule((kind,), SURVIVABLE_AFTER_CONTACT, 0.1, 3, 1) for kind in ALL]
        world.plan.watch_rules = [Rule(("event",), faults.WATCH_PASSING, 0.1, 1, 3)]
    if weather == "nonsense":
        world.expect = "open"
        world.patience = 8
        world.plan.rules = [Rule((kind,), {**faults.NONSENSE, **faults.HALVES}, 0.2, 1, 2) for kind in ALL]
        world.odd_shapes = world.rng.choice([0, 0.3])


# theme -> relative frequency; they add up to about 1000
THEMES = {calm: 20, one_fault: 200, weather: 120, silent_at_first: 30, nonsense: 120, always_nonsense: 50,
          odd_watches: 50, repeated_watches: 50, stands_at_the_end: 20, stands_in_the_middle: 30, liars: 60,
          odd_objects: 100, unknown_name: 40, fit_lists: 40, dead_kubelet: 25, slow_admission: 5, closed_budget: 20, agent: 60,
          short_timeout: 5, monsters: 5, retired: 60, asked_responders: 60}
