"""What a project's labelling configuration asks for, and regions in Label Studio's form."""

import hashlib
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field

CONTROLS = {"RectangleLabels": "Label", "Choices": "Choice"}


class ConfigError(ValueError):
    """A labelling configuration that cannot be answered; says which tag and why."""


@dataclass
class Control:
    """A tag that holds answers about a picture, by the names that its regions repeat."""

    type: str  # RectangleLabels or Choices
    name: str
    to_name: str
    data_key: str  # the key of a task's data that has the picture
    labels: dict  # the model's label -> the label that Label Studio stores
    model: str | None = None
    prompt: str | None = None
    stored: list = field(init=False)

    def __post_init__(self):
        self.stored = list(dict.fromkeys(self.labels.values()))

    def region(self, task, index, value, score, size=None):
        """One entry of a prediction's result. Ids are the same each time a task is asked about."""
        key = repr((task.get("id"), self.name, index)).encode()
        region = {"id": hashlib.sha256(key).hexdigest()[:10], "from_name": self.name,
                  "to_name": self.to_name, "type": self.type.lower(), "score": score, "value": value}
        if size:
            region |= {"original_width": size[0], "original_height": size[1], "image_rotation": 0}
        return region

    def rectangle(self, task, index, box, label, score, size):
        """`box`: x0, y0, x1, y1 in pixels of a picture of this size, which become per cent."""
        x0, y0, x1, y1 = (100 * corner / side for corner, side in zip(box, size * 2))
        value = {"x": x0, "y": y0, "width": x1 - x0, "height": y1 - y0, "rotation": 0,
                 "rectanglelabels": [label]}
        return self.region(task, index, value, score, size)


def _labels(tag):
    """An alias is stored instead of the value; `predicted_values` are the model's words for it."""
    labels = {}
    for child in tag.iter(CONTROLS[tag.tag]):
        stored = child.get("alias") or child.get("value")
        if not stored:
            raise ConfigError(f'a {child.tag} of "{tag.get("name")}" has no value')
        words = [w.strip() for w in child.get("predicted_values", "").split(",") if w.strip()]
        labels |= dict.fromkeys(words or [stored], stored)
    if not labels:
        raise ConfigError(f'"{tag.get("name")}" has no labels in the configuration; '
                          "labels that come from the data are not supported")
    return labels


def _control(tag, pictures):
    name, to_name = tag.get("name"), tag.get("toName")
    if not name or not to_name:
        raise ConfigError(f"a {tag.tag} lacks its name or toName")
    if to_name not in pictures:
        raise ConfigError(f'"{name}" is about "{to_name}", which is no Image tag')
    value = pictures[to_name]
    if not value.startswith("$"):
        raise ConfigError(f'the value of the Image tag "{to_name}" must be the name of a column: '
                          f'"$image", not "{value}"')
    return Control(tag.tag, name, to_name, value[1:], _labels(tag),
                   tag.get("valora_model"), tag.get("valora_prompt"))


def read_config(text):
    """The controls that can be answered: RectangleLabels and Choices about a whole picture."""
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ConfigError("the labelling configuration has a document type, which is not read")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ConfigError(f"the labelling configuration is no XML: {error}") from None
    pictures = {tag.get("name"): tag.get("value", "") for tag in root.iter("Image")}
    tags = [tag for tag in root.iter() if tag.tag in CONTROLS and tag.get("perRegion") != "true"]
    if not tags:
        raise ConfigError("the labelling configuration has no RectangleLabels and no Choices")
    return [_control(tag, pictures) for tag in tags]
