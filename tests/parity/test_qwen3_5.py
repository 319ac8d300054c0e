"""Qwen3.5 beyond the tests of all families: adapters on every linear, sequence states in steps of any size, checkpoints in the prefix
cache, insufficient memory, tensor names, and refusals. Requires release 5 or later."""

import json
import random
import shutil
import statistics

import pytest
import torch
from safetensors.torch import load_file, save_file

import families
import rounded_weights
import test_training
from checkpoints import make_model, save_adapter, save_model
from pictures import clip, picture
from programs import Engine, generate, token_ids, wait_until_idle
from reference import Reference, expect_same
from releases import NEWEST
from test_generate_batching import expect_answers
from test_generate_bf16 import expect_error_of_transformers_at_most
from test_kv_cache_dtype import next_log_probabilities

pytestmark = pytest.mark.skipif(not NEWEST, reason="transformers has Qwen3.5 since release 5")

VISUAL = ["qwen35-tied", "qwen35-first-full"]
NAMES = [*VISUAL, "qwen35-text"]
SHARED = "qwen35-tied"  # its heads of keys divide among two ranks, unlike the others'
TEXT = [{"role": "user", "content": "Is it red?"}]
LONG = [{"role": "user", "content": "the image shows a red circle left of two small squares " * 6}]
ONE = [{"role": "user", "content": ["See ", picture(90, 131, 43), "what is it?"]}]
SEVERAL = [{"role": "user", "content": [picture(91, 33, 120), picture(92, 61, 60), "or", picture(93, 40, 33), "what changed?"]}]
VIDEO = [{"role": "user", "content": ["See", clip(94, 5, 60, 40), "why?"]}]
ADAPTED = 2e-4  # updates are half as large as the weights, and states carry rounding along: 1.2e-4 with the kernels of AVX-512 without BF16
DELTA = ["in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a", "out_proj"]


def request_of(model, messages, *adapters, tokens=8, **more):
    return {"messages": messages, "adapters": [{"name": name} for name in adapters], "sampling": {
        "max_tokens": tokens, "ignore_eos": True, "temperature": 0, "logprobs": model.config.get_text_config().vocab_size,
        "logit_bias": families.family_of(model.config).no_media_tokens()}} | more


def chats(name):
    return [TEXT, LONG, *([ONE, SEVERAL, VIDEO] if name in VISUAL else [])]


@pytest.fixture(scope="module", params=NAMES)
def adapted(request, models, tmp_path_factory):
    """A model, its reference with adapters of several kinds, and their folders."""
    name, root = request.param, tmp_path_factory.mktemp("adapters")
    model, reference = models.memory[request.param], Reference(models[request.param])
    settings = {"all": dict(rank=4, targets="all-linear", exclude_modules=["lm_head"]), "delta": dict(rank=7, targets=DELTA),
                "rates": dict(rank=2, targets=["in_proj_a", "in_proj_b"], use_rslora=True),
                "attention": dict(rank=16, targets=["q_proj", "k_proj", "v_proj", "o_proj"]),
                "usual": dict(rank=3)}
    folders = {key: save_adapter(model, root / key, 400 + i, **one) for i, (key, one) in enumerate(settings.items())}
    for key, folder in folders.items():
        reference.load_adapter(key, folder)
    return name, model, reference, folders


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("mode", ["unmerged", "mixture", "merged"])
def test_adapters_and_base_in_one_batch_equal_reference(adapted, models, mode, ranks):
    """One batch of prompts and decodes of all of them, some scaled or summed, in small steps."""
    name, model, reference, folders = adapted
    if ranks > 1 and name != SHARED:
        pytest.skip("its heads of keys do not divide among two ranks")
    with Engine(models[name], mode=mode, max_num_batched_tokens=61, tensor_parallel_size=ranks) as engine:
        for key, folder in folders.items():
            assert engine.load(key, folder)["warnings"] == []
        requests = [request_of(model, messages, *uses, tokens=10) for i, messages in enumerate(chats(name))
                    for uses in ([], ["all"], ["delta"] if i % 2 else ["rates"], ["attention", "rates"] if i % 2 else ["usual"])]
        requests[-1]["adapters"][0]["scale"] = 0.5
        for request, answer in zip(requests, engine.batch(requests), strict=True):
            expect_same(reference, request, answer, ADAPTED)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("budget", [1, 7, 16, 50])
