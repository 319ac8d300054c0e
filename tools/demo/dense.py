"""A head for base training only: each visual token must match the embeddings of the words for its cell.

With answers alone, the vision tower stays on a long plateau. This loss ends it, and because it compares with word
embeddings, reading a picture becomes similar to copying words. Its weight fades to zero, and the head is
discarded.
"""

import torch
from torch import nn

from clips import MOTIONS
from glyphs import CHARACTERS
from scenes import COLOURS, SHAPES

COLOUR_NAMES = list(COLOURS)
MOTION_WORDS = ["left", "right", "up", "down", "grows", "shrinks", "spins", "blinks", "still", "changes", "bounces"]  # in the order of MOTIONS
KINDS = {"shape": SHAPES, "colour": COLOUR_NAMES, "character": list(CHARACTERS), "motion": MOTION_WORDS}
SHARPNESS = 20.0


class Dense(nn.Module):
    def __init__(self, tokenizer, hidden=192):
        super().__init__()
        ids = lambda word: [i for form in (word, f" {word}") for i in tokenizer.encode(form, add_special_tokens=False).ids]
        self.words = {kind: [ids(word) for word in words] for kind, words in KINDS.items()}
        self.nothing = nn.ParameterDict({kind: nn.Parameter(0.02 * torch.randn(hidden)) for kind in KINDS})
        self.box = nn.Linear(hidden, 4)

    def forward(self, features, labels, table):
        """table: the language model's embeddings."""
        flat = features.flatten(0, 1).float()
        looks = nn.functional.normalize(flat, dim=-1)
        table = table.detach().float()
        table = table - table.mean(0)
        loss = 0.0
        for kind, words in self.words.items():
            known = torch.stack([self.nothing[kind], *(table[ids].mean(0) for ids in words)])
            loss = loss + nn.functional.cross_entropy(SHARPNESS * looks @ nn.functional.normalize(known, dim=-1).T, labels[kind].flatten())
        present = labels["shape"].flatten() + labels["character"].flatten() > 0
        if present.any():
            loss = loss + 4 * nn.functional.l1_loss(self.box(flat[present]).float(), labels["box"].flatten(0, 1)[present])
        return loss


def labels(samples):
    """Labels of every cell, in the order of the language model's image tokens."""
    out = {name: [] for name in [*KINDS, "box"]}
    for sample in samples:
        height, width = sample.frames[0].shape[:2]
        rows = {name: [] for name in out}
        for things, owner in zip(sample.cells["things"], sample.cells["owner"]):
            table = {name: [0] for name in KINDS} | {"box": [[0.0] * 4]}
            for thing in things:
                glyph = thing.shape in CHARACTERS
                table["shape"].append(0 if glyph else SHAPES.index(thing.shape) + 1)
                table["character"].append(CHARACTERS.index(thing.shape) + 1 if glyph else 0)
                table["colour"].append(COLOUR_NAMES.index(thing.colour) + 1)
                table["motion"].append(MOTIONS.index(thing.motion) + 1 if thing.motion else 0)
                table["box"].append([thing.box[0] / width, thing.box[1] / height, thing.box[2] / width, thing.box[3] / height])
            at = torch.from_numpy(owner).flatten()
            for name in rows:
                rows[name].append(torch.tensor(table[name])[at])
        for name in out:
            out[name].append(torch.cat(rows[name]))
    return {name: torch.stack(values) for name, values in out.items()}
