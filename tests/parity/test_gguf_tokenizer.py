"""Tokenizers in GGUF metadata, against `tokenizers` with the tokenizer that the file was made from."""

import json

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, normalizers, pre_tokenizers, processors

import gguf_files
import llama_tokenizers as llama
import tokenizer_parity as parity
from tokenizer_parity import expect_equal

try:
    from transformers.tokenization_utils_base import generate_merges
except ImportError:
    from transformers.convert_slow_tokenizer import generate_merges

SPECIALS = [*parity.QWEN2_SPECIAL, "<tool_call>"]
EDGES = ["", " ", "  ", "\n", " \n\n ", "a", " a", "▁", "<s>", "<s> a", "a<s>b", "<unk>", "<0x41>", "[PAD3]", "字\x00字", "é", "e\u0301",
         "12345 678", "١٢٣٤", "don't WE'LL", "<|im_start|>user\nHi<|im_end|>", "<tool_call>{}</tool_call>", "�"]


def words(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


BYTE_LEVEL = {
    "qwen2": (lambda: words(parity.QWEN2_WORDS), normalizers.NFC(), False),
    "deepseek-r1-qwen": (lambda: words(parity.QWEN2_WORDS), normalizers.NFC(), False),
    "llama-bpe": (lambda: words(parity.LLAMA3_WORDS), None, True),
    "tekken": (lambda: words(parity.TEKKEN_WORDS), None, True),
    "gpt-2": (lambda: pre_tokenizers.ByteLevel(add_prefix_space=False), None, False),
    "smollm": (lambda: pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                pre_tokenizers.ByteLevel(add_prefix_space=False)]), None, False)}


@pytest.fixture(scope="module")
def byte_level():
    """The content of a byte-level tokenizer.json with special tokens and one other added token."""
    tokenizer = parity.qwen2_like()
    tokenizer.add_tokens([AddedToken("<tool_call>", normalized=False)])
    return json.loads(tokenizer.to_str())


@pytest.mark.parametrize("pre", BYTE_LEVEL)
def test_byte_level_tokenizer_equals_reference(pre, byte_level, tmp_path):
    pre_tokenizer, normalizer, whole_words = BYTE_LEVEL[pre]
    data = json.loads(json.dumps(byte_level))
    data["model"]["ignore_merges"] = whole_words
    reference = Tokenizer.from_str(json.dumps(data))
    reference.pre_tokenizer = pre_tokenizer()
    if normalizer:
        reference.normalizer = normalizer
    else:
        data = json.loads(reference.to_str()) | {"normalizer": None}
        reference = Tokenizer.from_str(json.dumps(data))
    adds = pre in ("llama-bpe", "tekken")  # unless the file says otherwise
    if adds:
        reference.post_processor = processors.TemplateProcessing(
            single="<|im_start|> $A", special_tokens=[("<|im_start|>", reference.token_to_id("<|im_start|>"))])
    file = gguf_files.tokenizer_file(tmp_path / "m.gguf", byte_level, pre=pre, bos_token_id=reference.token_to_id("<|im_start|>"))
    answers = expect_equal(reference, file, EDGES + parity.corpus(2500, SPECIALS, seed=60))
    assert len({i for answer in answers for i in answer["ids"]}) > 700


def test_bos_and_eos_follow_the_file(byte_level, tmp_path):
    reference = parity.qwen2_like()
    reference.add_tokens([AddedToken("<tool_call>", normalized=False)])
    begin, end = (reference.token_to_id(t) for t in ("<|im_start|>", "<|im_end|>"))
    reference.post_processor = processors.TemplateProcessing(
        single="<|im_start|> $A <|im_end|>", special_tokens=[("<|im_start|>", begin), ("<|im_end|>", end)])
    file = gguf_files.tokenizer_file(tmp_path / "m.gguf", byte_level, pre="qwen2", bos_token_id=begin, eos_token_id=end,
                                     add_bos_token=True, add_eos_token=True)
    expect_equal(reference, file, EDGES)


