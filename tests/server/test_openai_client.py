"""The openai client and bare sockets against the server with its scripted engine (fake_server)."""

import base64
import json
import signal
import socket
import subprocess
import urllib.request

import openai
import pytest

from programs import find_program


class Served:
    def __init__(self, *options):
        self.process = subprocess.Popen([find_program("fake_server"), *options], stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        self.port = int(self.url.rsplit(":", 1)[1])

    def client(self, key="none"):
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0, timeout=30)

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=30) as response:
            return response.read().decode()

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()


@pytest.fixture(scope="module")
def served():
    server = Served()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def client(served):
    return served.client()


def user(text):
    return [{"role": "user", "content": text}]


def test_chat_returns_text_and_usage(client):
    answer = client.chat.completions.create(model="fake", messages=user("hello big world"), temperature=0, user="me")
    assert answer.object == "chat.completion"
    assert answer.id.startswith("chatcmpl-")
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].message.content == "hello big world"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens == 6
    assert answer.usage.prompt_tokens_details.cached_tokens == 2


def test_chat_honours_max_tokens_and_n(client):
    answer = client.chat.completions.create(model="fake", messages=user("a b c d"), max_completion_tokens=2, n=3)
    assert [c.message.content for c in answer.choices] == ["a b"] * 3
    assert [c.index for c in answer.choices] == [0, 1, 2]
    assert {c.finish_reason for c in answer.choices} == {"length"}


def test_stream_starts_with_role_and_has_no_usage(client):
    chunks = list(client.chat.completions.create(model="fake", messages=user("one two three"), stream=True))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert all(chunk.choices[0].delta.role is None for chunk in chunks[1:])
    assert "".join(chunk.choices[0].delta.content for chunk in chunks) == "one two three"
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert all(chunk.usage is None for chunk in chunks)


def test_stream_ends_with_usage_on_request(client):
    chunks = list(
        client.chat.completions.create(
            model="fake", messages=user("one two"), stream=True, stream_options={"include_usage": True}
        )
    )
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == 2
    assert all(chunk.usage is None for chunk in chunks[:-1])


def test_mid_stream_error_raises(client):
    with pytest.raises(openai.APIError, match="this prompt fails"):
        for _ in client.chat.completions.create(model="fake", messages=user("!fail in the middle"), stream=True):
            pass


def test_logprobs_have_exact_bytes(client):
    answer = client.chat.completions.create(model="fake", messages=user("!bytes"), logprobs=True, top_logprobs=2)
    content = answer.choices[0].logprobs.content
    assert bytes(b for token in content for b in token.bytes).decode() == answer.choices[0].message.content == "€ euro"
    assert content[0].token == "\N{REPLACEMENT CHARACTER}"
    assert [len(token.top_logprobs) for token in content] == [2, 2, 2]


