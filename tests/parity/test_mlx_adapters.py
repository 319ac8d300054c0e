"""Adapters in the form of mlx-lm and mlx-vlm give the answers of the PEFT adapters they are made from."""

import json

import pytest
from safetensors.torch import load_file, save_file

from checkpoints import save_adapter
from pictures import picture
from programs import Engine, EngineError, inspect
from reference import logprob_rows

PREFIX = "base_model.model."
PARTS = {"lora_A.weight": "lora_a", "lora_B.weight": "lora_b", "lora_embedding_A": "lora_a", "lora_embedding_B": "lora_b",
         "lora_magnitude_vector": "m", "lora_magnitude_vector.weight": "m"}
TARGETS = ["q_proj", "v_proj", "down_proj", "embed_tokens"]


def mlx_folder(peft, folder, renamed=("", ""), **config):
    """Writes the tensors of a PEFT adapter as mlx_lm.lora does: transposed, with a scale that the rank does not divide."""
    given = json.loads((peft / "adapter_config.json").read_text())
    tensors = {}
    for name, tensor in load_file(peft / "adapter_model.safetensors").items():
        end = next((end for end in PARTS if name.endswith("." + end)), None)
        if end is None:
            continue  # a copy of the base's embedding
        module = name.removeprefix(PREFIX).removesuffix("." + end)
        if module.startswith(renamed[0]):
            module = renamed[1] + module.removeprefix(renamed[0])
        tensors[f"{module}.{PARTS[end]}"] = (tensor.T if tensor.dim() == 2 else tensor).contiguous()
    folder.mkdir()
    save_file(tensors, folder / "adapters.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps({
        "adapter_path": "adapters", "fine_tune_type": "dora" if given["use_dora"] else "lora", "model": "mlx-community/some-4bit",
        "num_layers": 16, "lora_parameters": {"rank": given["r"], "dropout": 0.0, "scale": given["lora_alpha"] / given["r"]}} | config))
    return folder


def answers(engine, adapters, messages, vocabulary):
    sampling = {"max_tokens": 4, "ignore_eos": True, "temperature": 0, "logprobs": vocabulary}
    return [logprob_rows(engine.one({"messages": messages, "sampling": sampling, "adapters": uses}))
            for uses in ([], *([{"name": name}] for name in adapters))]


@pytest.mark.parametrize("name, renamed, settings", [
    ("text-grouped-tied", ("", ""), dict(targets=TARGETS)),
    ("text-grouped-tied", ("", ""), dict(use_dora=True)),
    ("vl-grouped-tied", ("model.language_model.", "language_model.model."), dict(targets=["q_proj", "up_proj"])),
], ids=["lora", "dora", "vlm"])
def test_answers_equal_those_of_the_peft_adapter(models, name, renamed, settings, tmp_path):
    model = models.memory[name]
    peft = save_adapter(model, tmp_path / "peft", 5, rank=6, alpha=15, layers_to_transform=[1, 2] if "targets" not in settings else None,
                        **settings)
    mlx = mlx_folder(peft, tmp_path / "mlx", renamed)
    content = ["What is this?"] if name.startswith("text") else [picture(90, 60, 43), "What is this?"]
    with Engine(models[name]) as engine:
        for adapter, path in (("peft", peft), ("mlx", mlx)):
            assert engine.load(adapter, path)["warnings"] == []
        base, of_peft, of_mlx = answers(engine, ["peft", "mlx"], [{"role": "user", "content": content}], model.config.get_text_config().vocab_size)
    assert (of_peft - of_mlx).abs().max() < 1e-4 and (of_peft - base).abs().max() > 0.1
    report = inspect([mlx], "--model", str(models[name]))[0]
    assert report["problems"] == []


@pytest.mark.parametrize("change, message", [
    ({"fine_tune_type": "full"}, 'fine_tune_type "full" is not supported, only lora and dora'),
    ({"lora_parameters": {"rank": 6}}, '"scale"'),
    ({"lora_parameters": {"rank": 5, "scale": 2.0}}, "rank"),
    ({"lora_parameters": None}, 'it is an adapter of MLX without "lora_parameters"'),
], ids=["full", "scale", "rank", "older"])
def test_what_would_change_answers_is_refused(models, change, message, tmp_path):
    peft = save_adapter(models.memory["text-grouped-tied"], tmp_path / "peft", 5, rank=6)
    mlx = mlx_folder(peft, tmp_path / "mlx", **change)
    if change.get("lora_parameters", 0) is None:
        (mlx / "adapter_config.json").write_text(json.dumps({"rank": 6, "alpha": 0.1, "dropout": 0.1}))
    with Engine(models["text-grouped-tied"]) as engine, pytest.raises(EngineError) as error:
        engine.load("a", mlx)
    assert message in str(error.value)


def test_unknown_tensors_are_refused_by_name(models, tmp_path):
    peft = save_adapter(models.memory["text-grouped-tied"], tmp_path / "peft", 5, rank=6)
    mlx = mlx_folder(peft, tmp_path / "mlx")
    tensors = load_file(mlx / "adapters.safetensors")
    name = next(iter(tensors))
    save_file(tensors | {"model.layers.0.mlp.experts.lora_a": tensors[name][None].clone()}, mlx / "adapters.safetensors")
    with Engine(models["text-grouped-tied"]) as engine:
        with pytest.raises(EngineError, match='tensor "model.layers.0.mlp.experts.lora_a" is of a mixture\'s experts'):
            engine.load("a", mlx)
        (mlx / "adapters.safetensors").unlink()
        with pytest.raises(EngineError, match="has no adapters.safetensors, as adapters of MLX have"):
            engine.load("a", mlx)
