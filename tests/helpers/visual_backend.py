"""Importing this makes torchvision importable, which the processors of transformers 5 need.

PyPI's torchvision is built for CUDA: beside a torch without it, its operators are missing, and so it cannot be imported.
No processor calls them, so their names are enough.
"""

import sys

import torch

MISSING = ("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
           "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

try:
    import torchvision
except RuntimeError:
    for module in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[module]
    library = torch.library.Library("torchvision", "DEF")  # kept: what it defines ends with it
    for schema in MISSING:
        library.define(schema)
    import torchvision  # noqa: F401
