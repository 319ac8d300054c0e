"""src/text against `tokenizers` in the layouts of Llama 2, Vicuna, LLaVA and Llama 3, and with every
normalizer."""

import itertools
import json
import random
import subprocess

import pytest
import transformers
from tokenizers import AddedToken, Regex, normalizers, pre_tokenizers

import llama_tokenizers as llama
import tokenizer_parity as parity
from programs import find_program
from tokenizer_parity import expect_equal

SPECIALS = llama.SPECIAL + llama.IMAGE + ["▁", "<0x0A>", "<0xE5>"]
EDGES = ["", " ", "  ", "   ", "\n", "\n\n", " \n ", "▁", "▁▁ ", "a", " a", "a ", "<s>", " <s>", "<s> ", "<s>a",
         "<s> a", "a<s>", "a <s> b", "<image>\nwhat", " <image> <image>", "<unk>", "字\x00字", "\U0001f600 \U0001f600", "�"]


def mixed(pieces, count, seed):
    rng = random.Random(seed)
    around = ["", " ", "  ", "\n", "a", "1", "_", "-", "é", "\u0301", "Ⓐ", "\u3000", "中", "s", "<", ">", "▁", "the",
              " the"]
    return ["".join(rng.choice(pieces + around) for _ in range(rng.randint(1, 9))) for _ in range(count)]


def check(tokenizer, folder, texts):
    return expect_equal(tokenizer, parity.save(tokenizer, folder), texts)


@pytest.mark.parametrize("prepend", [True, False])
def test_normalizer_layout_equals_reference(prepend, tmp_path):
    tokenizer = llama.with_normalizer(prepend)
    answers = check(tokenizer, tmp_path, EDGES + parity.corpus(3000, SPECIALS, seed=40))
    used = {i for answer in answers for i in answer["ids"]}
    assert len(used) > 500 and len(used & set(range(3, 259))) > 150  # tokens and byte tokens of all kinds


@pytest.mark.parametrize("scheme,split", itertools.product(["always", "first", "never"], [True, False]))
@pytest.mark.parametrize("decoder", ["sequence", "metaspace"])
def test_metaspace_layout_equals_reference(scheme, split, decoder, tmp_path):
    check(llama.with_metaspace(scheme, split, decoder), tmp_path, EDGES + parity.corpus(700, SPECIALS, seed=41))


@pytest.mark.parametrize("settings", [{"add_prefix_space": True, "str_rep": "▁"}, {}, {"split": None},
                                      {"add_prefix_space": False, "prepend_scheme": "never"}], ids=str)
def test_older_metaspace_files_equal_reference(settings, tmp_path):
    tokenizer = llama.with_metaspace("always", True, "metaspace")
    data = json.loads(tokenizer.to_str())
    data["pre_tokenizer"] = data["decoder"] = {"type": "Metaspace", "replacement": "▁"} | settings
    reference = type(tokenizer).from_str(json.dumps(data))
    (tmp_path / "tokenizer.json").write_text(json.dumps(data))
    expect_equal(reference, tmp_path, EDGES + parity.corpus(300, SPECIALS, seed=42))


@pytest.mark.parametrize("build", [
    lambda: llama.with_normalizer(True), lambda: llama.with_normalizer(False),
    lambda: llama.with_metaspace("first", True), lambda: llama.with_metaspace("first", False),
    lambda: llama.with_metaspace("always", True), lambda: llama.with_metaspace("never", True)],
    ids=["prepend", "replace", "first split", "first", "always", "never"])
def test_added_tokens_with_every_flag_equal_reference(build, tmp_path):
    tokenizer = llama.add_tokens_of_every_flag(build())
    check(tokenizer, tmp_path, EDGES + mixed(llama.ADDED, 2500, seed=43))


