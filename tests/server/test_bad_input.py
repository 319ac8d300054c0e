"""Every kind of bad input must get a clear 4xx and must not disturb other streams."""

import json
import shutil
import socket
import struct
import threading
import zlib

import pytest
from safetensors.numpy import load_file, save_file

from serving import Server, chat_body, data_url, image_part, picture, text_part

CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def server(folders):
    server = Server(folders, "--allow-runtime-lora-updating", "--limit-mm-per-prompt", '{"image": 2, "video": 1}')
    yield server
    assert server.stop() == 0


class Streams:
    """Eight clients that repeat the same streamed questions and compare each answer with the one given when run alone."""

    def __init__(self, server):
        self.server = server
        self.asks = [chat_body(["tiny", "one", "two"][i % 3], [image_part(picture(i)), text_part(f"question {i}")],
                               max_tokens=48, stream=True) for i in range(8)]
        self.alone = [self.ask(body) for body in self.asks]
        self.faults, self.rounds = [], [0] * 8
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(8)]

    def ask(self, body):
        status, text = self.server.request("POST", CHAT, body)
        assert status == 200 and text.rstrip().endswith("data: [DONE]"), text[:300]
        chunks = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
        return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])

    def run(self, i):
        while not self.over.is_set():
            try:
                answer = self.ask(self.asks[i])
            except Exception as error:
                self.faults.append((i, repr(error)))
                return
            if answer != self.alone[i]:
                self.faults.append((i, answer))
            self.rounds[i] += 1

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()


@pytest.fixture(scope="module")
def streams(server):
    with Streams(server) as streams:
        yield streams
        # Each stream completes at least once after all requests below.
        done = list(streams.rounds)
        server.wait_until(lambda: streams.faults or all(n > d for n, d in zip(streams.rounds, done)), "streams go on")
    assert not streams.faults


def huge_png(width, height):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 64)) + chunk(b"IEND", b"")


