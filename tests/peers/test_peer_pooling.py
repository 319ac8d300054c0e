"""/classify and /v1/embeddings."""

import base64
import io
import json
import math

import numpy
import openai
import pytest
from PIL import Image
from test_peer_vision import DEMO, clip, prompt_tokens, video_part

from peers import peer
from serving import data_url, image_part, text_part

CLASSIFY = "pooling/classify/test_online.py"
SEEN = "pooling/classify/test_online_vision.py"
PICTURES = "pooling/embed/test_online_vision.py"
EMBED = "pooling/embed/test_online.py"
TEXT = "This product was excellent and exceeded my expectations"
LABELS = ["walking", "jumping", "waving", "falling", "sitting"]
TURNS = [{"role": "user", "content": "The cat sat on the mat."}, {"role": "assistant", "content": "A feline was resting on a rug."},
         {"role": "user", "content": "Stars twinkle brightly in the night sky."}]
WIDTH = 192


def classify(served, **body):
    return served.post("/classify", {"model": "adapter-2"} | body)


def refused(served, path, model, **body):
    status, text = served.request("POST", path, {"model": model} | body)
    assert status == 400, text
    return json.loads(text)["error"]["message"]


def well_formed(answer, count=1):
    assert answer["object"] == "list" and answer["model"] == "adapter-2" and len(answer["data"]) == count
    for i, item in enumerate(answer["data"]):
        assert item["index"] == i and item["label"] in LABELS and len(item["probs"]) == item["num_classes"] == len(LABELS)
    return answer["usage"]["prompt_tokens"]


def lengths(tokenizer):
    """Number of tokens in the conversation: closed, opened for an answer, and without its end."""
    return [len(tokenizer.apply_chat_template(TURNS, **how)) for how in
            ({}, {"add_generation_prompt": True}, {"continue_final_message": True})]


@peer(CLASSIFY, "test_basic")
@peer(EMBED, "test_basic")
def test_models_are_listed_and_tokenize_by_name(served, client, tokenizer):
    assert client.models.list().data[0].id == "demo"
    for model in ("demo", "adapter-2"):
        assert served.post("/tokenize", {"model": model, "prompt": TEXT})["tokens"] == tokenizer.encode(TEXT)


@peer(CLASSIFY, "test_completion_request")
def test_text_and_token_inputs_give_equal_labels(served, tokenizer):
    one, two = (classify(served, input=given) for given in (TEXT, tokenizer.encode(TEXT)))
    well_formed(one)
    well_formed(two)
    assert one["data"] == two["data"]


@peer(CLASSIFY, "test_completion_request_batched")
def test_ten_texts_get_ten_labels(served, tokenizer):
    for given in (TEXT, tokenizer.encode(TEXT)):
        well_formed(classify(served, input=[given] * 10), 10)


@peer(CLASSIFY, "test_empty_input_error")
def test_empty_input_is_refused(served):
    for given in ("", []):
        assert refused(served, "/classify", "adapter-2", input=given)


@peer(CLASSIFY, "test_truncate_prompt_tokens")
def test_truncated_input_keeps_the_last_tokens(served):
    answer = classify(served, input="hello " * 600, truncate_prompt_tokens=5)
    well_formed(answer)
    assert answer["usage"]["prompt_tokens"] == answer["usage"]["total_tokens"] == 5
    assert "truncate_prompt_tokens" in refused(served, "/classify", "adapter-2", input="test", truncate_prompt_tokens=1025)


@peer(CLASSIFY, "test_add_special_tokens[true]")
def test_special_tokens_are_accepted_in_classification(served):
    well_formed(classify(served, input=TEXT, add_special_tokens=True))


@peer(CLASSIFY, "test_chat_request[the turns]")
def test_conversation_is_classified_per_generation_flags(served, tokenizer):
    closed, opened, continued = lengths(tokenizer)
    assert well_formed(classify(served, messages=TURNS, add_generation_prompt=False)) == closed
    assert well_formed(classify(served, messages=TURNS, add_generation_prompt=True)) == opened
    assert well_formed(classify(served, messages=TURNS, continue_final_message=True, add_generation_prompt=False)) == continued


@peer(CLASSIFY, "test_chat_request[defaults]")
def test_classification_opens_no_turn_by_default(served, tokenizer):
    closed, _, continued = lengths(tokenizer)
    assert well_formed(classify(served, messages=TURNS)) == closed
    assert well_formed(classify(served, messages=TURNS, continue_final_message=True)) == continued