def test_small_steps_carry_the_state(models, references, name, budget):
    """Every step begins with the state left by the previous one."""
    model = models.memory[name]
    with Engine(models[name], max_num_batched_tokens=budget, prefix_caching=False) as engine:
        requests = [request_of(model, messages, tokens=6) for messages in chats(name)]
        for request, answer in zip(requests, engine.batch(requests), strict=True):
            expect_same(references[name], request, answer)
        wait_until_idle(engine)


def block_bytes(engine):
    """Block size, given the tests' default pool of 64 MiB."""
    return (64 << 20) // engine.model["kv_blocks"]


@pytest.mark.parametrize("name, prefix_caching, ranks", [*((name, caching, 1) for name in NAMES for caching in (True, False)),
                                                         (SHARED, True, 2), (SHARED, False, 2)])
def test_memory_limits_change_no_answer(models, references, name, prefix_caching, ranks):
    """Prompts in chunks and memory for only a few of them; preemption discards their states."""
    model = models.memory[name]
    requests = [request_of(model, [{"role": "user", "content": f"Request {i % 5}."}, {"role": "assistant", "content": "Yes"}, *messages],
                           tokens=100 if messages is TEXT else 20) for i, messages in enumerate([*chats(name), TEXT, TEXT, TEXT] * 3)]
    with Engine(models[name], prefix_caching=False, tensor_parallel_size=ranks) as engine:
        alone = [engine.one(request) for request in requests]
        size = block_bytes(engine)
    expect_same(references[name], requests[1], alone[1])
    with Engine(models[name], pool_memory=size * (60 if name in VISUAL else 24), max_num_batched_tokens=64, prefix_caching=prefix_caching,
                tensor_parallel_size=ranks) as engine:
        for _ in range(2):
            expect_answers(alone, engine.batch(requests))
            wait_until_idle(engine)
        stats = engine.stats()
        assert stats["preemptions"] > 0
        cached = [engine.one(requests[0])["usage"]["cached_tokens"] for _ in range(2)][1]
        assert (cached > 16) == prefix_caching


@pytest.mark.parametrize("name", NAMES)
def test_cached_prefixes_end_at_state_checkpoints(models, references, name):
    """The same prompt again, one that extends it, and prompts that branch off where no other had
    ended."""
    model, reference = models.memory[name], references[name]
    with Engine(models[name]) as engine:
        def cached(messages, tokens=8):
            request = request_of(model, messages, tokens=tokens)
            answer = engine.one(request)
            expect_same(reference, request, answer)
            return answer["usage"]["cached_tokens"], len(answer["prompt_token_ids"])
        for messages in chats(name)[1:]:
            assert cached(messages)[0] in (0, 16)
            again, length = cached(messages)
            assert again == (length - 9) // 16 * 16  # up to the tokens that begin the assistant's turn
            more = [*messages, {"role": "assistant", "content": "A dog"}, *TEXT]
            assert cached(more)[0] >= again
        words = "a prefix that many requests share, without an end of its own " * 3
        assert [cached([{"role": "user", "content": words + end}])[0] > 64 for end in ("Why?", "one two three", "And then, who", "Is it?")] == [
            False, False, True, True]


def test_prefixes_are_not_shared_across_adapters_or_pictures(adapted, models):
    """States belong to their nodes, whose keys include adapters, scales and pixels."""
    name, model, reference, folders = adapted
    requests = [request_of(model, messages, *uses) for messages in (LONG, *([ONE] if name in VISUAL else [])) for uses in ([], ["delta"], ["all"])]
    requests += [json.loads(json.dumps(request)) for request in requests]
    requests[-1]["adapters"][0]["scale"] = 0.25
    if name in VISUAL:
        requests.append(request_of(model, [{"role": "user", "content": ["See ", picture(95, 131, 43), "what is it?"]}]))
    with Engine(models[name]) as engine:
        for key in ("delta", "all"):
            engine.load(key, folders[key])
        for request in requests:
            expect_same(reference, request, engine.one(request), ADAPTED)


