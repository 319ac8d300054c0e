"""A replica: one `valora serve`, and the information that Ray asks for."""

import asyncio
import contextlib
import hmac
import json
import logging
import os
import time
from collections.abc import AsyncGenerator
from typing import Any

import aiohttp
import ray
from ray import serve

from .adapters import AdapterKeeper
from .child import Child, ChildFailed
from .events import whole_events
from .heartbeats import Pulse, with_heartbeats
from .protocol import Alive, Call, Head, Hints, ServerLost, error_body, forwarded
from .registry import Registry
from .settings import Settings, command
from .statistics import Reporter, first_tokens_within
from .store import AdapterStore, StoreError

logger = logging.getLogger("ray.serve")
CHUNK = 64 * 2**10
REPORTED = 5.0  # seconds between reports even of an idle replica, whose old rates then fade
JSON, PLAIN = {"Content-Type": "application/json"}, {"Content-Type": "text/plain; charset=utf-8"}


class ValoraServer:
    """Forwards requests to the child unchanged."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        context = serve.get_replica_context()
        self._id = context.replica_id.unique_id
        cores = ray.get_runtime_context().get_assigned_resources().get("CPU", settings.cores)
        environment = {"VALORA_API_KEY": settings.api_key} if settings.api_key else {}
        self._child = Child(command(settings, cores), self._log, self._ended, environment)
        self._url = self._child.start(settings.start_timeout)
        self._base_names: list[str] = []
        self._reporter = Reporter()
        self._attained = (0.0, 0.0)  # first tokens in time, and all first tokens, at the last check
        logger.info("valora %d serves at %s", self._child.pid, self._url)
        self._session: aiohttp.ClientSession | None = None
        # Any answer counts: while the server drains, /health returns 503 and running requests
        # continue.
        self._pulse = Pulse(
            lambda: self._get("/health", settings.silence_timeout), settings.heartbeat
        )
        store = (
            AdapterStore(
                settings.adapters,
                settings.cache,
                settings.cache_bytes,
                settings.digests == "required",
            )
            if settings.adapters
            else None
        )
        self._adapters = AdapterKeeper(
            store, self._post, Registry(f"{context.app_name}:{settings.model}:{settings.adapters}")
        )

    # -- the child ---------------------------------------------------------------------------------------------------

    @staticmethod
    def _log(line: str) -> None:
        logger.info("valora: %s", line)

    def _ended(self, code: int) -> None:
        """A replica without its server is useless. Ending it makes Ray start another one, as after any other
        fault."""
        logger.error("valora ended with %d; so does the replica", code)
        time.sleep(0.2)  # lets running requests report their errors
        os._exit(1)

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                auto_decompress=False,
                read_bufsize=CHUNK,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
            )
        return self._session

    def _key(self) -> dict[str, str]:
        return (
            {"Authorization": f"Bearer {self._settings.api_key}"} if self._settings.api_key else {}
        )

    def _may(self, call: Call) -> bool:
        if not self._settings.api_key:
            return True
        given = next((v for k, v in call.headers.items() if k.lower() == "authorization"), "")
        return hmac.compare_digest(given.encode(), f"Bearer {self._settings.api_key}".encode())

    async def _get(self, path: str, timeout: float) -> tuple[int, str]:
        limit = aiohttp.ClientTimeout(total=timeout)
        async with self._client().get(
            self._url + path, headers=self._key(), timeout=limit
        ) as response:
            return response.status, await response.text()

    async def _post(self, path: str, body: dict[str, Any]) -> tuple[int, str]:
        async with self._client().post(
            self._url + path, json=body, headers=self._key()
        ) as response:
            return response.status, await response.text()

    # -- requests ----------------------------------------------------------------------------------------------------

    async def forward(
        self, call: Call, hints: Hints | None = None
    ) -> AsyncGenerator[Head | bytes | Alive, None]:
        """Yields a Head, then the pieces of a stream, with Alive in between while the child still answers. ServerLost
        if it has ended."""
        self._pulse.steady()  # so that the first heartbeat has an answer
        messages = with_heartbeats(
            self._messages(call, hints),
            self._settings.heartbeat,
            lambda: Alive(self._id) if self._pulse.steady() else None,
        )
        async with contextlib.aclosing(messages):
            async for message in messages:
                yield message

    async def _messages(
        self, call: Call, hints: Hints | None
    ) -> AsyncGenerator[Head | bytes, None]:
        try:
            # A request without the key triggers no loads: the child rejects it.
            async with (
                self._adapters.using(hints if self._may(call) else None),
                contextlib.aclosing(self._exchange(call)) as exchange,
            ):
                good = False
                async for message in exchange:
                    good = good or (isinstance(message, Head) and message.status == 200)
                    yield message
                if hints and good and not call.path.endswith("tokenize"):
                    self._reporter.scale.add(hints.prompt_tokens)
        except StoreError as error:
            yield Head(
                error.status, dict(JSON), self._id, error_body(error.status, str(error), "model")
            )
        except (aiohttp.ClientError, ConnectionError) as error:
            raise ServerLost(f"replica {self._id} lost its server: {error!r}") from None

    async def _exchange(self, call: Call) -> AsyncGenerator[Head | bytes, None]:
        async with self._client().request(
            call.method,
            self._url + call.path,
            data=call.body or None,
            headers=forwarded(call.headers),
        ) as response:
            self._pulse.felt()
            head = Head(response.status, forwarded(response.headers), self._id)
            if not (call.stream and response.status == 200):
                head.body = await response.read()
                yield head
                return
            head.more = True
            # The head is sent with the first event: until then the request may run elsewhere.
            async for events in whole_events(response.content.iter_any()):
                self._pulse.felt()
                if head.body:
                    yield events
                else:
                    head.body = events
                    yield head
            if not head.body:
                yield head

    async def ask(self, call: Call) -> Head:
        """Handles requests that go to all replicas."""
        async with contextlib.aclosing(self._messages(call, None)) as messages:
            async for head in messages:
                assert isinstance(head, Head)
                return head
        raise ServerLost("no answer")

    async def load(self, call: Call, serial: int) -> Head:
        """Loads from the store if the body names no path, otherwise as the child does."""
        try:
            if not self._may(call):
                return await self.ask(call)
            status, text = await self._adapters.load(json.loads(call.body), serial, call, self.ask)
        except StoreError as error:
            status, text = error.status, error_body(error.status, str(error), "lora_name").decode()
        except (aiohttp.ClientError, ConnectionError) as error:
            raise ServerLost(repr(error)) from None
        return Head(status, dict(JSON if text.startswith("{") else PLAIN), self._id, text.encode())

    async def unload(self, call: Call, serial: int) -> Head:
        head = await self.ask(call)
        if head.status == 200:
            self._adapters.unloaded(json.loads(call.body)["lora_name"], serial)
        return head

    async def whereabouts(self) -> dict[str, Any]:
        return {
            "replica": self._id,
            "pid": os.getpid(),
            "child": self._child.pid,
            "url": self._url,
            "node": ray.get_runtime_context().get_node_id(),
        }

    # -- what Ray asks -----------------------------------------------------------------------------------------------

    async def check_health(self) -> None:
        if not self._child.alive:
            raise ChildFailed("valora has ended")
        status, text = await self._get("/health", self._settings.health_timeout)
        if status != 200:
            raise ChildFailed(f"valora answers /health with {status}: {text}")
        try:
            await asyncio.wait_for(
                self._adapters.follow_registry(), self._settings.health_timeout / 2
            )
        except Exception as error:  # the control store, which requests do not need
            logger.warning("the list of loaded adapters could not be followed: %r", error)

    async def record_routing_stats(self) -> dict[str, Any]:
        """The quantities on which the cost of a request on this replica depends."""
        limit = self._settings.health_timeout
        (_, metrics), (_, listed) = await asyncio.gather(
            self._get("/metrics", limit), self._get("/v1/lora_adapters", limit)
        )
        if not self._base_names:
            _, models = await self._get("/v1/models", limit)
            cards = json.loads(models).get("data", [])
            self._base_names = [card["id"] for card in cards if card["parent"] is None]
        stats = self._reporter.report(metrics, json.loads(listed).get("data", []))
        # Makes reports of an idle replica differ, because Ray only passes on changes.
        moment = int(time.time() // REPORTED)
        return stats | {"base_names": self._base_names, "moment": moment}

    async def record_autoscaling_stats(self) -> dict[str, float]:
        """Share of first tokens since the last check that were in time."""
        target = self._settings.ttft_target
        if not target:
            return {}
        _, metrics = await self._get("/metrics", self._settings.health_timeout)
        (good, asked), before = first_tokens_within(metrics, target), self._attained
        self._attained = (good, asked)
        new = asked - before[1]
        return {"attainment": (good - before[0]) / new if new > 0 else 1.0}

    def __del__(self) -> None:
        """Called by Ray when the last requests of a stopping replica have ended."""
        child = getattr(self, "_child", None)
        if child:
            child.stop(5)
