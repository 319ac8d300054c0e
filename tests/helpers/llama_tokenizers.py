"""Tokenizers in the layouts of Llama's tokenizer.json files, trained on the texts of tokenizer_parity."""

import functools
import json

from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

import tokenizer_parity as parity

SPECIAL = ["<unk>", "<s>", "</s>"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
IMAGE = ["<image>", "<pad>"]
DECODERS = {
    "sequence": lambda: decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)]),
    "no strip": lambda: decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]),
    "unfused": lambda: decoders.Sequence([decoders.Replace("▁the", "<0x41>"), decoders.Replace("▁", " "),
                                          decoders.ByteFallback(), decoders.Strip(" ", 2, 0)]),
    "metaspace": decoders.Metaspace,
    "metaspace and bytes": lambda: decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace("▁", "first")]),
    "metaspace never": lambda: decoders.Metaspace("▁", "never"),
}


@functools.cache
def trained(size, alphabet):
    """Tokens and merges. Most characters only have byte tokens; some tokens span spaces."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    trainer = trainers.BpeTrainer(vocab_size=size, limit_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(parity.training_text(), trainer)
    data = json.loads(tokenizer.to_str())["model"]
    return sorted(data["vocab"], key=data["vocab"].get), [tuple(merge) for merge in data["merges"]]


def model(byte_tokens=BYTES, fuse_unk=True, size=1500, alphabet=90):
    tokens, merges = trained(size, alphabet)
    vocab = {token: i for i, token in enumerate(SPECIAL + list(byte_tokens) + tokens)}
    return models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=fuse_unk, byte_fallback=True)


def finished(tokenizer, decoder):
    """Adds the special tokens and the template of a LLaVA file."""
    tokenizer.decoder = DECODERS[decoder]()
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in SPECIAL + IMAGE])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))])
    return tokenizer


def with_normalizer(prepend=True, decoder="sequence", **model_settings):
    tokenizer = Tokenizer(model(**model_settings))
    parts = [normalizers.Prepend("▁")] if prepend else []
    tokenizer.normalizer = normalizers.Sequence(parts + [normalizers.Replace(" ", "▁")])
    return finished(tokenizer, decoder)


def with_metaspace(scheme, split, decoder="sequence", **model_settings):
    tokenizer = Tokenizer(model(**model_settings))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", scheme, split)
    return finished(tokenizer, decoder)


GEMMA = ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>", "<start_of_image>", "<end_of_image>",
         "<image_soft_token>"]


def gemma():
    """The layout of Gemma 3's file: spaces end a piece of text, and runs of line breaks are added tokens."""
    tokens, merges = trained(1500, 90)
    vocab = {token: i for i, token in enumerate(GEMMA + BYTES + tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = DECODERS["no strip"]()
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in GEMMA])
    tokenizer.add_tokens([AddedToken("\n" * count, normalized=False) for count in (1, 2, 3, 4)])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A", pair="<bos> $A <bos> $B", special_tokens=[("<bos>", tokenizer.token_to_id("<bos>"))])
    return tokenizer


def add_tokens_of_every_flag(tokenizer):
    tokenizer.add_tokens([
        AddedToken("<l>", lstrip=True), AddedToken("<r>", rstrip=True, normalized=False),
        AddedToken("<lr>", lstrip=True, rstrip=True, normalized=False), AddedToken("word", single_word=True),
        AddedToken("▁of", normalized=False), AddedToken("é", normalized=True), AddedToken("e\u0301t", normalized=False),
        AddedToken("<n>", normalized=True, single_word=True, lstrip=True), AddedToken("😀", rstrip=True),
        AddedToken("  ", rstrip=True, normalized=False), AddedToken("two words", normalized=True),
        AddedToken("<N>", normalized=True), AddedToken("½", normalized=True), AddedToken("1", normalized=True)])
    tokenizer.add_special_tokens([AddedToken("<x>", special=True, normalized=True)])
    return tokenizer


ADDED = ["<l>", "<r>", "<lr>", "word", "▁of", "é", "e\u0301t", "<n>", "<N>", "😀", "  ", "two words", "½", "1", "<x>",
         "<image>", "</s>"]


def byte_level(normalizer, pre_tokenizer=None):
    """One token per byte, so equal ids mean equal normalized texts."""
    vocab = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    tokenizer.normalizer = normalizer
    last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizer, last]) if pre_tokenizer else last
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer
