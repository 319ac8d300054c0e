"""A small digit classifier as TorchScript, and unlabelled pictures for it to label.

The training part of the digits is split again: the teacher learns from one third, with labels; the pictures that
it labels for the student come from the other two thirds. Their true labels are also written, for comparison.
"""

import shutil
import zlib

import numpy as np
import torch
from PIL import Image
from torch import nn

import pictures
from datasets import SEEDS, write_lines

SIDE, MEAN, DEVIATION = 32, 0.5, 0.5
CONFIDENCE = 0.8  # less certain labels are dropped
PICTURES = 2500   # number of pictures to label
OWN, STEPS, BATCH, RATE, SEED = 4000, 300, 64, 2e-3, 11


def thirds():
    """(pictures, labels) of the teacher's third of the training part, and of the rest."""
    from sklearn.model_selection import train_test_split
    images, labels = pictures.digits()[0]
    own, rest, own_labels, rest_labels = train_test_split(images, labels, train_size=1 / 3, random_state=1, stratify=labels)
    return (own, own_labels), (rest, rest_labels)


def build():
    block = lambda a, b: [nn.Conv2d(a, b, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*block(1, 12), *block(12, 24), *block(24, 32), nn.Flatten(), nn.Linear(32 * 16, 10))


def seen(picture):
    """A drawn digit as the teacher's input: greyscale, SIDE x SIDE, normalised."""
    grey = Image.fromarray(picture).convert("L").resize((SIDE, SIDE), Image.BICUBIC)
    return (np.asarray(grey, np.float32) / 255 - MEAN) / DEVIATION


def train(path):
    """Writes the teacher: float32 [N, 1, SIDE, SIDE] to ten scores before the softmax. Returns its accuracy on the digits that it will
    label."""
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    (images, labels), (others, truth) = thirds()
    at = rng.integers(len(images), size=OWN)
    drawn = torch.from_numpy(np.stack([seen(pictures.digit(rng, images[i], move=True)[0]) for i in at]))[:, None]
    answers = torch.from_numpy(labels[at])
    model = build()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    for step in range(STEPS):
        optimizer.param_groups[0]["lr"] = RATE * (1 - step / STEPS)
        batch = torch.from_numpy(rng.integers(OWN, size=BATCH))
        loss = nn.functional.cross_entropy(model(drawn[batch]), answers[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    path.parent.mkdir(parents=True, exist_ok=True)
    example = torch.from_numpy(np.stack([seen(pictures.digit(rng, image)[0]) for image in others]))[:, None]
    torch.jit.trace(model, example[:1]).save(str(path))
    with torch.no_grad():
        return round(float((model(example).argmax(-1).numpy() == truth).mean()), 3)


def write_pictures(root, limit=None):
    """Writes pictures without labels to root/digits-unlabelled, and lists the same ones with their labels in
    digits-labelled.jsonl."""
    folder, lines = root / "digits-unlabelled", []
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rng = np.random.default_rng([SEEDS["train"], zlib.crc32(b"digits-unlabelled")])
    images, labels = thirds()[1]
    for n in range(min(PICTURES, limit or PICTURES)):
        at = int(rng.integers(len(images)))
        name = f"digits-unlabelled/{n:05}.png"
        Image.fromarray(pictures.digit(rng, images[at], move=True)[0]).save(root / name)
        lines.append({"image": name, "label": str(labels[at])})
    write_lines(lines, root / "digits-labelled.jsonl")
