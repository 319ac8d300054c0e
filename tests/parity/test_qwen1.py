"""Qwen and Qwen-VL beyond the checkpoints of all families: adapters in every mode, training, memory that is too small, prompts
beyond the length of training, the tokenizer, and folders that are refused. test_qwen1_reference.py is about the reference.
"""

import base64
import json
import shutil
import unicodedata

import pytest
from tokenizers import normalizers

import families
import tokenizer_parity
from checkpoints import qwen1, randomise, save_adapter, save_model
from pictures import clip, picture
from programs import Engine, EngineError, generate
from reference import Reference, expect_same
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
# Each alone in PEFT, which takes no two of them in one model.
KINDS = {"saved": dict(targets=["c_attn", "w1"], modules_to_save=["wte", "lm_head"]), "dora": dict(targets=["c_attn", "c_proj"], use_dora=True),
         "rows": dict(targets=["c_attn"], trainable_token_indices=[3, 70, 90]), "biased": dict(targets=["c_attn"], lora_bias=True)}
UNREAD = "transformer.visual.attn_pool.attn.out_proj has no effect"
VL = ["qwen1-vl", "qwen1-vl-square"]


class Adapted:
    def __init__(self, name, models, root):
        self.name, self.models, self.reference = name, models, Reference(models[name])
        names = ADAPTERS if self.reference.family.has_images else [name for name in ADAPTERS if name != "tower"]
        self.folders = {adapter: save_adapter(models.memory[name], root / adapter, 300 + seed, **ADAPTERS[adapter])
                        for seed, adapter in enumerate(names)}
        for adapter, folder in self.folders.items():
            self.reference.load_adapter(adapter, folder)

    def expect(self, mode):
        chats = [TEXT, ONE, SEVERAL] if self.reference.family.has_images else [TEXT]
        with Engine(self.models[self.name], mode=mode) as engine:
            for adapter, folder in self.folders.items():
                warnings = engine.load(adapter, folder)["warnings"]
                assert all(UNREAD in warning for warning in warnings), warnings
                assert len(warnings) == (adapter == "all" and self.reference.family.has_images)
            requests = [request_of(self.models.memory[self.name], chat, *uses) for chat in chats for uses in [[], *([a] for a in self.folders)]]
            for request, answer in zip(requests, engine.batch(requests)):
                expect_same(self.reference, request, answer)
            first = engine.one(requests[-1])
            expect_same(self.reference, requests[-1], first)


@pytest.fixture(scope="module", params=[*VL, "qwen1-text"])
def adapted(request, models, tmp_path_factory):
    return Adapted(request.param, models, tmp_path_factory.mktemp("adapted"))


@pytest.mark.parametrize("mode", ["unmerged", "merged", "mixture"])
def test_adapters_on_every_linear(adapted, mode):
    adapted.expect(mode)


@pytest.mark.parametrize("kind", KINDS)
def test_other_kinds_of_adapters(models, tmp_path, kind):
    name = "qwen1-text"
    adapter, reference = save_adapter(models.memory[name], tmp_path / "adapter", 21, rank=4, **KINDS[kind]), Reference(models[name])
    reference.load_adapter(kind, adapter)
    for mode in ("unmerged", "merged"):
        with Engine(models[name], mode=mode) as engine:
            assert engine.load(kind, adapter)["warnings"] == []
            request = request_of(models.memory[name], TEXT, kind)
            expect_same(reference, request, engine.one(request))


@pytest.mark.parametrize("part", ["decoder", "all"])
def test_a_training_step(models, tmp_path, part):
    """The reference of training has neither another theta nor scaled queries, whatever the length."""
    name = "qwen1-vl"
    everything = rf"({DECODER}(c_attn|c_proj|w1|w2)|{TOWER}|.*kv_proj)"
    targets, parts = (everything, ["decoder", "projector", "vision"]) if part == "all" else (DECODER + r"(c_attn|c_proj|w1|w2)", ["decoder"])
    init = save_adapter(models.memory[name], tmp_path / "init", 13, rank=4, targets=targets)
    reference = Reference(models[name])
    made = samples(reference)
    answer = train(training_of(models[name], init, tmp_path / "out", made, targets=parts))
    compare(reference, init, made, answer, tmp_path / "out", {})


@pytest.mark.parametrize("name", VL)
def test_chunks_preemptions_and_cached_prefixes(models, references, name):
    expect_memory_changes_nothing(models.memory[name], models[name], references[name], [ONE, SEVERAL], chunk=64)


TRAINED = 48  # the length of training
LENGTHS = [20, 36, TRAINED, TRAINED + 1, 70, 2 * TRAINED, 2 * TRAINED + 1, 165, 4 * TRAINED + 1]


def longer(tmp_path, **more):
    """A model of short training, served up to 400 tokens."""
    config = qwen1(families.QWEN1, 48, 3, 3, 74, seq_length=TRAINED, max_position_embeddings=400, **more)
    return save_model(randomise(families.QWEN1.kind(config), 9), tmp_path / "model")