NORMALIZERS = {
    "nfc": [normalizers.NFC()], "nfd": [normalizers.NFD()], "nfkc": [normalizers.NFKC()], "nfkd": [normalizers.NFKD()],
    "lowercase": [normalizers.Lowercase()], "strip": [normalizers.Strip()],
    "strip left": [normalizers.Strip(True, False)], "strip right": [normalizers.Strip(False, True)],
    "albert": [normalizers.Replace("``", '"'), normalizers.NFKD(), normalizers.Lowercase(),
               normalizers.Replace(Regex(" {2,}"), " ")],
    "replacements": [normalizers.Replace(Regex("x+"), "-"), normalizers.Replace("the", ""),
                     normalizers.Replace(Regex(r"\s+(?=\S)"), " "), normalizers.Replace("ab", "Abc")],
    "prepend and strip": [normalizers.Prepend(" "), normalizers.Strip(), normalizers.Prepend("é▁")],
    "all": [normalizers.NFKC(), normalizers.Strip(), normalizers.Lowercase(), normalizers.Prepend("▁"),
            normalizers.Replace(" ", "▁"), normalizers.NFD()],
}


@pytest.mark.parametrize("name", NORMALIZERS)
def test_normalizers_with_added_tokens_equal_reference(name, tmp_path):
    """The scheme "first", and tokens with normalized = true, depend on where a normalized text comes
    from."""
    metaspace = pre_tokenizers.Metaspace("▁", "first", True)
    tokenizer = llama.byte_level(normalizers.Sequence(NORMALIZERS[name]), metaspace)
    llama.add_tokens_of_every_flag(tokenizer)
    tokenizer.add_tokens([AddedToken("<X>", normalized=True), AddedToken("Word", normalized=True)])
    texts = mixed(llama.ADDED + ["<X>", "Word", "``", "x", "İ", "ﷺ", "①", "the", "ab"], 1500, seed=44)
    check(tokenizer, tmp_path, EDGES + texts + parity.corpus(500, llama.ADDED, seed=46))


@pytest.mark.parametrize("form", [normalizers.NFD(), normalizers.NFKC(), normalizers.NFKD(), normalizers.Lowercase()],
                         ids=["nfd", "nfkc", "nfkd", "lowercase"])
def test_every_normalized_code_point_equals_reference(form, tmp_path):
    code_points = parity.all_code_points()
    chunks = [code_points[i:i + 64] for i in range(0, len(code_points), 64)]
    texts = ["".join(f"{c}a e{c}\u0334\u0345{c}\u0301'" for c in chunk) for chunk in chunks]
    tokenizer = llama.byte_level(form)
    answers = parity.ask(parity.save(tokenizer, tmp_path), [{"text": t} for t in texts])
    for text, answer in zip(texts, answers):
        assert answer["decoded"] == form.normalize_str(text), ascii(text)


@pytest.mark.parametrize("fuse", [True, False])
def test_characters_with_untokenised_bytes_become_unknown(fuse, tmp_path):
    """Characters with a byte that has no token are unknown, and follow those that have all
    tokens."""
    tokenizer = llama.with_normalizer(byte_tokens=llama.BYTES[:0x80] + llama.BYTES[0x80:0xC0:2] + llama.BYTES[0xE0:],
                                      fuse_unk=fuse)
    answers = check(tokenizer, tmp_path, EDGES + parity.corpus(1500, SPECIALS, seed=47))
    assert sum(answer["ids"].count(0) for answer in answers) > 500


def random_ids(tokenizer, count, seed):
    """Tokens, and runs of byte tokens that do and do not form characters."""
    rng = random.Random(seed)
    size = tokenizer.get_vocab_size()

    def some():
        kind = rng.randrange(5)
        if kind == 0:
            text = rng.choice(["é", "字", "😀", "\n", "\x00", "ß字", "👩‍👩‍👧"]).encode()
            return [3 + b for b in text[:rng.choice([len(text)] * 3 + [1, 2])]]
        if kind == 1:
            return [3 + rng.randrange(256)]
        if kind == 2:
            return [rng.choice([0, 1, 2, size - 1, size - 2, size, size + 9])]
        return [rng.randrange(259, size) for _ in range(rng.randint(1, 3))]

    return [[i for _ in range(rng.randint(0, 7)) for i in some()] for _ in range(count)]


