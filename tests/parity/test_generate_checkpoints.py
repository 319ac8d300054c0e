"""All layouts of a checkpoint must give the same answer; invalid ones are refused with the file and the
reason."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

import checkpoints
from pictures import clip, film, picture
from programs import DEVICE, Engine, EngineError, generate, token_ids
from reference import NO_MEDIA_TOKENS, Reference, expect_same, logprob_rows

PROMPT = [{"role": "user", "content": ["See", picture(110, 80, 60), "and", clip(111, 3, 60, 60), "what?"]}]
TEXT = [{"role": "user", "content": "What is in this picture?"}]


def read(folder, file="config.json"):
    return json.loads((folder / file).read_text())


def write(folder, content, file="config.json"):
    (folder / file).write_text(json.dumps(content))


def rename(folder, *pairs):
    """Renames tensors by replacing the first matching prefix of each name."""
    def renamed(key):
        old, new = next(((o, n) for o, n in pairs if key.startswith(o)), ("", ""))
        return new + key.removeprefix(old)
    tensors = load_file(folder / "model.safetensors")
    save_file({renamed(key): value for key, value in tensors.items()}, folder / "model.safetensors", {"format": "pt"})


# ---- forms of Qwen2-VL; transformers 4.57 writes a nested text_config and the older tensor names ----

def as_written(folder):
    assert "text_config" in read(folder) and "visual.patch_embed.proj.weight" in load_file(folder / "model.safetensors")


def hub(folder):
    """As in published checkpoints: text model fields at the top level, `type: mrope`, older vision fields."""
    config = read(folder)
    text, vision = config.pop("text_config"), config["vision_config"]
    for key in ("architectures", "layer_types", "model_type"):
        text.pop(key)
    vision["in_chans"] = vision.pop("in_channels")
    vision.pop("hidden_act")
    config = text | config | {"architectures": ["Qwen2VLForConditionalGeneration"], "torch_dtype": config.pop("dtype")}
    config["rope_scaling"] = {"type": "mrope", "mrope_section": text["rope_scaling"]["mrope_section"]}
    write(folder, config)


def transformers_5(folder):
    """As written by transformers 5: theta inside rope_parameters, and tensors named by modules."""
    config = read(folder)
    text = config["text_config"]
    text["rope_parameters"] = {"rope_type": "default", "rope_theta": text.pop("rope_theta"),
                               "mrope_section": text.pop("rope_scaling")["mrope_section"]}
    text.pop("architectures")
    write(folder, config | {"architectures": ["Qwen2VLForConditionalGeneration"], "transformers_version": "5.0.0"})
    rename(folder, ("model.", "model.language_model."), ("visual.", "model.visual."))


def new_names_alone(folder):
    rename(folder, ("model.", "model.language_model."), ("visual.", "model.visual."))


def stored_head(folder):
    """A tied model whose file also contains the output layer, bit for bit equal."""
    tensors = load_file(folder / "model.safetensors")
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def head_alone(folder):
    """A tied model whose file contains the output layer instead of the embedding."""
    rename(folder, ("model.embed_tokens.", "lm_head."))


def stale_index(folder):
    """The index of an earlier, sharded save whose shards are gone."""
    write(folder, {"metadata": {}, "weight_map": {"model.norm.weight": "model-00001-of-00002.safetensors"}}, "model.safetensors.index.json")


def older_shards(folder):
    """A sharded checkpoint with different values next to the whole file: transformers takes the
    whole file."""
    tensors = load_file(folder / "model.safetensors")
    save_file({key: value * 0.5 for key, value in tensors.items()}, folder / "model-00001-of-00001.safetensors", {"format": "pt"})
    write(folder, {"metadata": {}, "weight_map": dict.fromkeys(tensors, "model-00001-of-00001.safetensors")}, "model.safetensors.index.json")


def shards_that_overlap(folder):
    """A tensor in two shards, and one that the index does not list."""
    tensors = load_file(folder / "model.safetensors")
    names = sorted(tensors)
    parts = {"model-00001-of-00002.safetensors": names[:-3], "model-00002-of-00002.safetensors": [names[0], *names[-3:]]}
    for file, keys in parts.items():
        save_file({key: tensors[key] for key in keys}, folder / file, {"format": "pt"})
    write(folder, {"metadata": {}, "weight_map": {key: file for file, keys in parts.items() for key in keys if key != names[2]}
                   | {names[0]: "model-00001-of-00002.safetensors"}}, "model.safetensors.index.json")
    (folder / "model.safetensors").unlink()


def processor_of_transformers_5(folder):
    """A single processor_config.json, with settings that have no effect."""
    settings = read(folder, "preprocessor_config.json")
    (folder / "preprocessor_config.json").unlink()
    settings["size"] = {"shortest_edge": settings.pop("min_pixels"), "longest_edge": settings.pop("max_pixels")}
    video = settings | {"video_processor_type": "Qwen2VLVideoProcessor", "max_video_tokens": 128000, "min_frames": 4, "max_frames": 768,
                        "do_sample_frames": False, "return_metadata": False, "do_center_crop": True}
    video.pop("image_processor_type")
    write(folder, {"image_processor": settings, "video_processor": video, "processor_class": "Qwen2VLProcessor"}, "processor_config.json")


def second_spellings(folder):
    """Bounds under both names, those in `size` without effect; also a setting that the processor's class does not
    read."""
    settings = read(folder, "preprocessor_config.json")
    settings["size"] = {"min_pixels": 1, "max_pixels": 2}
    write(folder, settings | {"do_pad": True, "image_seq_length": 7}, "preprocessor_config.json")


def inverse_frequencies(folder):
    """Old files contain unused buffers."""
    tensors = load_file(folder / "model.safetensors")
    tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(4)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def expect_equal_rows(answer, gold):
    for token, expected in zip(answer["choices"][0]["tokens"], gold["choices"][0]["tokens"], strict=True):
        assert token["id"] == expected["id"]
    # Not bit-exact: a tensor's alignment in its file may change the order of a sum.
    torch.testing.assert_close(logprob_rows(answer), logprob_rows(gold), atol=1e-5, rtol=0)


def ask(engine, messages, vocab):
    sampling = {"max_tokens": 8, "ignore_eos": True, "temperature": 0, "logprobs": vocab, "logit_bias": NO_MEDIA_TOKENS}
    return engine.one({"messages": messages, "sampling": sampling})


@pytest.fixture(scope="module")
def gold(models, references):
    """The reference's answers, which all layouts must give."""
    answers = {}
    for name, messages in (("vl-grouped-tied", PROMPT), ("vl-small-patch", PROMPT), ("text-one-layer", TEXT)):
        size = models.memory[name].config.get_text_config().vocab_size
        with Engine(models[name]) as engine:
            answers[name] = ask(engine, messages, size)
        sampling = {"logit_bias": NO_MEDIA_TOKENS}
        expect_same(references[name], {"messages": messages, "sampling": sampling}, answers[name])
    return answers


