#!/usr/bin/env python3
"""The cost of clients that stream /v1/stats: the share of a core per client, idle and under load.

    .venv/bin/python tools/bench/stats_cost.py --program build/valora

Intervals with and without clients alternate. The cost is the CPU time of all server threads except the one that
computes, counted by the kernel in nanoseconds, so other programs on the machine have little effect. Clients with the
same rights share the text of an event, so a single one is the most expensive.
"""

import argparse
import http.client
import json
import pathlib
import statistics
import threading
import time
import urllib.parse

from valora_server import Served

DEMO = pathlib.Path(__file__).resolve().parents[2] / "demo"


def ask(connection):
    body = json.dumps(dict(model="digits", head="", max_tokens=200, ignore_eos=True, messages=[dict(role="user", content="Write.")]))
    connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
    connection.getresponse().read()


class Server(Served):
    def __init__(self, program):
        super().__init__(program, "--model", DEMO / "model", "--served-model-name", "demo", "--manifest", DEMO / "manifest.json",
                         "--threads", 1, "--pool-memory", "64M")
        self.port = urllib.parse.urlsplit(self.url).port
        before = self.cpu_seconds()
        ask(self.connect())
        after = self.cpu_seconds()
        self.computing = max(after, key=lambda name: after[name] - before.get(name, 0))

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def cpu_seconds(self):
        """CPU seconds by thread."""
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task")
        return {task.name: int((task / "schedstat").read_text().split()[0]) / 1e9 for task in tasks.iterdir()}

    def others(self):
        """CPU seconds of all threads except the one that computes."""
        return sum(seconds for name, seconds in self.cpu_seconds().items() if name != self.computing)


class Clients:
    """Reads the events in one thread, so that this program does not use the CPUs that it measures."""

    def __init__(self, server, count):
        self.connections = [server.connect() for _ in range(count)]
        self.bytes = self.events = 0
        self.stopping = False
        for connection in self.connections:
            connection.request("GET", "/v1/stats", headers={"Accept": "text/event-stream"})
        self.answers = [connection.getresponse() for connection in self.connections]
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        while not self.stopping:
            for answer in self.answers:
                line = answer.readline()
                self.bytes += len(line)
                self.events += line.startswith(b"data: ")

    def stop(self):
        self.stopping = True
        self.thread.join()
        for connection in self.connections:
            connection.close()


def keep_busy(server, stop):
    connection = server.connect()
    while not stop.is_set():
        ask(connection)


def used(server, seconds):
    """CPU seconds per second."""
    before, began = server.others(), time.monotonic()
    time.sleep(seconds)
    return (server.others() - before) / (time.monotonic() - began)


def measure(server, clients, rounds, seconds):
    shares, sizes = [], []
    for _ in range(rounds):
        alone = used(server, seconds)
        readers = Clients(server, clients)
        time.sleep(1.5)  # skips the first events
        shares.append((used(server, seconds) - alone) / clients)
        readers.stop()
        sizes.append(readers.bytes / readers.events)
    return statistics.median(shares), max(shares), statistics.median(sizes)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/valora")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8)
    arguments = parser.parse_args()
    server = Server(arguments.program)
    stop = threading.Event()
    load = threading.Thread(target=keep_busy, args=(server, stop))
    try:
        for state in ("idle", "under load"):
            if state != "idle":
                load.start()
            for clients in arguments.clients:
                median, most, size = measure(server, clients, arguments.rounds, arguments.seconds)
                print(f"{state}, {clients} clients: {100 * median:.3f} % of a core for each (at most {100 * most:.3f} %), {size / 1024:.1f} KiB an event")
    finally:
        stop.set()
        if load.is_alive():
            load.join()
        server.close()


if __name__ == "__main__":
    main()
