#!/usr/bin/env python3
"""Speculative decoding (`--speculative-config`): throughput with and without it, in turn, on answers that repeat their
prompt and on free text, for one client and for several.

    .venv/bin/python tools/bench/guessed_tokens.py --program build/valora --model DIR
"""

import argparse
import concurrent.futures
import json
import statistics
import time

from valora_server import Valora

STORY = ("The red car drives past the old church. A man with a hat walks his dog near the green fence. Two children play with a "
         "yellow ball on the street while a woman in a blue coat waits for the bus.")
LIST = "\n".join(f"- {count} {what}" for count, what in enumerate(
    "red apples|green pears|yellow lemons|blue plums|ripe bananas|small cherries|large melons|fresh figs".split("|"), 3))
PROMPTS = {
    "repeated": [f"Repeat this text word by word, without changes:\n\n{STORY}", f"Copy this list without changes:\n\n{LIST}"],
    "free": ["Write a short story about a lighthouse.", "Explain how a bicycle stays upright."],
}


def ask(server, prompt, tokens):
    body = {"model": "base", "messages": [{"role": "user", "content": prompt}], "max_tokens": tokens, "temperature": 0}
    _, _, answer = server.post("/v1/chat/completions", body)
    answer = json.loads(answer)
    return answer["choices"][0]["message"]["content"], answer["usage"]["completion_tokens"]


def run(server, prompts, clients, tokens):
    """Returns (tokens/s, answers) when this many clients send all prompts."""
    begin = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        answers = list(pool.map(lambda i: ask(server, prompts[i % len(prompts)], tokens), range(clients * len(prompts))))
    return sum(count for _, count in answers) / (time.perf_counter() - begin), [text for text, _ in answers]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="build/valora")
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--tokens", type=int, default=100, help="per answer, at most")
    parser.add_argument("--guesses", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dtype", default="bfloat16")
    o = parser.parse_args()
    config = {"method": "ngram", "num_speculative_tokens": o.guesses, "prompt_lookup_max": 4, "prompt_lookup_min": 2}
    servers = {"plain": (), "guessing": ("--speculative-config", json.dumps(config))}
    servers = {name: Valora(o.program, o.model, [], o.threads, more, dtype=o.dtype) for name, more in servers.items()}
    print("| answers | clients | tokens/s without | with | ratio | right guesses | equal answers |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for kind, prompts in PROMPTS.items():
        for clients in o.clients:
            speeds, texts = {name: [] for name in servers}, {}
            for server in servers.values():
                run(server, prompts, clients, o.tokens)
            before = servers["guessing"].metrics()
            for _ in range(o.rounds):
                for name, server in servers.items():
                    speed, texts[name] = run(server, prompts, clients, o.tokens)
                    speeds[name].append(speed)
            after = servers["guessing"].metrics()
            drafts, right = (after[f"vllm:spec_decode_num_{what}_tokens_total"] - before[f"vllm:spec_decode_num_{what}_tokens_total"]
                             for what in ("draft", "accepted"))
            plain, guessing = (statistics.median(speeds[name]) for name in servers)
            equal = sum(map(str.__eq__, texts["plain"], texts["guessing"]))
            print(f"| {kind} | {clients} | {plain:.1f} | {guessing:.1f} | {guessing / plain:.2f} | "
                  f"{right:.0f} of {drafts:.0f} | {equal} of {len(texts['plain'])} |", flush=True)
    for server in servers.values():
        server.close()


if __name__ == "__main__":
    main()
