"""LLaVA-NeXT and LLaVA-OneVision beyond the checkpoints of all families: other decoders, towers and layers; pictures of extreme
shapes; tensor names; insufficient memory; and folder settings."""

import json
import shutil

import pytest
import transformers
from safetensors.torch import load_file, save_file

import families
from checkpoints import decoder, llava_next, llava_onevision, randomise, save_adapter, save_model
from pictures import clip, film, picture
from programs import Engine, EngineError, generate
from reference import Reference, expect_same
from test_generate_batching import expect_answers, kv_bytes

ONE = [{"role": "user", "content": ["See ", picture(80, 131, 43), "what is it?"]}]
SEVERAL = [{"role": "user", "content": [picture(81, 33, 120), "and", picture(82, 90, 91), "or", picture(80, 131, 43), "what changed?"]}]
TALL = [{"role": "user", "content": [picture(83, 9, 500), "a line"]}]
WIDE = [{"role": "user", "content": [picture(84, 700, 28), "a line"]}]  # 4.57 would take 3 rows for the channels
TEXT = [{"role": "user", "content": "Is it red?"}]
VIDEO = [{"role": "user", "content": ["See", clip(85, 3, 60, 40), "and", picture(86, 60, 40), "why?"]}]
GRIDS = [(1, 2), (2, 1), (2, 2), (4, 1), (1, 3)]


def next_text(kind, *sizes, **more):
    return getattr(transformers, f"{kind}Config")(**decoder(families.LLAVA_NEXT[kind.lower()], *sizes) | more)


# Two states side by side, and a tile with an odd number of patches; a tower without a class token; a decoder with
# windows.
VARIANTS = {
    "vicuna-states": lambda: llava_next(
        next_text("Llama", 48, 6, 2, 2, 37, False), dict(hidden_size=24, intermediate_size=33, image_size=26, patch_size=8), *GRIDS,
        vision_feature_layer=[-2, 1], multimodal_projector_bias=False, projector_hidden_act="gelu_pytorch_tanh"),
    "siglip-qwen2": lambda: llava_next(
        next_text("Qwen2", 40, 4, 2, 2, 53, False, use_sliding_window=False),
        dict(model_type="siglip_vision_model", hidden_size=32, intermediate_size=45, image_size=28, patch_size=7), *GRIDS,
        vision_feature_layer=-2, vision_feature_select_strategy="full"),
    "mistral-windows": lambda: llava_next(
        next_text("Mistral", 48, 6, 2, 2, 37, False, head_dim=16, sliding_window=24),
        dict(hidden_size=32, intermediate_size=45, image_size=28, patch_size=14), *GRIDS),
    "onevision-odd": lambda: llava_onevision(
        (40, 4, 4, 2, 53, False), dict(hidden_size=24, intermediate_size=33, image_size=26, patch_size=8, hidden_act="gelu"),
        *GRIDS, (4, 4), vision_feature_layer=[-1, 0], vision_aspect_ratio="anyres_max_2"),
}


def request_of(model, messages, *adapters, tokens=8):
    return {"messages": messages, "adapters": [{"name": name} for name in adapters], "sampling": {
        "max_tokens": tokens, "ignore_eos": True, "temperature": 0, "logprobs": model.config.get_text_config().vocab_size,
        "logit_bias": families.family_of(model.config).no_media_tokens()}}


@pytest.mark.parametrize("name", VARIANTS)
def test_other_decoders_towers_and_layers_equal_reference(name, tmp_path):
    """With an adapter on every linear, along with the base model, and merged."""
    model = randomise(families.family_of(config := VARIANTS[name]()).kind(config), len(name))
    folder = save_model(model, tmp_path / "model")
    adapter = save_adapter(model, tmp_path / "adapter", 78, rank=4, targets="all-linear", exclude_modules=["lm_head"])
    reference = Reference(folder)
    reference.load_adapter("a", adapter)
    with Engine(folder, mode="mixture") as engine:
        assert engine.load("a", adapter)["warnings"] == []
        for messages in (TEXT, ONE, SEVERAL, TALL, WIDE, *([VIDEO] if reference.family.has_video else [])):
            requests = [request_of(model, messages), request_of(model, messages, "a")]
            for request, answer in zip(requests, engine.batch(requests)):
                expect_same(reference, request, answer)


MODULES = {"language_model.model.": "model.language_model.", "language_model.lm_head": "lm_head", "image_newline": "model.image_newline",
           "multi_modal_projector.": "model.multi_modal_projector."}
NAMES = {"4.57": {"vision_tower.vision_model.": "vision_tower.vision_model.", "vision_tower.": "vision_tower.vision_model."},
         "5": {"vision_tower.vision_model.": "vision_tower."},
         "modules of 4.57": MODULES | {"vision_tower.vision_model.": "model.vision_tower.vision_model.",
                                       "vision_tower.": "model.vision_tower.vision_model."},
         "modules of 5": MODULES | {"vision_tower.vision_model.": "model.vision_tower.", "vision_tower.": "model.vision_tower."}}


@pytest.mark.parametrize("names", NAMES)
def test_names_of_all_releases_are_understood(models, references, tmp_path, names):
    name = "onevision-tied"
    folder = shutil.copytree(models[name], tmp_path / "model")
    tensors = {}
    for key, tensor in load_file(folder / "model.safetensors").items():
        old = next((part for part in NAMES[names] if key.startswith(part)), "")
        tensors[NAMES[names].get(old, "") + key.removeprefix(old)] = tensor
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    with Engine(folder) as engine:
        request = request_of(models.memory[name], ONE)
        expect_same(references[name], request, engine.one(request))


