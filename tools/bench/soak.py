#!/usr/bin/env python3
"""Hostile traffic along with good requests: no answer may be wrong, no request may end with a 5xx, memory must stay flat.

Serves the demo model with small caches. Good clients ask the base model and adapters about new pictures, and use
an adapter that is constantly replaced; each answer must equal that of a second server that gets the same request alone.
Hostile clients send broken bodies, broken pictures and adapters, prompts that are too long, ambiguous grammars with 64
choices and grammars that compile slowly; they abandon streams, read them slowly, and load, replace and unload adapters.
Three flood the server with an adapter whose values are huge, and random blocks of the swap file are overwritten.
The server swaps, and its pool has exactly as many blocks as four of its adapters. Once the caches are full,
resident memory is sampled every second; its median in the last fifth must be at most 3 % above that in the second: the
first fifth meets the first compilation of a large grammar, whose memory the allocator keeps. A
stream may not wait longer for a chunk than --max-gap seconds, or three steps if that is longer. 503 is allowed (a full
queue), but requests must not stall (valora:stalls_total), and SIGTERM must end the server.

    .venv/bin/python tools/bench/soak.py               # ten minutes, on an otherwise idle machine
    .venv/bin/python tools/bench/soak.py --dtype bfloat16 --mode valora
    .venv/bin/python tools/bench/soak.py --short       # one minute, without judging memory and gaps
"""

import argparse
import contextlib
import json
import pathlib
import statistics
import subprocess
import tempfile
import threading
import time

from soak_faults import hostile_copy
from soak_load import ADAPTERS, ROOT, SWAPPED, Soak
from soak_pressure import copies, filled_pool
from soak_requests import request
from valora_server import Valora

LENGTH = 1024  # longest sequence


def caches_full(metrics, media, visual):
    # An entry that does not fit leaves a gap, so the caches may not reach 100 %.
    return metrics["valora:media_cache_bytes"] > 0.9 * media and metrics["valora:visual_cache_bytes"] > 0.9 * visual


def serve(program, adapters, pool, dtype, *more):
    modules = [f"{name}={path}" for name, path in adapters.items()]
    return Valora(program, str(ROOT / "demo" / "model"), [], 1, prefix_caching=True, step_tokens=None, model_len=LENGTH, dtype=dtype,
                  more=["--lora-modules", *modules, "--pool-memory", str(pool), *more])


def filled(program, adapters, dtype):
    """Pool size in bytes, for --pool-memory."""
    server = serve(program, adapters, "64M", dtype)
    try:
        return filled_pool(server, len(adapters), LENGTH // 16)
    finally:
        server.close()


def end(server, limit=60):
    """Sends SIGTERM. Returns True if the server ends within the limit."""
    server.process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        server.process.wait(limit)
        return True
    server.process.kill()
    server.process.wait()
    return False


def run(soak, minutes, full):
    """Runs until the time is over or the server ends. Returns resident memory per second, starting when full()
    is true."""
    server, memory, full_after = soak.server, [], None
    threads, checker = soak.threads(), threading.Thread(target=soak.check)
    begin = time.monotonic()
    try:
        for thread in [*threads, checker]:
            thread.start()
        with contextlib.suppress(OSError):  # if the server has ended, that is reported below
            while time.monotonic() < begin + 60 * minutes and server.process.poll() is None:
                time.sleep(1)
                if full_after is None and full(server.metrics()):
                    full_after = time.monotonic() - begin
                if full_after is not None:
                    memory.append(server.memory())
    finally:
        soak.over.set()
        if server.process.poll() is not None:
            soak.faults.append(f"the server ended with {server.process.poll()}")
        for thread in threads:
            thread.join()
        soak.unchecked.put(None)
        checker.join()
    if full_after is not None:
        print(f"caches full after {full_after:.0f} s")
    return memory


def judge_memory(soak, memory):
    if len(memory) < 10:
        soak.faults.append("the caches were not full early enough to judge the memory")
        return
    fifth = len(memory) // 5
    medians = [statistics.median(memory[part * fifth:(part + 1) * fifth]) for part in range(5)]
    print(f"resident memory by fifths of the time: {', '.join(f'{median:.0f}' for median in medians)} MiB; at most {max(memory):.0f} MiB")
    if medians[4] > 1.03 * medians[1]:
        soak.faults.append(f"memory grew from {medians[1]:.0f} to {medians[4]:.0f} MiB")


def judge_progress(soak, most, judged):
    """Checks a server that is still running."""
    metrics = soak.server.metrics()
    step = metrics["valora:step_seconds_total"] / max(1, metrics["valora:engine_steps_total"])
    longest = soak.gaps.longest
    print(f"longest gap of {soak.gaps.streams} streams {longest:.2f} s; a step takes {step:.3f} s on average")
    print(f"longest answer under a small form {soak.longest_form:.2f} s")
    if judged and longest > max(most, 3 * step):
        soak.faults.append(f"a stream waited {longest:.2f} s for a chunk")
    moves = json.loads(request(soak.server.url, "GET", "/v1/stats")[1])["memory"]["swap_reads"]
    print(f"{soak.damaged / 1024:.0f} KiB of the swap file overwritten; reads of it: {moves}")
    if stalls := metrics.get("valora:stalls_total"):
        soak.faults.append(f"requests stalled {stalls:.0f} times")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--valora", default=str(ROOT / "build" / "valora"))
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--short", action="store_true", help="one minute, without a judgement of memory and gaps")
    parser.add_argument("--max-gap", type=float, default=0.5, help="seconds between two chunks of a stream")
    parser.add_argument("--mode", default="unmerged", help="scheduling policy of the server; the other one is unmerged")
    parser.add_argument("--dtype", choices=["float32", "bfloat16", "float16"], default="float32", help="of both servers")
    args = parser.parse_args()
    media, visual = 16 << 20, 4 << 20
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        made = copies([ADAPTERS["adapter-1"]], folder, 15)
        hostile_copy(ADAPTERS["adapter-1"], folder / "hostile")
        adapters = ADAPTERS | made | {"hostile": str(folder / "hostile")}
        server = serve(args.valora, adapters, filled(args.valora, made, args.dtype), args.dtype, "--mode", args.mode, "--swap-space", "8M",
                       "--allow-runtime-lora-updating", "--form-compile-limit", "4", "--media-cache", str(media), "--visual-cache", str(visual),
                       "--max-waiting", "256")
        reference = serve(args.valora, adapters, "64M", args.dtype)
        soak = Soak(server, reference, folder, adapters, "hostile", args.dtype)
        soak.expect("adapter load", [200], "POST", "/v1/load_lora_adapter", {"lora_name": "swapped", "lora_path": ADAPTERS[SWAPPED[0]]})
        soak.fill_grammar_cache()
        try:
            memory = run(soak, min(1, args.minutes) if args.short else args.minutes, lambda metrics: caches_full(metrics, media, visual))
            if server.process.poll() is None:
                judge_progress(soak, args.max_gap, not args.short)
        finally:
            if not end(server):
                soak.faults.append("SIGTERM did not end the server")
            end(reference)
    print("| request | outcome | times |\n|---|---|--:|")
    for (kind, outcome), times in sorted(soak.counts.items(), key=str):
        print(f"| {kind} | {outcome} | {times} |")
    print(f"\n{soak.checked} good answers compared with those given alone: {soak.agreement.report()}")
    if not args.short:
        judge_memory(soak, memory)
    for fault in soak.faults[:20]:
        print("fault:", fault)
    if soak.faults:
        raise SystemExit(f"{len(soak.faults)} faults")


if __name__ == "__main__":
    main()
