"""Writes boxes as text, reads them back and compares them. Standard library only."""

import re

MARK = re.compile(r"<ref>(?P<label>.*?)</ref>|\((\d+),(\d+)\),\((\d+),(\d+)\)|\[(\d+),(\d+),(\d+),(\d+)\]")
SCALE = 100   # units per side of the picture
NEEDED = 0.7  # intersection over union of a right box


def write(boxes, labels):
    """boxes: (label, fractions of width and height). Grouped by label if `labels`, otherwise [x0,y0,x1,y1] each."""
    units = [(label, [round(v * SCALE) for v in box]) for label, box in boxes]
    if not labels:
        return "".join(f"[{a},{b},{c},{d}]" for _, (a, b, c, d) in units)
    return "".join(f"<ref>{name}</ref>" + "".join(f"<box>({a},{b}),({c},{d})</box>" for label, (a, b, c, d) in units if label == name)
                   for name in dict.fromkeys(label for label, _ in units))


def read(text):
    """All boxes that can be parsed, as (label, box); the label is empty if none is given."""
    found, label = [], ""
    for mark in MARK.finditer(text):
        if mark["label"] is not None:
            label = mark["label"]
        else:
            found.append((label, tuple(int(v) for v in mark.groups()[1:] if v is not None)))
    return found


def overlap(a, b):
    """Intersection over union."""
    inner = max(0, min(a[2], b[2]) - max(a[0], b[0])) * max(0, min(a[3], b[3]) - max(a[1], b[1]))
    whole = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - inner
    return inner / whole if whole > 0 else 0.0


def hits(got, want):
    """Number of boxes matched within their label with an IoU of at least NEEDED, best pairs first."""
    pairs = sorted(((overlap(g[1], w[1]), i, j) for i, g in enumerate(got) for j, w in enumerate(want) if g[0] == w[0]), reverse=True)
    taken_got, taken_want = set(), set()
    for share, i, j in pairs:
        if share >= NEEDED and i not in taken_got and j not in taken_want:
            taken_got.add(i), taken_want.add(j)
    return len(taken_got)


def agree(answer, expected):
    """True if the answer contains exactly the expected boxes."""
    got, want = read(answer), read(expected)
    return bool(want) and len(got) == len(want) == hits(got, want)
