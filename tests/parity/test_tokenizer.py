"""src/text against the `tokenizers` package: ids, decoded and streamed text; and the chat format against jinja2.

The text_probe program is looked up in $VALORA_BIN_DIR (default: build) and its subfolders.
"""

import itertools
import json
import random
import subprocess
import unicodedata

import jinja2
import pytest
from tokenizers import Regex

import tokenizer_parity as parity
from programs import find_program
from tokenizer_parity import expect_equal

BEHAVIORS = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]


@pytest.fixture(scope="module")
def qwen2(tmp_path_factory):
    tokenizer = parity.qwen2_like()
    return tokenizer, parity.save(tokenizer, tmp_path_factory.mktemp("qwen2"))


def test_qwen2_fuzz_corpus_equals_reference(qwen2):
    texts = parity.corpus(10_000)
    assert len(set(texts)) > 9_000
    answers = expect_equal(*qwen2, texts)
    for text, answer in zip(texts, answers):  # byte-level: only normalization loses information
        assert answer["decoded"] == qwen2[0].normalizer.normalize_str(text), ascii(text)


def test_merges_written_as_strings_are_read(qwen2, tmp_path):
    folder = parity.save(qwen2[0], tmp_path, merges_as_strings=True)
    expect_equal(qwen2[0], folder, parity.corpus(500, seed=21))


def test_every_code_point_equals_reference(qwen2):
    code_points = parity.all_code_points()
    chunks = [code_points[i:i + 32] for i in range(0, len(code_points), 32)]
    # As a word, after a letter, between spaces, and before and after marks of a low and a high
    # class.
    texts = ["".join(f"{c}a{c}{c} {c}1 {c} e{c}\u0334\u0345e\u0345{c}\u0301'{c}" for c in chunk) for chunk in chunks]
    expect_equal(*qwen2, texts)


@pytest.mark.parametrize("build", [parity.gpt2_like, parity.llama3_like,
                                   lambda: parity.llama3_like(parity.O200K_WORDS), lambda: parity.llama3_like(parity.TEKKEN_WORDS)],
                         ids=["gpt2", "llama3", "o200k", "tekken"])
def test_other_byte_level_tokenizers_equal_reference(build, tmp_path):
    tokenizer = build()
    specials = ["<|endoftext|>", "<|begin|>", "<|end|>"]
    expect_equal(tokenizer, parity.save(tokenizer, tmp_path), parity.corpus(3000, specials, seed=22))


@pytest.mark.parametrize("behavior,invert", itertools.product(BEHAVIORS, [False, True]))
@pytest.mark.parametrize("pattern", [Regex(r"[\p{P}\s]+?"), " ", Regex(r"(?<=\p{Lu})\p{Ll}*|\d{2}|(?!a)\p{L}{2,}")],
                         ids=["lazy", "literal", "lookbehind"])
def test_split_behaviors_equal_reference(behavior, invert, pattern, tmp_path):
    tokenizer = parity.split_like(behavior, invert, pattern)
    expect_equal(tokenizer, parity.save(tokenizer, tmp_path), parity.corpus(400, seed=23))


@pytest.mark.parametrize("fuse", [False, True])
def test_unknown_characters_equal_reference(fuse, tmp_path):
    tokenizer = parity.unknown_like(fuse)
    expect_equal(tokenizer, parity.save(tokenizer, tmp_path), parity.corpus(1500, ["<unk>"], seed=24))


def test_added_tokens_with_every_flag_equal_reference(tmp_path):
    tokenizer = parity.added_like()
    folder = parity.save(tokenizer, tmp_path)
    rng = random.Random(25)
    around = ["", " ", "  ", "\n", "a", "1", "_", "-", "é", "\u0301", "\u200d", "Ⓐ", "\u3000", "中", "s", "<", ">"]
    texts = ["".join(rng.choice(parity.ADDED + around) for _ in range(rng.randint(1, 9))) for _ in range(6000)]
    expect_equal(tokenizer, folder, texts)
    # single_word depends on whether each character is a word character
    code_points = parity.all_code_points()
    expect_equal(tokenizer, folder, ["".join(f"{c}word{c} <lr>{c}" for c in code_points[i:i + 64])
                                     for i in range(0, len(code_points), 64)])


