"""GGUF files of tiny models and tokenizers, as llama.cpp's converter writes them; quantised and decoded by the package gguf."""

import json

import gguf
import numpy as np
import torch

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)  # kinds of tokens


def add_tokenizer(writer, data, pre=None, size=None, scores=None):
    """The content of a tokenizer.json as metadata. pre: how byte-level tokenizers find words; without it the tokenizer is SentencePiece's."""
    tokens, kinds = {i: token for token, i in data["model"]["vocab"].items()}, {}
    for token in data["added_tokens"]:
        tokens[token["id"]] = token["content"]
        kinds[token["id"]] = CONTROL if token["special"] else USER_DEFINED
    count = size or max(tokens) + 1
    if pre is None:
        kinds |= {i: BYTE for i, token in tokens.items() if token.startswith("<0x")}
        if unknown := data["model"]["unk_token"]:
            kinds[data["model"]["vocab"][unknown]] = UNKNOWN
            writer.add_unk_token_id(data["model"]["vocab"][unknown])
        if not any(part.get("prepend") for part in data["normalizer"].get("normalizers", [])):
            writer.add_add_space_prefix(False)
    writer.add_tokenizer_model("gpt2" if pre else "llama")
    writer.add_tokenizer_pre(pre or "default")
    writer.add_token_list([tokens.get(i, f"[PAD{i}]") for i in range(count)])
    writer.add_token_types([kinds.get(i, NORMAL) if i in tokens else UNUSED for i in range(count)])
    if pre:
        writer.add_token_merges([" ".join(merge) if isinstance(merge, list) else merge for merge in data["model"]["merges"]])
    else:
        writer.add_token_scores([scores.get(tokens.get(i), -1000.0) for i in range(count)])


def tokenizer_file(path, data, architecture="llama", pre=None, scores=None, **settings):
    """A file without tensors."""
    writer = gguf.GGUFWriter(str(path), architecture)
    add_tokenizer(writer, data, pre, scores=scores)
    for key, value in settings.items():
        getattr(writer, f"add_{key}")(value)
    finish(writer)
    return path


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
