"""Heartbeats: whoever waits for a message can tell a slow sender from a lost one."""

import asyncio
import logging
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TypeVar

logger = logging.getLogger("ray.serve")

T = TypeVar("T")
B = TypeVar("B")


class Pulse:
    """Tracks whether a server still answers. It is asked at most once per period, and only while somebody calls
    steady()."""

    def __init__(self, ask: Callable[[], Awaitable[object]], period: float) -> None:
        self._ask = ask
        self._period = period
        self._last = -math.inf
        self._asking: asyncio.Task[None] | None = None

    def felt(self) -> None:
        """The server has answered something."""
        self._last = time.monotonic()

    def steady(self) -> bool:
        """True if the server has answered recently. If that was a while ago, asks it; the answer
        shows in a later call."""
        quiet = time.monotonic() - self._last
        if quiet > self._period / 2 and self._asking is None:
            self._asking = asyncio.create_task(self._feel())
        return quiet < 1.5 * self._period

    async def _feel(self) -> None:
        try:
            await self._ask()
            self.felt()
        except Exception as error:
            logger.warning("the server does not answer: %r", error)
        finally:
            self._asking = None


async def with_heartbeats(
    messages: AsyncGenerator[T, None], period: float, beat: Callable[[], B | None]
) -> AsyncGenerator[T | B, None]:
    """Yields the messages, and beat() whenever none came for a period. Closing this closes `messages`, whatever they
    wait for."""
    coming = asyncio.ensure_future(anext(messages))
    try:
        while True:
            while not (await asyncio.wait({coming}, timeout=period))[0]:
                if (sign := beat()) is not None:
                    yield sign
            try:
                message = coming.result()
            except StopAsyncIteration:
                return
            yield message
            coming = asyncio.ensure_future(anext(messages))
    finally:
        try:
            await _end(coming)
        finally:
            await messages.aclose()


async def _end(task: asyncio.Future[T]) -> None:
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # retrieves the exception, which asyncio would otherwise log
