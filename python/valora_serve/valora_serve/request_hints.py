"""Extracts what the router needs from a request's body: adapter, prefix, pictures, lengths.

The prefix is a chain of digests, each of which covers the prompt from its beginning, so two requests share a prefix as
long as their chains agree. Token counts in the chain are estimates; only replicas have the tokenizer.
"""

import dataclasses
import hashlib
import json
from typing import Any

from .protocol import Hints

CHARACTERS_PER_TOKEN = 4
MEDIA_TOKENS = 256
BLOCK, MANY_BLOCKS, LARGE_BLOCK = 512, 64, 4096  # characters; large blocks after many small ones
DEFAULT_ANSWER = 128
MEDIA_KEYS = ("image_url", "video_url", "image", "video")


@dataclasses.dataclass
class Body:
    hints: Hints = dataclasses.field(default_factory=Hints)

    @property
    def stream(self) -> bool:
        return self.hints.streams


class Chain:
    def __init__(self, seed: str) -> None:
        self._digest = b""
        self._blocks = 0
        self.tokens = 0
        self.links: list[tuple[int, int]] = []
        self.media: list[int] = []
        self._add(seed.encode(), 0)
        self.links.clear()  # all requests of an adapter share the seed

    def _add(self, content: bytes, tokens: int) -> None:
        self._digest = hashlib.blake2b(self._digest + content, digest_size=8).digest()
        self.tokens += tokens
        self.links.append((int.from_bytes(self._digest, "little"), self.tokens))

    def text(self, text: str) -> None:
        at = 0
        while at < len(text):
            size = BLOCK if self._blocks < MANY_BLOCKS else LARGE_BLOCK
            piece = text[at : at + size]
            self._add(piece.encode(errors="replace"), max(1, len(piece) // CHARACTERS_PER_TOKEN))
            self._blocks += 1
            at += size

    def numbers(self, tokens: list[int]) -> None:
        for at in range(0, len(tokens), BLOCK // CHARACTERS_PER_TOKEN):
            piece = tokens[at : at + BLOCK // CHARACTERS_PER_TOKEN]
            self._add(json.dumps(piece).encode(), len(piece))

    def medium(self, source: str) -> None:
        digest = hashlib.blake2b(source.encode(errors="replace"), digest_size=8).digest()
        self.media.append(int.from_bytes(digest, "little"))
        self._add(digest, MEDIA_TOKENS)

    def message(self, message: Any) -> None:
        if not isinstance(message, dict):
            return
        self._add(str(message.get("role")).encode(), 4)
        content = message.get("content")
        for part in content if isinstance(content, list) else [content]:
            self.part(part)

    def part(self, part: Any) -> None:
        if isinstance(part, str):
            self.text(part)
        elif isinstance(part, dict):
            for key in MEDIA_KEYS:
                value = part.get(key)
                source = value.get("url") if isinstance(value, dict) else value
                if source:
                    self.medium(source if isinstance(source, str) else json.dumps(source))
            if isinstance(part.get("text"), str):
                self.text(part["text"])


def adapters_of(body: dict[str, Any]) -> tuple[str, ...]:
    """Names in `lora` and `lora_path`: strings, or objects with a name."""
    named = body.get("lora")
    entries = [*(named if isinstance(named, list) else [named]), body.get("lora_path")]
    names = [entry.get("name") if isinstance(entry, dict) else entry for entry in entries]
    return tuple(name for name in names if isinstance(name, str) and name)


def conversation(body: dict[str, Any]) -> list[Any]:
    """The messages of a chat, or the items of a response's input."""
    messages = body.get("messages")
    if isinstance(messages, list):
        return messages
    items = body.get("input")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        return []
    return [{"role": "system", "content": body.get("instructions")}, *items]


def first_prompt(body: dict[str, Any]) -> Any:
    prompt = body.get("prompt", body.get("input"))
    if isinstance(prompt, list) and prompt and not isinstance(prompt[0], int):
        return prompt[0]
    return prompt


def number(value: Any, otherwise: int) -> int:
    return (
        value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else otherwise
    )


def read_body(path: str, content: bytes) -> Body:
    """For an invalid body, returns no hints: a replica reports what is wrong with it."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return Body()
    if not isinstance(body, dict):
        return Body()
    named = body.get("model")
    model = named if isinstance(named, str) else ""
    chain = Chain(
        json.dumps([model, body.get("lora"), body.get("lora_path"), body.get("cache_salt")])
    )
    for message in conversation(body):
        chain.message(message)
    prompt = first_prompt(body)
    if isinstance(prompt, str):
        chain.text(prompt)
    elif isinstance(prompt, list) and all(isinstance(token, int) for token in prompt):
        chain.numbers(prompt)
    limits = ["max_completion_tokens", "max_output_tokens", "max_tokens"]
    answer = next((body[key] for key in limits if number(body.get(key), 0)), DEFAULT_ANSWER)
    classifies = path.endswith(("classify", "embeddings"))
    hints = Hints(
        model,
        adapters_of(body),
        tuple(chain.links),
        tuple(chain.media),
        chain.tokens,
        1 if classifies else answer,
        streams=bool(body.get("stream")) and not classifies,
    )
    return Body(hints)
