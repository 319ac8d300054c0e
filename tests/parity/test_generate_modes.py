"""All modes, and the policy that switches between them, must give the same answers as transformers +
PEFT."""

import json

import pytest
import torch

import checkpoints
from checkpoints import save_adapter
from pictures import picture
from programs import Engine, generate, token_ids
from reference import Reference, expect_same, logprob_rows
from test_generate_batching import firm_length
from test_generate_bf16 import SLACK, Distances
from wide import pairs, sample

MODES = ["unmerged", "merged", "mixture", "valora"]
# Costs that make unmerged adapters slow and merges cheap, so that valora switches modes constantly.
COSTS = dict.fromkeys(("token", "prefill_token", "free_tokens", "prefill_context", "decode_context", "rank", "switching",
                       "merged_rank", "restore"), 0)
COSTS |= {"step": 1e-6, "decode_token": 1e-7, "segment": 1e-3, "token_rank": 1e-8, "merge": 1e-7}
MODELS = ["text-grouped-tied", "llama2-biased", *checkpoints.LLAMA_SHAPED.values(), "vl-grouped-tied", "vl25-odd-windows", "llava-default",
          "vl3-grouped-tied", "smolvlm-tied", "internvl-tied", "next-mistral", "onevision-tied", "mistral3-tied", "gemma3"]
ADAPTERS = [dict(rank=1), dict(rank=3, targets=["q_proj", "v_proj"]), dict(rank=8, use_rslora=True), dict(rank=64),
            dict(rank=4, rank_pattern={"q_proj": 7, "down_proj": 16}), dict(rank=5, targets=["gate_proj", "up_proj", "down_proj"]),
            dict(rank=16, targets=["k_proj", "o_proj"]), dict(rank=6, targets="all-linear")]
# The base model, every adapter alone (two of them twice), scaled, and summed. Every other request has an image if the
# model supports it; the adapter on all linears also changes the vision tower, which no mode merges.
USES = [[], *([(i, 1)] for i in range(8)), [(3, 1)], [(3, 0.5)], [(2, 1), (3, -1)], [(1, 0.25), (5, 1)], [(7, 1)], []]
TEXT = [{"role": "user", "content": "What is in this picture?"}]
IMAGE = [{"role": "user", "content": [picture(70, 90, 60), "What is this?"]}]


class Setting:
    """A model with eight adapters, its reference, and the requests answered in every mode."""

    def __init__(self, name, model, folder, root, tokens=16):
        self.folder, self.reference, self.costs = folder, Reference(folder), root / f"{name}-costs.json"
        self.adapters = {f"a{i}": save_adapter(model, root / f"{name}-a{i}", 700 + i, **config) for i, config in enumerate(ADAPTERS)}
        for adapter, path in self.adapters.items():
            self.reference.load_adapter(adapter, path)
        sampling = {"max_tokens": tokens, "ignore_eos": True, "temperature": 0,
                    "logit_bias": self.reference.family.no_media_tokens(), "logprobs": model.config.get_text_config().vocab_size}
        prompts = [TEXT, IMAGE] if self.reference.family.has_images else [TEXT]
        self.requests = [{"messages": prompts[i % len(prompts)], "sampling": sampling,
                          "adapters": [{"name": f"a{a}", "scale": scale} for a, scale in uses]} for i, uses in enumerate(USES)]

    def merging_pays(self, **options):
        """Options for valora that make it merge; with the true costs of such a small model it would
        not."""
        with Engine(self.folder, mode="valora", **options) as engine:
            machine, model = engine.model["cost_key"]
        error = {"median": 0, "p95": 0, "steps": 1}
        self.costs.write_text(json.dumps({"version": 1, "machine": machine, "model": model, "costs": COSTS, "error": error}))
        return {"costs": str(self.costs), "tolerance": 2, "merged_share": 0}

    def answers(self, mode, **options):
        """The answers to all requests at once, and the engine's counters."""
        if mode == "valora":
            options |= self.merging_pays(**options)
        with Engine(self.folder, mode=mode, **options) as engine:
            for adapter, path in self.adapters.items():
                assert engine.load(adapter, path)["warnings"] == []
            return engine.batch(self.requests), engine.stats()


@pytest.fixture(scope="module", params=MODELS)
def setting(request, models, tmp_path_factory):
    return Setting(request.param, models.memory[request.param], models[request.param], tmp_path_factory.mktemp("modes"))


