"""Seed -> world: who lives there, what is asked of Haulout, what goes wrong, and what has to come of it.

What a world expects:
  done       exit code 0, in time
  open       however it ends, it is safe: see judge.py
  untouched  it fails, and has changed nothing
  told       something stands in the way for good: that is said in time
  cause      the same, with a deadline: what ends it names the cause
  ready      an agent calls its Node ready, and rightly
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
    nodes: list = dataclasses.field(default_factory=list)  # that there are
    asked: list = dataclasses.field(default_factory=list)  # that the command is about
    targets: list = dataclasses.field(default_factory=list)  # how it names them
    flags: list = dataclasses.field(default_factory=list)
    pod_labels: dict = dataclasses.field(default_factory=dict)  # --pod-selector
    expect: str = "done"
    marker: str = ""  # what has to reach the user
    obstacle: str = "stands"  # the fault that stands in the way
    patience: float = 75.0  # seconds after which it is ended
    mute: float = 0.0  # seconds in which nothing listens at first
    quick: str = ""  # a namespace whose pods have to be asked within `quick_limit`
    quick_limit: float = 8.0
    exits: tuple = ()  # exit codes, where only these are right
    odd_shapes: float = 0.0  # the part of all objects that looks odd on the wire
    wrong_types: bool = False

    def arguments(self, port, home="HOME"):
        if self.command == "agent":
            return ["agent", "--kubeconfig", f"{home}/kubeconfig", "--host-root", home, *self.flags]
        return [self.command, *self.targets, "--server", f"http://127.0.0.1:{port}", *self.flags]

    def furnish(self, home, port):
        """What an agent finds on its machine: a kubeconfig, a boot id, a sentinel that asks for a reboot."""
        files = {"kubeconfig": KUBECONFIG.replace("PORT", str(port)), "proc/sys/kernel/random/boot_id": BOOT_ID + "\n",
                 "etc/os-release": "ID=debian\nPRETTY_NAME=Debian\n", "run/reboot-required": ""}
        for name, text in files.items() if self.command == "agent" else ():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(text, encoding="utf-8")

    def shape(self, plural, item):
        rng = random.Random(f"{self.seed} {plural} {item['metadata']['uid']}")
        return odd(rng, plural, item, self.wrong_types) if rng.random() < self.odd_shapes else item

    def has(self, flag):
        return any(given == flag or given.startswith(flag + "=") for given in self.flags)

    def must_leave(self, pod):
        stays = is_mirror(pod) or is_daemon(pod) or (self.command == "agent" and is_finished(pod))
        return not stays and matches(labels_of(pod), self.pod_labels)

    def empty(self):
        """Whether every pod that must leave the asked nodes has gone."""
        return not any(node_of(pod) in self.asked and self.must_leave(pod) for pod in self.cluster.all("pods"))


def theme_of(seed):
    """Its name."""
    return random.Random(f"theme {seed}").choices(list(THEMES), list(THEMES.values()))[0].__name__


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
    if world.expect in ("told", "cause"):  # it would go on for its own time
        world.flags = [flag for flag in world.flags if flag != "--uncordon-on-failure"]
    # Drains of open worlds have to end.
    if world.expect == "open" and world.command == "drain" and not world.has("--timeout"):
        world.flags.append("--timeout=" + rng.choice(["4s", "7s"]))
    return world
