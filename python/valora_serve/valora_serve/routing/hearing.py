"""What a process has heard from the replicas: when last, and which ones have fallen silent.

The router's event loop may run in another thread than the ingress's: each operation on the dict or the set is atomic.
"""

import math
import time
from collections.abc import Callable, Iterable


class Hearing:
    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self._last: dict[str, float] = {}
        self._suspects: set[str] = set()

    def heard(self, name: str) -> None:
        """A part of an answer, a heartbeat or a report: its server is there, too."""
        self.responded(name)
        self._suspects.discard(name)

    def responded(self, name: str) -> None:
        """Its process took or refused a request: the server behind it may hang."""
        self._last[name] = self.now()

    def last(self, name: str) -> float:
        return self._last.get(name, -math.inf)

    def suspect(self, name: str) -> bool:
        """Takes the replica for silent until it is heard. False if it was already."""
        new = name not in self._suspects
        self._suspects.add(name)
        return new

    def suspected(self, name: str) -> bool:
        return name in self._suspects

    def keep(self, names: Iterable[str]) -> None:
        """Forgets all others: they have left."""
        for name in (set(self._last) | self._suspects) - set(names):
            self._last.pop(name, None)
            self._suspects.discard(name)


HEARING = Hearing()  # of this process, for its relay and its router
