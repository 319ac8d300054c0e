"""Shared by all figures."""

import matplotlib

matplotlib.use("Agg")  # files only, no display
from matplotlib import pyplot as plt

__all__ = ["legend_below", "plt"]


LETTER = 0.085  # inches
ENTRY = 0.65  # width of an entry's line and gaps in inches


def legend_below(figure, grid):
    """A legend of all distinct entries of these axes, in as many columns as fit the figure."""
    entries = {}
    for axes in grid:
        for handle, label in zip(*axes.get_legend_handles_labels()):
            entries.setdefault(label, handle)
    if not entries:
        return
    widest = ENTRY + LETTER * max(map(len, entries))
    columns = max(1, min(len(entries), int(figure.get_figwidth() / widest)))
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=columns, frameon=False)
