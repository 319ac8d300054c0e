"""The adapter reader against PEFT: which modules an adapter adapts, with which rank and scale.

Random configurations are applied by PEFT to tiny random models, saved, loaded again by PEFT, and read by the
program adapter_probe.
"""

import functools
import json
import pathlib
import random
import shutil
import subprocess
import warnings

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file

import checkpoints
from families import family_of
from programs import find_program, inspect
from releases import NEWEST
from wide import EVERYTHING, sample

DRAWS = 45 if EVERYTHING else 25  # per family
TOWER = "model.vision_tower." if NEWEST else "model.vision_tower.vision_model."  # LLaVA's tower
LINEARS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
VISUAL = {"qwen2_vl": ["qkv", "proj", "fc1", "fc2", "mlp.0", "mlp.2"],
          "qwen2_5_vl": ["qkv", "attn.proj", "visual.blocks.1.mlp.gate_proj", "mlp.0", "merger.mlp.2"],
          "qwen3_vl": ["qkv", "attn.proj", "visual.blocks.1.mlp.linear_fc1", "merger.linear_fc2", "deepstack_merger_list.1.linear_fc1"],
          "llava": ["out_proj", "fc1", "linear_1", "linear_2", TOWER + "encoder.layers.0.self_attn.q_proj"],
          "smolvlm": ["out_proj", "fc1", "modality_projection.proj", "model.vision_model.encoder.layers.0.self_attn.q_proj"],
          "internvl": ["projection_layer", "fc1", "linear_2", "model.vision_tower.encoder.layer.0.attention.q_proj"]}
VISUAL["mistral3"] = ["merging_layer", "linear_1", "linear_2", "model.vision_tower.transformer.layers.0.attention.q_proj"]
VISUAL["gemma3"] = ["out_proj", "fc1", TOWER + "encoder.layers.0.self_attn.q_proj"]
VISUAL |= dict.fromkeys(["llava_next", "llava_onevision"], VISUAL["llava"])
FAMILIES = {"qwen2": "text-grouped-tied", **checkpoints.LLAMA_SHAPED, "qwen2_vl": "vl-grouped-tied",
            "qwen2_5_vl": "vl25-windows", "llava": "llava-default",
            "qwen3_vl": "vl3-deeper-tower", "smolvlm": "smolvlm-tied", "internvl": "internvl-tied",
            "llava_next": "next-mistral", "llava_onevision": "onevision-tied", "mistral3": "mistral3-tied", "gemma3": "gemma3"}
if not NEWEST:  # since release 5, the experts of a mixture are no linears
    FAMILIES["qwen3_moe"] = "qwen3-moe-sparse"
if NEWEST:
    VISUAL["qwen3_5"] = ["qkv", "attn.proj", "visual.blocks.1.mlp.linear_fc1", "merger.linear_fc2"]
    FAMILIES |= {"qwen3_5": "qwen35-tied", "qwen3_5_text": "qwen35-text"}
OTHER_NAMES = {"qwen": "qwen1-vl"}  # checkpoints named differently from the family
UNREAD = "transformer.visual.attn_pool.attn.out_proj"


def make(family):
    torch.manual_seed(0)
    config = checkpoints.MODELS[(FAMILIES | OTHER_NAMES)[family]]()
    return family_of(config).kind(config)


def prefix_of(family):
    if family == "smolvlm":
        return "model.text_model.layers."
    return "model.language_model.layers." if family in VISUAL else "model.layers."


@functools.cache
def served_table(family):
    """The served model's table of modules, from `valora inspect`."""
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        checkpoints.MODELS[(FAMILIES | OTHER_NAMES)[family]]().save_pretrained(folder)
        path = pathlib.Path(folder, "config.json")
        config = json.loads(path.read_text())
        config["architectures"] = [type(make(family)).__name__]
        path.write_text(json.dumps(config))
        report = inspect([folder])[0]
    return {"modules": report["modules"], "aliases": report["aliases"], "hidden_size": report["hidden_size"]}


def canonical(name):
    """The table's name (that of transformers 4.57) for a module of this release. InternVL's and Mistral 3's are unchanged."""
    if any(part in name for part in ("encoder.layer.", "patch_embeddings", "vision_tower.transformer.", "patch_conv")):
        return name
    return name.replace(TOWER, "model.vision_tower.vision_model.")


@pytest.mark.parametrize("family", [*FAMILIES, *OTHER_NAMES])
def test_module_table_matches_the_models(family):
    """The table must list exactly the linear layers, with their sizes, and identify the embedding and the output layer."""
    modules = {canonical(name): module for name, module in make(family).named_modules()}
    table = {m["name"]: m for m in served_table(family)["modules"]}
    assert table.keys() <= modules.keys()
    for name, module in modules.items():
        if isinstance(module, torch.nn.Linear):
            assert (table[name]["out"], table[name]["in"]) == tuple(module.weight.shape), name
            kind = {"lm_head": "output layer", UNREAD: "linear without effect"}.get(name, "linear")
            assert table[name]["kind"] == kind, name
            assert table[name]["visual"] == any(part in name for part in (".visual.", "vision_tower", "projector", "vision_model", "connector")), name
    for name, entry in table.items():
        assert (entry["kind"] in ("linear", "linear without effect", "output layer")) == isinstance(modules[name], torch.nn.Linear), name
        assert (entry["kind"] == "embedding") == name.endswith(("embed_tokens", "transformer.wte")), name


