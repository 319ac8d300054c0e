"""Media settings in content parts and requests: prompt tokens as counted by transformers' processor."""

import base64
import io
import json
import subprocess

import numpy
import pytest
from PIL import Image
from transformers.models.qwen2_vl.image_processing_qwen2_vl import smart_resize

import movies
import pictures
from programs import find_program
from serving import Server, chat_body, data_url, image_part, picture, text_part

QUESTION = text_part("What is this?")


@pytest.fixture(scope="module")
def layout(folders):
    return json.loads((folders["model"] / "preprocessor_config.json").read_text())


@pytest.fixture(scope="module")
def served(folders):
    server = Server({"model": folders["model"]})
    yield server
    assert server.stop() == 0


def tokens_of(layout, width, height, **bounds):
    """Visual tokens of a picture, resized as in transformers."""
    factor = layout["patch_size"] * layout["merge_size"]
    bounds = {key: layout[key] for key in ("min_pixels", "max_pixels")} | bounds
    bounds["min_pixels"] = min(bounds.values())
    h, w = smart_resize(height, width, factor=factor, **bounds)
    return (h // factor) * (w // factor)


def count(served, content, **fields):
    body = chat_body("tiny", content, **fields) | {"max_tokens": 1}
    return served.post("/v1/chat/completions", body)["usage"]["prompt_tokens"]


def refused(served, content, param, **fields):
    status, text = served.request("POST", "/v1/chat/completions", chat_body("tiny", content, **fields))
    assert status == 400 and json.loads(text)["error"]["param"] == param, text


def frames(number):
    """A part with a list of frames."""
    files = []
    for i in range(number):
        buffer = io.BytesIO()
        Image.fromarray(numpy.full((24, 32, 3), 40 * i, numpy.uint8)).save(buffer, "JPEG")
        files.append(base64.b64encode(buffer.getvalue()).decode())
    return {"type": "video_url", "video_url": {"url": "data:video/jpeg;base64," + ",".join(files)}}


def test_part_may_set_pixel_limits(served, layout):
    data, small = picture(3, 96, 64), {"max_pixels": 32 * 32}
    plain = count(served, [image_part(data), QUESTION])
    expected = plain - tokens_of(layout, 96, 64) + tokens_of(layout, 96, 64, **small)
    assert expected < plain
    assert count(served, [image_part(data) | small, QUESTION]) == expected
    within = image_part(data)
    within["image_url"] |= small
    assert count(served, [within, QUESTION]) == expected
    assert count(served, [image_part(data) | small, QUESTION], mm_processor_kwargs={"max_pixels": 16 * 16}) == expected, "before the request's"
    assert count(served, [image_part(data) | small, image_part(data), QUESTION]) == count(served, [image_part(data), image_part(data) | small, QUESTION])


def test_parts_may_have_different_sizes(served, layout):
    """Each image alone adds its own tokens to the question's; together they add the sum."""
    factor = layout["patch_size"] * layout["merge_size"]
    sizes = [{}, {"max_pixels": 32 * 32}, {"resized_height": 2 * factor, "resized_width": 3 * factor + 1}]
    parts = [image_part(picture(3, 96, 64)) | settings for settings in sizes]
    bare = count(served, [QUESTION])
    alone = [count(served, [part, QUESTION]) - bare for part in parts]
    assert len(set(alone)) == 3 and count(served, [*parts, QUESTION]) == bare + sum(alone)
    assert alone[0] - alone[2] == tokens_of(layout, 96, 64) - 6
    for wrong in ({"resized_height": 32}, {"resized_height": 4000, "resized_width": 4000}, {"max_pixels": 10**9}, {"nframes": 4}):
        refused(served, [parts[1], image_part(picture(3)) | wrong, QUESTION], "messages[0].content[1]")


@pytest.mark.parametrize("kind, part", [("images_kwargs", image_part(picture(3))), ("videos_kwargs", frames(4))])
def test_faults_of_one_kind_name_their_field(served, kind, part):
    """Not the part, which has no settings; and the part's own go first."""
    def fault(*parts, **sizes):
        status, text = served.request("POST", "/v1/chat/completions", chat_body("tiny", [*parts, QUESTION], mm_processor_kwargs={kind: sizes}))
        return json.loads(text)["error"] if status == 400 else None

    for sizes in ({"max_pixels": 10**9}, {"min_pixels": 2048, "max_pixels": 1024}, {"size": {"shortest_edge": 0, "longest_edge": 1024}}):
        found = fault(part, **sizes)
        assert found["param"] == "mm_processor_kwargs" and found["message"].startswith(f'"mm_processor_kwargs.{kind}": '), found
    assert fault(part | {"max_pixels": 1024}, max_pixels=10**9) is None
    refused(served, [part, QUESTION], "mm_processor_kwargs", mm_processor_kwargs={"max_pixels": 10**9, kind: {"min_pixels": 1}})


def test_pictures_with_other_limits_are_cached_separately(served):
    def ask(part):
        return served.chat("tiny", [part, QUESTION], max_tokens=8, logprobs=True)["choices"][0]["logprobs"]["content"]

    data = picture(4, 96, 64)
    parts = [image_part(data), image_part(data) | {"max_pixels": 32 * 32}]
    answers = [ask(part) for part in parts]
    assert answers[0] != answers[1]
    assert [ask(part)[0]["token"] for part in parts] == [answer[0]["token"] for answer in answers]


def test_fields_of_qwens_client_are_accepted(served):
    sent = {"fps": [2.0], "do_sample_frames": False}
    plain = count(served, [frames(4), QUESTION])
    assert count(served, [frames(4), QUESTION], mm_processor_kwargs=sent) == plain
    assert count(served, [frames(4), frames(2), QUESTION], mm_processor_kwargs={"fps": [2.0, 2.0], "do_sample_frames": False}) > plain
    assert count(served, [image_part(picture(1)), QUESTION], mm_processor_kwargs={"fps": [], "do_sample_frames": False}) > 0
    for wrong in ({"fps": [2.0, 2.0]}, {"do_sample_frames": True}, {"fps": ["2"]}):
        refused(served, [frames(4), QUESTION], "mm_processor_kwargs", mm_processor_kwargs=wrong)
    refused(served, [frames(4) | {"nframes": 2}, QUESTION], "messages[0].content[0]")
    refused(served, [frames(4), QUESTION], "media_io_kwargs", media_io_kwargs={"video": {"num_frames": 2}})


def film(**settings):
    """A part with a file of 32 frames at 10 per second."""
    stills = [pictures.png(Image.fromarray(numpy.full((24, 32, 3), 7 * i, numpy.uint8))) for i in range(32)]
    return {"type": "video_url", "video_url": {"url": data_url(movies.avi(stills, 10), "video/x-msvideo")}} | settings


def groups(served, part, **fields):
    """The number of frame pairs taken from a file; each pair takes the same number of tokens, in addition to those around
    the video."""
    one, two = (count(served, [film(nframes=n), QUESTION]) for n in (2, 4))
    more = count(served, [part, QUESTION], **fields) - one
    assert more % (two - one) == 0
    return 1 + more // (two - one)


def test_each_file_may_have_its_own_frame_count(served):
    assert [groups(served, film(nframes=n)) for n in (4, 6, 7)] == [2, 3, 4]
    seconds = {"video_start": 0, "video_end": 1}
    whole, part = groups(served, film(fps=4)), groups(served, film(fps=4, **seconds))
    assert part == 2 < whole
    assert groups(served, film(fps=4, max_frames=6)) == 3
    bare = count(served, [QUESTION])
    together = count(served, [film(nframes=4), film(fps=4, **seconds), QUESTION])
    assert together - bare == count(served, [film(nframes=4), QUESTION]) + count(served, [film(fps=4, **seconds), QUESTION]) - 2 * bare
    for wrong in ({"nframes": 1}, {"nframes": 5000}, {"video_start": 100}, {"fps": 2, "nframes": 2}, {"sample_fps": 2}):
        status, text = served.request("POST", "/v1/chat/completions", chat_body("tiny", [film(**wrong), QUESTION]))
        assert status == 400, text


def test_frames_equal_those_of_vllms_loader(served):
    def taken(mm=None, **video):
        return groups(served, film(), media_io_kwargs={"video": video}, mm_processor_kwargs=mm)

    every = taken(num_frames=-1)
    assert [taken(num_frames=n) for n in (1, 2, 4, 5)] == [1, 1, 2, 3]
    assert taken(num_frames=10**6) == every >= taken(fps=2) >= 1
    assert groups(served, film(nframes=2), media_io_kwargs={"video": {"num_frames": 8}}) == 1, "a part's go before"
    assert taken({"do_sample_frames": False, "fps": 4}, num_frames=4) == 2
    assert taken({"do_sample_frames": True, "fps": 1}, num_frames=-1) == groups(served, film(), mm_processor_kwargs={"fps": 1})
    for wrong in ({"fps": 1}, {"do_sample_frames": True}):
        refused(served, [film(), QUESTION], "mm_processor_kwargs", mm_processor_kwargs=wrong, media_io_kwargs={"video": {"num_frames": 4}})
    refused(served, [film(), QUESTION], "mm_processor_kwargs", mm_processor_kwargs={"do_sample_frames": False})
    for wrong in ({"video": {"num_frames": 0}}, {"video": {"video_backend": "pyav"}}, {"image": {"image_mode": "L"}}):
        refused(served, [film(), QUESTION], "media_io_kwargs", media_io_kwargs=wrong)


def test_frame_rate_is_part_of_the_cache_key(served):
    """Frames at another rate have other positions in Qwen2.5-VL, so neither pixels nor KV may be reused."""
    def cached(**settings):
        body = chat_body("tiny", [frames(4) | settings, QUESTION]) | {"max_tokens": 1}
        return served.post("/v1/chat/completions", body)["usage"]["prompt_tokens_details"]["cached_tokens"]

    cached(sample_fps=3)
    again, other = cached(sample_fps=3), cached(sample_fps=5)
    assert other < again


def test_server_defaults_apply_unless_overridden(folders, layout):
    server = Server({"model": folders["model"]}, "--mm-processor-kwargs", '{"max_pixels": 1024}', "--media-io-kwargs.video.num_frames", "2",
                    "--seed", "7")
    image, bare = image_part(picture(3, 96, 64)), count(server, [QUESTION])
    assert count(server, [image, QUESTION]) == count(server, [image | {"max_pixels": 1024}, QUESTION])
    more = count(server, [image, QUESTION], mm_processor_kwargs={"max_pixels": layout["max_pixels"]})
    assert more - count(server, [image, QUESTION]) == tokens_of(layout, 96, 64) - tokens_of(layout, 96, 64, max_pixels=1024)
    pair = count(server, [film(), QUESTION])
    assert bare < pair == count(server, [film(nframes=2), QUESTION])
    four = count(server, [film(), QUESTION], media_io_kwargs={"video": {"num_frames": 4}})
    assert four == count(server, [film(nframes=4), QUESTION]) > pair
    assert count(server, [film(), QUESTION], mm_processor_kwargs={"fps": 2}) > pair, "the model's processor chooses"
    assert server.stop() == 0


@pytest.mark.parametrize("options, named", [
    (["--mm-processor-kwargs", '{"size": {}}'], "--mm-processor-kwargs.size"),
    (["--mm-processor-kwargs", '{"max_pixels": 1000000000}'], "--mm-processor-kwargs"),
    (["--media-io-kwargs", '{"video": {"backend": "x"}}'], "--media-io-kwargs.video.backend"),
    (["--mm-processor-kwargs", '{"fps": 1}', "--media-io-kwargs", '{"video": {"fps": 1}}'], "--media-io-kwargs"),
])
@pytest.mark.parametrize("command", [["serve"], ["generate", "--prompt", "x"]])
def test_invalid_defaults_are_refused_at_startup(folders, command, options, named):
    asked = [find_program("valora"), *command, "--model", folders["model"], *options]
    run = subprocess.run(asked, capture_output=True, text=True, timeout=120)
    assert run.returncode == 1 and named in run.stderr, run.stderr


def test_server_seed_makes_answers_reproducible(folders):
    """Requests without a seed draw the same values in the same order."""
    def draws(*options):
        server = Server({"model": folders["model"]}, *options)
        body = {"model": "tiny", "prompt": "Tell me.", "max_tokens": 12, "ignore_eos": True, "temperature": 1}
        server.request("POST", "/v1/completions", body | {"prompt": []})  # refused, so it uses no seed
        texts = [[choice["text"] for choice in server.post("/v1/completions", body | fields)["choices"]] for fields in ({}, {"seed": 3}, {"n": 2}, {})]
        assert server.stop() == 0
        return texts

    first, again, other = draws("--seed", "5"), draws("--seed", "5"), draws("--seed", "6")
    assert first == again and first[1] == other[1]
    assert len({text for texts in (first, other) for choices in (texts[0], *texts[2:]) for text in choices}) == 8
