"""How many replicas there should be, based on the number of requests and on how many first tokens are in time."""

import statistics
from typing import Any

GROWTH = 2.0  # most by which one decision may grow the number to meet the targets


def wanted(
    requests: float, per_replica: float, replicas: int, attained: float | None, goal: float
) -> float:
    """`attained`: share of first tokens in time; None if there is no target or there were no requests."""
    by_queue = requests / per_replica
    if replicas == 0 or requests == 0 or attained is None or attained >= goal:
        return by_queue
    # The queue may be short and answers still late, with long prompts or slow replicas. Never
    # shrink then.
    by_target = replicas * min(GROWTH, goal / max(attained, 0.01))
    return max(by_queue, by_target, replicas + 1)


class ByQueueAndAttainment:
    """An autoscaling policy for Ray Serve. Ray applies the bounds and delays."""

    def __init__(self, attainment: float = 0.95) -> None:
        self._goal = attainment

    def __call__(self, context: Any) -> tuple[float, dict[str, Any]]:
        reported = (context.aggregated_metrics or {}).get("attainment", {})
        attained = statistics.mean(reported.values()) if reported else None
        per_replica = context.config.get_target_ongoing_requests()
        replicas = context.current_num_replicas
        return wanted(context.total_num_requests, per_replica, replicas, attained, self._goal), {}
