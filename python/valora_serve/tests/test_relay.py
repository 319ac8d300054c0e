"""Which requests are retried and which are not, with simulated replicas."""

import asyncio
import time
import types

import pytest
from starlette.requests import Request

from valora_serve.ingress import ValoraIngress, is_lost
from valora_serve.protocol import Alive, Call, Head, ServerLost, error_event
from valora_serve.relay import Counts, Relay, RelayFailed, Silent
from valora_serve.request_hints import Body
from valora_serve.routing.hearing import Hearing

CALL = Call("POST", "/v1/chat/completions", {}, b"{}", False)
SILENCE = 0.2
WAIT = SILENCE / 5


class Taken:
    """The replica accepts the request."""


class Messages:
    """One replica's answer: messages, an error, pauses in seconds; None: hangs."""

    def __init__(self, script):
        self.script = list(script) if isinstance(script, (list, tuple)) else [script]
        self.cancelled = False

    async def __anext__(self):
        while self.script:
            item = self.script.pop(0)
            if item is None:
                await asyncio.sleep(3600)
            elif isinstance(item, Exception):
                raise item
            elif isinstance(item, float):
                await asyncio.sleep(item)
            elif isinstance(item, Taken):
                self.hints.taken = time.monotonic()
            else:
                return item
        raise StopAsyncIteration

    def cancel(self):
        self.cancelled = True


class Played:
    """`chosen`: the replicas to which the router sends the attempts; None where it finds no room."""

    def __init__(self, *answers, attempts=3, timeout=10, chosen=(), taken=None, now=time.monotonic):
        self.answers = [Messages(answer) for answer in answers]
        self.avoided = []
        self.counts = Counts()
        self.hearing = Hearing(now)
        self.relay = Relay(
            self._send, is_lost, self.counts, attempts, timeout, SILENCE, self.hearing
        )
        self._chosen = list(chosen)
        self._taken = taken
        self._sent = 0

    def _send(self, call, body):
        self.avoided.append(body.hints.avoid)
        self._sent += 1
        where = self._chosen.pop(0) if self._chosen else None
        body.hints.sent = (where, self.hearing.now()) if where else None
        body.hints.taken = self._taken
        self.answers[self._sent - 1].hints = body.hints
        return self.answers[self._sent - 1]

    def begin(self, **beside):
        return asyncio.run(self._begin(**beside))[0]

    def all_of(self, **beside):
        """The pieces of a stream that a client receives, and the error that ended it, or None."""
        return asyncio.run(self._all_of(**beside))

    async def _begin(self, beside=None):
        task = asyncio.create_task(beside()) if beside else None
        answer = await self.relay.begin(CALL, Body())
        if task:
            task.cancel()
        return answer

    async def _all_of(self, pause=0.0):
        first, rest = await self.relay.begin(CALL, Body())
        pieces = [first.body]
        try:
            async for piece in rest:
                pieces.append(piece)
                await asyncio.sleep(pause)
        except Exception as error:
            return pieces, error
        finally:
            await asyncio.sleep(0)
            assert asyncio.all_tasks() == {asyncio.current_task()}
        return pieces, None

    async def hear(self, name):
        """Receives messages for other requests."""
        while True:
            self.hearing.heard(name)
            await asyncio.sleep(WAIT / 4)


def head(status=200, replica="r0", body=b"", more=False):
    return Head(status, {}, replica, body, more)


def test_lost_request_is_retried_elsewhere():
    played = Played(ServerLost(), ServerLost(), head())
    assert played.begin() == head()
    assert (played.counts.requests, played.counts.retries, played.counts.failed) == (1, 2, 0)


def test_draining_replica_is_avoided():
    played = Played(head(503), head(replica="r1"))
    assert played.begin().replica == "r1"
    assert played.avoided == [(), ("r0",)]


def test_last_failure_is_reported_if_all_replicas_fail():
    assert Played(head(503), head(503), head(503)).begin().status == 503
    played = Played(ServerLost(), ServerLost(), ServerLost())
    with pytest.raises(RelayFailed, match="3 replicas were lost") as error:
        played.begin()
    assert error.value.status == 503 and played.counts.failed == 1


@pytest.mark.parametrize("status", [200, 400, 404, 429, 500])
def test_other_errors_are_not_retried(status):
    played = Played(head(status))
    assert played.begin().status == status and played.counts.retries == 0


def test_internal_error_is_not_retried():
    with pytest.raises(KeyError):
        Played(KeyError("a fault"), head()).begin()


def test_request_times_out():
    played = Played(None, timeout=0.05)
    with pytest.raises(RelayFailed) as error:
        played.begin()
    assert error.value.status == 504 and played.answers[0].cancelled and played.counts.failed == 1


def test_disconnect_cancels_the_request():
    played = Played(None)

    async def leave():
        task = asyncio.create_task(played.relay.begin(CALL, Body()))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(leave())
    assert played.answers[0].cancelled


