"""Options of vLLM's command line and of its requests that change how the server is addressed or what it prepares."""

import http.client
import json
import math
import pathlib
import signal
import socket
import subprocess

import pytest

from programs import find_program
from serving import LABELS, Server, chat_body, image_part, picture, text_part

TEMPLATE = "{% for message in messages %}<{{ message.role }}>{{ message.content }}{% endfor %}"


@pytest.fixture(scope="module")
def served(folders):
    server = Server({name: folders[name] for name in ("model", "three")}, "--trust-request-chat-template",
                    "--enable-tokenizer-info-endpoint", "--override-generation-config", '{"temperature": 0}',
                    "--root-path", "/models/a/")
    yield server
    assert server.stop() == 0


def get(served, path):
    status, text = served.request("GET", path)
    assert status == 200, text
    return json.loads(text)


def refused(served, path, body, param):
    status, text = served.request("POST", path, body)
    assert status == 400 and json.loads(text)["error"]["param"] == param, text


def count(served, content, **fields):
    return served.post("/tokenize", {"model": "tiny", "messages": [{"role": "user", "content": content}]} | fields)["count"]


def test_status_endpoints_answer(served, folders):
    assert get(served, "/load") == {"server_load": 0}
    info = get(served, "/tokenizer_info")
    file = pathlib.Path(folders["model"]) / "tokenizer_config.json"
    assert "chat_template" in info and (not file.exists() or set(json.loads(file.read_text())) <= set(info))
    document = get(served, "/models/a/openapi.json")
    assert document["servers"] == [{"url": "/models/a"}]
    for path, methods in document["paths"].items():
        for method in methods:
            status, text = served.request(method.upper(), path.replace("{model}", "tiny"), {} if method == "post" else None)
            assert status not in (405, 501) and "the path" not in text, (method, path)


def test_overridden_generation_default_is_greedy(served):
    bodies = [{"model": "tiny", "prompt": "Tell me.", "max_tokens": 12, "ignore_eos": True, "seed": seed} for seed in (1, 2)]
    first, second = (served.post("/v1/completions", body)["choices"][0]["text"] for body in bodies)
    assert first == second == served.post("/v1/completions", bodies[0] | {"temperature": 0})["choices"][0]["text"]


def test_request_may_set_its_template(served, folders):
    own = served.post("/tokenize", {"model": "tiny", "messages": [{"role": "user", "content": "Hi"}], "chat_template": TEMPLATE})
    text = served.post("/detokenize", {"model": "tiny", "tokens": own["tokens"]})["prompt"]
    assert text.endswith("<user>Hi")
    answer = served.post("/v1/chat/completions", chat_body("tiny", "Hi", chat_template=TEMPLATE))
    assert answer["usage"]["prompt_tokens"] == own["count"]
    refused(served, "/v1/chat/completions", chat_body("tiny", "Hi", chat_template="{% for %}"), "chat_template")


def test_media_settings_are_honoured(served):
    content = [image_part(picture(1, 96, 96)), text_part("What is this?")]
    plain = count(served, content)
    fewer = count(served, content, mm_processor_kwargs={"max_pixels": 32 * 32})
    assert fewer < plain == count(served, content, mm_processor_kwargs=None)
    answer = served.post("/v1/chat/completions", chat_body("tiny", content, mm_processor_kwargs={"max_pixels": 32 * 32}))
    assert answer["usage"]["prompt_tokens"] == fewer
    assert count(served, content) == plain, "the settings of one request are its own"
    for wrong in ({"max_pixels": 10**9}, {"min_pixels": 10**9}, {"max_pixels": 0}, {"fps": 0}, {"do_resize": False}):
        refused(served, "/v1/chat/completions", chat_body("tiny", content, mm_processor_kwargs=wrong), "mm_processor_kwargs")
    with_id = [image_part(picture(1, 96, 96)) | {"uuid": "a-picture"}, text_part("What is this?")]
    assert count(served, with_id) == plain


def test_label_has_log_probabilities(served):
    labels = LABELS["three"]
    choice = served.chat("three", "Which?", logprobs=True, top_logprobs=len(labels))["choices"][0]
    token, = choice["logprobs"]["content"]
    assert token["token"] == choice["message"]["content"] in labels
    assert sorted(top["token"] for top in token["top_logprobs"]) == sorted(labels)
    assert sum(math.exp(top["logprob"]) for top in token["top_logprobs"]) == pytest.approx(1, abs=1e-5)
    classified = served.post("/classify", {"model": "three", "messages": [{"role": "user", "content": "Which?"}]})["data"][0]
    probabilities = dict(zip(labels, classified["probs"]))
    for top in token["top_logprobs"]:
        assert math.exp(top["logprob"]) == pytest.approx(probabilities[top["token"]], abs=1e-5)
    card = get(served, "/v1/models/three")
    head = card["heads"][0]
    assert head["labels"] == labels and card["default_head"] == head["name"]
    assert served.chat(**head["request"], content="Which?")["choices"][0]["message"]["content"] == token["token"]


def test_language_model_head_name_selects_text(served, folders):
    asked = served.chat("three", "Which?", head="lm", max_tokens=8)["choices"][0]["message"]["content"]
    assert asked == served.chat("three", "Which?", head="", max_tokens=8)["choices"][0]["message"]["content"] not in LABELS["three"]
    done = subprocess.run([find_program("valora"), "generate", "--model", folders["model"], "--adapter", folders["three"], "--prompt", "Which?",
                           "--head", "lm", "--max-tokens", "8", "--threads", "1", "--dtype", "float32", "--json", "--ignore-eos"],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and json.loads(done.stdout)["text"] == asked, done


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(str(self.path))


def test_unix_domain_socket_is_served(folders, tmp_path):
    path = tmp_path / "valora.sock"
    process = subprocess.Popen([find_program("valora"), "--log-level", "warning", "serve", "--model", folders["model"], "--uds", str(path),
                                "--uds-mode", "600", "--threads", "1", "--max-model-len", "256"], stdout=subprocess.PIPE, text=True)
    try:
        assert any("serving" in line and f"unix:{path}" in line for line in process.stdout)
        assert path.is_socket() and path.stat().st_mode & 0o777 == 0o600
        connection = UnixConnection(path)
        for _ in range(2):
            connection.request("POST", "/v1/completions", json.dumps({"prompt": "Hi", "max_tokens": 2}), {"Content-Type": "application/json"})
            response = connection.getresponse()
            assert response.status == 200 and json.loads(response.read())["usage"]["completion_tokens"] > 0
        connection.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0 and not path.exists()
    finally:
        process.kill()
        process.stdout.close()
        process.wait()


def test_invalid_uds_mode_is_refused_at_startup():
    done = subprocess.run([find_program("valora"), "serve", "nowhere", "--uds-mode", "x"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "--uds-mode takes octal digits" in done.stderr, done.stderr
