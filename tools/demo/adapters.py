"""Trains one LoRA adapter for a task, with a classification head beside the language model's answer where it has one."""

import json
import shutil
import time
import warnings

import numpy as np
import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from torch import nn

from model import answer_loss, patches, read, see_patches
from package import load
from prompt import Packer
from scenes import Sample

LINEARS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
BATCH, RATE, SEED = 24, 3e-3, 7


def features_of(model, samples):
    """The vision tower is frozen, so its output is computed once."""
    out = []
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        for at in range(0, len(samples), 40):
            x, grid = patches(samples[at:at + 40])
            out.append(see_patches(model.model.visual, x, grid))
    return torch.cat(out), grid


def train(task, base, folder):
    """Gives the seconds that training took; folder becomes a PEFT folder with a valora.json beside."""
    started = time.time()
    torch.manual_seed(SEED)
    rng = np.random.default_rng([SEED, sum(map(ord, task.name))])
    model, tokenizer, _ = load(base)
    model.set_attn_implementation("plain")
    drawn = [task.draw(rng) for _ in range(task.samples)]
    features, grid = features_of(model, [Sample(frames, [], task.video) for frames, _ in drawn])
    answers = [answer for _, answer in drawn]
    saved = None
    if task.head:
        # bf16 rounds small steps away, so the head trains in fp32 like the adapter.
        model.score = nn.Linear(model.config.text_config.hidden_size, len(task.labels), bias=False)
        saved = ["score"]
    tuned = get_peft_model(model, LoraConfig(r=task.rank, lora_alpha=2 * task.rank, target_modules=LINEARS, modules_to_save=saved, task_type="CAUSAL_LM"))
    packer = Packer(tokenizer, model)
    parameters = [p for p in tuned.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=RATE, weight_decay=0.01)
    order, losses = [], []
    tuned.train()
    for step in range(task.steps):
        optimizer.param_groups[0]["lr"] = RATE * min(1, (step + 1) / 20) * (1 - step / task.steps)
        if len(order) < BATCH:
            order = rng.permutation(len(drawn)).tolist()
        chosen, order = order[:BATCH], order[BATCH:]
        batch = packer.pack([[(task.question, answers[i])] for i in chosen], grid, task.video)
        with torch.autocast("cpu", torch.bfloat16):
            hidden = read(model, batch, features[chosen])
            loss = answer_loss(model, hidden, batch["labels"])
            if task.head:
                # The first answer token is predicted from the last token of the prompt: the head reads there too.
                at = (batch["labels"] != -100).int().argmax(dim=1)
                target = torch.tensor([task.labels.index(answers[i]) for i in chosen])
                loss = loss + nn.functional.cross_entropy(model.score(hidden[torch.arange(len(at)), at]).float(), target)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        if (step + 1) % 100 == 0:
            print(f"{task.name} step {step + 1} loss {np.mean(losses[-50:]):.4f}", flush=True)
    write(task, tuned, folder)
    return round(time.time() - started, 1)


def write(task, tuned, folder):
    shutil.rmtree(folder, ignore_errors=True)
    tuned.peft_config["default"].base_model_name_or_path = "demo/model"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # asks the hub for the base's configuration, which is local
        tuned.save_pretrained(folder, save_embedding_layers=False)
    (folder / "README.md").unlink(missing_ok=True)
    config = json.loads((folder / "adapter_config.json").read_text())
    config["target_modules"] = LINEARS  # PEFT writes a set, in any order
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2) + "\n")
    path = folder / "adapter_model.safetensors"
    save_file({name: tensor.to(torch.bfloat16) for name, tensor in load_file(path).items()}, path, metadata={"format": "pt"})
    card = {"task": task.title, "description": task.title + ".", "question": task.question, "modality": "video" if task.video else "image"}
    if task.labels:
        card["answers"] = task.labels
    if task.head:
        card["heads"] = [{"name": "score", "labels": task.labels, "problem_type": "single_label_classification", "pooling": "last",
                          "add_generation_prompt": True}]
    (folder / "valora.json").write_text(json.dumps(card, indent=2) + "\n")
