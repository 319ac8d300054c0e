"""Stalled requests: /health reports them, other requests continue, and SIGTERM ends the server."""

import json
import os
import shutil
import subprocess
import threading

import pytest

from serving import Server, chat_body

# File reads block while the file HANG exists, as on a lost network share.
HANGING_READS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

ssize_t pread(int fd, void* to, size_t bytes, off_t at) {
  while (access(getenv("HANG"), F_OK) == 0) usleep(10000);
  return ((ssize_t (*)(int, void*, size_t, off_t))dlsym(RTLD_NEXT, "pread"))(fd, to, bytes, at);
}
"""


class HangingServer(Server):
    """The adapter `lazy` is first read when a request needs it, and that read hangs."""

    def __init__(self, folders, root):
        (root / "hang.c").write_text(HANGING_READS)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", root / "hang.so", root / "hang.c", "-ldl"], check=True)
        shutil.copytree(folders["one"], root / "adapters" / "lazy")
        self.trigger = root / "trigger"
        super().__init__({"model": folders["model"]}, "--lora-dir", root / "adapters", "--stall-timeout", "1",
                         env=os.environ | {"LD_PRELOAD": str(root / "hang.so"), "HANG": str(self.trigger)})
        self.trigger.touch()

    def health(self):
        status, text = self.request("GET", "/health")
        return status, json.loads(text)["error"]["message"] if text else ""


class Client(threading.Thread):
    """A chat in the background."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.answer = server, None
        self.start()

    def run(self):
        self.answer = self.server.request("POST", "/v1/chat/completions", chat_body("lazy", "Hi"))


@pytest.fixture
def server(folders, tmp_path):
    made = HangingServer(folders, tmp_path)
    yield made
    made.trigger.unlink(missing_ok=True)
    made.stop()


def test_health_and_metrics_report_a_stall(server):
    assert server.health()[0] == 200
    client = Client(server)
    server.wait_until(lambda: server.health()[0] == 503, "a stall")
    _, why = server.health()
    assert "0 running, 1 waiting (1 for adapters to load" in why and "blocks are free" in why, why
    assert server.metric("valora:stalls_total") == 1
    server.chat("tiny", "Hi")  # needs no adapter
    server.wait_until(lambda: server.metric("valora:stalls_total") == 2, "a second stall")
    server.trigger.unlink()
    client.join(60)
    assert client.answer[0] == 200, client.answer
    server.wait_until(lambda: server.health()[0] == 200, "the end of the stall")
    assert server.stop() == 0


def test_sigterm_stops_a_server_with_a_stuck_thread(server):
    clients = [Client(server) for _ in range(3)]
    server.wait_until(lambda: server.metric("vllm:num_requests_waiting") == 3, "three waiting requests")
    assert server.stop() == 1
    for client in clients:
        client.join(20)
        status, text = client.answer
        assert status == 503 and "the request has stalled" in text, text
