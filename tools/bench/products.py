"""Products with integer weights: valora's, oneDNN's (libtorch's), OpenVINO's and llama.cpp's on one CPU, 14336 inputs and 4096 outputs.

    tools/bench/products.py --isa avx2 --openvino path/to/python --llama path/to/test-backend-ops

Interleaved rounds in a drawn order, medians. Every program reads weights that exceed the caches. --isa sets VALORA_ISA and
libtorch's ONEDNN_MAX_CPU_ISA; test-backend-ops must be built for it (-DGGML_NATIVE=OFF -DGGML_AVX2=ON …), and has no repacked weights.
OpenVINO takes all that it sees: with avx2, AVX2 alone on a CPU that can hide the rest (avx2_only.py)."""

import argparse
import json
import os
import pathlib
import random
import re
import statistics
import subprocess

import avx2_only

INPUTS, OUTPUTS = 14336, 4096
TOKENS = (1, 8, 512)
HERE = pathlib.Path(__file__).parent
ONEDNN_ISA = {"avx2": "AVX2", "avxvnni": "AVX2_VNNI"}
GGML_TYPES = {"q8_0": "llama.cpp Q8_0", "q4_0": "llama.cpp Q4_0"}


def output_of(command, environment):
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def of_valora(arguments, environment):
    rates, limits = {}, {}
    for bits in (8, 4):
        report = json.loads(output_of([arguments.bench, "ops", "--threads", str(arguments.threads), "--seconds", "1", "--json",
                                       "--filter", f"rounded int{bits} {INPUTS}x{OUTPUTS}"], environment))
        for m in report["measurements"]:
            if m["shape"]["tokens"] in TOKENS:
                for name, seconds in m["seconds"].items():
                    kind = name if name == "bf16" else f"{name} int{bits}"
                    rates[kind, m["shape"]["tokens"]] = m["operations"] / seconds["p50"]
                limits[f"int{bits}", m["shape"]["tokens"]] = m["share_of_limit"]
    return rates, limits


def of_openvino(arguments, environment):
    environment = {key: value for key, value in environment.items() if key != "ONEDNN_MAX_CPU_ISA"}
    if arguments.isa == "avx2" and avx2_only.possible():
        environment = avx2_only.environment(environment)
    seconds = json.loads(output_of([arguments.openvino, HERE / "peer_openvino_products.py", str(arguments.threads), str(INPUTS), str(OUTPUTS),
                                    *map(str, TOKENS)], environment))
    return {(f"OpenVINO {name}", int(n)): 2 * INPUTS * OUTPUTS * int(n) / value for name, of in seconds.items() for n, value in of.items()}, {}


def of_llama(arguments, environment):
    rates = {}
    text = output_of([arguments.llama, "perf", "-o", "MUL_MAT", "-b", "CPU", "-p", f"type_a=(q8_0|q4_0),type_b=f32,m={OUTPUTS},n=(1|8|512),k={INPUTS},"],
                     environment | {"GGML_N_THREADS": str(arguments.threads)})
    for kind, n, rate, unit in re.findall(r"type_a=(\w+),type_b=f32,m=\d+,n=(\d+),.*?([\d.]+) ([GT])FLOPS", re.sub(r"\x1b\[[\d;]*m", "", text)):
        rates[GGML_TYPES[kind], int(n)] = float(rate) * (1e9 if unit == "G" else 1e12)
    return rates, {}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bench", default="build/valora-bench")
    parser.add_argument("--isa", default="")
    parser.add_argument("--openvino")
    parser.add_argument("--llama")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    environment = dict(os.environ)
    if arguments.isa:
        environment["VALORA_ISA"] = arguments.isa
    if arguments.isa in ONEDNN_ISA:
        environment["ONEDNN_MAX_CPU_ISA"] = ONEDNN_ISA[arguments.isa]
    programs = [of_valora] + [of_openvino] * bool(arguments.openvino) + [of_llama] * bool(arguments.llama)
    rates, shares = {}, {}
    for _ in range(arguments.rounds):
        for program in random.sample(programs, len(programs)):
            measured, limits = program(arguments, environment)
            for key, rate in measured.items():
                rates.setdefault(key, []).append(rate)
            for key, share in limits.items():
                shares.setdefault(key, []).append(share)
    print("GOP/s" + "".join(f"{n:>10}" for n in TOKENS) + "   tokens")
    for name in dict.fromkeys(name for name, _ in rates):
        print(f"{name:16}" + "".join(f"{statistics.median(rates[name, n]) / 1e9:10.0f}" if (name, n) in rates else f"{'-':>10}" for n in TOKENS))
    for name in dict.fromkeys(name for name, _ in shares):
        print(f"{name} of the limit " + "".join(f"{100 * statistics.median(shares[name, n]):9.0f}%" for n in TOKENS))


main()
