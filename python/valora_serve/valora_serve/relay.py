"""Gets the beginning of an answer from some replica: a request of which nothing was sent yet is tried elsewhere."""

import asyncio
import dataclasses
import logging
from collections.abc import Callable
from typing import Any

from .protocol import Call, Head
from .request_hints import Body

logger = logging.getLogger("ray.serve")
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0


class RelayFailed(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclasses.dataclass
class Counts:
    requests: int = 0
    retries: int = 0
    failed: int = 0
    broken_streams: int = 0

    def text(self, ingress: str, replicas: int) -> str:
        """In Prometheus' form."""
        lines = []
        for name, kind, what, value in (
            ("requests_total", "counter", "Requests that the ingress relayed.", self.requests),
            (
                "retries_total",
                "counter",
                "Requests that ran on another replica after one was lost.",
                self.retries,
            ),
            ("failed_requests_total", "counter", "Requests that no replica answered.", self.failed),
            (
                "broken_streams_total",
                "counter",
                "Streams that ended because their replica was lost.",
                self.broken_streams,
            ),
            ("replicas", "gauge", "Replicas that answered for this page.", replicas),
        ):
            lines += [
                f"# HELP valora_serve:{name} {what}",
                f"# TYPE valora_serve:{name} {kind}",
                f'valora_serve:{name}{{ingress="{ingress}"}} {value}',
            ]
        return "\n".join(lines) + "\n"


class Relay:
    """`send` starts a request on a replica of the router's choice and gives its messages, Head first."""

    def __init__(
        self,
        send: Callable[[Call, Body], Any],
        is_lost: Callable[[BaseException], bool],
        counts: Counts,
        attempts: int,
        timeout: float,
    ) -> None:
        self._send = send
        self._is_lost = is_lost
        self._counts = counts
        self._attempts = attempts
        self._timeout = timeout

    async def begin(self, call: Call, body: Body) -> tuple[Head, Any]:
        self._counts.requests += 1
        try:
            async with asyncio.timeout(self._timeout):
                return await self._try(call, body)
        except TimeoutError:
            self._counts.failed += 1
            raise RelayFailed(504, f"no replica answered within {self._timeout:g} s") from None

    async def _try(self, call: Call, body: Body) -> tuple[Head, Any]:
        pause = FIRST_PAUSE
        for attempt in range(1, self._attempts + 1):
            messages = self._send(call, body)
            try:
                head = await anext(messages)
                if head.status != 503 or attempt == self._attempts:  # draining
                    return head, messages
                body.hints.avoid += (head.replica,)
            except asyncio.CancelledError:
                messages.cancel()
                raise
            except Exception as error:
                if not self._is_lost(error):
                    raise
                logger.warning("attempt %d of a request failed: %s", attempt, type(error).__name__)
                if attempt == self._attempts:
                    self._counts.failed += 1
                    raise RelayFailed(
                        503, f"{attempt} replicas were lost while they answered"
                    ) from None
            self._counts.retries += 1
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        raise AssertionError("unreachable")
