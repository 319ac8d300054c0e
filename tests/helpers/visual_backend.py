"""Importing this module makes torchvision importable, as required by the processors of transformers 5.

PyPI's torchvision is built for CUDA: with a CPU build of torch its operators are missing, so it cannot be imported. No
processor calls them, so defining their names is enough.
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
    library = torch.library.Library("torchvision", "DEF")  # must stay alive: its definitions end with it
    for schema in MISSING:
        library.define(schema)
    import torchvision  # noqa: F401
