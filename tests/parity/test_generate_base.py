"""The base models against transformers in fp32, with text, images and videos; also the answers of the
command line."""

import json
import shutil

import pytest
import torch

import checkpoints
import pictures
from pictures import clip, film, picture
from programs import Engine, EngineError, generate, token_ids
from reference import Prompt, expect_same
from releases import NEWEST
from wide import pairs, sample

TEXT = {
    "one-turn": [{"role": "user", "content": "What is in this picture?"}],
    "system": [{"role": "system", "content": "Answer in one word."}, {"role": "user", "content": "Red or blue?"}],
    "multi-turn": [{"role": "user", "content": "Hello, who are you?"}, {"role": "assistant", "content": "A model. 😀"},
                   {"role": "user", "content": "这张图片里有什么?"}, {"role": "assistant", "content": "1984"},
                   {"role": "user", "content": "Why?\n\n  Because:"}],
    "long": [{"role": "user", "content": "the image shows a red circle left of two small squares " * 12}],
}
VISUAL = {
    "image": [{"role": "user", "content": [picture(1), "What is this?"]}],
    "image-last": [{"role": "user", "content": ["Look:", picture(2, 61, 97)]}],
    "interleaved": [{"role": "user", "content": ["First", picture(3, 90, 60), "then", picture(4, 33, 120), picture(5),
                                                 "what changed?"]}],
    "turns": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": [picture(6, 100, 40), "one"]},
              {"role": "assistant", "content": "I see."}, {"role": "user", "content": ["and", picture(7, 40, 100)]}],
    "extreme-aspect": [{"role": "user", "content": [picture(8, 600, 9), picture(9, 7, 400), "a line"]}],
    "tiny": [{"role": "user", "content": [picture(10, 3, 5), "a dot"]}],
    "video": [{"role": "user", "content": [clip(11, 6, 70, 50), "What happens?"]}],
    "odd-video": [{"role": "user", "content": ["Watch", clip(20, 3, 45, 80)]}],
    # More temporal patches than a frame has tokens in a row or column.
    "long-video": [{"role": "user", "content": ["See", clip(40, 13, 61, 43), "and", picture(54, 64, 43), "why?"]}],
    "videos-of-other-rates": [{"role": "user", "content": ["Both", clip(24, 6, 50, 70, sample_fps=0.5), "and", clip(40, 5, sample_fps=8),
                                                           picture(36, 40, 30)]}],
    "video-and-image": [{"role": "user", "content": [picture(30, 80, 60), "in", clip(31, 4), "or", picture(35, 30, 30)]}],
}


def vocab(models, name):
    return models.memory[name].config.get_text_config().vocab_size


def greedy(name, tokens=64):
    return {"max_tokens": tokens, "ignore_eos": True, "temperature": 0,
            "logit_bias": checkpoints.family(name).no_media_tokens()}


def cases(name):
    """The conversations that a model supports."""
    family = checkpoints.family(name)
    visual = {case: messages for case, messages in VISUAL.items() if family.has_video or "video" not in case}
    return TEXT | (visual if family.has_images else {})


@pytest.mark.parametrize("name", checkpoints.MODELS)
def test_greedy_tokens_and_logits_equal_reference(models, references, engines, name):
    sampling = greedy(name) | {"logprobs": vocab(models, name)}
    requests = {case: {"messages": messages, "sampling": sampling} for case, messages in cases(name).items()}
    # Sequentially, so that cached prefixes (the system turn) are compared too.
    for case, request in requests.items():
        answer = engines[name].one(request)
        assert len(token_ids(answer)) == 64, case
        expect_same(references[name], request, answer)


@pytest.mark.parametrize("name", sample(["text-one-layer", "vl-grouped-tied", "vl25-windows", "llava-default", *checkpoints.LLAMA_SHAPED.values(),
                                         "text-windows", "vl3-grouped-tied", "smolvlm-tied", "internvl-tied",
                                         "next-mistral", "onevision-tied", "pixtral", "mistral3-tied", "gemma3-text", "gemma3",
                                         *(name for name in checkpoints.MODELS if name.startswith("qwen35"))], 8))
