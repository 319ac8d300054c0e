"""Replicas in simulated time: continuous batching with chunked prefill, adapter memory, and a prefix cache."""

import dataclasses
import heapq
import statistics
from collections import OrderedDict, deque

from .baselines import Core
from .core import Recent
from .workload import Request


@dataclasses.dataclass(frozen=True)
class Machine:
    """A replica's capacities, and how long operations take on it: roughly a 7B model with adapters
    of rank 16."""

    step: float = 0.012
    prefill_token: float = 1.0e-4
    decode_sequence: float = 2.0e-4
    step_adapter: float = 2.0e-4
    adapter_load: float = 0.06
    adapters: int = 48
    cached_tokens: int = 150_000
    sequences: int = 64
    chunk: int = 2048


@dataclasses.dataclass
class Running:
    request: Request
    left: int  # prompt tokens to compute
    answer: int  # tokens to generate
    first: float = -1.0


@dataclasses.dataclass
class Result:
    first_tokens: list[float]
    ends: list[float]
    adapter_hits: int
    adapter_asked: int
    prefix_hits: int
    prefix_asked: int
    busy: dict[str, float]
    placed: dict[str, set[str]]

    def quantile(self, share: float) -> float:
        ordered = sorted(self.first_tokens)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    @property
    def throughput(self) -> float:
        return len(self.ends) / max(self.ends)

    @property
    def balance(self) -> float:
        """The busiest replica's time relative to the mean: 1 is even."""
        return max(self.busy.values()) / statistics.mean(self.busy.values())


class SimulatedReplica:
    def __init__(self, name: str, machine: Machine, slow: float = 1.0) -> None:
        self.name = name
        self.machine = machine
        self.slow = slow
        self.waiting: deque[Running] = deque()
        self.running: list[Running] = []
        self.loaded: OrderedDict[str, float] = (
            OrderedDict()
        )  # adapter -> time from which it is loaded
        self.loading_until = 0.0
        self.prefixes = Recent(machine.cached_tokens)
        self.now = 0.0
        self.busy = 0.0
        self.hits = self.asked = self.token_hits = self.tokens = 0

    def idle(self) -> bool:
        return not (self.waiting or self.running)

    def add(self, request: Request, now: float) -> None:
        if self.idle():
            self.now = max(self.now, now)
        adapter = request.hints.model
        self.asked += 1
        if adapter in self.loaded:
            self.hits += 1
            self.loaded.move_to_end(adapter)
        else:
            self.loading_until = (
                max(now, self.loading_until) + self.machine.adapter_load * self.slow
            )
            self.loaded[adapter] = self.loading_until
            self._drop_adapters()
        self.waiting.append(Running(request, -1, request.answer))

    def _drop_adapters(self) -> None:
        used = {r.request.hints.model for r in (*self.waiting, *self.running)} | {
            next(reversed(self.loaded))
        }
        for name in list(self.loaded):
            if len(self.loaded) <= self.machine.adapters:
                return
            if name not in used:
                del self.loaded[name]

    def _admit(self) -> None:
        blocked: deque[Running] = deque()
        while self.waiting and len(self.running) < self.machine.sequences:
            entry = self.waiting.popleft()
            if self.loaded.get(entry.request.hints.model, 0.0) > self.now:
                blocked.append(entry)  # others may pass while its adapter is loading
                continue
            hints = entry.request.hints
            cached = min(self.prefixes.matched(hints.prefix), hints.prompt_tokens - 1)
            self.tokens += hints.prompt_tokens
            self.token_hits += cached
            entry.left = hints.prompt_tokens - cached
            self.running.append(entry)
        self.waiting.extendleft(reversed(blocked))

    def step(self) -> tuple[list[Running], list[Running]]:
        """Runs one step; returns the requests that got their first token, and those that ended."""
        self._admit()
        if not self.running:  # all are waiting for adapters
            self.now = min(self.loaded[entry.request.hints.model] for entry in self.waiting)
            return [], []
        budget, prefilled, decoding = self.machine.chunk, 0, 0
        done_prefill = []
        for entry in self.running:
            if entry.left:
                part = min(entry.left, budget)
                entry.left -= part
                budget -= part
                prefilled += part
                if not entry.left and part:
                    done_prefill.append(entry)
            else:
                decoding += 1
        machine = self.machine
        distinct = len({entry.request.hints.model for entry in self.running})
        took = self.slow * (
            machine.step
            + prefilled * machine.prefill_token
            + decoding * machine.decode_sequence
            + distinct * machine.step_adapter
        )
        self.now += took
        self.busy += took
        return self._generated(done_prefill)

    def _generated(self, done_prefill: list[Running]) -> tuple[list[Running], list[Running]]:
        for entry in done_prefill:
            entry.first = self.now
            self.prefixes.use_chain(entry.request.hints.prefix)
        ended = []
        for entry in self.running:
            if not entry.left:
                entry.answer -= 1
                if entry.answer <= 0:
                    ended.append(entry)
                    self.prefixes.use_chain(entry.request.after)
        for entry in ended:
            self.running.remove(entry)
        return done_prefill, ended

    def stats(self) -> dict[str, object]:
        machine = self.machine
        return {
            "resident": list(self.loaded),
            "crowded": len(self.loaded) >= machine.adapters,
            "pool_tokens": machine.cached_tokens,
            "step": machine.step * self.slow,
            "prefill_token": machine.prefill_token * self.slow,
            "adapter_load": machine.adapter_load * self.slow,
            "output_token": machine.step + machine.decode_sequence * max(1, len(self.running)),
        }


