"""Other routing policies, for the simulation: round robin, Ray's power of two choices, Ray's prefix router."""

import math
import random
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from ..protocol import Hints


class Core(Protocol):
    """What the simulation requires of a router."""

    def set_replicas(self, names: Iterable[str]) -> None: ...
    def report(self, name: str, stats: Mapping[str, Any], now: float) -> None: ...
    def routed(self, key: str, name: str, hints: Hints, now: float) -> None: ...
    def completed(self, key: str, now: float) -> None: ...
    def ranked(self, hints: Hints, names: Iterable[str], now: float) -> list[str]: ...


class Counting:
    """Knows each replica's queue exactly, because a single router sends all requests."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)
        self.queue: dict[str, int] = {}
        self._at: dict[str, str] = {}

    def set_replicas(self, names: Iterable[str]) -> None:
        self.queue = {name: self.queue.get(name, 0) for name in names}

    def report(self, name: str, stats: Mapping[str, Any], now: float) -> None:
        pass

    def routed(self, key: str, name: str, hints: Hints, now: float) -> None:
        self.queue[name] = self.queue.get(name, 0) + 1
        self._at[key] = name

    def completed(self, key: str, now: float) -> None:
        name = self._at.pop(key, "")
        if name in self.queue:
            self.queue[name] -= 1


class RoundRobinCore(Counting):
    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self._next = 0

    def ranked(self, hints: Hints, names: Iterable[str], now: float) -> list[str]:
        names = list(names)
        self._next += 1
        at = self._next % len(names)
        return names[at:] + names[:at]


class PowerOfTwoCore(Counting):
    def ranked(self, hints: Hints, names: Iterable[str], now: float) -> list[str]:
        names = list(names)
        return sorted(self._random.sample(names, min(2, len(names))), key=self.queue.__getitem__)


class LeastQueueCore(Counting):
    def ranked(self, hints: Hints, names: Iterable[str], now: float) -> list[str]:
        return sorted(names, key=lambda name: (self.queue[name], self._random.random()))


class PrefixCore(PowerOfTwoCore):
    """PrefixCacheAffinityRouter of Ray 2.60: chooses the replica to which the longest matching prefix was sent,
    if the queues differ by less than a threshold; if less than a tenth matches, the replicas with the smallest
    trees; among several, the one with the shortest queue. Its tree holds characters; here it holds the chain's
    links. Neither ever forgets."""

    def __init__(
        self, seed: int = 0, imbalanced: float = math.inf, least_match: float = 0.1
    ) -> None:
        super().__init__(seed)
        self._imbalanced = imbalanced
        self._least_match = least_match
        self._known: dict[int, set[str]] = {}
        self._tree_size: dict[str, int] = {}

    def routed(self, key: str, name: str, hints: Hints, now: float) -> None:
        super().routed(key, name, hints, now)
        before = 0
        for digest, so_far in hints.prefix:
            where = self._known.setdefault(digest, set())
            if name not in where:
                where.add(name)
                self._tree_size[name] = self._tree_size.get(name, 0) + so_far - before
            before = so_far

    def ranked(self, hints: Hints, names: Iterable[str], now: float) -> list[str]:
        names = list(names)
        queues = [self.queue[name] for name in names]
        if max(queues) - min(queues) > self._imbalanced or not hints.prefix:
            return super().ranked(hints, names, now)
        matched, where = 0, set(names)
        for digest, so_far in hints.prefix:
            here = self._known.get(digest, set()) & where
            if not here:
                break
            matched, where = so_far, here
        if matched / hints.prefix[-1][1] < self._least_match:
            sizes = {name: self._tree_size.get(name, 0) for name in names}
            where = {name for name in names if sizes[name] == min(sizes.values())}
        return sorted(sorted(where), key=lambda name: (self.queue[name], self._random.random()))
