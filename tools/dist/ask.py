"""Starts `valora serve` with the demo and asks it: questions of all tasks, with pictures and clips."""

import base64
import json
import pathlib
import re
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any

KINDS = {".png": "image/png", ".mp4": "video/mp4"}
PATIENCE = 300.0  # seconds until /ready
LISTENING = re.compile(rb"listening on (http\S+?);")


def content_of(sample: dict[str, Any], demo: pathlib.Path) -> list[dict[str, Any]]:
    media = demo / sample["media"]
    data = base64.b64encode(media.read_bytes()).decode()
    kind = f"{sample['modality']}_url"
    url = {"url": f"data:{KINDS[media.suffix]};base64,{data}"}
    return [{"type": kind, kind: url}, {"type": "text", "text": sample["question"]}]


def questions(demo: pathlib.Path) -> list[tuple[str, dict[str, Any]]]:
    """(name, body) of a greeting and of the first sample of each task, asked of the task and of the base."""
    out: list[tuple[str, Any]] = [("greeting", {"model": "valora-demo", "messages": [{"role": "user", "content": "Hello"}]})]
    seen = set()
    for sample in json.loads((demo / "samples.json").read_text()):
        task = sample["task"] or "valora-demo"
        if task not in seen:
            seen.add(task)
            out.append((task, {"model": task, "messages": [{"role": "user", "content": content_of(sample, demo)}]}))
    return [(name, body | {"temperature": 0, "max_tokens": 64}) for name, body in out]


def post(url: str, body: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as response:
        answer: dict[str, Any] = json.load(response)
        return answer


def ask(url: str, demo: pathlib.Path) -> dict[str, str]:
    """Answers by name of the question."""
    answers = {}
    for name, body in questions(demo):
        answer = post(f"{url}/v1/chat/completions", body)
        answers[name] = answer["choices"][0]["message"]["content"]
    return answers


def serve_options(demo: pathlib.PurePath) -> list[str]:
    """demo: as the server sees it."""
    return ["serve", "--model", str(demo / "model"), "--served-model-name", "valora-demo", "--manifest", str(demo / "manifest.json"),
            "--port", "0", "--dtype", "float32", "--pool-memory", "256M"]


def wait_until_ready(server: "subprocess.Popen[bytes]", log: pathlib.Path, start: float) -> str:
    while time.monotonic() < start + PATIENCE:
        found = LISTENING.search(log.read_bytes())
        if server.poll() is not None:
            break
        try:
            if found:
                urllib.request.urlopen(f"{found[1].decode()}/ready", timeout=5).close()
                return found[1].decode()
        except (urllib.error.URLError, OSError):
            pass
        time.sleep(0.02)
    raise RuntimeError(f"the server did not become ready:\n{log.read_text(errors='replace')[-3000:]}")


def try_server(command: Sequence[str], demo: pathlib.Path, log: pathlib.Path) -> dict[str, Any]:
    """The answers of a server that `command` starts, and the seconds from its start to the first. demo: as we see it."""
    start = time.monotonic()
    with log.open("wb") as out:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
    try:
        url = wait_until_ready(server, log, start)
        post(f"{url}/v1/chat/completions", questions(demo)[0][1])
        first = time.monotonic() - start
        return {"seconds": first, "answers": ask(url, demo)}
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