def test_tokens_equal_transformers_generate(references, engines, name):
    """The reference's cached, step-by-step generation must give the same tokens as its single pass over all
    tokens."""
    some = list(cases(name).values())[::3] + ([VISUAL["long-video"]] if checkpoints.family(name).has_video else [])
    for messages in some:
        request = {"messages": messages, "sampling": greedy(name)}
        assert token_ids(engines[name].one(request)) == references[name].greedy(request, 64)


VIDEO_MODELS = ["vl-grouped-tied", "vl25-windows", "vl25-odd-windows", "vl3-grouped-tied", *(["qwen35-tied"] if NEWEST else [])]


@pytest.mark.parametrize("name, fps", pairs(VIDEO_MODELS, [0.7, 3, 29.97]))
def test_frame_list_rate_sets_positions(models, references, engines, name, fps):
    """Qwen2.5-VL's positions reflect the time between frames."""
    messages = [{"role": "user", "content": ["See", clip(60, 9, 45, 83), "then", clip(70, 4, 70, 50), "what?"]}]
    request = {"messages": messages, "fps": fps, "sampling": greedy(name, 8) | {"logprobs": vocab(models, name)}}
    expect_same(references[name], request, engines[name].one(request))


@pytest.mark.parametrize("name, file", pairs(VIDEO_MODELS, [(21, 3.7, None), (10, 30000 / 1001, None), (31, 15, 3.3), (62, 30, 29)]))
def test_video_files_equal_reference(models, references, engines, name, file):
    """Files of odd sizes and rates: which frames are kept, and their times."""
    frames, rate, fps = file
    messages = [{"role": "user", "content": [film(80, frames, rate, 47, 61), "What happens?"]}]
    request = {"messages": messages, "sampling": greedy(name, 8) | {"logprobs": vocab(models, name)}}
    request |= {"fps": fps} if fps else {}
    expect_same(references[name], request, engines[name].one(request))


@pytest.mark.skipif(not NEWEST, reason="SmolVLM's video processor of 4.57 needs torchvision")
def test_smolvlm_videos_equal_reference(models, references, tmp_path):
    """A sampled film that skips a second at each end, and a list of frames, with text before and after."""
    name, sampling = "smolvlm-tied", {"fps": 2, "num_frames": 4}
    folder = shutil.copytree(models[name], tmp_path / "model")
    settings = json.loads((folder / "processor_config.json").read_text())
    settings["video_processor"] = settings["image_processor"] | sampling | {"video_processor_type": "SmolVLMVideoProcessor"}
    del settings["video_processor"]["image_processor_type"]
    (folder / "processor_config.json").write_text(json.dumps(settings))
    (folder / "chat_template.jinja").write_text("{{ raise_exception('not of conversations with videos') }}")
    reference = references[name]
    with Engine(folder) as engine:
        for before, part, behind in [("See ", film(80, 9, 4.5, 47, 61), "What happens?"), ("", film(90, 63, 5, 40, 30), "\n\nWhy?"),
                                     ("Watch:", clip(95, 3, 70, 50), "")]:
            request = {"messages": [{"role": "user", "content": [*[before] * bool(before), part, *[behind] * bool(behind)]}],
                       "sampling": greedy(name, 8) | {"logprobs": vocab(models, name)}}
            prompt = Prompt(*reference.family.video_prompt(before, part, behind, reference.processor, **sampling))
            reference.prompt = lambda _, prompt=prompt: prompt
            expect_same(reference, request, engine.one(request))
        del reference.prompt
        with pytest.raises(EngineError, match="images or videos in a conversation, not both"):
            engine.one({**request, "messages": [{"role": "user", "content": [picture(1), part]}]})


