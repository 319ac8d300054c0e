#!/usr/bin/env python3
"""Frames per second with several skills per frame: activated adapters, which share the base model's KV of the frame, beside
plain adapters with the same tensors, which each compute the frame anew; and one skill alone.

A random Qwen2-VL checkpoint in bf16 with a decoder of 0.5, 1.5 (Qwen2-VL-2B) or 7 billion parameters, whose checkpoint
takes 17 GB. Every request has a new picture; kinds take turns in each round. Prints medians in milliseconds with the lowest
and highest, and the ratios. The invocation is the start of the answer's turn, as valora fuse chooses it. --no-picture asks
about a text of as many tokens, which leaves the tower out.

    .venv/bin/python tools/bench/skills.py --skills 8 --side 448 --tokens 8
"""

import argparse
import json
import random
import shlex
import statistics
import time

from tokenizers import Tokenizer

import checkpoints
from activated_lora import activated, picture
from valora_server import Valora

QUESTION = "What is it?"


def question(side, with_picture):
    """A picture of (side / 28)² tokens, or a text of as many."""
    if with_picture:
        return [{"type": "image_url", "image_url": {"url": picture(side)}}, {"type": "text", "text": QUESTION}]
    return "".join(random.choices("abcdefghij ", k=(side // 28) ** 2)) + QUESTION


def ask(server, skills, content, tokens):
    begin = time.perf_counter()
    answer = json.loads(server.post("/v1/chat/completions", {"skills": skills, "messages": [{"role": "user", "content": content}],
                                                             "max_tokens": tokens, "temperature": 0, "ignore_eos": True})[2])
    assert all("error" not in one for one in answer["skills"].values()), answer
    return 1e3 * (time.perf_counter() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/valora")
    parser.add_argument("--skills", type=int, default=8)
    parser.add_argument("--side", type=int, default=448, help="of the picture")
    parser.add_argument("--no-picture", action="store_true")
    parser.add_argument("--tokens", type=int, default=8, help="of an answer")
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--decoder", choices=checkpoints.DECODERS, default="0.5", help="billions of parameters")
    parser.add_argument("--serve", type=shlex.split, default=[], help="more arguments of the server")
    parser.add_argument("--folder", help="where the checkpoint is kept: build/bench/skills-DECODER")
    options = parser.parse_args()
    options.folder = options.folder or f"build/bench/skills-{options.decoder}"
    decoder = checkpoints.DECODERS[options.decoder]
    model, plain = checkpoints.make(options.folder, tower=True, adapters=options.skills, rank=options.rank,
                                    decoder=decoder)
    invocation = Tokenizer.from_file(f"{model}/tokenizer.json").encode("<|im_start|>assistant\n").ids
    server = Valora(options.program, model, [*plain, *activated(options.folder, plain, invocation)], options.threads, options.serve,
                    prefix_caching=True, step_tokens=None, model_len=4096)
    count = options.skills
    kinds = {"one skill": [f"a{count}"], "activated": [f"a{i}" for i in range(count, 2 * count)], "plain": [f"a{i}" for i in range(count)]}
    spent = {kind: [] for kind in kinds}
    try:
        for kind in kinds:
            ask(server, kinds[kind], question(56, not options.no_picture), 1)
        for _ in range(options.rounds):
            for kind, skills in kinds.items():
                spent[kind].append(ask(server, skills, question(options.side, not options.no_picture), options.tokens))
    finally:
        server.close()
    middle = {kind: statistics.median(times) for kind, times in spent.items()}
    for kind, times in spent.items():
        print(f"{len(kinds[kind]):2} × {kind:9}: {middle[kind]:8.1f} ms ({min(times):.1f}–{max(times):.1f})")
    print(f"plain / activated {middle['plain'] / middle['activated']:.2f}, activated / one skill {middle['activated'] / middle['one skill']:.2f}")


if __name__ == "__main__":
    main()