def expect_gold(folder, name, models, gold, messages):
    with Engine(folder) as engine:
        expect_equal_rows(ask(engine, messages, models.memory[name].config.get_text_config().vocab_size), gold[name])


@pytest.mark.parametrize("name, form", [
    ("vl-grouped-tied", as_written), ("vl-grouped-tied", hub), ("vl-small-patch", hub), ("vl-grouped-tied", transformers_5),
    ("vl-small-patch", transformers_5), ("vl-small-patch", new_names_alone),
    ("vl-grouped-tied", stored_head), ("vl-grouped-tied", head_alone), ("vl-grouped-tied", inverse_frequencies),
    ("vl-small-patch", stale_index), ("vl-small-patch", older_shards), ("vl-small-patch", shards_that_overlap),
    ("vl-small-patch", processor_of_transformers_5), ("vl-small-patch", second_spellings)],
    ids=lambda v: v if isinstance(v, str) else v.__name__)
def test_every_layout_of_qwen2_vl_is_read(models, gold, tmp_path, name, form):
    folder = shutil.copytree(models[name], tmp_path / "model")
    form(folder)
    expect_gold(folder, name, models, gold, PROMPT)


@pytest.mark.parametrize("name, messages", [("vl-grouped-tied", PROMPT), ("text-one-layer", TEXT)])
def test_sharded_checkpoint_is_read(models, gold, tmp_path, name, messages):
    folder = checkpoints.save_model(models.memory[name], shutil.copytree(models[name], tmp_path / "model"), max_shard_size="40KB")
    (folder / "model.safetensors").unlink(missing_ok=True)
    assert len(list(folder.glob("model-0000*-of-*.safetensors"))) > 2
    expect_gold(folder, name, models, gold, messages)


