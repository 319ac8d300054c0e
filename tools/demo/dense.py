"""Linear heads for base training only: each visual token must tell what its cell shows.

With answers alone, the vision tower stays on a long plateau. This loss ends it; its weight fades to zero, and the
heads are discarded.
"""

import torch
from torch import nn

from clips import MOTIONS
from glyphs import CHARACTERS
from scenes import CELL, COLOURS, SHAPES

COLOUR_NAMES = list(COLOURS)
KINDS = {"shape": SHAPES, "colour": COLOUR_NAMES, "character": list(CHARACTERS), "motion": MOTIONS}  # 0 is nothing
SIDES = 8  # the box's, in shares of the picture, and their distances from the cell's middle


class Dense(nn.Module):
    def __init__(self, hidden=192):
        super().__init__()
        self.kinds = nn.ModuleDict({kind: nn.Linear(hidden, len(words) + 1) for kind, words in KINDS.items()})
        self.box = nn.Linear(hidden, SIDES)

    def forward(self, features, labels):
        flat = features.flatten(0, 1)
        loss = sum(nn.functional.cross_entropy(head(flat).float(), labels[kind].flatten()) for kind, head in self.kinds.items())
        present = labels["shape"].flatten() + labels["character"].flatten() > 0
        if present.any():
            loss = loss + 10 * nn.functional.l1_loss(self.box(flat[present]).float(), labels["box"].flatten(0, 1)[present])
        return loss


def middles(rows, columns):
    """The middles of all cells as shares of the picture, twice, for both corners of a box."""
    y, x = torch.meshgrid((torch.arange(rows) + 0.5) / rows, (torch.arange(columns) + 0.5) / columns, indexing="ij")
    return torch.stack([x, y, x, y], dim=-1).flatten(0, 1)


def labels(samples):
    """Labels of every cell, in the order of the language model's image tokens."""
    out = {name: [] for name in [*KINDS, "box"]}
    for sample in samples:
        height, width = sample.frames[0].shape[:2]
        grid = middles(height // CELL, width // CELL)
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
            rows["box"][-1] = torch.cat([rows["box"][-1], rows["box"][-1] - grid], dim=-1)
        for name in out:
            out[name].append(torch.cat(rows[name]))
    return {name: torch.stack(values) for name, values in out.items()}
