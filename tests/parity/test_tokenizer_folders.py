"""Added tokens that are only listed in the files next to tokenizer.json, against AutoTokenizer's fast tokenizers: ids, flags and
decoding."""

import json
import random

import pytest
from transformers import AutoTokenizer, PreTrainedTokenizerFast

import tokenizer_parity as parity

KNOWN = 3  # number of Qwen2's special tokens in tokenizer.json


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The content of a tokenizer.json with all of Qwen2's special tokens."""
    folder = parity.save(parity.qwen2_like(), tmp_path_factory.mktemp("whole"))
    return json.loads((folder / "tokenizer.json").read_text())


def token(content, **flags):
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"content": content} | plain | flags


def added(content, **flags):
    return {"__type": "AddedToken"} | token(content, **flags)


def entries(tokens):
    return {str(t["id"]): {key: value for key, value in t.items() if key != "id"} for t in tokens}


def published(tokens):
    """As in Qwen2-VL-2B-Instruct: the vision tokens are only in tokenizer_config.json."""
    return {"added_tokens_decoder": entries(tokens), "eos_token": tokens[2]["content"], "pad_token": tokens[0]["content"],
            "additional_special_tokens": [t["content"] for t in tokens[1:]]}, {}


def other_flags(tokens):
    changed = [dict(t) for t in tokens]
    changed[1] |= {"lstrip": True, "special": False}
    changed[KNOWN] |= {"rstrip": True, "special": False, "normalized": True}
    return {"added_tokens_decoder": entries(changed)}, {}


def own_ids_that_are_not_the_next(tokens):
    first = tokens[0]["id"]
    more = {str(first + 900): token("<late>"), str(first + 50): token("<early>", special=False, normalized=True), "5": token("<five>")}
    return {"added_tokens_decoder": entries(tokens[:KNOWN]) | more}, {"special_tokens_map.json": {"pad_token": "<ignored>"}}


def named(tokens):
    return {"added_tokens_decoder": entries(tokens[:KNOWN]), "pad_token": "[PAD]", "mask_token": added("<m>", lstrip=True, special=False),
            "cls_token": tokens[0]["content"], "extra_special_tokens": {"image_token": "<i>"},
            "additional_special_tokens": ["<x>", tokens[1]["content"], added("<y>", rstrip=True)]}, {}


def older(tokens):
    first = tokens[KNOWN]["id"]
    return {"unk_token": "<old>"}, {
        "added_tokens.json": {"<w>": first, "[PAD]": first + 1, "<v>": first + 9},
        "special_tokens_map.json": {"pad_token": "[PAD]", "mask_token": token("<m>", lstrip=True), "unk_token": "<unk>",
                                    "additional_special_tokens": ["<z>", token("<q>", rstrip=True)]}}


def newest(tokens):
    """As written by transformers 5."""
    return {"backend": "tokenizers", "eos_token": tokens[2]["content"], "pad_token": "[PAD]"}, {}


@pytest.mark.parametrize("kind", ["Qwen2Tokenizer", "PreTrainedTokenizerFast"])
@pytest.mark.parametrize("layout", [published, other_flags, own_ids_that_are_not_the_next, named, older, newest], ids=lambda f: f.__name__)
def test_added_tokens_of_a_folder_equal_reference(whole, tmp_path, layout, kind):
    tokens = whole["added_tokens"]
    config, files = layout(tokens)
    (tmp_path / "tokenizer.json").write_text(json.dumps(whole | {"added_tokens": tokens[:KNOWN]}))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": kind} | config))
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    reference = AutoTokenizer.from_pretrained(tmp_path).backend_tokenizer
    names = [t["content"] for t in json.loads(reference.to_str())["added_tokens"]]
    rng = random.Random(4)
    texts = [f"a {name} b{name}\t{name}  c" for name in names + ["<ignored>", "<old>"]]
    texts += ["".join(rng.choice(names + [" ", "x", "\n", "Y "]) for _ in range(12)) for _ in range(200)]
    answers = parity.expect_equal(reference, tmp_path, texts)
    without = parity.ask(tmp_path, [{"ids": answer["ids"], "skip_special_tokens": True} for answer in answers])
    for text, answer, rest in zip(texts, answers, without):
        assert rest["decoded"] == reference.decode(answer["ids"], skip_special_tokens=True), ascii(text)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A tokenizer.json of more than 100,000 tokens with the older words of Mistral's tokenizers."""
    tokenizer = parity.llama3_like()
    first = tokenizer.get_vocab_size()
    content = json.loads(tokenizer.to_str())
    content["model"]["vocab"] |= {f"filler{i}\u0120": first + i for i in range(100_500)}
    return content


ASKED = {"fix_mistral_regex": True}
MISTRAL = {"model_type": "mistral", "transformers_version": "4.57.3"}


@pytest.mark.parametrize("config, settings, mended", [
    (MISTRAL, ASKED, True), (MISTRAL, {"fix_mistral_regex": False}, False), (MISTRAL, {}, False),
    (MISTRAL | {"transformers_version": "4.40.0", "model_type": "pixtral"}, ASKED, True),
    (MISTRAL | {"transformers_version": "5.1.0"}, ASKED, False), ({"model_type": "mistral3"}, ASKED, True),
    (MISTRAL | {"model_type": "llama", "transformers_version": "4.57.2"}, ASKED, False)],
    ids=["asked", "not", "without", "pixtral", "new", "unknown-release", "llama"])
def test_words_of_mistral_are_mended_as_in_reference(large, tmp_path, config, settings, mended):
    (tmp_path / "tokenizer.json").write_text(json.dumps(large))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"} | settings))
    (tmp_path / "config.json").write_text(json.dumps(config))
    reference = PreTrainedTokenizerFast.from_pretrained(tmp_path).backend_tokenizer
    assert (parity.TEKKEN_WORDS in json.loads(reference.to_str())["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"]) == mended
    parity.expect_equal(reference, tmp_path, ["camelCase HTTPServer 12345", "ab/\n/ x"] + parity.corpus(200, ["<|begin|>"]))