def expect_memory_changes_nothing(model, folder, reference, chats, chunk):
    """Prompts in chunks, memory for about three of them, and a cached prefix with a picture must not change the answers."""
    # Short prompts get long answers: they grow most after admission, which causes preemptions.
    requests = [request_of(model, [{"role": "user", "content": f"Request {i}."}, {"role": "assistant", "content": "Yes"}, *messages],
                           tokens=120 if messages is TEXT else 20) for i, messages in enumerate([*chats, TEXT, TEXT] * 4)]
    with Engine(folder, prefix_caching=False) as engine:
        alone = [engine.one(request) for request in requests]
    expect_same(reference, requests[1], alone[1])
    with Engine(folder, pool_memory=kv_bytes(model, 36), max_num_batched_tokens=chunk) as engine:
        expect_answers(alone, engine.batch(requests))
        assert engine.stats()["preemptions"] > 0
        again = engine.one(requests[0])
        expect_answers(alone[:1], [again])
        more = requests[0] | {"messages": [*requests[0]["messages"], {"role": "assistant", "content": "A dog"}, *TEXT]}
        answer = engine.one(more)
        assert answer["usage"]["cached_tokens"] > 16
        expect_same(reference, more, answer)


@pytest.mark.parametrize("name", ["next-mistral", "onevision-tied"])
def test_chunks_preemptions_and_cached_prefixes_change_no_answer(models, references, name):
    expect_memory_changes_nothing(models.memory[name], models[name], references[name], [ONE, SEVERAL], chunk=64)


def test_single_picture_and_one_of_several_share_nothing(models, references):
    """LLaVA-OneVision cuts a picture into tiles only if it is the only one: neither its embeddings nor its keys may be reused
    for the other case."""
    name, part = "onevision-tied", picture(87, 110, 60)
    alone, among = ([{"role": "user", "content": content}] for content in ([part, "?"], [part, "?", picture(88, 40, 40)]))
    with Engine(models[name]) as engine:
        lengths = []
        for messages in (alone, among, alone, among, [*alone, {"role": "assistant", "content": "No"}, *VIDEO]):
            request = request_of(models.memory[name], messages)
            answer = engine.one(request)
            expect_same(references[name], request, answer)
            lengths.append(len(answer["prompt_token_ids"]))
        assert lengths[0] == lengths[2] != lengths[1] == lengths[3]


def changed(folder, out, **files):
    """A copy whose files also have these keys; creates missing files."""
    shutil.copytree(folder, out)
    for file, settings in files.items():
        path = out / f"{file}.json"
        path.write_text(json.dumps((json.loads(path.read_text()) if path.exists() else {}) | settings))
    return out


def test_frames_of_a_video_file_follow_folder_and_request(models, references, tmp_path):
    """All frames are taken, unless the folder or the request gives a number."""
    name = "onevision-tied"
    images = references[name].processor.image_processor
    settings = {"size": dict(images.size), "image_mean": images.image_mean, "image_std": images.image_std, "do_sample_frames": True,
                "num_frames": 4, "video_processor_type": "LlavaOnevisionVideoProcessor"}
    folder = shutil.copytree(models[name], tmp_path / "model")
    if (folder / "preprocessor_config.json").exists():
        (folder / "video_preprocessor_config.json").write_text(json.dumps(settings))
    else:
        one = json.loads((folder / "processor_config.json").read_text())
        (folder / "processor_config.json").write_text(json.dumps(one | {"video_processor": settings}))
    token, counts = families.LLAVA_ONEVISION.special_id("<video>"), []
    for which in (models[name], folder):
        with Engine(which) as engine:
            answer = engine.one({"messages": [{"role": "user", "content": [film(89, 9, 4.5, 47, 61)]}], "sampling": {"max_tokens": 1}})
            counts.append(answer["prompt_token_ids"].count(token))
    assert counts == [9 * 4 + 1, 4 * 4 + 1]


@pytest.mark.parametrize("name, files, why", [
    ("next-mistral", {"config": {"vision_feature_select_strategy": "full"}}, "vision_feature_select_strategy"),
    ("next-mistral", {"config": {"image_grid_pinpoints": [[28, 60]]}}, "image_grid_pinpoints"),
    ("next-mistral", {"config": {"image_grid_pinpoints": [[28, 56]]}}, "not that of config.json"),
    ("next-mistral", {"processor_config": {"num_additional_image_tokens": 1}}, "num_additional_image_tokens"),
    ("onevision-tied", {"config": {"vision_aspect_ratio": "pad"}}, "vision_aspect_ratio"),
    ("onevision-tied", {"config": {"vision_aspect_ratio": "anyres_max_3"}, "processor_config": {"vision_aspect_ratio": "anyres_max_2"}},
     "vision_aspect_ratio"),
    ("onevision-tied", {"processor_config": {"num_image_tokens": 729}}, "num_image_tokens")], ids=lambda value: str(value)[:40])
def test_unsupported_settings_are_refused(models, tmp_path, name, files, why):
    if "processor_config" in files and why.startswith("num_add") and (models[name] / "preprocessor_config.json").exists() is False:
        files = {"processor_config": {"num_additional_image_tokens": 2}}
    done = generate(changed(models[name], tmp_path / "model", **files), "--prompt", "x", check=False)
    assert done.returncode == 1 and why in done.stderr, done.stderr


def test_unsupported_request_media_are_refused(models):
    with Engine(models["next-mistral"]) as engine, pytest.raises(EngineError, match="does not support videos"):
        engine.one(request_of(models.memory["next-mistral"], VIDEO))
