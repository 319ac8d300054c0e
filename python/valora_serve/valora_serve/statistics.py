"""What a replica reports for routing, from the metrics of its server."""

from collections.abc import Iterable, Mapping
from typing import Any

from .metrics_text import total, values

Totals = dict[str, tuple[float, float]]
# The rate of what, as the growth of one metric by that of another between two looks.
RATES = {
    "prefill_token": (
        "vllm:request_prefill_time_seconds_sum",
        "vllm:request_prefill_kv_computed_tokens_sum",
    ),
    "output_token": (
        "vllm:request_time_per_output_token_seconds_sum",
        "vllm:request_time_per_output_token_seconds_count",
    ),
    "adapter_load": (
        'valora:memory_move_seconds_total{move="load_adapter"}',
        'valora:memory_moves_total{move="load_adapter"}',
    ),
}
CROWDED = 0.05  # share of the pool that is free, below which a further adapter drives something out


def labelled(metrics: str, name: str) -> float:
    """The sum of a metric, or of its samples with one label."""
    plain, _, label = name.partition("{")
    found = values(metrics, plain)
    return sum(value for labels, value in found.items() if label.rstrip("}") in labels)


def totals_of(metrics: str) -> Totals:
    return {
        rate: (labelled(metrics, what), labelled(metrics, by)) for rate, (what, by) in RATES.items()
    }


def pool(metrics: str) -> tuple[float, bool]:
    """(tokens that the pool can hold, whether it is full)."""
    blocks = values(metrics, "valora:pool_blocks")
    free = sum(count for labels, count in blocks.items() if 'use="free"' in labels)
    everything = sum(blocks.values())
    block_tokens = 0.0
    for labels in values(metrics, "vllm:cache_config_info"):
        block_tokens = float(labels.partition('block_size="')[2].partition('"')[0] or 0)
    return everything * block_tokens, everything > 0 and free < CROWDED * everything


def routing_stats(
    metrics: str, adapters: Iterable[Mapping[str, Any]], before: Totals
) -> tuple[dict[str, Any], Totals]:
    """(the report, totals for the next one)."""
    cards = list(adapters)
    pool_tokens, crowded = pool(metrics)
    stats: dict[str, Any] = {
        "waiting": total(metrics, "vllm:num_requests_waiting")
        + total(metrics, "valora:num_requests_preparing"),
        "running": total(metrics, "vllm:num_requests_running"),
        "kv_usage": total(metrics, "vllm:kv_cache_usage_perc"),
        "resident": sorted(card["name"] for card in cards if card["resident"]),
        "pool_tokens": pool_tokens,
        "crowded": crowded,
    }
    now = totals_of(metrics)
    for rate, (what, by) in now.items():
        what_before, by_before = before.get(rate, (0.0, 0.0))
        if by > by_before:
            stats[rate] = (what - what_before) / (by - by_before)
    return stats, now


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
