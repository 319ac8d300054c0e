"""Where requests go while a replica is silent, with Ray's router and simulated replicas, without a cluster."""

import asyncio
import math

import pytest
from ray.serve._private.common import DeploymentHandleSource, DeploymentID, RequestMetadata
from ray.serve.request_router import PendingRequest, ReplicaID

from valora_serve.protocol import Call, Hints
from valora_serve.routing.hearing import Hearing
from valora_serve.routing.router import CostRouter, PrefixRouter, RoundRobinRouter

DEPLOYMENT = DeploymentID("ValoraServer", "valora")
ROUTERS = [CostRouter, RoundRobinRouter, PrefixRouter]


class Replica:
    """`queue` is the length that it reports when asked; None while it is silent."""

    max_ongoing_requests = 4
    routing_stats: dict = {}

    def __init__(self, name, queue=0):
        self.replica_id = ReplicaID(name, DEPLOYMENT)
        self.queue = queue
        self.asked = 0

    async def get_queue_len(self, *, deadline_s):
        self.asked += 1
        while self.queue is None:
            await asyncio.sleep(0.01)
        return self.queue


class Routed:
    """A router with replicas r0, r1, …"""

    def __init__(self, kind, *queues):
        self.replicas = [Replica(f"r{i}", queue) for i, queue in enumerate(queues)]
        self.router = kind(
            DEPLOYMENT, DeploymentHandleSource.REPLICA, use_replica_queue_len_cache=True
        )
        self.router.initialize_state()
        self.router._hearing = self.hearing = Hearing()
        self.router.update_replicas(self.replicas)
        self._requests = 0

    def request(self, hints=None):
        self._requests += 1
        name = f"request {self._requests}"
        metadata = RequestMetadata(request_id=name, internal_request_id=name, is_streaming=True)
        call = Call("POST", "/v1/completions", {}, b"", False)
        return PendingRequest(args=[call, hints or Hints("base")], kwargs={}, metadata=metadata)

    async def ranks(self, hints=None):
        request = self.request(hints)
        ranked = await self.router.choose_replicas(self.replicas, request)
        request.future.cancel()
        return [replica.replica_id.unique_id for ranks in ranked for replica in ranks]

    async def send(self, hints, request=None):
        """Does what Ray does up to sending a request; with `request`, retries one that a replica
        has rejected."""
        again = request is not None
        request = request or self.request(hints)
        replica = await self.router._choose_replica_for_request(request, is_retry=again)
        self.router.on_send_request(replica.replica_id)
        await asyncio.sleep(0)  # lets the callback run
        return request, replica.replica_id.unique_id


async def until(condition):
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


def test_hearing_records_times_and_suspicion():
    now = [5.0]
    hearing = Hearing(lambda: now[0])
    assert hearing.last("r0") == -math.inf
    hearing.heard("r0")
    now[0] = 7.0
    hearing.heard("r1")
    assert (hearing.last("r0"), hearing.last("r1")) == (5.0, 7.0)
    assert hearing.suspect("r0") and not hearing.suspect("r0")
    assert hearing.suspected("r0") and not hearing.suspected("r1")
    now[0] = 8.0
    hearing.responded("r0")
    assert hearing.suspected("r0") and hearing.last("r0") == 8.0
    now[0] = 7.0
    hearing.heard("r0")
    assert not hearing.suspected("r0") and hearing.last("r0") == 7.0
    hearing.suspect("r1")
    hearing.suspect("r2")
    hearing.keep(["r0"])
    assert hearing.last("r0") == 7.0 and hearing.last("r1") == -math.inf
    assert not hearing.suspected("r1") and not hearing.suspected("r2")


