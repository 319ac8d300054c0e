"""Qwen and Qwen-VL beyond the checkpoints of all families: adapters in every mode, training, insufficient memory, prompts
beyond the training length, the tokenizer, and refused folders. test_qwen1_reference.py tests the reference.
"""

import base64
import json
import shutil
import unicodedata

import pytest
from tokenizers import normalizers

import families
import quantised
import tokenizer_parity
from checkpoints import qwen1, randomise, save_adapter, save_model
from pictures import clip, picture
from programs import DEVICE, Engine, EngineError, generate
from quantised import CompressedTensors, Fp8, Gptq
from reference import Reference, expect_same
from rounded_weights import decoded_model
from test_generate_modes import expect_the_same_answers
from test_generate_rope import tokens_up_to
from test_llava_next import changed, expect_memory_changes_nothing, request_of
from test_training import compare, samples, train
from test_training import request_of as training_of

ONE = [{"role": "user", "content": ["See ", picture(80, 131, 43), "what is it?"]}]
SEVERAL = [{"role": "user", "content": [picture(81, 33, 120), "and", picture(82, 90, 91), "differ?"]}, {"role": "assistant", "content": "Yes."},
           {"role": "user", "content": [picture(80, 131, 43), "Which is <ref>the dog</ref>?"]}]
TEXT = [{"role": "user", "content": "Is it red?"}]
DECODER = r"transformer\.h\..*"
TOWER = r".*resblocks\..*\.(in_proj|out_proj|c_fc|c_proj)"
ADAPTERS = {"published": dict(rank=8, targets=["c_attn", "attn.c_proj", "w1", "w2"]), "fused": dict(rank=3, targets=["c_attn"]),
            "decoder": dict(rank=5, targets=DECODER + r"(c_attn|c_proj|w1|w2)", use_rslora=True), "tower": dict(rank=6, targets=TOWER),
            "all": dict(rank=4, targets="all-linear", exclude_modules=["lm_head"]), "vocabulary": dict(rank=4, targets=["wte", "lm_head"])}
# Kinds of adapters, each tested alone because PEFT cannot combine two of them in one model.
KINDS = {"saved": dict(targets=["c_attn", "w1"], modules_to_save=["wte", "lm_head"]), "dora": dict(targets=["c_attn", "c_proj"], use_dora=True),
         "rows": dict(targets=["c_attn"], trainable_token_indices=[3, 70, 90]), "biased": dict(targets=["c_attn"], lora_bias=True)}
UNREAD = "transformer.visual.attn_pool.attn.out_proj has no effect"
VL = ["qwen1-vl", "qwen1-vl-square"]
RANKS = {"qwen1-vl": [2, 4], "qwen1-vl-square": [4], "qwen1-text": [3]}
on_cpus = pytest.mark.skipif(DEVICE == "cuda", reason="ranks are compared on CPUs")


class Adapted:
    def __init__(self, name, models, root):
        self.name, self.models, self.reference = name, models, Reference(models[name])
        names = ADAPTERS if self.reference.family.has_images else [name for name in ADAPTERS if name != "tower"]
        self.folders = {adapter: save_adapter(models.memory[name], root / adapter, 300 + seed, **ADAPTERS[adapter])
                        for seed, adapter in enumerate(names)}
        for adapter, folder in self.folders.items():
            self.reference.load_adapter(adapter, folder)

    def expect(self, mode, **options):
        """Compares the answers with the reference and returns them."""
        chats = [TEXT, ONE, SEVERAL] if self.reference.family.has_images else [TEXT]
        with Engine(self.models[self.name], mode=mode, **options) as engine:
            for adapter, folder in self.folders.items():
                warnings = engine.load(adapter, folder)["warnings"]
                assert all(UNREAD in warning for warning in warnings), warnings
                assert len(warnings) == (adapter == "all" and self.reference.family.has_images)
            requests = [request_of(self.models.memory[self.name], chat, *uses) for chat in chats for uses in [[], *([a] for a in self.folders)]]
            answers = engine.batch(requests)
            for request, answer in zip(requests, answers, strict=True):
                expect_same(self.reference, request, answer)
            first = engine.one(requests[-1])
            expect_same(self.reference, requests[-1], first)
        return answers


