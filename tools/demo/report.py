"""Writes demo/README.md from demo/accuracy.json, so that every figure in it is a measured one."""

import json

INTRO = """# The demo model

A small but real vision-language model in the Qwen2-VL format, {adapters} LoRA adapters for it, and held-out samples.
Everything here is made by `tools/demo/make.py` from drawn pictures and clips, and from the handwritten digits that scikit-learn ships.

- `model/`: {parameters:.2f} million parameters in bf16, an ordinary Hugging Face folder. A 64 x 64 picture is 16 tokens.
- `adapters/NAME/`: PEFT folders; `valora.json` beside them names the task, the question it was trained with, and a head's labels.
- `samples.json`, `samples/`: held-out pictures (PNG) and clips (H.264, two frames a second), with question and expected answer.
  They are the first ones of their own seed, not picked by hand; the first one of each task is also asked of the base.
- `accuracy.json`: what the tables below are made from.

The model knows small drawings, short texts and short clips, and English questions of the kinds below. It knows nothing else.
Boxes are `[x0,y0,x1,y1]` in hundredths of the picture's width and height.
"""


def percent(value):
    return "–" if value is None else f"{100 * value:.1f} %"


def skills(table):
    lines = ["| skill of the base | samples | accuracy | constant answer | besides |", "|---|--:|--:|--:|---|"]
    for name, row in table.items():
        if "iou_over_half" in row:
            main, rest = row["iou_over_half"], f"accuracy is IoU of at least 0.5; mean IoU {row['mean_iou']:.2f}"
        elif "object_f1" in row:
            main, rest = row["exact"], f"accuracy is the exact sentence; F1 of the named objects {row['object_f1']:.2f}"
        else:
            main, rest = row["exact"], ""
        lines.append(f"| {name} | {row['samples']} | {percent(main)} | {percent(row['chance'])} | {rest} |")
    return lines


def adapters(table):
    lines = ["| adapter | task | rank | samples | base | adapter | head | chance | training |", "|---|---|--:|--:|--:|--:|--:|--:|--:|"]
    for name, row in table.items():
        key = {"box": "iou_over_half"}.get(row["metric"], "exact")
        head = f"{percent(row['head']['exact'])} ({row['head']['labels']} labels)" if "head" in row else "–"
        lines.append(f"| `{name}` | {row['title']} | {row['rank']} | {row['samples']} | {percent(row['base'][key])} | {percent(row['adapter'][key])} "
                     f"| {head} | {percent(row['chance'])} | {row['training_seconds']:.0f} s |")
    return lines


def notes(table):
    out = []
    for name, row in table.items():
        if row["metric"] == "box":
            out.append(f"- `{name}`: a box counts from an IoU of 0.5; mean IoU {row['base']['mean_iou']:.2f} for the base, {row['adapter']['mean_iou']:.2f} for the adapter.")
        if row["metric"] == "caption":
            out.append(f"- `{name}`: the whole entry must be exact, style included; F1 of the named objects alone "
                       f"{row['base']['object_f1']:.2f} for the base, {row['adapter']['object_f1']:.2f} for the adapter.")
    return out


def write(demo):
    from safetensors import safe_open
    measured = json.loads((demo / "accuracy.json").read_text())
    with safe_open(demo / "model" / "model.safetensors", "pt") as file:
        count = sum(file.get_tensor(name).numel() for name in file.keys())
    lines = [INTRO.format(adapters=len(measured["adapters"]), parameters=count / 1e6)]
    training = measured["base"].get("training")
    lines += ["## Adapters", "", *adapters(measured["adapters"]), "", *notes(measured["adapters"]),
              "- The base does not know most of these tasks' label words, so its 0 says less than the chance beside it.",
              "- The head reads the final hidden state of the prompt's last token: one pass, no decoding. "
              "A head adapter answers through the language model as well.", "", "## Base", ""]
    if training:
        lines += [f"Trained from scratch in {training['minutes']} minutes of wall-clock time on two CPU cores that other work shared "
                  f"({training['steps']} steps, {training['images']} pictures and clips). {training.get('note', '')}".rstrip(), ""]
    lines += [*skills(measured["base"]["skills"]), "", "A constant answer is always the most frequent one; where the base is no better, it has not learned the skill.", "",
              "## Make it again", "",
              "    pip install -r tools/requirements.txt -r tools/demo/requirements.txt",
              "    python tools/demo/make.py all        # or one stage: base, package, adapters, samples, evaluate, readme, check", "",
              measured["what"] + " Samples and training never share a seed; the digits' held-out fifth is split by a fixed seed. "
              "A budget of wall-clock time bounds the base training, so another machine gives another model, and figures vary by a few points.",
              "Training times are those of one run on the shared machine."]
    (demo / "README.md").write_text("\n".join(lines) + "\n")
