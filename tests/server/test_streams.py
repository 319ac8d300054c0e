"""Live streams: pushed frames, files, MJPEG cameras and their faults, events, webhooks, owners, restarts."""

import hashlib
import hmac
import http.client
import http.server
import io
import json
import pathlib
import subprocess
import threading
import time

import pytest
from PIL import Image

from serving import ServedProcess, data_url, image_part

REPOSITORY = pathlib.Path(__file__).parents[2]
SAMPLES = REPOSITORY / "demo/samples"
ASKED = {"max_tokens": 24, "temperature": 0}
BOXES = {"model": "coins", "response_format": {"type": "boxes"}}
USERS = """users:
  - {name: ann, key: sk-ann-0001, models: ["*"]}
  - {name: bob, key: sk-bob-0002, models: [coins]}
"""


class StreamServer(ServedProcess):
    """The demo's tasks, with streams."""

    def __init__(self, folder, *options, **process_options):
        listed = subprocess.run(["make", "--silent", "--eval", "shown: ; @echo $(DEMO_SERVE)", "shown"], cwd=REPOSITORY, check=True,
                                capture_output=True, text=True).stdout.split()
        port = listed.index("--port")
        super().__init__(*listed[1:port], *listed[port + 2:], "--threads", "1", "--streams-dir", folder, "--allow-media-urls",
                         "--allowed-media-domains", "127.0.0.1", *options, cwd=REPOSITORY, **process_options)

    def ask(self, method, path, body=None, key=None, **headers):
        """(status, JSON) of a request; bytes are sent as a PNG."""
        picture = isinstance(body, bytes)
        headers |= ({"Content-Type": "image/png"} if picture else {}) | ({"Authorization": f"Bearer {key}"} if key else {})
        status, text = self.request(method, path, body, headers)
        return status, json.loads(text)

    def begin(self, source, skills, key=None, **more):
        status, stream = self.ask("POST", "/v1/streams", dict(source=source, skills=skills, **ASKED, **more), key)
        assert status == 200, stream
        return "/v1/streams/" + stream["id"]

    def events(self, stream, *types, key=None):
        found = self.ask("GET", f"{stream}/events?limit=1000", key=key)[1]["data"]
        return [e for e in found if not types or e["type"] in types]

    def push(self, stream, name):
        """Pushes a sample and waits for its answers."""
        frame = self.ask("POST", f"{stream}/frames", (SAMPLES / name).read_bytes())[1]["frame"]
        self.wait_until(lambda: any(e.get("frame") == frame for e in self.events(stream, "answers")), f"frame {frame}")
        return next(e for e in self.events(stream, "answers") if e["frame"] == frame)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = StreamServer(tmp_path_factory.mktemp("streams") / "kept")
    yield server
    assert server.stop() == 0


@pytest.fixture
def push(server):
    """Begins a pushed stream, and removes it."""
    begun = []

    def begin(*skills, **more):
        begun.append(server.begin("push", list(skills), **more))
        return begun[-1]
    yield begin
    for stream in begun:
        assert server.ask("DELETE", stream)[0] == 200


def single(server, name, picture, question, **more):
    content = [image_part(data_url(picture)), {"type": "text", "text": question}]
    answer = server.post("/v1/chat/completions", dict(model=name, messages=[{"role": "user", "content": content}], **ASKED, **more))
    return answer["choices"][0]["message"]["content"]


def test_answers_equal_those_of_chats(server, push):
    stream = push("digits", BOXES, {"model": "defects", "name": "own", "question": "What is wrong with the part?"})
    questions = {a["name"]: a["question"] for a in json.loads(server.request("GET", "/v1/lora_adapters")[1])["data"]}
    for name in ("digits-1.png", "coins-1.png", "defects-1.png"):
        picture, answers = (SAMPLES / name).read_bytes(), server.push(stream, name)["answers"]
        assert answers["digits"]["content"] == single(server, "digits", picture, questions["digits"])
        assert answers["coins"]["content"] == single(server, "coins", picture, questions["coins"], response_format={"type": "boxes"})
        assert answers["own"]["content"] == single(server, "defects", picture, "What is wrong with the part?")
    described = server.ask("GET", stream)[1]
    assert described["state"] == "running" and described["counts"]["answered"] == 3 and described["counts"]["lag"] > 0


