"""Metrics of answers, implemented independently of the generator's."""

import re

import numpy as np

import boxes
from scenes import COLOURS, SHAPES


def things_in(text):
    """The (colour, shape) pairs in a caption, in either word order."""
    colours, shapes = "|".join(COLOURS), "|".join(SHAPES)
    found = [(c, s) for c, s in re.findall(rf"\b({colours}) ({shapes})\b", text)]
    return found + [(c, s) for s, c in re.findall(rf"\b({shapes}), ({colours})\b", text)]


def f1(hits, said, true):
    return 2 * hits / max(1, said + true)


def named(answer, expected):
    """F1 of the things named."""
    got, want = things_in(answer.lower()), things_in(expected.lower())
    return f1(sum(min(got.count(t), want.count(t)) for t in set(got)), len(got), len(want))


def vqa(answer, answers):
    """min(1, matching answers / 3), averaged over the ten sets that leave out one person."""
    same = answers.count(answer)
    return float(np.mean([min(1, (same - (a == answer)) / 3) for a in answers]))


def exact(answer, drawn):
    return float(answer.strip() == drawn.answer)


def first_overlap(answer, drawn):
    """IoU with the expected box; 0 if the answer has no box."""
    got = boxes.read(answer)
    return boxes.overlap(got[0][1], boxes.read(drawn.answer)[0][1]) if got else 0.0


def pooled_f1(got, want):
    pairs = [(boxes.read(g), boxes.read(w.answer)) for g, w in zip(got, want)]
    return f1(sum(boxes.hits(g, w) for g, w in pairs), sum(len(g) for g, _ in pairs), sum(len(w) for _, w in pairs))


def mean(each, got, want):
    return float(np.mean([each(g, w) for g, w in zip(got, want)]))


def figures(metric, got, want):
    """Metrics of answers to samples; the first one is the task's accuracy."""
    if metric == "box_accuracy":
        shares = [first_overlap(g, w) for g, w in zip(got, want)]
        table = {"boxes_right": float(np.mean([s >= boxes.NEEDED for s in shares])), "mean_iou": float(np.mean(shares))}
    elif metric == "f1":
        table = {"f1": pooled_f1(got, want)}
    elif metric == "vqa":
        table = {"vqa": mean(lambda g, w: vqa(g.strip(), w.answers), got, want), "exact": mean(exact, got, want)}
    else:
        table = {"exact": mean(exact, got, want)}
        if metric == "cider":
            table["object_f1"] = mean(lambda g, w: named(g, w.answer), got, want)
    return {key: round(value, 3) for key, value in table.items()}
