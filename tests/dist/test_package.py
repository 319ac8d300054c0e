"""python/valora: the module, with a program that stands in for valora."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
import valora

# Serves /ready, or ends with a line, as `valora serve` does.
STAND_IN = """#!{python}
import http.server, sys
if "--fail" in sys.argv:
    sys.exit("error: no such model")
class Handler(http.server.BaseHTTPRequestHandler):
    calls = 0
    def do_GET(self):
        Handler.calls += 1
        self.send_response(200 if Handler.calls > 2 else 503)
        self.end_headers()
    def log_message(self, *words):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print("info: listening on http://127.0.0.1:%d; /ready is 503 until" % server.server_port, " ".join(sys.argv[1:]), file=sys.stderr, flush=True)
server.serve_forever()
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "valora"
    path.write_text(STAND_IN.format(python=sys.executable))
    path.chmod(0o755)
    return path


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_server_lives_as_long_as_the_block(program):
    with valora.Server("model", adapters={"cats": pathlib.Path("a/b")}, program=program) as server:
        assert server.base_url.startswith("http://127.0.0.1:") and server.base_url.endswith("/v1")
        assert "serve --model model --port 0 --lora-modules cats=a/b" in server.log
        pid = server.pid
        assert alive(pid)
    assert not alive(pid)


def test_a_failure_shows_the_end_of_the_log(program):
    with pytest.raises(valora.ServerFailed, match=r"status 1:\nerror: no such model"):
        valora.Server("model", options=["--fail"], program=program).start()
    with pytest.raises(valora.ServerFailed, match="nowhere"):
        valora.Server("model", program="/nowhere/valora").start()


def test_a_server_ends_with_its_parent(program):
    code = f"import valora, time; s = valora.Server('m', program={str(program)!r}); s.start(); print(s.pid, flush=True); time.sleep(60)"
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True,
                              env=os.environ | {"PYTHONPATH": str(pathlib.Path(valora.__file__).parents[1])})
    pid = int(parent.stdout.readline())
    assert alive(pid)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    end = time.monotonic() + 10
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.02)
    assert not alive(pid)


def test_fuse_gives_the_manifest(tmp_path):
    program = tmp_path / "valora"
    program.write_text("#!/bin/sh\necho \"$@\"\n[ \"$2\" = --model ] && [ \"$3\" = good ]\n")
    program.chmod(0o755)
    assert valora.fuse("good", "tasks.yaml", "out", program=program) == pathlib.Path("out/manifest.json")
    with pytest.raises(valora.FuseFailed, match=r"status 1:\nfuse --model bad --tasks t --output o --x"):
        valora.fuse("bad", "t", "o", options=["--x"], program=program)