@pytest.mark.skipif(not NEWEST, reason="of transformers 5 alone")
@pytest.mark.parametrize("name", ["vl-grouped-tied", "vl25-windows"])
def test_transformers_5_positions_after_a_long_video_need_mending(references, name):
    """Shows why releases.mend_positions is needed: without it, a token's position differs between one pass and
    step-by-step generation."""
    family, model = references[name].family, references[name].base.model
    merge = model.config.vision_config.spatial_merge_size
    tokens = [family.special_id("<|vision_start|>"), *[family.special_id("<|video_pad|>")] * 36,
              family.special_id("<|vision_end|>"), family.special_id(family.eos)]

    def positions(rope_index, count):
        ids = torch.tensor([tokens[:count]])
        return rope_index(ids, video_grid_thw=torch.tensor([[9, 2 * merge, 2 * merge]]), **family.token_types(ids))

    same = []
    for rope_index in (type(model).get_rope_index.__get__(model), model.get_rope_index):
        (whole, _), (_, delta) = positions(rope_index, len(tokens)), positions(rope_index, len(tokens) - 1)
        same.append(whole[:, 0, -1].tolist() == [len(tokens) - 1 + delta.item()] * 3)
    assert same == [False, True]


@pytest.mark.parametrize("name", ["text-grouped-tied", "vl-small-patch", "llama2-biased", "llama3-scaled"])
def test_plain_prompts_equal_reference(models, references, engines, name):
    sampling = greedy(name, 5) | {"logprobs": vocab(models, name)}
    for prompt in ({"prompt": "Once upon a time"}, {"prompt": "x"}, {"tokens": [0]},
                   {"tokens": [(7 * i * i) % vocab(models, name) for i in range(16)] if not name.startswith("vl")
                    else list(range(100, 133))}):
        request = prompt | {"sampling": sampling}
        expect_same(references[name], request, engines[name].one(request))


def test_logprobs_are_normalised_and_sorted(models, engines):
    name = "vl-grouped-tied"
    size = vocab(models, name)
    answer = engines[name].one({"messages": VISUAL["image"], "sampling": greedy(name, 3) | {"logprobs": size}})
    for token in answer["choices"][0]["tokens"]:
        assert sorted(token["top_ids"]) == list(range(size))
        assert token["top_logprobs"] == sorted(token["top_logprobs"], reverse=True)
        assert token["id"] == token["top_ids"][0] and token["logprob"] == token["top_logprobs"][0]


def test_command_line_answer_equals_reference(models, references, tmp_path):
    """`valora generate`, its options and its JSON output."""
    name = "vl-grouped-tied"
    files = [tmp_path / "a.png", tmp_path / "b.png"]
    for i, file in enumerate(files):
        pictures.draw(40 + i, 70, 50 + 20 * i).save(file)
    size = vocab(models, name)
    answer = generate(models[name], "--image", files[0], "--image", files[1], "--system", "Be kind.", "--prompt", "Which?",
                      "--max-tokens", 8, "--ignore-eos", "--logprobs", size, "--max-logprobs", size)
    request = {"messages": [{"role": "system", "content": "Be kind."},
                            {"role": "user", "content": [{"image": f"file://{f}"} for f in files] + ["Which?"]}]}
    prompt, logits = references[name].next_token_logits(request, answer["token_ids"])
    assert answer["prompt_token_ids"] == prompt.ids
    assert answer["token_ids"] == logits.argmax(-1).tolist()
    assert answer["text"] == checkpoints.tokenizer().decode(answer["token_ids"], skip_special_tokens=True)
    assert answer["finish_reason"] == "length" and answer["cached_tokens"] == 0 and answer["labels"] is None
    expected = logits.log_softmax(-1)
    for row, step in zip(expected, answer["logprobs"]):
        assert len(step["top"]) == size
        assert max(abs(row[top["id"]].item() - top["logprob"]) for top in step["top"]) < 1e-4
    assert set(answer["timings"]) == {"queue_seconds", "adapter_seconds", "kv_seconds", "prefill_seconds", "decode_seconds", "ttft_seconds",
                                      "e2e_seconds"}


def test_command_line_accepts_raw_text(models, references):
    name = "text-one-layer"
    answer = generate(models[name], "--raw", "--prompt", "Once upon", "--max-tokens", 6, "--ignore-eos")
    prompt, logits = references[name].next_token_logits({"prompt": "Once upon"}, answer["token_ids"])
    assert answer["prompt_token_ids"] == prompt.ids
    assert answer["token_ids"] == logits.argmax(-1).tolist()
    assert answer["logprobs"] is None
