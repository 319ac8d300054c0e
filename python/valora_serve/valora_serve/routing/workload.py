"""Requests for the simulation: conversations with adapters of varying popularity, at the times of a trace."""

import csv
import dataclasses
import datetime
import itertools
import random
from collections.abc import Iterable

from ..protocol import Hints

BLOCK = 64  # tokens per link of the chain


@dataclasses.dataclass(frozen=True)
class Arrival:
    at: float
    prompt: int
    answer: int


@dataclasses.dataclass
class Request:
    key: str
    at: float
    answer: int
    hints: Hints
    after: tuple[tuple[int, int], ...]  # the chain including the answer


def read_azure(path: str, speed: float = 1.0, limit: int = 0) -> list[Arrival]:
    """Reads a table of Azure's LLM inference trace, sped up by `speed`."""
    arrivals: list[Arrival] = []
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            moment = datetime.datetime.fromisoformat(row["TIMESTAMP"][:26]).timestamp()
            arrivals.append(Arrival(moment, int(row["ContextTokens"]), int(row["GeneratedTokens"])))
            if len(arrivals) == limit:
                break
    first = arrivals[0].at
    return [dataclasses.replace(a, at=(a.at - first) / speed) for a in arrivals]


def synthetic(count: int, rate: float, seed: int = 1) -> list[Arrival]:
    """Poisson arrivals with lengths like those of Azure's conversations."""
    draw = random.Random(seed)
    arrivals, at = [], 0.0
    for _ in range(count):
        at += draw.expovariate(rate)
        prompt = min(4000, max(16, int(draw.lognormvariate(6.6, 0.9))))
        arrivals.append(Arrival(at, prompt, min(800, max(4, int(draw.lognormvariate(4.9, 0.8))))))
    return arrivals


class Conversation:
    def __init__(self, adapter: str, chain: list[tuple[int, int]]) -> None:
        self.adapter = adapter
        self.chain = chain

    @property
    def tokens(self) -> int:
        return self.chain[-1][1] if self.chain else 0


def popularity(adapters: int, exponent: float) -> list[float]:
    return list(itertools.accumulate(1 / (i + 1) ** exponent for i in range(adapters)))


def conversations(
    arrivals: Iterable[Arrival],
    adapters: int = 2000,
    exponent: float = 1.0,
    again: float = 0.6,
    seed: int = 1,
) -> list[Request]:
    """Each arrival either starts a conversation with an adapter drawn from a power law or, with probability
    `again`, continues an open one that is short enough. All conversations of an adapter begin with its
    instructions."""
    draw = random.Random(seed)
    sums = popularity(adapters, exponent)
    links = itertools.count(1)
    instructions: dict[str, list[tuple[int, int]]] = {}
    opened: list[Conversation] = []

    def grown(chain: list[tuple[int, int]], tokens: int) -> list[tuple[int, int]]:
        chain = list(chain)
        so_far = chain[-1][1] if chain else 0
        while so_far < tokens:
            so_far = min(tokens, so_far + BLOCK)
            chain.append((next(links), so_far))
        return chain

    requests = []
    for number, arrival in enumerate(arrivals):
        fitting = (
            [c for c in opened[-64:] if c.tokens < arrival.prompt] if draw.random() < again else []
        )
        if fitting:
            conversation = draw.choice(fitting)
            opened.remove(conversation)
        else:
            adapter = f"a{draw.choices(range(adapters), cum_weights=sums)[0]}"
            common = instructions.setdefault(adapter, grown([], BLOCK * draw.randint(1, 8)))
            conversation = Conversation(
                adapter, [link for link in common if link[1] < arrival.prompt]
            )
        chain = grown(conversation.chain, arrival.prompt)
        conversation.chain = grown(chain, arrival.prompt + arrival.answer)
        opened.append(conversation)
        hints = Hints(conversation.adapter, (), tuple(chain), (), arrival.prompt, arrival.answer)
        requests.append(
            Request(str(number), arrival.at, arrival.answer, hints, tuple(conversation.chain))
        )
    return requests
