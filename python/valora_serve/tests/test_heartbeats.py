"""A replica's heartbeats while its server is slow, and the end of a request when nobody waits for it any
longer."""

import asyncio
import contextlib
import itertools
import time
import types

import pytest

from valora_serve.adapters import AdapterKeeper
from valora_serve.heartbeats import Pulse, with_heartbeats
from valora_serve.protocol import Alive, Call, Head, Hints, ServerLost
from valora_serve.replica import ValoraServer
from valora_serve.settings import Settings
from valora_serve.statistics import Reporter

BEAT = 0.02
ALIVE = Alive("r0")
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"


async def answer_at_once():
    pass


async def never_answer():
    await asyncio.sleep(3600)


class Slow:
    """A server that writes pieces, pauses for given seconds, or hangs (None), and notices when its client disconnects."""

    def __init__(self, *script):
        self.script = script
        self.tasks = set()
        self.left = asyncio.Event()

    async def _answer(self, reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        self.tasks.add(asyncio.current_task())
        for item in self.script:
            if item is None:
                await reader.read()
                self.left.set()
                break
            if isinstance(item, float):
                await asyncio.sleep(item)
            else:
                writer.write(item)
        writer.close()

    @contextlib.asynccontextmanager
    async def replica(self, ask=answer_at_once):
        """A replica in front of the server. `ask` stands in for the health request."""
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        replica = ValoraServer.__new__(ValoraServer)
        replica._settings = types.SimpleNamespace(heartbeat=BEAT, api_key="")
        replica._id, replica._session, replica._child = "r0", None, None
        replica._url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        replica._pulse = Pulse(ask, BEAT)
        replica._reporter = Reporter()
        replica._adapters = AdapterKeeper(None, replica._post, None)
        try:
            yield replica
        finally:
            await replica._client().close()
            server.close()


def call(stream=False):
    return Call("GET", "/v1/completions", {}, b"", stream)


def chunk(content):
    return f"{len(content):x}\r\n".encode() + content + b"\r\n"


def answers(*script):
    """All messages of a request to a server with this script."""
    stream = any(b"chunked" in item for item in script if isinstance(item, bytes))

    async def play():
        async with Slow(*script).replica() as replica:
            return [message async for message in replica.forward(call(stream))]

    return asyncio.run(play())


def without_beats(messages):
    return [message for message in messages if message != ALIVE]


WHOLE = HEAD + b"Content-Length: 4\r\n\r\n"
STREAM = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def test_heartbeats_last_until_a_stream_begins():
    messages = answers(10 * BEAT, WHOLE + b"text")
    assert messages[:3] == [ALIVE] * 3
    [head] = without_beats(messages)
    assert (head.status, head.body, head.more) == (200, b"text", False)


def test_heartbeats_last_until_a_whole_answer_is_complete():
    messages = answers(WHOLE + b"te", 10 * BEAT, b"xt")
    assert messages[:3] == [ALIVE] * 3 and without_beats(messages)[0].body == b"text"


def test_heartbeats_are_sent_during_a_stream():
    a, b = chunk(b"a\n\n"), chunk(b"b\n\n")
    messages = answers(STREAM, 10 * BEAT, a, 10 * BEAT, b, chunk(b""))
    head, last = without_beats(messages)
    assert (head.body, head.more, last) == (b"a\n\n", True, b"b\n\n")
    assert messages[:3] == [ALIVE] * 3
    at = messages.index(head)
    assert messages[at + 1 : at + 4] == [ALIVE] * 3 and messages[-1] == last


def test_hanging_server_sends_no_heartbeats():
    """The replica is alive, but its requests are lost nevertheless."""

    async def play(*script):
        async with Slow(*script).replica(never_answer) as replica:
            return [message async for message in replica.forward(call(STREAM in script))]

    assert ALIVE not in asyncio.run(play(10 * BEAT, WHOLE + b"text"))
    # Sending shows for a while that the server is alive.
    a = chunk(b"a\n\n")
    messages = asyncio.run(play(STREAM, a, 20 * BEAT, a, chunk(b"")))
    assert messages.count(ALIVE) <= 2


def test_concurrent_requests_share_one_health_check_per_period():
    asked = []

    async def ask():
        asked.append(time.monotonic())
        await asyncio.sleep(BEAT / 4)

    async def play():
        pulse = Pulse(ask, BEAT)
        assert not pulse.steady()
        await asyncio.sleep(BEAT / 2)
        end = time.monotonic() + 10 * BEAT
        while time.monotonic() < end:
            for _ in range(9):
                pulse.steady()
            await asyncio.sleep(BEAT / 10)

    asyncio.run(play())
    gaps = [b - a for a, b in itertools.pairwise(asked)]
    assert len(asked) >= 3 and min(gaps) >= BEAT / 2


def test_recovered_server_sends_heartbeats_again():
    async def play():
        hangs = [True]

        async def ask():
            if hangs[0]:
                raise TimeoutError

        pulse = Pulse(ask, BEAT)
        for _ in range(3):
            assert not pulse.steady()
            await asyncio.sleep(BEAT / 2)
        hangs[0] = False
        pulse.steady()
        await asyncio.sleep(0)
        assert pulse.steady()

    asyncio.run(play())


def test_fast_answer_has_no_heartbeats(monkeypatch):
    monkeypatch.setitem(globals(), "BEAT", 5.0)
    assert ALIVE not in answers(WHOLE + b"text")


def test_server_exit_loses_the_request():
    with pytest.raises(ServerLost):
        answers(3 * BEAT)


def test_heartbeats_are_sent_while_an_adapter_loads():
    async def play():
        async with Slow(WHOLE + b"text").replica() as replica:
            replica._adapters._store = types.SimpleNamespace(has=lambda name: True)

            async def load(name, body):
                await asyncio.sleep(10 * BEAT)

            replica._adapters._load_from_store = load
            return [message async for message in replica.forward(call(), Hints("cats"))]

    messages = asyncio.run(play())
    assert messages[:3] == [ALIVE] * 3 and without_beats(messages)[0].body == b"text"


def test_broadcast_answer_is_a_single_head_without_heartbeats():
    async def play():
        async with Slow(10 * BEAT, WHOLE + b"text").replica() as replica:
            return await replica.ask(call())

    head = asyncio.run(play())
    assert isinstance(head, Head) and head.body == b"text"


WAITS = {
    "for the head": (),
    "for the rest": (WHOLE + b"te",),
    "for the first event": (STREAM,),
    "for the next event": (STREAM, chunk(b"a\n\n")),
}


@pytest.mark.parametrize("waits", WAITS)
@pytest.mark.parametrize("ends", ["cancelled", "closed", "thrown"])
def test_cancelled_request_leaves_no_tasks(waits, ends):
    """Ray cancels the reading task, or raises the cancellation in it."""
    script = WAITS[waits]

    async def play():
        server = Slow(*script, None)
        async with asyncio.timeout(10), server.replica() as replica:
            before = asyncio.all_tasks()
            messages = replica.forward(call(STREAM in script))
            heads = 0
            while not server.tasks or heads < (waits == "for the next event"):
                heads += isinstance(await anext(messages), Head)
            assert await anext(messages) == ALIVE
            await end(messages)
            assert asyncio.all_tasks() <= before | server.tasks
            await server.left.wait()

    async def end(messages):
        if ends == "cancelled":
            task = asyncio.create_task(drain(messages))
            await asyncio.sleep(BEAT / 2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        elif ends == "closed":
            await messages.aclose()
        else:
            with pytest.raises(asyncio.CancelledError):
                await messages.athrow(asyncio.CancelledError())

    async def drain(messages):
        async for _ in messages:
            pass

    asyncio.run(play())


def test_heartbeats_do_not_restart_the_read():
    reads = []

    async def source():
        for i in range(2):
            reads.append(i)
            await asyncio.sleep(5 * BEAT)
            yield i
        raise ValueError("the end")

    async def play():
        got = []
        with pytest.raises(ValueError, match="the end"):
            async for message in with_heartbeats(source(), BEAT, lambda: "beat"):
                got.append(message)
        return got

    got = asyncio.run(play())
    assert [message for message in got if message != "beat"] == [0, 1]
    assert reads == [0, 1] and got.count("beat") >= 4


def test_source_is_closed_right_after_an_item():
    closed = []

    async def source():
        try:
            yield 1
        finally:
            closed.append(True)

    async def play():
        messages = source()
        beats = with_heartbeats(messages, BEAT, lambda: "beat")
        assert await anext(beats) == 1
        await beats.aclose()
        assert closed == [True]

    asyncio.run(play())


def test_two_late_heartbeats_are_tolerated():
    settings = Settings(model="m", silence_timeout=6)
    assert 2 * settings.heartbeat < settings.silence_timeout
    with pytest.raises(ValueError):
        Settings(model="m", silence_timeout=0)