def test_transformers_5_layout_of_qwen2_is_read(models, gold, tmp_path):
    name = "text-one-layer"
    folder = shutil.copytree(models[name], tmp_path / "model")
    config = read(folder)
    config["rope_parameters"] = {"rope_type": "default", "rope_theta": config.pop("rope_theta")}
    config.pop("rope_scaling", None)
    write(folder, config)
    expect_gold(folder, name, models, gold, TEXT)


def test_rope_theta_is_read(models, references, tmp_path):
    """Makes sure that reading a layout with default values would change the answer."""
    name = "text-one-layer"
    folder = shutil.copytree(models[name], tmp_path / "model")
    write(folder, read(folder) | {"rope_theta": 500.0, "rms_norm_eps": 1e-2})
    request = {"messages": TEXT, "sampling": {}}
    with Engine(folder) as engine:
        answer = ask(engine, TEXT, models.memory[name].config.vocab_size)
    expect_same(Reference(folder), request, answer)
    with pytest.raises(AssertionError):
        expect_same(references[name], request, answer)


# ---- refusals ----

def without(*keys):
    def change(folder):
        config = read(folder)
        for key in keys:
            config.pop(key)
        write(folder, config)
    return change


def with_config(**fields):
    return lambda folder: write(folder, read(folder) | fields)


def with_text_config(**fields):
    def change(folder):
        config = read(folder)
        write(folder, config | {"text_config": config["text_config"] | fields})
    return change


def with_tensor(name, change):
    def apply(folder):
        tensors = load_file(folder / "model.safetensors")
        tensors[name] = change(tensors[name])
        save_file({k: v for k, v in tensors.items() if v is not None}, folder / "model.safetensors", {"format": "pt"})
    return apply


def truncated(folder):
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[:-100])


def lost_shard(folder):
    tensors = load_file(folder / "model.safetensors")
    index = dict.fromkeys(tensors, "model-00001-of-00002.safetensors")
    save_file(tensors, folder / "model-00001-of-00002.safetensors")
    index["model.norm.weight"] = "model-00002-of-00002.safetensors"
    write(folder, {"metadata": {}, "weight_map": index}, "model.safetensors.index.json")
    (folder / "model.safetensors").unlink()


def shard_outside(folder):
    write(folder, {"weight_map": {"a": "../model.safetensors"}}, "model.safetensors.index.json")
    (folder / "model.safetensors").unlink()


def file_content(file, text):
    return lambda folder: (folder / file).write_text(text)


def no_file(file):
    return lambda folder: (folder / file).unlink()


