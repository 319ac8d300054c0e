"""Compares valora with llama.cpp's own server on tiny GGUF pairs in fp32: greedy tokens and their log probabilities. By hand:

    VALORA_BIN_DIR=build LLAMA_SERVER=…/llama-server PYTHONPATH=tests/helpers:tests/parity \\
      .venv/bin/python tests/parity/llama_cpp_answers.py [--shift-positions] [CASE…]

It prints a row per case and request. --shift-positions gives llama.cpp's server the positions of the tower one row on: for InternVL it
puts the class token behind the patches, and its position with it.
"""

import argparse
import collections
import contextlib
import json
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

import gguf
import numpy

import checkpoints
import families
import gguf_files
import test_gguf_vision as cases
from pictures import picture
from programs import Engine
from reference import logprob_rows

# Widths and heights. Only for SmolVLM and Idefics3 the server resizes pictures as transformers does; elsewhere it keeps the ratio and adds a
# border, so the other sizes are not resized.
SIZES = {"qwen2-vl": (64, 96), "qwen2.5-vl": (168, 28), "qwen3-vl": (64, 96), "smolvlm": (77, 45), "idefics3": (77, 45), "gemma3": (56, 56),
         "llava": (28, 28), "internvl": (28, 28), "pixtral": (72, 40), "mistral3": (84, 60)}
# What llama.cpp's server takes: windows of 112 pixels; for Qwen3-VL a decoder with a layer behind those that take features of the tower,
# and sections that give every frequency an axis (docs/gguf.md).
CONFIGS = {
    "qwen2.5-vl": lambda: checkpoints.qwen2_5_vl(64, 4, 2, 2, 96, False, 7, 2, 32, 2, 3, 112, [1]),
    "qwen3-vl": lambda: checkpoints.qwen3_vl((64, 4, 2, 3, 96, True), 16, [3, 3, 2], cases.TOWER | dict(
        depth=4, num_heads=2, num_position_embeddings=49, deepstack_visual_indexes=[0, 2]), 8, 2)}
# It looks up these tokens for every tile, also "\n\n", which the small vocabularies lack.
families.SmolVLM.specials = [*families.SmolVLM.specials, "\n\n"]
families.Idefics3.specials = [*families.Idefics3.specials, *families.SmolVLM.specials[-6:]]
families.Idefics3.specials.remove("<|end_of_text|>")  # it never writes this token when it is to ignore ends
# What a picture is in a rendered prompt, without the tokens that llama.cpp's server writes itself.
PICTURE = re.compile(r"<\|vision_start\|><\|image_pad\|><\|vision_end\|>|<IMG_CONTEXT>|\[IMG\]|<image>|<start_of_image>")
TOKENS = 16
START = 60.0  # seconds


class LlamaServer:
    def __init__(self, model, mmproj, log):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen([os.environ["LLAMA_SERVER"], "-m", model, "--mmproj", mmproj, "--port", str(port), "-c", "2048", "-np", "1",
                                         "--threads", "1", "--no-warmup", "-fa", "off", "-ctk", "f32", "-ctv", "f32"], stdout=log, stderr=log)
        end = time.monotonic() + START
        while not self.ready():
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("llama-server did not start")
            time.sleep(0.1)
        self.marker = self.send("/props")["media_marker"]

    def ready(self):
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            return self.send("/health")["status"] == "ok"
        return False

    def send(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}), timeout=120) as response:
            return json.load(response)

    def answer(self, text, pictures):
        prompt = {"prompt_string": text, "multimodal_data": pictures} if pictures else text
        return self.send("/completion", {"prompt": prompt, "n_predict": TOKENS, "temperature": 0, "n_probs": 20, "ignore_eos": True,
                                         "cache_prompt": False, "return_tokens": True})

    def close(self):
        self.process.terminate()
        self.process.wait()


