"""The references of Qwen and Qwen-VL, whose code is in their folders."""

import base64
import functools
import json
import types
import unicodedata

import numpy as np
import PIL.Image
import tiktoken
import torch
import transformers

import pictures
import qwen1_reference
import tokenizer_parity
from family import Family, media_of, parts_of
from qwen_families import Qwen


class TiktokenTokenizer:
    """tiktoken as used by QWenTokenizer, with the interface of `tokenizers`."""

    def __init__(self, ranks, visual):
        special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *(f"<|extra_{i}|>" for i in range(205))]
        special += ["<ref>", "</ref>", "<box>", "</box>", "<quad>", "</quad>", "<img>", "</img>", "<imgpad>"] if visual else []
        self.ranks, self.special = ranks, {text: len(ranks) + i for i, text in enumerate(special)}
        self.encoding = tiktoken.Encoding("qwen", pat_str=tokenizer_parity.QWEN2_WORDS, mergeable_ranks=ranks, special_tokens=self.special)

    def encode(self, text, allowed=None, **_):
        allowed = set(self.special) if allowed is None else allowed
        return types.SimpleNamespace(ids=self.encoding.encode(unicodedata.normalize("NFC", text), allowed_special=allowed, disallowed_special=()))

    def decode(self, ids):
        return self.encoding.decode(ids)

    def token_to_id(self, token):
        return self.special.get(token)

    def get_vocab_size(self):
        return len(self.ranks) + len(self.special)


@functools.cache
def qwen1_tokenizer(visual):
    """The vocabulary of the other Qwen tokenizer, as ranks."""
    vocabulary = sorted((id, token) for token, id in Qwen.tokenizer().get_vocab(with_added_tokens=False).items())
    byte_of = {character: byte for byte, character in tokenizer_parity.byte_characters().items()}
    return TiktokenTokenizer({bytes(byte_of[c] for c in token): rank for rank, (_, token) in enumerate(vocabulary)}, visual)


class Qwen1(Family):
    """Qwen and Qwen-VL: produces the same ids as the code in their folders."""

    kind = qwen1_reference.QWenLMHeadModel
    eos = "<|im_end|>"
    tags = {"<ref>", "</ref>", "<box>", "</box>", "<quad>", "</quad>", "<img>", "</img>", "<imgpad>"}

    def __init__(self, visual):
        self.has_images = visual
        self.media_tokens = ("<img>", "</img>", "<imgpad>") if visual else ()

    def tokenizer(self):
        return qwen1_tokenizer(self.has_images)

    def save(self, model, folder):
        ranks = self.tokenizer().ranks
        (folder / "qwen.tiktoken").write_text("".join(f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in ranks.items()))
        (folder / "tokenizer_config.json").write_text(json.dumps({
            "model_max_length": 8192, "tokenizer_class": "QWenTokenizer", "auto_map": {"AutoTokenizer": ["tokenization_qwen.QWenTokenizer", None]}}))
        (folder / "generation_config.json").write_text(json.dumps({
            "chat_format": "chatml", "do_sample": True, "eos_token_id": self.special_id("<|endoftext|>"), "max_new_tokens": 512,
            "max_window_size": 6144, "pad_token_id": self.special_id("<|endoftext|>"), "top_k": 0, "top_p": 0.3}))

    def chat_ids(self, messages, add_generation_prompt):
        """Contents are encoded separately from the text around them, and pictures are numbered throughout the
        conversation."""
        tokenizer, pictures_before, ids = self.tokenizer(), 0, []
        allowed = self.tags if self.has_images else set()
        turns = [] if messages[0]["role"] == "system" else [{"role": "system", "content": "You are a helpful assistant."}]
        for i, message in enumerate([*turns, *messages]):
            content = ""
            for part in parts_of(message):
                pictures_before += not isinstance(part, str)
                content += part if isinstance(part, str) else f"Picture {pictures_before}: <img>picture.png</img>\n"
            ids += tokenizer.encode("\n").ids * (i > 0) + [self.special_id("<|im_start|>")] + tokenizer.encode(message["role"] + "\n").ids
            ids += tokenizer.encode(content, allowed=allowed).ids + [self.special_id("<|im_end|>")]
        ids += tokenizer.encode("\n").ids
        return ids + ([self.special_id("<|im_start|>")] + tokenizer.encode("assistant\n").ids if add_generation_prompt else [])

    def load_processor(self, folder):
        return transformers.AutoConfig.from_pretrained(folder).visual

    def prompt(self, messages, add_generation_prompt, processor, fps=None):
        """The paths between the tags have no effect, because embeddings of pictures take their
        place."""
        ids, expanded, within = self.chat_ids(messages, add_generation_prompt), [], False
        for id in ids:
            if id == self.token_id("</img>"):
                expanded += [self.token_id("<imgpad>")] * processor["n_queries"]
                within = False
            if not within:
                expanded.append(id)
            within = within or id == self.token_id("<img>")
        pixels = [square_pixels(image, processor["image_size"]) for part in media_of(messages) for image in pictures.decode(part["image"])]
        return expanded, {"pixel_values": torch.stack(pixels)} if pixels else {}

    def length_inputs(self, prompt):
        return {"prompt_length": len(prompt)}

    def token_id(self, token):
        return self.special_id(token) if self.has_images else None


def square_pixels(image, side):
    """Processes a PIL picture like torchvision's Resize, ToTensor and Normalize."""
    pixels = torch.from_numpy(np.array(image.convert("RGB").resize((side, side), PIL.Image.Resampling.BICUBIC))).permute(2, 0, 1).float() / 255
    mean, std = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
    return (pixels - torch.tensor(mean)[:, None, None]) / torch.tensor(std)[:, None, None]
