"""Starts the base training from a packaged model, whose tokenizer may be another one."""

import torch
from tokenizers import Tokenizer

from package import load


def rows(new, old, table, fresh):
    """The embeddings of the new tokenizer's tokens: those of the same tokens, or the mean of those that spell it."""
    ids, out = old.get_vocab(), fresh.clone()
    for token, at in new.get_vocab().items():
        text = new.decode([at], skip_special_tokens=False)
        spelt = [ids[token]] if token in ids else old.encode(text, add_special_tokens=False).ids
        if spelt:
            out[at] = table[spelt].mean(0) + (0 if token in ids else 0.3 * fresh[at])
    return out


@torch.no_grad()
def take(model, tokenizer, folder):
    """Copies the packaged model's weights into `model`."""
    other, _, _ = load(folder)
    weights = other.state_dict()
    old = Tokenizer.from_file(str(folder / "tokenizer.json"))
    table = rows(tokenizer, old, weights["model.language_model.embed_tokens.weight"], model.get_input_embeddings().weight)
    for name in ("model.language_model.embed_tokens.weight", "lm_head.weight"):
        weights[name] = table
    model.load_state_dict(weights)
