"""Derives a replica's routing report from its server's metrics."""

from collections.abc import Iterable, Mapping
from typing import Any

from .metrics_text import total, values

# Each rate is the growth of the first metric divided by the growth of the second between two
# reports.
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
# From the server's cost model. Unlike measured request times, these do not grow with the load: a router that mistakes load
# for slowness sends everything to the other replica until that one is overloaded.
COSTS = {
    "step": 'valora:cost_seconds{of="step"}',
    "prefill_token": 'valora:cost_seconds{of="prefill_token"}',
}
STEPS, PROMPT_TOKENS = "valora:engine_steps_total", "vllm:request_prompt_tokens_sum"
FIRST_TOKENS = 2000.0  # prompt tokens assumed to be well estimated before any were counted
KEPT = 0.9  # share of the older requests' weight kept at each report
CROWDED = 0.05  # share of free pool below which another adapter evicts something


def labelled(metrics: str, name: str) -> float:
    """The sum of a metric, or of its samples with one label."""
    plain, _, label = name.partition("{")
    found = values(metrics, plain)
    return sum(value for labels, value in found.items() if label.rstrip("}") in labels)


class PromptScale:
    """The server's prompt tokens per estimated token of the ingress, over recent requests."""

    def __init__(self) -> None:
        self._tokens = self._estimated = FIRST_TOKENS
        self._counted = 0.0

    def add(self, estimated: int) -> None:
        """Counts a request that has ended."""
        self._estimated += estimated

    def look(self, counted: float) -> float:
        """counted: prompt tokens of all requests that have ended so far, according to the
        server."""
        grown = max(0.0, counted - self._counted)
        self._counted = counted
        self._tokens += grown
        scale = self._tokens / self._estimated
        if grown:
            self._tokens *= KEPT
            self._estimated *= KEPT
        return scale


class Reporter:
    """Creates a replica's reports; each contains the rates since the previous one."""

    def __init__(self) -> None:
        self.scale = PromptScale()
        self._totals: dict[str, tuple[float, float]] = {}
        self._steps = 0.0

    def report(self, metrics: str, adapters: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """Prompt tokens in the report are in units of the ingress's estimates."""
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
    """Returns (tokens that the pool can hold, whether it is nearly full)."""
    blocks = values(metrics, "valora:pool_blocks")
    free = sum(count for labels, count in blocks.items() if 'use="free"' in labels)
    everything = sum(blocks.values())
    block_tokens = 0.0
    for labels in values(metrics, "vllm:cache_config_info"):
        block_tokens = float(labels.partition('block_size="')[2].partition('"')[0] or 0)
    return everything * block_tokens, everything > 0 and free < CROWDED * everything


def first_tokens_within(metrics: str, seconds: float) -> tuple[float, float]:
    """Returns (first tokens in the largest bucket within `seconds`, all first tokens)."""
    name = "vllm:time_to_first_token_seconds"
    best: dict[str, tuple[float, float]] = {}  # other labels -> bound and count
    for labels, count in values(metrics, f"{name}_bucket").items():
        others, _, rest = labels.partition('le="')
        bound = float(rest.partition('"')[0].replace("+Inf", "inf"))
        if best.get(others, (-1.0, 0.0))[0] < bound <= seconds:
            best[others] = (bound, count)
    return sum(count for _, count in best.values()), total(metrics, f"{name}_count")
