#!/usr/bin/env python3
"""valora against transformers + PEFT: one batch of requests, each under its own adapter, in interleaved runs.

Both sides serve the same random checkpoint in bf16 with the same threads, the same prompts and a fixed number of
output tokens. PEFT runs its mixed-adapter batch (`adapter_names=`); `--base` runs both without adapters.
Prints each run, the medians, their ratio, and the machine's bound: all weights are read once per decode step.

    .venv/bin/python tools/bench/mixed_adapters.py --rounds 3
"""

import argparse
import base64
import io
import os
import statistics
import time

import torch
from peft import PeftModel
from PIL import Image
from transformers import Qwen2ForCausalLM, Qwen2VLForConditionalGeneration, Qwen2VLImageProcessor

import checkpoints
from valora_server import Valora


def synchronize(device):
    if device.type == "cuda":
        torch.cuda.synchronize()


class Reference:
    def __init__(self, model_dir, adapter_dirs, tower, device):
        family = Qwen2VLForConditionalGeneration if tower else Qwen2ForCausalLM
        model = family.from_pretrained(model_dir, dtype=torch.bfloat16).to(device).eval()
        if adapter_dirs:
            model = PeftModel.from_pretrained(model, adapter_dirs[0], adapter_name="a0")
            for i, path in enumerate(adapter_dirs[1:], 1):
                model.load_adapter(path, adapter_name=f"a{i}")
        self.model = model.to(device).eval()

    @torch.inference_mode()
    def run(self, inputs, names, tokens):
        first = []

        def on_first(_, scores):  # the first scores mark the end of prefill
            if not first:
                synchronize(scores.device)
                first.append(time.perf_counter())
            return scores

        device = self.model.device
        begin = time.perf_counter()
        extra = {"adapter_names": names} if hasattr(self.model, "peft_config") else {}
        self.model.generate(**{k: v.to(device) for k, v in inputs.items()}, **extra, max_new_tokens=tokens,
                            min_new_tokens=tokens, do_sample=False, pad_token_id=0, logits_processor=[on_first])
        synchronize(device)
        end = time.perf_counter()
        return end - begin, end - first[0]


class Bandwidth:
    """Memory bandwidth in bytes per second, measured by summing an array larger than the caches. It limits decode steps."""

    def __init__(self, threads, device):
        torch.set_num_threads(threads)
        self.data = torch.ones(1 << 28, dtype=torch.float32, device=device)

    def measure(self, times):
        rates = []
        for _ in range(times):
            begin = time.perf_counter()
            self.data.sum().item()
            rates.append(self.data.nbytes / (time.perf_counter() - begin))
        return rates


def picture(seed, size):
    generator = torch.Generator().manual_seed(seed)
    return Image.fromarray(torch.randint(0, 256, (size, size, 3), generator=generator, dtype=torch.uint8).numpy())


def data_url(image):
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/valora")
    parser.add_argument("--folder", default="build/bench")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--output", type=int, default=64)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="of both")
    parser.add_argument("--tower", action="store_true", help="Qwen2-VL: a 224 x 224 image per prompt")
    parser.add_argument("--base", action="store_true", help="no adapters on either side")
    options = parser.parse_args()

    folder = os.path.join(options.folder, "qwen2-vl-0.5b" if options.tower else "qwen2-0.5b")
    model_dir, adapter_dirs = checkpoints.make(folder, options.tower, options.batch, options.rank)
    if options.base:
        adapter_dirs = []
    names = [f"a{i}" for i in range(options.batch)] if adapter_dirs else ["base"] * options.batch
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(0, 256, (options.batch, options.prompt), generator=generator)

    images, prompts = None, ids.tolist()
    inputs = dict(input_ids=ids, attention_mask=torch.ones_like(ids))
    if options.tower:
        pictures = [picture(i, 224) for i in range(options.batch)]
        images = [data_url(p) for p in pictures]
        # Text tokens fill the prompt up to --prompt: the image takes 64, and the chat format about 90
        # bytes.
        prompts = ["x" * 8] * options.batch
        vision = Qwen2VLImageProcessor.from_pretrained(model_dir)(pictures, return_tensors="pt")
        row = [151652] + [151655] * 64 + [151653] + [1] * (options.prompt - 66)
        ids = torch.tensor([row] * options.batch)
        inputs = dict(input_ids=ids, attention_mask=torch.ones_like(ids), **vision)

    rate = max(Bandwidth(options.threads, options.device).measure(5))
    reference = Reference(model_dir, adapter_dirs, options.tower, options.device)
    ours = Valora(options.program, model_dir, adapter_dirs, options.threads, ["--device", options.device])
    rows = {"valora": [], "reference": []}
    try:
        for round_ in range(options.rounds + 1):  # the first round warms up both sides
            for name, result in (("valora", ours.run(prompts, images, names, options.output)),
                                 ("reference", reference.run(inputs, names, options.output))):
                if round_ == 0:
                    continue
                total, decode = result
                overall = options.batch * options.output / total
                steady = options.batch * (options.output - 1) / decode
                rows[name].append((overall, steady))
                print(f"round {round_}  {name:<9}  {overall:7.1f} tokens/s overall  {steady:7.1f} tokens/s in decode", flush=True)
        overhead = ours.overhead()
    finally:
        ours.close()
    # A decode step reads the decoder's weights once (the tied embedding serves as the head), and each adapter's.
    decoder = 494_032_768 * 2
    lora = sum(os.path.getsize(os.path.join(d, "adapter_model.safetensors")) for d in adapter_dirs)
    bound = options.batch * rate / (decoder + lora)
    median = {name: [statistics.median(r[i] for r in values) for i in (0, 1)] for name, values in rows.items()}
    print(f"median     overall {median['valora'][0]:.1f} against {median['reference'][0]:.1f}: "
          f"{median['valora'][0] / median['reference'][0]:.2f}x; "
          f"decode {median['valora'][1]:.1f} against {median['reference'][1]:.1f}: "
          f"{median['valora'][1] / median['reference'][1]:.2f}x")
    print(f"bound      {bound:.0f} tokens/s in decode at {rate / 1e9:.1f} GB/s measured: valora is at "
          f"{100 * median['valora'][1] / bound:.0f} %")
    print(f"overhead   {overhead:.2f} % of the engine's step time is outside the model")


if __name__ == "__main__":
    main()
