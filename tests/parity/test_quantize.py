"""`valora quantize`: writes folders in the format of compressed-tensors, which must give the same answers as transformers
on the decoded weights."""

import json
import shutil
import subprocess

import pytest
import torch
from compressed_tensors.compressors.pack_quantized.helpers import unpack_from_int32
from compressed_tensors.quantization import QuantizationConfig
from safetensors.torch import load_file, save_file

import quantised
import test_mixtures as mixtures
from checkpoints import save_adapter
from pictures import draw, picture, png
from programs import Engine, find_program
from reference import Reference, expect_same, logprob_rows
from releases import NEWEST
from test_quantised import expect_rounded, first_rows, short_requests

TEXT = [{"role": "user", "content": "What is in this picture?"}]
IMAGE = [{"role": "user", "content": [picture(70, 90, 60), "What is this?"]}]
# By scheme: the model, the group size, and the largest relative weight error (root mean square).
CASES = {"W4A16": ("vl-grouped-tied", 16, 0.13), "W8A16": ("text-one-layer", 0, 0.012), "W8A8": ("text-grouped-tied", None, 0.012)}


def quantize(folder, output, *options, status=0):
    done = subprocess.run([find_program("valora"), "quantize", folder, "--output", output, *map(str, options)], capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr


def decoded(folder):
    """The weights of the quantised linears as read by compressed-tensors: {weight name: float}."""
    config = json.loads((folder / "config.json").read_text())["quantization_config"]
    QuantizationConfig.model_validate(config)
    tensors = load_file(folder / "model.safetensors")
    weights = {}
    for name, scale in tensors.items():
        if not name.endswith(".weight_scale"):
            continue
        linear = name.removesuffix(".weight_scale")
        if linear + ".weight_packed" in tensors:
            shape = tensors[linear + ".weight_shape"]
            bits = config["config_groups"]["group_0"]["weights"]["num_bits"]
            integers = unpack_from_int32(tensors[linear + ".weight_packed"], bits, torch.Size(shape.tolist()))
        else:
            integers = tensors[linear + ".weight"]
        weights[linear + ".weight"] = integers.float() * scale.float().repeat_interleave(integers.shape[1] // scale.shape[1], 1)
    return weights


@pytest.fixture(scope="module")
def made(models, tmp_path_factory):
    """By scheme: (the quantised folder, the folder with its decoded weights, the model in memory)."""
    folders = {}
    for scheme, (model, group, _) in CASES.items():
        root = tmp_path_factory.mktemp(scheme)
        said = quantize(models[model], root / "quantised", "--scheme", scheme, *(["--group-size", group] if group else []))
        assert scheme in said
        plain = shutil.copytree(models[model], root / "plain")
        quantised.with_decoded(plain, decoded(root / "quantised"))
        folders[scheme] = root / "quantised", plain, models.memory[model]
    return folders


@pytest.mark.parametrize("scheme", CASES)
def test_quantised_weights_are_close_to_the_model(made, models, scheme):
    model, _, most = CASES[scheme]
    weights, before = decoded(made[scheme][0]), load_file(models[model] / "model.safetensors")
    stored = load_file(made[scheme][0] / "model.safetensors")
    linears = {name for name in before if ".layers." in name and name.endswith("_proj.weight") and "visual" not in name}
    assert weights.keys() == linears, "all linears of the decoder, and no others"
    for name, weight in weights.items():
        off = (weight - before[name].float()).square().mean().sqrt() / before[name].float().square().mean().sqrt()
        assert off < most, (name, off)
    for name, tensor in before.items():
        assert name in weights or torch.equal(stored[name], tensor), f"{name} stays as it is"


@pytest.mark.parametrize("scheme", ["W4A16", "W8A16"])
def test_answers_equal_those_of_the_decoded_weights(made, scheme, tmp_path):
    folder, plain, memory = made[scheme]
    reference = Reference(plain)
    adapter = save_adapter(memory, tmp_path / "a", 5, rank=4)
    reference.load_adapter("a", adapter)
    sampling = {"max_tokens": 12, "ignore_eos": True, "temperature": 0, "logprobs": memory.config.get_text_config().vocab_size,
                "logit_bias": reference.family.no_media_tokens()}
    requests = [{"messages": IMAGE if reference.family.has_images else TEXT, "sampling": sampling, "adapters": uses}
                for uses in ([], [{"name": "a", "scale": 1}])]
    with Engine(folder) as engine:
        engine.load("a", adapter)
        answers = engine.batch(requests)
    for request, answer in zip(requests, answers, strict=True):
        expect_same(reference, request, answer, tolerance=1e-3)


def test_inputs_are_rounded(made):
    folder, plain, memory = made["W8A8"]
    reference = Reference(plain)
    quantised.RoundedInputs("int-quantized").round_inputs(reference.base)
    requests = short_requests(reference, memory.config.get_text_config().vocab_size, [])
    expect_rounded(reference, requests, first_rows(folder, requests, {}), first_rows(plain, requests, {}))


def test_rounding_by_samples_changes_answers_less_than_nearest(models, tmp_path):
    model = models["vl-grouped-tied"]
    for i in range(12):
        (tmp_path / f"{i}.png").write_bytes(png(draw(i, 40 + 8 * i, 60)))
    lines = [{"image": f"{i}.png", "question": f"Which of {i} and {7 * i % 13} is {word}?", "answer": str(i)}
             for i in range(12) for word in ("larger", "smaller", "missing")]
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "tasks.yaml").write_text("tasks: [{name: sizes, type: question_answering, train: train.jsonl, validation: train.jsonl}]")
    (tmp_path / "text.txt").write_text("".join(f"The number {i} is {'larger' if i % 3 else 'smaller'} than {i * 5 % 17}. " for i in range(900)))
    quantize(model, tmp_path / "nearest", "--scheme", "W4A16")
    samples = ("--tasks", tmp_path / "tasks.yaml", "--text", tmp_path / "text.txt", "--samples", 40)
    assert "40 samples" in quantize(model, tmp_path / "fitted", "--scheme", "W4A16", *samples)
    requests = [{"messages": [{"role": "user", "content": line["question"]}],
                 "sampling": {"max_tokens": 1, "ignore_eos": True, "temperature": 0, "logprobs": 400}} for line in lines[:20]]

    def rows(folder):
        with Engine(folder) as engine:
            return torch.stack([logprob_rows(answer)[0] for answer in engine.batch(requests)])

    exact = rows(model)
    off = {name: (rows(tmp_path / name) - exact).square().mean().item() for name in ("nearest", "fitted")}
    assert off["fitted"] < 0.7 * off["nearest"], off


EXPERTS = [("qwen3-moe", "W8A16"), ("vl3-moe", "W4A16"), *([("qwen35-moe", "W4A16")] if NEWEST else [])]


@pytest.mark.parametrize("name, scheme", EXPERTS)
def test_experts_become_linears_in_integers(models, tmp_path, name, scheme):
    """Those that are one tensor, too: the new folder has a linear of each, under the names of transformers 4. Routers stay in floats."""
    memory, text = models.memory[name], models.memory[name].config.get_text_config()
    quantize(models[name], tmp_path / "quantised", "--scheme", scheme, "--group-size", 16)
    weights, stored = decoded(tmp_path / "quantised"), load_file(models[name] / "model.safetensors")
    linears = mixtures.as_linears(stored, text.hidden_size)
    experts = {key for key in linears if ".experts." in key}
    assert len(experts) == 3 * text.num_experts * text.num_hidden_layers and experts <= weights.keys() <= linears.keys()
    assert not any(key.endswith(("mlp.gate.weight", "shared_expert_gate.weight")) for key in weights)
    assert not any(".experts." in key and key in stored for key in load_file(tmp_path / "quantised" / "model.safetensors"))
    linears |= weights
    plain = shutil.copytree(models[name], tmp_path / "plain")
    save_file(linears if mixtures.has_expert_linears(memory) else mixtures.as_tensors(linears, not NEWEST), plain / "model.safetensors",
              {"format": "pt"})
    reference, adapters = Reference(plain), {"a": dict(rank=4, targets=mixtures.ATTENTION)}
    if mixtures.has_expert_linears(memory):
        adapters["experts"] = dict(rank=4, targets=mixtures.EXPERTS)
    for key, settings in adapters.items():
        reference.load_adapter(key, save_adapter(memory, tmp_path / key, 7, **settings))
    requests = [mixtures.request_of(memory, messages, *uses) for messages in mixtures.chats(name) for uses in ([], *([key] for key in adapters))]
    for mode, ranks in (("unmerged", 1), ("merged", 1), ("unmerged", 2), ("mixture", 2)):
        with Engine(tmp_path / "quantised", mode=mode, tensor_parallel_size=ranks) as engine:
            for key in adapters:
                engine.load(key, tmp_path / key)
            for request, answer in zip(requests, engine.batch(requests), strict=True):
                expect_same(reference, request, answer, tolerance=1e-3)


def test_inputs_of_experts_are_rounded_alike_on_ranks(models, tmp_path):
    name = "qwen3-moe"
    quantize(models[name], tmp_path / "quantised", "--scheme", "W8A8")
    requests = short_requests(Reference(models[name]), models.memory[name].config.vocab_size, {})
    whole = first_rows(tmp_path / "quantised", requests, {})
    parts = first_rows(tmp_path / "quantised", requests, {}, tensor_parallel_size=2)
    unrounded = first_rows(models[name], requests, {})
    off = sorted((a - b).abs().max().item() for a, b in zip(whole, parts, strict=True))
    assert off[len(off) * 3 // 4] <= 1e-3 and off[-1] < 0.3, off
    assert min((a - b).abs().max().item() for a, b in zip(whole, unrounded, strict=True)) > 1e-3, "nothing is rounded"


def test_shards_are_kept_and_indivisible_inputs_use_channel_scales(models, tmp_path):
    """Linears of other sizes have one scale per output; the folder's shards keep their boundaries."""
    source = shutil.copytree(models["text-one-layer"], tmp_path / "source")
    tensors = load_file(source / "model.safetensors")
    (source / "model.safetensors").unlink()
    names = sorted(tensors)
    shards = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for shard, part in shards.items():
        save_file({name: tensors[name] for name in part}, source / shard, {"format": "pt"})
    index = {"metadata": {}, "weight_map": {name: shard for shard, part in shards.items() for name in part}}
    (source / "model.safetensors.index.json").write_text(json.dumps(index))
    widths = sorted({tensor.shape[1] for name, tensor in tensors.items() if name.endswith("_proj.weight")})
    group = next(g for g in (96, 80, 64, 48, 32, 16) if any(w % g for w in widths) and any(w % g == 0 for w in widths))
    quantize(source, tmp_path / "made", "--scheme", "W8A16", "--group-size", group)
    written = json.loads((tmp_path / "made" / "model.safetensors.index.json").read_text())["weight_map"]
    for name, shard in written.items():
        assert name in load_file(tmp_path / "made" / shard)
    groups = json.loads((tmp_path / "made" / "config.json").read_text())["quantization_config"]["config_groups"]
    assert [g["weights"]["strategy"] for g in groups.values()] == ["group", "channel"]
    request = {"messages": TEXT, "sampling": {"max_tokens": 4, "ignore_eos": True, "temperature": 0, "logprobs": 400}}
    with Engine(tmp_path / "made") as engine, Engine(source) as exact:
        assert (logprob_rows(engine.one(request))[0] - logprob_rows(exact.one(request))[0]).abs().max() < 0.1


def test_failed_quantisation_leaves_no_files(made, models, tmp_path):
    output = tmp_path / "out"
    assert "quantised already" in quantize(made["W4A16"][0], output, status=1)
    broken = shutil.copytree(models["text-one-layer"], tmp_path / "broken")
    tensors = load_file(broken / "model.safetensors")
    name = next(name for name in tensors if name.endswith("up_proj.weight"))
    tensors[name][0, 0] = float("inf")
    save_file(tensors, broken / "model.safetensors", {"format": "pt"})
    assert name in quantize(broken, output, status=1)
    assert "multiple of 16" in quantize(models["text-one-layer"], output, "--group-size", 20, status=1)
    assert "W8A8" in quantize(models["text-one-layer"], output, "--scheme", "W8A8", "--group-size", 32, status=1)
    assert [path.name for path in tmp_path.iterdir()] == ["broken"]
    output.mkdir()
    (output / "mine").write_text("")
    assert "already exists" in quantize(models["text-one-layer"], output, status=1)
    assert (output / "mine").exists()
