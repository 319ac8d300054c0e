"""A large image alongside running streams: its vision tower runs in pieces between their steps."""

import http.client
import json
import pathlib
import threading
import time

import pytest

from serving import ServedProcess, chat_body, image_part, picture

pytestmark = pytest.mark.alone

DEMO = pathlib.Path(__file__).resolve().parents[2] / "demo" / "model"
SIDE = 640  # 6,400 patches, which keep the tower busy for a second


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The demo's model with a processor that does not shrink such pictures."""
    folder = tmp_path_factory.mktemp("large")
    for path in DEMO.iterdir():
        if path.name != "preprocessor_config.json":
            (folder / path.name).symlink_to(path)
    config = json.loads((DEMO / "preprocessor_config.json").read_text())
    config["max_pixels"] = config["size"]["longest_edge"] = SIDE * SIDE
    (folder / "preprocessor_config.json").write_text(json.dumps(config))
    return str(folder)


@pytest.fixture(scope="module")
def server(model):
    server = ServedProcess("--model", model, "--served-model-name", "demo", "--threads", "2")
    yield server
    server.stop()


class Stream(threading.Thread):
    """An answer with many tokens, and the time of each."""

    def __init__(self, server, tokens=3000):
        super().__init__()
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        token = server.post("/tokenize", {"model": "demo", "prompt": "a", "add_special_tokens": False})["tokens"][0]
        body = {"model": "demo", "prompt": "a", "max_tokens": tokens, "ignore_eos": True, "stream": True,
                "logit_bias": {str(token): 100}}
        self.connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        self.times = []
        self.start()
        server.wait_until(lambda: self.times, "the first token")

    def run(self):
        for line in self.connection.getresponse():
            if line.startswith(b"data: {"):
                self.times.append(time.monotonic())

    def within(self, begin, end):
        return [moment for moment in self.times if begin <= moment <= end]


def ask(server, seed):
    """(begin, end) of a request with a large picture."""
    begin = time.monotonic()
    server.chat("demo", [image_part(picture(seed, SIDE, SIDE))], max_tokens=1)
    return begin, time.monotonic()


def test_streams_continue_while_a_large_image_is_encoded(server):
    stream = Stream(server)
    begin, end = ask(server, 1)
    moments = stream.within(begin, end)
    assert len(moments) > 10, "the stream ran meanwhile"
    gaps = [b - a for a, b in zip([begin, *moments], [*moments, end])]
    assert max(gaps) < (end - begin) / 3, "the tower held the stream up"
    stream.join()
    assert len(stream.times) >= 3000, "and came to its end"


def test_text_is_answered_while_an_image_is_encoded_alone(server):
    image = threading.Thread(target=ask, args=(server, 2))
    image.start()
    server.wait_until(lambda: server.metric("vllm:num_requests_running") == 1, "the image's request")
    began = server.metric("vllm:generation_tokens_total")
    for _ in range(3):
        server.chat("demo", "hello", max_tokens=2, ignore_eos=True)
        assert image.is_alive()
    assert server.metric("vllm:generation_tokens_total") == began + 6
    image.join()


def test_disconnect_drops_a_partly_encoded_image(server):
    entries = server.metric("valora:visual_cache_entries")
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    body = json.dumps(chat_body("demo", [image_part(picture(3, SIDE, SIDE))]))
    connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
    server.wait_until(lambda: server.metric("vllm:num_requests_running") == 1, "its request")
    connection.close()
    server.wait_until(lambda: server.metric("vllm:num_requests_running") == 0, "the end of its request")
    for _ in range(20):
        server.chat("demo", "hello", max_tokens=20, ignore_eos=True)
    assert server.metric("valora:visual_cache_entries") == entries, "nobody finished its encoding"


def test_images_of_several_clients_are_all_answered(model):
    server = ServedProcess("--model", model, "--served-model-name", "demo", "--threads", "2", "--no-enable-prefix-caching",
                           "--visual-cache", "0")
    try:
        small = lambda seed: server.chat("demo", [image_part(picture(seed, SIDE // 2, SIDE // 2))], max_tokens=4)["choices"]
        alone = [small(seed) for seed in range(4)]
        answers = [None] * 4

        def again(seed):
            answers[seed] = small(seed)

        threads = [threading.Thread(target=again, args=(seed,)) for seed in range(4)]
        threads.append(threading.Thread(target=ask, args=(server, 20)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        texts = lambda all_choices: [choices[0]["message"]["content"] for choices in all_choices]
        assert texts(answers) == texts(alone)
    finally:
        server.stop()
