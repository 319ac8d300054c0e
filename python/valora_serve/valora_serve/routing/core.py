"""What a router knows about the replicas, and how it chooses. Independent of Ray: the simulation runs the same code.

The replicas report from time to time; in between, the router counts what it has sent. An adapter or prefix sent to a
replica is assumed to be there until a report or the router's own limit says otherwise.
"""

import dataclasses
import statistics
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from ..protocol import Hints
from .cost import Cost, Load, Rates, Weights, Work, expected_cost

POOL_TOKENS = 100_000  # until a replica reports its pool size
PREFIX_SHARE = 0.7  # of the pool, for prefixes
MEDIA_KEPT = 256
NEWEST = 0.5  # weight of a new report in the average of rates
FORGOTTEN = 0.05  # how far an unreported rate moves to the median per report
OVERDUE = 4.0  # times the expected duration after which a missing answer makes its replica suspect
SLOWEST = 20.0
RATES = ("step", "prefill_token", "output_token", "adapter_load", "medium")


class Recent:
    """Keys with sizes; the least recently used are dropped when the sum exceeds a limit."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._sizes: OrderedDict[Hashable, float] = OrderedDict()
        self.size = 0.0

    def __contains__(self, key: Hashable) -> bool:
        return key in self._sizes

    def use(self, key: Hashable, size: float = 1.0) -> None:
        self.size += size - self._sizes.pop(key, 0.0)
        self._sizes[key] = size
        while self.size > self.limit and len(self._sizes) > 1:
            self.size -= self._sizes.popitem(last=False)[1]

    def matched(self, chain: Iterable[tuple[int, int]]) -> int:
        """Tokens of the longest known prefix."""
        tokens = 0
        for digest, so_far in chain:
            if digest not in self._sizes:
                break
            tokens = so_far
        return tokens

    def use_chain(self, chain: Iterable[tuple[int, int]]) -> None:
        links, before = [], 0
        for digest, so_far in chain:
            links.append((digest, so_far - before))
            before = so_far
        for digest, size in reversed(links):  # the end of a chain is useless without its beginning
            self.use(digest, size)


@dataclasses.dataclass
class Sent:
    """A request that was sent to a replica and has not ended."""

    hints: Hints
    at: float
    prefill: float  # expected seconds
    whole: float  # expected seconds until the end of the answer


class Replica:
    """What is known about one replica."""

    def __init__(self) -> None:
        self.rates = Rates()
        self.measured: set[str] = set()
        self.resident: set[str] | None = None
        self.sent_adapters: dict[str, float] = {}
        self.crowded = False
        self.prefixes = Recent(POOL_TOKENS * PREFIX_SHARE)
        self.media = Recent(MEDIA_KEPT)
        self.sent: dict[str, Sent] = {}  # in the order of their prefills
        self.loading_until = 0.0

    def has_adapter(self, name: str) -> bool:
        return name in self.sent_adapters or (self.resident is not None and name in self.resident)

    def fullness(self) -> tuple[int, float]:
        """Tie-breaker between equal costs: fewest requests, then most room."""
        return len(self.sent), self.prefixes.size

    def queue(self, now: float) -> tuple[float, int]:
        """Returns (seconds of prefill ahead of a new request, requests whose prefill has not ended)."""
        ends, requests = 0.0, 0
        for sent in self.sent.values():
            if sent.hints.begun is not None:
                ends = max(ends, sent.hints.begun)
                continue
            ends = max(ends, sent.at) + sent.prefill
            if sent.hints.streams:  # its first piece has not arrived, so its prefill is not over
                ends = max(ends, now)
            requests += ends > now or sent.hints.streams
        return max(0.0, ends - now), requests

    def report(self, stats: Mapping[str, Any], now: float, period: float) -> None:
        """Applies statistics from ValoraServer.record_routing_stats."""
        if "resident" in stats:
            self.resident = set(stats["resident"])
            # An adapter sent just before the report may not be in it yet.
            self.sent_adapters = {
                n: t for n, t in self.sent_adapters.items() if t > now - 2 * period
            }
        self.crowded = bool(stats.get("crowded", self.crowded))
        if stats.get("pool_tokens"):
            self.prefixes.limit = float(stats["pool_tokens"]) * PREFIX_SHARE


class CostCore:
    """Chooses by expected cost. `served`: names that need no adapter, i.e. the base model's."""

    def __init__(
        self, weights: Weights | None = None, period: float = 1.0, base_names: Iterable[str] = ()
    ) -> None:
        self._weights = weights or Weights()
        self._period = period
        self._base = set(base_names)
        self._replicas: dict[str, Replica] = {}
        self._at: dict[str, str] = {}  # request -> replica it was sent to

    # -- news --------------------------------------------------------------------------------------------------------

    def set_replicas(self, names: Iterable[str]) -> None:
        names = list(names)
        self._replicas = {name: self._replicas.get(name) or Replica() for name in names}
        self._at = {key: name for key, name in self._at.items() if name in self._replicas}
        self._share_rates()

    def report(self, name: str, stats: Mapping[str, Any], now: float) -> None:
        replica = self._replicas.get(name)
        if replica is None:
            return
        replica.report(stats, now, self._period)
        self._base.update(stats.get("base_names", ()))
        for rate in RATES:
            before, said = getattr(replica.rates, rate), stats.get(rate)
            if said:
                known = rate in replica.measured
                after = before + NEWEST * (float(said) - before) if known else float(said)
                replica.measured.add(rate)
                replica.rates = dataclasses.replace(replica.rates, **{rate: after})
            elif rate in replica.measured:
                # Nothing ran there: whatever made it slow may be over, and only new requests can
                # tell.
                after = before + FORGOTTEN * (self._usual(rate) - before)
                replica.rates = dataclasses.replace(replica.rates, **{rate: after})
        self._share_rates()

    def _usual(self, rate: str) -> float:
        """The median over the replicas that have measured this rate."""
        known = [getattr(r.rates, rate) for r in self._replicas.values() if rate in r.measured]
        return statistics.median(known) if known else getattr(Rates(), rate)

    def _share_rates(self) -> None:
        """Assumes that a new replica is like the others: otherwise it would seem slow and never get a request to
        prove it."""
        usual = {rate: self._usual(rate) for rate in RATES}
        for replica in self._replicas.values():
            unknown = {rate: value for rate, value in usual.items() if rate not in replica.measured}
            if unknown:
                replica.rates = dataclasses.replace(replica.rates, **unknown)

    def routed(self, key: str, name: str, hints: Hints, now: float) -> None:
        replica = self._replicas.get(name)
        if replica is None:
            return
        work, load = self._work(replica, hints), self._load(replica, now)
        cost = expected_cost(work, load, replica.rates, self._weights)
        if work.adapters_missing:
            own = work.adapters_missing * replica.rates.adapter_load
            replica.loading_until = max(now, replica.loading_until) + own
        for adapter in self._adapters(hints):
            replica.sent_adapters[adapter] = now
        replica.prefixes.use_chain(hints.prefix)
        for medium in hints.media:
            replica.media.use(medium)
        whole = cost.first_token + hints.answer_tokens * replica.rates.output_token
        replica.sent[key] = Sent(hints, now, cost.prefill, whole)
        self._at[key] = name

    def completed(self, key: str, now: float) -> None:
        replica = self._replicas.get(self._at.pop(key, ""))
        if replica is None:
            return
        replica.sent.pop(key, None)
        if not replica.sent:
            replica.loading_until = now

    # -- the choice --------------------------------------------------------------------------------------------------

    def costs(self, hints: Hints, names: Iterable[str], now: float) -> dict[str, Cost]:
        names = [name for name in names if name in self._replicas]
        slowness = self._slowness(now)
        loads = {name: self._load(replica, now) for name, replica in self._replicas.items()}
        queued = min((load.queued for load in loads.values()), default=0)
        costs = {}
        for name in names:
            replica = self._replicas[name]
            load = dataclasses.replace(loads[name], slowness=slowness[name])
            costs[name] = expected_cost(
                self._work(replica, hints), load, replica.rates, self._weights, queued
            )
        return costs

    def ranked(self, hints: Hints, names: Iterable[str], now: float) -> list[str]:
        """Cheapest first; those that have failed this request last."""
        costs = self.costs(hints, names, now)
        return sorted(
            costs,
            key=lambda n: (n in hints.avoid, costs[n].total, *self._replicas[n].fullness(), n),
        )

    def _adapters(self, hints: Hints) -> set[str]:
        names = set()
        for name in filter(None, (hints.model, *hints.adapters)):
            base, _, rest = name.partition(":")
            names.add(rest if rest and base in self._base else name)
        return names - self._base

    def _work(self, replica: Replica, hints: Hints) -> Work:
        return Work(
            hints.prompt_tokens,
            replica.prefixes.matched(hints.prefix),
            sum(not replica.has_adapter(name) for name in self._adapters(hints)),
            sum(medium not in replica.media for medium in hints.media),
            hints.answer_tokens,
        )

    @staticmethod
    def _load(replica: Replica, now: float) -> Load:
        loads = max(0.0, replica.loading_until - now)
        wait, queued = replica.queue(now)
        return Load(wait, loads, len(replica.sent), queued, replica.crowded)

    def _slowness(self, now: float) -> dict[str, float]:
        """Above 1 if an answer is long overdue, because a hanging replica does not report rates."""
        slowness = {}
        for name, replica in self._replicas.items():
            overdue = [(now - s.at) / (OVERDUE * max(s.whole, 0.25)) for s in replica.sent.values()]
            slowness[name] = min(SLOWEST, max([1.0, *overdue]))
        return slowness
