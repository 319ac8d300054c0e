#!/usr/bin/env python3
"""valora's trainer against transformers + PEFT: the same samples, batch, dtype and threads, in interleaved runs.

Both sides train a LoRA on all linears of a random Qwen2-0.5B-shaped decoder in bf16 (adapters in fp32 on both sides; PEFT
under torch.autocast), on samples of one length, so that neither side pads. Each run is a separate process, which prints
its samples per second, excluding the first step, and its peak memory.

    .venv/bin/python tools/bench/training.py --rounds 3

With --busy, rounds are repeated while that many programs each keep a core busy; --threads 0 uses a thread per core, and
valora runs again with one thread. A run of the reference ends after a minute, because next to a busy program its steps may
take twenty times as long:

    .venv/bin/python tools/bench/training.py --small --threads 0 --busy 0 1 2 --steps 200 --dtype float32
"""

import argparse
import contextlib
import json
import random
import resource
import statistics
import string
import subprocess
import sys
import time
from pathlib import Path

import checkpoints

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
MOST_SECONDS = 60  # limit for a run of the reference


def samples(options):
    """Prompts and answers with one character per token."""
    draw = random.Random(7)
    text = lambda count: "".join(draw.choice(string.ascii_lowercase) for _ in range(count))
    return [(text(options.prompt), text(options.answer)) for _ in range(options.batch)]


@contextlib.contextmanager
def busy_programs(count):
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for program in running:
            program.kill()
            program.wait()


def valora(options, folder, threads):
    made = [{"prompt": prompt, "answer": answer} for prompt, answer in samples(options)]
    request = {"model": str(folder), "dtype": options.dtype, "threads": threads, "output": str(options.work / "trained"),
               "rank": options.rank, "alpha": 2 * options.rank, "targets": ["decoder"], "sources": [{"samples": made}],
               "options": {"steps": options.steps, "batch": options.batch, "tokens_per_pass": 1 << 20, "learning_rate": 1e-4,
                           "recompute": options.recompute}}
    program = next(p for p in (ROOT / "build").rglob("trainer_probe") if p.is_file())
    done = subprocess.run([str(program)], input=json.dumps(request), capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    return {"samples_per_second": rate(answer["step_seconds"], options.batch), "peak_bytes": answer["peak_bytes"], "loss": answer["losses"][-1]}


def rate(step_seconds, batch):
    return batch / statistics.mean(step_seconds[1:])


def peft_child(options, folder):
    """Runs the reference once in this process and prints its result."""
    import torch
    from peft import LoraConfig, get_peft_model
    from tokenizers import Tokenizer
    from transformers import AutoModelForCausalLM
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    dtype = {"bfloat16": torch.bfloat16, "float32": torch.float32}[options.dtype]
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="sdpa")
    tuned = get_peft_model(model, LoraConfig(r=options.rank, lora_alpha=2 * options.rank, target_modules=TARGETS, task_type="CAUSAL_LM")).train()
    if options.recompute:
        model.gradient_checkpointing_enable({"use_reentrant": False})
        model.enable_input_require_grads()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    end = model.generation_config.eos_token_id
    rows = [(tokenizer.encode(p).ids, tokenizer.encode(a).ids + [end if isinstance(end, int) else end[0]]) for p, a in samples(options)]
    ids = torch.tensor([p + a for p, a in rows])
    labels = torch.tensor([[-100] * len(p) + a for p, a in rows])
    optimizer = torch.optim.AdamW([p for p in tuned.parameters() if p.requires_grad], lr=1e-4)
    seconds = []
    for _ in range(options.steps):
        begin = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
            loss = tuned(input_ids=ids, labels=labels, use_cache=False).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(tuned.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seconds.append(time.perf_counter() - begin)
        if sum(seconds) > MOST_SECONDS and len(seconds) > 4:
            break
    print(json.dumps({"samples_per_second": rate(seconds, options.batch), "loss": loss.item(),
                      "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10}))


def peft(options):
    done = subprocess.run([sys.executable, __file__, "--child", *sys.argv[1:]], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "bench")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--prompt", type=int, default=96, help="tokens")
    parser.add_argument("--answer", type=int, default=31, help="tokens, without the end token")
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2, help="0: one per core")
    parser.add_argument("--small", action="store_true", help="a decoder of the demo's size")
    parser.add_argument("--busy", type=int, nargs="+", default=[0], metavar="N", help="programs that keep a core busy")
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float32"])
    parser.add_argument("--recompute", action="store_true", help="activation checkpointing on both sides")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    name, decoder = ("small", checkpoints.SMALL) if options.small else ("qwen2-0.5b", checkpoints.DECODER)
    model, _ = checkpoints.make(options.work / name, False, 8, 16, decoder)
    if options.child:
        return peft_child(options, Path(model))
    sides = {"valora": lambda: valora(options, model, options.threads), "transformers + PEFT": lambda: peft(options)}
    if options.busy != [0]:
        sides["valora, 1 thread"] = lambda: valora(options, model, 1)
    for busy in options.busy:
        runs = {name: [] for name in sides}
        with busy_programs(busy):
            for i in range(options.rounds):
                for name, run in sides.items():
                    runs[name].append(run())
                    print(f"round {i + 1}, {busy} busy programs: {name}: {json.dumps(runs[name][-1])}", flush=True)
        report(options, busy, runs)


def report(options, busy, runs):
    medians = {name: statistics.median(r["samples_per_second"] for r in rows) for name, rows in runs.items()}
    tokens = options.prompt + options.answer + 1
    print(f"{busy} busy programs:")
    for name, rows in runs.items():
        ratios = [own["samples_per_second"] / r["samples_per_second"] for own, r in zip(runs["valora"], rows, strict=True)]
        print(f"  {name}: {medians[name]:.2f} samples/s, {medians[name] * tokens:.0f} tokens/s, "
              f"{max(r['peak_bytes'] for r in rows) / 2**30:.2f} GiB; valora is {statistics.median(ratios):.2f} times as fast "
              f"({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
