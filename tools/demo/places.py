"""Looks up which adapter and head answer a task, in demo/manifest.json."""

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Place:
    folder: Path            # of the adapter
    head: str | None        # None: the language model answers
    floor: float | None = None
    accuracy: float | None = None  # on the validation data, as measured by the generator

    @property
    def adapter(self):
        """The served model name."""
        return self.folder.name


def card(folder):
    return json.loads((folder / "valora.json").read_text())


def places(demo):
    """Places of all tasks, by task name. Without a manifest, each adapter holds the task with its own name."""
    manifest = demo / "manifest.json"
    if manifest.exists():
        entries = json.loads(manifest.read_text())["tasks"]
        return {name: Place((demo / e["adapter"]).resolve(), e.get("head"), e.get("floor"), e.get("accuracy")) for name, e in entries.items()}
    folders = sorted((demo / "adapters").iterdir())
    return {f.name: Place(f, next((h["name"] for h in card(f).get("heads", [])), None)) for f in folders}


def head_of(place):
    """Labels, weight and bias (or None) of a place's head."""
    from safetensors.torch import load_file
    labels = next(h["labels"] for h in card(place.folder)["heads"] if h["name"] == place.head)
    tensors = load_file(place.folder / "adapter_model.safetensors")
    name = f"base_model.model.{place.head}"
    bias = tensors.get(f"{name}.bias")
    return labels, tensors[f"{name}.weight"].float(), None if bias is None else bias.float()
