"""Tokenizers, texts and the probe for test_tokenizer.py's comparison of `tokenizers` with
valora."""

import json
import random
import subprocess

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from programs import find_program

QWEN2_WORDS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
               r"|\s+(?!\S)|\s+")
LLAMA3_WORDS = QWEN2_WORDS.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
O200K_WORDS = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll"
               r"|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve"
               r"|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TEKKEN_WORDS = O200K_WORDS.replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace(r"\p{N}{1,3}", r"\p{N}")
QWEN2_SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>",
                 "<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>",
                 "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"]

SCRIPTS = [(0x41, 0x5A), (0x61, 0x7A), (0xC0, 0x17F), (0x370, 0x3FF), (0x400, 0x4FF), (0x531, 0x586), (0x5D0, 0x5EA),
           (0x620, 0x64A), (0x904, 0x939), (0x985, 0x9B9), (0xE01, 0xE30), (0x10A0, 0x10FF), (0x1100, 0x11FF),
           (0x1E00, 0x1EFF), (0x1F00, 0x1FFC), (0x3041, 0x3096), (0x30A1, 0x30FA), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3),
           (0xF900, 0xFAFF), (0xFF01, 0xFF5E), (0x10400, 0x1044F), (0x1D400, 0x1D7FF), (0x20000, 0x2A6DF),
           (0x2F800, 0x2FA1D), (0x31350, 0x323AF)]
MARKS = [(0x300, 0x36F), (0x483, 0x487), (0x591, 0x5BD), (0x64B, 0x65F), (0x8D3, 0x8FF), (0x93A, 0x94D), (0xE31, 0xE4E),
         (0x1AB0, 0x1ACE), (0x1DC0, 0x1DFF), (0x20D0, 0x20F0), (0x3099, 0x309A), (0xFE00, 0xFE0F), (0xFE20, 0xFE2F)]
DIGITS = [(0x30, 0x39), (0x660, 0x669), (0x966, 0x96F), (0xFF10, 0xFF19), (0xB2, 0xB3), (0xBC, 0xBE), (0x2150, 0x2189),
          (0x2460, 0x249B), (0x1D7CE, 0x1D7FF)]
SPACES = list(" \t\n\v\f\r\x1c\x1f\x85\xa0\u1680\u180e\u2000\u2003\u2009\u200a\u200b\u2028\u2029\u202f\u205f\u2060"
              "\u3000\ufeff") + ["  ", "\r\n", "\n\n", "   ", " \n ", "\t\t"]
EMOJI = ["😀", "👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🇩🇪🇯🇵", "❤️", "🧑🏿‍🚀", "1️⃣", "☺", "🫠", "‍", "\ufe0f"]
PUNCTUATION = list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~«»…—–“”‘’¿¡、。！？€£¥°±×÷→∞≠")
PUNCTUATION += ["...", "'s", "'LL", "'ſ", "</", "|>", "<|"]
WORDS = ("the image shows a red circle left of two small squares what is in this picture der die das und nicht "
         "être où déjà l'été naïve señor mañana что это такое на картинке 这张图片里有什么 一只 猫 どんな絵 ですか 고양이 "
         "그림 הבית الصورة चित्र ภาพ Ελλάδα don't I'm we've THEY'LL it's").split()