REFUSALS = {
    "missing-tensor": ("text", with_tensor("model.layers.0.mlp.up_proj.weight", lambda t: None), ["no tensor", "up_proj"]),
    "missing-bias": ("text", with_tensor("model.layers.0.self_attn.k_proj.bias", lambda t: None), ["no tensor", "k_proj.bias"]),
    "missing-vision-tensor": ("vl", with_tensor("visual.merger.ln_q.weight", lambda t: None), ["no tensor", "merger.ln_q"]),
    "wrong-shape": ("text", with_tensor("model.norm.weight", lambda t: t[:-1].clone()), ["model.norm.weight", "[79]", "[80]"]),
    "transposed": ("text", with_tensor("lm_head.weight", lambda t: t.T.contiguous()), ["lm_head.weight", "shape"]),
    "integers": ("text", with_tensor("model.norm.weight", lambda t: t.to(torch.int32)), ["model.norm.weight", "I32"]),
    "unknown-architecture": ("text", with_config(architectures=["MambaForCausalLM"]), ["config.json", "MambaForCausalLM", "Qwen2ForCausalLM"]),
    "no-architecture": ("text", without("architectures", "model_type"), ["config.json", "architectures"]),
    "truncated": ("text", truncated, ["model.safetensors"]),
    "lost-shard": ("text", lost_shard, ["model-00002-of-00002.safetensors"]),
    "shard-outside": ("text", shard_outside, ["index.json", "plain file name"]),
    "windows-of-a-llama": ("text", with_config(architectures=["LlamaForCausalLM"], use_sliding_window=True, sliding_window=32, layer_types=None),
                           ["config.json", "sliding_window 32"]),
    "sliding-layers": ("text", with_config(layer_types=["sliding_attention"]), ["config.json", "sliding_attention"]),
    "unknown-rope": ("text", with_config(rope_scaling={"type": "su", "factor": 4.0}), ["config.json", "su"]),
    "unknown-rope-in-5": ("text", with_config(rope_scaling=None, rope_parameters={"rope_type": "proportional", "rope_theta": 1e4}),
                          ["proportional"]),
    "lfs-pointer": ("text", file_content("model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 1\n"),
                    ["model.safetensors is a Git LFS pointer, not the file: run git lfs pull"]),
    "quantised": ("text", with_config(quantization_config={"quant_method": "gptq"}), ["config.json", "quantization_config"]),
    "quantised-vl": ("vl", with_config(quantization_config={"quant_method": "awq", "version": "gemv"}), ["config.json", "quantization_config", "gemv"]),
    "activation": ("text", with_config(hidden_act="gelu"), ["config.json", "hidden_act", "gelu"]),
    "no-hidden-size": ("text", without("hidden_size"), ["config.json", "hidden_size"]),
    "huge": ("text", with_config(vocab_size=10**15), ["config.json", "vocab_size"]),
    "negative": ("text", with_config(num_hidden_layers=-1), ["config.json", "num_hidden_layers"]),
    "uneven-heads": ("text", with_config(num_key_value_heads=3), ["config.json", "num_key_value_heads"]),
    "no-sections": ("vl", with_text_config(rope_scaling={"type": "mrope"}), ["config.json", "mrope_section"]),
    "wrong-sections": ("vl", with_text_config(rope_scaling={"type": "mrope", "mrope_section": [1, 1, 1]}), ["mrope_section"]),
    "vision-width": ("vl", with_config(vision_config={"hidden_size": 12}), ["config.json", "hidden_size"]),
    "broken-json": ("text", file_content("config.json", "{"), ["config.json"]),
    "no-config": ("text", no_file("config.json"), ["config.json"]),
    "no-tokenizer": ("text", no_file("tokenizer.json"), ["tokenizer.json"]),
    "no-preprocessor": ("vl", no_file("preprocessor_config.json"), ["preprocessor_config.json"]),
    "no-weights": ("text", no_file("model.safetensors"), ["model.safetensors"]),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_unsupported_checkpoint_is_refused(models, tmp_path, case):
    kind, change, words = REFUSALS[case]
    folder = shutil.copytree(models["text-one-layer" if kind == "text" else "vl-grouped-tied"], tmp_path / "model")
    change(folder)
    done = generate(folder, "--prompt", "x", check=False)
    assert done.returncode == 1 and done.stdout == ""
    assert str(folder) in done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


def test_token_without_an_embedding_is_refused_in_prompts(models, references, tmp_path):
    """Fine-tunes of Llama 2 add [PAD] without resizing the embedding: they are served, but a prompt that contains the token is
    refused by name."""
    name = "text-one-layer"
    folder = shutil.copytree(models[name], tmp_path / "model")
    size = models.memory[name].config.vocab_size
    tokenizer = read(folder, "tokenizer.json")
    first = max(token["id"] for token in tokenizer["added_tokens"]) + 1
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    for i in range(first, size + 3):
        tokenizer["added_tokens"].append({"id": i, "content": f"[{i}]", "special": True} | flags)
    write(folder, tokenizer, "tokenizer.json")
    request = {"messages": TEXT, "sampling": {}}
    with Engine(folder) as engine:
        expect_same(references[name], request, ask(engine, TEXT, size))
        engine.one({"prompt": f"a [{size - 1}] b", "sampling": {"max_tokens": 1}})
        for prompt in ({"prompt": f"a [{size}] b"}, {"tokens": [1, size]}, {"messages": [{"role": "user", "content": f"[{size}]"}]}):
            with pytest.raises(EngineError, match=rf"token id {size} \(\[{size}\]\) is out of vocabulary"):
                engine.one(prompt | {"sampling": {"max_tokens": 1}})
        unreachable = {"max_tokens": 4, "stop_token_ids": [size], "bad_words": [f"[{size}]"], "temperature": 0, "ignore_eos": True}
        assert len(token_ids(engine.one({"prompt": "a", "sampling": unreachable}))) == 4


@pytest.mark.parametrize("name, top", [("vl-grouped-tied", True), ("text-grouped-tied", False)])
def test_tied_head_that_differs_is_kept_and_reported(models, tmp_path, name, top):
    """transformers 5.18 and later keep the stored head, as 4.57 does if nothing is tied."""
    folder = shutil.copytree(models[name], tmp_path / "model")
    tensors = load_file(folder / "model.safetensors")
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].flip(1).contiguous()
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    messages = PROMPT if top else TEXT
    with Engine(folder) as engine:
        answer = ask(engine, messages, models.memory[name].config.get_text_config().vocab_size)
    said = generate(folder, "--prompt", "x", "--max-tokens", 1, check=False)
    assert said.returncode == 0 and "lm_head.weight differs from the embedding" in said.stderr
    config = read(folder)
    for part in (config, config.get("text_config", {})):
        if "tie_word_embeddings" in part or part is config:
            part["tie_word_embeddings"] = False
    write(folder, config)
    expect_same(Reference(folder), {"messages": messages, "sampling": {"logit_bias": NO_MEDIA_TOKENS}}, answer)


