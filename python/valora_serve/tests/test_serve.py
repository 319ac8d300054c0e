"""The application, with two ranks per replica, compared with a single-rank server: every endpoint, and every answer
equal."""

import base64
import itertools
import json
import re

import httpx
import openai
import pytest

from clusters import REPOSITORY, URL, chat, content, sample_of, wait_until

SETTINGS = {"replicas": 2, "cores": 2, "tensor_parallel_size": 2}
SAMPLES = json.loads((REPOSITORY / "demo/samples.json").read_text())


def picture_request(sample):
    data = base64.b64encode((REPOSITORY / "demo" / sample["media"]).read_bytes()).decode()
    return [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
        {"type": "text", "text": sample["question"]},
    ]


PICTURES = list(
    {s["task"]: s for s in SAMPLES if s["media"].endswith(".png")}.values()
)  # one per task


def test_whole_answers_equal_those_of_a_single_server(application, single):
    bodies = [
        chat(model, f"Say something about {model}.")
        for model in ("valora-demo", "traffic", "mood", "race")
    ]
    bodies += [
        chat(sample["task"] or "valora-demo", picture_request(sample)) for sample in PICTURES
    ]
    for body in bodies:
        ours = application.client.post("/v1/chat/completions", json=body)
        theirs = single.post("/v1/chat/completions", json=body)
        assert ours.status_code == theirs.status_code == 200, ours.text
        assert content(ours.json())["choices"] == content(theirs.json())["choices"]
        assert ours.headers["content-type"] == theirs.headers["content-type"]
        assert ours.headers["x-valora-replica"]


def events(client, path, body):
    with client.stream("POST", path, json=body | {"stream": True}) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        lines = [line.removeprefix("data: ") for line in response.iter_lines() if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line)["choices"] for line in lines[:-1]]


def test_streams_equal_those_of_a_single_server(application, single):
    for path, body in (
        ("/v1/chat/completions", chat("mood", "Hello")),
        (
            "/v1/completions",
            {
                "model": "valora-demo",
                "prompt": "Once",
                "max_tokens": 16,
                "temperature": 0,
                "ignore_eos": True,
            },
        ),
    ):
        ours = events(application.client, path, body)
        assert len(ours) > 1
        assert ours == events(single, path, body)


def test_classification_and_tokens_equal_those_of_a_single_server(application, single):
    sample = next(s for s in PICTURES if s["task"] == "digits")
    messages = [{"role": "user", "content": picture_request(sample)}]
    for path, body in (
        ("/classify", {"model": "digits", "messages": messages}),
        ("/v1/classify", {"model": "digits", "messages": messages}),
        ("/tokenize", {"model": "valora-demo", "prompt": "Some words"}),
        ("/detokenize", {"model": "valora-demo", "tokens": [1, 2, 3]}),
    ):
        ours, theirs = application.client.post(path, json=body), single.post(path, json=body)
        assert ours.status_code == theirs.status_code == 200, ours.text
        mine, other = ours.json(), theirs.json()
        for answer in (mine, other):
            for key in ("id", "created"):
                answer.pop(key, None)
        # Sorted by sums, which differ between ranks.
        probabilities = [
            [label.pop("probs", []) for label in answer.get("data", [])] for answer in (mine, other)
        ]
        assert mine == other
        assert sum(probabilities[0], []) == pytest.approx(sum(probabilities[1], []), abs=1e-5)


@pytest.mark.parametrize(
    "path, body",
    [
        ("/v1/chat/completions", chat("no-such-model", "Hello")),
        ("/v1/chat/completions", chat("valora-demo", "Hello", stream=True, temperature=-1)),
        ("/v1/chat/completions", {"model": "valora-demo"}),
        ("/classify", {"model": "valora-demo", "input": "Hello"}),
    ],
)
def test_errors_equal_those_of_a_single_server(application, single, path, body):
    ours, theirs = application.client.post(path, json=body), single.post(path, json=body)
    assert (ours.status_code, ours.json()) == (theirs.status_code, theirs.json())
    assert ours.status_code >= 400


def test_unknown_paths_wrong_methods_and_broken_bodies_are_refused(application):
    assert application.client.get("/v1/nothing").status_code == 404
    assert application.client.get("/v1/chat/completions").status_code == 405
    broken = application.client.post(
        "/v1/chat/completions", content=b"{", headers={"Content-Type": "application/json"}
    )
    assert broken.status_code == 400 and broken.json()["error"]["message"]


def test_model_list_joins_all_replicas(application, single):
    ours = {card["id"] for card in application.client.get("/v1/models").json()["data"]}
    assert ours == {card["id"] for card in single.get("/v1/models").json()["data"]}
    assert application.client.get("/v1/models/mood").json()["id"] == "mood"
    assert application.client.get("/v1/models/none").status_code == 404
    assert application.client.get("/health").status_code == 200
    assert application.client.get("/version").json() == single.get("/version").json()