@pytest.fixture(scope="module", params=[*VL, "qwen1-text"])
def adapted(request, models, tmp_path_factory):
    return Adapted(request.param, models, tmp_path_factory.mktemp("adapted"))


@pytest.mark.parametrize("mode", ["unmerged", "merged", "mixture"])
def test_adapters_on_every_linear_equal_peft(adapted, mode):
    adapted.expect(mode)


@pytest.fixture(scope="module")
def alone(adapted):
    return adapted.expect("unmerged")


@on_cpus
@pytest.mark.parametrize("mode", ["unmerged", "merged", "mixture"])
def test_ranks_split_fused_qkv_linear(adapted, alone, mode):
    """Each rank has its own heads of queries, keys and values, which are not adjacent in the linear."""
    for ranks in RANKS[adapted.name]:
        expect_the_same_answers(alone, adapted.expect(mode, tensor_parallel_size=ranks))


@pytest.mark.parametrize("kind", KINDS)
def test_other_adapter_kinds_equal_peft(models, tmp_path, kind):
    name = "qwen1-text"
    adapter, reference = save_adapter(models.memory[name], tmp_path / "adapter", 21, rank=4, **KINDS[kind]), Reference(models[name])
    reference.load_adapter(kind, adapter)
    for mode, ranks in (("unmerged", 1), ("merged", 1), *([] if DEVICE == "cuda" else [("unmerged", 3), ("merged", 3)])):
        with Engine(models[name], mode=mode, tensor_parallel_size=ranks) as engine:
            assert engine.load(kind, adapter)["warnings"] == []
            request = request_of(models.memory[name], TEXT, kind)
            expect_same(reference, request, engine.one(request))


@pytest.mark.parametrize("part", ["decoder", "all"])
def test_training_step_equals_reference(models, tmp_path, part):
    """In training, the reference uses neither a different theta nor scaled queries, whatever the
    length."""
    name = "qwen1-vl"
    everything = rf"({DECODER}(c_attn|c_proj|w1|w2)|{TOWER}|.*kv_proj)"
    targets, parts = (everything, ["decoder", "projector", "vision"]) if part == "all" else (DECODER + r"(c_attn|c_proj|w1|w2)", ["decoder"])
    init = save_adapter(models.memory[name], tmp_path / "init", 13, rank=4, targets=targets)
    reference = Reference(models[name])
    made = samples(reference)
    answer = train(training_of(models[name], init, tmp_path / "out", made, targets=parts))
    compare(reference, init, made, answer, tmp_path / "out", {})


@pytest.mark.parametrize("name", VL)
def test_chunks_preemptions_and_cached_prefixes_change_no_answer(models, references, name):
    expect_memory_changes_nothing(models.memory[name], models[name], references[name], [ONE, SEVERAL], chunk=64)


TRAINED = 48  # training length
LENGTHS = [20, 36, TRAINED, TRAINED + 1, 70, 2 * TRAINED, 2 * TRAINED + 1, 165, 4 * TRAINED + 1]


def longer(tmp_path, **more):
    """A model with a short training length, served up to 400 tokens."""
    config = qwen1(families.QWEN1, 48, 3, 3, 74, seq_length=TRAINED, max_position_embeddings=400, **more)
    return save_model(randomise(families.QWEN1.kind(config), 9), tmp_path / "model")


@pytest.mark.parametrize("more", [{}, {"use_logn_attn": False}, {"use_dynamic_ntk": False}], ids=["both", "ntk", "logn"])
def test_prompts_beyond_the_training_length_equal_reference(tmp_path, more):
    """Sequentially with shared prefixes, in chunks, together, and with answers that grow past the training
    length."""
    folder = longer(tmp_path, **more)
    reference = Reference(folder)
    sampling = {"max_tokens": 24, "ignore_eos": True, "temperature": 0, "logprobs": reference.base.config.vocab_size}
    requests = [tokens_up_to(length) | {"sampling": sampling} for length in LENGTHS]
    for options in [{}, {"max_num_batched_tokens": 11}, {"prefix_caching": False}, *([] if DEVICE == "cuda" else [{"tensor_parallel_size": 3}])]:
        with Engine(folder, **options) as engine:
            for request in requests:
                expect_same(reference, request, engine.one(request))
            for request, answer in zip(requests, engine.batch(requests)):
                expect_same(reference, request, answer)


