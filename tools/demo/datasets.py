"""Draws every task's training and validation data into files that the generator reads (docs/tasks.md)."""

import json
import shutil
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

import pictures

# One seed per split, distinct from those of evaluate.py and samples.py.
SEEDS = {"train": 500001, "validation": 600001}


def drawn(task, split, count):
    rng = np.random.default_rng([SEEDS[split], zlib.crc32(task.name.encode())])
    for _ in range(count):
        yield task.draw(rng, held_out=split == "validation")


def store(task, sample, folder, stem):
    """Writes the media files; returns their JSONL keys, with paths relative to the task's
    folder."""
    if task.clip == "mp4":
        import media  # H.264 needs tools/requirements-demo.txt
        target = folder / f"{stem}.mp4"
        target.parent.mkdir(parents=True, exist_ok=True)
        media.write_clip(sample.frames, str(target), preset="veryfast")
        return {"video": f"{stem}.mp4"}
    names = [f"{stem}-{k}.png" for k in range(len(sample.frames))] if task.video else [f"{stem}.png"]
    for name, frame in zip(names, sample.frames):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(frame).save(folder / name)
    return {"frames": names} if task.video else {"image": names[0]}


def line(task, sample, where):
    """One sample as a JSONL object."""
    out = dict(where)
    if sample.question:
        out["question"] = sample.question
    if sample.boxes:
        return out | {"boxes": [[round(v, 5) for v in box] for _, box in sample.boxes]}
    if task.labels:
        return out | {"label": sample.answer}
    return out | {"answer": sample.answer} | ({"answers": sample.answers} if sample.answers else {})


def write_lines(lines, path):
    path.write_text("".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in lines))


def write_jsonl(task, samples, folder, split):
    write_lines([line(task, s, store(task, s, folder, f"{split}/{n:05}")) for n, s in enumerate(samples)], folder / f"{split}.jsonl")


def write_classes(task, samples, folder, split):
    """One folder per label."""
    for n, sample in enumerate(samples):
        store(task, sample, folder, f"{split}/{sample.answer}/{n:05}")


def write_coco(task, samples, folder, split):
    size = pictures.SIZE
    table = {"images": [], "annotations": [], "categories": [{"id": n, "name": label} for n, label in enumerate(task.labels, 1)]}
    for n, sample in enumerate(samples, 1):
        name = store(task, sample, folder, f"{split}/{n:05}")["image"]
        table["images"].append({"id": n, "file_name": name, "width": size, "height": size})
        for label, (x0, y0, x1, y1) in sample.boxes:
            box = [round(v * size, 3) for v in (x0, y0, x1 - x0, y1 - y0)]
            table["annotations"].append({"id": len(table["annotations"]) + 1, "image_id": n, "category_id": task.labels.index(label) + 1,
                                         "bbox": box, "area": round(box[2] * box[3], 3), "iscrowd": 0})
    (folder / f"{split}.json").write_text(json.dumps(table) + "\n")


WRITERS = {"jsonl": write_jsonl, "folder": write_classes, "coco": write_coco}


def write(task, root, limit=None):
    """Writes a task's data to root/NAME, replacing old data; at most `limit` samples per split."""
    folder = root / task.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for split, count in (("train", task.train), ("validation", task.validation)):
        WRITERS[task.form](task, drawn(task, split, min(count, limit or count)), folder, split)


def source(task, root, split):
    """A split as described in a tasks file."""
    path = {"jsonl": f"{split}.jsonl", "coco": f"{split}.json", "folder": split}[task.form]
    where = (Path(root) / task.name / path).as_posix()
    return where if task.form == "jsonl" else {"format": task.form, "path": where}
