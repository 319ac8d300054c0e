"""Loads the demo's folders unchanged, as a user would, and runs every sample through transformers and PEFT."""

import json

from peft import PeftModel
from transformers import AutoTokenizer

import media
from ask import answers, classes
from boxes import agree
from package import load
from places import Place, head_of
from prompt import ASK, HEAD


def run(demo):
    model, tokenizer, processor = load(demo / "model")
    usual = AutoTokenizer.from_pretrained(demo / "model")
    content = [{"type": "image"}, {"type": "text", "text": "Read the text."}]
    rendered = usual.apply_chat_template([{"role": "user", "content": content}], tokenize=False, add_generation_prompt=True)
    expected = HEAD + "<|vision_start|><|image_pad|><|vision_end|>Read the text." + ASK
    if rendered != expected or usual(rendered).input_ids != tokenizer.encode(expected, add_special_tokens=False).ids:
        raise ValueError(f"the chat template gives {rendered!r}")
    right = {}
    entries = json.loads((demo / "samples.json").read_text())
    for adapter in dict.fromkeys(e["adapter"] for e in entries):
        model, tokenizer, processor = load(demo / "model")  # PEFT modifies a model in place
        tuned = model
        if adapter:
            tuned = PeftModel.from_pretrained(model, demo / "adapters" / adapter).eval()
        for e in (e for e in entries if e["adapter"] == adapter):
            video, item = e["modality"] == "video", [(media.read(demo / e["media"]), e["question"])]
            if e["kind"] == "classify":
                labels, weight, bias = head_of(Place(demo / "adapters" / adapter, e["head"]))
                got = labels[classes(tuned, weight, bias, tokenizer, processor, item, video)[0]]
            else:
                got = answers(tuned, tokenizer, processor, item, video)[0]
            good = got == e["expected"] or agree(got, e["expected"])
            right.setdefault(adapter or "base", []).append(good)
            print(f"{e['id']:18} {'ok ' if good else 'not'} {got!r}, expected {e['expected']!r}")
    print({name: f"{sum(v)} of {len(v)}" for name, v in right.items()})
