"""The child process and how it ends, without Ray."""

import os
import pathlib
import signal
import subprocess
import sys
import threading

import httpx
import pytest

from clusters import demo_settings, wait_until
from valora_serve.child import Child, ChildFailed
from valora_serve.settings import command, memory_options


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_child_serves_and_stops():
    lines = []
    ended = threading.Event()
    child = Child(command(demo_settings(), 1), lines.append, lambda code: ended.set())
    url = child.start(60)
    assert httpx.get(f"{url}/health").status_code == 200
    assert child.alive
    child.stop(20)
    assert not child.alive
    assert any("serving" in line for line in lines)
    assert not ended.is_set()  # only set when the child ends unexpectedly


def test_exit_of_the_child_is_reported():
    codes = []
    ended = threading.Event()
    child = Child(
        command(demo_settings(), 1),
        lambda line: None,
        lambda code: (codes.append(code), ended.set()),
    )
    child.start(60)
    os.kill(child.pid, signal.SIGKILL)
    assert ended.wait(20)
    assert codes == [-signal.SIGKILL] and not child.alive


def test_failed_start_raises_with_the_programs_output():
    with pytest.raises(ChildFailed, match="no-such-folder"):
        Child(command(demo_settings(model="/no-such-folder"), 1), lambda line: None).start(60)
    with pytest.raises(ChildFailed, match="no-such-program"):
        Child(["/no-such-program"], lambda line: None).start(60)


def test_hanging_program_is_killed():
    child = Child(["sleep", "1000"], lambda line: None)
    with pytest.raises(ChildFailed, match="did not serve within"):
        child.start(0.5)
    assert not is_running(child.pid)


def test_child_dies_with_its_parent():
    """The parent is killed while one of its threads keeps the child."""
    code = (
        "import time\nfrom valora_serve.child import Child\nchild = Child(['sleep', '1000'], print)\n"
        "child._keeper.start()\nwhile not child.pid: time.sleep(0.01)\nprint(child.pid, flush=True)\ntime.sleep(1000)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as parent:
        pid = int(parent.stdout.readline())
        wait_until(
            lambda: pathlib.Path(f"/proc/{pid}/cmdline").read_text().startswith("sleep"),
            "the program runs",
        )
        parent.kill()
    wait_until(lambda: not is_running(pid), "the child has ended", 20)


def test_memory_is_divided_among_replicas():
    options = memory_options(4 * 2**30, 2**30)
    sizes = dict(zip(options[::2], map(int, options[1::2])))
    assert sum(sizes.values()) + 2 * 2**30 + 256 * 2**20 == 4 * 2**30
    assert sizes["--pool-memory"] >= 2**30
    with pytest.raises(ValueError, match="too little"):
        memory_options(2 * 2**30, 2**30)
