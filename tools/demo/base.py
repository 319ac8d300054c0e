"""Trains the base model from scratch on drawn scenes, short texts and clips, within a budget of wall-clock time."""

import argparse
import time
from pathlib import Path

import numpy as np
import torch

import clips
import dense
import glyphs
import scenes
from model import answer_loss, build, patches, read, see_patches
from prompt import ASK, TEMPLATE, Packer
from tokenizer import SPECIAL, corpus, save, train as train_tokenizer

SEED = 20240607
BATCH = 40
PAIRS = 5
TALK = [("Hello!", "Hello! Show me a small picture or a short video."), ("Hi", "Hello! Show me a small picture or a short video."),
        ("Who are you?", "A small vision language model."), ("What can you do?", "Describe a small picture or a short video."),
        ("Thanks!", "You are welcome."), ("Thank you", "You are welcome.")]


def tokens_of(rng):
    return train_tokenizer(corpus([scenes.scene, glyphs.text, clips.clip], rng))


def copy_pair(rng, packer, count):
    """Repeats random tokens: keeps every row of the tied embedding usable as an answer."""
    ids = rng.integers(0, count, rng.integers(1, 6)).tolist()
    return packer.encode("Repeat: ") + ids + packer.encode(ASK), ids


def draw_batch(rng, size=BATCH):
    """Samples of one kind and one size, with their pairs chosen; None stands for text without a picture."""
    kind = rng.choice(["scene", "text", "clip", "talk"], p=[0.52, 0.23, 0.22, 0.03])
    if kind == "talk":
        return kind, None, [[TALK[rng.integers(len(TALK))]] for _ in range(size)]
    width = height = 64
    if rng.random() < 0.22:
        width, height = (int(rng.choice([48, 64, 80, 96, 112] if kind != "clip" else [48, 64, 80])) for _ in range(2))
        size = max(12, min(size, size * 64 * 64 // (width * height)))
    if kind == "clip":
        frames = int(rng.choice([4, 6, 8]))
        size = max(12, size * 6 // (frames + 2))
        samples = [clips.clip(rng, frames, width, height) for _ in range(size)]
    else:
        draw = scenes.scene if kind == "scene" else glyphs.text
        samples = [draw(rng, width, height) for _ in range(size)]
    rows = [[s.pairs[i] for i in rng.permutation(len(s.pairs))[:PAIRS]] for s in samples]
    return kind, samples, rows


def optimizers(model, head, rate):
    matrices, rest = [], list(head.parameters())
    for name, p in model.named_parameters():
        (matrices if p.ndim == 2 and "embed_tokens" not in name else rest).append(p)
    return [torch.optim.Muon(matrices, lr=rate, weight_decay=0.05, adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW(rest, lr=rate, weight_decay=0.01, betas=(0.9, 0.98))]


def fit(model, tokenizer, minutes, checkpoint, rate=3e-3):
    """The learning rate falls linearly over the last half of the time; a checkpoint is continued."""
    head, packer, rng = dense.Dense(), Packer(tokenizer, model), np.random.default_rng(SEED)
    steps = optimizers(model, head, rate)
    step, spent, seen, ordinary = 0, 0.0, 0, tokenizer.get_vocab_size() - len(SPECIAL)
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(state["model"]), head.load_state_dict(state["head"])
        for o, s in zip(steps, state["optimizers"]):
            o.load_state_dict(s)
        step, spent, seen = state["step"], state["spent"], state["seen"]
        rng = np.random.default_rng(SEED + step)
    start, saved, history = time.time() - spent, time.time(), {}
    while (share := (time.time() - start) / (60 * minutes)) < 1:
        factor = min(1, (step + 1) / 100) * min(1, 2 * (1 - share))
        for o in steps:
            o.param_groups[0]["lr"] = rate * factor
        kind, samples, rows = draw_batch(rng)
        for row in rows:
            if rng.random() < 0.5:
                row.append(copy_pair(rng, packer, ordinary))
        with torch.autocast("cpu", torch.bfloat16):
            features, grid, extra = None, None, 0.0
            if samples:
                x, grid = patches(samples)
                features = see_patches(model.model.visual, x, grid)
                weight = 0.3 * max(0.0, 1 - share / 0.7)
                if weight:
                    extra = weight * head(features, dense.labels(samples))
            batch = packer.pack(rows, grid, kind == "clip")
            hidden = read(model, batch, features)
            # Copied tokens count less, so that they do not drown the first steps.
            copied = batch["weights"] = torch.ones(batch["labels"].shape)
            for r, row in enumerate(rows):
                if not isinstance(row[-1][0], str):
                    n = len(row[-1][0]) + len(row[-1][1])
                    end = int((batch["labels"][r] != -100).nonzero().max()) + 1
                    copied[r, end - n:end] = 0.2
            loss = answer_loss(model, hidden, batch["labels"], copied)
        (loss + extra).backward()
        torch.nn.utils.clip_grad_norm_([*model.parameters(), *head.parameters()], 1.0)
        for o in steps:
            o.step()
            o.zero_grad(set_to_none=True)
        step, seen = step + 1, seen + len(rows)
        history.setdefault(kind, []).append(loss.item())
        if step % 50 == 0:
            means = " ".join(f"{k} {np.mean(v[-40:]):.3f}" for k, v in sorted(history.items()))
            print(f"step {step} share {share:.3f} images {seen} extra {float(torch.as_tensor(extra).detach()):.3f} {means}", flush=True)
        if time.time() - saved > 150:
            saved = time.time()
            store(checkpoint, model, head, steps, step, saved - start, seen)
    store(checkpoint, model, head, steps, step, time.time() - start, seen)
    return {"minutes": round((time.time() - start) / 60, 1), "steps": step, "images": seen}


def store(path, model, head, steps, step, spent, seen):
    partial = path.with_suffix(".part")
    torch.save({"model": model.state_dict(), "head": head.state_dict(), "optimizers": [o.state_dict() for o in steps],
                "step": step, "spent": spent, "seen": seen}, partial)
    partial.replace(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=45)
    parser.add_argument("--work", type=Path, required=True, help="folder for the checkpoint")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(SEED)
    tokenizer = tokens_of(np.random.default_rng(SEED))
    save(tokenizer, options.work, TEMPLATE)
    print(fit(build(tokenizer), tokenizer, options.minutes, options.work / "base.pt"))


if __name__ == "__main__":
    main()
