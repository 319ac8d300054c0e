"""Concurrent clients that check every answer against the single server's."""

import asyncio
import collections
import json
import threading

import httpx

from clusters import URL, chat

CLIENTS = 64
SECONDS = 90  # an answer that takes longer counts as a hang
MODELS = ("valora-demo", "mood", "race", "traffic", "street", "catalogue")


def bodies():
    """Requests with different adapters and lengths, long enough to be in progress when something
    ends."""
    texts = ("Hello", "What is it?", "Say more about this picture.")
    return [chat(model, text, max_tokens=64, ignore_eos=True) for model in MODELS for text in texts]


def text_of(choices):
    return choices[0]["message"]["content"]


def expected(single):
    """The expected text for each body."""
    answers = {}
    for body in bodies():
        answer = single.post("/v1/chat/completions", json=body)
        answers[json.dumps(body)] = text_of(answer.json()["choices"])
    return answers


class Load:
    """Clients in a thread, half of them streaming, that send requests until the block ends."""

    def __init__(self, right, clients=CLIENTS):
        self._right = right
        self._clients = clients
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self._stopping = False
        self.counts = collections.Counter()
        self.answers = [0] * clients  # per client
        self.wrong = []

    @property
    def answered(self):
        return self.counts["whole"] + self.counts["streams"] + self.counts["broken streams"]

    @property
    def alive(self):
        return self._thread.is_alive()

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *_):
        self._stopping = True
        self._thread.join(SECONDS + 30)
        assert not self.alive, "clients hang"

    async def _run(self):
        limits = httpx.Limits(max_connections=None)
        async with (
            httpx.AsyncClient(base_url=URL, timeout=SECONDS, limits=limits) as client,
            asyncio.TaskGroup() as group,
        ):
            for i in range(self._clients):
                group.create_task(self._client(client, i))

    async def _client(self, client, i):
        table = bodies()
        turn = i
        while not self._stopping:
            body = table[turn % len(table)]
            turn += 7
            try:
                await (self._stream if i % 2 else self._whole)(client, body)
            except (httpx.HTTPError, ValueError, LookupError) as error:
                self.wrong.append(f"{type(error).__name__}: {error}")
            self.answers[i] += 1

    async def _whole(self, client, body):
        answer = await client.post("/v1/chat/completions", json=body)
        if answer.status_code != 200:
            self.wrong.append(f"{answer.status_code} {answer.text}")
        elif text_of(answer.json()["choices"]) != self._right[json.dumps(body)]:
            self.wrong.append(f"a wrong answer: {answer.text}")
        self.counts["whole"] += 1

    async def _stream(self, client, body):
        right, text, error = self._right[json.dumps(body)], "", None
        async with client.stream(
            "POST", "/v1/chat/completions", json=body | {"stream": True}
        ) as answer:
            if answer.status_code != 200:
                self.wrong.append(f"{answer.status_code} {await answer.aread()}")
            lines = [line.removeprefix("data: ") async for line in answer.aiter_lines() if line]
        if lines[-1:] != ["[DONE]"]:
            self.wrong.append(f"a stream without an end: {lines[-2:]}")
        for event in map(json.loads, lines[:-1]):
            error = event.get("error", error)
            text += event["choices"][0]["delta"].get("content") or "" if "choices" in event else ""
        if error:
            self.counts["broken streams"] += 1
            if error["code"] != 503 or "lost" not in error["message"] or not right.startswith(text):
                self.wrong.append(f"a stream that broke otherwise: {error} after {text!r}")
        else:
            self.counts["streams"] += 1
            if text != right:
                self.wrong.append(f"a wrong stream: {text!r} instead of {right!r}")
