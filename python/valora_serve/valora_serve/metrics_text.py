"""Combines the Prometheus metrics of several servers."""

import dataclasses
import math
import re
from collections.abc import Iterable

# Adapter names are label values, and may contain braces.
LABELS = r'\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\}'
SAMPLE = re.compile(rf"^([a-zA-Z_:][a-zA-Z0-9_:]*)({LABELS})?\s+(\S+)(?:\s+-?\d+)?$")
# Metrics for which a sum is meaningless. All others are counts, bytes or seconds.
MEAN = {
    "vllm:kv_cache_usage_perc",
    "valora:step_cost_error_median",
    "valora:step_cost_error_p95",
    "valora:step_cost_correction",
    "valora:cost_seconds",
    "valora:pool_block_bytes",
}
LEAST = {"process_start_time_seconds"}
MOST = {"vllm:cache_config_info", "vllm:lora_requests_info", "process_max_fds"}


@dataclasses.dataclass
class Family:
    comments: list[str] = dataclasses.field(default_factory=list)
    samples: dict[str, list[float]] = dataclasses.field(default_factory=dict)


def family_of(sample: str, declared: dict[str, Family]) -> str:
    """Histograms declare one name but have samples under three."""
    for suffix in ("_bucket", "_sum", "_count"):
        if sample.endswith(suffix) and sample.removesuffix(suffix) in declared:
            return sample.removesuffix(suffix)
    return sample


def parse(text: str, into: dict[str, Family]) -> None:
    for line in text.splitlines():
        if line.startswith(("# HELP ", "# TYPE ")):
            comments = into.setdefault(line.split(" ", 3)[2], Family()).comments
            if line not in comments and len(comments) < 2:
                comments.append(line)
            continue
        found = SAMPLE.match(line)
        if found:
            name, labels, value = found.groups()
            family = into.setdefault(family_of(name, into), Family())
            family.samples.setdefault(name + (labels or ""), []).append(float(value))


def combine(name: str, values: list[float]) -> float:
    if name in MEAN:
        return sum(values) / len(values)
    if name in LEAST:
        return min(values)
    return max(values) if name in MOST else math.fsum(values)


def shown(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)


def add_up(texts: Iterable[str]) -> str:
    """Adds up counters, histograms and gauges of counts; averages shares and medians."""
    families: dict[str, Family] = {}
    for text in texts:
        parse(text, families)
    lines = []
    for name, family in families.items():
        lines += family.comments
        lines += [
            f"{sample} {shown(combine(name, values))}" for sample, values in family.samples.items()
        ]
    return "\n".join(lines) + "\n" if lines else ""


def values(text: str, name: str) -> dict[str, float]:
    """The samples with exactly this name, by their labels."""
    found = (SAMPLE.match(line) for line in text.splitlines() if line.startswith(name))
    return {
        match.group(2) or "": float(match.group(3))
        for match in found
        if match and match.group(1) == name
    }


def total(text: str, name: str) -> float:
    return math.fsum(values(text, name).values())
