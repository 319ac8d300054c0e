"""Accuracy per skill while the base model trains: every token of an answer must be the most likely one after the right
tokens before it; boxes are compared by their mean IoU."""

import numpy as np
import torch

import boxes
from model import patches, read, see_patches

SEED, BATCHES, SIZE = 800001, 12, 24


def skill(question):
    return " ".join(question.rstrip(".?!").split()[:2])


@torch.no_grad()
def scores(model, packer, draw_batch):
    """Skill to its scores."""
    plan, out = np.random.default_rng(SEED), {}
    for _ in range(BATCHES):
        kind, samples, rows = draw_batch(plan, plan, packer, SIZE)
        with torch.autocast("cpu", torch.bfloat16):
            x, grid = patches(samples) if samples else (None, None)
            batch = packer.pack(rows, grid, kind == "clip")
            hidden = read(model, batch, see_patches(model.model.visual, x, grid) if samples else None)
            said = torch.nn.functional.linear(hidden, model.model.language_model.embed_tokens.weight).argmax(-1)
        for r, row in enumerate(rows):
            at = (batch["labels"][r] != -100).nonzero().flatten()
            for question, answer in row:
                size = len(packer.encode(answer)) + 1
                own, at = at[:size], at[size:]
                name = "talk" if kind == "talk" else skill(question)
                score = float((said[r][own] == batch["labels"][r][own]).all())
                if want := boxes.read(answer):
                    got = boxes.read(packer.tokenizer.decode(said[r][own].tolist()))
                    score = float(np.mean([boxes.overlap(g[1], w[1]) for g, w in zip(got, want)])) if len(got) == len(want) else 0.0
                out.setdefault(name, []).append(score)
    return out


def line(model, packer, draw_batch):
    found = scores(model, packer, draw_batch)
    return ", ".join(f"{name} {np.mean(values):.2f}" for name, values in sorted(found.items()) if len(values) >= 8)
