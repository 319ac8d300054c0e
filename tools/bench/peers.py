#!/usr/bin/env python3
"""valora against vLLM's CPU build and llama.cpp's server, on one random 0.5 B Qwen2 with 8 adapters, in interleaved rounds.

    .venv/bin/python tools/bench/peers.py --rounds 3 --vllm http://127.0.0.1:8100 --llama path/to/llama-server

Without --vllm and --llama valora runs alone. docs/measurements/serving.md describes how to install and start the two. For llama.cpp,
tools/bench/gguf_files.py writes the same model and adapters as GGUF files. Greedy, 128 prompt tokens, tokens/s overall.
"""

import argparse
import json
import os
import random
import socket
import statistics
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

import checkpoints

ADAPTERS = 8
CASES = {"8 requests, 8 adapters": list(range(ADAPTERS)), "8 requests, one adapter": [0] * ADAPTERS,
         "8 requests, base": [None] * ADAPTERS, "one request, one adapter": [3], "one request, base": [None]}


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as response:
        return json.load(response)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class OpenAIServer:
    """vLLM: already running, with the base as `base` and the adapters as a0 … a7."""

    def __init__(self, url):
        self.url = url

    def ask(self, prompt, adapter, tokens):
        model = "base" if adapter is None else f"a{adapter}"
        body = {"model": model, "prompt": prompt, "max_tokens": tokens, "ignore_eos": True, "temperature": 0}
        answer = post(self.url + "/v1/completions", body)
        return answer["usage"]["completion_tokens"], answer["choices"][0]["text"]

    def close(self):
        pass


class ChildServer:
    def __init__(self, command, port):
        self.url = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def close(self):
        self.process.terminate()
        self.process.wait()


class Valora(ChildServer, OpenAIServer):
    def __init__(self, program, model, adapters, threads):
        port = free_port()
        modules = [f"a{i}={path}" for i, path in enumerate(adapters)]
        super().__init__([program, "--log-level", "warning", "serve", "--model", model, "--served-model-name", "base",
                          "--dtype", "bfloat16", "--port", str(port), "--threads", str(threads), "--max-model-len", "2048",
                          "--no-enable-prefix-caching", "--max-num-batched-tokens", "4096", "--lora-modules", *modules], port)


class LlamaCpp(ChildServer):
    """Loaded adapters slow down its base requests, so these are not measured."""

    def __init__(self, program, folder, threads):
        port = free_port()
        adapters = [option for i in range(ADAPTERS) for option in ("--lora", str(folder / f"a{i}.gguf"))]
        super().__init__([program, "-m", folder / "model-bf16.gguf", "--host", "127.0.0.1", "--port", str(port),
                          "-t", str(threads), "-tb", str(threads), "-np", str(ADAPTERS), "-c", "8192", "-fa", "on", "--no-warmup",
                          "--lora-init-without-apply", "-cram", "0", *adapters], port)

    def ask(self, prompt, adapter, tokens):
        answer = post(self.url + "/completion", {"prompt": prompt, "n_predict": tokens, "ignore_eos": True, "temperature": 0,
                                                 "cache_prompt": False, "lora": [{"id": adapter, "scale": 1.0}]})
        return answer["tokens_predicted"], answer["content"]


def wait_until_healthy(server):
    for _ in range(600):
        try:
            urllib.request.urlopen(server.url + "/health", timeout=2).close()
            return
        except OSError:
            time.sleep(0.5)
    raise SystemExit(f"no server at {server.url}")


def run(server, prompts, adapters, tokens):
    """(tokens/s, texts) of requests sent at once."""
    answers = [None] * len(adapters)

    def ask(i):
        answers[i] = server.ask(prompts[i], adapters[i], tokens)

    begin = time.perf_counter()
    threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(adapters))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(count for count, _ in answers) / (time.perf_counter() - begin), [text for _, text in answers]


def measure(servers, prompts, rounds, tokens):
    """{(case, server): tokens/s of each round}; a warm-up round is not counted."""
    rates = {}
    for round_ in range(rounds + 1):
        for case, adapters in CASES.items():
            texts = {}
            for name in random.sample(list(servers), len(servers)):
                if name == "llama.cpp" and None in adapters:
                    continue
                rate, texts[name] = run(servers[name], prompts, adapters, tokens)
                print(f"round {round_}  {case:<26}{name:<11}{rate:7.1f} tokens/s", flush=True)
                if round_:
                    rates.setdefault((case, name), []).append(rate)
            if any(text != texts["valora"] for text in texts.values()):
                print(f"round {round_}  {case}: the answers differ", flush=True)
    return rates


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/valora")
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    parser.add_argument("--vllm", help="URL of a running vLLM")
    parser.add_argument("--llama", help="llama.cpp's llama-server")
    parser.add_argument("--output", type=int, default=32, help="tokens")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    model, adapters = checkpoints.make(str(options.folder / "qwen2-0.5b"), False, ADAPTERS, 16)
    random.seed(1)
    prompts = [[random.randrange(256) for _ in range(128)] for _ in range(ADAPTERS)]
    servers = {"valora": Valora(options.program, model, adapters, options.threads)}
    try:
        if options.vllm:
            servers["vllm"] = OpenAIServer(options.vllm)
        if options.llama:
            servers["llama.cpp"] = LlamaCpp(options.llama, options.folder, options.threads)
        for server in servers.values():
            wait_until_healthy(server)
        rates = measure(servers, prompts, options.rounds, options.output)
    finally:
        for server in servers.values():
            server.close()
    for case in CASES:
        medians = {name: statistics.median(rates[case, name]) for name in servers if (case, name) in rates}
        print(f"{case:<26}" + "  ".join(f"{name} {median:.1f}" + ("" if name == "valora" else f" ({medians['valora'] / median:.2f}x)")
                                        for name, median in medians.items()))


if __name__ == "__main__":
    main()