@pytest.mark.parametrize("name", NAMES)
def test_cancelled_requests_change_no_other_answer(models, references, name):
    """Random arrivals, some of which are cancelled: the others must answer as they do alone."""
    model, draw = models.memory[name], random.Random(5)
    requests = [request_of(model, [{"role": "system", "content": f"{draw.random()}"}, *draw.choice(chats(name))], tokens=draw.choice([3, 20, 40]))
                for _ in range(32)]
    with Engine(models[name], prefix_caching=False) as engine:
        alone = [engine.one(request) for request in requests]
    for request in requests[::4]:
        request["cancel_after"] = 2
    with Engine(models[name], max_num_seqs=5, max_num_batched_tokens=40) as engine:
        expect_answers(alone, engine.batch(requests))
        wait_until_idle(engine)


@pytest.mark.parametrize("name", NAMES)
def test_constrained_answers_match_their_schema(models, references, name):
    """Waiting for a mask would run the request's last token twice, so it must not happen: log probabilities before the mask must equal
    the reference's."""
    model, reference = models.memory[name], references[name]
    requests = [request_of(model, messages, tokens=24)  # no thought, which would precede the form
                | {"choice": [f"It is {i}, I think.", f"No: {i + 1}!"], "add_generation_prompt": False} for i in range(4)
                for messages in chats(name)[:3]]
    for request in requests:
        request["sampling"] |= {"ignore_eos": False, "logit_bias": []}
    with Engine(models[name], max_num_batched_tokens=50) as engine:
        for request, answer in zip(requests, engine.batch(requests), strict=True):
            assert answer["choices"][0]["text"] in request["choice"]
            logits = reference.next_token_logits(request, token_ids(answer))[1]
            for row, token in zip(logits, answer["choices"][0]["tokens"], strict=True):
                allowed = [i for i, value in zip(token["top_ids"], token["top_logprobs"]) if value > -1e30]
                ours = torch.tensor([token["top_logprobs"][token["top_ids"].index(i)] for i in allowed])
                theirs = row[allowed]
                assert ((ours - ours[0]) - (theirs - theirs[0])).abs().max() < 1e-3


@pytest.mark.parametrize("name", NAMES)
def test_bf16_error_is_at_most_that_of_transformers(models, name, tmp_path):
    folder = save_model(make_model(name).to(torch.bfloat16), tmp_path / "model")
    adapter = save_adapter(models.memory[name], tmp_path / "adapter", 410, rank=6, targets="all-linear", exclude_modules=["lm_head"])
    requests = [request_of(models.memory[name], messages, *uses, tokens=40) for messages in chats(name) for uses in ([], ["a"])]
    expect_error_of_transformers_at_most(folder, adapter, requests)


