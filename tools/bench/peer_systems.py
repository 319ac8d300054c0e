"""The systems of tools/bench/peers.py behind one interface: the cases that each serves, and the time that each takes."""

import json
import os
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

from valora_server import at_once

TIMEOUT = 600  # seconds


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
        return json.load(response)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class HttpPeer:
    """A server that is sent each request on its own connection. `column`: the heading under which its rates are reported."""

    def __init__(self, name, url, command=None):
        self.name, self.column, self.url = name, name, url
        self.process = command and subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def serves(self, adapters):
        return True

    def run(self, prompts, adapters, tokens):
        """Sends all requests at once. Returns (seconds, tokens generated)."""
        counts = [0] * len(prompts)

        def ask(i):
            counts[i] = self.ask(prompts[i], adapters[i], tokens)

        begin = time.perf_counter()
        at_once(ask, len(prompts))
        return time.perf_counter() - begin, sum(counts)

    def wait_until_ready(self):
        for _ in range(TIMEOUT * 2):
            if self.process and self.process.poll() is not None:
                raise SystemExit(f"{self.name} stopped with status {self.process.returncode}")
            try:
                urllib.request.urlopen(self.url + "/health", timeout=2).close()
                return
            except OSError:
                time.sleep(0.5)
        raise SystemExit(f"no server at {self.url}")

    def close(self):
        if self.process:
            self.process.terminate()
            self.process.wait()


class Vllm(HttpPeer):
    """A server with vLLM's interface: the base model is `base`, the adapters are a0 … a7."""

    def ask(self, prompt, adapter, tokens):
        model = "base" if adapter is None else f"a{adapter}"
        body = {"model": model, "prompt": prompt, "max_tokens": tokens, "ignore_eos": True, "temperature": 0}
        return post(self.url + "/v1/completions", body)["usage"]["completion_tokens"]


class Valora(Vllm):
    def __init__(self, name, program, model, adapters, threads, more):
        port = free_port()
        modules = [f"a{i}={path}" for i, path in enumerate(adapters)]
        super().__init__(name, f"http://127.0.0.1:{port}",
                         [program, "--log-level", "warning", "serve", "--model", model, "--served-model-name", "base",
                          "--dtype", "bfloat16", "--port", str(port), "--threads", str(threads), "--max-model-len", "2048",
                          "--no-enable-prefix-caching", "--max-num-batched-tokens", "4096", *more, "--lora-modules", *modules])


class LlamaCpp(HttpPeer):
    """llama.cpp or one of its descendants. Loaded adapters slow down its base requests, so a separate server without adapters
    answers those."""

    def __init__(self, kind, program, folder, threads, adapted, adapters, name="llama.cpp", more=("-fa", "on")):
        port, self.adapted = free_port(), adapted
        files = ",".join(str(folder / f"a{i}.gguf") for i in range(adapters))
        super().__init__(f"{name} {kind}{' adapted' if adapted else ''}", f"http://127.0.0.1:{port}",
                         [program, "-m", folder / f"model-{kind}.gguf", "--host", "127.0.0.1", "--port", str(port),
                          "-t", str(threads), "-tb", str(threads), "-np", str(adapters), "-c", "8192", "--no-warmup",
                          "-cram", "0", *more, *(["--lora-init-without-apply", "--lora", files] if adapted else [])])
        self.column = f"{name} {kind}"

    def serves(self, adapters):
        return (adapters[0] is not None) == self.adapted

    def ask(self, prompt, adapter, tokens):
        body = {"prompt": prompt, "n_predict": tokens, "ignore_eos": True, "temperature": 0, "cache_prompt": False}
        if adapter is not None:
            body["lora"] = [{"id": adapter, "scale": 1.0}]
        return post(self.url + "/completion", body)["tokens_predicted"]


class PythonPeer:
    """A system run by a Python script that reads one case per line from stdin and answers [seconds, tokens]. Base model only."""

    def __init__(self, name, python, script, arguments, environment=None):
        self.name = self.column = name
        self.process = subprocess.Popen([python, Path(__file__).parent / script, *arguments], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                        env={**os.environ, **(environment or {})})

    def serves(self, adapters):
        return adapters[0] is None

    def _answer(self):
        for line in self.process.stdout:
            if line.startswith("ANSWER "):
                return json.loads(line.removeprefix("ANSWER "))
        raise SystemExit(f"{self.name} stopped with status {self.process.wait()}")

    def wait_until_ready(self):
        self._answer()

    def run(self, prompts, adapters, tokens):
        self.process.stdin.write(json.dumps({"prompts": prompts, "tokens": tokens}) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait()
