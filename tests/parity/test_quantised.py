"""Quantised folders must give the same answers as transformers and PEFT in fp32 on the decoded weights.

Folders of compressed-tensors are written, and decoded for the reference, by the package of that name
(helpers/quantised.py). Those of GPTQ and AWQ are packed there from the published layouts; AWQ's is checked against the
converter of compressed-tensors, which reads it independently. No other reader of GPTQ or fp8 was available.
"""

import json
import shutil
import subprocess

import pytest
import torch

import checkpoints
import quantised
from adapted_case import AdaptedCase
from checkpoints import save_adapter
from pictures import picture
from programs import Engine, EngineError, find_program, generate, token_ids
from quantised import (
    Awq,
    BitsAndBytes,
    BitsAndBytesRows,
    CompressedTensors,
    Fp8,
    Gptq,
    OrderedWords,
    RoundedInputs,
)
from reference import Reference, logprob_rows
from test_training import PARITY, request_of, samples, train
from wide import pairs

TEXT = [{"role": "user", "content": "What is in this picture?"}]
IMAGE = [{"role": "user", "content": [picture(70, 90, 60), "What is this?"]}]
# By name: the model and its quantisation. Sizes are odd, so some linears are left unquantised with GPTQ and
# AWQ.
CASES = {
    "words-4": ("text-grouped-tied", CompressedTensors(4, 16, symmetric=False)),
    "words-8-tower": ("vl-grouped-tied", CompressedTensors(8, -1)),
    "words-8-deepstack": ("vl3-grouped-tied", CompressedTensors(8, -1)),
    "words-order": ("text-grouped-tied", OrderedWords(4, 8)),
    "bytes": ("text-one-layer", CompressedTensors(8, -1, file_format="int-quantized")),
    "floats": ("text-one-layer", CompressedTensors(8, -1, file_format="float-quantized")),
    "gptq": ("text-one-layer", Gptq(4, 16)),
    "gptq-order": ("text-grouped-tied", Gptq(4, 8, desc_act=True)),
    "gptq-v2": ("text-grouped-tied", Gptq(8, -1, version=2)),
    "awq": ("vl-small-patch", Awq(4, 16)),
    "auto-round": ("text-one-layer", quantised.auto_round("gptq", Gptq(4, 16))),
    "auto-round-awq": ("vl-small-patch", quantised.auto_round("awq", Awq(4, 16))),
    "nf4-nested": ("vl-grouped-tied", BitsAndBytes("nf4", 64, nested_block=16)),
    "fp4": ("text-one-layer", BitsAndBytes("fp4", 32)),
    "bitsandbytes-8": ("vl-grouped-tied", BitsAndBytesRows()),
    "fp8": ("text-grouped-tied", Fp8((16, 32))),
}
# Inputs are rounded too.
ROUNDED = {
    "bytes-tokens": ("text-one-layer", RoundedInputs("int-quantized")),
    "bytes-stored": ("text-one-layer", RoundedInputs("int-quantized", stored_scale=0.02)),
    "floats-tokens": ("text-grouped-tied", RoundedInputs("float-quantized")),
    "floats-stored": ("text-one-layer", RoundedInputs("float-quantized", stored_scale=0.01)),
}
IN_EVERY_MODE = ["words-4", "words-8-tower", "gptq-order", "awq", "bitsandbytes-8"]
ADAPTERS = [dict(rank=3), dict(rank=8, targets="all-linear", exclude_modules=["lm_head"]), dict(rank=4, use_dora=True)]
USES = [[], [(0, 1)], [(1, 1)], [(1, 0.5)], [(0, 1), (1, -1)], [(1, 1)], [], [(2, 1)]]