def test_the_page_and_what_it_reads_come_from_a_replica(application, single):
    page = application.client.get("/")
    names = re.findall(r'(?:src|href)="(ui/[^"]+)"', page.text)
    assert len(names) > 2
    for path in ("/", "/docs", "/openapi.json", *(f"/{name}" for name in names)):
        ours, theirs = application.client.get(path), single.get(path)
        assert (ours.status_code, ours.content) == (
            theirs.status_code,
            theirs.content,
        ) and ours.content
        assert ours.headers["x-valora-replica"]
        for header in ("content-type", "content-security-policy", "x-content-type-options"):
            assert ours.headers.get(header) == theirs.headers.get(header)
    stats = application.client.get("/v1/stats").json()
    assert stats["state"] == "ready" and stats["model"]["names"] == ["valora-demo"]
    names_of = [
        {adapter["name"] for adapter in told["adapters"]}
        for told in (stats, single.get("/v1/stats").json())
    ]
    assert names_of[0] == names_of[1]
    with application.client.stream(
        "GET", "/v1/stats", headers={"Accept": "text/event-stream"}
    ) as events:
        data = (line for line in events.iter_lines() if line.startswith("data: "))
        for line in itertools.islice(data, 2):
            assert json.loads(line.removeprefix("data: "))["state"] == "ready"


def test_openai_client_works(application):
    client = openai.OpenAI(base_url=f"{URL}/v1", api_key="none")
    answer = client.chat.completions.create(
        model="mood", messages=[{"role": "user", "content": "Hello"}], max_tokens=4
    )
    assert answer.choices[0].message.content
    pieces = client.completions.create(
        model="valora-demo", prompt="Once", max_tokens=4, stream=True
    )
    assert sum(1 for _ in pieces) > 1
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(
            model="none", messages=[{"role": "user", "content": "Hello"}]
        )


def test_metrics_are_summed(application):
    before = application.client.get("/metrics").text
    for i in range(6):
        application.client.post(
            "/v1/chat/completions", json=chat("mood", f"Hello {i}", max_tokens=3, ignore_eos=True)
        )
    after = application.client.get("/metrics").text
    assert (
        sample_of(after, "vllm:generation_tokens_total")
        - sample_of(before, "vllm:generation_tokens_total")
        == 18
    )
    assert sample_of(after, "valora_serve:replicas") == 2
    assert sample_of(after, "valora:adapters_loaded") == 2 * 13
    assert (
        sample_of(after, "valora_serve:requests_total")
        - sample_of(before, "valora_serve:requests_total")
        == 6
    )


def test_adapters_load_and_unload_on_every_replica(application, single):
    path = str(REPOSITORY / "demo/adapters/adapter-3")
    load = {"lora_name": "later", "lora_path": path}
    assert application.client.post("/v1/load_lora_adapter", json=load).status_code == 200
    cards = [
        card
        for card in application.client.get("/v1/lora_adapters").json()["data"]
        if card["name"] == "later"
    ]
    assert len(cards) == 1
    answers = [
        application.client.post("/v1/chat/completions", json=chat("later", "Where?"))
        for _ in range(8)
    ]
    theirs = single.post("/v1/chat/completions", json=chat("cars", "Where?")).json()["choices"]
    assert all(answer.json()["choices"] == theirs for answer in answers)
    assert (
        application.client.post("/v1/load_lora_adapter", json=load).status_code == 400
    )  # as the single server
    assert (
        application.client.post("/v1/unload_lora_adapter", json={"lora_name": "later"}).status_code
        == 200
    )
    missing = [
        application.client.post("/v1/chat/completions", json=chat("later", "Where?"))
        for _ in range(8)
    ]
    assert {answer.status_code for answer in missing} == {404}
    assert application.client.post("/v1/load_lora_adapter", json={}).status_code == 400


def test_disconnect_ends_the_request(application):
    """The server stops generating: it counts the request as aborted, and nothing keeps running."""

    def aborted():
        text = application.client.get("/metrics").text
        lines = [line for line in text.splitlines() if 'finished_reason="abort"' in line]
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines)

    before = aborted()
    body = chat("mood", "Hello", max_tokens=3000, ignore_eos=True, stream=True)
    with application.client.stream("POST", "/v1/chat/completions", json=body) as response:
        assert next(response.iter_lines()).startswith("data: ")
    wait_until(lambda: aborted() == before + 1, "the request is aborted", 30)
    body["stream"] = False
    with pytest.raises(httpx.ReadTimeout):
        application.client.post("/v1/chat/completions", json=body, timeout=0.5)
    wait_until(lambda: aborted() == before + 2, "the second request is aborted", 30)
