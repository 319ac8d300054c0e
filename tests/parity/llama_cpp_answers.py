"""Compares valora with llama.cpp's own server on tiny GGUF pairs in fp32: greedy tokens and their log probabilities. By hand:

    VALORA_BIN_DIR=build LLAMA_SERVER=…/llama-server PYTHONPATH=tests/helpers:tests/parity \\
      .venv/bin/python tests/parity/llama_cpp_answers.py [--shift-positions] [CASE…]

The pictures have sizes that neither side resizes: their filters differ. --shift-positions gives llama.cpp's server the
positions of the tower one row on: for InternVL it puts the class token behind the patches, and its positions with it.
"""

import argparse
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
import tokenizers

import checkpoints
import gguf_files
import test_gguf_vision as cases
from pictures import picture
from programs import Engine
from reference import logprob_rows

SIDES = {"qwen2-vl": 64, "qwen2.5-vl": 56, "gemma3": 56, "internvl": 28, "pixtral": 72, "mistral3": 84}
# llama.cpp's server has windows of 112 pixels alone.
CONFIGS = {"qwen2.5-vl": lambda: checkpoints.qwen2_5_vl(64, 4, 2, 2, 96, False, 7, 2, 32, 2, 3, 112, [1])}
# What a picture is in a prompt; llama.cpp writes these tokens itself.
PICTURE = re.compile(r"<\|vision_start\|>(<\|image_pad\|>)+<\|vision_end\|>|<start_of_image>(<image_soft_token>)+<end_of_image>"
                     r"|<img>(<IMG_CONTEXT>)+</img>|((\[IMG\])+\[IMG_BREAK\])*(\[IMG\])+\[IMG_END\]")
TOKENS = 8
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

    def ready(self):
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            return self.send("/health")["status"] == "ok"
        return False

    def send(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}), timeout=120) as response:
            return json.load(response)

    def answer(self, text, pictures):
        marked = PICTURE.sub(self.send("/props")["media_marker"], text)
        prompt = {"prompt_string": marked, "multimodal_data": pictures} if pictures else marked
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
    """Of the log probabilities of the tokens that are likeliest for llama.cpp, as words. It gives none for tokens that end within a
    character."""
    compared = 0
    rows, worst = iter(theirs.get("completion_probabilities", [])), 0.0
    row = next(rows, None)
    for token, mine in zip(theirs["tokens"], logprob_rows(own), strict=True):
        if row is None or row["id"] != token:
            continue
        worst = max(worst, *(abs(float(mine[top["id"]]) - top["logprob"]) for top in row["top_logprobs"]))
        compared += 1
        row = next(rows, None)
    return f"log probabilities of {compared} tokens within {worst:.4f}"


def compare(name, shift, root):
    case, side = make_case(name, root), SIDES[name]
    tokenizer = tokenizers.Tokenizer.from_file(str(case.reference_folder / "tokenizer.json"))
    messages = [["What is it?"], [picture(90, side, side), "what is it?"], [picture(91, side, side), picture(92, side, side), "what changed?"]]
    sampling = {"max_tokens": TOKENS, "ignore_eos": True, "temperature": 0, "logprobs": case.vocabulary}
    with Engine(case.folder, dtype="float32") as engine:
        ours = [engine.one({"messages": [{"role": "user", "content": content}], "sampling": sampling, "adapters": []}) for content in messages]
    if shift:
        for tensor in gguf.GGUFReader(case.mmproj, "r+").tensors:
            if tensor.name == "v.position_embd.weight":
                tensor.data[:] = numpy.roll(tensor.data, -1, 0)
    with open(root / "log", "w") as log:
        server = LlamaServer(str(case.folder), str(case.mmproj), log)
    try:
        for content, own in zip(messages, ours, strict=True):
            text = tokenizer.decode(own["prompt_token_ids"], skip_special_tokens=False)
            if case.family.bos:  # the server adds it, and the space that a text of SentencePiece begins with
                text = text.removeprefix(case.family.bos).removeprefix(" ")
            pictures = [part["image"].split(",")[1] for part in content if isinstance(part, dict)]
            theirs = server.answer(text, pictures)
            mine = [token["id"] for token in own["choices"][0]["tokens"]]
            equal = next((i for i, pair in enumerate(zip(mine, theirs["tokens"], strict=True)) if pair[0] != pair[1]), TOKENS)
            shown = ", " + difference(own, theirs) if equal == TOKENS else ""
            print(f"{name}, {len(pictures)} pictures, prompt of {len(own['prompt_token_ids'])} and {theirs['tokens_evaluated']} tokens: "
                  f"{equal} of {TOKENS} tokens equal{shown}", flush=True)
    finally:
        server.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shift-positions", action="store_true")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(SIDES)}; all by default")
    options = parser.parse_args()
    for name in options.cases or SIDES:
        with tempfile.TemporaryDirectory() as root:
            compare(name, options.shift_positions, pathlib.Path(root))


if __name__ == "__main__":
    main()
