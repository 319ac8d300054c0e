#!/usr/bin/env python3
"""Perplexity of a text model on English text for each storage format of its weights and KV cache, and the deviation of its log
probabilities from float32.

    .venv/bin/python tools/bench/perplexity.py FOLDER
    .venv/bin/python tools/bench/perplexity.py FOLDER --gguf model-Q8_0.gguf model-Q4_0.gguf   # compares with llama.cpp

The text is the language reference included in Python (pydoc_data), or --text FILE. It is cut into windows of tokens; all tokens
except the first of each window count. llama.cpp runs in this process (llama-cpp-python, which is not among the requirements).
"""

import argparse
import json
import math
import pydoc_data.topics
from pathlib import Path

from tokenizers import Tokenizer

from valora_server import Valora

SETTINGS = {"float32": ("float32", []), "bfloat16": ("bfloat16", []), "bfloat16, int8": ("bfloat16", ["--quantization", "int8"]),
            "bfloat16, int4": ("bfloat16", ["--quantization", "int4"]), "float32, KV int8": ("float32", ["--kv-cache-dtype", "int8"]),
            "float32, KV fp8": ("float32", ["--kv-cache-dtype", "fp8"]), "bfloat16, KV int8": ("bfloat16", ["--kv-cache-dtype", "int8"]),
            "bfloat16, KV fp8": ("bfloat16", ["--kv-cache-dtype", "fp8"])}


def windows_of(model, text, count, length):
    tokens = Tokenizer.from_file(str(Path(model) / "tokenizer.json")).encode(text, add_special_tokens=False).ids[:count]
    return [tokens[at:at + length] for at in range(0, len(tokens) - 1, length)]


def served(program, model, threads, windows, dtype, more):
    """The log probabilities of all tokens except the first of each window."""
    server = Valora(program, model, [], threads, more=more, dtype=dtype)
    try:
        for window in windows:
            body = {"model": "base", "prompt": window, "max_tokens": 0, "echo": True, "logprobs": 0}
            yield from json.loads(server.post("/v1/completions", body)[2])["choices"][0]["logprobs"]["token_logprobs"][1:]
    finally:
        server.close()


def of_llama_cpp(path, threads, windows):
    import numpy
    from llama_cpp import Llama
    model = Llama(path, n_ctx=max(map(len, windows)), n_batch=512, n_threads=threads, n_threads_batch=threads, logits_all=True, verbose=False)
    for window in windows:
        model.reset()
        model.eval(window)
        logits = numpy.asarray(model.scores[:len(window) - 1], dtype=numpy.float64)
        shifted = logits - logits.max(axis=1, keepdims=True)
        yield from shifted[range(len(window) - 1), window[1:]] - numpy.log(numpy.exp(shifted).sum(axis=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--valora", default="build/valora")
    parser.add_argument("--text", type=Path)
    parser.add_argument("--tokens", type=int, default=20000)
    parser.add_argument("--window", type=int, default=512)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--settings", nargs="*", choices=SETTINGS, help="only these; the first one is what others are compared with")
    parser.add_argument("--gguf", nargs="*", default=[])
    options = parser.parse_args()
    text = options.text.read_text() if options.text else "\n".join(pydoc_data.topics.topics.values())
    windows = windows_of(options.model, text, options.tokens, options.window)
    print(f"{sum(map(len, windows))} tokens in windows of {options.window}", flush=True)
    first = []

    def show(name, values):
        values = list(values)
        first[:] = first or values
        perplexity, exact = (math.exp(-sum(one) / len(one)) for one in (values, first))
        apart = sorted(abs(a - b) for a, b in zip(values, first, strict=True))
        print(f"{name:40} {perplexity:8.3f} {100 * (perplexity / exact - 1):+7.2f} %   log probabilities apart: "
              f"mean {sum(apart) / len(apart):.4f}, 99 % within {apart[len(apart) * 99 // 100]:.3f}, all within {apart[-1]:.3f}", flush=True)

    for name, (dtype, more) in SETTINGS.items():
        if options.settings and name not in options.settings:
            continue
        show(name, served(options.valora, options.model, options.threads, windows, dtype, more))
    for path in options.gguf:
        show(f"llama.cpp, {Path(path).name}", of_llama_cpp(path, options.threads, windows))


if __name__ == "__main__":
    main()