def test_events_begin_and_end_with_hysteresis_and_keep_their_frame(server, push):
    stream = push(BOXES | {"event": {"when": {"boxes": {"min": 1}}, "start_after": 2}},
                  {"model": "digits", "event": {"when": {"changes": True}}})
    for name in ("coins-1.png", "coins-2.png", "digits-1.png", "digits-1.png"):
        server.push(stream, name)
    answers = server.events(stream, "answers")
    has_boxes = [bool(json.loads(e["answers"]["coins"]["content"])) for e in answers]
    assert has_boxes[:2] == [True, True]
    starts = [(e["type"], e["frame"]) for e in server.events(stream, "start", "end") if e["skill"] == "coins"]
    assert starts[0] == ("start", 2) and (starts[1:] == [("end", 4)] or any(has_boxes[2:]))
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request("GET", server.events(stream, "start")[0]["frame_url"])
    frame = connection.getresponse()
    assert frame.read() == (SAMPLES / "coins-2.png").read_bytes() and frame.headers["Content-Type"] == "image/png"
    digits = [e["answers"]["digits"]["content"] for e in answers]
    edges = [e["type"] for e in server.events(stream, "start", "end") if e["skill"] == "digits"]
    changed = [False] + [a != b for a, b in zip(digits, digits[1:])]
    assert edges == [("start" if new else "end") for old, new in zip([False, *changed], changed) if old != new]
    assert server.ask("GET", f"{stream}/frames/99")[0] == 404


def test_newest_frames_win_and_the_dropped_are_counted(server, push):
    stream = push("digits", "defects", "coins")
    for _ in range(30):
        assert server.ask("POST", f"{stream}/frames", (SAMPLES / "digits-2.png").read_bytes())[0] == 200
    counts = lambda: server.ask("GET", stream)[1]["counts"]
    server.wait_until(lambda: counts()["answered"] + counts()["dropped"] == 30, "all are answered or dropped")
    assert counts()["dropped"] > 0 and server.events(stream, "answers")[-1]["frame"] == 30


def test_skill_with_a_period_is_asked_less_often(server, push):
    stream = push("digits", {"model": "coins", "every": 3600})
    names = [sorted(server.push(stream, "digits-1.png")["answers"]) for _ in range(3)]
    assert names == [["coins", "digits"], ["digits"], ["digits"]]


def test_still_frames_are_not_asked_about_and_their_answers_stand(server, push):
    stream = push({"model": "digits", "event": {"when": {"not": {"changes": True}}, "start_after": 2}}, skip_still=True)
    counts = lambda: server.ask("GET", stream)[1]["counts"]
    server.push(stream, "digits-1.png")
    for still in (1, 2, 3):
        assert server.ask("POST", f"{stream}/frames", (SAMPLES / "digits-1.png").read_bytes())[0] == 200
        server.wait_until(lambda still=still: counts()["still"] == still, "the frame is compared")
    server.push(stream, "digits-2.png")
    assert counts()["answered"] == 2 and counts()["still"] == 3
    assert [e["type"] for e in server.events(stream)][:3] == ["state", "answers", "start"]
    metrics = server.request("GET", "/metrics")[1].splitlines()
    assert any(line.startswith("valora:stream_frames{") and 'outcome="still"' in line and not line.endswith(" 0") for line in metrics)
    described = server.ask("GET", stream)[1]
    (mine,) = [one for one in server.ask("GET", "/v1/stats")[1]["streams"]["data"] if one["id"] == described["id"]]
    assert described["skip_still"] is True and mine["state"] == "running" and mine["answered"] == 2 and mine["lag"] > 0