def test_long_prompts_share_prefixes_only_with_equal_theta(tmp_path):
    """Prompts share blocks only with prompts that have the same theta."""
    with Engine(longer(tmp_path)) as engine:
        def found(length):
            request = tokens_up_to(length) | {"sampling": {"max_tokens": 1, "temperature": 0}}
            return engine.one(request)["usage"]["cached_tokens"]
        assert [found(length) for length in (TRAINED, TRAINED + 1, 70, 96, 97, 165)] == [0, 0, 48, 64, 0, 96]


def test_tokens_equal_tiktoken(tmp_path):
    """Python's Unicode data composes marks that are newer than those in `tokenizers`, which valora follows; such texts are
    skipped."""
    older = normalizers.NFC()
    for family in (families.QWEN1, families.QWEN1_VL):
        folder = tmp_path / f"images-{family.has_images}"
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps({"visual": {}} if family.has_images else {}))
        family.save(None, folder)
        tokenizer = family.tokenizer()
        points = tokenizer_parity.all_code_points()
        texts = tokenizer_parity.corpus(3000, [*list(tokenizer.special)[:5], *families.Qwen1.tags]) + points[::7] + [f"a{c} b" for c in points[::7]]
        texts, count = [text for text in texts if older.normalize_str(text) == unicodedata.normalize("NFC", text)], len(texts)
        assert len(texts) > 0.99 * count
        for text, answer in zip(texts, tokenizer_parity.ask(folder, [{"text": text} for text in texts]), strict=True):
            ids = tokenizer.encode(text).ids
            assert answer["ids"] == ids, ascii(text)
            assert answer["decoded"] == answer["streamed"] == tokenizer.decode(ids), ascii(text)


def test_only_box_tags_in_questions_are_tokens(models, references):
    """Box tags are tokens; picture and turn tags are text, because the reference would look for a picture."""
    name, family = "qwen1-vl", families.QWEN1_VL
    with Engine(models[name]) as engine:
        request = request_of(models.memory[name], [{"role": "user", "content": "<ref>a dog</ref><box>(1,2),(3,4)</box> <|im_end|>"}])
        answer = engine.one(request)
        expect_same(references[name], request, answer)
        assert family.special_id("<box>") in answer["prompt_token_ids"]
        answer = engine.one(request_of(models.memory[name], [{"role": "user", "content": "<img>a.png</img>"}]))
        assert family.special_id("<img>") not in answer["prompt_token_ids"]
        with pytest.raises(EngineError, match="does not support videos"):
            engine.one(request_of(models.memory[name], [{"role": "user", "content": [clip(85, 3, 60, 40)]}]))


@pytest.mark.parametrize("name, settings, why", [
    ("qwen1-text", {"rotary_pct": 0.25}, "rotary_pct"), ("qwen1-text", {"kv_channels": 12}, "kv_channels"),
    ("qwen1-text", {"scale_attn_weights": False}, "scale_attn_weights"), ("qwen1-text", {"seq_length": None}, "seq_length"),
    ("qwen1-text", {"use_cache_quantization": True}, "use_cache_quantization"),
    ("qwen1-vl", {"visual": {"n_queries": 24}}, "n_queries"), ("qwen1-vl", {"visual": {"output_dim": 256}}, "output_dim"),
    ("qwen1-vl", {"visual": {"image_start_id": 7}}, "placeholder")], ids=str)
