"""What a replica reports for routing, from the metrics of its server."""

from collections.abc import Iterable, Mapping
from typing import Any

from .metrics_text import total, values

# The rate of what, as the growth of one metric by that of another between two looks.
RATES = {
    "output_token": (
        "vllm:request_time_per_output_token_seconds_sum",
        "vllm:request_time_per_output_token_seconds_count",
    ),
    "adapter_load": (
        'valora:memory_move_seconds_total{move="load_adapter"}',
        'valora:memory_moves_total{move="load_adapter"}',
    ),
    "medium": ("valora:visual_encode_seconds_total", "valora:visuals_encoded_total"),
}
# What the server's cost model says. Unlike the time that requests took, it does not grow with the load: a router that takes
# load for slowness sends all to the other replica until that one is loaded.
COSTS = {
    "step": 'valora:cost_seconds{of="step"}',
    "prefill_token": 'valora:cost_seconds{of="prefill_token"}',
}
STEPS, PROMPT_TOKENS = "valora:engine_steps_total", "vllm:request_prompt_tokens_sum"
FIRST_TOKENS = 2000.0  # prompt tokens that count as well estimated before any came
KEPT = 0.9  # of the older requests' weight with each report
CROWDED = 0.05  # share of the pool that is free, below which a further adapter drives something out


def labelled(metrics: str, name: str) -> float:
    """The sum of a metric, or of its samples with one label."""
    plain, _, label = name.partition("{")
    found = values(metrics, plain)
    return sum(value for labels, value in found.items() if label.rstrip("}") in labels)


class PromptScale:
    """The server's prompt tokens for each one that the ingress estimated, about the last requests'."""

    def __init__(self) -> None:
        self._tokens = self._estimated = FIRST_TOKENS
        self._counted = 0.0

    def add(self, estimated: int) -> None:
        """A request has ended."""
        self._estimated += estimated

    def look(self, counted: float) -> float:
        """counted: prompt tokens of the requests that ended so far, as the server says."""
        grown = max(0.0, counted - self._counted)
        self._counted = counted
        self._tokens += grown
        scale = self._tokens / self._estimated
        if grown:
            self._tokens *= KEPT
            self._estimated *= KEPT
        return scale


class Reporter:
    """Makes a replica's reports: each has the rates since the one before."""

    def __init__(self) -> None:
        self.scale = PromptScale()
        self._totals: dict[str, tuple[float, float]] = {}
        self._steps = 0.0

    def report(self, metrics: str, adapters: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """Tokens of prompts in it are those of the ingress's estimates."""
        cards = list(adapters)
        scale = self.scale.look(total(metrics, PROMPT_TOKENS))
        pool_tokens, crowded = pool(metrics)
        stats: dict[str, Any] = {
            "resident": sorted(card["name"] for card in cards if card["resident"]),
            "pool_tokens": pool_tokens / scale,
            "crowded": crowded,
        }
        return stats | self._rates(metrics) | self._costs(metrics, scale)

    def _rates(self, metrics: str) -> dict[str, float]:
        rates = {}
        for rate, (what, by) in RATES.items():
            sums = labelled(metrics, what), labelled(metrics, by)
            before = self._totals.get(rate, (0.0, 0.0))
            self._totals[rate] = sums
            if sums[1] > before[1]:
                rates[rate] = (sums[0] - before[0]) / (sums[1] - before[1])
        return rates

    def _costs(self, metrics: str, scale: float) -> dict[str, float]:
        before, self._steps = self._steps, total(metrics, STEPS)
        if self._steps == before:
            return {}
        costs = {name: labelled(metrics, gauge) for name, gauge in COSTS.items()}
        costs["prefill_token"] *= scale
        return {name: cost for name, cost in costs.items() if cost > 0}


def pool(metrics: str) -> tuple[float, bool]:
    """(tokens that the pool can hold, whether it is full)."""
    blocks = values(metrics, "valora:pool_blocks")
    free = sum(count for labels, count in blocks.items() if 'use="free"' in labels)
    everything = sum(blocks.values())
    block_tokens = 0.0
    for labels in values(metrics, "vllm:cache_config_info"):
        block_tokens = float(labels.partition('block_size="')[2].partition('"')[0] or 0)
    return everything * block_tokens, everything > 0 and free < CROWDED * everything


def first_tokens_within(metrics: str, seconds: float) -> tuple[float, float]:
    """(first tokens counted in the largest bucket within `seconds`, all of them)."""
    name = "vllm:time_to_first_token_seconds"
    best: dict[str, tuple[float, float]] = {}  # by the other labels: bound and count
    for labels, count in values(metrics, f"{name}_bucket").items():
        others, _, rest = labels.partition('le="')
        bound = float(rest.partition('"')[0].replace("+Inf", "inf"))
        if best.get(others, (-1.0, 0.0))[0] < bound <= seconds:
            best[others] = (bound, count)
    return sum(count for _, count in best.values()), total(metrics, f"{name}_count")