def test_server_sent_events_go_on_where_a_client_left(server, push):
    stream = push("digits")
    server.push(stream, "digits-1.png")

    def read(count, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        connection.request("GET", f"{stream}/events?after=0", headers={"Accept": "text/event-stream"} | headers)
        response, found = connection.getresponse(), []
        while len(found) < count:
            line = response.readline().decode()
            if line.startswith("data: "):
                found.append(json.loads(line[6:]))
        connection.close()
        return found
    first = read(2)
    assert [e["type"] for e in first] == ["state", "answers"] and [e["id"] for e in first] == [1, 2]
    later = []
    reader = threading.Thread(target=lambda: later.extend(read(1, **{"Last-Event-ID": "2"})))
    reader.start()
    server.push(stream, "digits-2.png")
    reader.join()
    assert later[0]["id"] == 3 and later[0]["frame"] == 2


def test_file_is_read_to_its_end_without_a_drop(server):
    stream = server.begin((SAMPLES / "clip-1.mp4").as_uri(), ["actions"], fps=4, realtime=False, window={"frames": 2})
    server.wait_until(lambda: server.ask("GET", stream)[1]["state"] == "ended", "the file ends")
    counts = server.ask("GET", stream)[1]["counts"]
    assert server.metric('valora:stream_frames') >= counts["frames"] and server.metric("valora:streams") >= 1
    assert counts["dropped"] == 0 and counts["frames"] == counts["answered"] > 3
    assert all("content" in e["answers"]["actions"] for e in server.events(stream, "answers"))
    assert server.ask("DELETE", stream)[0] == 200 and server.ask("GET", stream)[0] == 404


def test_skill_with_a_period_goes_by_the_time_of_a_file_that_is_read_fast(server):
    stream = server.begin((SAMPLES / "clip-1.mp4").as_uri(), [{"model": "actions", "every": 1}], fps=8, realtime=False)
    server.wait_until(lambda: server.ask("GET", stream)[1]["state"] == "ended", "the file ends")
    counts = server.ask("GET", stream)[1]["counts"]
    assert counts["answered"] > 1 and counts["skipped"] > 1 and counts["skipped"] + counts["answered"] == counts["frames"]
    assert server.ask("DELETE", stream)[0] == 200


class Camera(http.server.ThreadingHTTPServer):
    """Sends MJPEG, and takes webhooks. `faults`: what each connection does, in order, before it behaves."""

    def __init__(self, faults=()):
        super().__init__(("127.0.0.1", 0), CameraHandler)
        self.faults, self.connections, self.hooks, self.refusals = list(faults), 0, [], 0
        self.daemon_threads = True
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


class CameraHandler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.connections += 1
        fault = self.server.faults.pop(0) if self.server.faults else None
        if fault == "404":
            return self.send_error(404)
        self.send_response(200)
        self.send_header("Content-Type", "multipart/x-mixed-replace; boundary=frame")
        self.end_headers()
        try:
            for i in range(10_000):
                if fault and i == 40:
                    return  # unplugged
                side = 64 if fault != "size" or i < 20 else 96
                data = io.BytesIO()
                Image.open(SAMPLES / f"digits-{1 + i // 20 % 3}.png").convert("RGB").resize((side, side)).save(data, "JPEG")
                part = data.getvalue()
                self.wfile.write(b"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n" % len(part) + part + b"\r\n")
                time.sleep(0.02)
        except OSError:
            pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.refusals:
            self.server.refusals -= 1
            return self.send_error(503)
        self.server.hooks.append((self.headers["X-Valora-Signature"], body))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def test_camera_is_connected_again_after_every_fault(server):
    camera = Camera(["404", "unplugged", "size"])
    stream = server.begin(camera.url + "/cam", ["digits"], fps=50)
    server.wait_until(lambda: camera.connections > 3 and server.ask("GET", stream)[1]["state"] == "running", "the fourth connection")
    described = server.ask("GET", stream)[1]
    assert described["counts"]["reconnects"] == 3 and described["counts"]["failed"] == 0
    states = [e["state"] for e in server.events(stream, "state")]
    assert states == ["waiting", "running", "waiting", "running", "waiting", "running"]
    assert "404" in server.events(stream, "state")[0]["reason"]
    assert server.ask("POST", f"{stream}/pause")[1]["state"] == "paused"
    answered = server.ask("GET", stream)[1]["counts"]["answered"]
    connections = camera.connections
    assert server.ask("POST", f"{stream}/resume")[0] == 200
    server.wait_until(lambda: server.ask("GET", stream)[1]["counts"]["answered"] > answered, "it goes on")
    assert camera.connections == connections + 1
    server.ask("DELETE", stream)
    camera.shutdown()


def test_still_frames_of_a_camera_are_skipped_until_something_changes(server):
    camera = Camera()
    stream = server.begin(camera.url + "/cam", ["digits"], fps=50, skip_still={"threshold": 8})
    counts = lambda: server.ask("GET", stream)[1]["counts"]
    server.wait_until(lambda: counts()["answered"] >= 4 and counts()["still"] > 0, "four answers")
    server.ask("POST", f"{stream}/pause")
    assert counts()["answered"] <= 1 + counts()["frames"] / 20  # the picture changes after every 20 frames
    server.ask("DELETE", stream)
    camera.shutdown()


def test_webhook_is_signed_and_sent_again_until_it_is_taken(server, push):
    hook = Camera()
    hook.refusals = 1
    stream = push(BOXES | {"event": {"when": {"boxes": {}}}}, webhook={"url": hook.url + "/hook", "secret": "s3cret"})
    server.push(stream, "coins-1.png")
    server.wait_until(lambda: len(hook.hooks) >= 2, "the hook takes two events")
    for signature, body in hook.hooks:
        assert signature == "sha256=" + hmac.new(b"s3cret", body, hashlib.sha256).hexdigest()
    kinds = [json.loads(body)["type"] for _, body in hook.hooks]
    assert kinds == ["state", "start"]
    assert "s3cret" not in server.request("GET", stream)[1]
    hook.shutdown()


@pytest.mark.parametrize("body, param", [
    ({"source": "ftp://127.0.0.1/x"}, "source"), ({"source": "http://elsewhere/x"}, "source"), ({"source": "rtsp://elsewhere/x"}, "source"),
    ({"skills": [{"model": "digits", "messages": []}]}, "skills[0].messages"), ({"skills": ["digits", "digits"]}, "skills[1]"),
    ({"skip_still": {"threshold": 300}}, "skip_still.threshold"),
    ({"top_p": 7}, "top_p"), ({"webhook": {"url": "http://elsewhere/"}}, "webhook.url"), ({"fps": "1"}, "fps"), ({"model": "x"}, "model"),
])
def test_bad_descriptions_are_refused_by_field(server, body, param):
    status, answer = server.ask("POST", "/v1/streams", {"source": "push", "skills": ["digits"]} | body)
    assert status == 400 and answer["error"]["param"] == param, answer


def test_file_outside_the_allowed_folder_fails_the_stream(server):
    stream = server.begin("file:///etc/passwd", ["digits"])
    server.wait_until(lambda: server.ask("GET", stream)[1]["state"] == "failed", "it fails")
    assert "passwd" not in server.ask("GET", stream)[1]["reason"] or "allowed" in server.ask("GET", stream)[1]["reason"]
    server.ask("DELETE", stream)


def test_frames_are_checked(server, push):
    stream = push("digits")
    assert server.ask("POST", f"{stream}/frames", b"no picture")[0] == 400
    assert server.ask("POST", f"{stream}/frames", {"a": 1})[0] == 415
    assert server.ask("POST", f"{stream}/pause")[0] == 200
    assert server.ask("POST", f"{stream}/frames", (SAMPLES / "digits-1.png").read_bytes())[0] == 409


def test_streams_are_their_owners_and_survive_a_restart(tmp_path):
    (tmp_path / "users.yaml").write_text(USERS.replace("[coins]", "[coins, digits]"))
    options = ("--users", tmp_path / "users.yaml", "--streams-per-user", "1")
    server = StreamServer(tmp_path / "kept", *options)
    anns = server.begin("push", ["digits"], "sk-ann-0001", name="gate")
    bobs = server.begin("push", ["digits", "coins"], "sk-bob-0002", paused=True)
    assert server.ask("POST", "/v1/streams", {"source": "push", "skills": ["digits"]}, "sk-ann-0001")[0] == 429
    assert server.ask("GET", anns, key="sk-bob-0002")[0] == 404
    assert len(server.ask("GET", "/v1/streams", key="sk-bob-0002")[1]["data"]) == 1
    server.process.kill()
    server.process.wait()
    (tmp_path / "users.yaml").write_text(USERS)
    server = StreamServer(tmp_path / "kept", *options)
    described = server.ask("GET", anns, key="sk-ann-0001")[1]
    assert described["name"] == "gate" and described["state"] == "waiting"
    assert server.ask("GET", bobs, key="sk-bob-0002")[1]["state"] == "paused"
    assert server.ask("POST", f"{bobs}/resume", key="sk-bob-0002")[0] == 200
    server.ask("POST", f"{bobs}/frames", (SAMPLES / "coins-1.png").read_bytes(), "sk-bob-0002")
    server.wait_until(lambda: server.events(bobs, "answers", key="sk-bob-0002"), "answers")
    answers = server.events(bobs, "answers", key="sk-bob-0002")[0]["answers"]
    assert "error" in answers["digits"] and "content" in answers["coins"]  # bob may not use digits any more
    assert server.ask("DELETE", bobs, key="sk-bob-0002")[0] == 200
    status, refusal = server.ask("POST", "/v1/streams", {"source": "push", "skills": ["digits"]}, "sk-bob-0002")
    assert status == 404 and "`digits` does not exist" in refusal["error"]["message"]
    assert server.stop() == 0


def test_streams_are_off_by_default():
    listed = ["--model", REPOSITORY / "demo/model"]
    server = ServedProcess(*listed, "--threads", "1")
    status, text = server.request("POST", "/v1/streams", {"source": "push", "skills": ["x"]})
    assert status == 403 and "--streams-dir" in text
    assert server.stop() == 0
