"""Embedders and rerankers against transformers and PEFT: pooling, cut sizes, instructions, pictures, and the log odds of
two tokens, on folders as sentence-transformers writes them."""

import json
import shutil

import jinja2
import pytest
import torch

import pictures
from reference import Reference
from serving import Server, image_part, text_part

URL = pictures.picture(3, 50, 40)["image"]
YES, NO = 17, 40
JUDGE = ('Judge whether the Document meets the requirements based on the Query and the Instruct provided. Note that the answer can '
         'only be "yes" or "no".')
TASK = "Given a search query, retrieve relevant candidates that answer the query."
PAIRS = "{%- set q = messages | selectattr('role', 'eq', 'query') | map(attribute='content') | first -%}" \
        "{%- set d = messages | selectattr('role', 'eq', 'document') | map(attribute='content') | first -%}" \
        "<|im_start|>user\n{{ messages | selectattr('role', 'eq', 'system') | map(attribute='content') | first | default('none') }}" \
        "\nQuery: {{ q }}\nDocument: {{ d }}<|im_end|>\n<|im_start|>assistant\n"
POOLING = "sentence_transformers.models.Pooling"


def described(root, source, modules, files):
    """A copy of a model's folder with sentence-transformers' files."""
    shutil.copytree(source, root)
    listed = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]
    for path, kind, config in modules:
        listed.append({"idx": len(listed), "name": str(len(listed)), "path": path, "type": kind})
        (root / path).mkdir()
        (root / path / "config.json").write_text(json.dumps(config))
    for name, content in (files | {"modules.json": listed}).items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return root


@pytest.fixture(scope="module")
def reference(folders):
    made = Reference(folders["model"])
    made.load_adapter("one", folders["one"])
    return made


@pytest.fixture(scope="module")
def embedder(folders, tmp_path_factory):
    config = json.loads((folders["model"] / "config.json").read_text()) | {"is_matryoshka": True}
    folder = described(tmp_path_factory.mktemp("mean") / "model", folders["model"],
                       [("1_Pooling", POOLING, {"pooling_mode_mean_tokens": True, "pooling_mode_lasttoken": False})],
                       {"config.json": config, "config_sentence_transformers.json": {
                           "prompts": {"query": "Query: ", "document": ""}, "default_prompt_name": None}})
    # Few tokens per step, so that a prompt is computed in parts.
    server = Server({"model": folder, "one": folders["one"]}, "--max-num-batched-tokens", "32")
    yield server
    server.stop()


@pytest.fixture(scope="module")
def reranker(folders, tmp_path_factory):
    folder = described(tmp_path_factory.mktemp("judge") / "model", folders["model"],
                       [("1_LogitScore", "sentence_transformers.cross_encoder.modules.logit_score.LogitScore",
                         {"true_token_id": YES, "false_token_id": NO})], {})
    server = Server({"model": folder, "one": folders["one"]})
    yield server
    server.stop()


def mean(reference, size=None, **request):
    _, _, hidden = reference.forward(request)
    pooled = hidden.mean(0)[:size]
    return pooled / pooled.norm()


def embeddings(server, **body):
    return [torch.tensor(item["embedding"]) for item in server.post("/v1/embeddings", body)["data"]]


def judged(query, document):
    return [{"role": "system", "content": [JUDGE]},
            {"role": "user", "content": [f"<Instruct>: {TASK}<Query>:", *query, "\n<Document>:", *document]}]


def odds(reference, **request):
    _, logits, _ = reference.forward(request)
    return (logits[-1, YES] - logits[-1, NO]).item()


