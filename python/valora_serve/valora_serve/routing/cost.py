"""The expected cost of a request on a replica, in seconds: a pure function of what is known of both."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Rates:
    """What things take on a replica. Replicas report them; these are the values before they do."""

    step: float = 0.01  # a step of the engine without tokens
    prefill_token: float = 2e-4
    output_token: float = 0.02
    adapter_load: float = 0.05
    medium: float = 0.05


@dataclasses.dataclass(frozen=True)
class Work:
    """What a request needs on one replica, beside what is there."""

    prompt_tokens: int
    cached_tokens: int = 0
    adapters_missing: int = 0
    media_missing: int = 0
    answer_tokens: int = 1


@dataclasses.dataclass(frozen=True)
class Load:
    """How busy a replica is."""

    wait: float = 0.0  # seconds of prefill that come first
    load_wait: float = 0.0  # seconds of loads of adapters that come first
    sequences: int = 0  # requests that it has
    queued: int = 0  # requests without their first token
    crowded: bool = False  # a further adapter drives another one out
    slowness: float = 1.0  # its times beside the other replicas'


@dataclasses.dataclass(frozen=True)
class Weights:
    """How much what others lose counts beside this request's own time."""

    eviction: float = 0.5  # the share of adapters that are driven out and must come back
    delay: float = 0.02  # of the prefill, for each request of the replica
    # Of the prefill, for each request that is queued everywhere: what is computed a second time then delays them all.
    congestion: float = 5.0
    crowd: float = 0.05  # of a step, for each request of the replica: more decode in each step


@dataclasses.dataclass(frozen=True)
class Cost:
    wait: float
    load: float
    prefill: float
    others: float

    @property
    def first_token(self) -> float:
        """The load runs beside the queue; the prefill needs both."""
        return max(self.wait, self.load) + self.prefill

    @property
    def total(self) -> float:
        return self.first_token + self.others


def expected_cost(
    work: Work, load: Load, rates: Rates, weights: Weights, queued_everywhere: int = 0
) -> Cost:
    """queued_everywhere: the least Load.queued of all replicas."""
    slow = load.slowness
    prefill = slow * (
        max(0, work.prompt_tokens - work.cached_tokens) * rates.prefill_token
        + work.media_missing * rates.medium
        + rates.step  # the one that gives the first token
    )
    own_load = work.adapters_missing * rates.adapter_load
    loading = slow * (load.load_wait + own_load) if work.adapters_missing else 0.0
    evicted = weights.eviction * own_load if load.crowded else 0.0
    each = weights.delay * prefill + weights.crowd * slow * rates.step
    queued = weights.congestion * prefill * queued_everywhere
    others = slow * evicted + each * load.sequences + queued
    return Cost(slow * load.wait, loading, prefill, others)