@peer(CLASSIFY, "test_chat_request[both flags]")
@peer(EMBED, "test_chat_request[both flags]")
def test_continuing_and_opening_a_turn_is_refused(served):
    for path, model in (("/classify", "adapter-2"), ("/v1/embeddings", "demo")):
        words = refused(served, path, model, messages=TURNS, continue_final_message=True, add_generation_prompt=True)
        assert "continue_final_message" in words and "add_generation_prompt" in words


@peer(CLASSIFY, "test_chat_request[the words about both flags]")
@peer(EMBED, "test_chat_request[the words about both flags]")
def test_message_about_both_flags_equals_vllms(served):
    words = refused(served, "/classify", "adapter-2", messages=TURNS, continue_final_message=True, add_generation_prompt=True)
    assert "Cannot set both `continue_final_message` and `add_generation_prompt` to True." in words


@peer(CLASSIFY, "test_use_activation")
def test_softmax_is_the_default_and_can_be_disabled(served):
    default, with_it, without = (classify(served, input=TEXT, use_activation=wish)["data"][0]["probs"] for wish in (None, True, False))
    exponents = [math.exp(value) for value in without]
    assert default == pytest.approx(with_it) and with_it != pytest.approx(without, abs=1e-2)
    assert with_it == pytest.approx([value / sum(exponents) for value in exponents], abs=1e-4)


@peer(CLASSIFY, "test_score")
@peer(CLASSIFY, "test_rerank")
def test_score_endpoint_is_404(served):
    for path in ("/score", "/rerank"):
        assert served.request("POST", path, {"model": "adapter-2", "query": "ping", "documents": ["pong"]})[0] == 404


def test_classifiers_judge_pairs_without_their_head(served):
    (scored,) = served.post("/score", {"model": "adapter-2", "text_1": "ping", "text_2": "pong"})["data"]
    (ranked,) = served.post("/rerank", {"model": "adapter-2", "query": "ping", "documents": ["pong"]})["results"]
    assert 0 < ranked["relevance_score"] == scored["score"] < 1


@peer(SEEN, "test_classify_accepts_chat_text_only")
def test_text_parts_are_classified(served, tokenizer):
    content = "Please classify this text request."
    answer = classify(served, messages=[{"role": "user", "content": [text_part(content)]}], add_generation_prompt=False)
    assert well_formed(answer) == len(tokenizer.apply_chat_template([{"role": "user", "content": content}]))


@peer(SEEN, "test_classify_accepts_chat_video_url")
def test_clip_is_classified(served):
    parts = [text_part("What is the person doing?"), video_part(clip("actions-1.mp4"))]
    assert well_formed(classify(served, messages=[{"role": "user", "content": parts}])) > 40


def embed(client, given, **fields):
    return client.embeddings.create(model="demo", input=given, encoding_format="float", extra_body=fields)


def right_usage(answer, count, tokens):
    assert answer.id and len(answer.data) == count and all(len(item.embedding) == WIDTH for item in answer.data)
    assert answer.usage.prompt_tokens == answer.usage.total_tokens == tokens
    assert answer.usage.completion_tokens == 0


@peer(EMBED, "test_completion_request")
@peer(EMBED, "test_completion_request_batched")
def test_text_and_token_inputs_give_equal_embeddings(client, tokenizer):
    tokens = tokenizer.encode(TEXT)
    answers = [embed(client, given) for given in (TEXT, tokens, [TEXT] * 10, [tokens] * 10)]
    for answer, count in zip(answers, (1, 1, 10, 10)):
        right_usage(answer, count, count * len(tokens))
        assert all(item.embedding == pytest.approx(answers[0].data[0].embedding, abs=1e-4) for item in answer.data)


@peer(EMBED, "test_truncate_prompt_tokens")
def test_truncated_embedding_input_keeps_the_last_tokens(client, tokenizer):
    for given in ([TEXT + " " + TEXT], tokenizer.encode(TEXT + " " + TEXT)):
        right_usage(embed(client, given, truncate_prompt_tokens=10), 1, 10)
    with pytest.raises(openai.BadRequestError, match="truncate_prompt_tokens"):
        embed(client, TEXT, truncate_prompt_tokens=8193)


def embed_turns(served, **fields):
    return served.post("/v1/embeddings", {"model": "demo", "messages": TURNS, "encoding_format": "float"} | fields)


