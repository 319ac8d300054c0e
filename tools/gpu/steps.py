"""The steps of tools/gpu/run: each takes a Run, raises on failure, and returns figures for the report (or None)."""

import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/bench"))
# Suites that compare with transformers and PEFT and run on any device.
PARITY = ["test_generate_cuda.py", "test_generate_base.py", "test_generate_adapters.py", "test_adapters.py",
          "test_generate_modes.py", "test_generate_batching.py", "test_generate_visual_adapters.py",
          "test_generate_bf16.py", "test_generate_rope_lengths.py", "test_generate_sampling.py", "test_generate_identity.py",
          "test_prompt_logprobs.py", "test_adapter_layouts.py", "test_quantised.py", "test_gpu_sampling.py",
          "test_generate_grammar.py", "test_adapter_kinds.py", "test_adapter_vocabularies.py", "test_activated_lora.py",
          "test_gemma3.py"]


def device(run):
    run.command("nvidia-smi", "--query-gpu=name,memory.total,driver_version,clocks.sm,temperature.gpu", "--format=csv,noheader")
    import torch
    source = torch.randint(0, 255, (1 << 30,), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    copy = run.milliseconds(lambda: target.copy_(source))
    read = run.milliseconds(lambda: source.view(torch.int64).sum())
    n = 8192
    a, b = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    product = run.milliseconds(lambda: a @ b)
    return {"name": torch.cuda.get_device_name(), "copy_bytes_per_second": 2 * source.nbytes / copy * 1e3,
            "read_bytes_per_second": source.nbytes / read * 1e3, "bf16_operations_per_second": 2 * n**3 / product * 1e3}


def kernels(run):
    log = run.command(run.program("cuda_kernels_test"))
    return {"checks": log.strip().splitlines()[-1]}


def operators(run):
    log = run.command(run.program("ops_test"), "--gtest_filter=*cuda*:*Cuda*:*Device*", "--gtest_brief=1")
    return {"tests": log.strip().splitlines()[-1]}


def parity(run):
    suites = [str(ROOT / "tests/parity" / suite) for suite in PARITY]
    status, log = run.attempt(sys.executable, "-m", "pytest", "-q", "-n", str(run.jobs), "--dist", "worksteal",
                              "-p", "no:cacheprovider", *suites, cwd=ROOT / "tests/parity",
                              environment={"VALORA_DEVICE": "cuda", "VALORA_BIN_DIR": str(run.build), "OMP_NUM_THREADS": "1"})
    summary = log.strip().splitlines()[-1] if log.strip() else ""
    if status:
        raise RuntimeError(summary)
    return {"tests": summary}


def kernel_times(run):
    log = run.command(run.program("cuda_kernels_bench"))
    return {"lines": log.strip().splitlines()}


def prefill(run):
    """Compares our kernel for prompts with FlashInfer's (VALORA_GPU_PREFILL): the kernels alone, answers beside transformers,
    and the first token of long prompts. The last figure says which to take."""
    log = run.command(run.program("cuda_kernels_bench"), "prompts")
    figures = {"lines": [line for line in log.splitlines() if line.startswith("prompts")]}
    run.keep(figures)
    chosen = re.search(r"take (own|flashinfer)$", log, re.MULTILINE)
    if not chosen:
        raise RuntimeError(figures["lines"][-1] if figures["lines"] else "no figures of prompts")
    status, log = run.attempt(sys.executable, "-m", "pytest", "-q", "-n", str(run.jobs), "-p", "no:cacheprovider",
                              str(ROOT / "tests/parity/test_flashinfer.py"), cwd=ROOT / "tests/parity", environment={
                                  "VALORA_DEVICE": "cuda", "VALORA_BIN_DIR": str(run.build), "OMP_NUM_THREADS": "1"})
    figures["lines"].append("answers by FlashInfer's: " + (log.strip().splitlines() or [""])[-1])
    run.keep(figures)
    if status:
        raise RuntimeError("with FlashInfer's kernels answers differ: take own")
    first = first_tokens(run)
    for name, rows in first.items():
        figures["lines"].append(f"first token of {name}: own {rows['own']:.1f} ms, flashinfer {rows['flashinfer']:.1f} ms")
    faster = all(rows["flashinfer"] < rows["own"] for rows in first.values())
    figures["lines"].append(f"take {chosen[1] if faster else 'own'}")
    return figures


def first_tokens(run):
    """Median time of first tokens of prompts of 1,500 to 2,000 tokens, by decoder and kernels, in turns."""
    import checkpoints
    import random_model
    times = {}
    for name in run.sizes:
        model, _ = random_model.make(run.scratch, name, 1, 16, checkpoints.write_tokenizer)
        rows = {"own": [], "flashinfer": []}
        for kernels in ("own", "flashinfer", "flashinfer", "own"):
            row = bench(run, model, None, 0, 4, prompts=(1500, 2000), answers=(4, 8), environment={"VALORA_GPU_PREFILL": kernels})
            rows[kernels].append(row["ttft_ms"])
        times[name] = {kernels: sum(values) / len(values) for kernels, values in rows.items()}
    return times


def tiles(run):
    """Searches tiles of low-rank products for both decoder sizes; the servers of later steps use the table."""
    import random_model
    lines = []
    for name, size in random_model.SIZES.items():
        random_model.write_config(run.scratch / f"{name}-config", size)
        log = run.command(run.program("valora"), "tune", "--model", run.scratch / f"{name}-config", "--device", "cuda",
                          "--dtype", "bfloat16", "--ranks", "16,64", "--seconds", 120, "--resume", environment=tables(run))
        lines += [name, *(line for line in log.splitlines() if "geometric" in line or "shapes" in line)]
        run.keep({"lines": lines})
    for table in (run.out / "cache/valora").glob("tiles-*.json"):
        (run.out / "tiles.json").write_text(table.read_text())
    return {"lines": lines}


def tables(run):
    """The environment in which programs read and write this run's tables."""
    return {"XDG_CACHE_HOME": str(run.out / "cache")}


def bench(run, model, adapters, count, clients, prompts=(64, 256), answers=(64, 128), environment=None):
    """Runs a closed loop. Some kinds of steps are not captured at first, so a single client sends several
    requests."""
    requests = max(20, 4 * clients)
    log = run.command(run.program("valora-bench"), "trace", model, "--device", "cuda", "--threads", "8", "--json",
                      "--policies", "unmerged", "--clients", clients, "--seconds", 4, "--rate", requests / 4, "--prompt-min", prompts[0],
                      "--prompt-max", prompts[1], "--answer-min", answers[0], "--answer-max", answers[1], "--max-num-seqs", max(64, clients),
                      "--adapters", count, *(["--lora-dir", adapters] if count else []), environment=tables(run) | (environment or {}))
    row = json.loads(log[log.index("[\n"):])[0]
    return {"clients": clients, "adapters": count, "tokens_per_second": row["tokens_per_second"],
            "tpot_ms": 1e3 * row["tpot_seconds"]["mean"], "ttft_ms": 1e3 * row["ttft_seconds"]["p50"],
            "answers": row["answers"], "failed": row["failed"]}


def steps_of(run, name, settings, rank):
    """Decode steps in a closed loop, compared with the time to read the bytes of a step."""
    import checkpoints
    import random_model
    size = random_model.SIZES[name]
    most = max(count for _, count in settings)
    model, adapters = random_model.make(run.scratch, name, most, rank, checkpoints.write_tokenizer)
    read = run.figures.get("device", {}).get("read_bytes_per_second")
    rows = []
    for clients, count in settings:
        row = bench(run, model, adapters, count, clients)
        if read:
            cached = clients * 256 * 2 * 2 * size["num_hidden_layers"] * size["num_key_value_heads"] * (
                size["hidden_size"] // size["num_attention_heads"])
            used = min(clients, count) * random_model.adapter_values(size, rank) * 2
            row["floor_ms"] = 1e3 * (2 * random_model.parameters(size) + cached + used) / read
            row["over_floor"] = row["tpot_ms"] / row["floor_ms"]
        rows.append(row)
        run.keep(rows)  # keeps earlier measurements if a step runs out of time
    return rows


def small_steps(run):
    return steps_of(run, "0.5b", [(1, 8), (8, 8), (32, 8), (128, 8), (8, 0)], 16)


def large_steps(run):
    return steps_of(run, "7b", [(1, 1), (8, 8), (32, 32), (1, 0), (8, 0)], 16)


# Environment settings that split operations which builds fuse, or move work from the GPU to the host (docs/gpu.md).
BEFORE = {"VALORA_GPU_SEPARATE": "products,rotation,merge,shrink,activation,overlap", "VALORA_GPU_SAMPLING": "0", "VALORA_GPU_CAPTURE": "decode",
          "XDG_CACHE_HOME": "/nonexistent"}
APART = {"as it is": {}, "all of the below": BEFORE,
         **{f"{name} apart": {"VALORA_GPU_SEPARATE": name} for name in ("products", "rotation", "merge", "shrink", "activation", "overlap")},
         "tokens chosen from whole rows": {"VALORA_GPU_SAMPLING": "0"},
         "no captures ahead": {"VALORA_GPU_CAPTURE": "seen"},
         "prompts not captured": {"VALORA_GPU_CAPTURE": "decode"},
         "other tiles": {"XDG_CACHE_HOME": "/nonexistent"}}


def launches(run):
    """The effect of each way to reduce launches: the same load under each setting. Prompts have similar lengths, so that
    their steps are captured after the first ones. Settings are also tried one at a time, for eight clients of the
    smaller decoder."""
    import checkpoints
    import random_model
    rows = []
    for name in run.sizes:
        model, adapters = random_model.make(run.scratch, name, 8, 16, checkpoints.write_tokenizer)
        for clients in (1, 8):
            each = name == "0.5b" and clients == 8
            for setting, environment in APART.items() if each else list(APART.items())[:2]:
                row = bench(run, model, adapters, 8, clients, prompts=(100, 128), answers=(32, 64), environment=environment)
                rows.append({"decoder": name, "setting": setting} | row)
                run.keep(rows)
    return rows


def eager(run):
    """Eight requests with eight adapters: valora and transformers + PEFT in turn, on one checkpoint."""
    log = run.command(sys.executable, ROOT / "tools/bench/mixed_adapters.py", "--device", "cuda", "--program",
                      run.program("valora"), "--folder", run.scratch / "eager", "--rounds", "2", "--threads", "8")
    return {"lines": re.findall(r"^(?:median|bound|overhead).*$", log, re.MULTILINE)}


# Most valuable first: correctness comes before speed. (name, time limit in seconds, function)
STEPS = [("device", 40, device), ("kernels", 60, kernels), ("operators", 120, operators), ("parity", 330, parity),
         ("kernel_times", 90, kernel_times), ("prefill", 240, prefill), ("tiles", 200, tiles), ("small_steps", 90, small_steps),
         ("large_steps", 180, large_steps), ("launches", 200, launches), ("eager", 90, eager)]