# -- silence ---------------------------------------------------------------------------------------------------------


def test_request_of_a_silent_replica_is_retried_elsewhere():
    """Even a request that may be tried only once."""
    played = Played(None, None, head(replica="r2"), chosen=("r0", "r1", "r2"), attempts=1)
    assert played.begin().replica == "r2"
    assert played.answers[0].cancelled and played.answers[1].cancelled
    assert played.avoided == [(), ("r0",), ("r0", "r1")]
    counts = played.counts
    assert (counts.retries, counts.silent_replicas, counts.failed) == (2, 2, 0)
    assert [played.hearing.suspected(name) for name in ("r0", "r1", "r2")] == [True, True, False]


def test_request_timeout_ends_silence():
    played = Played(*[None] * 9, chosen=["r0"] * 9, timeout=5 * SILENCE)
    with pytest.raises(RelayFailed) as error:
        played.begin()
    assert error.value.status == 504 and played.counts.failed == 1
    assert 1 <= played.counts.retries <= 4
    assert played.counts.silent_replicas == 1  # it never came back in between


def test_request_waiting_for_capacity_is_not_retried():
    played = Played((2 * SILENCE, head()), chosen=(None,))
    assert played.begin() == head() and played.counts.retries == 0


def test_messages_of_other_requests_count_as_life_before_acceptance():
    played = Played((2 * SILENCE, head()), chosen=("r0",))
    assert played.begin(beside=lambda: played.hear("r0")) == head()
    assert played.counts.retries == 0
    played = Played((2 * SILENCE, head()), head(replica="r2"), chosen=("r0", "r2"))
    assert played.begin(beside=lambda: played.hear("r1")).replica == "r2"


def test_only_own_messages_count_as_life_after_acceptance():
    """As when the replica's process still accepts requests but its server hangs."""
    played = Played(None, head(replica="r1"), chosen=("r0", "r1"), taken=0.0)
    assert played.begin(beside=lambda: played.hear("r0")).replica == "r1"


def test_late_accepted_request_gets_full_heartbeat_time():
    script = (0.9 * SILENCE, Taken(), 0.8 * SILENCE, head())
    played = Played(script, head(replica="r1"), chosen=("r0", "r1"))
    assert played.begin() == head() and played.counts.retries == 0


def test_heartbeats_keep_a_slow_answer_alive():
    beats = [WAIT, Alive("r0")] * 10
    played = Played([*beats, head(body=b"all")], chosen=("r0",))
    assert played.begin() == head(body=b"all") and played.counts.retries == 0
    assert played.hearing.last("r0") > 0


def test_request_without_heartbeats_is_retried_elsewhere():
    """What other requests receive from the replica no longer counts, and the router need not have reported where
    the request went."""
    played = Played((Alive("r0"), None), head(replica="r1"), chosen=(None, None))
    assert played.begin(beside=lambda: played.hear("r0")).replica == "r1"
    assert played.avoided == [(), ("r0",)] and played.counts.silent_replicas == 1


def test_stalled_ingress_reads_messages_before_judging_silence():
    now = [0.0]
    played = Played((5 * WAIT, head()), chosen=("r0",), now=lambda: now[0])

    async def stand_still():
        now[0] += 0.01
        await asyncio.sleep(WAIT)
        now[0] += 100 * SILENCE

    assert played.begin(beside=stand_still) == head() and played.counts.retries == 0


def test_silent_stream_is_broken_off():
    beats = [WAIT, Alive("r0")] * 5
    played = Played([head(body=b"1", more=True), *beats, b"2", Alive("r0"), None], chosen=("r0",))
    pieces, error = played.all_of()
    assert pieces == [b"1", b"2"] and isinstance(error, Silent) and is_lost(error)
    assert played.answers[0].cancelled and played.hearing.suspected("r0")


def test_broken_stream_ends_with_its_replicas_error():
    pieces, error = Played([head(body=b"1", more=True), b"2", ServerLost("x")]).all_of()
    assert pieces == [b"1", b"2"] and str(error) == "x"


def test_router_learns_when_a_stream_begins():
    played = Played([head(body=b"1", more=True), b"2"])
    assert played.all_of() == ([b"1", b"2"], None)
    assert played.answers[0].hints.begun is not None
    whole = Played([head(body=b"1")])
    whole.begin()
    assert whole.answers[0].hints.begun is None


def test_slow_client_does_not_make_its_replica_silent():
    played = Played([head(body=b"1", more=True), b"2", 2 * WAIT, b"3"], chosen=("r0",))
    assert played.all_of(pause=2 * SILENCE) == ([b"1", b"2", b"3"], None)


def streamed(played, path):
    """What a client receives of a stream."""
    ingress = ValoraIngress.__new__(ValoraIngress)
    ingress._counts = played.counts

    async def client():
        first, rest = await played.relay.begin(CALL, Body())
        return [piece async for piece in ingress._pieces(path, first, rest)]

    return asyncio.run(client())


