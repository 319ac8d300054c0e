#!/usr/bin/env python3
"""Time to the first token when another adapter follows up on a conversation answered by the base model: activated LoRA,
which starts at its invocation, against a plain LoRA with the same tensors, which recomputes the whole conversation.

A random Qwen2-0.5B-shaped checkpoint in bf16, or one with Qwen2-VL's tower and a picture in each conversation. Each round
has a new conversation: the base model answers it, then each adapter gets it with a question and the invocation appended.
Prints medians in milliseconds with the lowest and highest, and the cached tokens.

    .venv/bin/python tools/bench/activated_lora.py --lengths 256,1024,4096
    .venv/bin/python tools/bench/activated_lora.py --lengths 256 --side 448
"""

import argparse
import base64
import io
import json
import os
import random
import shutil
import statistics
import time

import numpy
from PIL import Image

import checkpoints
from valora_server import Valora

INVOCATION = "<|object_ref_start|><|object_ref_end|>"
QUESTION = "\nJudge it. "


def activated(folder, plain, tokens):
    """Copies the plain adapters and adds an invocation."""
    made = []
    for path in plain:
        made.append(os.path.join(folder, "activated-" + os.path.basename(path)))
        shutil.rmtree(made[-1], ignore_errors=True)
        shutil.copytree(path, made[-1])
        config = os.path.join(made[-1], "adapter_config.json")
        with open(config) as file:
            written = json.load(file)
        with open(config, "w") as file:
            json.dump(written | {"alora_invocation_tokens": tokens, "task_type": "CAUSAL_LM"}, file)
    return made


def picture(side):
    data = io.BytesIO()
    Image.fromarray(numpy.random.default_rng().integers(0, 256, (side, side, 3), dtype=numpy.uint8)).save(data, "PNG")
    return "data:image/png;base64," + base64.b64encode(data.getvalue()).decode()


def ask(server, model, turns, tokens=1):
    """Returns (milliseconds, cached tokens, prompt tokens)."""
    begin = time.perf_counter()
    answer = json.loads(server.post("/v1/chat/completions", {"model": model, "messages": turns, "max_tokens": tokens, "temperature": 0,
                                                             "ignore_eos": True})[2])
    usage = answer["usage"]
    return 1e3 * (time.perf_counter() - begin), (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0), usage["prompt_tokens"]


def conversation(length, side):
    """One token per byte."""
    text = "".join(random.choices("abcdefghij ", k=length))
    return [{"type": "image_url", "image_url": {"url": picture(side)}}, {"type": "text", "text": text}] if side else text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/valora")
    parser.add_argument("--lengths", default="256,1024,4096", help="characters, which are tokens here")
    parser.add_argument("--side", type=int, default=0, help="of a picture in each conversation; 0: none")
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", help="where the checkpoint is kept; default: build/bench/activated or …-visual")
    options = parser.parse_args()
    folder = options.folder or "build/bench/activated" + ("-visual" if options.side else "")
    model, plain = checkpoints.make(folder, tower=options.side > 0, adapters=2, rank=options.rank)
    first = checkpoints.DECODER["eos_token_id"] - 2
    names = checkpoints.SPECIAL + checkpoints.VISUAL
    invocation = [first + names.index(f"<|object_ref_{end}|>") for end in ("start", "end")]
    server = Valora(options.program, model, [*plain, *activated(folder, plain, invocation)], options.threads, prefix_caching=True,
                    step_tokens=None, model_len=8192)
    try:
        for name in ("base", "a0", "a1", "a2", "a3"):
            ask(server, name, [{"role": "user", "content": "warm"}])
        for length in map(int, options.lengths.split(",")):
            times = {"plain": [], "activated": []}
            for _ in range(options.rounds):
                turns = [{"role": "user", "content": conversation(length, options.side)}]
                ask(server, "base", turns)
                turns += [{"role": "assistant", "content": "yes"}, {"role": "user", "content": QUESTION + INVOCATION}]
                for name, kind in (("a2", "activated"), ("a3", "activated"), ("a0", "plain"), ("a1", "plain")):
                    times[kind].append(ask(server, name, turns))
            for kind, values in times.items():
                spent = [value[0] for value in values]
                print(f"{length:6} characters, {kind:9}: {statistics.median(spent):8.1f} ms ({min(spent):.1f}–{max(spent):.1f}), "
                      f"{values[-1][1]} of {values[-1][2]} tokens cached", flush=True)
    finally:
        server.close()


if __name__ == "__main__":
    main()