def test_digit_splitting_of_numeric_characters_equals_reference(tmp_path):
    tokenizer = parity.split_like("isolated", True, "\x00\x00")
    numeric = [c for c in parity.all_code_points() if unicodedata.category(c) in ("Nd", "Nl", "No", "Cn", "Lo")]
    texts = ["".join(f"{c}{c}a" for c in numeric[i:i + 64]) for i in range(0, len(numeric), 64)]
    expect_equal(tokenizer, parity.save(tokenizer, tmp_path), texts)


@pytest.mark.parametrize("skip", [False, True])
def test_decoding_of_random_ids_equals_reference(qwen2, skip):
    """Random ids are mostly broken UTF-8: each invalid part becomes one U+FFFD, as in the reference."""
    tokenizer, folder = qwen2
    rng = random.Random(26)
    size = tokenizer.get_vocab_size()
    lists = [[rng.randrange(size if rng.random() < 0.7 else 256) for _ in range(rng.randint(0, 12))]
             for _ in range(4000)]
    lists += [[size, 0, size + 5, 1]]  # unknown ids are skipped
    answers = parity.ask(folder, [{"ids": ids, "skip_special_tokens": skip} for ids in lists])
    for ids, answer in zip(lists, answers):
        reference = tokenizer.decode(ids, skip_special_tokens=skip)
        assert answer["decoded"] == reference, ids
        assert answer["streamed"] == reference, ids


def test_long_texts_equal_reference_in_time(qwen2):
    """Long runs of one character, of marks, or of spaces must not take longer than other text of that
    length."""
    long = 300_000
    texts = ["a" * long, " " * long, "\n" * long, "1" * long, "'" * long, "<|" * (long // 2), " \n" * (long // 2),
             "\u0301\u0327" * (long // 4), "字" * (long // 3)]
    answers = parity.ask(qwen2[1], [{"text": t} for t in texts])
    for text, answer in zip(texts, answers):
        assert answer["ids"] == qwen2[0].encode(text).ids, ascii(text[:10])


def test_invalid_file_is_refused_with_the_reason(qwen2, tmp_path):
    data = json.loads((qwen2[1] / "tokenizer.json").read_text())
    data["decoder"] = {"type": "CTC"}
    (tmp_path / "tokenizer.json").write_text(json.dumps(data))
    done = subprocess.run([find_program("text_probe"), str(tmp_path)], input="", capture_output=True, text=True)
    assert done.returncode == 1
    assert "tokenizer.json" in done.stderr and '"CTC" is not supported' in done.stderr


CHATML = """\
{%- if messages[0].role != 'system' and default_system %}{{ '<|im_start|>system\\n' + default_system }}<|im_end|>
{% endif %}
{%- for message in messages %}<|im_start|>{{ message.role }}
{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}
{%- if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>
{%- elif part.type == 'video' %}<|vision_start|><|video_pad|><|vision_end|>
{%- else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def random_conversation(rng):
    texts = ["Hello", " two\nlines \n", "", "猫?", "<|im_end|>", "{{ x }}"]

    def content():
        if rng.random() < 0.4:
            return rng.choice(texts)
        kinds = [{"type": "image"}, {"type": "video"}, {"type": "text", "text": rng.choice(texts)}]
        return [dict(rng.choice(kinds)) for _ in range(rng.randint(0, 5))]

    roles = ["system", "user", "assistant", "tool"]
    return [{"role": rng.choice(roles), "content": content()} for _ in range(rng.randint(1, 6))]


def test_built_in_chatml_equals_an_equivalent_template(qwen2):
    rng = random.Random(27)
    requests = [{"messages": random_conversation(rng), "add_generation_prompt": rng.random() < 0.5,
                 "default_system": rng.choice(["You are a helpful assistant.", "", "Be brief."])} for _ in range(500)]
    template = jinja2.Environment(keep_trailing_newline=True).from_string(CHATML)
    for request, answer in zip(requests, parity.ask(qwen2[1], requests)):
        assert answer["rendered"] == template.render(**request), request
