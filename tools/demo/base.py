"""Trains the base model from scratch on drawn scenes, short texts and clips, within a limited wall-clock time."""

import json
import time

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import distributed, multiprocessing

import clips
import dense
import glyphs
import scenes
from model import answer_loss, build, patches, read, see_patches
from prompt import ASK, TEMPLATE, Packer
from tokenizer import SPECIAL, corpus, save
from tokenizer import train as train_tokenizer

SEED = 20240607
BATCH = 24
LOOK = 40  # pictures per step that trains only the vision tower
PAIRS = 5
EYES = 0.25  # initial share of the time in which only the vision tower learns, at a fifth of the cost
TALK = [("Hello!", "Hello! Show me a small picture or a short video."), ("Hi", "Hello! Show me a small picture or a short video."),
        ("Who are you?", "A small vision language model."), ("What can you do?", "Describe a small picture or a short video."),
        ("Thanks!", "You are welcome."), ("Thank you", "You are welcome.")]


def tokens_of(rng):
    return train_tokenizer(corpus([scenes.scene, glyphs.text, clips.clip], rng))


def copy_pair(rng, packer, count):
    """A sample that repeats random tokens; keeps every row of the tied embedding usable as an
    answer."""
    ids = rng.integers(0, count, rng.integers(1, 6)).tolist()
    return packer.encode("Repeat: ") + ids + packer.encode(ASK), ids


