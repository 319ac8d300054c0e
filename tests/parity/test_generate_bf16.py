"""bf16: our distances from the fp32 reference, compared with those of transformers' own bf16 run.

All three follow the same tokens and read the same bf16 checkpoint, so that only arithmetic differs. PEFT keeps
adapters in fp32 next to a bf16 model. Ours are rounded to bf16 and still must not be further away.
"""

import json

import pytest
import torch

import checkpoints
from checkpoints import save_adapter
from programs import Engine, generate, token_ids
from reference import Reference, logprob_rows
from test_generate_base import cases

ADAPTERS = {"rank-3": dict(rank=3, targets=["q_proj", "v_proj"]), "rank-64": dict(rank=64, use_rslora=True),
            "everywhere": dict(rank=6, targets="all-linear")}
MODELS = {"text-grouped-tied": ["rank-3", "rank-64"], "text-one-layer": [], "vl-grouped-tied": ["rank-64"],
          "vl-small-patch": ["rank-3"], "vl-one-layer": [], "vl-merge-three": ["rank-64"], "llama3-scaled": ["rank-3"],
          "vl25-windows": ["everywhere"], "llava-default": ["everywhere"], "llava-full-states": [],
          "vl3-grouped-tied": ["everywhere"], "smolvlm-tied": ["everywhere"], "internvl-qwen3": ["everywhere"],
          "onevision-tied": ["everywhere"], "mistral3-tied": ["everywhere"], "gemma3": ["everywhere"],
          "qwen1-vl": ["everywhere"]}
# For one model's mean over several hundred correlated rows: ours is 0.78 to 1.05 times the reference's, depending on model and
# adapter. The mean over all models, used in the last comparison, gets no slack.
SLACK = 1.10


class Distances:
    """|Δ log-softmax| from fp32, [rows, vocab] per answer, for ours and for the reference's
    bf16."""

    def __init__(self):
        self.ours, self.theirs = [], []

    def mean(self, side):
        return torch.cat([d.mean(-1) for d in side]).mean().item()

    def mean_of_largest(self, side):
        return torch.cat([d.amax(-1) for d in side]).mean().item()

    def largest(self, side):
        return max(d.max().item() for d in side)

    def compare(self, measure, slack):
        ours, theirs = measure(self.ours), measure(self.theirs)
        assert 0 < ours <= slack * theirs, (ours, theirs)


def expect_error_of_transformers_at_most(folder, adapter, requests):
    """Of a model in bf16 on requests with and without the adapter, which they call "a"."""
    exact, rounded, distances = Reference(folder), Reference(folder, torch.bfloat16, attention="sdpa"), Distances()
    with Engine(folder, dtype="auto") as engine:
        engine.load("a", adapter)
        for reference in (exact, rounded):
            reference.load_adapter("a", adapter)
        for request in requests:
            answer = engine.one(request)
            gold, theirs = (reference.next_token_logits(request, token_ids(answer))[1].log_softmax(-1) for reference in (exact, rounded))
            distances.ours.append((logprob_rows(answer) - gold).abs())
            distances.theirs.append((theirs - gold).abs())
    distances.compare(distances.mean, SLACK)
    distances.compare(distances.mean_of_largest, SLACK)


def measure(name, model, root):
    folder = checkpoints.save_model(checkpoints.make_model(name).to(torch.bfloat16), root / name)
    exact, rounded = Reference(folder), Reference(folder, torch.bfloat16, attention="sdpa")
    distances = Distances()
    with Engine(folder, dtype="auto") as engine:
        assert engine.model["dtype"] == "bfloat16"
        for seed, adapter in enumerate(MODELS[name]):
            path = save_adapter(model, root / f"{name}-{adapter}", 800 + seed, **ADAPTERS[adapter])
            engine.load(adapter, path)
            exact.load_adapter(adapter, path)
            rounded.load_adapter(adapter, path)
        sampling = {"max_tokens": 24, "ignore_eos": True, "temperature": 0, "logit_bias": exact.family.no_media_tokens(),
                    "logprobs": model.config.get_text_config().vocab_size}
        for messages in cases(name).values():
            for uses in ([], *([{"name": adapter}] for adapter in MODELS[name])):
                request = {"messages": messages, "adapters": uses, "sampling": sampling}
                answer = engine.one(request)
                gold = exact.next_token_logits(request, token_ids(answer))[1].log_softmax(-1)
                theirs = rounded.next_token_logits(request, token_ids(answer))[1].log_softmax(-1)
                distances.ours.append((logprob_rows(answer) - gold).abs())
                distances.theirs.append((theirs - gold).abs())
    return distances


@pytest.fixture(scope="module")
def distances(models, tmp_path_factory):
    root = tmp_path_factory.mktemp("bf16")
    return {name: measure(name, models.memory[name], root) for name in MODELS}


@pytest.mark.parametrize("name", MODELS)
def test_error_is_at_most_that_of_transformers(distances, name):
    distances[name].compare(distances[name].mean, SLACK)
    distances[name].compare(distances[name].mean_of_largest, SLACK)


def test_largest_error_over_all_models_is_bounded(distances):
    everything = Distances()
    for one in distances.values():
        everything.ours += one.ours
        everything.theirs += one.theirs
    everything.compare(everything.mean, 1)
    everything.compare(everything.mean_of_largest, 1)
    # The maximum of about 800,000 values measures the tail of the distribution, not its width.
    everything.compare(everything.largest, 1.25)


@pytest.mark.parametrize("isa", ["amx", "avx512bf16", "avx512", "avxvnni", "avx2", "neonbf16", "neon", "portable"])
def test_instruction_sets_differ_only_by_rounding(models, isa, monkeypatch):
    model = models["vl-grouped-tied"]
    arguments = ("--prompt", "What is it?", "--max-tokens", 1, "--logprobs", 5)
    exact = generate(model, *arguments)["logprobs"][0]
    monkeypatch.setenv("VALORA_ISA", isa)
    done = generate(model, *arguments, dtype="bfloat16", check=False)
    if done.returncode:
        assert isa in done.stderr
        pytest.skip(f"this CPU has no {isa}")
    rounded = json.loads(done.stdout)["logprobs"][0]
    assert 0 < abs(exact["logprob"] - rounded["logprob"]) < 0.1


def test_unknown_instruction_set_is_an_error(models, monkeypatch):
    monkeypatch.setenv("VALORA_ISA", "mmx")
    done = generate(models["text-one-layer"], "--prompt", "x", check=False)
    assert done.returncode == 1 and "mmx" in done.stderr and "portable" in done.stderr


def test_command_line_rounds_a_float32_checkpoint(models):
    exact = generate(models["text-one-layer"], "--prompt", "x", "--max-tokens", 1, "--logprobs", 1, dtype="auto")
    rounded = generate(models["text-one-layer"], "--prompt", "x", "--max-tokens", 1, "--logprobs", 1, dtype="bfloat16")
    assert 0 < abs(exact["logprobs"][0]["logprob"] - rounded["logprobs"][0]["logprob"]) < 0.1