def simulate(
    requests: list[Request],
    core: Core,
    replicas: int = 8,
    machine: Machine | None = None,
    period: float = 1.0,
    slow: dict[int, float] | None = None,
) -> Result:
    """Sends each request to the replica that the router chooses. Reports arrive every `period`
    seconds."""
    machine = machine or Machine()
    requests = [  # copies, because the router and the ingress write to hints
        dataclasses.replace(r, hints=dataclasses.replace(r.hints, streams=True, begun=None))
        for r in requests
    ]
    servers = {
        f"r{i}": SimulatedReplica(f"r{i}", machine, (slow or {}).get(i, 1.0))
        for i in range(replicas)
    }
    core.set_replicas(servers)
    result = Result([], [], 0, 0, 0, 0, {}, {})
    # (time, kind, number, what): at equal times, reports precede arrivals, and arrivals precede steps
    events: list[tuple[float, int, int, str]] = [
        (request.at, 1, i, "") for i, request in enumerate(requests)
    ]
    events += [(0.0, 0, 0, "")]
    heapq.heapify(events)
    pending = len(requests)
    while pending:
        at, kind, number, name = heapq.heappop(events)
        if kind == 0:
            for server in servers.values():
                core.report(server.name, server.stats(), at)
            heapq.heappush(events, (at + period, 0, 0, ""))
        elif kind == 1:
            request = requests[number]
            chosen = core.ranked(request.hints, servers, at)[0]
            core.routed(request.key, chosen, request.hints, at)
            result.placed.setdefault(request.hints.model, set()).add(chosen)
            server = servers[chosen]
            begins = server.idle()
            server.add(request, at)
            if begins:
                heapq.heappush(events, (server.now, 2, 0, chosen))
        elif kind == 3:
            requests[number].hints.begun = at
        elif kind == 4:
            core.completed(name, at)
        else:
            server = servers[name]
            begun, ended = server.step()
            for entry in begun:
                heapq.heappush(events, (server.now, 3, int(entry.request.key), ""))
            for entry in ended:
                result.first_tokens.append(entry.first - entry.request.at)
                result.ends.append(server.now)
                heapq.heappush(events, (server.now, 4, 0, entry.request.key))
                pending -= 1
            if not server.idle():
                heapq.heappush(events, (server.now, 2, 0, name))
    for server in servers.values():
        result.adapter_hits += server.hits
        result.adapter_asked += server.asked
        result.prefix_hits += server.token_hits
        result.prefix_asked += server.tokens
        result.busy[server.name] = server.busy
    return result
