"""Makes a world from a seed: its objects, Haulout's command, the faults, and the expected result.

What a world expects:
  done       exit code 0, in time
  open       any end is right if it is safe: see judge.py
  untouched  the command fails and has changed nothing
  told       an obstacle is permanent: the program reports it in time
  cause      the same, with a deadline: the final message names the cause
  ready      an agent marks its Node as ready, and that is true
"""
import dataclasses
import random

from cluster import Cluster, is_daemon, is_finished, is_mirror, labels_of, matches, node_of
from oddities import odd
from plans import Plan
from population import BOOT_ID, Population
from themes import THEMES

KUBECONFIG = """apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "http://127.0.0.1:PORT"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {}}]
"""


@dataclasses.dataclass
class World:
    seed: int
    rng: random.Random
    cluster: Cluster
    plan: Plan
    theme: str = ""
    command: str = "drain"
    nodes: list = dataclasses.field(default_factory=list)  # all nodes of the world
    asked: list = dataclasses.field(default_factory=list)  # the nodes that the command is to change
    targets: list = dataclasses.field(default_factory=list)  # the arguments that name these nodes
    flags: list = dataclasses.field(default_factory=list)
    pod_labels: dict = dataclasses.field(default_factory=dict)  # --pod-selector
    expect: str = "done"
    marker: str = ""  # text that has to reach the user
    obstacle: str = "stands"  # name of the fault that is the obstacle; empty: an answer 429
    patience: float = 75.0  # seconds after which the program is ended
    ends_within: float = 5.0  # seconds that the program may take to end after SIGTERM
    mute: float = 0.0  # seconds at the start in which the server does not listen
    quick: str = ""  # namespace whose pods have to be evicted within `quick_limit` of the first eviction
    quick_limit: float = 8.0
    exits: tuple = ()  # the allowed exit codes; empty if `expect` decides
    odd_shapes: float = 0.0  # share of the objects that the server sends in an odd form
    weight: int = 0  # bytes that each pod has more than it needs; a page of such pods is longer than a client reads
    wrong_types: bool = False

    def arguments(self, port, home="HOME"):
        if self.command == "agent":
            return ["agent", "--kubeconfig", f"{home}/kubeconfig", "--host-root", home, *self.flags]
        return [self.command, *self.targets, "--server", f"http://127.0.0.1:{port}", *self.flags]

    def furnish(self, home, port):
        """Writes the files of an agent's machine: a kubeconfig, a boot ID, and a sentinel that requests a reboot."""
        files = {"kubeconfig": KUBECONFIG.replace("PORT", str(port)), "proc/sys/kernel/random/boot_id": BOOT_ID + "\n",
                 "etc/os-release": "ID=debian\nPRETTY_NAME=Debian\n", "run/reboot-required": ""}
        for name, text in files.items() if self.command == "agent" else ():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(text, encoding="utf-8")

    def shape(self, plural, item):
        if self.weight and plural == "pods":
            padding = {"example.com/config": "x" * self.weight}
            item = {**item, "metadata": {**item["metadata"], "annotations": {**item["metadata"].get("annotations", {}), **padding}}}
        rng = random.Random(f"{self.seed} {plural} {item['metadata']['uid']}")
        return odd(rng, plural, item, self.wrong_types) if rng.random() < self.odd_shapes else item

    def has(self, flag):
        return any(given == flag or given.startswith(flag + "=") for given in self.flags)

    def must_leave(self, pod):
        stays = is_mirror(pod) or is_daemon(pod) or (self.command == "agent" and is_finished(pod))
        return not stays and matches(labels_of(pod), self.pod_labels)

    def empty(self):
        """Returns True if no pod that must leave is left on the asked nodes."""
        return not any(node_of(pod) in self.asked and self.must_leave(pod) for pod in self.cluster.all("pods"))


def theme_of(seed):
    """Returns the name of the seed's theme."""
    return random.Random(f"theme {seed}").choices(list(THEMES), list(THEMES.values()))[0].__name__


def form_gangs(world):
    """Makes some pods members of a gang. Draws from a source of its own, so that seeds keep the rest of their worlds."""
    rng = random.Random(f"gangs {world.seed}")
    if rng.random() < 0.7:
        return
    train = lambda pod: pod["metadata"].setdefault("labels", {}).update({"jobset.sigs.k8s.io/jobset-name": "train"})
    for pod in list(world.cluster.all("pods")):
        if rng.random() < 0.3:
            world.cluster.change("pods", (pod["metadata"]["namespace"], pod["metadata"]["name"]), train)
    world.flags.append("--gangs=" + rng.choice(["evict", "evict", "wait", "refuse"]))


def add_weight(world):
    """Makes the pods of some worlds so large that few of them fit in one answer. Draws from a source of its own."""
    rng = random.Random(f"weight {world.seed}")
    if world.theme in ("calm", "one_fault", "weather", "retired") and rng.random() < 0.1:
        world.weight = rng.choice([200_000, 700_000, 1_400_000])


def make(seed, theme, later):
    rng = random.Random(f"world {seed}")
    cluster = Cluster(random.Random(f"cluster {seed}"), later)
    world = World(seed, rng, cluster, Plan(seed))
    world.theme = theme
    people = Population(rng, cluster)
    world.nodes = ["n1", "n2", "n3", "n4"][:rng.choice([3, 4])]  # at most two of them are drained
    for index, name in enumerate(world.nodes):
        people.node(name, {"pool": "a" if index < 2 else "b"})
    next(fill for fill in THEMES if fill.__name__ == theme)(world, people)
    if world.expect in ("told", "cause"):  # the uncordon would add a time limit of its own
        world.flags = [flag for flag in world.flags if flag != "--uncordon-on-failure"]
    if world.expect == "open" and world.command == "drain":
        form_gangs(world)
    add_weight(world)
    # Drains in worlds with an open result need a deadline, so that they end.
    if world.expect == "open" and world.command in ("drain", "retire") and not world.has("--timeout"):
        world.flags.append("--timeout=" + rng.choice(["4s", "7s"]))
    return world
