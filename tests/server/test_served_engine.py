"""The real engine behind the server: adapters mixed, loaded and replaced; caches; heads; the openai
client."""

import contextlib
import http.client
import json
import math
import signal
import socket
import subprocess
import threading

import openai
import pytest

from serving import (
    LABELS,
    Server,
    chat_body,
    data_url,
    image_part,
    picture,
    text_part,
)

CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def server(folders):
    server = Server(folders, "--allow-runtime-lora-updating", "--allowed-local-media-path", str(folders["model"].parent))
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="module")
def client(server):
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)


def content_of(answer):
    return answer["choices"][0]["message"]["content"]


def cached(answer):
    return answer["usage"]["prompt_tokens_details"]["cached_tokens"]


def test_startup_log_names_models_and_address(server):
    text = "".join(server.welcome)
    for words in ("tiny", "five, one, three, two", "a pool of", f"http://127.0.0.1:{server.port}/v1"):
        assert words in text


def test_models_list_base_and_adapters(client, folders):
    cards = {card.id: card for card in client.models.list()}
    assert set(cards) == {"tiny", "one", "two", "three", "five"}
    assert cards["one"].parent == "tiny" and cards["one"].root == str(folders["one"])


def test_64_concurrent_requests_equal_single_ones(server):
    names = ["tiny", "one", "two", "three", "five"]
    asks = []
    for i in range(64):
        content = [text_part(f"say {i % 16} things")]
        if i % 3 == 0:
            content.insert(0, image_part(picture(i % 4, 24 + 8 * (i % 5), 40)))
        asks.append(chat_body(names[i % 5], content, head="", stream=i % 2 == 0, max_tokens=8 + i % 32))

    def ask(body):
        status, text = server.request("POST", CHAT, body)
        assert status == 200, text
        if not body["stream"]:
            return content_of(json.loads(text))
        chunks = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
        return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])

    def leave():  # clients that disconnect during the stream
        body = json.dumps(chat_body("two", "go on", stream=True, max_tokens=600)).encode()
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
            connection.sendall(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (CHAT.encode(), len(body)) + body)
            connection.recv(100)

    alone = [ask(body) for body in asks]
    together = [None] * len(asks)

    def run(i):
        together[i] = ask(asks[i])

    threads = [threading.Thread(target=run, args=(i,)) for i in range(64)] + [threading.Thread(target=leave) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone
    server.wait_until(lambda: server.metric("vllm:num_requests_running") == 0, "those that left are not run on")


def test_only_repeated_images_and_prefixes_are_hits(server):
    question = text_part("what is in this picture, please tell me all you see in it? " * 2)
    first = server.chat("one", [image_part(picture(100)), question])
    again = server.chat("one", [image_part(picture(100)), question])
    text_before = cached(first)  # the system prompt, cached by earlier requests
    assert cached(again) > text_before
    assert content_of(again) == content_of(first)
    other_image = server.chat("one", [image_part(picture(101)), question])
    other_adapter = server.chat("two", [image_part(picture(100)), question])
    base = server.chat("tiny", [image_part(picture(100)), question])
    for answer in (other_image, other_adapter, base):
        assert cached(answer) <= text_before
    assert len({content_of(a) for a in (first, other_image, other_adapter, base)}) == 4


def test_changed_image_under_one_url_changes_the_answer(server, folders):
    path = folders["model"].parent / "shared.png"
    answers = []
    for seed in (7, 8, 7):
        path.write_bytes(picture(seed))
        answers.append(server.chat("tiny", [image_part(f"file://{path}"), text_part("and now?")]))
    assert content_of(answers[0]) == content_of(answers[2]) != content_of(answers[1])


def load(server, name, path, **extra):
    return server.request("POST", "/v1/load_lora_adapter", dict(lora_name=name, lora_path=str(path)) | extra)


def test_loads_and_lists_say_what_an_adapter_changes(server, folders):
    body = dict(lora_name="told", lora_path=str(folders["one"]))
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    with contextlib.closing(connection):
        connection.request("POST", "/v1/load_lora_adapter", json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, b"Success: LoRA adapter 'told' added successfully.")
        (card,) = [card for card in json.loads(server.request("GET", "/v1/lora_adapters")[1])["data"] if card["name"] == "told"]
        (part,) = card["changes"]
        assert part["part"] == "decoder" and 0 < part["linears"] <= part["of"] and part["ranks"] == [card["rank"]]
        said = f"decoder: {part['linears']} of {part['of']} linears, rank {card['rank']}, scale {part['scales'][0]:.4g}"
        assert answer.getheader("X-Valora-Changes") == said
    assert server.request("POST", "/v1/unload_lora_adapter", dict(lora_name="told"))[0] == 200


def test_reloaded_name_is_a_new_adapter(server, folders):
    question = "tell me a long story about nothing at all, and then one more about it"
    assert load(server, "guest", folders["one"]) == (200, "Success: LoRA adapter 'guest' added successfully.")
    assert load(server, "guest", folders["two"])[0] == 400
    one = server.chat("guest", question)
    assert content_of(one) == content_of(server.chat("one", question))
    assert load(server, "guest", folders["two"], load_inplace=True)[0] == 200
    two = server.chat("guest", question)
    assert content_of(two) == content_of(server.chat("two", question)) != content_of(one)
    status, text = server.request("POST", "/v1/unload_lora_adapter", dict(lora_name="guest"))
    assert (status, text) == (200, "Success: LoRA adapter 'guest' removed successfully.")
    assert server.request("POST", CHAT, chat_body("guest", "hi"))[0] == 404
    assert server.request("POST", "/v1/unload_lora_adapter", dict(lora_name="guest"))[0] == 404


def test_running_request_keeps_its_unloaded_adapter(server, folders):
    expected = content_of(server.chat("two", "count", max_tokens=500))
    assert load(server, "leaving", folders["two"])[0] == 200
    answers = []
    thread = threading.Thread(target=lambda: answers.append(server.chat("leaving", "count", max_tokens=500)))
    running = server.metric("vllm:num_requests_running")
    thread.start()
    server.wait_until(lambda: answers or server.metric("vllm:num_requests_running") > running, "the request runs")
    assert server.request("POST", "/v1/unload_lora_adapter", dict(lora_name="leaving"))[0] == 200
    thread.join()
    assert content_of(answers[0]) == expected


def test_heads_with_different_label_counts_answer(server):
    for name, labels in LABELS.items():
        body = dict(model=name, messages=[{"role": "user", "content": [image_part(picture(3)), text_part("which?")]}])
        for path in ("/classify", "/v1/classify"):
            answer = server.post(path, body)
            data = answer["data"][0]
            assert answer["model"] == name and data["num_classes"] == len(labels) == len(data["probs"])
            assert math.isclose(sum(data["probs"]), 1, rel_tol=1e-5)
            assert data["label"] == labels[max(range(len(labels)), key=lambda i: data["probs"][i])]
        assert content_of(server.chat(name, "which?")) in labels
        assert content_of(server.chat(name, "which?", head="")) not in labels
    status, text = server.request("POST", "/classify", dict(model="one", input="hi"))
    assert status == 400 and "head" in text


def test_scaled_and_summed_adapters_change_the_answer(server):
    question = "what do they say together?"
    alone = content_of(server.chat("two", question))
    assert content_of(server.chat("tiny", question, lora=[{"name": "two", "scale": 1}])) == alone
    base = content_of(server.chat("tiny", question))
    assert content_of(server.chat("tiny", question, lora=[{"name": "two", "scale": 0}])) == base
    both = content_of(server.chat("tiny", question, lora=[{"name": "two"}, {"name": "one"}]))
    assert both not in (alone, base)


def test_openai_client_streams_images_and_logprobs(client):
    messages = [{"role": "user", "content": [image_part(data_url(picture(5))), text_part("look")]}]
    whole = client.chat.completions.create(model="two", messages=messages, temperature=0, max_tokens=20, logprobs=True,
                                           top_logprobs=3, extra_body={"ignore_eos": True})
    assert len(whole.choices[0].logprobs.content) == 20 == whole.usage.completion_tokens
    for token in whole.choices[0].logprobs.content:
        assert token.logprob == pytest.approx(token.top_logprobs[0].logprob) and len(token.top_logprobs) == 3
    stream = client.chat.completions.create(model="two", messages=messages, temperature=0, max_tokens=20, stream=True,
                                            stream_options={"include_usage": True}, extra_body={"ignore_eos": True})
    chunks = list(stream)
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == whole.choices[0].message.content
    assert chunks[-1].usage.completion_tokens == 20
    with pytest.raises(openai.NotFoundError, match="does not exist"):
        client.chat.completions.create(model="nobody", messages=messages)


def test_curl_gets_streams_and_errors(server):
    body = json.dumps(chat_body("one", "hello", stream=True))
    answer = subprocess.run(["curl", "-sS", "-N", f"{server.url}{CHAT}", "-H", "Content-Type: application/json", "-d", body],
                            capture_output=True, text=True, timeout=60, check=True).stdout
    assert answer.startswith("data: {") and answer.rstrip().endswith("data: [DONE]")
    wrong = subprocess.run(["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", f"{server.url}{CHAT}", "-H",
                            "Content-Type: application/json", "-d", '{"model": "nobody"}'],
                           capture_output=True, text=True, timeout=60, check=True).stdout
    assert wrong in ("400", "404")


def test_metrics_are_consistent_after_all_requests(server):
    _, text = server.request("GET", "/metrics")
    assert text.count("vllm:lora_requests_info{") == 1
    for name in ("vllm:prompt_tokens_total", "vllm:generation_tokens_total", "vllm:prefix_cache_hits_total", "vllm:mm_cache_hits_total"):
        assert server.metric(name) > 0, name
    assert server.metric("vllm:num_requests_running") == 0


def test_sigterm_lets_running_requests_finish(folders):
    server = Server(folders)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    body = chat_body("two", "go", max_tokens=800, stream=True, stream_options={"include_usage": True})
    connection.request("POST", CHAT, json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    # With such a small model, the metrics may be polled after the last token; the first event cannot be
    # too late.
    events = [response.readline()]
    server.process.send_signal(signal.SIGTERM)
    events += response.read().splitlines()
    connection.close()
    events = [line.decode().strip() for line in events]
    events = [line.removeprefix("data: ") for line in events if line]
    assert events[-1] == "[DONE]"
    assert json.loads(events[-2])["usage"]["completion_tokens"] == 800
    assert server.process.wait(20) == 0
    server.process.stdout.close()