def jpeg_cut():
    import io

    from PIL import Image
    buffer = io.BytesIO()
    Image.new("RGB", (64, 64), (200, 10, 10)).save(buffer, "JPEG")
    return buffer.getvalue()[: len(buffer.getvalue()) // 2]


def video_part(url):
    return {"type": "video_url", "video_url": {"url": url}}


def with_image(data):
    return chat_body("tiny", [image_part(data), text_part("what?")])


BODIES = {
    "broken JSON": (b'{"model": "tiny", "messages": [', 400, "JSON"),
    "100,000 deep JSON": (b'{"model": "tiny", "messages": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400, "deep"),
    "not an object": (b"[1, 2]", 400, "object"),
    "messages of a wrong type": (dict(model="tiny", messages="hello"), 400, "messages"),
    "content of a wrong type": (dict(model="tiny", messages=[{"role": "user", "content": 7}]), 400, "content"),
    "temperature of a wrong type": (chat_body("tiny", "hi", temperature="hot"), 400, "temperature"),
    "max_tokens below one": (chat_body("tiny", "hi", max_tokens=0), 400, "max_tokens"),
    "top_logprobs without logprobs": (chat_body("tiny", "hi", top_logprobs=3), 400, "top_logprobs"),
    "unknown model": (chat_body("nobody", "hi"), 404, "The model `nobody` does not exist."),
    "unknown adapter of the base": (chat_body("tiny:nobody", "hi"), 404, "does not exist"),
    "too long a prompt": (chat_body("tiny", "word " * 5000), 400, "maximum context length"),
    "prompt and answer too long": (chat_body("tiny", "hi", max_tokens=5000), 400, "maximum context length"),
    "too many images": (chat_body("tiny", [image_part(picture(i)) for i in range(3)]), 400, "image"),
    "a truncated JPEG": (with_image(data_url(jpeg_cut(), "image/jpeg")), 400, "JPEG"),
    "a text file as image": (with_image(data_url(b"hello, I am text\n" * 9)), 400, "image"),
    "not base64": (with_image("data:image/png;base64,@@@@"), 400, "base64"),
    "a local file that is not allowed": (with_image("file:///etc/passwd"), 400, "file"),
    "a URL that is not allowed": (with_image("http://127.0.0.1:1/x.png"), 400, "http"),
    "a video without frames": (chat_body("tiny", [video_part(data_url(b"\0" * 4000, "video/mp4"))]), 400, "video"),
    "a placeholder in the text": (chat_body("tiny", "look: <|image_pad|>"), 400, "placeholder"),
    "an unknown head": (chat_body("three", "hi", head="nose"), 400, "nose"),
}


@pytest.mark.parametrize("name", BODIES)
def test_bad_body_is_refused_with_its_status(server, streams, name):
    body, expected, words = BODIES[name]
    status, text = server.request("POST", CHAT, body)
    assert status == expected, text[:300]
    error = json.loads(text)["error"]
    assert words.lower() in error["message"].lower()
    assert error["code"] == expected


def test_png_header_of_65000_squared_is_refused(server, streams):
    status, text = server.request("POST", CHAT, with_image(huge_png(65_000, 65_000)))
    assert status in (400, 413), text[:300]
    assert "65000" in text


def broken_adapter(folders, root, change_tensors=None, change_config=None, change_bytes=None):
    folder = root / "broken"
    shutil.copytree(folders["two"], folder)
    file = folder / "adapter_model.safetensors"
    if change_tensors:
        tensors = load_file(file)
        change_tensors(tensors, next(k for k in sorted(tensors) if "lora_A" in k))
        save_file(tensors, file)
    if change_config:
        config = json.loads((folder / "adapter_config.json").read_text())
        change_config(config)
        (folder / "adapter_config.json").write_text(json.dumps(config))
    if change_bytes:
        file.write_bytes(change_bytes(file.read_bytes()))
    return folder


def set_nan(tensors, name):
    tensors[name][0, 0] = float("nan")


def set_shape(tensors, name):
    tensors[name] = tensors[name][:, :-1].copy()


def set_target(tensors, name):
    tensors[name.replace("q_proj", "x_proj").replace("down_proj", "x_proj")] = tensors.pop(name)


def far_offsets(data):
    return data.replace(b'"data_offsets":[0,', b'"data_offsets":[9,', 1)


ADAPTERS = {
    "wrong shape": (dict(change_tensors=set_shape), "shape"),
    "NaN": (dict(change_tensors=set_nan), "finite"),
    "unknown target": (dict(change_tensors=set_target), "x_proj"),
    "DoRA": (dict(change_config=lambda c: c.update(use_dora=True)), "dora"),
    "truncated": (dict(change_bytes=lambda data: data[:-100]), "safetensors"),
    "truncated header": (dict(change_bytes=lambda data: data[:20]), "safetensors"),
    "offsets that do not fit": (dict(change_bytes=far_offsets), "safetensors"),
}


@pytest.mark.parametrize("name", ADAPTERS)
def test_bad_adapter_is_refused(server, streams, folders, tmp_path, name):
    changes, words = ADAPTERS[name]
    folder = broken_adapter(folders, tmp_path, **changes)
    status, text = server.request("POST", "/v1/load_lora_adapter", dict(lora_name="broken", lora_path=str(folder)))
    assert 400 <= status < 500, text
    assert words in json.loads(text)["error"]["message"].lower()
    assert server.request("POST", CHAT, chat_body("broken", "hi"))[0] == 404


def test_missing_adapter_folder_is_refused(server, streams):
    status, text = server.request("POST", "/v1/load_lora_adapter", dict(lora_name="x", lora_path="/no/such/folder"))
    assert status == 404 and "/no/such/folder" in text


def test_one_gibibyte_body_is_refused_before_it_is_sent(server, streams):
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(b"POST " + CHAT.encode() + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 1073741824\r\n\r\n{")
        assert b" 413 " in connection.recv(4096).split(b"\r\n")[0]


def test_idle_connections_and_partial_headers_block_nobody(server, streams):
    connections = [socket.create_connection(("127.0.0.1", server.port), timeout=30) for _ in range(1000)]
    try:
        for connection in connections[:200]:
            connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost:")
        before = list(streams.rounds)
        server.wait_until(lambda: streams.faults or all(n > b for n, b in zip(streams.rounds, before)), "streams go on")
        assert server.request("GET", "/health")[0] == 200
    finally:
        for connection in connections:
            connection.close()


def test_full_queue_is_429_and_waiting_requests_are_answered(folders):
    server = Server(folders, "--max-num-seqs", "1", "--max-waiting", "4")
    try:
        answers = []

        def ask():
            answers.append(server.request("POST", CHAT, chat_body("tiny", "hi", max_tokens=400)))

        threads = [threading.Thread(target=ask) for _ in range(24)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        statuses = [status for status, _ in answers]
        assert set(statuses) == {200, 429}, statuses
        assert statuses.count(200) >= 5  # the running one and the four that waited
        assert len({json.loads(text)["choices"][0]["message"]["content"] for status, text in answers if status == 200}) == 1
        assert all("queue" in text for status, text in answers if status == 429)
    finally:
        assert server.stop() == 0