class Case(AdaptedCase):
    """The quantised folder, the same model with decoded weights, and adapters for it."""

    def __init__(self, name, models, root):
        model, quantiser = (CASES | ROUNDED)[name]
        self.folder, plain = (shutil.copytree(models[model], root / part) for part in ("quantised", "decoded"))
        self.decoded = quantiser.quantise(self.folder)
        quantised.with_decoded(plain, self.decoded)
        self.plain, self.reference, memory = plain, Reference(plain), models.memory[model]
        self.adapters = {f"a{i}": save_adapter(memory, root / f"a{i}", 900 + i, **config) for i, config in enumerate(ADAPTERS)}
        quantiser.round_inputs(self.reference.base)
        for adapter, path in self.adapters.items():
            self.reference.load_adapter(adapter, path)
        sampling = {"max_tokens": 12, "ignore_eos": True, "temperature": 0, "logprobs": memory.config.get_text_config().vocab_size,
                    "logit_bias": self.reference.family.no_media_tokens()}
        prompts = [TEXT, IMAGE] if self.reference.family.has_images else [TEXT]
        self.requests = [{"messages": prompts[i % len(prompts)], "sampling": sampling,
                          "adapters": [{"name": f"a{a}", "scale": scale} for a, scale in uses]} for i, uses in enumerate(USES)]


@pytest.fixture(scope="module")
def cases(models, tmp_path_factory):
    made = {}

    def case(name):
        if name not in made:
            made[name] = Case(name, models, tmp_path_factory.mktemp(name))
        return made[name]
    return case


@pytest.mark.parametrize("name", CASES)
def test_base_and_adapters_in_one_batch_equal_reference(cases, models, name):
    case = cases(name)
    answers = case.expect_same()
    with Engine(models[CASES[name][0]]) as engine:
        plain = engine.one(case.requests[0])
    assert plain["choices"][0]["tokens"][0]["logprob"] != answers[0]["choices"][0]["tokens"][0]["logprob"]


@pytest.mark.parametrize("name, mode", pairs(IN_EVERY_MODE, ["merged", "mixture"]))
def test_merged_adapter_equals_reference(cases, name, mode):
    cases(name).expect_same(mode=mode)


def first_rows(folder, requests, adapters, **options):
    with Engine(folder, **options) as engine:
        for adapter, path in adapters.items():
            engine.load(adapter, path)
        return [logprob_rows(answer)[0] for answer in engine.batch(requests)]


def distances(reference, requests, rows):
    return [(row - reference.forward(request)[1][-1].log_softmax(-1)).abs().max().item() for request, row in zip(requests, rows, strict=True)]


def short_requests(reference, vocabulary, adapters):
    """Requests of one token each. An input near the middle of two steps may be rounded either way, depending on the
    order of sums, which changes all later inputs: with long prompts the reference differs from itself as much as from
    ours."""
    sampling = {"max_tokens": 1, "ignore_eos": True, "temperature": 0, "logprobs": vocabulary, "logit_bias": reference.family.no_media_tokens()}
    return [{"tokens": [token], "sampling": sampling, "adapters": [{"name": use, "scale": 1}] if use else []}
            for token in (5, 17, 31, 44) for use in ("", *adapters)]