def scored(tokenizer, order):
    """The tokenizer with merges ordered by scores, its content, and the scores in the order of its
    own merges."""
    data = json.loads(tokenizer.to_str())
    kept = {token["content"] for token in data["added_tokens"]} | set(llama.BYTES)
    plain = {token: i for token, i in data["model"]["vocab"].items() if token not in kept or not token.startswith("<")}
    scores = order(plain)
    merges = generate_merges(plain, scores)
    data["model"]["merges"] = [list(merge) for merge in merges]
    return Tokenizer.from_str(json.dumps(data)), data, scores


@pytest.mark.parametrize("prepend", [True, False])
def test_sentencepiece_tokenizer_equals_reference(prepend, tmp_path):
    reference, data, scores = scored(llama.with_normalizer(prepend, "sequence" if prepend else "no strip"),
                                     lambda plain: {token: -float(i) for token, i in plain.items()})
    file = gguf_files.tokenizer_file(tmp_path / "m.gguf", data, scores=scores, bos_token_id=1)
    answers = expect_equal(reference, file, EDGES + parity.corpus(2500, llama.SPECIAL + llama.IMAGE + ["▁", "<0x0A>"], seed=61))
    used = {i for answer in answers for i in answer["ids"]}
    assert len(used) > 500 and len(used & set(range(3, 259))) > 150


def test_equal_scores_merge_as_in_transformers(tmp_path):
    reference, data, scores = scored(llama.with_normalizer(True), lambda plain: {token: -float(i % 5) for token, i in plain.items()})
    file = gguf_files.tokenizer_file(tmp_path / "m.gguf", data, scores=scores, bos_token_id=1)
    expect_equal(reference, file, EDGES + parity.corpus(1000, llama.SPECIAL, seed=62))


def test_gemma_merges_follow_the_order_of_ids(tmp_path):
    """Merges follow the order of ids, whatever the scores."""
    tokenizer = llama.gemma()
    tokenizer.add_tokens([AddedToken("▁▁▁", normalized=False)])
    reference, data, _ = scored(tokenizer, lambda plain: {token: -float(i) for token, i in plain.items()})
    stored = json.loads(json.dumps(data).replace(r"\u2581\u2581\u2581", "SPACES"))
    for token in stored["added_tokens"]:  # the converter writes runs of spaces literally
        token["content"] = token["content"].replace("SPACES", "   ")
    stored["model"]["vocab"] = {token.replace("SPACES", "   " if token == "SPACES" else "▁▁▁"): i
                                for token, i in stored["model"]["vocab"].items()}
    file = gguf_files.tokenizer_file(tmp_path / "m.gguf", stored, "gemma3", scores={}, bos_token_id=tokenizer.token_to_id("<bos>"))
    expect_equal(reference, file, EDGES + ["a   b", "    ", "▁▁▁▁"] + parity.corpus(1500, llama.GEMMA + ["▁▁▁", "\n\n"], seed=63))


@pytest.mark.parametrize("settings, message", [
    (dict(pre="qwen35"), '"tokenizer.ggml.pre" is "qwen35", which is not supported, only gpt-2, smollm, qwen2'),
    (dict(pre="default"), '"tokenizer.ggml.pre" does not say how texts are split into words: convert the model again'),
    (dict(pre="qwen2", add_bos_token=True), '"tokenizer.ggml.bos_token_id" is missing, which texts begin or end with'),
    (dict(pre="qwen2", bos_token_id=99999, add_bos_token=True), '"tokenizer.ggml.bos_token_id" is outside the vocabulary'),
    (dict(pre="qwen2", add_sep_token=True), '"tokenizer.ggml.add_sep_token" is not supported'),
], ids=str)
def test_invalid_vocabulary_is_refused(settings, message, byte_level, tmp_path):
    file = gguf_files.tokenizer_file(tmp_path / "m.gguf", byte_level, **settings)
    with pytest.raises(AssertionError) as error:
        parity.ask(file, [{"text": "a", "add_special_tokens": True}])
    assert message in str(error.value)


def test_other_kinds_are_refused_by_name(byte_level, tmp_path):
    file = gguf_files.tokenizer_file(tmp_path / "m.gguf", byte_level, pre="qwen2")
    content = file.read_bytes()
    assert content.count(b"gpt2") == 1
    file.write_bytes(content.replace(b"gpt2", b"bert"))
    with pytest.raises(AssertionError, match='"tokenizer.ggml.model" is "bert", which is not supported'):
        parity.ask(file, [{"text": "a", "add_special_tokens": True}])
