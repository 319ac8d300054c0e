"""transformers' greedy answers with a text model in fp32. Runs in .venv-newest:

    smollm2_answers.py FOLDER REQUESTS [ADAPTER]     # a JSON list of {"messages" or "prompt", "max_tokens"}

Prints a JSON list of {"prompt_token_ids", "token_ids"}; an end-of-sequence token is not part of an answer.
"""

import json
import pathlib
import sys

import torch

import visual_backend  # noqa: F401  must precede peft and transformers

# isort: split
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

torch.set_num_threads(1)  # the other core runs other tests
folder, requests, *adapter = sys.argv[1], json.loads(pathlib.Path(sys.argv[2]).read_text()), *sys.argv[3:]
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
if adapter:
    model = PeftModel.from_pretrained(model, adapter[0])


def prompt_of(request):
    if "prompt" in request:
        return tokenizer(request["prompt"])["input_ids"]
    text = tokenizer.apply_chat_template(request["messages"], add_generation_prompt=True, tokenize=False)
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def answer(request):
    prompt = prompt_of(request)
    ids = torch.tensor([prompt])
    made = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=request["max_tokens"])
    return {"prompt_token_ids": prompt, "token_ids": [t for t in made[0, len(prompt):].tolist() if t != tokenizer.eos_token_id]}


json.dump([answer(request) for request in requests], sys.stdout)
