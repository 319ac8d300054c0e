"""Puts a tree of tools/dist into the wheel, under the tag of the platform that it runs on.

Environment: VALORA_TREE, the tree; VALORA_PLATFORM, the tag's platform; VALORA_VERSION. Without VALORA_TREE the package
is the module alone, which then runs the `valora` on the path.
"""

import os
import pathlib
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface


class Version(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        metadata["version"] = os.environ.get("VALORA_VERSION", "0.0.0")


class Tree(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        tree = os.environ.get("VALORA_TREE")
        if not tree or version == "editable":
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{os.environ['VALORA_PLATFORM']}"
        for path in sorted(pathlib.Path(tree).rglob("*")):
            if path.is_file():
                build_data["force_include"][str(path)] = f"valora/tree/{path.relative_to(tree).as_posix()}"
