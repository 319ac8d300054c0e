"""Trains the base model from scratch on drawn scenes, short texts and clips, in a given number of steps."""

import json
import time

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import distributed, multiprocessing

import clips
import dense
import glyphs
import progress
import scenes
import start
import talk
from model import answer_loss, build, patches, read, see_patches
from prompt import ASK, TEMPLATE, Packer
from tokenizer import SPECIAL, WORDS, corpus, save
from tokenizer import train as train_tokenizer

SEED = 20240607
BATCH = 32
EYES = 2400    # first steps, in which only the vision tower learns, at a fifth of the cost
LOOK = 40      # pictures per such step
ROOM = 50      # tokens of all pairs of one picture
RATE = 3e-3
WARM = 60      # steps
EVERY = 50     # steps between reports, and between looks at the number of steps
CHECK = 400    # steps between measurements of accuracy
COPIES = 0.15  # share of pictures with a copy task
DENSE = 0.3    # initial weight of the dense loss
KINDS = {"scene": 0.52, "text": 0.23, "clip": 0.21, "talk": 0.04}


def tokens_of(rng):
    return train_tokenizer(corpus([scenes.scene, glyphs.text, clips.clip], talk.pair, rng))


def copy_pair(rng, packer, count):
    """A sample that repeats random tokens; keeps every row of the tied embedding usable as an
    answer."""
    ids = rng.integers(0, count, rng.integers(1, 6)).tolist()
    return packer.encode("Repeat: ") + ids + packer.encode(ASK), ids


def fitting(rng, packer, pairs):
    """As many pairs as there is room for, in random order; at least one."""
    row, room = [], ROOM
    for i in rng.permutation(len(pairs)):
        question, answer = pairs[i]
        size = len(packer.encode(question + ASK)) + len(packer.encode(answer))
        if size <= room or not row:
            row.append(pairs[i])
            room -= size
    return row


