"""`valora inspect --prove`: the measured effect of adapters, against transformers and PEFT in fp32."""

import json
import shutil
import subprocess

import pytest
import safetensors.torch
import torch

from checkpoints import save_adapter
from programs import find_program, generate
from reference import Reference

MODEL = "vl-grouped-tied"
TEXT = "Name three colors and one animal."  # prove_adapters.cc
PARTS = {"language": dict(rank=4, alpha=6, targets=r".*language_model\.layers\..*\.(q_proj|down_proj)"),
         "tower": dict(rank=3, targets=r".*visual\.blocks\..*\.(qkv|fc1)")}


def prove(model, *adapters):
    done = subprocess.run([find_program("valora"), "inspect", "--json", "--prove", str(model), *map(str, adapters)], capture_output=True, text=True,
                          timeout=120)
    return done.returncode, json.loads("[" + done.stdout.replace("\n}\n{", "\n},\n{") + "]")


def changed(folder, path, edit_config=None, edit_tensors=None):
    """A copy of an adapter with another configuration or other values."""
    shutil.copytree(folder, path)
    config = json.loads((path / "adapter_config.json").read_text())
    (edit_config or (lambda _: None))(config)
    (path / "adapter_config.json").write_text(json.dumps(config))
    tensors = safetensors.torch.load_file(path / "adapter_model.safetensors")
    safetensors.torch.save_file({name: (edit_tensors or (lambda _, value: value))(name, value) for name, value in tensors.items()},
                                path / "adapter_model.safetensors")
    return path


@pytest.fixture(scope="module")
def made(models, tmp_path_factory):
    root = tmp_path_factory.mktemp("prove")
    folders = {name: save_adapter(models.memory[MODEL], root / name, 700 + seed, **config) for seed, (name, config) in enumerate(PARTS.items())}
    folders["zero"] = changed(folders["language"], root / "zero", edit_tensors=lambda name, value: value * (0 if "lora_B" in name else 1))
    folders["alpha"] = changed(folders["language"], root / "alpha", lambda config: config.update(lora_alpha=0))
    folders["idle"] = changed(folders["language"], root / "idle", lambda config: config.update(target_modules=["q_proj", "down_proj", "ffn_up"]))
    reports = {}
    for name, folder in folders.items():
        status, (report,) = prove(models[MODEL], folder)
        reports[name] = status, report
    return folders, reports


def test_effective_adapters_are_proved_and_dead_ones_are_not(made):
    _, reports = made
    for name in ("language", "tower", "idle"):
        status, report = reports[name]
        assert status == 0 and report["proof"]["changes_answers"], report
    for name in ("zero", "alpha"):
        status, report = reports[name]
        assert status == 1 and report["servable"] and not report["proof"]["changes_answers"], report
        assert {prompt["largest_difference"] for prompt in report["proof"]["prompts"]} == {0}
        assert report["warnings"]


def test_one_dead_adapter_among_others_gives_status_1(made, models):
    folders, _ = made
    status, reports = prove(models[MODEL], folders["language"], folders["zero"], folders["tower"])
    assert status == 1
    assert [report["proof"]["changes_answers"] for report in reports] == [True, False, True]


def test_adapters_of_the_tower_change_pictures_alone(made):
    _, reports = made
    text, picture = reports["tower"][1]["proof"]["prompts"]
    assert (text["prompt"], picture["prompt"]) == ("a text", "a picture")
    assert text["largest_difference"] == 0 and picture["largest_difference"] > 1e-4
    assert all(prompt["largest_difference"] > 1e-4 for prompt in reports["language"][1]["proof"]["prompts"])


def test_parts_ranks_scales_and_idle_targets_are_named(made, models):
    folders, reports = made
    layers = models.memory[MODEL].config.get_text_config().num_hidden_layers
    report = reports["language"][1]
    assert report["changes"] == [{"part": "decoder", "linears": 2 * layers, "of": 7 * layers, "ranks": [4], "scales": [1.5]}]
    assert report["idle_targets"] == [] and reports["idle"][1]["idle_targets"] == ["ffn_up"]
    (tower,) = reports["tower"][1]["changes"]
    assert tower["part"] == "vision" and tower["linears"] == len(safetensors.torch.load_file(folders["tower"] / "adapter_model.safetensors")) // 2


def test_norms_are_those_of_the_products_and_weights(made, models):
    folders, reports = made
    weights = dict(models.memory[MODEL].named_modules())
    for name, config in PARTS.items():
        tensors = safetensors.torch.load_file(folders[name] / "adapter_model.safetensors")
        change = base = 0
        for key in (key for key in tensors if "lora_A" in key):
            product = tensors[key.replace("lora_A", "lora_B")].double() @ tensors[key].double() * config.get("alpha", 2 * config["rank"]) / config["rank"]
            change += product.square().sum().item()
            module = key.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
            base += weights[module].weight.double().square().sum().item()
        (norms,) = reports[name][1]["proof"]["norms"]
        assert norms["change"] == pytest.approx(change**0.5, rel=1e-4)
        assert norms["weights"] == pytest.approx(base**0.5, rel=1e-4)


def test_log_probabilities_equal_peft(made, models):
    folders, reports = made
    reference = Reference(models[MODEL])
    reference.load_adapter("language", folders["language"])
    ids = generate(models[MODEL], "--prompt", TEXT, "--max-tokens", 1)["prompt_token_ids"]
    prompt = reports["language"][1]["proof"]["prompts"][0]
    for key, adapters in (("logprobs", []), ("adapted_logprobs", [{"name": "language"}])):
        _, logits, _ = reference.forward({"tokens": ids, "adapters": adapters})
        wanted = logits[:-1].log_softmax(-1).gather(-1, torch.tensor(ids[1:])[:, None])[:, 0]
        assert prompt[key] == pytest.approx(wanted.tolist(), abs=1e-4)


def test_activated_adapters_are_asked_with_their_invocation(made, models, tmp_path):
    folders, _ = made
    ids = generate(models[MODEL], "--prompt", "ok", "--max-tokens", 1)["prompt_token_ids"]
    activated = changed(folders["language"], tmp_path / "activated",
                        lambda config: config.update(alora_invocation_tokens=ids[-3:]))
    status, (report,) = prove(models[MODEL], activated)
    assert status == 0 and report["proof"]["changes_answers"]


def test_text_report_says_what_was_measured(made, models):
    folders, _ = made
    done = subprocess.run([find_program("valora"), "inspect", "--prove", str(models[MODEL]), str(folders["zero"])], capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 1
    assert "it changes nothing" in done.stdout and "decoder: " in done.stdout and "a picture" in done.stdout