@pytest.mark.parametrize("shards, warned", [(older_shards, True), (stale_index, False)])
def test_index_next_to_a_single_file_is_reported_if_its_shards_exist(models, tmp_path, shards, warned):
    folder = shutil.copytree(models["text-one-layer"], tmp_path / "model")
    shards(folder)
    done = generate(folder, "--prompt", "x", "--max-tokens", 1, check=False)
    assert done.returncode == 0 and ("model.safetensors is read" in done.stderr) == warned, done.stderr


def test_generation_settings_that_are_not_applied_are_named(models, tmp_path):
    folder = shutil.copytree(models["text-one-layer"], tmp_path / "model")
    settings = read(folder, "generation_config.json")
    write(folder, settings | {"no_repeat_ngram_size": 3, "num_beams": 2, "length_penalty": 1.0}, "generation_config.json")
    done = generate(folder, "--prompt", "x", "--max-tokens", 1, check=False)
    assert done.returncode == 0 and "num_beams 2, no_repeat_ngram_size 3" in done.stderr


@pytest.mark.parametrize("arguments, word", [
    (["--max-model-len", 10**6], "max-model-len"),
    (["--pool-memory", 10], "pool-memory"), (["--device", "tpu"], "tpu"), (["--mode", "dissolved"], "dissolved"),
    (["--image", "/none.png"], "image"), (["--raw", "--system", "x"], "--raw")])
def test_invalid_options_are_refused(models, arguments, word):
    done = generate(models["text-one-layer"], "--prompt", "x", *arguments, check=False)
    assert done.returncode != 0 and word in done.stderr, done.stderr


@pytest.mark.parametrize("dtype", ["int8"] if DEVICE == "cuda" else ["int8", "float16"])
def test_unsupported_dtype_is_refused(models, dtype):
    done = generate(models["text-one-layer"], "--prompt", "x", dtype=dtype, check=False)
    assert done.returncode == 1 and dtype in done.stderr


def test_unused_tensors_are_named_on_stderr(models, tmp_path):
    folder = shutil.copytree(models["vl-grouped-tied"], tmp_path / "model")
    inverse_frequencies(folder)
    done = generate(folder, "--prompt", "x", "--max-tokens", 1, check=False)
    assert done.returncode == 0 and "rotary_emb.inv_freq" in done.stderr
    assert json.loads(done.stdout)["finish_reason"] == "length"


def test_missing_folder_is_named(tmp_path):
    done = generate(tmp_path / "nowhere", "--prompt", "x", check=False)
    assert done.returncode == 1 and f"{tmp_path}/nowhere" in done.stderr


LLAVA_NAMES = {
    "4": [],
    "modules": [("language_model.model.", "model.language_model."), ("language_model.lm_head", "lm_head"),
                ("vision_tower.", "model.vision_tower."), ("multi_modal_projector.", "model.multi_modal_projector.")],
    "5": [("vision_tower.vision_model.", "vision_tower.")],
    "modules-of-5": [("language_model.model.", "model.language_model."), ("language_model.lm_head", "lm_head"),
                     ("vision_tower.vision_model.", "model.vision_tower."), ("multi_modal_projector.", "model.multi_modal_projector.")],
}