@pytest.mark.parametrize("decoder", llama.DECODERS)
@pytest.mark.parametrize("skip", [False, True])
def test_decoding_of_random_ids_equals_reference(decoder, skip, tmp_path):
    tokenizer = llama.with_normalizer(decoder=decoder)
    tokenizer.add_tokens(["<0x+7>", "<0xé>", "<0x4a>", "<0x4G>", "▁▁x", "a▁b▁"])
    lists = random_ids(tokenizer, 2500, seed=48)
    folder = parity.save(tokenizer, tmp_path)
    answers = parity.ask(folder, [{"ids": ids, "skip_special_tokens": skip} for ids in lists])
    for ids, answer in zip(lists, answers):
        reference = tokenizer.decode(ids, skip_special_tokens=skip)
        assert answer["decoded"] == reference, ids
        assert answer["streamed"] == reference, ids


@pytest.mark.parametrize("legacy", [True, False])
def test_tokens_equal_llama_tokenizer_fast(legacy, tmp_path):
    tokenizer = llama.with_normalizer() if legacy else llama.with_metaspace("first", False)
    fast = transformers.LlamaTokenizerFast(tokenizer_object=tokenizer, legacy=legacy,
                                           clean_up_tokenization_spaces=False)
    fast.save_pretrained(tmp_path)
    texts = EDGES + parity.corpus(1500, SPECIALS, seed=49)
    answers = parity.ask(tmp_path, [{"text": t} for t in texts])
    for text, answer in zip(texts, answers):
        ids = fast(text)["input_ids"]
        assert answer["ids"] == ids, ascii(text)
        assert ids[0] == fast.bos_token_id
        assert answer["decoded"] == answer["streamed"] == fast.decode(ids), ascii(text)


def test_tokens_equal_llama3_of_transformers(tmp_path):
    tokenizer = parity.llama3_like()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<|begin|>", eos_token="<|end|>",
                                                clean_up_tokenization_spaces=False)
    fast.save_pretrained(tmp_path)
    texts = EDGES + parity.corpus(1500, ["<|begin|>", "<|end|>"], seed=50)
    for text, answer in zip(texts, parity.ask(tmp_path, [{"text": t} for t in texts])):
        assert answer["ids"] == fast(text)["input_ids"], ascii(text)
        assert answer["decoded"] == answer["streamed"] == fast.decode(answer["ids"]), ascii(text)


def test_long_text_without_spaces_is_one_word(tmp_path):
    rng = random.Random(51)
    words = " ".join(rng.choice(parity.WORDS) for _ in range(150_000))  # a megabyte
    long = 250_000
    texts = ["a" * long, " " * long, "\n" * long, "字" * long, "😀" * long, words]
    check(llama.with_normalizer(), tmp_path, texts)


@pytest.mark.parametrize("part,value,reason", [
    ("normalizer", {"type": "StripAccents"}, 'normalizer "StripAccents" is not supported'),
    ("normalizer", {"type": "Precompiled", "precompiled_charsmap": "AA=="},
     'normalizer "Precompiled" is not supported'),
    ("pre_tokenizer", {"type": "Whitespace"}, 'pre-tokenizer "Whitespace" is not supported'),
    ("decoder", {"type": "WordPiece", "prefix": "##", "cleanup": True}, 'decoder "WordPiece" is not supported'),
    ("post_processor", {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1], "trim_offsets": True,
                        "add_prefix_space": True}, 'post-processor "RobertaProcessing" is not supported')])
def test_other_parts_are_refused_by_name(part, value, reason, tmp_path):
    data = json.loads(llama.with_normalizer().to_str())
    data[part] = value
    (tmp_path / "tokenizer.json").write_text(json.dumps(data))
    done = subprocess.run([find_program("text_probe"), str(tmp_path)], input="", capture_output=True, text=True)
    assert done.returncode == 1 and reason in done.stderr