def draw_batch(plan, rng, packer, size):
    """Samples of one kind and one size, with their pairs; None for text without a picture.

    Every row has about as many tokens as the others, because padding costs as much as tokens do.

    plan: generator that is the same in every process, so that steps take equally long in all; rng: the
    process's own.
    """
    kind = str(plan.choice(list(KINDS), p=list(KINDS.values())))
    if kind == "talk":
        return kind, None, [fitting(rng, packer, [unseen(rng) for _ in range(8)]) for _ in range(size)]
    width = height = 64
    if plan.random() < 0.15:
        width, height = (int(plan.choice([48, 64, 80, 96] if kind != "clip" else [48, 64, 80])) for _ in range(2))
        size = max(8, min(size, size * 64 * 64 // (width * height)))
    if kind == "clip":
        frames = int(plan.choice([4, 6, 8]))
        size = max(8, size * 6 // (frames + 2))
        samples = [clips.clip(rng, frames, width, height) for _ in range(size)]
    else:
        draw = scenes.scene if kind == "scene" else glyphs.text
        samples = [draw(rng, width, height) for _ in range(size)]
    extra = lambda: [talk.pair(rng)] if rng.random() < 0.15 else []
    return kind, samples, [fitting(rng, packer, s.pairs + extra()) for s in samples]


def unseen(rng):
    """A pair for a prompt without a picture; sometimes a question that needs one."""
    if rng.random() < 0.8:
        return talk.pair(rng, WORDS.split())
    draw = scenes.pick(rng, [scenes.scene, glyphs.text, clips.clip])
    return scenes.pick(rng, draw(rng).pairs)[0], talk.SHOW


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


def rate_at(step, first, steps):
    """Warm-up, then constant, then falling linearly over the last half; warms up again after a stop, and when the language
    model begins to learn."""
    since = step - max(first, EYES if step >= EYES else 0)
    return RATE * min(1, (since + 1) / WARM) * min(1, 2 - 2 * share(step, steps))


def share(step, steps):
    """The part of the steps of the whole model that is done."""
    return max(0, step - EYES) / (steps - EYES)


def agreed(steps, folder, count):
    """The number of steps in all; WORK/steps.txt changes it while the training runs."""
    file = folder / "steps.txt"
    number = torch.tensor(int(file.read_text()) if file.exists() else steps)
    if count > 1:
        distributed.broadcast(number, 0)
    return int(number)


def fit(model, tokenizer, steps, folder, rank=0, count=1):
    """Resumes from a checkpoint if there is one.

    Several single-threaded processes suffer less from other load on the machine than one multi-threaded process, which
    waits for its slowest thread at every operation.
    """
    head, packer, checkpoint = dense.Dense(), Packer(tokenizer, model), folder / "base.pt"
    matrices, rest = [], list(head.parameters())
    for name, p in model.named_parameters():
        (matrices if p.ndim == 2 and "embed_tokens" not in name else rest).append(p)
    muon = torch.optim.Muon(matrices[rank::count], lr=RATE, weight_decay=0.05, ns_steps=4, adjust_lr_fn="match_rms_adamw")
    adam = torch.optim.AdamW(rest, lr=RATE, weight_decay=0.01, betas=(0.9, 0.98))
    step, spent, seen, ordinary = 0, 0.0, 0, tokenizer.get_vocab_size() - len(SPECIAL)
    if checkpoint.exists():  # Muon's momentum is not saved
        state = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(state["model"]), head.load_state_dict(state["head"])
        adam.load_state_dict(state["adam"])
        step, spent, seen = state["step"], state["spent"], state["seen"]
    first = step
    plan, rng = np.random.default_rng([SEED, step]), np.random.default_rng([SEED, step, rank])
    began, saved, history = time.time() - spent, time.time(), {}
    while True:
        if step == first or step % EVERY == 0:
            steps = agreed(steps, folder, count)
        if step >= steps:
            break
        for o in (muon, adam):
            o.param_groups[0]["lr"] = rate_at(step, first, steps)
        batch = draw_batch(plan, rng, packer, (LOOK if step < EYES else BATCH) // count)
        if step < EYES and batch[1] is None:
            continue
        if step < EYES:
            loss = look(model, head, batch, history)
        else:
            loss = forward(model, head, packer, rng, batch, DENSE * min(1.0, 2 - 2 * share(step, steps)), ordinary, history)
        loss.backward()
        average([*matrices, *rest], count)
        torch.nn.utils.clip_grad_norm_([*matrices, *rest], 1.0)
        for o in (muon, adam):
            o.step()
        for p in (*matrices, *rest):
            p.grad = None
        share_matrices(matrices, count)
        step, seen = step + 1, seen + len(batch[2]) * count
        if rank == 0 and step % (EVERY if step > EYES else 4 * EVERY) == 0:
            means = " ".join(f"{k} {np.mean(v[-40:]):.3f}" for k, v in sorted(history.items()))
            print(f"{time.strftime('%H:%M:%S')} step {step} of {steps} images {seen} {means}", flush=True)
        if rank == 0 and step > EYES and (step % CHECK == 0 or step == steps):
            print(f"{time.strftime('%H:%M:%S')} step {step} accuracy {progress.line(model, packer, draw_batch)}", flush=True)
        if rank == 0 and time.time() - saved > 150:
            saved = time.time()
            store(checkpoint, model, head, adam, step, saved - began, seen)
    if rank == 0:
        store(checkpoint, model, head, adam, step, time.time() - began, seen)
    return {"minutes": round((time.time() - began) / 60, 1), "steps": step, "images": seen}


def look(model, head, batch, history):
    """The loss of the dense heads alone."""
    kind, samples, _ = batch
    with torch.autocast("cpu", torch.bfloat16):
        x, grid = patches(samples)
        loss = head(see_patches(model.model.visual, x, grid), dense.labels(samples))
    history.setdefault(f"dense {kind}", []).append(loss.item())
    return loss


def forward(model, head, packer, rng, batch, weight, ordinary, history):
    """The loss of one batch; weight: of the dense heads' loss."""
    kind, samples, rows = batch
    for row in rows:
        if rng.random() < COPIES:
            row[-1] = copy_pair(rng, packer, ordinary)
    with torch.autocast("cpu", torch.bfloat16):
        features, grid, extra = None, None, 0.0
        if samples:
            x, grid = patches(samples)
            features = see_patches(model.model.visual, x, grid)
            if weight:
                told = head(features, dense.labels(samples))
                history.setdefault(f"dense {kind}", []).append(told.item())
                extra = weight * told
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


def work(rank, count, steps, folder, origin):
    """One training process; returns its record."""
    torch.set_num_threads(1 if count > 1 else torch.get_num_threads())
    if count > 1:
        distributed.init_process_group("gloo", init_method=f"file://{folder / 'meeting'}", rank=rank, world_size=count)
    torch.manual_seed(SEED)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    model = build(tokenizer)
    if origin:
        start.take(model, tokenizer, origin)
    done = fit(model, tokenizer, steps, folder, rank=rank, count=count)
    if rank == 0:
        (folder / "base.json").write_text(json.dumps(done))
    if count > 1:
        distributed.destroy_process_group()


def train(steps, folder, origin=None, count=2):
    """Makes the tokenizer, then trains in `count` processes; origin: a packaged model to begin with."""
    if not (folder / "tokenizer.json").exists():
        save(tokens_of(np.random.default_rng(SEED)), folder, TEMPLATE)
    (folder / "meeting").unlink(missing_ok=True)
    multiprocessing.spawn(work, (count, steps, folder.resolve(), origin), nprocs=count)
    return json.loads((folder / "base.json").read_text())
