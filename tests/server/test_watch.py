"""`valora watch` in front of a server of the demo."""

import json
import os
import re
import signal
import subprocess
import time

import pytest
from test_streams import REPOSITORY, SAMPLES, USERS, Camera, StreamServer

from programs import find_program
from serving import ServedProcess


class Watch:
    """A running `valora watch`; its lines are read as they come."""

    def __init__(self, server, *options):
        self.process = subprocess.Popen([find_program("valora"), "watch", "--server", server if isinstance(server, str) else server.url,
                                         *map(str, options)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def lines(self, count):
        return [self.process.stdout.readline().rstrip("\n") for _ in range(count)]

    def end(self, signals=(signal.SIGINT,)):
        """(exit status, the rest of stdout, stderr)"""
        for one in signals:
            self.process.send_signal(one)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err


def streams(server, key=None):
    return server.ask("GET", "/v1/streams", key=key)[1]["data"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = StreamServer(tmp_path_factory.mktemp("watch") / "kept")
    yield server
    assert server.stop() == 0


def test_events_of_a_camera_are_lines_until_ctrl_c_which_deletes_the_stream(server):
    camera = Camera()
    watch = Watch(server, camera.url + "/cam", "--skills", "digits,defects", "--fps", "20", "--every", "0.05", "--max-tokens", "4",
                  "--prompt", "What is it?", "--name", "door")
    lines = watch.lines(4)
    assert re.fullmatch(r"\d\d:\d\d:\d\d state running", lines[0])
    for line in lines[1:]:
        assert re.fullmatch(r"\d\d:\d\d:\d\d answers frame \d+: (digits: .*; defects: .*|defects: .*; digits: .*)", line), line
    described = streams(server)
    assert len(described) == 1 and described[0]["name"] == "door" and described[0]["fps"] == 20 and described[0]["max_tokens"] == 4
    assert described[0]["skills"] == [{"model": name, "question": "What is it?", "every": 0.05} for name in ("digits", "defects")]
    status, _, err = watch.end()
    assert status == 0 and described[0]["id"] in err
    assert streams(server) == []
    camera.shutdown()


def test_a_file_is_watched_to_its_end_as_json(server):
    watch = Watch(server, os.path.relpath(SAMPLES / "clip-1.mp4"), "--skills", "actions", "--json")
    status, out, err = watch.end(())
    assert status == 0, err
    events = [json.loads(line) for line in out.splitlines()]
    assert [e["id"] for e in events] == list(range(1, len(events) + 1))
    assert events[-1]["state"] == "ended" and "content" in events[1]["answers"]["actions"]
    assert streams(server) == []


def test_a_stream_that_is_there_is_watched_and_stays(server):
    stream = server.begin("push", ["digits"])
    watch = Watch(server, "--stream", stream.rsplit("/", 1)[1], "--json")
    assert "is waiting" in watch.process.stderr.readline()
    # The watcher may listen only after the first frames.
    for _ in range(20):
        server.push(stream, "digits-1.png")
    events = [json.loads(line) for line in watch.lines(2)]
    assert events[-1]["stream"] == stream.rsplit("/", 1)[1]
    server.ask("DELETE", stream)
    status, _, err = watch.end(())
    assert status == 0 and "was deleted" in err


def test_keep_leaves_the_stream(server):
    camera = Camera()
    watch = Watch(server, camera.url, "--skills", "digits", "--keep")
    watch.lines(2)
    assert watch.end((signal.SIGTERM,))[0] == 0
    (stream,) = streams(server)
    assert server.ask("DELETE", "/v1/streams/" + stream["id"])[0] == 200
    camera.shutdown()


def test_a_reader_that_leaves_ends_it_as_ctrl_c_does(server):
    camera = Camera()
    watch = Watch(server, camera.url, "--skills", "digits", "--fps", "20")
    watch.lines(1)
    watch.process.stdout.close()
    watch.process.stderr.read()
    assert watch.process.wait(30) == 0
    assert streams(server) == []
    camera.shutdown()


def test_a_source_that_cannot_work_is_said(server):
    status, out, _ = Watch(server, "file:///etc/passwd", "--skills", "digits").end(())
    assert status == 1 and "failed" in out
    assert streams(server) == []


@pytest.mark.parametrize("options, said", [
    ((), "give a source"), (("rtsp://cam/x",), "--skills is missing"), (("x", "--stream", "y"), "give a source"),
    (("--stream", "stream_1", "--fps", "2"), "--stream takes"), (("--stream", "stream_1"), "404"), (("push", "--skills", "digits"), "push"),
    (("rtsp://elsewhere/x", "--skills", "digits"), "elsewhere"), (("nowhere.mp4", "--skills", "digits"), "nowhere.mp4"),
])
def test_faults_are_said(server, options, said):
    status, _, err = Watch(server, *options).end(())
    assert status == 1 and err.startswith("error: ") and said in err, err
    assert streams(server) == []


def test_servers_that_are_absent_take_no_streams_or_want_a_key(tmp_path):
    status, _, err = Watch("http://127.0.0.1:1", "rtsp://cam/x", "--skills", "a").end(())
    assert status == 1 and "http://127.0.0.1:1" in err and "connect" in err
    plain = ServedProcess("--model", REPOSITORY / "demo/model", "--threads", "1")
    status, _, err = Watch(plain, "rtsp://cam/x", "--skills", "a").end(())
    assert status == 1 and "--streams-dir" in err
    assert plain.stop() == 0
    (tmp_path / "users.yaml").write_text(USERS)
    guarded = StreamServer(tmp_path / "kept", "--users", tmp_path / "users.yaml")
    camera = Camera()
    assert "401" in Watch(guarded, camera.url, "--skills", "digits").end(())[2]
    watch = Watch(guarded, camera.url, "--skills", "digits", "--api-key", "sk-ann-0001")
    watch.lines(2)
    assert len(streams(guarded, "sk-ann-0001")) == 1
    process_end = time.monotonic()
    assert guarded.stop() == 0  # the server goes first
    status, _, err = watch.end(())
    assert status == 1 and err.count("error: ") == 1 and time.monotonic() - process_end < 30
    camera.shutdown()
