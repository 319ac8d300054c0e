"""The adapter reader against PEFT: which modules an adapter adapts, with what rank and what scale.

Random configurations are drawn, applied by PEFT to tiny random models, saved, loaded again by PEFT, and read
by the program adapter_probe.
"""

import json
import os
import random
import shutil
import subprocess
import warnings
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import Qwen2Config, Qwen2ForCausalLM, Qwen2VLConfig, Qwen2VLForConditionalGeneration

DRAWS = 60
LINEARS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
TEXT = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
            vocab_size=64, max_position_embeddings=64)
QWEN2_VL_ALIASES = [{"alias": "model.layers.", "canonical": "model.language_model.layers."},
                    {"alias": "visual.", "canonical": "model.visual."}]


def probe_program():
    folder = Path(os.environ.get("VALORA_BIN_DIR", Path(__file__).parents[2] / "build"))
    found = sorted(p for p in folder.rglob("adapter_probe") if p.is_file())
    if not found:
        pytest.skip(f"adapter_probe is not under {folder}; build it or set VALORA_BIN_DIR")
    return found[0]


def make_qwen2():
    torch.manual_seed(0)
    return Qwen2ForCausalLM(Qwen2Config(**TEXT, tie_word_embeddings=False))


def make_qwen2_vl():
    torch.manual_seed(0)
    config = Qwen2VLConfig(text_config=dict(TEXT, rope_scaling={"type": "mrope", "mrope_section": [1, 1, 2]}),
                           vision_config=dict(depth=2, embed_dim=16, num_heads=2, hidden_size=32, patch_size=4,
                                              mlp_ratio=2, in_channels=3),
                           image_token_id=60, video_token_id=61, vision_start_token_id=62, vision_end_token_id=63)
    return Qwen2VLForConditionalGeneration(config)


FAMILIES = {"qwen2": (make_qwen2, "model.layers.", []),
            "qwen2_vl": (make_qwen2_vl, "model.language_model.layers.", QWEN2_VL_ALIASES)}


def module_table(model, servable_prefix, aliases):
    modules = [{"name": name, "in": m.weight.shape[1], "out": m.weight.shape[0],
                "servable": name.startswith(servable_prefix)}
               for name, m in model.named_modules() if isinstance(m, (torch.nn.Linear, torch.nn.Embedding))]
    return {"modules": modules, "aliases": aliases, "hidden_size": TEXT["hidden_size"]}


def run_probe(table, folder, **options):
    request = dict(table, adapter=str(folder), **options)
    done = subprocess.run([probe_program()], input=json.dumps(request), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def peft_targets(model):
    """{module: (rank, scale)} as PEFT holds them."""
    prefix = "base_model.model."
    return {name.removeprefix(prefix): (module.r["default"], module.scaling["default"])
            for name, module in model.named_modules() if hasattr(module, "lora_A") and "default" in module.lora_A}


def read_targets(answer):
    assert "error" not in answer, answer
    return {t["module"]: (t["rank"], t["scale"]) for t in answer["targets"]}


def assert_same(ours, theirs):
    assert ours.keys() == theirs.keys()
    for name, (rank, scale) in theirs.items():
        assert ours[name][0] == rank, name
        assert ours[name][1] == pytest.approx(scale, rel=1e-6), name


def draw_target(rng, prefix):
    stem = prefix.replace(".", r"\.")
    some = rng.sample(LINEARS, rng.randint(1, 4))
    kind = rng.randrange(6)
    if kind == 0:
        return some
    if kind == 1:  # names in full, some of them, beside suffixes
        return [f"{prefix}{rng.randrange(3)}.mlp.{rng.choice(LINEARS[4:])}", f"self_attn.{rng.choice(LINEARS[:4])}"]
    if kind == 2:
        return rf".*layers\.\d+\..*({'|'.join(some)})"
    if kind == 3:
        return rf"{stem}[0{rng.randint(1, 2)}]\.(?:self_attn|mlp)\.(?!{some[0]})\w+_proj"
    if kind == 4:
        return rf"(?i){stem}\d{{,2}}\.(SELF_ATTN|mlp)\.[^kv]+_proj"
    return "all-linear" if rng.random() < 0.5 else [f"layers.{rng.randrange(3)}.self_attn.q_proj", "down_proj"]


def draw_patterns(rng, prefix, values):
    keys = ["q_proj", "self_attn.k_proj", f"{prefix}1.mlp.up_proj", r"layers\.[12]\.mlp\.\w+", r".*\.o_proj",
            "^" + prefix.replace(".", r"\.") + r"0\..*_proj", "mlp.down_proj|v_proj", "layers.2.self_attn.v.proj",
            "proj"]
    return {key: rng.choice(values) for key in rng.sample(keys, rng.randint(0, 4))}


def draw_config(rng, prefix):
    options = dict(target_modules=draw_target(rng, prefix), r=rng.choice([1, 3, 8, 16]),
                   lora_alpha=rng.choice([1, 7, 16, 32.5]), use_rslora=rng.random() < 0.4,
                   rank_pattern=draw_patterns(rng, prefix, [1, 2, 5, 24]),
                   alpha_pattern=draw_patterns(rng, prefix, [1, 3.5, 64]))
    if isinstance(options["target_modules"], list) and rng.random() < 0.5:
        options["layers_to_transform"] = rng.choice([0, 2, [0, 1], [2, 7]])
        options["layers_pattern"] = rng.choice([None, "layers", ["blocks", "layers"], "layer.?"])
    if rng.random() < 0.4:
        options["exclude_modules"] = rng.choice([["k_proj"], ["layers.1.mlp.down_proj", "visual.blocks.0.mlp.fc1"],
                                                 r".*layers\.2\..*", rf"{prefix}0.self_attn.q_proj", "nothing"])
    return LoraConfig(**options)


def save_adapter(model, config, folder):
    """Keeps the patterns in the order that the model was made with: PEFT would sort them, and the first hit wins."""
    patterns = {key: dict(getattr(config, key)) for key in ("rank_pattern", "alpha_pattern")}
    get_peft_model(model, config).save_pretrained(folder)
    path = folder / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | patterns))


