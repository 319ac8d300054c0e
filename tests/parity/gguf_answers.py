"""transformers' answers from a GGUF file that it reads itself, in fp32. Runs in .venv-newest:

    gguf_answers.py FILE REQUESTS     # a JSON list of {"messages", "prompt_token_ids", "token_ids"}

Prints a JSON list of {"prompt_token_ids": the messages encoded by its own tokenizer, "greedy": the best token at the
position of each of token_ids, "logprobs": of token_ids}.
"""

import json
import pathlib
import sys

import torch

import visual_backend  # noqa: F401  must precede transformers

# isort: split
from transformers import AutoModelForCausalLM, AutoTokenizer

file, requests = pathlib.Path(sys.argv[1]), json.loads(pathlib.Path(sys.argv[2]).read_text())
tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32).eval()


@torch.no_grad()
def answer(request):
    text = tokenizer.apply_chat_template(request["messages"], add_generation_prompt=True, tokenize=False)
    prompt, tokens = request["prompt_token_ids"], request["token_ids"]
    logits = model(torch.tensor([prompt + tokens[:-1]])).logits[0, len(prompt) - 1:].float()
    return {"prompt_token_ids": tokenizer(text, add_special_tokens=False)["input_ids"], "greedy": logits.argmax(-1).tolist(),
            "logprobs": logits.log_softmax(-1)[range(len(tokens)), tokens].tolist()}


json.dump([answer(request) for request in requests], sys.stdout)
