"""Gets an answer from some replica: if a replica is lost, a request of which nothing was sent yet is retried
elsewhere."""

import asyncio
import dataclasses
import logging
from collections.abc import Callable
from typing import Any

from .protocol import Alive, Call, Head, Hints, ServerLost
from .request_hints import Body
from .routing.hearing import HEARING, Hearing

logger = logging.getLogger("ray.serve")
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
LONGEST_LOOK = 1.0  # seconds between two checks for silence
LOOKS = 10  # minimum number of checks before a replica counts as silent


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
    silent_replicas: int = 0

    def text(self, ingress: str, replicas: int) -> str:
        """The counts in Prometheus' text format."""
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
            (
                "silent_replicas_total",
                "counter",
                "Times that a replica counted as lost because nothing was heard from it.",
                self.silent_replicas,
            ),
            ("replicas", "gauge", "Replicas that answered for this page.", replicas),
        ):
            lines += [
                f"# HELP valora_serve:{name} {what}",
                f"# TYPE valora_serve:{name} {kind}",
                f'valora_serve:{name}{{ingress="{ingress}"}} {value}',
            ]
        return "\n".join(lines) + "\n"


class Silent(ServerLost):
    """Nothing has been heard from the replica for too long."""

    def __init__(self, replica: str) -> None:
        super().__init__(f"replica {replica} is silent")
        self.replica = replica


class Listener:
    """The messages of one request, without Alive. After a period of silence, cancels the request and
    raises Silent."""

    def __init__(
        self,
        messages: Any,
        hints: Hints,
        hearing: Hearing,
        timeout: float,
        on_silence: Callable[[str], None],
    ) -> None:
        self._messages = messages
        self._hints = hints
        self._hearing = hearing
        self._timeout = timeout
        self._on_silence = on_silence
        self._look = min(LONGEST_LOOK, timeout / LOOKS)
        self._replica = ""  # where the request is: from the router, then from the messages
        self._began = False

    def cancel(self) -> None:
        self._messages.cancel()

    def __aiter__(self) -> "Listener":
        return self

    async def __anext__(self) -> Any:
        while True:
            message = await self._next()
            if isinstance(message, (Alive, Head)):
                self._replica, self._began = message.replica, True
            self._hearing.heard(self._replica)
            if isinstance(message, Head) and message.more:
                self._hints.begun = self._hearing.now()
            if not isinstance(message, Alive):
                return message

    async def _next(self) -> Any:
        coming = asyncio.ensure_future(anext(self._messages))
        looked, quiet = self._hearing.now(), 0.0
        try:
            while not (await asyncio.wait({coming}, timeout=self._look))[0]:
                now = self._hearing.now()
                # If this process itself was stalled, messages that arrived in the meantime have not
                # been read yet.
                quiet = quiet + min(now - looked, 2 * self._look) if self._quiet(looked) else 0.0
                looked = now
                if quiet >= self._timeout:
                    self._on_silence(self._replica)
                    self.cancel()
                    raise Silent(self._replica)
            return coming.result()
        finally:
            give_up(coming)

    def _quiet(self, since: float) -> bool:
        """True if a message is overdue and none has come since then."""
        if self._began:
            return True
        sent = self._hints.sent
        if sent is None:  # the request waits in the router for a replica with room
            return False
        self._replica, at = sent
        # Until the replica accepts the request, messages of other requests also count as signs of life; then it
        # sends its own.
        taken = self._hints.taken
        return max(at, self._hearing.last(self._replica) if taken is None else taken) < since


def give_up(task: asyncio.Future[Any]) -> None:
    """Cancels a task that may still be running, and retrieves its result so that asyncio does
    not log it."""
    task.cancel()
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())


class Relay:
    """`send` starts a request on a replica chosen by the router and returns its messages, Head first."""

    def __init__(
        self,
        send: Callable[[Call, Body], Any],
        is_lost: Callable[[BaseException], bool],
        counts: Counts,
        attempts: int,
        timeout: float,
        silence: float,
        hearing: Hearing = HEARING,
    ) -> None:
        self._send = send
        self._is_lost = is_lost
        self._counts = counts
        self._attempts = attempts
        self._timeout = timeout
        self._silence = silence
        self._hearing = hearing

    async def begin(self, call: Call, body: Body) -> tuple[Head, Listener]:
        self._counts.requests += 1
        try:
            async with asyncio.timeout(self._timeout):
                return await self._try(call, body)
        except TimeoutError:
            self._counts.failed += 1
            raise RelayFailed(504, f"no replica answered within {self._timeout:g} s") from None

    async def _try(self, call: Call, body: Body) -> tuple[Head, Listener]:
        pause, attempt, avoid = FIRST_PAUSE, 1, body.hints.avoid
        while True:
            answer = self._start(call, body, avoid)
            try:
                head = await anext(answer)
                if head.status != 503 or attempt == self._attempts:  # 503: the replica is draining
                    return head, answer
                avoid += (head.replica,)
            except asyncio.CancelledError:
                answer.cancel()
                raise
            except Silent as silence:
                avoid += (silence.replica,)
                self._counts.retries += 1
                continue  # does not use up an attempt: the request did not cause the silence
            except Exception as error:
                if not self._is_lost(error):
                    raise
                logger.warning("attempt %d of a request failed: %s", attempt, type(error).__name__)
                if attempt == self._attempts:
                    self._counts.failed += 1
                    raise RelayFailed(
                        503, f"{attempt} replicas were lost while answering"
                    ) from None
            self._counts.retries += 1
            attempt += 1
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _start(self, call: Call, body: Body, avoid: tuple[str, ...]) -> Listener:
        # Each attempt has its own hints, because the router may still write to those of the
        # previous one.
        hints = dataclasses.replace(body.hints, avoid=avoid, sent=None, taken=None, begun=None)
        messages = self._send(call, dataclasses.replace(body, hints=hints))
        return Listener(messages, hints, self._hearing, self._silence, self._fell_silent)

    def _fell_silent(self, replica: str) -> None:
        if self._hearing.suspect(replica):
            self._counts.silent_replicas += 1
            logger.warning("nothing was heard from replica %s for %g s", replica, self._silence)
