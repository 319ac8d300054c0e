"""The prefix cache must hit only for equal content: tokens, media, adapters and scales."""

import base64
import itertools
import json
import shutil

import pytest
from safetensors.torch import load_file, save_file

import checkpoints
import pictures
from checkpoints import add_head, save_adapter
from pictures import clip, clip_of, picture
from programs import Engine, token_ids
from reference import NO_MEDIA_TOKENS, Reference, expect_same

NAME = "vl-grouped-tied"
QUESTION = "Does the picture show a red circle, left of two small squares or not?"  # fills several blocks on its own
IMAGE = [{"role": "user", "content": [picture(70, 90, 90), QUESTION]}]
OTHER_IMAGE = [{"role": "user", "content": [picture(71, 90, 90), QUESTION]}]
TEXT = [{"role": "user", "content": QUESTION}]
BLOCK = 16


@pytest.fixture
def engine(models):
    with Engine(models[NAME]) as engine:
        yield engine


@pytest.fixture(scope="module")
def adapters(models, tmp_path_factory):
    root = tmp_path_factory.mktemp("identity")
    return {name: save_adapter(models.memory[NAME], root / name, 1000 + i, rank=4 + i) for i, name in enumerate("abc")}


@pytest.fixture(scope="module")
def reference(models, adapters):
    reference = Reference(models[NAME])
    for name, folder in adapters.items():
        reference.load_adapter(name, folder)
    return reference


def ask(models, messages, *uses, tokens=8):
    size = models.memory[NAME].config.text_config.vocab_size
    sampling = {"max_tokens": tokens, "ignore_eos": True, "temperature": 0, "logprobs": size, "logit_bias": NO_MEDIA_TOKENS}
    return {"messages": messages, "adapters": [use if isinstance(use, dict) else {"name": use} for use in uses],
            "sampling": sampling}


def sampling_for(models, references, name):
    return {"max_tokens": 8, "ignore_eos": True, "temperature": 0, "logit_bias": references[name].family.no_media_tokens(),
            "logprobs": models.memory[name].config.get_text_config().vocab_size}


def cached(answer):
    assert answer["usage"]["cached_tokens"] == answer["started_with"]["cached_tokens"]
    return answer["usage"]["cached_tokens"]


def whole_blocks(tokens):
    return tokens // BLOCK * BLOCK


def test_repeated_prompt_is_a_hit(models, engine, reference):
    for messages in (TEXT, IMAGE, [{"role": "user", "content": [clip(80, 4), QUESTION]}]):
        request = ask(models, messages)
        first, second = engine.one(request), engine.one(request)
        length = len(first["prompt_token_ids"])
        assert cached(first) < length - 2 * BLOCK  # at most the system turn
        assert cached(second) == whole_blocks(length - 1)
        for answer in (first, second):
            expect_same(reference, request, answer)


def test_prefix_may_end_within_the_frames_of_a_video(models, references):
    """The uncached tokens get the right rows of the video's last frame, and the right additions after the first layers."""
    name = "vl3-grouped-tied"
    sampling = sampling_for(models, references, name)
    for digits in range(BLOCK):
        request = {"messages": [{"role": "user", "content": ["7" * digits, clip(81, 5, 60, 60)]}], "sampling": sampling}
        ids = references[name].prompt(request).ids
        last_row = max(i for i, token in enumerate(ids) if token == checkpoints.special_id("video_pad"))
        if whole_blocks(len(ids) - 1) < last_row:
            break
    with Engine(models[name]) as engine:
        answers = [engine.one(request) for _ in range(2)]
    assert [cached(answer) for answer in answers] == [0, whole_blocks(len(ids) - 1)]
    assert ids[cached(answers[1])] == ids[last_row] and cached(answers[1]) < last_row
    for answer in answers:
        expect_same(references[name], request, answer)


def equal_tokens(a, b):
    pairs = zip(a["prompt_token_ids"], b["prompt_token_ids"])
    return len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)))


def visual_places(answer):
    """The indices of the prompt's most frequent token, which is that of its media."""
    ids = answer["prompt_token_ids"]
    most = max(ids, key=ids.count)
    return [i for i, token in enumerate(ids) if token == most]


