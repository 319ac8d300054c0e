"""Which requests run again and which do not, with replicas that are played."""

import asyncio

import pytest

from valora_serve.protocol import Call, Head, ServerLost
from valora_serve.relay import Counts, Relay, RelayFailed
from valora_serve.request_hints import Body

CALL = Call("POST", "/v1/chat/completions", {}, b"{}", False)


class Messages:
    """The answer of one replica: what it gives first, or the error."""

    def __init__(self, first):
        self.first = first
        self.cancelled = False

    async def __anext__(self):
        if self.first is None:
            await asyncio.sleep(3600)
        if isinstance(self.first, Exception):
            raise self.first
        return self.first

    def cancel(self):
        self.cancelled = True


class Played:
    def __init__(self, *answers, attempts=3, timeout=10):
        self.answers = [Messages(answer) for answer in answers]
        self.avoided = []
        self.counts = Counts()
        self.relay = Relay(
            self._send, lambda error: isinstance(error, ServerLost), self.counts, attempts, timeout
        )
        self._sent = 0

    def _send(self, call, body):
        self.avoided.append(body.hints.avoid)
        self._sent += 1
        return self.answers[self._sent - 1]

    def begin(self):
        return asyncio.run(self.relay.begin(CALL, Body()))


def head(status=200, replica="r0"):
    return Head(status, {}, replica)


def test_a_lost_request_runs_elsewhere():
    played = Played(ServerLost(), ServerLost(), head())
    assert played.begin() == (head(), played.answers[2])
    assert (played.counts.requests, played.counts.retries, played.counts.failed) == (1, 2, 0)


def test_a_draining_replica_is_avoided():
    played = Played(head(503), head(replica="r1"))
    assert played.begin()[0].replica == "r1"
    assert played.avoided == [(), ("r0",)]


def test_the_last_answer_stands():
    assert Played(head(503), head(503), head(503)).begin()[0].status == 503
    played = Played(ServerLost(), ServerLost(), ServerLost())
    with pytest.raises(RelayFailed, match="3 replicas were lost") as error:
        played.begin()
    assert error.value.status == 503 and played.counts.failed == 1


@pytest.mark.parametrize("status", [200, 400, 404, 429, 500])
def test_other_answers_are_not_repeated(status):
    played = Played(head(status))
    assert played.begin()[0].status == status and played.counts.retries == 0


def test_an_error_of_ours_is_not_repeated():
    with pytest.raises(KeyError):
        Played(KeyError("a fault"), head()).begin()


def test_nothing_waits_for_ever():
    played = Played(None, timeout=0.05)
    with pytest.raises(RelayFailed) as error:
        played.begin()
    assert error.value.status == 504 and played.answers[0].cancelled and played.counts.failed == 1


def test_a_client_that_leaves_cancels():
    played = Played(None)

    async def leave():
        task = asyncio.create_task(played.relay.begin(CALL, Body()))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave())
    assert played.answers[0].cancelled