@pytest.mark.parametrize("family", FAMILIES)
def test_targets_ranks_and_scales_are_those_of_peft(family, tmp_path):
    make, prefix, aliases = FAMILIES[family]
    table = module_table(make(), prefix, aliases)
    servable = {m["name"] for m in table["modules"] if m["servable"]}
    rng = random.Random(f"adapters of {family}")
    compared = refused = 0
    for draw in range(DRAWS):
        folder = tmp_path / str(draw)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                save_adapter(make(), draw_config(rng, prefix), folder)
            except ValueError:  # nothing targeted: no such adapter exists
                continue
            expected = peft_targets(PeftModel.from_pretrained(make(), folder))
        answer = run_probe(table, folder)
        if expected.keys() <= servable:
            assert_same(read_targets(answer), expected)
            compared += 1
        else:
            assert "which this version cannot serve" in answer["error"]["message"]
            refused += 1
    assert compared > DRAWS / 2
    assert refused == 0 if family == "qwen2" else refused > 0


def test_names_of_older_transformers_mean_the_same_modules(tmp_path):
    make, prefix, aliases = FAMILIES["qwen2_vl"]
    table = module_table(make(), prefix, aliases)
    config = LoraConfig(target_modules=rf"{prefix}.*(q_proj|up_proj)", r=4, rank_pattern={f"{prefix}0.mlp.up_proj": 2})
    new, old = tmp_path / "new", tmp_path / "old"
    get_peft_model(make(), config).save_pretrained(new)
    shutil.copytree(new, old)
    tensors = load_file(new / "adapter_model.safetensors")
    save_file({k.replace("model.language_model.", "model."): v for k, v in tensors.items()},
              old / "adapter_model.safetensors")
    text = (new / "adapter_config.json").read_text()
    assert "model.language_model." in text
    (old / "adapter_config.json").write_text(text.replace("model.language_model.", "model."))
    answers = run_probe(table, new), run_probe(table, old)
    assert read_targets(answers[0]) == read_targets(answers[1])
    assert len(answers[0]["targets"]) == 6
    assert answers[0]["digest"] == answers[1]["digest"]


def test_a_head_saved_by_peft_is_found(tmp_path):
    from transformers import Qwen2ForSequenceClassification
    make, prefix, aliases = FAMILIES["qwen2"]
    model = Qwen2ForSequenceClassification(Qwen2Config(**TEXT, num_labels=5, pad_token_id=0))
    config = LoraConfig(task_type="SEQ_CLS", target_modules=["q_proj"], r=2)
    get_peft_model(model, config).save_pretrained(tmp_path)
    answer = run_probe(module_table(make(), prefix, aliases), tmp_path)
    assert len(read_targets(answer)) == 3
    assert answer["warnings"] == []
    assert answer["heads"] == [{"name": "score", "labels": [f"LABEL_{i}" for i in range(5)], "bias": False,
                                "problem_type": "single_label_classification", "add_generation_prompt": False}]


@pytest.mark.parametrize("options, part", [
    (dict(use_dora=True), "use_dora"),
    (dict(lora_bias=True), "lora_bias"),
    (dict(bias="all"), "bias"),
    (dict(init_lora_weights="pissa"), "init_lora_weights"),
    (dict(init_lora_weights="olora"), "init_lora_weights"),
    (dict(trainable_token_indices=[1]), "trainable_token_indices"),
    (dict(alora_invocation_tokens=[1, 2], task_type="CAUSAL_LM"), "alora_invocation_tokens"),
    (dict(target_modules=["q_proj", "embed_tokens"]), "embed_tokens"),
    (dict(target_modules=["q_proj", "lm_head"]), "lm_head"),
    (dict(modules_to_save=["lm_head"]), "lm_head (its whole weight)"),
    (dict(modules_to_save=["embed_tokens"]), "embed_tokens (its whole weight)"),
])
def test_what_cannot_be_served_is_refused_by_name(options, part, tmp_path):
    make, prefix, aliases = FAMILIES["qwen2"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        get_peft_model(make(), LoraConfig(**{"target_modules": ["q_proj"], **options})).save_pretrained(tmp_path)
    answer = run_probe(module_table(make(), prefix, aliases), tmp_path)
    assert part in answer["error"]["message"]


def test_initialisations_that_change_the_base_do_so_again_when_loaded(tmp_path):
    """Why they are refused: the base that such an adapter needs is not the one on disk."""
    make = FAMILIES["qwen2"][0]
    get_peft_model(make(), LoraConfig(target_modules=["q_proj"], init_lora_weights="pissa")).save_pretrained(tmp_path)
    loaded = PeftModel.from_pretrained(make(), tmp_path)
    used = loaded.base_model.model.model.layers[0].self_attn.q_proj.base_layer.weight
    assert not torch.allclose(used, make().model.layers[0].self_attn.q_proj.weight)
