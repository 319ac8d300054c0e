"""Writes demo/README.md from demo/accuracy.json, so that all its figures are measured."""

import json

from boxes import NEEDED

INTRO = """# The demo model

A small but real vision-language model in the Qwen2-VL format, {adapters} LoRA adapters for {tasks} tasks, and held-out samples.
Everything here is made by `tools/demo/make.py` from drawn pictures and clips, and from the handwritten digits that scikit-learn ships.

- `model/`: {parameters:.2f} million parameters in bf16, an ordinary Hugging Face folder. A 64 x 64 picture is 16 tokens.
- `adapters/NAME/`: PEFT folders; their `valora.json` has the training questions and the labels of the heads.
- `manifest.json`: the adapter and the head of each task.
- `tasks.yaml`: the tasks of the adapters; `tasks-images.yaml`, `tasks-videos.yaml` and `tasks-teacher.yaml` are sets for comparison.
- `samples.json`, `samples/`: held-out pictures (PNG) and clips (H.264, two frames per second), with question and expected answer.
  They are the first ones of a separate seed, not selected; the first one of each task is also asked of the base.
- `accuracy.json`: the data of the tables below.

The model knows small drawings, short texts and short clips, and English questions of the kinds below, and nothing else.
Asked without a picture, it greets, says what it can do, or says that it answers about pictures.
Boxes are `[x0,y0,x1,y1]`, or `<ref>label</ref><box>(x0,y0),(x1,y1)</box>`, in hundredths of the picture's width and height.
"""


def percent(value):
    return "–" if value is None else f"{100 * value:.1f} %"


def skills(table):
    lines = ["| skill of the base | samples | accuracy | constant answer | besides |", "|---|--:|--:|--:|---|"]
    for name, row in table.items():
        if "boxes_right" in row:
            main, rest = row["boxes_right"], f"accuracy is IoU of at least {NEEDED}; mean IoU {row['mean_iou']:.2f}"
        elif "f1" in row:
            main, rest = row["f1"], f"F1 over all boxes, matched by label at an IoU of at least {NEEDED}"
        elif "object_f1" in row:
            main, rest = row["exact"], f"accuracy is the exact sentence; F1 of the named objects {row['object_f1']:.2f}"
        else:
            main, rest = row["exact"], ""
        lines.append(f"| {name} | {row['samples']} | {percent(main)} | {percent(row['chance'])} | {rest} |")
    return lines


def main_figure(figures):
    return percent(next(iter(figures.values())))


def tasks(table):
    lines = ["| task | what | adapter | rank | samples | base | adapter | head | chance | floor | validation | training |",
             "|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"]
    for name, row in table.items():
        head = f"{percent(row['head']['exact'])} ({row['head']['labels']} labels)" if "head" in row else "–"
        seconds = row.get("training_seconds")
        lines.append(f"| `{name}` | {row['title']} | `{row['adapter_name']}` | {row['rank']} | {row['samples']} | {main_figure(row['base'])} "
                     f"| {main_figure(row['adapter'])} | {head} | {percent(row['chance'])} | {percent(row.get('floor'))} "
                     f"| {percent(row.get('validation'))} | {'–' if seconds is None else f'{seconds:.0f} s'} |")
    return lines


def notes(table):
    out = []
    for name, row in table.items():
        base, adapter = row["base"], row["adapter"]
        if "mean_iou" in base:
            out.append(f"- `{name}`: a box is correct at an IoU of at least {NEEDED} (validation: 0.5); mean IoU {base['mean_iou']:.2f} for the base, "
                       f"{adapter['mean_iou']:.2f} for the adapter.")
        if "f1" in base:
            out.append(f"- `{name}`: F1 over all boxes, matched by label at an IoU of at least {NEEDED} (validation: 0.5).")
        if "vqa" in base:
            out.append(f"- `{name}`: VQA accuracy over ten answers; exact match of the most frequent answer: {percent(base['exact'])} for the base, "
                       f"{percent(adapter['exact'])} for the adapter.")
        if "object_f1" in base:
            out.append(f"- `{name}`: the whole entry must be exact, style included; F1 of the named objects alone "
                       f"{base['object_f1']:.2f} for the base, {adapter['object_f1']:.2f} for the adapter. Floor and validation are CIDEr.")
    return out


def write(demo):
    from safetensors import safe_open
    measured = json.loads((demo / "accuracy.json").read_text())
    with safe_open(demo / "model" / "model.safetensors", "pt") as file:
        count = sum(file.get_tensor(name).numel() for name in file.keys())  # noqa: SIM118 (not a dictionary)
    lines = [INTRO.format(adapters=len({row["adapter_name"] for row in measured["tasks"].values()}),
                          tasks=len(measured["tasks"]), parameters=count / 1e6)]
    training = measured["base"].get("training")
    lines += ["## Tasks", "", *tasks(measured["tasks"]), "", *notes(measured["tasks"]),
              "- Validation is the score on the generator's validation data, in the task's metric; the other scores are those on held-out samples.",
              "- The base does not know most of these tasks' label words, so compare with chance instead of its 0 %.",
              "- A head reads the final hidden state of the prompt's last token: one pass, no decoding. "
              "A task with a head can also be answered by the language model.", "", "## Base", ""]
    if training:
        begun = f"from the model of {training['start']}" if "start" in training else "from scratch"
        lines += [f"Trained {begun} in {training['minutes']} minutes of wall-clock time on two CPU cores shared with other work "
                  f"({training['steps']} steps, {training['images']} pictures and clips). {training.get('note', '')}".rstrip(), ""]
    lines += [*skills(measured["base"]["skills"]), "",
              "A constant answer is always the most frequent one; if the base is no better, it has not learned the skill.", "",
              "## Make it again", "",
              "    make demo-adapters                               # the tasks' data and the adapters, from model/", "",
              "    tools/setup tests demo",
              "    .venv/bin/python tools/demo/make.py all          # all of it, after make build; or one stage:",
              "                                                     # base, package, datasets, adapters, samples, evaluate, readme, check", "",
              measured["what"] + " Training, validation and held-out samples never share a seed; the digits' held-out fifth is split by a fixed seed. "
              "Sums of floating-point numbers depend on the machine, so another one gives another model, and scores vary by a few points.",
              "Training times are those of one run on the shared machine."]
    (demo / "README.md").write_text("\n".join(lines) + "\n")
