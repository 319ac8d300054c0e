"""Messages between ingress and replicas, and the errors that clients see."""

import dataclasses
import json
from collections.abc import Mapping

SSE_DONE = b"data: [DONE]\n\n"
# Headers that apply to one connection, or are wrong once the body has passed through us.
NOT_FORWARDED = {
    "host",
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-length",
    "accept-encoding",
    "expect",
    "date",
    "server",
}


@dataclasses.dataclass
class Hints:
    """What the router knows about a request, extracted from its body once by the ingress."""

    model: str = ""
    adapters: tuple[str, ...] = ()  # in addition to the model's own name
    prefix: tuple[
        tuple[int, int], ...
    ] = ()  # (digest of the prompt up to here, tokens up to here), ascending
    media: tuple[int, ...] = ()  # digests of pictures and videos
    prompt_tokens: int = 0  # an estimate
    answer_tokens: int = 0
    avoid: tuple[str, ...] = ()  # replicas that failed this request
    streams: bool = dataclasses.field(default=False, compare=False)
    # Notes from the router to the ingress, which holds the same object: the replica that the request was sent to and when,
    # and when that replica accepted it.
    sent: tuple[str, float] | None = dataclasses.field(default=None, compare=False)
    taken: float | None = dataclasses.field(default=None, compare=False)
    # Note from the ingress to the router: when the first piece of a stream arrived.
    begun: float | None = dataclasses.field(default=None, compare=False)


@dataclasses.dataclass
class Call:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    stream: bool


@dataclasses.dataclass
class Head:
    """The first message of an answer. For an answer that is not a stream, it is the whole
    answer."""

    status: int
    headers: dict[str, str]
    replica: str
    body: bytes = b""
    more: bool = False


@dataclasses.dataclass(frozen=True)
class Alive:
    """A heartbeat: no news, but the replica is alive."""

    replica: str


class ServerLost(Exception):
    """The replica's server ended, or its connection broke; another replica can answer."""


def forwarded(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in NOT_FORWARDED}


def forwarded_request(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers of a client's request, with the host that it asked: the replica compares the origin
    of pages with it."""
    asked = headers.get("x-forwarded-host") or headers.get("host") or ""
    return forwarded(headers) | ({"x-forwarded-host": asked} if asked else {})


ERROR_TYPES = {
    400: "BadRequestError",
    404: "NotFoundError",
    405: "MethodNotAllowedError",
    413: "PayloadTooLargeError",
    429: "RateLimitError",
    503: "ServiceUnavailableError",
    504: "TimeoutError",
}


def error_body(status: int, message: str, param: str | None = None) -> bytes:
    kind = ERROR_TYPES.get(status, "BadRequestError" if status < 500 else "InternalServerError")
    return json.dumps(
        {"error": {"message": message, "type": kind, "param": param, "code": status}}
    ).encode()


LAST_RESPONSES = tuple(f"response.{end}" for end in ("completed", "incomplete", "failed"))


def is_complete(path: str, events: bytes) -> bool:
    """True if these whole events include the last event of their stream."""
    if path != "/v1/responses":
        return events.endswith(SSE_DONE)
    last = events.removesuffix(b"\n\n").rpartition(b"\n\n")[2].decode(errors="replace")
    name = last.partition("\n")[0].removeprefix("event: ")
    return name == "error" or name in LAST_RESPONSES


def error_event(path: str, status: int, message: str, sent: int) -> bytes:
    """The end of a stream that fails after `sent` events, in the form used by `valora serve`."""
    if path != "/v1/responses":
        return b"data: " + error_body(status, message) + b"\n\n" + SSE_DONE
    event = {"type": "error", "sequence_number": sent, "code": ERROR_TYPES[status]}
    event |= {"message": message, "param": None}
    return b"event: error\ndata: " + json.dumps(event).encode() + b"\n\n"
