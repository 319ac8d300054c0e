"""Several skills on one conversation: each answer equals the one of a single request."""

import json
import pathlib
import subprocess

import openai
import pytest

import checkpoints
from serving import MODEL, ServedProcess, Server, data_url, image_part, picture

REPOSITORY = pathlib.Path(__file__).parents[2]
SKILLS = ["coins", "defects", "digits", "cars", "catalogue", "mood", "scene"]


@pytest.fixture(scope="module")
def demo():
    listed = subprocess.run(["make", "--silent", "--eval", "shown: ; @echo $(DEMO_SERVE)", "shown"], cwd=REPOSITORY, check=True,
                            capture_output=True, text=True).stdout.split()
    port = listed.index("--port")
    server = ServedProcess(*listed[1:port], *listed[port + 2:], "--threads", "2", cwd=REPOSITORY)
    yield server
    assert server.stop() == 0


def question_of(server, name):
    _, text = server.request("GET", "/v1/lora_adapters")
    return next(a["question"] for a in json.loads(text)["data"] if a["name"] == name)


def essence(answer):
    choice = answer["choices"][0]
    return answer["model"], choice["message"], choice["finish_reason"], [token["token"] for token in choice["logprobs"]["content"]]


def test_answers_equal_single_requests(demo):
    names = {a["name"] for a in json.loads(demo.request("GET", "/v1/lora_adapters")[1])["data"]}
    skills = [name for name in SKILLS if name in names]
    assert len(skills) >= 5
    url = data_url((REPOSITORY / "demo/samples/coins-1.png").read_bytes())
    settings = dict(temperature=0, max_tokens=24, logprobs=True)
    boxes = {"model": "coins", "name": "boxes", "response_format": {"type": "boxes"}}
    whole = demo.post("/v1/analyze", dict(image=url, skills=[*skills, boxes, "nobody"], **settings))
    answers = whole["skills"]
    assert answers.keys() == {*skills, "boxes", "nobody"}
    for name in skills:
        content = [image_part(url), {"type": "text", "text": question_of(demo, name)}]
        single = demo.post("/v1/chat/completions", dict(model=name, messages=[{"role": "user", "content": content}], **settings))
        assert essence(answers[name]) == essence(single), name
    assert json.loads(answers["boxes"]["choices"][0]["message"]["content"])
    assert answers["nobody"]["error"]["code"] == 404
    assert whole["usage"]["completion_tokens"] == sum(a["usage"]["completion_tokens"] for a in answers.values() if "usage" in a)


def test_openai_client_reads_them_whole_and_streamed(demo):
    url = data_url((REPOSITORY / "demo/samples/digits-1.png").read_bytes())
    messages = [{"role": "user", "content": [image_part(url)]}]
    with openai.OpenAI(base_url=f"{demo.url}/v1", api_key="none", max_retries=0) as client:
        ask = lambda **more: client.chat.completions.create(model="valora-demo", messages=messages, max_tokens=8, temperature=0,
                                                            extra_body={"skills": ["digits", "defects"]}, **more)
        whole = ask().model_extra["skills"]
        streamed = [event.model_extra for event in ask(stream=True)]
    assert {e["skill"] for e in streamed[:-1]} == {"digits", "defects"} and "skill" not in streamed[-1]
    for event in streamed[:-1]:
        assert event["answer"]["choices"] == whole[event["skill"]]["choices"]


@pytest.fixture(scope="module")
def activated(tmp_path_factory):
    """Eight adapters that act from the answer's turn on, and a plain one."""
    root = tmp_path_factory.mktemp("activated")
    base = checkpoints.make_model(MODEL)
    folders = {"model": checkpoints.save_model(base, root / "model")}
    server = Server(folders)
    opened = [json.loads(server.request("POST", "/tokenize", {"messages": [{"role": "user", "content": "a"}], "add_generation_prompt": opens})[1])["tokens"]
              for opens in (False, True)]
    server.stop()
    invocation = opened[1][len(opened[0]):]
    for i in range(8):
        folders[f"skill-{i}"] = checkpoints.save_adapter(base, root / f"skill-{i}", 40 + i, rank=4, task_type="CAUSAL_LM",
                                                         alora_invocation_tokens=invocation)
    folders["plain"] = checkpoints.save_adapter(base, root / "plain", 60, rank=4)
    server = Server(folders)
    yield server
    assert server.stop() == 0


def test_prefix_of_activated_skills_is_computed_once(activated):
    body = {"messages": [{"role": "user", "content": [image_part(picture(1, 320, 240)), {"type": "text", "text": "What is it?"}]}],
            "temperature": 0, "max_tokens": 6, "ignore_eos": True}
    names = [f"skill-{i}" for i in range(8)]
    listed = {card["name"]: card["activated"] for card in json.loads(activated.request("GET", "/v1/lora_adapters")[1])["data"]}
    assert listed == dict.fromkeys(names, True) | {"plain": False}
    whole = activated.post("/v1/chat/completions", body | {"skills": [*names, "plain"]})["skills"]
    tokens = whole["plain"]["usage"]["prompt_tokens"]
    assert tokens > 64
    cached = [whole[name]["usage"]["prompt_tokens_details"]["cached_tokens"] for name in names]
    assert sorted(cached)[1:] == [max(cached)] * 7 and max(cached) >= tokens - 32
    for name in names:
        single = activated.post("/v1/chat/completions", body | {"model": name})
        assert single["choices"][0]["message"] == whole[name]["choices"][0]["message"]
    assert len({whole[name]["choices"][0]["message"]["content"] for name in names}) > 4