@pytest.mark.parametrize("kind", ROUTERS)
def test_silent_replica_ranks_last_until_it_reports(kind):
    """A process that accepts requests, or reports its queue, does not prove that its server
    responds."""

    async def play():
        routed = Routed(kind, 0, 0, 0)
        await until(lambda: all(replica.asked for replica in routed.replicas))
        routed.replicas[1].queue = None
        routed.hearing.suspect("r1")
        for _ in range(12):
            ranks = await routed.ranks(Hints("base", avoid=("r0",)))
            assert ranks[0] != "r1" and ranks[-1] == "r1"
        routed.router.on_new_queue_len_info(routed.replicas[1].replica_id, 0)
        routed.router.update_replicas(routed.replicas)
        assert routed.hearing.suspected("r1")
        routed.replicas[1].routing_stats = {"moment": 2}
        routed.router.update_replicas(routed.replicas)
        assert not routed.hearing.suspected("r1")
        assert "r1" in [(await routed.ranks())[0] for _ in range(50)] or kind is CostRouter

    asyncio.run(play())


def test_returning_replica_gets_requests_it_is_best_for():
    async def play():
        routed = Routed(CostRouter, 0, 0)
        routed.router._core.report("r1", {"resident": ["cats"], "base_names": ["base"]}, 0.0)
        replicas = {replica.replica_id.unique_id: replica for replica in routed.replicas}

        def ranks():
            return routed.router._ranked(Hints("cats", prompt_tokens=100), replicas, 1.0)

        assert ranks() == ["r1", "r0"]
        routed.hearing.suspect("r1")
        assert ranks() == ["r0", "r1"]
        routed.hearing.heard("r1")
        assert ranks() == ["r1", "r0"]

    asyncio.run(play())


def test_silent_replicas_are_still_ranked():
    async def play():
        routed = Routed(CostRouter, 0, 0)
        for name in ("r0", "r1"):
            routed.hearing.suspect(name)
        assert sorted(await routed.ranks()) == ["r0", "r1"]

    asyncio.run(play())


def test_removed_replicas_are_forgotten():
    async def play():
        routed = Routed(CostRouter, 0, 0)
        routed.hearing.suspect("r1")
        routed.router.update_replicas(routed.replicas[:1])
        assert not routed.hearing.suspected("r1")

    asyncio.run(play())


@pytest.mark.parametrize("kind", ROUTERS)
def test_ingress_learns_where_a_request_was_sent(kind):
    """The replica may differ from the router's first choice: here that one does not answer, and Ray
    takes the next."""

    async def play():
        routed = Routed(kind, None, 0)
        for _ in range(4):
            hints = Hints("base")
            before = routed.hearing.now()
            request, where = await routed.send(hints)
            assert where == "r1" and hints.sent is not None
            name, at = hints.sent
            assert name == "r1" and before <= at <= routed.hearing.now()
            assert hints.taken is None
            routed.router.on_request_routed(request, routed.replicas[1].replica_id, None)
            assert hints.taken >= at

    asyncio.run(play())


@pytest.mark.parametrize("kind", ROUTERS)
def test_rejected_request_counts_in_no_queue(kind):
    async def play():
        routed = Routed(kind, 0)
        hints = Hints("base")
        request, where = await routed.send(hints)
        assert where == "r0" and hints.sent
        routed.replicas[0].queue = 4  # full
        routed.router.on_new_queue_len_info(routed.replicas[0].replica_id, 4)
        assert routed.hearing.last("r0") > 0  # its answer counts as a sign of life
        waiting = asyncio.create_task(routed.send(hints, request))
        await until(lambda: hints.sent is None)
        await asyncio.sleep(0.1)
        assert not waiting.done() and hints.sent is None
        routed.replicas[0].queue = 3
        await waiting
        assert hints.sent and hints.sent[0] == "r0"

    asyncio.run(play())


def test_request_waits_for_a_full_replica_rather_than_a_silent_one():
    """The queue length that Ray remembers for it is useless."""

    async def play():
        routed = Routed(CostRouter, 4, 0)
        await until(lambda: all(replica.asked for replica in routed.replicas))
        routed.replicas[1].queue = None
        routed.hearing.suspect("r1")
        hints = Hints("base")
        waiting = asyncio.create_task(routed.send(hints))
        await asyncio.sleep(0.3)
        assert not waiting.done() and hints.sent is None
        routed.replicas[1].queue = 0
        assert (await waiting)[1] == "r1"

    asyncio.run(play())