def run_probe(table, folder, **options):
    request = dict(table, adapter=str(folder), **options)
    done = subprocess.run([find_program("adapter_probe")], input=json.dumps(request), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def peft_targets(model):
    """{module: (rank, scale)} as held by PEFT."""
    prefix = "base_model.model."
    return {canonical(name.removeprefix(prefix)): (module.r["default"], module.scaling["default"])
            for name, module in model.named_modules() if hasattr(module, "lora_A") and "default" in module.lora_A}


def read_targets(answer):
    assert "error" not in answer, answer
    return {t["module"]: (t["rank"], t["scale"]) for t in answer["targets"]}


def assert_same(ours, theirs):
    assert ours.keys() == theirs.keys()
    for name, (rank, scale) in theirs.items():
        assert ours[name][0] == rank, name
        assert ours[name][1] == pytest.approx(scale, rel=1e-6), name


def draw_target(rng, prefix, visual):
    stem = prefix.replace(".", r"\.")
    some = rng.sample(LINEARS + visual, rng.randint(1, 4))
    kind = rng.randrange(7 if visual else 6)
    if kind == 6:  # parts of the model
        return rng.choice([r".*(visual|vision_tower|vision_model)\..*(qkv|proj|fc1|fc2)", r".*(merger\.mlp\.\d|linear_\d|connector.*proj)",
                           r"(?!.*(language_model|text_model|lm_head|embed|conv)).*(\w+_proj|linear_\d|fc\d|qkv|mlp\.\d)", visual])
    if kind == 0:
        return some
    if kind == 1:  # some full names in addition to suffixes
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


def draw_config(rng, prefix, visual):
    options = dict(target_modules=draw_target(rng, prefix, visual), r=rng.choice([1, 3, 8, 16]),
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
    """Keeps the patterns in the order in which the model was created: PEFT would sort them, and the first match
    wins."""
    patterns = {key: dict(getattr(config, key)) for key in ("rank_pattern", "alpha_pattern")}
    get_peft_model(model, config).save_pretrained(folder)
    path = folder / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | patterns))


@pytest.mark.parametrize("family", sample(FAMILIES, 6))
def test_targets_ranks_and_scales_equal_peft(family, tmp_path):
    prefix, table = prefix_of(family), served_table(family)
    servable = {m["name"] for m in table["modules"] if m["kind"] != "other"}
    visual = {m["name"] for m in table["modules"] if m["visual"]}
    rng = random.Random(f"adapters of {family}")
    compared = on_visuals = 0
    for draw in range(DRAWS):
        folder = tmp_path / str(draw)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                save_adapter(make(family), draw_config(rng, prefix, VISUAL.get(family, [])), folder)
            except ValueError:  # no module matches: PEFT cannot create such an adapter
                continue
            expected = peft_targets(PeftModel.from_pretrained(make(family), folder))
        answer = run_probe(table, folder)
        if expected.keys() <= servable:
            assert_same(read_targets(answer), expected)
            compared += 1
            on_visuals += not visual.isdisjoint(expected)
        else:  # the patch embedding is a convolution
            assert any(name in answer["error"]["message"] for name in expected.keys() - servable)
            assert "cannot serve" in answer["error"]["message"]
        shutil.rmtree(folder)
    assert compared > 0.7 * DRAWS
    assert on_visuals > DRAWS / 12 if family in VISUAL else on_visuals == 0


def test_names_of_older_transformers_mean_the_same_modules(tmp_path):
    prefix, table = prefix_of("qwen2_vl"), served_table("qwen2_vl")
    config = LoraConfig(target_modules=rf"{prefix}.*(q_proj|up_proj)", r=4, rank_pattern={f"{prefix}0.mlp.up_proj": 2})
    new, old = tmp_path / "new", tmp_path / "old"
    get_peft_model(make("qwen2_vl"), config).save_pretrained(new)
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


def test_head_saved_by_peft_is_found(tmp_path):
    from transformers import Qwen2ForSequenceClassification
    text = make("qwen2").config
    text.num_labels, text.pad_token_id = 5, 0
    model = Qwen2ForSequenceClassification(text)
    config = LoraConfig(task_type="SEQ_CLS", target_modules=["q_proj"], r=2, init_lora_weights=False)
    get_peft_model(model, config).save_pretrained(tmp_path)
    answer = run_probe(served_table("qwen2"), tmp_path)
    assert len(read_targets(answer)) == 3
    assert answer["warnings"] == []
    assert answer["heads"] == [{"name": "score", "labels": [f"LABEL_{i}" for i in range(5)], "bias": False,
                                "problem_type": "single_label_classification", "add_generation_prompt": False}]


@pytest.mark.parametrize("options, part", [
    (dict(use_dora=True), "use_dora"),  # needs the norms of the base model, which is not given
    (dict(bias="all"), "bias"),  # for the same reason
    (dict(init_lora_weights="pissa"), "init_lora_weights"),
    (dict(init_lora_weights="olora"), "init_lora_weights"),
    (dict(alora_invocation_tokens=[], task_type="CAUSAL_LM"), "alora_invocation_tokens"),
])
def test_unsupported_adapter_is_refused_by_name(options, part, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        get_peft_model(make("qwen2"), LoraConfig(**{"target_modules": ["q_proj"], **options})).save_pretrained(tmp_path)
    answer = run_probe(served_table("qwen2"), tmp_path)
    assert part in answer["error"]["message"]


def test_initialisations_that_change_the_base_are_reapplied_on_load(tmp_path):
    """The reason for refusing these: such an adapter needs base weights that differ from those
    on disk."""
    get_peft_model(make("qwen2"), LoraConfig(target_modules=["q_proj"], init_lora_weights="pissa")).save_pretrained(tmp_path)
    loaded = PeftModel.from_pretrained(make("qwen2"), tmp_path)
    used = loaded.base_model.model.model.layers[0].self_attn.q_proj.base_layer.weight
    assert not torch.allclose(used, make("qwen2").model.layers[0].self_attn.q_proj.weight)
