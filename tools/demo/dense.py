"""A head for base training only: what stands in each cell of the picture.

Answers alone leave the vision tower on a long plateau; this loss ends it, fades to zero and is thrown away.
"""

import torch
from torch import nn

from clips import MOTIONS
from glyphs import CHARACTERS
from scenes import COLOURS, SHAPES

COLOUR_NAMES = list(COLOURS)
SIZES = {"shape": len(SHAPES) + 1, "colour": len(COLOURS) + 1, "character": len(CHARACTERS) + 1, "motion": len(MOTIONS) + 1}


class Dense(nn.Module):
    def __init__(self, hidden=192):
        super().__init__()
        self.kinds = nn.ModuleDict({name: nn.Linear(hidden, size) for name, size in SIZES.items()})
        self.box = nn.Linear(hidden, 4)

    def forward(self, features, labels):
        flat = features.flatten(0, 1)
        loss = sum(nn.functional.cross_entropy(head(flat).float(), labels[name].flatten()) for name, head in self.kinds.items())
        present = labels["shape"].flatten() + labels["character"].flatten() > 0
        if present.any():
            loss = loss + 4 * nn.functional.l1_loss(self.box(flat[present]).float(), labels["box"].flatten(0, 1)[present])
        return loss


def labels(samples):
    """Labels of every cell, in the order of the language model's image tokens."""
    out = {name: [] for name in [*SIZES, "box"]}
    for sample in samples:
        height, width = sample.frames[0].shape[:2]
        rows = {name: [] for name in out}
        for things, owner in zip(sample.cells["things"], sample.cells["owner"]):
            table = {name: [0] for name in SIZES} | {"box": [[0.0] * 4]}
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
