"""Nobody reads the log or the output any longer: a server goes on, other commands end quietly."""

import fcntl
import os
import select
import signal
import subprocess

import pytest

from programs import find_program
from serving import ServedProcess, chat_body

SMALL_PIPE = 8192
REQUESTS = 60  # whose log lines do not fit into such a pipe


def options(folders):
    return ["--model", folders["model"], "--served-model-name", "tiny", "--dtype", "float32", "--threads", "1",
            "--max-model-len", "1024"]


def ask(server):
    status, text = server.request("POST", "/v1/chat/completions", chat_body("tiny", "Hi", max_tokens=3, stream=True),
                                  {"X-Request-Id": "x" * 120})
    assert status == 200 and text.endswith("data: [DONE]\n\n")


def test_serving_goes_on_without_readers(folders):
    server = ServedProcess(*options(folders), log_level="info", stderr=subprocess.PIPE)
    assert "listening" in server.process.stderr.readline()
    server.process.stderr.close()
    server.process.stdout.close()
    for _ in range(5):
        ask(server)
    assert server.process.poll() is None
    assert server.metric("valora:log_lines_lost_total") >= 5
    assert server.stop() == 0


def test_serving_goes_on_beside_a_reader_that_stands_still(folders):
    end, reader = os.pipe()[::-1]
    fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, SMALL_PIPE)
    server = ServedProcess(*options(folders), log_level="info", stderr=end)
    os.close(end)
    for _ in range(REQUESTS):
        ask(server)
    lost = server.metric("valora:log_lines_lost_total")
    assert 0 < lost < REQUESTS
    os.read(reader, 1 << 20)
    ask(server)
    server.wait_until(lambda: select.select([reader], [], [], 0)[0], "a line of the log")
    assert b"lines of the log were lost" in os.read(reader, 1 << 20)
    assert server.metric("valora:log_lines_lost_total") == lost
    for _ in range(REQUESTS):
        ask(server)
    assert server.stop() == 0  # with a full pipe
    os.close(reader)


@pytest.mark.parametrize("log_level", ["warning", "info"])
def test_commands_end_quietly_without_a_reader(folders, log_level):
    reader, end = os.pipe()
    os.close(reader)
    command = [find_program("valora"), "--log-level", log_level, "generate", "--model", folders["model"], "--prompt",
               "Hi", "--max-tokens", "2", "--threads", "1"]
    done = subprocess.run(list(map(str, command)), stdout=end, stderr=subprocess.PIPE, text=True, timeout=120)
    os.close(end)
    assert done.returncode == -signal.SIGPIPE, done.stderr
    assert "rror" not in done.stderr