@pytest.mark.parametrize("more", [{}, {"use_logn_attn": False}, {"use_dynamic_ntk": False}], ids=["both", "ntk", "logn"])
def test_prompts_beyond_the_length_of_training(tmp_path, more):
    """One after the other with prefixes in common, in chunks, together, and with answers that cross the length."""
    folder = longer(tmp_path, **more)
    reference = Reference(folder)
    sampling = {"max_tokens": 24, "ignore_eos": True, "temperature": 0, "logprobs": reference.base.config.vocab_size}
    requests = [tokens_up_to(length) | {"sampling": sampling} for length in LENGTHS]
    for options in [{}, {"max_num_batched_tokens": 11}, {"prefix_caching": False}]:
        with Engine(folder, **options) as engine:
            for request in requests:
                expect_same(reference, request, engine.one(request))
            for request, answer in zip(requests, engine.batch(requests)):
                expect_same(reference, request, answer)


def test_what_long_prompts_share(tmp_path):
    """Blocks of prompts with the same theta, and of no others."""
    with Engine(longer(tmp_path)) as engine:
        def found(length):
            request = tokens_up_to(length) | {"sampling": {"max_tokens": 1, "temperature": 0}}
            return engine.one(request)["usage"]["cached_tokens"]
        assert [found(length) for length in (TRAINED, TRAINED + 1, 70, 96, 97, 165)] == [0, 0, 48, 64, 0, 96]


def test_tokens_are_tiktokens(tmp_path):
    """Python's Unicode composes marks that are newer than that of `tokenizers`, which valora has: such texts are left out."""
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


def test_tags_in_questions(models, references):
    """Those of boxes are tokens; those of pictures and turns are text, as the reference would look for a picture."""
    name, family = "qwen1-vl", families.QWEN1_VL
    with Engine(models[name]) as engine:
        request = request_of(models.memory[name], [{"role": "user", "content": "<ref>a dog</ref><box>(1,2),(3,4)</box> <|im_end|>"}])
        answer = engine.one(request)
        expect_same(references[name], request, answer)
        assert family.special_id("<box>") in answer["prompt_token_ids"]
        answer = engine.one(request_of(models.memory[name], [{"role": "user", "content": "<img>a.png</img>"}]))
        assert family.special_id("<img>") not in answer["prompt_token_ids"]
        with pytest.raises(EngineError, match="takes no videos"):
            engine.one(request_of(models.memory[name], [{"role": "user", "content": [clip(85, 3, 60, 40)]}]))


@pytest.mark.parametrize("name, settings, why", [
    ("qwen1-text", {"rotary_pct": 0.25}, "rotary_pct"), ("qwen1-text", {"kv_channels": 12}, "kv_channels"),
    ("qwen1-text", {"scale_attn_weights": False}, "scale_attn_weights"), ("qwen1-text", {"seq_length": None}, "seq_length"),
    ("qwen1-text", {"use_cache_quantization": True}, "use_cache_quantization"),
    ("qwen1-vl", {"visual": {"n_queries": 24}}, "n_queries"), ("qwen1-vl", {"visual": {"output_dim": 256}}, "output_dim"),
    ("qwen1-vl", {"visual": {"image_start_id": 7}}, "placeholder")], ids=str)
def test_settings_that_are_not_served(models, tmp_path, name, settings, why):
    if "visual" in settings:
        settings = {"visual": json.loads((models[name] / "config.json").read_text())["visual"] | settings["visual"]}
    done = generate(changed(models[name], tmp_path / "model", config=settings), "--prompt", "x", check=False)
    assert done.returncode == 1 and why in done.stderr, done.stderr


def test_ranks_are_refused(models):
    with pytest.raises(EngineError, match="lie side by side in one linear"):
        Engine(models["qwen1-text"], tensor_parallel_size=3)


LINE, LONG = (base64.b64encode(text).decode() for text in (b"ab", b"none of these"))


@pytest.mark.parametrize("edit, why", [
    (lambda lines: lines[:-3] + lines[-2:], "without gaps"), (lambda lines: [*lines, lines[-1]], "twice"),
    (lambda lines: [*lines, f"{LINE} x"], "its rank"), (lambda lines: [*lines, "? 290"], "base64"),
    (lambda lines: [f"{LONG} 0", *lines[1:]], "has no token")])
def test_vocabularies_that_are_broken(models, tmp_path, edit, why):
    folder = shutil.copytree(models["qwen1-text"], tmp_path / "model")
    lines = (folder / "qwen.tiktoken").read_text().split("\n")[:-1]
    (folder / "qwen.tiktoken").write_text("\n".join(edit(lines)))
    done = generate(folder, "--prompt", "x", check=False)
    assert done.returncode == 1 and why in done.stderr and "qwen.tiktoken" in done.stderr, done.stderr


def test_other_names_of_tags_are_refused(models, tmp_path):
    folder = changed(models["qwen1-vl"], tmp_path / "model", tokenizer_config={"image_start_tag": "<picture>"})
    done = generate(folder, "--prompt", "x", check=False)
    assert done.returncode == 1 and "image_start_tag" in done.stderr, done.stderr
