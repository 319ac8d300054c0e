"""A soak test's attacks on other users' answers, an adapter with huge values and a swap file that changes on the disk, and
how an answer is compared with the one given alone."""

import json
import os
import pathlib
import shutil

import numpy
from safetensors.numpy import save_file
from safetensors.torch import load_file

from soak_requests import chat

HUGE = 15.9  # root mean square of scale · B A, with which an adapter may still be loaded
BLOCK = 4096
# Log probabilities that differ by this are equal in 16 bits: the number of rows in a step decides the order of its sums. In
# ten minutes the largest such difference is about 0.1, the mean 0.0007; answers from wrong weights differ by whole units.
CLOSE = 0.2


def hostile_copy(source, target):
    """Writes an adapter whose products have the size HUGE in every linear."""
    shutil.copytree(source, target)
    path = pathlib.Path(target)
    config = json.loads((path / "adapter_config.json").read_text())
    scale = config["lora_alpha"] / config["r"]
    tensors = {name: value.float().numpy() for name, value in load_file(path / "adapter_model.safetensors").items()}
    for name in [name for name in tensors if ".lora_A." in name]:
        other = name.replace("lora_A", "lora_B")
        size = scale * numpy.sqrt(numpy.square(tensors[other] @ tensors[name]).mean())
        tensors[other] = tensors[other] * numpy.float32(HUGE / size)
    save_file(tensors, path / "adapter_model.safetensors")


def damage_swap(process, chance):
    """Overwrites a random block of the server's swap file, which has no name any more. Returns the bytes written."""
    for entry in pathlib.Path(f"/proc/{process}/fd").iterdir():
        if "valora-swap" not in os.readlink(entry):
            continue
        with entry.open("r+b") as file:
            blocks = os.fstat(file.fileno()).st_size // BLOCK
            if blocks:
                file.seek(chance.randrange(blocks) * BLOCK)
                return file.write(chance.randbytes(BLOCK))
    return 0


class Agreement:
    """Compares answers: in fp32 their tokens; in 16 bits also log probabilities, up to the first tie of two tokens."""

    def __init__(self, exact):
        self.exact, self.differences, self.ties = exact, [], 0

    def ask(self, model, text, picture):
        body = chat(model if self.exact else "base", text, picture, logprobs=True, top_logprobs=2)
        return body if self.exact else self.other(body, model)

    def other(self, body, model):
        """The same request, not streamed, to another adapter. In 16 bits at a scale at which adapters are never merged, since
        merged weights are rounded once more."""
        if self.exact:
            return body | {"model": model, "stream": False}
        return body | {"stream": False, "lora": [] if model == "base" else [{"name": model, "scale": 0.5}]}

    def agree(self, answer, alone):
        if self.exact or len(answer) != len(alone):
            return [place[0][0] for place in answer] == [place[0][0] for place in alone]
        for got, want in zip(answer, alone):
            difference = abs(got[0][1] - want[0][1])
            if difference > CLOSE:
                return False
            self.differences.append(difference)
            if got[0][0] != want[0][0]:
                self.ties += 1
                return got[0][0] == want[1][0] and want[0][1] - want[1][1] < CLOSE
        return True

    def report(self):
        if self.exact:
            return "tokens compared"
        return (f"log probabilities differ by {numpy.mean(self.differences):.4f} on average, "
                f"{numpy.max(self.differences):.3f} at most; {self.ties} answers end at a tie")
