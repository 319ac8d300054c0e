"""Splits streams of server-sent events at event boundaries, so that a broken stream never ends
inside an event."""

from collections.abc import AsyncIterable, AsyncIterator

END = b"\n\n"


async def whole_events(pieces: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Yields the same bytes, split only after events; a remainder is sent only when the stream has ended
    normally."""
    rest = b""
    async for piece in pieces:
        rest += piece
        end = rest.rfind(END)
        if end >= 0:
            yield rest[: end + len(END)]
            rest = rest[end + len(END) :]
    if rest:
        yield rest
