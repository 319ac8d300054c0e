"""Mixtures of experts beyond the tests of all families: adapters on every linear in all modes, small steps, forms of the stored weights,
integers, bf16, training, and refusals."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

import families
import rounded_weights
import test_training
from checkpoints import make_model, save_adapter, save_model
from pictures import picture
from programs import Engine, generate, token_ids, wait_until_idle
from reference import Reference, expect_same
from releases import NEWEST
from test_generate_bf16 import expect_error_of_transformers_at_most

VISUAL = ["vl3-moe", "vl3-moe-sparse", *(["qwen35-moe"] if NEWEST else [])]
NAMES = ["qwen3-moe", "qwen3-moe-sparse", *VISUAL, *(["qwen35-moe-text"] if NEWEST else [])]
TEXT = [{"role": "user", "content": "Is it red?"}]
LONG = [{"role": "user", "content": "the image shows a red circle left of two small squares " * 6}]
ONE = [{"role": "user", "content": ["See ", picture(90, 131, 43), "what is it?"]}]
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
EXPERTS = ["gate_proj", "up_proj", "down_proj"]


def request_of(model, messages, *adapters, tokens=8, **more):
    return {"messages": messages, "adapters": [{"name": name} for name in adapters], "sampling": {
        "max_tokens": tokens, "ignore_eos": True, "temperature": 0, "logprobs": model.config.get_text_config().vocab_size,
        "logit_bias": families.family_of(model.config).no_media_tokens()}} | more


def chats(name):
    return [TEXT, LONG, *([ONE] if name in VISUAL else [])]


def has_expert_linears(model):
    """Until release 5, Qwen3-MoE has a linear per expert and part, which PEFT can adapt; other experts are single tensors."""
    return any(name.endswith("experts.0.up_proj") for name, _ in model.named_modules())


def adapter_settings(name, model):
    settings = {"attention": dict(rank=16, targets=ATTENTION), "scaled": dict(rank=3, targets=["q_proj", "o_proj"], use_rslora=True),
                "all": dict(rank=4, targets="all-linear", exclude_modules=["lm_head"])}
    if name in VISUAL:
        settings["tower"] = dict(rank=5, targets=["qkv", "linear_fc1", "q_proj"])
    if has_expert_linears(model):
        settings |= {"experts": dict(rank=8, targets=EXPERTS), "router": dict(rank=2, targets=["gate"]),
                     "one": dict(rank=6, targets=r".*experts\.1\.(up|down)_proj"), "dora": dict(rank=4, targets=EXPERTS, use_dora=True)}
    return settings


@pytest.fixture(scope="module", params=NAMES)
def adapted(request, models, tmp_path_factory):
    """A model, its reference with adapters of several kinds, and their folders."""
    name, root = request.param, tmp_path_factory.mktemp("adapters")
    model, reference = models.memory[name], Reference(models[name])
    folders = {key: save_adapter(model, root / key, 500 + i, **one) for i, (key, one) in enumerate(adapter_settings(name, model).items())}
    for key, folder in folders.items():
        reference.load_adapter(key, folder)
    return name, model, reference, folders


RANKS = {"tensor_parallel_size": 2}


def only_one_rank(name):
    return name == "qwen35-moe-text"  # its gated delta rules have one head of keys


@pytest.mark.parametrize("mode, options", [
    ("unmerged", {}), ("mixture", {}), ("merged", {}), ("merged", {"merge": "inplace"}), ("unmerged", RANKS), ("mixture", RANKS),
    ("merged", RANKS), ("merged", RANKS | {"merge": "inplace"})], ids=lambda value: value if isinstance(value, str) else "-".join(
        str(one) for one in value.values()))
def test_adapters_and_base_in_one_batch_equal_reference(adapted, models, mode, options):
    """One batch of prompts and decodes of all of them, some scaled or summed, in small steps; also on ranks."""
    name, model, reference, folders = adapted
    if options.keys() >= RANKS.keys() and only_one_rank(name):
        pytest.skip("it does not divide among ranks")
    with Engine(models[name], mode=mode, max_num_batched_tokens=61, **options) as engine:
        for key, folder in folders.items():
            # Names that an adapter has for layers with an MLP reach the experts, too, which are no linears in the reference.
            assert all(".experts." in warning and "without tensors" in warning for warning in engine.load(key, folder)["warnings"])
        sums = [use for use in (["attention", "scaled"], ["all", "experts"], ["router", "one"]) if folders.keys() >= set(use)]
        requests = [request_of(model, messages, *uses, tokens=10) for messages in chats(name)
                    for uses in ([], *([key] for key in folders), *sums)]
        if mode == "unmerged":
            requests[-1]["adapters"][0]["scale"] = 0.5
        for request, answer in zip(requests, engine.batch(requests), strict=True):
            expect_same(reference, request, answer)
        assert (engine.stats()["merges"] == 0) == (mode == "unmerged")


STORED = ["mlp.experts.gate_up_proj", "mlp.experts.down_proj"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("settings", [
    dict(target_parameters=STORED, targets=ATTENTION, rank=5), dict(target_parameters=STORED[1:], targets=["q_proj"], use_rslora=True),
    dict(target_parameters=STORED, targets=["k_proj"], rank=3, rank_pattern={"experts.down_proj": 6}, alpha_pattern={"gate_up_proj": 11})],
    ids=["both", "down", "patterns"])
def test_adapters_on_stored_experts_equal_peft(models, name, settings, tmp_path):
    """LoRA on the tensors of all experts, beside LoRA on linears."""
    model = models.memory[name]
    if has_expert_linears(model):
        pytest.skip("this release has a linear per expert")
    adapter, reference = save_adapter(model, tmp_path / "a", 540, **settings), Reference(models[name])
    assert any(".experts.lora_A" in key for key in load_file(adapter / "adapter_model.safetensors"))
    reference.load_adapter("a", adapter)
    for mode, ranks in (("unmerged", 1), ("merged", 1), *([] if only_one_rank(name) else [("unmerged", 2), ("merged", 2)])):
        with Engine(models[name], mode=mode, max_num_batched_tokens=50, tensor_parallel_size=ranks) as engine:
            engine.load("a", adapter)
            requests = [request_of(model, messages, *uses) for messages in chats(name) for uses in ([], ["a"])]
            for request, answer in zip(requests, engine.batch(requests), strict=True):
                expect_same(reference, request, answer)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("budget", [1, 7, 50])
def test_small_steps_and_cached_prefixes_change_no_answer(models, references, name, budget):
    model = models.memory[name]
    with Engine(models[name], max_num_batched_tokens=budget) as engine:
        requests = [request_of(model, messages, tokens=6) for messages in chats(name)]
        for _ in range(2):
            for request, answer in zip(requests, engine.batch(requests), strict=True):
                expect_same(references[name], request, answer)
            wait_until_idle(engine)
        assert answer["usage"]["cached_tokens"] > 0


def as_linears(tensors, hidden):
    """The experts of a folder, a linear each. Releases order the axes of their tensors differently."""
    made = {}
    for name, tensor in tensors.items():
        prefix, _, own = name.rpartition(".")
        if own not in ("gate_up_proj", "down_proj"):
            made[name] = tensor
            continue
        in_last = tensor.shape[2 if own == "gate_up_proj" else 1] == hidden
        for i, matrix in enumerate(tensor if in_last else tensor.mT):  # [out, in]
            parts = matrix.chunk(2) if own == "gate_up_proj" else [matrix]
            for part, linear in zip(parts, ["gate_proj", "up_proj"] if len(parts) == 2 else ["down_proj"]):
                made[f"{prefix}.{i}.{linear}.weight"] = part.contiguous()
    return made


def as_tensors(tensors, transposed):
    """The experts of a folder in two tensors, [experts, out, in], or [experts, in, out] if transposed."""
    experts = {}
    rest = {name: tensor for name, tensor in tensors.items() if ".experts." not in name}
    for name, tensor in tensors.items():
        if ".experts." in name:
            prefix, _, own = name.rpartition(".experts.")
            index, linear, _ = own.split(".")
            experts.setdefault(prefix, {}).setdefault(int(index), {})[linear] = tensor
    for prefix, of in experts.items():
        both = torch.stack([torch.cat([of[i]["gate_proj"], of[i]["up_proj"]]) for i in range(len(of))])
        down = torch.stack([of[i]["down_proj"] for i in range(len(of))])
        for linear, tensor in (("gate_up_proj", both), ("down_proj", down)):
            rest[f"{prefix}.experts.{linear}"] = tensor.mT.contiguous() if transposed else tensor
    return rest


@pytest.mark.parametrize("name", ["qwen3-moe", "vl3-moe"])
@pytest.mark.parametrize("form", ["linears", "tensors", "transposed"])
def test_every_form_of_stored_experts_is_read(models, references, tmp_path, name, form):
    """Also read again, when a merge in place is undone, and by DoRA, which needs the norms of rows."""
    folder, model = shutil.copytree(models[name], tmp_path / "model"), models.memory[name]
    stored = load_file(folder / "model.safetensors")
    linears = as_linears(stored, model.config.get_text_config().hidden_size)
    save_file(linears if form == "linears" else as_tensors(linears, form == "transposed"), folder / "model.safetensors", {"format": "pt"})
    reference, adapters = Reference(models[name]), {"attention": dict(rank=4, targets=ATTENTION)}
    if has_expert_linears(model):
        adapters = {"experts": dict(rank=4, targets=EXPERTS), "dora": dict(rank=4, targets=EXPERTS, use_dora=True)}
    for i, (key, one) in enumerate(adapters.items()):
        reference.load_adapter(key, save_adapter(model, tmp_path / key, 520 + i, **one))
    with Engine(folder, mode="merged", merge="inplace") as engine:
        for key in adapters:
            engine.load(key, tmp_path / key)
        for uses in ([], *([key] for key in adapters), []):
            request = request_of(model, LONG, *uses)
            expect_same(reference, request, engine.one(request))


@torch.no_grad()
def decoded_model(model, bits):
    """Routers keep their weights."""
    model = rounded_weights.decoded_model(model, bits)
    for name, parameter in model.named_parameters():
        if "experts." not in name or parameter.dim() < 3:
            continue
        for matrix in parameter:
            rows = matrix if NEWEST else matrix.T
            rows.copy_(rounded_weights.decoded(rows.contiguous(), bits))
    return model


@pytest.mark.parametrize("name, bits", [("qwen3-moe", 8), ("qwen3-moe-sparse", 4), ("vl3-moe", 4)])
def test_integer_weights_equal_the_decoded_weights(models, tmp_path, name, bits):
    model = models.memory[name]
    reference = Reference(save_model(decoded_model(model, bits), tmp_path / "decoded"))
    targets = [*ATTENTION, *(EXPERTS if has_expert_linears(model) else [])]
    reference.load_adapter("a", adapter := save_adapter(model, tmp_path / "a", 530, rank=4, targets=targets))
    for mode, ranks in (("unmerged", 1), ("merged", 1), ("unmerged", 2), ("merged", 2)):
        with Engine(models[name], quantization=f"int{bits}", mode=mode, tensor_parallel_size=ranks) as engine:
            engine.load("a", adapter)
            requests = [request_of(model, messages, *uses) for messages in chats(name) for uses in ([], ["a"])]
            for request, answer in zip(requests, engine.batch(requests), strict=True):
                expect_same(reference, request, answer, tolerance=1e-3)


@pytest.mark.parametrize("name", ["qwen3-moe", "vl3-moe"])
def test_bf16_error_is_at_most_that_of_transformers(models, name, tmp_path):
    folder = save_model(make_model(name).to(torch.bfloat16), tmp_path / "model")
    adapter = save_adapter(models.memory[name], tmp_path / "adapter", 510, rank=6, targets=ATTENTION)
    requests = [request_of(models.memory[name], messages, *uses, tokens=60) for messages in chats(name) for uses in ([], ["a"])]
    expect_error_of_transformers_at_most(folder, adapter, requests)


@pytest.mark.parametrize("name", ["qwen3-moe", "vl3-moe"])
def test_training_steps_equal_peft(models, name, tmp_path):
    """Gradients flow through the chosen experts and their weights; experts and routers are not trained."""
    init = save_adapter(models.memory[name], tmp_path / "init", 512, rank=4, targets=ATTENTION)
    reference, made = Reference(models[name]), test_training.samples(Reference(models[name]))
    options = test_training.PARITY | {"steps": 4}
    answer = test_training.train(test_training.request_of(models[name], init, tmp_path / "out", made, options))
    test_training.compare(reference, init, made, answer, tmp_path / "out", {}, options)


@pytest.mark.parametrize("changes, why", [
    ({"num_experts_per_tok": 9}, '"num_experts_per_tok" is 9, of 8 experts'),
    ({"num_experts": 0}, "num_experts"),
    ({"num_experts": 10**6}, "num_experts"),
    ({"num_experts": 7, "num_local_experts": 8}, '"num_experts" and "num_local_experts" differ'),
    ({"moe_intermediate_size": 22}, "experts.0.gate_proj.weight has shape [21, 48]"),
    ({"hidden_act": "gelu"}, "hidden_act")], ids=lambda value: str(value)[:40])
def test_unsupported_configurations_are_refused(models, tmp_path, changes, why):
    folder = shutil.copytree(models["qwen3-moe"], tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    if "num_experts" in changes:
        config.pop("num_local_experts", None)
    (folder / "config.json").write_text(json.dumps(config | changes))
    done = generate(folder, "--prompt", "x", check=False)
    assert done.returncode == 1 and why in done.stderr, done.stderr


@pytest.mark.parametrize("change, why", [
    (lambda tensor: tensor[:, :, 1:], "requires [8, 42, 48] or [8, 48, 42]"),
    (lambda tensor: tensor.to(torch.float8_e4m3fn), "experts stored together in F8_E4M3 are not supported")])
def test_unsupported_stored_experts_are_refused(models, tmp_path, change, why):
    folder = shutil.copytree(models["qwen3-moe"], tmp_path / "model")
    hidden = models.memory["qwen3-moe"].config.hidden_size
    tensors = as_tensors(as_linears(load_file(folder / "model.safetensors"), hidden), False)
    tensors = {name: change(tensor).contiguous() if "gate_up_proj" in name else tensor for name, tensor in tensors.items()}
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    done = generate(folder, "--prompt", "x", check=False)
    assert done.returncode == 1 and why in done.stderr, done.stderr


@pytest.mark.parametrize("name, ranks", [("qwen3-moe", 2), ("vl3-moe-sparse", 4), *([("qwen35-moe", 2)] if NEWEST else [])])
def test_one_all_reduce_adds_the_experts_of_a_layer(models, tmp_path, name, ranks):
    """As many sums as a dense MLP has, whatever the number of chosen experts, with a shared expert and with adapters; and the tokens of
    one rank."""
    model, reference = models.memory[name], Reference(models[name])
    text = model.config.get_text_config()
    targets = [*ATTENTION, *(EXPERTS if has_expert_linears(model) else [])]
    reference.load_adapter("a", adapter := save_adapter(model, tmp_path / "a", 550, rank=4, targets=targets))
    request = request_of(model, LONG, "a", tokens=9)
    answers, moved = [], 0
    for count in (1, ranks):
        with Engine(models[name], tensor_parallel_size=count) as engine:
            engine.load("a", adapter)
            answers.append(engine.one(request))
            wait_until_idle(engine)
            moved = engine.stats()["collective_bytes"]
    assert token_ids(answers[0]) == token_ids(answers[1])
    expect_same(reference, request, answers[1])
    rows = answers[1]["usage"]["prompt_tokens"] + 9 - 1
    sums = 2 * text.num_hidden_layers * rows * text.hidden_size * 2 * (ranks - 1)
    logits = 9 * sum(text.vocab_size * (rank + 1) // ranks - text.vocab_size * rank // ranks for rank in range(1, ranks))
    assert moved == 4 * (sums + logits)


@pytest.mark.parametrize("changes, ranks, why", [
    ({"moe_intermediate_size": 1}, 2, "experts.0.down_proj are fewer than the ranks"),
    ({}, 4, "the 6 attention heads of Qwen3MoeForCausalLM do not divide evenly")], ids=["width", "heads"])
def test_what_does_not_divide_among_ranks_is_refused(models, tmp_path, changes, ranks, why):
    folder = shutil.copytree(models["qwen3-moe"], tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))
    done = generate(folder, "--prompt", "x", "--tensor-parallel-size", ranks, check=False)
    assert done.returncode == 1 and why in done.stderr, done.stderr