def expect_the_same_answers(expected, answers):
    for own, answer in zip(expected, answers, strict=True):
        length = firm_length(own)
        assert token_ids(answer)[:length] == token_ids(own)[:length]
    assert sum(map(firm_length, expected)) >= 0.95 * sum(len(token_ids(own)) for own in expected)


def test_every_mode_equals_reference(setting):
    alone = None
    for mode in MODES:
        answers, stats = setting.answers(mode)
        for request, answer in zip(setting.requests, answers):
            expect_same(setting.reference, request, answer)
        alone = alone or answers
        expect_the_same_answers(alone, answers)
        assert (stats["merges"] == 0) == (mode == "unmerged")


@pytest.fixture(scope="module")
def short(models, tmp_path_factory):
    name = "text-grouped-tied"
    return Setting(name, models.memory[name], models[name], tmp_path_factory.mktemp("short"), tokens=8)


PLACES = [{"merge": "inplace"}, {"merge": "inplace", "kernels": "reference"}, {"kernels": "reference"},
          {"threads": 2, "max_num_batched_tokens": 13}]


@pytest.mark.parametrize("mode, options", pairs(["merged", "mixture", "valora"], PLACES))
def test_merge_placement_changes_no_answer(short, mode, options):
    answers, stats = short.answers(mode, **options)
    for request, answer in zip(short.requests, answers):
        expect_same(short.reference, request, answer)
    assert stats["merges"] > 0


def test_command_line_accepts_modes_and_refuses_unknown_ones(models, tmp_path):
    name = "text-grouped-tied"
    adapter = save_adapter(models.memory[name], tmp_path / "a", 790, rank=8)
    arguments = ("--adapter", f"{adapter}:0.5", "--prompt", "What is it?", "--max-tokens", 12, "--ignore-eos")
    answers = [generate(models[name], *arguments, *mode)["token_ids"] for mode in
               ([], ["--mode", "unmerged"], ["--mode", "merged"], ["--mode", "mixture", "--merge", "inplace"],
                ["--scheduling-policy", "merged", "--mode", "merged"])]
    assert answers.count(answers[0]) == 5
    for wrong in (["--mode", "dissolved"], ["--merge", "elsewhere"], ["--scheduling-policy", "dlora"],
                  ["--scheduling-policy", "merged", "--mode", "mixture"]):
        done = generate(models[name], *arguments, *wrong, check=False)
        assert done.returncode == 1 and all(word in done.stderr for word in wrong)


# ---- bf16 ----

ROUNDED = sample(["vl-grouped-tied", "llama3-scaled", "llava-default"], 2)


@pytest.fixture(scope="module")
def distances(models, tmp_path_factory):
    """By model and mode: distances of our bf16 and the reference's from fp32, after the same tokens."""
    root, found = tmp_path_factory.mktemp("bf16"), {}
    for name in ROUNDED:
        folder = checkpoints.save_model(checkpoints.make_model(name).to(torch.bfloat16), root / name)
        setting, rounded = Setting(name, models.memory[name], folder, root), Reference(folder, torch.bfloat16, attention="sdpa")
        for adapter, path in setting.adapters.items():
            rounded.load_adapter(adapter, path)
        for mode in MODES:
            found[name, mode] = Distances()
            answers, stats = setting.answers(mode, dtype="auto")
            # In 16 bits mixture and valora merge only for requests that run alone, as the last of a batch may.
            assert stats["merges"] == 0 if mode == "unmerged" else mode != "merged" or stats["merges"] > 0
            for request, answer in zip(setting.requests, answers):
                gold, theirs = (reference.next_token_logits(request, token_ids(answer))[1].log_softmax(-1)
                                for reference in (setting.reference, rounded))
                found[name, mode].ours.append((logprob_rows(answer) - gold).abs())
                found[name, mode].theirs.append((theirs - gold).abs())
    return found


@pytest.mark.parametrize("mode", MODES)
def test_bf16_error_is_at_most_that_of_transformers(distances, mode):
    """Merged weights are rounded once more than base weights and separate adapters; PEFT's run is unmerged."""
    everything = Distances()
    for name in ROUNDED:
        one = distances[name, mode]
        one.compare(one.mean, SLACK)
        one.compare(one.mean_of_largest, SLACK)
        everything.ours += one.ours
        everything.theirs += one.theirs
    everything.compare(everything.mean, 1)
    everything.compare(everything.mean_of_largest, 1)