@pytest.mark.parametrize("names", LLAVA_NAMES)
def test_every_layout_of_llava_is_read(models, references, tmp_path, names):
    """Tensor names as written by transformers 4 and 5, as in hub checkpoints, and as module names."""
    name = "llava-default"
    folder = shutil.copytree(models[name], tmp_path / "model")
    assert "language_model.model.norm.weight" in load_file(folder / "model.safetensors")
    rename(folder, *LLAVA_NAMES[names])
    if names.startswith("modules"):
        config = read(folder)
        config["image_token_id"] = config.pop("image_token_index")
        write(folder, config)
    sampling = {"max_tokens": 8, "ignore_eos": True, "temperature": 0, "logit_bias": checkpoints.family(name).no_media_tokens(),
                "logprobs": models.memory[name].config.text_config.vocab_size}
    request = {"messages": [{"role": "user", "content": [picture(112, 50, 70), "what?"]}], "sampling": sampling}
    with Engine(folder) as engine:
        expect_same(references[name], request, engine.one(request))


def test_processor_settings_in_one_file_are_read(models, references, tmp_path):
    """As written by transformers 5; also end tokens that LLaVA's files may leave to the class default."""
    name = "llava-default"
    folder = shutil.copytree(models[name], tmp_path / "model")
    write(folder, {"image_processor": read(folder, "preprocessor_config.json"), "processor_class": "LlavaProcessor"},
          "processor_config.json")
    (folder / "preprocessor_config.json").unlink()
    (folder / "generation_config.json").unlink()
    request = {"messages": [{"role": "user", "content": [picture(112, 50, 70), "what?"]}],
               "sampling": {"max_tokens": 8, "temperature": 0, "logit_bias": [[2, 100]]}}  # 2 is LlamaConfig's end token
    with Engine(folder) as engine:
        answer = engine.one(request)
    assert answer["prompt_token_ids"] == references[name].prompt(request).ids
    assert answer["choices"][0]["finish_reason"] == "stop"


def test_published_layout_of_smolvlm_is_read(models, tmp_path):
    """Settings of the authors' own code, which transformers ignores; a picture that is not split; videos, and tokens that the
    tower does not produce, are refused by name."""
    name = "smolvlm-tied"
    folder = shutil.copytree(models[name], tmp_path / "model")
    config = read(folder)
    config["text_config"] |= {"architectures": ["VLlama3ForCausalLM"], "pixel_shuffle_factor": 4, "use_resampler": False}
    config["vision_config"] |= {"model_type": "idefics3", "use_base_siglip": True, "max_image_size": {"longest_edge": 99}}
    write(folder, config)
    write(folder, read(folder, "preprocessor_config.json") | {"do_image_splitting": False}, "preprocessor_config.json")
    write(folder, {"image_seq_len": 4, "processor_class": "SmolVLMProcessor"}, "processor_config.json")
    request = {"messages": [{"role": "user", "content": ["See", picture(112, 50, 70), "what?", picture(113)]}],
               "sampling": {"max_tokens": 8, "ignore_eos": True, "temperature": 0, "logit_bias": checkpoints.family(name).no_media_tokens(),
                            "logprobs": models.memory[name].config.text_config.vocab_size}}
    with Engine(folder) as engine:
        expect_same(Reference(folder), request, engine.one(request))
        messages = [{"role": "user", "content": [film(114, 6, 3)]}]
        with pytest.raises(EngineError, match="does not say how videos are sampled"):
            engine.one({**request, "messages": messages})
    write(folder, {"image_seq_len": 64}, "processor_config.json")
    done = generate(folder, "--prompt", "x", check=False)
    assert done.returncode == 1 and "image_seq_len" in done.stderr and "4 tokens" in done.stderr


def test_placeholder_unknown_to_the_tokenizer_is_refused(models, tmp_path):
    folder = shutil.copytree(models["llava-default"], tmp_path / "model")
    config = read(folder)
    config["image_token_index"] += 1
    write(folder, config)
    done = generate(folder, "--prompt", "x", check=False)
    assert done.returncode == 1 and "<image>" in done.stderr and "tokenizer.json" in done.stderr


def test_processor_of_another_model_is_refused(models, tmp_path):
    """A mismatch between preprocessor_config.json and config.json is reported at startup."""
    for name, key in [("vl-grouped-tied", "patch_size"), ("llava-default", "crop_size")]:
        folder = shutil.copytree(models[name], tmp_path / name)
        config = read(folder, "preprocessor_config.json")
        config[key] = 16 if key == "patch_size" else {"height": 30, "width": 30}
        write(folder, config, "preprocessor_config.json")
        done = generate(folder, "--prompt", "x", check=False)
        assert done.returncode == 1 and key in done.stderr and "the vision tower takes" in done.stderr
