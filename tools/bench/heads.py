#!/usr/bin/env python3
"""A task head against the language model's answer: latency of one request, by the answer's length in tokens.

One server with a random Qwen2-VL checkpoint (0.5B decoder) and an adapter on all the decoder's linears that has a head
of ten labels. Each round asks the head (`/classify`, one forward pass) and the language model (chat completions, one
forward pass per token) once per length. Each request has a new picture or text, so that caches do not help. The random
weights do not affect the time. The language model's answers are cut off at that length.

    .venv/bin/python tools/bench/heads.py --rounds 15
"""

import argparse
import json
import os
import statistics
import time
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

import checkpoints
from mixed_adapters import data_url, picture
from valora_server import Valora

LABELS = [f"label {i}" for i in range(10)]


def with_head(source, folder):
    """A copy of the adapter with a head of LABELS."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = load_file(source / "adapter_model.safetensors")
    tensors["base_model.model.score.weight"] = torch.randn(len(LABELS), checkpoints.DECODER["hidden_size"])
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / "adapter_model.safetensors")
    config = json.loads((source / "adapter_config.json").read_text()) | {"modules_to_save": ["score"]}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    head = {"name": "score", "labels": LABELS, "problem_type": "single_label_classification", "pooling": "last",
            "add_generation_prompt": True}
    (folder / "valora.json").write_text(json.dumps({"heads": [head]}))
    return folder


class Questions:
    """Request bodies with a new picture or text each time."""

    def __init__(self, size, text):
        self.size, self.text, self.count = size, text, 0

    def body(self, extra):
        self.count += 1
        words = f"{self.count:08d}" + "x" * (self.text - 8)
        content = [{"type": "text", "text": words}]
        if self.size:
            content.insert(0, {"type": "image_url", "image_url": {"url": data_url(picture(self.count, self.size))}})
        return {"model": "a0", "messages": [{"role": "user", "content": content}]} | extra


def timed(server, path, body):
    begin = time.perf_counter()
    answer = json.loads(server.post(path, body)[2])
    return time.perf_counter() - begin, answer


def measure(server, questions, lengths, rounds):
    """Seconds of each answer length (0: the head), and the prompt's tokens."""
    taken, prompt = {length: [] for length in [0, *lengths]}, 0
    for round_ in range(rounds + 1):  # the first round is a warm-up
        for length in taken:
            if length == 0:
                seconds, _ = timed(server, "/classify", questions.body({"head": "score"}))
            else:
                extra = {"head": "", "temperature": 0, "ignore_eos": True, "max_tokens": length}
                seconds, answer = timed(server, "/v1/chat/completions", questions.body(extra))
                prompt = answer["usage"]["prompt_tokens"]
                if answer["usage"]["completion_tokens"] != length:
                    raise SystemExit(f"an answer of {answer['usage']['completion_tokens']} tokens instead of {length}")
            if round_:
                taken[length].append(seconds)
    return taken, prompt


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/valora")
    parser.add_argument("--folder", type=Path, default=Path("build/bench/qwen2-vl-0.5b"))
    parser.add_argument("--lengths", type=int, nargs="+", default=[1, 2, 4, 8], help="answer lengths in tokens")
    parser.add_argument("--text", type=int, default=16, help="bytes per question, one token each; the chat format adds about 90")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()

    model, adapters = checkpoints.make(options.folder, True, 1, 16)
    server = Valora(options.program, model, [with_head(Path(adapters[0]), options.folder / "adapter-with-head")], options.threads)
    try:
        for name, size in (("text", 0), ("a picture of 112 x 112", 112), ("a picture of 224 x 224", 224)):
            taken, prompt = measure(server, Questions(size, options.text), options.lengths, options.rounds)
            medians = {length: statistics.median(values) for length, values in taken.items()}
            print(f"{name}, {prompt} tokens: the head answers in {1000 * medians[0]:.0f} ms; the language model in", flush=True)
            for length in options.lengths:
                print(f"  {length:3} tokens  {1000 * medians[length]:6.0f} ms: the head takes {100 * (medians[0] / medians[length] - 1):+.0f} %", flush=True)
    finally:
        server.close()


if __name__ == "__main__":
    main()