def make_case(name, root):
    """The pair in fp32, its vocabulary padded to the embeddings' rows, as llama.cpp's converter does."""
    config = CONFIGS.get(name, cases.CASES[name][0])
    cases.CASES[name] = (config, "F32", "F32")
    size = config().text_config.vocab_size
    add = gguf_files.add_tokenizer
    gguf_files.add_tokenizer = lambda writer, data, pre=None, scores=None: add(writer, data, pre, size=size, scores=scores)
    try:
        return cases.Case(name, root)
    finally:
        gguf_files.add_tokenizer = add


def difference(own, theirs):
    """Compares up to the first token that differs. Returns the number of equal tokens, the number of positions whose log probabilities are
    compared, and their largest difference for the 20 tokens that are likeliest for llama.cpp. It gives none for a token that ends within a
    character, so a token's are compared only if there are as many as it occurs."""
    tokens, mine, rows = theirs["tokens"], [token["id"] for token in own["choices"][0]["tokens"]], collections.defaultdict(list)
    equal = next((i for i, pair in enumerate(zip(mine, tokens, strict=True)) if pair[0] != pair[1]), TOKENS)
    for row in theirs.get("completion_probabilities", []):
        rows[row["id"]].append(row["top_logprobs"])
    likelihoods, differences = logprob_rows(own), []
    for token, tops in rows.items():
        places = [i for i, other in enumerate(tokens) if other == token]
        if len(tops) == len(places):
            differences += [max(abs(float(likelihoods[i][one["id"]]) - one["logprob"]) for one in top)
                            for i, top in zip(places, tops, strict=True) if i <= equal]
    return equal, len(differences), max(differences, default=None)


def server_prompt(family, messages, marker):
    """The server adds BOS, and the tokens around a picture, but not Gemma 3's newlines."""
    around = "\n\n" if isinstance(family, families.Gemma3) else ""
    text = PICTURE.sub(around + marker + around, family.render(messages))
    return text.removeprefix(family.bos) if family.bos else text


def compare(name, shift, root):
    case, size = make_case(name, root), SIZES[name]
    contents = [["What is it?"], [picture(90, *size), "what is it?"], [picture(91, *size), picture(92, *size), "what changed?"]]
    conversations = [[{"role": "user", "content": content}] for content in contents]
    sampling = {"max_tokens": TOKENS, "ignore_eos": True, "temperature": 0, "logprobs": case.vocabulary}
    with Engine(case.folder, dtype="float32") as engine:
        ours = [engine.one({"messages": messages, "sampling": sampling, "adapters": []}) for messages in conversations]
    if shift:
        for tensor in gguf.GGUFReader(case.mmproj, "r+").tensors:
            if tensor.name == "v.position_embd.weight":
                tensor.data[:] = numpy.roll(tensor.data, -1, 0)
    with open(root / "log", "w") as log:
        server = LlamaServer(str(case.folder), str(case.mmproj), log)
    try:
        for messages, own in zip(conversations, ours, strict=True):
            pictures = [part["image"].split(",")[1] for part in messages[0]["content"] if isinstance(part, dict)]
            theirs = server.answer(server_prompt(case.family, messages, server.marker), pictures)
            equal, compared, worst = difference(own, theirs)
            lengths = f"{len(own['prompt_token_ids'])}/{theirs['tokens_evaluated']}"
            print(f"{name:12}{len(pictures):>9}{lengths:>15}{equal:>10}/{TOKENS}{compared:>11}   {f'{worst:.4f}' if compared else '–'}", flush=True)
    finally:
        server.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shift-positions", action="store_true")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(SIZES)}; all by default")
    options = parser.parse_args()
    print(f"{'case':12}{'pictures':>9}{'prompt tokens':>15}{'equal tokens':>13}{'positions':>11}   log probabilities within")
    for name in options.cases or SIZES:
        with tempfile.TemporaryDirectory() as root:
            compare(name, options.shift_positions, pathlib.Path(root))


if __name__ == "__main__":
    main()
