#!/usr/bin/env python3
"""Compares valora with vLLM, llama.cpp, ik_llama.cpp, mistral.rs and OpenVINO GenAI: one random 0.5 B Qwen2, 8 adapters, interleaved rounds.

    .venv/bin/python tools/bench/peers.py --rounds 3 --valora bf16= --valora "int4=--quantization int4" \\
        --vllm http://127.0.0.1:8100 --llama path/to/llama-server --llama-files bf16,Q8_0,Q4_0 \\
        --openvino path/to/python int8=DIR int4=DIR

Systems that are not named are left out. docs/measurements/serving.md says how to install and start them. For llama.cpp,
tools/bench/gguf_files.py writes the model and adapters as GGUF files, which llama-quantize turns into model-Q4_0.gguf.
Greedy, tokens/s of all requests of a case together, from the first request to the last answer.
"""

import argparse
import os
import random
import statistics
from pathlib import Path

import checkpoints
import peer_systems as systems

ADAPTERS = 8
CASES = {"8 requests, 8 adapters": list(range(ADAPTERS)), "8 requests, one adapter": [0] * ADAPTERS,
         "8 requests, base": [None] * ADAPTERS, "one request, one adapter": [3], "one request, base": [None]}


def measure(peers, prompts, cases, rounds, tokens):
    """Returns {(case, system): tokens/s of each round}, without the warm-up round."""
    rates = {}
    for round_ in range(rounds + 1):
        for case in cases:
            adapters = CASES[case]
            asked = [peer for peer in peers if peer.serves(adapters)]
            for peer in random.sample(asked, len(asked)):
                seconds, count = peer.run(prompts[:len(adapters)], adapters, tokens)
                if count != tokens * len(adapters):
                    print(f"{peer.name} answered {count} tokens", flush=True)
                rate = count / seconds
                print(f"round {round_}  {case:<26}{peer.name:<18}{rate:7.1f} tokens/s", flush=True)
                if round_:
                    rates.setdefault((case, peer.column), []).append(rate)
    return rates


def print_table(rates, cases):
    columns = list(dict.fromkeys(column for _, column in rates))
    print("| | " + " | ".join(columns) + " |\n|---|" + "--:|" * len(columns))
    for case in cases:
        cells = [f"{statistics.median(rates[case, c]):.1f}" if (case, c) in rates else "" for c in columns]
        print(f"| {case} | " + " | ".join(cells) + " |")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/valora")
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    parser.add_argument("--valora", action="append", default=[], metavar="NAME=OPTIONS", help="a server with these options")
    parser.add_argument("--vllm", help="URL of a running vLLM")
    parser.add_argument("--llama", help="llama.cpp's llama-server")
    parser.add_argument("--llama-files", default="bf16", help="types of the folder's model-TYPE.gguf, by commas")
    parser.add_argument("--ik-llama", help="ik_llama.cpp's llama-server")
    parser.add_argument("--mistralrs", nargs="+", default=[], metavar="PYTHON KIND",
                        help="the Python of an environment with mistralrs, and f32 or its in-situ quantisations")
    parser.add_argument("--openvino", nargs="+", default=[], metavar="PYTHON NAME=DIR",
                        help="the Python of an environment with openvino-genai, and exported models")
    parser.add_argument("--cases", help=f"by semicolons; default: {'; '.join(CASES)}")
    parser.add_argument("--prompt", type=int, default=128, help="tokens")
    parser.add_argument("--output", type=int, default=32, help="tokens")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def start(options, model, adapters):
    """Yields each requested system, started but perhaps not ready yet."""
    for variant in options.valora or ["bf16="]:
        name, _, more = variant.partition("=")
        yield systems.Valora(f"valora {name}", options.program, model, adapters, options.threads, more.split())
    if options.vllm:
        yield systems.Vllm("vLLM", options.vllm)
    if options.llama:
        for kind in options.llama_files.split(","):
            for adapted in (True, False):
                yield systems.LlamaCpp(kind, options.llama, options.folder, options.threads, adapted, ADAPTERS)
    # It has no adapters per request. -rtr repacks the weights for the CPU; its flash attention ends 0.1.5 at the second request.
    if options.ik_llama:
        for kind in options.llama_files.split(","):
            yield systems.LlamaCpp(kind, options.ik_llama, options.folder, options.threads, False, ADAPTERS, "ik_llama.cpp",
                                    ["-rtr", "-no-fa"])
    for kind in options.mistralrs[1:]:
        yield systems.PythonPeer(f"mistral.rs {kind}", options.mistralrs[0], "peer_mistralrs.py", [model, kind],
                                 {"RAYON_NUM_THREADS": str(options.threads)})
    for exported in options.openvino[1:]:
        name, _, folder = exported.partition("=")
        yield systems.PythonPeer(f"OpenVINO {name}", options.openvino[0], "peer_openvino.py", [folder, str(options.threads)])


def main():
    options = parse_options()
    model, adapters = checkpoints.make(str(options.folder / "qwen2-0.5b"), False, ADAPTERS, 16)
    random.seed(1)
    prompts = [[random.randrange(256) for _ in range(options.prompt)] for _ in range(ADAPTERS)]
    cases = [case.strip() for case in options.cases.split(";")] if options.cases else list(CASES)
    peers = []
    try:
        for peer in start(options, model, adapters):
            peers.append(peer)
            peer.wait_until_ready()
        rates = measure(peers, prompts, cases, options.rounds, options.output)
    finally:
        for peer in peers:
            peer.close()
    print_table(rates, cases)


if __name__ == "__main__":
    main()
