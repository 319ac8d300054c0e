"""The demo's output: the answers, and how many were right."""

import json
import shutil
import sys

from boxes import agree


def is_right(answer):
    """Boxes need an IoU of at least boxes.NEEDED; other answers must match exactly."""
    expected = answer.sample["expected"]
    return answer.error is None and (answer.text == expected or agree(answer.text, expected))


def mark(right):
    sign = "✓" if right else "✗"
    return f"\033[{32 if right else 31}m{sign}\033[0m" if sys.stdout.isatty() else sign


def who(sample):
    return "base model" if not sample["adapter"] else sample["task"] + (" (head)" if sample["kind"] == "classify" else "")


def cut(text, width):
    text = " ".join(text.split()) or '""'
    return text if len(text) <= width else text[:width - 1] + "…"


def widths(rows, room):
    """Makes each column as wide as its longest cell, then narrows the widest ones until all fit."""
    wide = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    while sum(wide) > room and max(wide) > 12:
        wide[wide.index(max(wide))] -= 1
    return wide


def table(answers):
    rows = [("file", "asked", "question", "answer", "expected")]
    rows += [(a.sample["media"].split("/")[-1], who(a.sample), a.sample["question"], a.error or a.text, a.sample["expected"]) for a in answers]
    wide = widths(rows, shutil.get_terminal_size((150, 40)).columns - 24)
    lines = []
    for row, answer in zip(rows, [None, *answers]):
        cells = "  ".join(cut(cell, width).ljust(width) for cell, width in zip(row, wide))
        end = f"{mark(is_right(answer))} {answer.seconds * 1000:7.0f} ms" if answer else "     latency"
        lines.append(f"  {cells}  {end}")
    lines.insert(1, "  " + "─" * (sum(wide) + 2 * len(wide) + 12))
    return "\n".join(lines)


def share(answers):
    return f"{sum(map(is_right, answers))} of {len(answers)}" if answers else "–"


def percent(figures):
    """Formats the first figure, which is the task's accuracy."""
    return f"{100 * next(iter(figures.values())):.0f} %" if figures else "–"


def measured_text(row):
    """A task's accuracy in accuracy.json: of the adapter's text, and of its head if it has one."""
    text = percent(row.get("adapter"))
    return text + (f", head {100 * row['head']['exact']:.0f} %" if "head" in row else "")


def accuracy_lines(answers, demo):
    """Per task: right answers in this run, from the adapter and from the base model on the same files,
    and accuracy of both on many held-out samples."""
    file = demo / "accuracy.json"
    measured = json.loads(file.read_text()).get("tasks", {}) if file.exists() else {}
    rows = [("right", "adapter", "base", "of held-out samples:", "adapter", "base")]
    for name in dict.fromkeys(a.sample["task"] for a in answers if a.sample["task"]):
        own = [a for a in answers if a.sample["task"] == name]
        row = measured.get(name, {})
        rows.append((name, share([a for a in own if a.sample["adapter"]]), share([a for a in own if not a.sample["adapter"]]),
                     str(row.get("samples", "–")), measured_text(row), percent(row.get("base"))))
    skills = [a for a in answers if not a.sample["task"]]
    if skills:
        rows.append(("its own skills", "", share(skills), "", "", ""))
    wide = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  " + row[0].ljust(wide[0]) + "".join("   " + cell.rjust(w) for cell, w in zip(row[1:], wide[1:])).rstrip() for row in rows]


def summary(outcome, demo):
    answers = outcome.answers
    failed = [a for a in answers if a.error is not None]
    done = f"  {len(answers) - len(failed)} of {len(answers)} requests answered in {outcome.seconds:.2f} s"
    if outcome.steps:
        alone = sum(a.tokens for a in answers)
        done += f": {outcome.steps} engine steps for all of them together, at least {alone} one after the other"
    right = (f"  Right: adapters {share([a for a in answers if a.sample['adapter']])}, "
             f"base {share([a for a in answers if not a.sample['adapter']])}.")
    lines = ["", *accuracy_lines(answers, demo), "", done + ".", right]
    lines += [f"  failed: {a.sample['id']}: {a.error}" for a in failed]
    return "\n".join(lines)