@pytest.mark.parametrize("name", NAMES)
def test_training_steps_equal_peft(models, name, tmp_path):
    """For all linears of the decoder: gradients flow through the delta rules of whole sequences."""
    linears = [*DELTA, "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    init = save_adapter(models.memory[name], tmp_path / "init", 412, rank=4, targets=linears)
    reference, made = Reference(models[name]), test_training.samples(Reference(models[name]))
    options = test_training.PARITY | {"steps": 6}
    answer = test_training.train(test_training.request_of(models[name], init, tmp_path / "out", made, options))
    test_training.compare(reference, init, made, answer, tmp_path / "out", {}, options)


@pytest.mark.parametrize("kv, bound", [("int8", 0.02), ("fp8", 0.1)])
def test_8_bit_keys_and_values_stay_close(models, tmp_path, kv, bound):
    """Applies to the layers with attention; states are not rounded."""
    name = "qwen35-tied"
    adapter = save_adapter(models.memory[name], tmp_path / "a", 413, rank=9)
    plain, rounded = (next_log_probabilities(models[name], adapter, **options) for options in ({}, {"kv_cache_dtype": kv}))
    errors = [one[i] - other[i] for one, other in zip(plain, rounded, strict=True) for i in one]
    spread = statistics.pstdev(value for one in plain for value in one.values())
    assert 0 < statistics.pstdev(errors) < bound * spread


@pytest.mark.parametrize("bits, ranks", [(4, 1), (8, 1), (4, 2)])
def test_integer_weights_stay_close(models, tmp_path, bits, ranks):
    """--quantization, with adapters: all linears in the decoder's layers are rounded."""
    name = "qwen35-tied"
    model = models.memory[name]
    decoded = rounded_weights.decoded_model(model, bits, (*rounded_weights.LINEARS, *DELTA))
    reference = Reference(save_model(decoded, tmp_path / "decoded"))
    reference.load_adapter("a", adapter := save_adapter(model, tmp_path / "a", 414, rank=4, targets=[*DELTA, "q_proj", "down_proj"]))
    with Engine(models[name], quantization=f"int{bits}", tensor_parallel_size=ranks) as engine:
        engine.load("a", adapter)
        for messages in (TEXT, LONG, ONE):
            for uses in ([], ["a"]):
                request = request_of(model, messages, *uses)
                expect_same(reference, request, engine.one(request), tolerance=1e-3)


def test_multi_token_prediction_weights_are_ignored(models, references, tmp_path):
    folder = shutil.copytree(models["qwen35-tied"], tmp_path / "model")
    tensors = load_file(folder / "model.safetensors")
    tensors |= {"mtp.fc.weight": torch.zeros(4, 8), "mtp.layers.0.mlp.up_proj.weight": torch.zeros(3, 3)}
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    done = generate(folder, "--prompt", "x", "--max-tokens", 1, check=False)
    assert done.returncode == 0 and "mtp" not in done.stderr, done.stderr


def test_text_only_folder_equals_reference(models, tmp_path):
    """As written and read by AutoModelForCausalLM."""
    import transformers
    folder = tmp_path / "model"
    transformers.AutoModelForCausalLM.from_pretrained(models["qwen35-tied"]).save_pretrained(folder)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(models["qwen35-tied"] / file, folder / file)
    config = json.loads((folder / "config.json").read_text())
    assert config["architectures"] == ["Qwen3_5ForCausalLM"]
    request = request_of(models.memory["qwen35-text"], LONG)
    request["sampling"]["logprobs"] = models.memory["qwen35-tied"].config.text_config.vocab_size
    with Engine(folder) as engine:
        expect_same(Reference(folder), request, engine.one(request))


@pytest.mark.parametrize("options, why", [
    (["--tensor-parallel-size", 3], "the 2 heads of keys of Qwen3_5ForConditionalGeneration's gated delta rules do not divide evenly"),
    (["--speculative-config", '{"method": "ngram", "num_speculative_tokens": 3}'], "cannot be rolled back after wrong guesses")])
def test_features_incompatible_with_states_are_refused(models, options, why):
    done = generate(models["qwen35-tied"], "--prompt", "x", *options, check=False)
    assert done.returncode == 1 and why in done.stderr, done.stderr


@pytest.mark.parametrize("changes, why", [
    ({"layer_types": ["linear_attention"] * 4}, "no layer has full attention"),
    ({"layer_types": ["sliding_attention", *["full_attention"] * 3]}, "sliding_attention"),
    ({"layer_types": ["full_attention"] * 3}, "layer_types"),
    ({"linear_num_value_heads": 5}, "linear_num_value_heads"),
    ({"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.1}}, "partial_rotary_factor"),
    ({"hidden_act": "gelu"}, "hidden_act")], ids=lambda value: str(value)[:40])
def test_unsupported_configurations_are_refused(models, tmp_path, changes, why):
    folder = shutil.copytree(models["qwen35-tied"], tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    config["text_config"] |= changes
    (folder / "config.json").write_text(json.dumps(config))
    done = generate(folder, "--prompt", "x", check=False)
    assert done.returncode == 1 and why in done.stderr, done.stderr


def test_adapters_on_the_convolution_are_refused(models, tmp_path):
    adapter = save_adapter(models.memory["qwen35-text"], tmp_path / "adapter", 411, rank=2, targets=["q_proj"])
    tensors = {key.replace("self_attn.q_proj", "linear_attn.conv1d"): tensor
               for key, tensor in load_file(adapter / "adapter_model.safetensors").items()}
    save_file(tensors, adapter / "adapter_model.safetensors", {"format": "pt"})
    config = json.loads((adapter / "adapter_config.json").read_text())
    (adapter / "adapter_config.json").write_text(json.dumps(config | {"target_modules": ["conv1d"]}))
    done = generate(models["qwen35-text"], "--adapter", adapter, "--prompt", "x", check=False)
    assert done.returncode == 1 and "conv1d" in done.stderr, done.stderr
