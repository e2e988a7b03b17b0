"""Decides by the seed of a world what goes wrong: the n-th request of a kind meets the same fault in each run."""
import dataclasses
import random
from typing import Callable

import faults


@dataclasses.dataclass
class Fault:
    name: str
    strike: Callable
    rng: random.Random


@dataclasses.dataclass
class Rule:
    """Requests whose kind contains one of `kinds` meet a fault of `table` with this probability, from the `first`-th
    request of their kind on, and `most` times in all."""
    kinds: tuple
    table: dict
    probability: float = 1.0
    first: int = 1
    most: float = float("inf")
    when: Callable = lambda: True
    struck: int = 0

    def strikes(self, kind, number, rng):
        if self.struck >= self.most or number < self.first or not any(part in kind for part in self.kinds):
            return None
        if rng.random() >= self.probability or not self.when():
            return None
        self.struck += 1
        name = rng.choice(sorted(self.table))
        return Fault(name, self.table[name], rng)


class Plan:
    def __init__(self, seed):
        self.seed = seed
        self.rules, self.watch_rules = [], []
        self.numbers = {}
        self.liars = ()  # kinds of requests whose selectors the server ignores
        self.lie_every = 1
        self.copies = 1  # how often the server sends each event of a watch
        self.slow = {}  # namespace -> seconds that an eviction takes there
        self.always_late = 0.0  # seconds that every other answer takes

    def number(self, kind):
        self.numbers[kind] = self.numbers.get(kind, 0) + 1
        return self.numbers[kind]

    def ask(self, rules, kind):
        number = self.number(kind)
        rng = random.Random(f"{self.seed} {kind} {number}")
        return next((fault for rule in rules if (fault := rule.strikes(kind, number, rng))), None)

    def fault(self, found, _request):
        return self.ask(self.rules, found.kind)

    def watch_fault(self, found):
        return self.ask(self.watch_rules, found.kind + " event") if self.watch_rules else None

    def delay(self, found, _request):
        return self.slow.get(found.namespace, 0) if found.kind in ("evict", "delete pods") else self.always_late

    def lies(self, found, request):
        has_selector = "fieldSelector" in request.query or "labelSelector" in request.query
        if found.kind not in self.liars or not has_selector:
            return False
        return self.lie_every == 1 or self.number("lies about " + found.kind) % self.lie_every == 0

    def standing(self, *kinds, message="", when=lambda: True):
        """Adds a failure that does not pass. Its message has to reach the user."""
        self.rules.append(Rule(kinds, {"stands": faults.refusal(503, message=message)}, when=when))