def byte_characters():
    """The printable character that stands for each byte in byte-level vocabularies."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}


def pick(rng, ranges):
    return chr(rng.randint(*rng.choice(ranges)))


def fragment(rng, specials):
    kind = rng.randrange(13)
    if kind < 3:
        return rng.choice(WORDS) + rng.choice(["", " ", " "])
    if kind == 3:
        script = rng.choice(SCRIPTS)
        return "".join(chr(rng.randint(*script)) for _ in range(rng.randint(1, 8)))
    if kind == 4:
        return pick(rng, SCRIPTS) + "".join(pick(rng, MARKS) for _ in range(rng.randint(1, 5)))
    if kind == 5:
        return "".join(pick(rng, DIGITS) for _ in range(rng.randint(1, 6)))
    if kind == 6:
        return "".join(rng.choice(SPACES) for _ in range(rng.randint(1, 5)))
    if kind == 7:
        return rng.choice(EMOJI)
    if kind == 8:
        return "".join(rng.choice(PUNCTUATION) for _ in range(rng.randint(1, 4)))
    if kind == 9:
        return chr(rng.choice([*range(0x20), *range(0x7F, 0xA0)]))
    if kind == 10:
        special = rng.choice(specials)
        return rng.choice([special, special, special[:-1], " " + special + " ", special.upper(), special * 2])
    if kind == 11:
        return any_code_point(rng)
    return rng.choice("abcdé字ね가") * rng.randint(2, 30)


def any_code_point(rng):
    c = rng.randrange(0x110000 - 0x800)
    return chr(c if c < 0xD800 else c + 0x800)


def all_code_points():
    """Every character outside the large uniform blocks (ideographs, private use, …), and one in 29 of
    those."""
    uniform = [(0x3400, 0xA000), (0xAC00, 0xF900), (0x17000, 0x18C00), (0x20000, 0x110000)]
    kept = lambda c: c % 29 == 0 or not any(first <= c < end for first, end in uniform)
    return [chr(c) for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF and kept(c)]


def corpus(count, specials=QWEN2_SPECIAL, seed=20):
    rng = random.Random(seed)
    return ["".join(fragment(rng, specials) for _ in range(rng.randint(0, 12))) for _ in range(count)]


def training_text(seed=7):
    rng = random.Random(seed)
    for _ in range(4000):
        yield " ".join(rng.choice(WORDS) for _ in range(12)) + rng.choice([".\n", "?", " 1984\n\n", " 😀 "])
    yield from corpus(2000, seed=seed)


def train(tokenizer, vocab_size, specials=(), alphabet=None):
    alphabet = pre_tokenizers.ByteLevel.alphabet() if alphabet is None else alphabet
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, initial_alphabet=sorted(alphabet), show_progress=False,
                                  special_tokens=list(specials))
    tokenizer.train_from_iterator(training_text(), trainer)
    return tokenizer


def qwen2_like():
    tokenizer = Tokenizer(models.BPE(continuing_subword_prefix="", end_of_word_suffix=""))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(QWEN2_WORDS), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.decoder = decoders.ByteLevel()
    train(tokenizer, 3000)
    tokenizer.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in QWEN2_SPECIAL])
    return tokenizer


def gpt2_like():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    train(tokenizer, 1500, ["<|endoftext|>"])
    return tokenizer


def llama3_like(words=LLAMA3_WORDS):
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(words), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    train(tokenizer, 1500)
    tokenizer.add_special_tokens(["<|begin|>", "<|end|>"])
    bos, eos = (tokenizer.token_to_id(t) for t in ("<|begin|>", "<|end|>"))
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<|begin|> $A <|end|>",
                                      special_tokens=[("<|begin|>", bos), ("<|end|>", eos)])])
    return tokenizer


def split_like(behavior, invert, pattern):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=invert),
        pre_tokenizers.Split(pattern, behavior, invert),
        pre_tokenizers.ByteLevel(add_prefix_space=invert, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    return train(tokenizer, 800)


def unknown_like(fuse):
    """A tokenizer in which many characters have no token: no byte alphabet, most scripts
    unknown."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=fuse))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"\s+"), "merged_with_next")
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=400, limit_alphabet=60, show_progress=False, special_tokens=["<unk>"])
    tokenizer.train_from_iterator(training_text(), trainer)
    return tokenizer


ADDED = ["<l>", "<r>", "<lr>", "word", "é", "Å", "e\u0301t", "<n>", "😀", "  ", "of", "字"]


def added_like():
    """Added tokens with every flag; some occur as words in the text, some are changed by the
    normalizer."""
    tokenizer = qwen2_like()
    tokenizer.add_tokens([
        AddedToken("<l>", lstrip=True), AddedToken("<r>", rstrip=True, normalized=False),
        AddedToken("<lr>", lstrip=True, rstrip=True, normalized=False), AddedToken("word", single_word=True),
        AddedToken("é", normalized=True), AddedToken("\u212b", normalized=True),
        AddedToken("e\u0301t", normalized=False),
        AddedToken("<n>", normalized=True, single_word=True, lstrip=True), AddedToken("😀", rstrip=True),
        AddedToken("  ", rstrip=True, normalized=False), AddedToken("of", single_word=True, normalized=False)])
    tokenizer.add_special_tokens([AddedToken("字", special=True, normalized=True)])
    return tokenizer


def save(tokenizer, folder, merges_as_strings=False):
    folder.mkdir(parents=True, exist_ok=True)
    data = json.loads(tokenizer.to_str())
    if merges_as_strings:
        data["model"]["merges"] = [" ".join(merge) for merge in data["model"]["merges"]]
    (folder / "tokenizer.json").write_text(json.dumps(data, ensure_ascii=False))
    return folder


def ask(folder, requests):
    """text_probe's answers to the requests, in order."""
    lines = "".join(json.dumps(r) + "\n" for r in requests)
    done = subprocess.run([find_program("text_probe"), str(folder)], input=lines, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.split("\n") if line]
    assert len(answers) == len(requests)
    return answers


def expect_equal(tokenizer, folder, texts):
    """Compares ids, decoded text and streamed text for every text, with and without the post-processor."""
    answers = ask(folder, [{"text": t, "add_special_tokens": i % 2 == 0} for i, t in enumerate(texts)])
    encoded = [tokenizer.encode(t, add_special_tokens=i % 2 == 0).ids for i, t in enumerate(texts)]
    decoded = tokenizer.decode_batch(encoded, skip_special_tokens=False)
    for text, answer, ids, reference in zip(texts, answers, encoded, decoded):
        assert answer["ids"] == ids, ascii(text)
        assert answer["decoded"] == reference, ascii(text)
        assert answer["streamed"] == reference, ascii(text)
    return answers
