"""The programs under test: engine_probe, driven over pipes, and `valora generate`.

They are looked up in $VALORA_BIN_DIR (default: build) and its subfolders, and run on $VALORA_DEVICE (cpu or cuda;
default: cpu).
"""

import json
import os
import pathlib
import subprocess
import time

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
DEVICE = os.environ.get("VALORA_DEVICE", "cpu")


def find_program(name):
    """The newest program with this name, because older builds may have left others."""
    root = pathlib.Path(os.environ.get("VALORA_BIN_DIR", REPOSITORY / "build"))
    found = [p for p in root.rglob(name) if p.is_file() and os.access(p, os.X_OK) and "emulated_gpu" not in p.relative_to(root).parts]
    if found:
        return str(max(found, key=lambda p: p.stat().st_mtime))
    if "VALORA_BIN_DIR" in os.environ:
        pytest.fail(f"{name} is not under {root}")
    pytest.skip(f"{name} is not built")


# Error messages for limitations on GPUs that the README's status table lists.
NOT_ON_GPUS = ("each rank has a GPU, and",)


class EngineError(Exception):
    """An error from the engine; str() returns its message."""


class Engine:
    """One engine in a separate process. Options are those in engine_probe's first line.

    One thread by default: models this small do not benefit from more, and slow down on a busy machine.
    """

    def __init__(self, model, environment=None, **options):
        options = {"model": str(model), "dtype": "float32", "threads": 1, "pool_memory": 64 << 20,
                   "max_logprobs": 4096, "device": DEVICE} | options
        self.process = subprocess.Popen([find_program("engine_probe")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, env=os.environ | (environment or {}))
        try:
            self.model = self.ask(options)["model"]
        except BaseException:
            self.close()
            raise

    def ask(self, command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "engine_probe ended"
        answer = json.loads(line)
        if "error" in answer:
            message = answer["error"]["message"]
            if DEVICE == "cuda" and any(words in message for words in NOT_ON_GPUS):
                pytest.skip(message)
            raise EngineError(message)
        return answer

    def load(self, name, path, replace=False):
        return self.ask({"op": "load", "name": name, "path": str(path), "replace": replace})

    def unload(self, name):
        return self.ask({"op": "unload", "name": name})

    def submit(self, requests):
        self.ask({"op": "submit", "requests": list(requests)})

    def collect(self):
        """The answers to all submitted requests, in order; for a failed request, an error."""
        return self.ask({"op": "collect"})["answers"]

    def batch(self, requests):
        self.submit(requests)
        return self.collect()

    def one(self, request):
        answer = self.batch([request])[0]
        if "error" in answer:
            raise EngineError(answer["error"]["message"])
        return answer

    def stats(self):
        return self.ask({"op": "stats"})

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def wait_until_idle(engine):
    """Waits until no request is running and no KV memory is in use. The counters change shortly after the last
    answer."""
    deadline = time.monotonic() + 20
    while True:
        stats = engine.stats()
        if (stats["running"], stats["waiting"], stats["kv_usage"]) == (0, 0, 0):
            return
        assert time.monotonic() < deadline, stats


def token_ids(answer, choice=0):
    return [token["id"] for token in answer["choices"][choice]["tokens"]]


def generate(model, *arguments, dtype="float32", check=True):
    """Runs `valora generate --json`; returns its answer, or the finished process if `check` is
    off."""
    command = [find_program("valora"), "generate", "--model", str(model), "--dtype", dtype, "--json",
               "--threads", "1", *([] if "--device" in arguments else ["--device", DEVICE]),
               *([] if "--pool-memory" in arguments else ["--pool-memory", str(64 << 20)]),
               *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if not check:
        return done
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def inspect(folders, *options):
    """The reports of `valora inspect` on these folders. A single process, because starting takes
    half a second."""
    command = [find_program("valora"), "inspect", *map(str, folders), *map(str, options), "--json"]
    text = subprocess.run(command, capture_output=True, text=True, timeout=120).stdout
    reports, at = [], 0
    while text[at:].strip():
        report, length = json.JSONDecoder().raw_decode(text[at:].lstrip())
        at += len(text[at:]) - len(text[at:].lstrip()) + length
        reports.append(report)
    return reports
