"""Server-sent events in whole pieces: a stream that breaks must not end within an event."""

from collections.abc import AsyncIterable, AsyncIterator

END = b"\n\n"


async def whole_events(pieces: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """The same bytes, cut after events alone; what follows the last one comes when the stream has ended well."""
    rest = b""
    async for piece in pieces:
        rest += piece
        end = rest.rfind(END)
        if end >= 0:
            yield rest[: end + len(END)]
            rest = rest[end + len(END) :]
    if rest:
        yield rest
