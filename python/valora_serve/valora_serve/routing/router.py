"""The routers as Ray Serve request routers. Each process that holds a handle to the replicas has one."""

import asyncio
import time
from typing import Any

from ray.serve.request_router import (
    PendingRequest,
    ReplicaID,
    RequestRouter,
    RunningReplica,
)

from ..protocol import Hints
from .baselines import Core, PrefixCore, RoundRobinCore
from .core import CostCore
from .hearing import HEARING

NO_HINTS = Hints()


def hints_of(request: PendingRequest | None) -> Hints:
    arguments = request.args if request else []
    return next((argument for argument in arguments if isinstance(argument, Hints)), NO_HINTS)


class CoreRouter(RequestRouter):
    """Ranks the replicas with a core. Ray takes the first one that has room."""

    def make_core(self, options: dict[str, Any]) -> Core:
        raise NotImplementedError

    def initialize_state(self, **options: Any) -> None:
        self._core = self.make_core(options)
        self._reports: dict[str, Any] = {}
        # Chosen but not yet known to be accepted: counted at once, because many requests may arrive in the meantime.
        self._chosen: dict[str, tuple[str, asyncio.Future]] = {}
        self._hearing = HEARING

    def update_replicas(self, replicas: list[RunningReplica]) -> None:
        super().update_replicas(replicas)
        names = [replica.replica_id.unique_id for replica in replicas]
        self._core.set_replicas(names)
        self._hearing.keep(names)
        now = time.monotonic()
        for replica in replicas:
            name, stats = replica.replica_id.unique_id, replica.routing_stats
            if stats and self._reports.get(name) != stats:
                self._reports[name] = stats
                self._hearing.heard(name)
                self._core.report(name, stats, now)

    def on_replica_actor_died(self, replica_id: ReplicaID) -> None:
        super().on_replica_actor_died(replica_id)
        self._core.set_replicas(replica.unique_id for replica in self._replicas)

    async def choose_replicas(
        self,
        candidate_replicas: list[RunningReplica],
        pending_request: PendingRequest | None = None,
    ) -> list[list[RunningReplica]]:
        if pending_request is not None:
            pending_request.routing_context.should_backoff = True
        by_name = {replica.replica_id.unique_id: replica for replica in candidate_replicas}
        if not by_name:
            return []
        self._forget_cancelled()
        now, hints = time.monotonic(), hints_of(pending_request)
        ranked = self._ranked(hints, by_name, now)
        if pending_request is not None and ranked:
            key = pending_request.metadata.internal_request_id
            self._follow(key, hints, pending_request.future)
            self._place(key, ranked[0], hints, now)
            self._chosen[key] = (ranked[0], pending_request.future)
        return [[by_name[name]] for name in ranked]

    def _ranked(self, hints: Hints, replicas: dict[str, RunningReplica], now: float) -> list[str]:
        """Ranks silent replicas last, whatever their costs."""
        silent = [name for name in replicas if self._hearing.suspected(name)]
        for name in silent:
            # Discards Ray's remembered queue length, so that it asks before it sends.
            self.on_replica_actor_unavailable(replicas[name].replica_id)
        others = [name for name in replicas if name not in silent]
        groups = [names for names in (others, silent) if names]
        return [name for names in groups for name in self._core.ranked(hints, names, now)]

    def _follow(self, key: str, hints: Hints, future: asyncio.Future) -> None:
        """Records in the hints where Ray sends the request, once a replica has room."""
        before = self._chosen.get(key)
        if hints is NO_HINTS or (before and before[1] is future):
            return
        hints.sent = hints.taken = None

        def note(chosen: asyncio.Future) -> None:
            if not chosen.cancelled():
                hints.sent = (chosen.result().replica_id.unique_id, self._hearing.now())

        future.add_done_callback(note)

    def _place(self, key: str, name: str, hints: Hints, now: float) -> None:
        before = self._chosen.pop(key, None)
        if before:
            if before[0] == name:
                return
            self._core.completed(key, now)
        self._core.routed(key, name, hints, now)

    def _forget_cancelled(self) -> None:
        for key in [key for key, (_, future) in self._chosen.items() if future.cancelled()]:
            del self._chosen[key]
            self._core.completed(key, time.monotonic())

    def on_new_queue_len_info(self, replica_id: ReplicaID, num_ongoing_requests: int) -> None:
        """The replica has answered a sent request, whether it accepts it or not."""
        super().on_new_queue_len_info(replica_id, num_ongoing_requests)
        self._hearing.responded(replica_id.unique_id)

    def on_request_routed(
        self, pending_request: PendingRequest, replica_id: ReplicaID, result: Any
    ) -> None:
        key, hints = pending_request.metadata.internal_request_id, hints_of(pending_request)
        if hints is not NO_HINTS:
            hints.taken = self._hearing.now()
        self._place(key, replica_id.unique_id, hints, time.monotonic())

    def on_request_completed(self, replica_id: ReplicaID, internal_request_id: str) -> None:
        self._chosen.pop(internal_request_id, None)
        self._core.completed(internal_request_id, time.monotonic())


class CostRouter(CoreRouter):
    def make_core(self, options: dict[str, Any]) -> Core:
        return CostCore(**options)


class RoundRobinRouter(CoreRouter):
    def make_core(self, options: dict[str, Any]) -> Core:
        return RoundRobinCore()


class PrefixRouter(CoreRouter):
    """Makes the choice of Ray's PrefixCacheAffinityRouter, whose package requires vLLM's
    dependencies."""

    def make_core(self, options: dict[str, Any]) -> Core:
        return PrefixCore(**options)
