"""When this process last heard from each replica, and which ones have fallen silent.

The router's event loop may run in a different thread from the ingress's; each operation on the dict or the set is
atomic.
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
        """The replica sent part of an answer, a heartbeat or a report, so its server is alive
        too."""
        self.responded(name)
        self._suspects.discard(name)

    def responded(self, name: str) -> None:
        """The replica's process accepted or rejected a request; the server behind it may still
        hang."""
        self._last[name] = self.now()

    def last(self, name: str) -> float:
        return self._last.get(name, -math.inf)

    def suspect(self, name: str) -> bool:
        """Treats the replica as silent until it is heard from. Returns False if it was silent
        already."""
        new = name not in self._suspects
        self._suspects.add(name)
        return new

    def suspected(self, name: str) -> bool:
        return name in self._suspects

    def keep(self, names: Iterable[str]) -> None:
        """Forgets all other replicas: they have left."""
        for name in (set(self._last) | self._suspects) - set(names):
            self._last.pop(name, None)
            self._suspects.discard(name)


HEARING = Hearing()  # shared by this process's relay and router
