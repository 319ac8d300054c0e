"""The OpenAI endpoint in front of the replicas."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

from ray import serve
from ray.exceptions import RayError, RayTaskError
from ray.serve.exceptions import (
    BackPressureError,
    DeploymentUnavailableError,
    ReplicaUnavailableError,
)
from ray.serve.handle import DeploymentHandle
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from .events import END
from .metrics_text import add_up
from .protocol import (
    Call,
    Head,
    ServerLost,
    error_body,
    error_event,
    forwarded_request,
    is_complete,
)
from .registry import Registry
from .relay import Counts, Listener, Relay, RelayFailed
from .request_hints import Body, read_body
from .settings import Settings

logger = logging.getLogger("ray.serve")
RELAYED = {
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/embeddings",
    "/classify",
    "/v1/classify",
    "/rerank",
    "/v1/rerank",
    "/v2/rerank",
    "/score",
    "/v1/score",
    "/tokenize",
    "/detokenize",
}
LISTED = {"/v1/models", "/v1/lora_adapters"}
STATS = "/v1/stats"
PAGE = {"/", "/docs", "/openapi.json"}  # and everything below "/ui/"
ASKED = {"/version", "/v1/applications", STATS} | PAGE  # any replica can answer these
PINS = {"/v1/pin_lora_adapter", "/v1/unpin_lora_adapter"}
CHANGES = {"/v1/load_lora_adapter", "/v1/unload_lora_adapter"}
LOST = (ServerLost, ReplicaUnavailableError, RayError)
BATCHES = ("/v1/files", "/v1/batches")  # and everything below them
NO_BATCHES = (
    "files and batches belong to one server: ask one that was started with --batches-dir, "
    "not this endpoint of several servers"
)
BODY_BYTES = 64 * 2**20  # the limit of `valora serve`
LARGE_BODY = 2**18
BROADCAST_SECONDS = 300
METRICS_SECONDS = 5  # scrapes have their own timeout and must show silent replicas


def is_lost(error: BaseException) -> bool:
    """True if another replica may answer: the replica itself failed, not the code running in it."""
    if isinstance(error, RayTaskError):
        cause: Any = error.cause
        return (
            isinstance(error, ServerLost)
            or isinstance(cause, ServerLost)
            or (isinstance(cause, RayError) and not isinstance(cause, RayTaskError))
        )
    return isinstance(error, LOST)


class ValoraIngress:
    def __init__(self, settings: Settings, servers: DeploymentHandle) -> None:
        self._settings = settings
        self._servers = servers
        self._stream = servers.options(stream=True)
        context = serve.get_replica_context()
        self._id = context.replica_id.unique_id
        self._registry = Registry(f"{context.app_name}:{settings.model}:{settings.adapters}")
        self._counts = Counts()
        self._relay = Relay(
            self._send,
            is_lost,
            self._counts,
            settings.attempts,
            settings.request_timeout,
            settings.silence_timeout,
        )

    def _send(self, call: Call, body: Body) -> Any:
        return self._stream.forward.remote(call, body.hints)

    async def __call__(self, request: Request) -> Response:
        path, method = request.url.path, request.method
        if path in ("/health", "/ready"):
            return Response(status_code=200)
        if path == "/metrics":
            return await self._metrics(request)
        if path in RELAYED or path in ASKED or path.startswith("/ui/"):
            return await self._answer(request, "POST" if path in RELAYED else "GET")
        if path in LISTED or path.startswith("/v1/models/"):
            return await self._list(request)
        if path in CHANGES:
            return await self._change(request)
        if path in PINS:
            return await self._pin(request)
        if path.startswith(BATCHES) and method != "OPTIONS":
            return failure(403, NO_BATCHES)
        return (
            failure(404, f"the path {path} does not exist")
            if method != "OPTIONS"
            else Response(status_code=204)
        )

    # -- requests of one replica -------------------------------------------------------------------------------------

    async def _answer(self, request: Request, method: str) -> Response:
        if request.method not in (method, "HEAD" if method == "GET" else method):
            return failure(
                405, f"the path {request.url.path} does not support the method {request.method}"
            )
        path, content = request.url.path, await content_of(request)
        if content is None:
            return failure(413, f"the body is larger than {BODY_BYTES} bytes")
        large = len(content) > LARGE_BODY  # pictures: do not hold up others while hashing
        body = (
            await asyncio.to_thread(read_body, path, content) if large else read_body(path, content)
        )
        events = path == STATS and "text/event-stream" in request.headers.get("accept", "")
        headers = forwarded_request(request.headers)
        call = Call(method, path, headers, content, body.stream or events)
        try:
            head, rest = await self._relay.begin(call, body)
        except RelayFailed as error:
            return failure(error.status, str(error))
        except BackPressureError:
            return failure(429, "all replicas are busy", {"Retry-After": "1"})
        except DeploymentUnavailableError as error:
            return failure(503, str(error), {"Retry-After": "5"})
        headers = head.headers | {"X-Valora-Replica": head.replica}
        if not head.more:
            return Response(head.body, head.status, headers)
        return StreamingResponse(self._pieces(path, head, rest), head.status, headers)

    async def _pieces(self, path: str, head: Head, rest: Listener) -> AsyncIterator[bytes]:
        """The stream, which ends with an error event if its replica is lost midway."""
        yield head.body
        sent, complete = head.body.count(END), is_complete(path, head.body)
        try:
            async for piece in rest:
                yield piece
                sent, complete = sent + piece.count(END), is_complete(path, piece)
        except asyncio.CancelledError:
            rest.cancel()
            raise
        except Exception as error:
            if not is_lost(error):
                logger.exception("a stream failed")
            if complete:  # the replica was lost between its last event and the end
                return
            self._counts.broken_streams += 1
            lost = "the replica that generated this answer was lost; ask again"
            yield error_event(path, 503, lost, sent)

    # -- requests of all replicas ------------------------------------------------------------------------------------

    async def _all(
        self, method: str, call: Call, *arguments: Any, timeout: float = BROADCAST_SECONDS
    ) -> list[Head]:
        """The answers of all live replicas, except those that end in the meantime."""
        response = self._servers.broadcast(method, call, *arguments)
        results = await response.results_async(timeout_s=timeout, return_exceptions=True)
        heads = []
        for result in results:
            if isinstance(result, Head):
                heads.append(result)
            elif isinstance(result, BaseException) and not is_lost(result):
                raise result
        return heads

    async def _list(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return failure(
                405, f"the path {request.url.path} does not support the method {request.method}"
            )
        call = Call("GET", request.url.path, forwarded_request(request.headers), b"", False)
        try:
            heads = await self._all("ask", call, timeout=self._settings.silence_timeout)
        except (DeploymentUnavailableError, TimeoutError):
            # Scaled to zero: a normal request makes one start. Or one is silent: another replica's list is better
            # than none.
            return await self._answer(request, "GET")
        good = [head for head in heads if head.status == 200]
        if not good:
            return (
                as_response(heads[0])
                if heads
                else failure(503, "no replica is available", {"Retry-After": "5"})
            )
        if request.url.path not in LISTED:
            return as_response(good[0])
        return Response(
            json.dumps({"object": "list", "data": union(good)}), media_type="application/json"
        )

    async def _change(self, request: Request) -> Response:
        if request.method != "POST":
            return failure(
                405, f"the path {request.url.path} does not support the method {request.method}"
            )
        content = await content_of(request)
        try:
            body = json.loads(content or b"")
            name = body["lora_name"]
        except (ValueError, KeyError, TypeError):
            return failure(400, "'lora_name' must be provided.")
        loads = request.url.path == "/v1/load_lora_adapter"
        headers = forwarded_request(request.headers)
        call = Call("POST", request.url.path, headers, content or b"", False)
        serial = self._registry.next_serial()
        try:
            heads = await self._all("load" if loads else "unload", call, serial)
        except (DeploymentUnavailableError, TimeoutError) as error:
            return failure(503, str(error), {"Retry-After": "5"})
        if not heads:
            return failure(503, "no replica is available", {"Retry-After": "5"})
        bad = [head for head in heads if head.status != 200]
        # If some replicas already had this change, the others have now caught up.
        if len(bad) < len(heads):
            self._registry.write(name, serial, body if loads else None)
        worst = next((head for head in bad if head.status >= 500), None)
        if worst or len(bad) == len(heads):
            return as_response(worst or bad[0])
        return as_response(next(head for head in heads if head.status == 200))

    async def _pin(self, request: Request) -> Response:
        """Pins on the current replicas only: a pin concerns one server's memory and is not recorded
        for later ones."""
        if request.method != "POST":
            return failure(
                405, f"the path {request.url.path} does not support the method {request.method}"
            )
        content = await content_of(request)
        if content is None:
            return failure(413, f"the body is larger than {BODY_BYTES} bytes")
        call = Call("POST", request.url.path, forwarded_request(request.headers), content, False)
        try:
            heads = await self._all("ask", call)
        except (DeploymentUnavailableError, TimeoutError) as error:
            return failure(503, str(error), {"Retry-After": "5"})
        if not heads:
            return failure(503, "no replica is available", {"Retry-After": "5"})
        return as_response(max(heads, key=lambda head: head.status))

    async def _metrics(self, request: Request) -> Response:
        texts = []
        try:
            # With the client's key: without one, replicas name no adapters.
            call = Call("GET", "/metrics", forwarded_request(request.headers), b"", False)
            heads = await self._all("ask", call, timeout=METRICS_SECONDS)
            texts = [head.body.decode() for head in heads if head.status == 200]
        except (DeploymentUnavailableError, TimeoutError):
            pass  # scaled to zero, or one is silent: the ingress's own metrics remain
        own = self._counts.text(self._id, len(texts))
        return Response(add_up(texts) + own, media_type="text/plain; version=0.0.4; charset=utf-8")


async def content_of(request: Request) -> bytes | None:
    content = bytearray()
    async for piece in request.stream():
        content += piece
        if len(content) > BODY_BYTES:
            return None
    return bytes(content)


def union(heads: list[Head]) -> list[dict[str, Any]]:
    """Merges cards by name, in the order of the first replica that lists them."""
    cards: dict[str, dict[str, Any]] = {}
    for head in heads:
        for card in json.loads(head.body)["data"]:
            known = cards.setdefault(card.get("id", card.get("name")), card)
            if card.get("resident"):
                known["resident"] = True
    return list(cards.values())


def as_response(head: Head) -> Response:
    return Response(head.body, head.status, head.headers)


def failure(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    return Response(error_body(status, message), status, headers, media_type="application/json")