@peer(EMBED, "test_chat_request[the turns]")
def test_conversation_is_embedded_per_generation_flags(served, client, tokenizer):
    closed, opened, continued = lengths(tokenizer)
    answer = embed_turns(served)
    assert answer["object"] == "list" and answer["model"] == "demo" and answer["usage"]["prompt_tokens"] == closed
    text = embed(client, tokenizer.apply_chat_template(TURNS, tokenize=False))
    assert answer["data"][0]["embedding"] == pytest.approx(text.data[0].embedding, abs=1e-4)
    assert embed_turns(served, add_generation_prompt=True)["usage"]["prompt_tokens"] == opened
    assert embed_turns(served, continue_final_message=True)["usage"]["prompt_tokens"] == continued


@peer(EMBED, "test_base64_embedding")
def test_base64_embeddings_equal_floats(client):
    texts = ["Hello my name is", TEXT]
    numbers = [item.embedding for item in embed(client, texts).data]
    coded = client.embeddings.create(model="demo", input=texts, encoding_format="base64").data
    default = client.embeddings.create(model="demo", input=texts).data
    for expected, item, plain in zip(numbers, coded, default):
        decoded = numpy.frombuffer(base64.b64decode(item.embedding), dtype="float32").tolist()
        assert decoded == pytest.approx(expected, abs=1e-5) and plain.embedding == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("field", ["encoding_format", "embed_dtype", "endianness"])
@peer(EMBED, "test_params_not_supported[the refusal]")
def test_unknown_encoding_format_is_refused(served, field):
    assert field in refused(served, "/v1/embeddings", "demo", input=TEXT, **{"encoding_format": "base64"} | {field: f"bad_{field}"})


@peer(EMBED, "test_params_not_supported[the words]")
def test_unknown_encoding_format_is_a_literal_error(served):
    assert "literal_error" in refused(served, "/v1/embeddings", "demo", input=TEXT, encoding_format="bad")


@peer(EMBED, "test_use_activation")
def test_embeddings_are_normalised_unless_disabled(client):
    default, with_it, without = (numpy.array(embed(client, TEXT, use_activation=wish).data[0].embedding) for wish in (None, True, False))
    assert numpy.allclose(default, with_it) and not numpy.allclose(with_it, without, atol=1e-2)
    assert numpy.allclose(with_it, without / numpy.linalg.norm(without), atol=1e-4)


def embed_parts(served, content):
    answer = served.post("/v1/embeddings", {"model": "demo", "messages": [{"role": "user", "content": content}], "encoding_format": "float"})
    assert answer["model"] == "demo" and len(answer["data"]) == 1 and len(answer["data"][0]["embedding"]) == WIDTH
    assert answer["usage"]["total_tokens"] == answer["usage"]["prompt_tokens"]
    return answer


@peer(PICTURES, "test_chat_text_request")
def test_text_message_is_embedded(served, tokenizer):
    expected = len(tokenizer.apply_chat_template([{"role": "user", "content": TEXT}]))
    assert embed_parts(served, TEXT)["usage"]["prompt_tokens"] == expected


@peer(PICTURES, "test_chat_image_url_request")
@peer(PICTURES, "test_chat_image_base64_request")
def test_picture_embedding_is_equal_by_url_and_in_body(served, samples_url):
    words = text_part("Represent the user's input.")
    data = (DEMO / "samples" / "street-1.png").read_bytes()
    by_url, within = (embed_parts(served, [words, image_part(url)]) for url in (f"{samples_url}/street-1.png", data_url(data)))
    assert by_url["usage"]["prompt_tokens"] == within["usage"]["prompt_tokens"]
    assert by_url["data"][0]["embedding"] == pytest.approx(within["data"][0]["embedding"], abs=1e-4)


@pytest.mark.parametrize("mode, kind", [("RGB", "JPEG"), ("P", "PNG"), ("RGB", "PNG"), ("RGBA", "PNG")])
@peer(PICTURES, "test_image_embedding")
def test_pictures_of_all_formats_are_embedded(served, mode, kind):
    buffer = io.BytesIO()
    Image.open(DEMO / "samples" / "street-1.png").convert(mode).resize((80, 48)).save(buffer, kind)
    words = "Represent the given image."
    answer = embed_parts(served, [image_part(data_url(buffer.getvalue(), f"image/{kind.lower()}")), text_part(words)])
    assert answer["usage"]["prompt_tokens"] == prompt_tokens(buffer.getvalue(), words, add_generation_prompt=False)
