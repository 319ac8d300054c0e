"""What all figures share."""

import matplotlib

matplotlib.use("Agg")  # files alone, no display
from matplotlib import pyplot as plt

__all__ = ["legend_below", "plt"]


def legend_below(figure, axes):
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 6), frameon=False)
