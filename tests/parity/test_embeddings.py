"""/v1/embeddings against transformers and PEFT: the hidden state of the last prompt token, for texts, pictures and
adapters."""

import openai
import pytest
import torch

import pictures
from reference import Reference
from serving import Server, image_part, text_part

URL = pictures.picture(3, 50, 40)["image"]


@pytest.fixture(scope="module")
def served(folders):
    server = Server({name: folders[name] for name in ("model", "one", "three")})
    yield server
    server.stop()


@pytest.fixture(scope="module")
def reference(folders):
    made = Reference(folders["model"])
    for name in ("one", "three"):
        made.load_adapter(name, folders[name])
    return made


def state(reference, **request):
    prompt, _, hidden = reference.forward(request)
    return prompt, hidden[-1]


@pytest.mark.parametrize("uses", [[], [{"name": "one", "scale": 1}], [{"name": "one", "scale": 0.5}, {"name": "three", "scale": -1}]])
def test_text_embeddings_equal_reference(served, reference, uses):
    texts = ["What is this?", "a red square left of a circle " * 8]
    answer = served.post("/v1/embeddings", {"model": "tiny", "input": texts, "normalize": False, "lora": uses})
    assert [item["index"] for item in answer["data"]] == [0, 1]
    expected = [state(reference, prompt=text, adapters=uses) for text in texts]
    for item, (_, hidden) in zip(answer["data"], expected, strict=True):
        torch.testing.assert_close(torch.tensor(item["embedding"]), hidden, rtol=1e-3, atol=1e-4)
    assert answer["usage"]["prompt_tokens"] == sum(len(prompt.ids) for prompt, _ in expected)
    assert answer["usage"]["completion_tokens"] == 0


def test_picture_embedding_equals_reference(served, reference):
    content = [text_part("Look: "), image_part(URL)]
    answer = served.post("/v1/embeddings", {"model": "one", "messages": [{"role": "user", "content": content}]})
    _, hidden = state(reference, messages=[{"role": "user", "content": ["Look: ", {"image": URL}]}], add_generation_prompt=False,
                      adapters=[{"name": "one"}])
    torch.testing.assert_close(torch.tensor(answer["data"][0]["embedding"]), hidden / hidden.norm(), rtol=1e-3, atol=1e-4)


def test_openai_client_gets_reference_embeddings(served, reference):
    client = openai.OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0)  # the client asks for base64
    answer = client.embeddings.create(model="tiny", input=["a", "b c"])
    for item, text in zip(answer.data, ["a", "b c"], strict=True):
        _, hidden = state(reference, prompt=text)
        torch.testing.assert_close(torch.tensor(item.embedding), hidden / hidden.norm(), rtol=1e-3, atol=1e-4)
