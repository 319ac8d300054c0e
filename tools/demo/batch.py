"""Sends all samples as one batch, each on its own connection, and counts the server's engine steps."""

import contextlib
import json
import re
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

TIMEOUT = 300


@dataclass
class Answer:
    sample: dict
    text: str = ""
    tokens: int = 0  # generated
    error: str | None = None
    seconds: float = 0.0


@dataclass
class Outcome:
    answers: list
    seconds: float
    steps: int  # engine steps for the whole batch


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        text = error.read().decode(errors="replace")
        with contextlib.suppress(ValueError, KeyError, TypeError):
            text = json.loads(text)["error"]["message"]
        raise RuntimeError(f"HTTP {error.code}: {text}") from error


def messages(sample, demo):
    kind = f"{sample['modality']}_url"
    media = {"type": kind, kind: {"url": (demo / sample["media"]).as_uri()}}
    return [{"role": "user", "content": [media, {"type": "text", "text": sample["question"]}]}]


def ask(url, base, demo, sample):
    """Returns the text or label, and its number of tokens. A task is served under its own model name,
    whichever adapter holds it."""
    body = {"model": sample["task"] if sample["adapter"] else base, "messages": messages(sample, demo)}
    if sample["kind"] == "classify":
        return post(f"{url}/classify", body | {"head": sample["head"]})["data"][0]["label"], 1
    # "head": "" asks for text even if the adapter has a head.
    answer = post(f"{url}/v1/chat/completions", body | {"temperature": 0, "max_tokens": 128, "head": ""})
    return answer["choices"][0]["message"]["content"], answer["usage"]["completion_tokens"]


def engine_steps(url):
    with urllib.request.urlopen(f"{url}/metrics", timeout=TIMEOUT) as response:
        found = re.search(r"^valora:engine_steps_total\{[^}]*\} (\S+)", response.read().decode(), re.M)
    return int(float(found[1])) if found else 0


def ask_all(url, base, demo, samples):
    gate = threading.Barrier(len(samples) + 1)

    def one(sample):
        answer = Answer(sample)
        gate.wait()
        started = time.monotonic()
        try:
            answer.text, answer.tokens = ask(url, base, demo, sample)
        except (RuntimeError, OSError, ValueError, KeyError, IndexError) as error:
            answer.error = str(error) or type(error).__name__
        answer.seconds = time.monotonic() - started
        return answer

    before = engine_steps(url)
    with ThreadPoolExecutor(len(samples)) as pool:
        futures = [pool.submit(one, sample) for sample in samples]
        gate.wait()
        started = time.monotonic()
        answers = [future.result() for future in futures]
        seconds = time.monotonic() - started
    time.sleep(0.1)  # a step is counted shortly after its answers are sent
    return Outcome(answers, seconds, engine_steps(url) - before)
