#!/usr/bin/env python3
"""Resident memory of `valora serve` while small requests ask for large answers.

Several clients each ask for 128 choices with 20 log probabilities per token, as one answer. Prints resident memory
before the requests and at its peak, and how many answers were complete (200) or refused (503).

    .venv/bin/python tools/bench/answer_memory.py --clients 12
"""

import argparse
import collections
import http.client
import json
import threading
import time

from valora_server import Valora


def ask(server, body, answered):
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=1200)
    connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    while response.read(1 << 20):
        pass
    answered[response.status] += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/valora")
    parser.add_argument("--model", default="demo/model")
    parser.add_argument("--clients", type=int, default=12)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    body = json.dumps({"model": "base", "prompt": "a b c", "n": 128, "logprobs": 20, "temperature": 1, "ignore_eos": True,
                       "max_tokens": options.tokens})
    server = Valora(options.program, options.model, [], options.threads, ["--pool-memory", "512M", "--max-waiting", "100000"],
                    step_tokens=None)
    answered = collections.Counter()
    try:
        before = most = server.memory()
        clients = [threading.Thread(target=ask, args=(server, body, answered)) for _ in range(options.clients)]
        for client in clients:
            client.start()
        while any(client.is_alive() for client in clients):
            most = max(most, server.memory())
            time.sleep(0.05)
        print(f"before {before:.0f} MiB, most {most:.0f} MiB; answers by status: {dict(answered)}")
    finally:
        server.close()


if __name__ == "__main__":
    main()