def expect_rounded(reference, requests, rows, unrounded):
    away = distances(reference, requests, rows)
    assert sorted(away)[len(away) * 3 // 4] <= 1e-3 and max(away) < 0.3, away
    away = distances(reference, requests, unrounded)
    assert sorted(away)[len(away) // 4] > 1e-3, f"nothing is rounded: {away}"


@pytest.mark.parametrize("name", ROUNDED)
def test_inputs_are_rounded_as_compressed_tensors_does(cases, models, name):
    case = cases(name)
    vocabulary = models.memory[ROUNDED[name][0]].config.get_text_config().vocab_size
    requests = short_requests(case.reference, vocabulary, case.adapters)
    expect_rounded(case.reference, requests, *(first_rows(folder, requests, case.adapters) for folder in (case.folder, case.plain)))


def test_models_with_rounded_inputs_refuse_merging_and_training(cases, models, tmp_path):
    case = cases("bytes-tokens")
    with pytest.raises(EngineError, match="rounds the inputs of its linears.* --scheduling-policy unmerged"):
        Engine(case.folder, mode="merged")
    init = save_adapter(models.memory["text-one-layer"], tmp_path / "init", 11, rank=4)
    with pytest.raises(Exception, match="adapters cannot be trained on it"):
        train(request_of(case.folder, init, tmp_path / "out", samples(case.reference), PARITY | {"steps": 1}))


def test_awq_test_files_decode_as_by_compressed_tensors():
    from compressed_tensors.compressors.base import BaseCompressor
    from compressed_tensors.entrypoints.convert.converters import AutoAWQConverter
    weight = torch.randn(24, 32, generator=torch.Generator().manual_seed(1))
    parts, decoded = Awq(4, 16).tensors(weight)
    converter = AutoAWQConverter(group_size=16)
    converted = converter.process({f"a.{part}": value for part, value in parts.items()})
    scheme = next(iter(converter.update_config(None).config_groups.values()))
    state = {name.removeprefix("a."): value for name, value in converted.items()} | {"weight_scale": converted["a.weight_scale"].float()}
    read = BaseCompressor.get_value_from_registry("pack-quantized").decompress(state, scheme)["weight"]
    assert torch.equal(read, decoded)


def test_inspect_and_startup_name_the_quantisation(cases):
    case = cases("awq")
    done = subprocess.run([find_program("valora"), "inspect", str(case.folder), "--json"], capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    told = report["quantised"]
    assert (told["format"], told["encoding"], told["linears"]) == ("AWQ", "4 bits in groups of 16", len(case.decoded))
    assert told["integers"] == told["linears"]
    assert told["parameters"] == sum(weight.numel() for weight in case.decoded.values())
    assert any("visual" in name for name in told["kept"]) and not any("is not used" in warning for warning in report["warnings"])
    model = CASES["awq"][0]
    stored = sum(p.numel() for p in checkpoints.make_model(model).parameters())
    assert report["stored"]["parameters"] == stored
    assert report["stored"]["dtype"] == "float32"  # of the parts stored as floats
    text = subprocess.run([find_program("valora"), "inspect", str(case.folder)], capture_output=True, text=True, check=True).stdout
    assert f"{len(case.decoded)} linears of 4 bits in groups of 16 (AWQ), served in integers" in text


def test_training_equals_that_of_the_decoded_weights(cases, models, tmp_path):
    case = cases("words-4")
    made, init = samples(case.reference), save_adapter(models.memory[CASES["words-4"][0]], tmp_path / "init", 11, rank=4)
    answers = [train(request_of(folder, init, tmp_path / folder.name, made, PARITY | {"steps": 3}))
               for folder in (case.folder, case.plain)]
    assert answers[0]["losses"] == pytest.approx(answers[1]["losses"], rel=1e-6)


def test_older_files_and_names_are_read(cases, models, tmp_path):
    """AutoGPTQ's quantize_config.json next to config.json; if there is no configuration at all, the
    error gives the reason."""
    case = cases("gptq")
    folder = shutil.copytree(case.folder, tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    section = config.pop("quantization_config")
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(EngineError, match="stored quantised, but config.json has no quantization_config"):
        Engine(folder)
    section.pop("quant_method")
    (folder / "quantize_config.json").write_text(json.dumps(section))
    with Engine(folder) as engine, Engine(case.folder) as other:
        assert token_ids(engine.one(case.requests[0])) == token_ids(other.one(case.requests[0]))


REFUSALS = {
    "activations": (lambda s: s["config_groups"]["group_0"].update(input_activations={"num_bits": 8, "strategy": "token", "dynamic": True}),
                    ["config.json: quantization_config", "input_activations"]),
    "excepted": (lambda s: s.update(ignore=["re:.*layers.1.*"]), ["layers.1", "says that it is not (ignore)"]),
    "other-groups": (lambda s: s["config_groups"]["group_0"]["weights"].update(group_size=24), ["weight_scale", "has shape"]),
    "no-target": (lambda s: s["config_groups"]["group_0"].update(targets=["re:.*mlp.*"]), ["self_attn", "has no target for it"]),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_unsupported_settings_are_refused(cases, tmp_path, name):
    folder = shutil.copytree(cases("words-4").folder, tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    change, words = REFUSALS[name]
    change(config["quantization_config"])
    (folder / "config.json").write_text(json.dumps(config))
    done = generate(folder, "--prompt", "x", check=False)
    assert done.returncode == 1 and str(folder) in done.stderr
    for word in words:
        assert word in done.stderr, done.stderr
