"""supervision's parsers of answers. The package is installed without its dependencies, so its modules are imported
without the package's own __init__, which needs all of them."""

import importlib
import pathlib
import sys
import types
import warnings
from importlib.util import find_spec


def parsers():
    root = pathlib.Path(find_spec("supervision").origin).parent.parent
    names = ["supervision", "supervision.detection", "supervision.detection.utils", "supervision.utils", "supervision.geometry"]
    kept = {name: sys.modules.get(name) for name in names}
    for name in names:
        module = types.ModuleType(name)
        module.__path__ = [str(root.joinpath(*name.split(".")))]
        sys.modules[name] = module
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of OpenCV, which is not installed
            return importlib.import_module("supervision.detection.vlm")
    finally:
        for name, module in kept.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module