def test_client_of_a_silent_stream_gets_an_error_event():
    played = Played([head(body=b"a\n\n", more=True), Alive("r0"), b"b\n\n", Alive("r0"), None])
    lost = "the replica that generated this answer was lost; ask again"
    last = error_event("/v1/responses", 503, lost, 2)
    assert streamed(played, "/v1/responses") == [b"a\n\n", b"b\n\n", last]
    assert (played.counts.broken_streams, played.counts.silent_replicas) == (1, 1)


def test_model_list_comes_from_a_responsive_replica():
    class Waiting:
        async def results_async(self, timeout_s, return_exceptions):
            assert timeout_s == SILENCE
            raise TimeoutError

    listed = head(body=b'{"data": []}')
    ingress = ValoraIngress.__new__(ValoraIngress)
    ingress._settings = types.SimpleNamespace(silence_timeout=SILENCE)
    ingress._servers = types.SimpleNamespace(broadcast=lambda method, call: Waiting())
    ingress._relay = Played([listed]).relay

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {"type": "http", "method": "GET", "path": "/v1/models", "headers": []}
    answer = asyncio.run(ingress._list(Request(scope, receive)))
    assert (answer.status_code, answer.body) == (200, listed.body)


def asked(ingress, path, method="GET", headers=()):
    async def receive():
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def answer():
        scope = {"type": "http", "method": method, "path": path, "headers": list(headers)}
        response = await ingress(Request(scope, receive))
        pieces = getattr(response, "body_iterator", None)
        body = b"".join([piece async for piece in pieces]) if pieces else response.body
        return response.status_code, body, response.headers

    return asyncio.run(answer())


def page_ingress(*answers):
    ingress = ValoraIngress.__new__(ValoraIngress)
    played = Played(*answers)
    calls = []
    send = played.relay._send
    played.relay._send = lambda call, body: (calls.append(call), send(call, body))[1]
    ingress._relay, ingress._counts = played.relay, played.counts
    return ingress, calls


def test_page_and_statistics_come_from_one_replica():
    for path in ("/", "/docs", "/ui/app.js", "/openapi.json", "/v1/stats"):
        ingress, calls = page_ingress([head(body=b"of r0")])
        status, body, headers = asked(ingress, path)
        assert (status, body, headers["x-valora-replica"]) == (200, b"of r0", "r0")
        assert [(call.method, call.path, call.stream) for call in calls] == [("GET", path, False)]
    assert asked(ingress, "/ui", "POST")[0] == 404
    assert asked(ingress, "/v1/stats", "POST")[0] == 405
    assert asked(ingress, "/ready")[0] == 200


@pytest.mark.parametrize("path", ["/v1/files", "/v1/files/file-1/content", "/v1/batches"])
def test_batches_are_refused_with_the_reason(path):
    ingress, calls = page_ingress([])
    status, body, _ = asked(ingress, path, "GET")
    assert status == 403 and b"ask one that was started with --batches-dir" in body and not calls
    assert asked(ingress, path, "POST")[0] == 403


def test_statistics_stream_passes_through_and_ends_with_its_replica():
    ingress, calls = page_ingress(
        [head(body=b"data: 1\n\n", more=True), b"data: 2\n\n", ServerLost()]
    )
    _, body, _ = asked(ingress, "/v1/stats", headers=[(b"accept", b"text/event-stream")])
    assert calls[0].stream and body.startswith(b"data: 1\n\ndata: 2\n\n")
    assert b"the replica that generated this answer was lost" in body


def test_pin_reaches_every_running_replica():
    ingress = ValoraIngress.__new__(ValoraIngress)

    class Answers:
        async def results_async(self, timeout_s, return_exceptions):
            return [head(body=b"pinned"), head(400, "r1", b"too large"), ServerLost()]

    calls = []
    ingress._servers = types.SimpleNamespace(
        broadcast=lambda method, call: (calls.append((method, call.path)), Answers())[1]
    )
    assert asked(ingress, "/v1/pin_lora_adapter", "POST")[:2] == (400, b"too large")
    assert calls == [("ask", "/v1/pin_lora_adapter")]
    assert asked(ingress, "/v1/unpin_lora_adapter")[0] == 405


@pytest.mark.parametrize(
    ("path", "last"),
    [
        ("/v1/chat/completions", b"data: [DONE]\n\n"),
        ("/v1/responses", b'event: response.completed\ndata: {"a": 1}\n\n'),
    ],
)
def test_stream_is_not_broken_after_its_last_event(path, last):
    played = Played([head(body=b"data: 1\n\n", more=True), b"data: 2\n\n" + last, ServerLost()])
    assert streamed(played, path) == [b"data: 1\n\n", b"data: 2\n\n" + last]
    assert played.counts.broken_streams == 0
    played = Played([head(body=last + b"data: 1\n\n", more=True), ServerLost()])
    assert len(streamed(played, path)) == 2 and played.counts.broken_streams == 1
