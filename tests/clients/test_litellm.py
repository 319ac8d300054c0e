"""litellm: its library under both names of OpenAI-compatible servers, and its proxy before the server."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would fetch a list of prices

import litellm
import openai
import pytest

SCHEMA = {"type": "object", "properties": {"count": {"type": "integer", "minimum": 1, "maximum": 9}}, "required": ["count"],
          "additionalProperties": False}
FORM = {"type": "json_schema", "json_schema": {"name": "counted", "schema": SCHEMA}}
PROVIDERS = ["openai", "hosted_vllm"]
CONFIG = """
model_list:
  - model_name: "*"
    litellm_params: {model: "hosted_vllm/*", api_base: "URL", api_key: none}
general_settings: {master_key: sk-of-the-proxy}
litellm_settings: {num_retries: 0, request_timeout: 60, telemetry: false}
"""


@pytest.mark.parametrize("provider", PROVIDERS)
def test_chats_and_streams_equal_a_plain_request(url, question, answer, provider):
    asked = {"model": f"{provider}/digits", "messages": question, "api_base": url, "api_key": "none", "max_tokens": 8, "temperature": 0}
    whole = litellm.completion(**asked)
    assert whole.choices[0].message.content == answer and whole.usage.prompt_tokens > 0
    assert "".join(part.choices[0].delta.content or "" for part in litellm.completion(stream=True, **asked)) == answer


@pytest.mark.parametrize("provider", PROVIDERS)
def test_embeddings_and_responses(url, digit, answer, provider):
    vectors = litellm.embedding(model=f"{provider}/valora-demo", input=["a", "b"], api_base=url, api_key="none").data
    assert len(vectors) == 2 and vectors[0]["embedding"] != vectors[1]["embedding"]
    content = [{"type": "input_image", "image_url": digit}, {"type": "input_text", "text": "Which digit is written here?"}]
    said = litellm.responses(model=f"{provider}/digits", input=[{"role": "user", "content": content}], api_base=url, api_key="none",
                             max_output_tokens=8, temperature=0)
    assert said.output[0].content[0].text == answer


@pytest.mark.parametrize("provider", PROVIDERS)
def test_errors_keep_their_kind_and_their_words(url, question, provider):
    asked = {"messages": question, "api_base": url, "api_key": "none", "max_retries": 0}
    with pytest.raises(litellm.NotFoundError, match="`nobody` does not exist"):
        litellm.completion(model=f"{provider}/nobody", **asked)
    with pytest.raises(litellm.BadRequestError, match="temperature.*must be at least 0"):
        litellm.completion(model=f"{provider}/digits", temperature=-1, **asked)


def test_schemas_and_rerank(url):
    asked = {"api_base": url, "api_key": "none"}
    said = litellm.completion(model="hosted_vllm/valora-demo", messages=[{"role": "user", "content": "How many?"}], response_format=FORM,
                              max_tokens=40, **asked).choices[0].message.content
    litellm.litellm_core_utils.json_validation_rule.validate_schema(SCHEMA, said)
    ranked = litellm.rerank(model="hosted_vllm/valora-demo", query="a cat", documents=["cats", "the sea"], **asked)
    assert sorted(row["index"] for row in ranked.results) == [0, 1]


@pytest.fixture(scope="module")
def proxy(url, tmp_path_factory):
    """An openai client of litellm's proxy, which sends every model's requests to the server."""
    folder = tmp_path_factory.mktemp("proxy")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "config.yaml").write_text(CONFIG.replace("URL", url))
    with open(folder / "log", "w") as log:
        process = subprocess.Popen([sys.executable, "-c", "from litellm import run_server; run_server()", "--config", folder / "config.yaml",
                                    "--host", "127.0.0.1", "--port", str(port)], stdout=log, stderr=log, cwd=folder)
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health/liveliness", timeout=5).read()
                break
            except (urllib.error.URLError, ConnectionError):
                assert process.poll() is None, (folder / "log").read_text()[-2000:]
                time.sleep(0.2)
        with openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="sk-of-the-proxy", max_retries=0, timeout=120) as client:
            yield client
    finally:
        process.terminate()
        process.wait(30)


def test_proxy_passes_chats_streams_and_embeddings(proxy, question, answer):
    asked = {"model": "digits", "messages": question, "max_tokens": 8, "temperature": 0}
    assert proxy.chat.completions.create(**asked).choices[0].message.content == answer
    parts = proxy.chat.completions.create(stream=True, **asked)
    assert "".join(part.choices[0].delta.content or "" for part in parts if part.choices) == answer
    assert len(proxy.embeddings.create(model="valora-demo", input=["a", "b"]).data) == 2
    said = proxy.chat.completions.create(model="valora-demo", messages=[{"role": "user", "content": "How many?"}], response_format=FORM, max_tokens=40)
    assert 1 <= json.loads(said.choices[0].message.content)["count"] <= 9


def test_proxy_passes_errors(proxy, question):
    with pytest.raises(openai.NotFoundError, match="`nobody` does not exist"):
        proxy.chat.completions.create(model="nobody", messages=question)
    with pytest.raises(openai.BadRequestError, match="must be at least 0"):
        proxy.chat.completions.create(model="digits", messages=question, temperature=-1)