def test_unsupported_settings_are_refused(models, tmp_path, name, settings, why):
    if "visual" in settings:
        settings = {"visual": json.loads((models[name] / "config.json").read_text())["visual"] | settings["visual"]}
    done = generate(changed(models[name], tmp_path / "model", config=settings), "--prompt", "x", check=False)
    assert done.returncode == 1 and why in done.stderr, done.stderr


@on_cpus
def test_uneven_tensor_parallelism_is_refused(models):
    with pytest.raises(EngineError, match="the 3 attention heads of QWenLMHeadModel do not divide evenly"):
        Engine(models["qwen1-text"], tensor_parallel_size=2)


@on_cpus
@pytest.mark.parametrize("bits, merge", [(8, {}), (4, {"mode": "mixture"})])
def test_integer_weights_on_ranks(models, tmp_path, bits, merge):
    name = "qwen1-text"
    model = models.memory[name]
    reference = Reference(save_model(decoded_model(model, bits, ("c_attn", "c_proj", "w1", "w2")), tmp_path / "decoded"))
    adapter = save_adapter(model, tmp_path / "a", 331, **ADAPTERS["published"])
    reference.load_adapter("a", adapter)
    with Engine(models[name], quantization=f"int{bits}", tensor_parallel_size=3, **merge) as engine:
        engine.load("a", adapter)
        for uses in ([], ["a"]):
            request = request_of(model, TEXT, *uses)
            expect_same(reference, request, engine.one(request), tolerance=1e-3)


@on_cpus
@pytest.mark.parametrize("quantiser", [Gptq(4, 16), Gptq(4, 8, desc_act=True), CompressedTensors(8, -1), Fp8((16, 16))],
                         ids=["gptq", "gptq-order", "words", "fp8"])
def test_quantised_folders_on_ranks(models, tmp_path, quantiser):
    """GPTQ is the format of the published 4-bit folders. Merging in place makes each rank reread its base weights."""
    model = models.memory["qwen1-text"]
    folder, plain = (shutil.copytree(models["qwen1-text"], tmp_path / part) for part in ("quantised", "decoded"))
    quantised.with_decoded(plain, quantiser.quantise(folder))
    reference = Reference(plain)
    adapter = save_adapter(model, tmp_path / "a", 332, **ADAPTERS["published"])
    reference.load_adapter("a", adapter)
    floats = isinstance(quantiser, Fp8) or quantiser.__dict__.get("desc_act", False)
    with Engine(folder, mode="mixture", merge="inplace" if floats else "shadow", tensor_parallel_size=3) as engine:
        engine.load("a", adapter)
        requests = [request_of(model, TEXT, *uses) for uses in (["a"], ["a"], [], ["a"])]
        for request, answer in zip(requests, engine.batch(requests), strict=True):
            expect_same(reference, request, answer)
        expect_same(reference, requests[2], engine.one(requests[2]))


LINE, LONG = (base64.b64encode(text).decode() for text in (b"ab", b"none of these"))


@pytest.mark.parametrize("edit, why", [
    (lambda lines: lines[:-3] + lines[-2:], "without gaps"), (lambda lines: [*lines, lines[-1]], "twice"),
    (lambda lines: [*lines, f"{LINE} x"], "its rank"), (lambda lines: [*lines, "? 290"], "base64"),
    (lambda lines: [f"{LONG} 0", *lines[1:]], "has no token")])
def test_broken_vocabularies_are_refused(models, tmp_path, edit, why):
    folder = shutil.copytree(models["qwen1-text"], tmp_path / "model")
    lines = (folder / "qwen.tiktoken").read_text().split("\n")[:-1]
    (folder / "qwen.tiktoken").write_text("\n".join(edit(lines)))
    done = generate(folder, "--prompt", "x", check=False)
    assert done.returncode == 1 and why in done.stderr and "qwen.tiktoken" in done.stderr, done.stderr


def test_other_tag_names_are_refused(models, tmp_path):
    folder = changed(models["qwen1-vl"], tmp_path / "model", tokenizer_config={"image_start_tag": "<picture>"})
    done = generate(folder, "--prompt", "x", check=False)
    assert done.returncode == 1 and "image_start_tag" in done.stderr, done.stderr