def test_images_and_videos_reach_the_engine(client):
    pixel = "data:image/png;base64," + base64.b64encode(b"x" * 3000).decode()
    parts = [
        {"type": "text", "text": "!media"},
        {"type": "image_url", "image_url": {"url": pixel, "detail": "high"}},
        {"type": "image_url", "image_url": {"url": "http://example.invalid/a.jpg"}},
        {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AAAA"}},
    ]
    answer = client.chat.completions.create(model="fake", messages=user(parts))
    assert answer.choices[0].message.content == f" image:{len(pixel)} image:28 video:26"


def test_too_many_images_are_refused(client):
    parts = [{"type": "image_url", "image_url": {"url": "data:,"}}] * 5
    with pytest.raises(openai.BadRequestError, match=r"At most 4 image\(s\)"):
        client.chat.completions.create(model="fake", messages=user(parts))


def test_adapters_are_selected_by_name_and_scale(client):
    def content(model, **extra):
        answer = client.chat.completions.create(model=model, messages=user("!echo-adapters"), extra_body=extra)
        assert answer.model == model
        return answer.choices[0].message.content

    assert content("fake") == ""
    assert content("lens") == content("fake:lens") == " lens*1"
    assert content("fake", lora=[{"id": "lens", "scale": 0.25}, {"name": "birds"}]) == " lens*0.25 birds*1"


def test_completions_are_answered_and_streamed(client):
    answer = client.completions.create(model="fake", prompt=["a b c", "d"], max_tokens=2, logprobs=1)
    assert [choice.text for choice in answer.choices] == ["a b", "d"]
    assert answer.choices[0].logprobs.tokens == ["a", " b"]
    assert answer.choices[0].logprobs.text_offset == [0, 1]
    tokens = client.completions.create(model="fake", prompt=[5, 6, 7])
    assert tokens.choices[0].text == "5 6 7"
    stream = client.completions.create(model="fake", prompt="x y", stream=True)
    assert "".join(chunk.choices[0].text for chunk in stream) == "x y"


def test_models_list_base_and_adapters(client):
    cards = {card.id: card for card in client.models.list()}
    assert {"fake", "lens", "birds"} <= cards.keys()
    assert cards["fake"].parent is None and cards["lens"].parent == "fake"
    assert client.models.retrieve("lens").root == "/adapters/lens"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("none")


def test_errors_have_openai_fields(client):
    with pytest.raises(openai.NotFoundError) as missing:
        client.chat.completions.create(model="none", messages=user("x"))
    assert missing.value.body == {
        "message": "The model `none` does not exist.",
        "type": "NotFoundError",
        "param": "model",
        "code": 404,
    }
    with pytest.raises(openai.BadRequestError) as bad:
        client.chat.completions.create(model="fake", messages=user("x"), temperature=9)
    assert bad.value.param == "temperature"
    with pytest.raises(openai.BadRequestError, match=r"messages\[0\].role"):
        client.chat.completions.create(model="fake", messages=[{"role": "alien", "content": "x"}])
    with pytest.raises(openai.BadRequestError) as unsupported:
        client.chat.completions.create(model="fake", messages=user("x"), response_format={"type": "table"})
    assert unsupported.value.type == "invalid_request_error" and unsupported.value.param == "response_format"


def test_request_id_is_echoed(client):
    answer = client.chat.completions.with_raw_response.create(
        model="fake", messages=user("x"), extra_headers={"x-request-id": "abc-1"}
    )
    assert answer.headers["x-request-id"] == "abc-1"
    assert answer.parse().id == "chatcmpl-abc-1"


def test_adapters_load_and_unload(served, client):
    def post(path, body):
        request = urllib.request.Request(
            served.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        return urllib.request.urlopen(request, timeout=30).read().decode()

    assert post("/v1/load_lora_adapter", {"lora_name": "new", "lora_path": "/p"}) == (
        "Success: LoRA adapter 'new' added successfully."
    )
    assert client.chat.completions.create(model="new", messages=user("x")).model == "new"
    post("/v1/unload_lora_adapter", {"lora_name": "new"})
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="new", messages=user("x"))


def test_classify_returns_label_and_probabilities(served):
    request = urllib.request.Request(
        served.url + "/classify",
        json.dumps({"model": "birds", "input": "what is it"}).encode(),
        {"Content-Type": "application/json"},
    )
    answer = json.load(urllib.request.urlopen(request, timeout=30))
    assert answer["data"][0]["label"] == "dog"
    assert sum(answer["data"][0]["probs"]) == 1


def test_metrics_count_requests(served, client):
    client.chat.completions.create(model="lens", messages=user("x"))
    text = served.get("/metrics")
    assert text.count("\nvllm:lora_requests_info{") == 1
    assert 'vllm:request_success_total{engine="0",finished_reason="stop",model_name="fake"}' in text


def test_closing_a_stream_cancels_it(served, client):
    stream = client.chat.completions.create(model="fake", messages=user("!hang"), stream=True)
    next(iter(stream))
    assert 'vllm:num_requests_running{engine="0",model_name="fake"} 1' in served.get("/metrics")
    stream.close()
    while 'vllm:num_requests_running{engine="0",model_name="fake"} 0' not in served.get("/metrics"):
        pass


def test_malformed_requests_do_not_disturb_streams(served, client):
    streams = [client.chat.completions.create(model="fake", messages=user("a b"), stream=True) for _ in range(8)]
    for junk in (b"\x00" * 100, b"GET\r\n\r\n", b"POST /v1/chat/completions HTTP/9.9\r\n\r\n", b"A" * 200_000):
        with socket.create_connection(("127.0.0.1", served.port), timeout=30) as raw:
            raw.sendall(junk)
            raw.shutdown(socket.SHUT_WR)
            assert raw.recv(4096)[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 431", b"")
    for stream in streams:
        assert "".join(chunk.choices[0].delta.content for chunk in stream) == "a b"


def test_api_key_and_cors_are_enforced():
    server = Served("--api-key", "secret", "--cors", "https://a.example")
    try:
        assert server.client("secret").models.list().data
        with pytest.raises(openai.AuthenticationError):
            server.client("wrong").models.list()
        request = urllib.request.Request(server.url + "/health", headers={"Origin": "https://a.example"})
        with urllib.request.urlopen(request, timeout=30) as response:
            assert response.headers["Access-Control-Allow-Origin"] == "https://a.example"
    finally:
        server.stop()


def test_full_queue_is_429_with_retry_after():
    server = Served("--max-queued", "1")
    try:
        stream = server.client().chat.completions.create(model="fake", messages=user("!hang"), stream=True)
        next(iter(stream))
        with pytest.raises(openai.RateLimitError) as full:
            server.client().chat.completions.create(model="fake", messages=user("x"))
        assert full.value.response.headers["retry-after"]
        stream.close()
    finally:
        server.stop()


def test_other_signals_do_not_interrupt_streams():
    server = Served()
    try:
        stream = server.client().chat.completions.create(model="fake", messages=user("!hang"), stream=True)
        next(iter(stream))
        for other in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
            server.process.send_signal(other)
        answer = server.client().chat.completions.create(model="fake", messages=user("still here"))
        assert "still here" in answer.choices[0].message.content
        assert server.process.poll() is None
        stream.close()
    finally:
        server.stop()


def test_sigterm_drains_and_second_sigterm_stops():
    server = Served()
    try:
        stream = server.client().chat.completions.create(model="fake", messages=user("!hang"), stream=True)
        events = iter(stream)
        next(events)
        server.process.send_signal(signal.SIGTERM)
        with pytest.raises(openai.InternalServerError) as refused:
            while True:  # until the signal has arrived
                server.client().chat.completions.create(model="fake", messages=user("x"))
        assert refused.value.status_code == 503
        assert server.process.poll() is None
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(30) == 0
        with pytest.raises(Exception, match="peer closed|incomplete|disconnected"):
            next(events)
    finally:
        server.stop()
