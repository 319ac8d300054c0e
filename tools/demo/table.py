"""What the demo prints: the answers, how many were right, and how to ask for oneself."""

import json
import re
import shutil
import sys

BOX = re.compile(r"\[(\d+),(\d+),(\d+),(\d+)\]")


def overlap(got, want):
    """Intersection over union of two boxes."""
    (a, b, c, d), (e, f, g, h) = got, want
    inside = max(0, min(c, g) - max(a, e)) * max(0, min(d, h) - max(b, f))
    whole = (c - a) * (d - b) + (g - e) * (h - f) - inside
    return inside / whole if whole > 0 else 0.0


def is_right(answer):
    """Boxes by an overlap of half at least, as is usual; everything else word for word."""
    if answer.error is not None:
        return False
    want, got = BOX.fullmatch(answer.sample["expected"]), BOX.fullmatch(answer.text)
    if want and got:
        return overlap([int(v) for v in got.groups()], [int(v) for v in want.groups()]) >= 0.5
    return answer.text == answer.sample["expected"]


def mark(right):
    sign = "✓" if right else "✗"
    return f"\033[{32 if right else 31}m{sign}\033[0m" if sys.stdout.isatty() else sign


def who(sample):
    return "base model" if not sample["adapter"] else sample["adapter"] + (" (head)" if sample["kind"] == "classify" else "")


def cut(text, width):
    text = " ".join(text.split()) or '""'
    return text if len(text) <= width else text[:width - 1] + "…"


def widths(rows, room):
    """Each column as wide as its longest cell, the widest ones narrowed until all fit."""
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
    value = figures.get("exact", figures.get("iou_over_half")) if figures else None
    return "–" if value is None else f"{100 * value:.0f} %"


def measured_text(row):
    """What accuracy.json says of an adapter: of its text, and of its head where it has one."""
    text = percent(row.get("adapter"))
    return text + (f", head {percent(row['head'])}" if "head" in row else "")


def accuracy_lines(answers, demo):
    """By adapter: right here, the base on the same files, and both on many held-out samples."""
    file = demo / "accuracy.json"
    measured = json.loads(file.read_text()).get("adapters", {}) if file.exists() else {}
    names = list(dict.fromkeys(a.sample["adapter"] for a in answers if a.sample["adapter"]))
    rows = [("right", "adapter", "base", "of held-out samples:", "adapter", "base")]
    asked = set()
    for name in names:
        own = [a for a in answers if a.sample["adapter"] == name]
        files = {a.sample["media"] for a in own}
        asked |= files
        base = [a for a in answers if not a.sample["adapter"] and a.sample["media"] in files]
        row = measured.get(name, {})
        rows.append((name, share(own), share(base), str(row.get("samples", "–")), measured_text(row), percent(row.get("base"))))
    skills = [a for a in answers if not a.sample["adapter"] and a.sample["media"] not in asked]
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


CURL = """
Ask for yourself, in another terminal. With curl:

curl -s {url}/v1/chat/completions -H 'Content-Type: application/json' -d '{{
  "model": "{adapter}", "messages": [{{"role": "user", "content": [
    {{"type": "image_url", "image_url": {{"url": "{uri}"}}}},
    {{"type": "text", "text": "{question}"}}]}}]}}'

With the openai package, streamed:

{python} - <<'END'
import base64, openai
image = base64.b64encode(open("{path}", "rb").read()).decode()
client = openai.OpenAI(base_url="{url}/v1", api_key="none")
for chunk in client.chat.completions.create(model="{adapter}", stream=True, messages=[{{"role": "user", "content": [
        {{"type": "image_url", "image_url": {{"url": "data:image/png;base64," + image}}}},
        {{"type": "text", "text": "{question}"}}]}}]):
    print(chunk.choices[0].delta.content or "", end="", flush=True)
print()
END

What is served: curl -s {url}/v1/models     Figures: curl -s {url}/metrics"""


def hints(url, base, demo):
    samples = json.loads((demo / "samples.json").read_text())
    sample = next(s for s in samples if s["adapter"] and s["modality"] == "image")
    path = demo / sample["media"]
    return CURL.format(url=url, adapter=sample["adapter"], uri=path.as_uri(), path=path, question=sample["question"], python=sys.executable)
