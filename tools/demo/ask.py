"""Runs a model through transformers' own processor and `generate`."""

import numpy as np
import torch
from PIL import Image

from prompt import ASK, HEAD, media


def pixels(processor, frames, video):
    """Rows and grid from the image processor. The frames of a clip are patched in the same way."""
    if not video:
        got = processor(images=[Image.fromarray(frames[0])], return_tensors="pt")
        return got["pixel_values"], got["image_grid_thw"][0]
    keep = {k: getattr(processor, k) for k in ("do_resize", "size", "resample", "do_rescale", "rescale_factor", "do_normalize", "image_mean",
                                               "image_std", "patch_size", "temporal_patch_size", "merge_size", "do_convert_rgb")}
    rows, grid = processor._preprocess([Image.fromarray(f) for f in frames], **keep)
    return torch.from_numpy(np.asarray(rows)), torch.tensor(grid)


def inputs(tokenizer, processor, items, video):
    """Model inputs for (frames, question) items whose prompts have equal length; all or none have frames."""
    ids, rows, grids = [], [], []
    for frames, question in items:
        tokens = 0
        if frames:
            values, grid = pixels(processor, frames, video)
            tokens = int(grid.prod()) // 4
            rows.append(values), grids.append(grid)
        ids.append(tokenizer.encode(HEAD + media(tokens, video) + question + ASK, add_special_tokens=False).ids)
    ids = torch.tensor(ids)
    if not rows:
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    names = ("pixel_values_videos", "video_grid_thw") if video else ("pixel_values", "image_grid_thw")
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), names[0]: torch.cat(rows).float(), names[1]: torch.stack(grids)}


def groups(tokenizer, items, batch=60):
    """Batches of indices of items with equal prompt length and picture size."""
    table = {}
    for index, (frames, question) in enumerate(items):
        key = len(tokenizer.encode(question, add_special_tokens=False).ids), len(frames), frames[0].shape if frames else None
        table.setdefault(key, []).append(index)
    for indices in table.values():
        for at in range(0, len(indices), batch):
            yield indices[at:at + batch]


@torch.no_grad()
def answers(model, tokenizer, processor, items, video, limit=128):
    out = [None] * len(items)
    for indices in groups(tokenizer, items):
        given = inputs(tokenizer, processor, [items[i] for i in indices], video)
        made = model.generate(**given, max_new_tokens=limit)[:, given["input_ids"].shape[1]:]
        for i, row in zip(indices, made.tolist()):
            out[i] = tokenizer.decode(row, skip_special_tokens=True)
    return out


@torch.no_grad()
def classes(tuned, weight, bias, tokenizer, processor, items, video):
    """The answer of a head: a linear layer over the final hidden state of the prompt's last token."""
    out = [None] * len(items)
    for indices in groups(tokenizer, items):
        given = inputs(tokenizer, processor, [items[i] for i in indices], video)
        hidden = tuned.get_base_model().model(**given).last_hidden_state[:, -1]
        for i, label in zip(indices, torch.nn.functional.linear(hidden, weight, bias).argmax(-1).tolist()):
            out[i] = label
    return out
