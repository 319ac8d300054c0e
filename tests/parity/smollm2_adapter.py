"""Trains an adapter for a text model with PEFT on real text, the documentation in Python's own modules. Runs in .venv-newest:

    smollm2_adapter.py FOLDER OUTPUT

Prints the loss of each step.
"""

import argparse
import inspect
import statistics
import string
import sys

import torch

import visual_backend  # noqa: F401  must precede peft and transformers

# isort: split
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer

MODULES = [argparse, statistics, string]
STEPS, SAMPLES, TOKENS = 4, 2, 96

folder, output = sys.argv[1:]
torch.manual_seed(1)
tokenizer = AutoTokenizer.from_pretrained(folder)
texts = [inspect.getdoc(member) or "" for module in MODULES for _, member in sorted(inspect.getmembers(module), key=lambda m: m[0])
         if getattr(member, "__module__", None) == module.__name__]
ids = tokenizer("\n\n".join(texts), return_tensors="pt")["input_ids"][0]
batch = ids[:SAMPLES * TOKENS].view(SAMPLES, TOKENS)
model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
model = get_peft_model(model, LoraConfig(r=8, lora_alpha=16, target_modules="all-linear", task_type="CAUSAL_LM"))
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=5e-3)
losses = []
for _ in range(STEPS):
    loss = model(input_ids=batch, labels=batch).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item())
model.save_pretrained(output)
print(*losses)
