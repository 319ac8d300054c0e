"""The expected cost of a request on a replica, in seconds: a pure function of what is known about
both."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Rates:
    """How long operations take on a replica. Replicas report these; until then the defaults
    apply."""

    step: float = 0.01  # an engine step without tokens
    prefill_token: float = 2e-4
    output_token: float = 0.02
    adapter_load: float = 0.05
    medium: float = 0.05


@dataclasses.dataclass(frozen=True)
class Work:
    """What a request needs on one replica, and what is already there."""

    prompt_tokens: int
    cached_tokens: int = 0
    adapters_missing: int = 0
    media_missing: int = 0
    answer_tokens: int = 1


@dataclasses.dataclass(frozen=True)
class Load:
    """How busy a replica is."""

    wait: float = 0.0  # seconds of prefill ahead of it
    load_wait: float = 0.0  # seconds of adapter loads ahead of it
    sequences: int = 0  # requests on the replica
    queued: int = 0  # requests without a first token
    crowded: bool = False  # another adapter would evict one
    slowness: float = 1.0  # its times relative to the other replicas'


@dataclasses.dataclass(frozen=True)
class Weights:
    """How much delays to other requests count relative to this request's own time."""

    eviction: float = 0.5  # share of evicted adapters that must be loaded again
    delay: float = 0.02  # share of the prefill, per request on the replica
    # Share of the prefill, per request that is queued on every replica: computing a prefix again then delays all of
    # them.
    congestion: float = 5.0
    crowd: float = 0.05  # share of a step, per request on the replica: more decoding in each step


@dataclasses.dataclass(frozen=True)
class Cost:
    wait: float
    load: float
    prefill: float
    others: float

    @property
    def first_token(self) -> float:
        """The load overlaps with the queue; the prefill needs both to be done."""
        return max(self.wait, self.load) + self.prefill

    @property
    def total(self) -> float:
        return self.first_token + self.others


def expected_cost(
    work: Work, load: Load, rates: Rates, weights: Weights, queued_everywhere: int = 0
) -> Cost:
    """queued_everywhere: the smallest Load.queued of all replicas."""
    slow = load.slowness
    prefill = slow * (
        max(0, work.prompt_tokens - work.cached_tokens) * rates.prefill_token
        + work.media_missing * rates.medium
        + rates.step  # the step that yields the first token
    )
    own_load = work.adapters_missing * rates.adapter_load
    loading = slow * (load.load_wait + own_load) if work.adapters_missing else 0.0
    evicted = weights.eviction * own_load if load.crowded else 0.0
    each = weights.delay * prefill + weights.crowd * slow * rates.step
    queued = weights.congestion * prefill * queued_everywhere
    others = slow * evicted + each * load.sequences + queued
    return Cost(slow * load.wait, loading, prefill, others)