@pytest.mark.parametrize("model, uses", [("tiny", []), ("one", [{"name": "one"}])])
def test_means_of_states_equal_reference(embedder, reference, model, uses):
    texts = ["What is this?", "a red square left of a circle " * 12]
    got = embeddings(embedder, model=model, input=texts)
    again = embeddings(embedder, model=model, input=texts)  # no prefix of another prompt is left out
    for text, one, two in zip(texts, got, again, strict=True):
        expected = mean(reference, prompt=text, adapters=uses)
        torch.testing.assert_close(one, expected, rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(two, expected, rtol=1e-3, atol=1e-4)


def test_cut_embeddings_are_normalised(embedder, reference):
    (got,) = embeddings(embedder, input="a red square", dimensions=5)
    torch.testing.assert_close(got, mean(reference, 5, prompt="a red square"), rtol=1e-3, atol=1e-4)


def test_prompts_of_the_folder_come_before_a_text(embedder, reference):
    (got,) = embeddings(embedder, input="red", prompt_name="query")
    torch.testing.assert_close(got, mean(reference, prompt="Query: red"), rtol=1e-3, atol=1e-4)


def test_pictures_are_inputs(embedder, reference):
    items = [URL, {"text": "Look.", "image": URL}, {"content": [text_part("Look: "), image_part(URL)]}]
    got = embeddings(embedder, input=items, instruction="Represent it.")
    for one, parts in zip(got, [[{"image": URL}], [{"image": URL}, "Look."], ["Look: ", {"image": URL}]], strict=True):
        messages = [{"role": "system", "content": ["Represent it."]}, {"role": "user", "content": parts}]
        torch.testing.assert_close(one, mean(reference, messages=messages), rtol=1e-3, atol=1e-4)


def test_a_last_empty_answer_is_where_an_embedding_ends(embedder, reference):
    """Frigate writes the end of the prompt as an answer to be continued."""
    asked = [{"role": "system", "content": [text_part("Represent the user's input.")]}]
    for content, parts in [([image_part(URL), text_part("")], [{"image": URL}]), ([text_part("a red car")], ["a red car"])]:
        question = [{"role": "user", "content": content}, {"role": "assistant", "content": [text_part("")]}]
        (got,) = embeddings(embedder, model="tiny", messages=asked + question, encoding_format="float", dimensions=6,
                            continue_final_message=True, add_special_tokens=False)
        messages = [{"role": "system", "content": ["Represent the user's input."]}, {"role": "user", "content": parts}]
        torch.testing.assert_close(got, mean(reference, 6, messages=messages), rtol=1e-3, atol=1e-4)


def test_scores_of_an_embedder_are_cosines(embedder, reference):
    documents = ["a circle", "a red square", URL]
    answer = embedder.post("/v1/rerank", {"query": "red", "documents": documents})
    query = mean(reference, prompt="Query: red")
    states = [mean(reference, prompt="a circle"), mean(reference, prompt="a red square"),
              mean(reference, messages=[{"role": "user", "content": [{"image": URL}]}])]
    cosines = [(query @ state).item() for state in states]
    assert [result["index"] for result in answer["results"]] == sorted(range(3), key=lambda i: -cosines[i])
    for result in answer["results"]:
        assert result["relevance_score"] == pytest.approx(cosines[result["index"]], abs=1e-4)


@pytest.mark.parametrize("model, uses", [("tiny", []), ("one", [{"name": "one"}])])
def test_judgements_equal_reference(reranker, reference, model, uses):
    documents = ["a circle", {"image": URL}, {"text": "it", "image": URL}]
    answer = reranker.post("/score", {"model": model, "text_1": "red", "text_2": documents, "use_activation": False})
    for item, parts in zip(answer["data"], [["a circle"], [{"image": URL}], [{"image": URL}, "it"]], strict=True):
        expected = odds(reference, messages=judged(["red"], parts), adapters=uses)
        assert item["score"] == pytest.approx(expected, abs=2e-3)
    probabilities = reranker.post("/score", {"model": model, "text_1": "red", "text_2": documents})
    for item, raw in zip(probabilities["data"], answer["data"], strict=True):
        assert item["score"] == pytest.approx(torch.tensor(raw["score"]).sigmoid().item(), abs=1e-5)


def test_rerank_orders_as_reference(reranker, reference):
    documents = ["a circle", "a red square", "blue", "what"]
    answer = reranker.post("/v2/rerank", {"model": "tiny", "query": "red", "documents": documents, "top_n": 3})
    expected = [odds(reference, messages=judged(["red"], [text])) for text in documents]
    assert [result["index"] for result in answer["results"]] == sorted(range(4), key=lambda i: -expected[i])[:3]
    assert answer["results"][0]["document"]["text"] == documents[answer["results"][0]["index"]]


def test_templates_of_pairs_are_used(folders, reference, tmp_path):
    folder = described(tmp_path / "model", folders["model"],
                       [("1_LogitScore", "x.LogitScore", {"true_token_id": YES, "false_token_id": NO})],
                       {"additional_chat_templates/reranker.jinja": PAIRS})
    server = Server({"model": folder})
    try:
        answer = server.post("/score", {"text_1": "red", "text_2": ["a circle"], "instruction": "Match.", "use_activation": False})
        messages = [{"role": role, "content": text} for role, text in (("system", "Match."), ("query", "red"), ("document", "a circle"))]
        text = jinja2.Environment(trim_blocks=True, lstrip_blocks=True).from_string(PAIRS).render(messages=messages)
        assert answer["data"][0]["score"] == pytest.approx(odds(reference, prompt=text), abs=2e-3)
    finally:
        server.stop()


def test_models_without_the_two_words_say_so(folders):
    server = Server({"model": folders["model"]})
    try:
        status, text = server.request("POST", "/rerank", {"query": "q", "documents": ["a"]})
        assert status == 400 and '\\"yes\\"' in text
    finally:
        server.stop()


def test_other_poolings_are_refused_by_name(folders, tmp_path):
    folder = described(tmp_path / "model", folders["model"], [("1_Pooling", POOLING, {"pooling_mode_cls_token": True})], {})
    server = Server({"model": folder})
    try:
        status, text = server.request("POST", "/v1/embeddings", {"input": "a"})
        assert status == 400 and "cls_token" in text
        assert server.request("POST", "/v1/completions", {"prompt": "a", "max_tokens": 1})[0] == 200
    finally:
        server.stop()