def draw_batch(plan, rng, size=BATCH):
    """Samples of one kind and one size, with their pairs; None for text without a picture.

    plan: generator that is the same in every process, so that steps take equally long in all; rng: the
    process's own.
    """
    kind = str(plan.choice(["scene", "text", "clip", "talk"], p=[0.52, 0.23, 0.22, 0.03]))
    if kind == "talk":
        return kind, None, [[TALK[rng.integers(len(TALK))]] for _ in range(size)]
    width = height = 64
    if plan.random() < 0.22:
        width, height = (int(plan.choice([48, 64, 80, 96, 112] if kind != "clip" else [48, 64, 80])) for _ in range(2))
        size = max(8, min(size, size * 64 * 64 // (width * height)))
    if kind == "clip":
        frames = int(plan.choice([4, 6, 8]))
        size = max(8, size * 6 // (frames + 2))
        samples = [clips.clip(rng, frames, width, height) for _ in range(size)]
    else:
        draw = scenes.scene if kind == "scene" else glyphs.text
        samples = [draw(rng, width, height) for _ in range(size)]
    rows = [[s.pairs[i] for i in rng.permutation(len(s.pairs))[:PAIRS]] for s in samples]
    return kind, samples, rows


def average(parameters, count):
    """Averages the gradients over all processes."""
    if count > 1:
        grads = [p.grad for p in parameters if p.grad is not None]
        flat = torch.cat([g.flatten() for g in grads])
        distributed.all_reduce(flat)
        flat /= count
        for grad, part in zip(grads, flat.split([g.numel() for g in grads])):
            grad.copy_(part.view_as(grad))


def share_matrices(matrices, count):
    """Broadcasts the matrices that each process has updated to all others."""
    for source in range(count if count > 1 else 0):
        own = [m.data for m in matrices[source::count]]
        flat = torch.cat([m.flatten() for m in own])
        distributed.broadcast(flat, source)
        for matrix, part in zip(own, flat.split([m.numel() for m in own])):
            matrix.copy_(part.view_as(matrix))


def fit(model, tokenizer, minutes, checkpoint, rate=3e-3, rank=0, count=1):
    """The learning rate falls linearly over the last 45 % of the time; training resumes from a checkpoint if there is one.

    Several single-threaded processes suffer less from other load on the machine than one multi-threaded process, which
    waits for its slowest thread at every operation.
    """
    head, packer = dense.Dense(tokenizer), Packer(tokenizer, model)
    matrices, rest = [], list(head.parameters())
    for name, p in model.named_parameters():
        (matrices if p.ndim == 2 and "embed_tokens" not in name else rest).append(p)
    muon = torch.optim.Muon(matrices[rank::count], lr=rate, weight_decay=0.05, adjust_lr_fn="match_rms_adamw")
    adam = torch.optim.AdamW(rest, lr=rate, weight_decay=0.01, betas=(0.9, 0.98))
    step, spent, seen, ordinary = 0, 0.0, 0, tokenizer.get_vocab_size() - len(SPECIAL)
    if checkpoint.exists():  # Muon's momentum is not saved, so the rate warms up again
        state = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(state["model"]), head.load_state_dict(state["head"])
        adam.load_state_dict(state["adam"])
        step, spent, seen = state["step"], state["spent"], state["seen"]
    first = step
    plan, rng = np.random.default_rng([SEED, step]), np.random.default_rng([SEED, step, rank])
    start, saved, history = time.time() - spent, time.time(), {}
    while True:
        now = torch.tensor((time.time() - start) / (60 * minutes))
        if count > 1:
            distributed.broadcast(now, 0)
        if (share := now.item()) >= 1:
            break
        for o in (muon, adam):
            o.param_groups[0]["lr"] = rate * min(1, (step - first + 1) / 60) * min(1, (1 - share) / 0.45)
        kind, samples, rows = draw_batch(plan, rng, (LOOK if share < EYES else BATCH) // count)
        if share < EYES:
            if kind == "talk":
                continue
            loss = look(model, head, kind, samples, history)
        else:
            loss = forward(model, head, packer, rng, kind, samples, rows, 0.3 * max(0.0, 1 - share / 0.7), ordinary, history)
        loss.backward()
        average([*matrices, *rest], count)
        torch.nn.utils.clip_grad_norm_([*matrices, *rest], 1.0)
        for o in (muon, adam):
            o.step()
        for p in (*matrices, *rest):
            p.grad = None
        share_matrices(matrices, count)
        step, seen = step + 1, seen + len(rows) * count
        if rank == 0 and step % (200 if share < EYES else 50) == 0:
            means = " ".join(f"{k} {np.mean(v[-40:]):.3f}" for k, v in sorted(history.items()))
            print(f"{time.strftime('%H:%M:%S')} step {step} share {share:.3f} images {seen} {means}", flush=True)
        if rank == 0 and time.time() - saved > 150:
            saved = time.time()
            store(checkpoint, model, head, adam, step, saved - start, seen)
    if rank == 0:
        store(checkpoint, model, head, adam, step, time.time() - start, seen)
    return {"minutes": round((time.time() - start) / 60, 1), "steps": step, "images": seen}


def look(model, head, kind, samples, history):
    """The loss of the dense head only."""
    with torch.autocast("cpu", torch.bfloat16):
        x, grid = patches(samples)
        loss = head(see_patches(model.model.visual, x, grid), dense.labels(samples), model.model.language_model.embed_tokens.weight)
    history.setdefault(f"dense {kind}", []).append(loss.item())
    return loss


def forward(model, head, packer, rng, kind, samples, rows, weight, ordinary, history):
    """The loss of one batch; weight: of the dense head's loss."""
    for row in rows:
        if rng.random() < 0.5:
            row.append(copy_pair(rng, packer, ordinary))
    with torch.autocast("cpu", torch.bfloat16):
        features, grid, extra = None, None, 0.0
        if samples:
            x, grid = patches(samples)
            features = see_patches(model.model.visual, x, grid)
            if weight:
                extra = weight * head(features, dense.labels(samples), model.model.language_model.embed_tokens.weight)
        batch = packer.pack(rows, grid, kind == "clip")
        hidden = read(model, batch, features)
        # Copied tokens get less weight, so that they do not dominate the first steps.
        copied = torch.ones(batch["labels"].shape)
        for r, row in enumerate(rows):
            if not isinstance(row[-1][0], str):
                n = len(row[-1][0]) + len(row[-1][1])
                end = int((batch["labels"][r] != -100).nonzero().max()) + 1
                copied[r, end - n:end] = 0.2
        loss = answer_loss(model, hidden, batch["labels"], copied)
    history.setdefault(kind, []).append(loss.item())
    return loss + extra


def store(path, model, head, adam, step, spent, seen):
    partial = path.with_suffix(".part")
    torch.save({"model": model.state_dict(), "head": head.state_dict(), "adam": adam.state_dict(),
                "step": step, "spent": spent, "seen": seen}, partial)
    partial.replace(path)


def work(rank, count, minutes, folder):
    """One training process; returns its record."""
    torch.set_num_threads(1 if count > 1 else torch.get_num_threads())
    if count > 1:
        distributed.init_process_group("gloo", init_method=f"file://{folder / 'meeting'}", rank=rank, world_size=count)
    torch.manual_seed(SEED)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    done = fit(build(tokenizer), tokenizer, minutes, folder / "base.pt", rank=rank, count=count)
    if rank == 0:
        (folder / "base.json").write_text(json.dumps(done))
    if count > 1:
        distributed.destroy_process_group()


def train(minutes, folder, count=2):
    """Makes the tokenizer, then trains in `count` processes."""
    if not (folder / "tokenizer.json").exists():
        save(tokens_of(np.random.default_rng(SEED)), folder, TEMPLATE)
    (folder / "meeting").unlink(missing_ok=True)
    multiprocessing.spawn(work, (count, minutes, folder.resolve()), nprocs=count)
    return json.loads((folder / "base.json").read_text())