@pytest.mark.parametrize("name, frames", [("vl-grouped-tied", 2), ("vl25-windows", 2), ("vl3-grouped-tied", 2), ("internvl-tied", 1)])
def test_videos_share_equal_frames_in_equal_places(models, references, name, frames):
    """frames: of a temporal patch. A video that grew is computed from its first new one on, and only new ones are encoded."""
    answers, encoded = [], []
    with Engine(models[name]) as engine:
        for seeds in ((1, 2, 3, 4), (1, 2, 3, 4, 5, 6), (1, 2, 7, 8, 5, 6)):
            request = {"messages": [{"role": "user", "content": [clip_of(seeds, 36, 36), "What moves?"]}],
                       "sampling": sampling_for(models, references, name)}
            answers.append(engine.one(request))
            expect_same(references[name], request, answers[-1])
            encoded.append(engine.stats()["visuals_encoded"])
    assert encoded == [4 // frames, 6 // frames, 8 // frames]
    grown, changed = answers[1:]
    assert cached(grown) == whole_blocks(equal_tokens(answers[0], grown))
    places = visual_places(changed)
    assert cached(changed) == whole_blocks(places[len(places) // 3])


@pytest.mark.parametrize("name", ["internvl-tied", "smolvlm-tied"])
def test_pictures_share_equal_tiles(models, references, name):
    """Of a picture in two tiles and as a whole, the second tile changes: it and the whole are encoded, and the KV up to it is found."""
    picture = pictures.draw(5, 56, 28)
    changed = picture.copy()
    changed.paste((250, 20, 90), (50, 10, 54, 20))
    answers, encoded = [], []
    with Engine(models[name]) as engine:
        for image in (picture, changed):
            url = "data:image/png;base64," + base64.b64encode(pictures.png(image)).decode()
            request = {"messages": [{"role": "user", "content": [{"image": url}, "What changed?"]}],
                       "sampling": sampling_for(models, references, name)}
            answers.append(engine.one(request))
            expect_same(references[name], request, answers[-1])
            encoded.append(engine.stats()["visuals_encoded"])
    assert encoded == [3, 5]
    places = visual_places(answers[1])
    assert cached(answers[1]) == whole_blocks(places[len(places) // 3])


def test_answer_is_reused_as_prefix_of_the_next_turn(models, engine, reference):
    first = engine.one(ask(models, IMAGE, tokens=20))
    turns = [*IMAGE, {"role": "assistant", "content": "A circle."}, {"role": "user", "content": "Sure?"}]
    request = ask(models, turns)
    second = engine.one(request)
    assert cached(second) == whole_blocks(equal_tokens(first, second))
    expect_same(reference, request, second)


def test_generated_tokens_are_cached(models, engine, reference):
    request = ask(models, TEXT, tokens=40)
    first = engine.one(request)
    ids = first["prompt_token_ids"] + token_ids(first)
    again = {"tokens": ids, "sampling": request["sampling"]}
    second = engine.one(again)
    # The last generated token was never run through the model, so its keys and values are missing.
    assert cached(second) == whole_blocks(len(ids) - 1)
    expect_same(reference, again, second)


def test_equal_text_with_another_image_is_no_hit(models, engine, reference):
    engine.one(ask(models, IMAGE))
    other = engine.one(ask(models, OTHER_IMAGE))
    image_begin = other["prompt_token_ids"].index(reference.base.config.image_token_id)
    assert cached(other) == whole_blocks(image_begin)  # only the blocks before the picture
    expect_same(reference, ask(models, OTHER_IMAGE), other)
    assert cached(engine.one(ask(models, IMAGE))) > image_begin


def test_changed_image_under_the_same_url_is_no_hit(models, engine, reference, tmp_path):
    """Two images under one URL."""
    file = tmp_path / "picture.png"
    request = ask(models, [{"role": "user", "content": [{"image": f"file://{file}"}, QUESTION]}])
    answers = []
    for seed in (90, 91, 90):
        pictures.draw(seed, 90, 90).save(file)
        answers.append(engine.one(request))
        expect_same(reference, request, answers[-1])
    image_begin = answers[0]["prompt_token_ids"].index(reference.base.config.image_token_id)
    assert [cached(answer) > image_begin for answer in answers] == [False, False, True]


def test_equal_image_under_another_url_is_a_hit(models, engine, tmp_path):
    """An image's bytes matter, not its URL."""
    file = tmp_path / "picture.png"
    pictures.draw(92, 90, 90).save(file)
    data = "data:image/png;base64," + base64.b64encode(file.read_bytes()).decode()
    by_file, by_data = (engine.one(ask(models, [{"role": "user", "content": [{"image": url}, QUESTION]}]))
                        for url in (f"file://{file}", data))
    assert cached(by_data) == whole_blocks(len(by_file["prompt_token_ids"]) - 1)
    assert token_ids(by_file) == token_ids(by_data)
    assert engine.stats()["media_hits"] == 1


def test_image_and_video_with_equal_bytes_share_nothing(models, engine, reference):
    image = picture(93, 56, 56)
    video = {"video": image["image"].replace("image/png", "video/jpeg")}
    for part in (image, video):
        request = ask(models, [{"role": "user", "content": [part, QUESTION]}])
        answer = engine.one(request)
        assert cached(answer) <= answer["prompt_token_ids"].index(reference.base.config.vision_start_token_id)
        expect_same(reference, request, answer)


def test_swapped_images_equal_reference(models, engine, reference):
    a, b = picture(94, 70, 70), picture(95, 70, 70)
    for parts in ([a, b, QUESTION], [b, a, QUESTION], [a, a, QUESTION], [a, b, QUESTION]):
        request = ask(models, [{"role": "user", "content": parts}])
        expect_same(reference, request, engine.one(request))


@pytest.mark.parametrize("messages", [TEXT, IMAGE], ids=["text", "image"])
def test_adapters_base_and_scales_share_no_prefix(models, engine, reference, adapters, messages):
    for name, folder in adapters.items():
        engine.load(name, folder)
    uses = [[], ["a"], ["b"], [{"name": "a", "scale": 0.5}], ["a", "b"], [{"name": "a", "scale": 0.5}, "b"],
            [{"name": "a", "scale": -1}]]
    for use in uses:
        request = ask(models, messages, *use)
        answer = engine.one(request)
        assert cached(answer) == 0, use
        expect_same(reference, request, answer)
    for use in uses:  # now each use hits its own prefix
        request = ask(models, messages, *use)
        answer = engine.one(request)
        assert cached(answer) == whole_blocks(len(answer["prompt_token_ids"]) - 1), use
        expect_same(reference, request, answer)


def test_name_reloaded_with_other_content_is_no_hit(models, engine, reference, adapters):
    """Unloaded and loaded again, or replaced: neither the old content's cache nor the base
    model's is hit."""
    answers = {}
    for step, content in enumerate("abcab"):
        if step == 2:
            engine.unload("task")
        generation = engine.load("task", adapters[content], replace=step in (1, 3, 4))["generation"]
        request = ask(models, IMAGE, "task")
        answer = engine.one(request)
        expect_same(reference, request | {"adapters": [{"name": content}]}, answer)
        if content not in answers:
            assert cached(answer) == 0
        assert token_ids(answer) == answers.setdefault(content, token_ids(answer))
        assert generation >= step + 1
    assert len(set(map(tuple, answers.values()))) == 3


def test_equal_adapters_under_two_names_share_prefixes(models, engine, adapters):
    engine.load("one", adapters["a"])
    engine.load("two", adapters["a"])
    first, second = engine.one(ask(models, IMAGE, "one")), engine.one(ask(models, IMAGE, "two"))
    assert cached(first) == 0 and cached(second) > 0
    assert token_ids(first) == token_ids(second)


def test_adapter_with_only_a_head_shares_prefixes_with_the_base(models, engine, adapters, tmp_path):
    """A head without adapted linears shares the base model's cache; with adapted linears, it
    does not."""
    both = add_head(shutil.copytree(adapters["a"], tmp_path / "both"), 48, ["no", "yes"], 1100, True, add_generation_prompt=True)
    alone = shutil.copytree(both, tmp_path / "alone")
    tensors = load_file(alone / "adapter_model.safetensors")
    save_file({key: value for key, value in tensors.items() if ".score." in key}, alone / "adapter_model.safetensors")
    config = json.loads((alone / "adapter_config.json").read_text())
    (alone / "adapter_config.json").write_text(json.dumps(config | {"target_modules": []}))
    engine.load("both", both)
    engine.load("alone", alone)
    base = engine.one(ask(models, IMAGE))
    answers = [engine.one(ask(models, IMAGE, name) | {"task": "classify"}) for name in ("both", "alone")]
    assert [cached(answer) > 0 for answer in answers] == [False, True]
    assert answers[0]["classification"]["logits"] != answers[1]["classification"]["logits"]
    as_text = engine.one(ask(models, IMAGE, "alone") | {"head": ""})
    assert token_ids(as_text) == token_ids(base)


def test_rewritten_folder_takes_effect_only_on_reload(models, engine, reference, adapters, tmp_path):
    """The adapter's folder is rewritten while its requests run, as in a training run, and then reloaded."""
    folder = shutil.copytree(adapters["a"], tmp_path / "task")
    engine.load("task", folder)
    long = [ask(models, messages, "task", tokens=200) for messages in (TEXT, IMAGE)] * 4
    engine.submit(long)
    for file in folder.iterdir():
        file.write_bytes((adapters["b"] / file.name).read_bytes())
    engine.submit([ask(models, TEXT, "task", tokens=20)])
    engine.load("task", folder, replace=True)
    engine.submit([ask(models, TEXT, "task", tokens=20)])
    *old, new = engine.collect()
    for request, answer in zip([*long, long[0]], old):
        expect_same(reference, request | {"adapters": [{"name": "a"}]}, answer)
    expect_same(reference, ask(models, TEXT, "b"), new)


def test_running_requests_keep_the_old_adapter_after_reload(models, engine, reference, adapters):
    """Replaces and unloads a name while its requests run."""
    engine.load("task", adapters["a"])
    engine.load("gone", adapters["c"])
    long = [ask(models, messages, name, tokens=200) for messages in (TEXT, IMAGE) for name in ("task", "gone")] * 4
    engine.submit(long)
    engine.load("task", adapters["b"], replace=True)
    engine.unload("gone")
    engine.submit([ask(models, IMAGE, "task", tokens=20)])
    *old, new = engine.collect()
    for request, answer in zip(long, old):
        content = {"task": "a", "gone": "c"}[request["adapters"][0]["name"]]
        expect_same(reference, request | {"adapters": [{"name": content}]}, answer)
    expect_same(reference, ask(models, IMAGE, "b"), new)
