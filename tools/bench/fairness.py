#!/usr/bin/env python3
"""Latency of one client's small requests while others send large ones.

One client sends short chats of one token, one after the other; eight others send, each as soon as the previous
answer arrives,
--load messages: conversations of 100,000 messages (rejected, but only after parsing and tokenizing)
--load text: one message of eight million characters
Prints the small requests' latencies with and without the other clients, in turn.

    .venv/bin/python tools/bench/fairness.py --load messages
"""

import argparse
import http.client
import json
import statistics
import threading
import time

from valora_server import Valora

HEADERS = {"Content-Type": "application/json"}
QUICK = json.dumps({"model": "base", "max_tokens": 1, "messages": [{"role": "user", "content": "hello"}]})


def load_of(kind):
    """(path, body) of the large requests."""
    if kind == "messages":
        messages = [{"role": "user" if i % 2 == 0 else "assistant", "content": f"message {i}"} for i in range(100_001)]
        return "/v1/chat/completions", json.dumps({"model": "base", "max_tokens": 1, "messages": messages})
    if kind == "text":
        content = "several words of a text that has no end, " * 200_000
    return "/v1/chat/completions", json.dumps({"model": "base", "max_tokens": 1,
                                               "messages": [{"role": "user", "content": content}]})


def ask(connection, path, body):
    connection.request("POST", path, body, HEADERS)
    response = connection.getresponse()
    response.read()
    return response.status


def connect(server):
    return http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=600)


def flood(server, path, body, stop, answered):
    connection = connect(server)
    while not stop.is_set():
        answered.append(ask(connection, path, body))


def latencies(server, seconds):
    connection, took, end = connect(server), [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(took) < 2:
        begin = time.perf_counter()
        status = ask(connection, "/v1/chat/completions", QUICK)
        if status != 200:
            raise SystemExit(f"a quick request was answered {status}")
        took.append(time.perf_counter() - begin)
    return took


def line(name, took):
    took = sorted(took)
    return (f"{name:8} median {statistics.median(took) * 1e3:8.1f} ms   p95 {took[int(len(took) * 0.95)] * 1e3:8.1f} ms   "
            f"most {took[-1] * 1e3:8.1f} ms   of {len(took)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/valora")
    parser.add_argument("--model", default="demo/model")
    parser.add_argument("--load", choices=["messages", "text"], default="messages")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5, help="of each half of a round")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    path, body = load_of(options.load)
    server = Valora(options.program, options.model, [], options.threads, ["--pool-memory", "256M"], step_tokens=None)
    try:
        alone, beside, answered = [], [], []
        for _ in range(options.rounds):
            alone += latencies(server, options.seconds)
            stop = threading.Event()
            others = [threading.Thread(target=flood, args=(server, path, body, stop, answered)) for _ in range(options.clients)]
            for other in others:
                other.start()
            time.sleep(1)
            beside += latencies(server, options.seconds)
            stop.set()
            for other in others:
                other.join()
        print(line("alone", alone))
        print(line("beside", beside))
        print(f"{len(answered)} large requests were answered {sorted(set(answered))}")
    finally:
        server.close()


if __name__ == "__main__":
    main()
