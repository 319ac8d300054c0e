"""Settings of media in content parts and requests: prompt tokens as transformers' processor counts them."""

import base64
import io
import json

import numpy
import pytest
from PIL import Image
from transformers.models.qwen2_vl.image_processing_qwen2_vl import smart_resize

from serving import Server, chat_body, image_part, picture, text_part

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
    """Visual tokens of a picture as transformers resizes it."""
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
    """A list of frames, as a part."""
    files = []
    for i in range(number):
        buffer = io.BytesIO()
        Image.fromarray(numpy.full((24, 32, 3), 40 * i, numpy.uint8)).save(buffer, "JPEG")
        files.append(base64.b64encode(buffer.getvalue()).decode())
    return {"type": "video_url", "video_url": {"url": "data:video/jpeg;base64," + ",".join(files)}}


def test_a_part_has_bounds_of_pixels(served, layout):
    data, small = picture(3, 96, 64), {"max_pixels": 32 * 32}
    plain = count(served, [image_part(data), QUESTION])
    expected = plain - tokens_of(layout, 96, 64) + tokens_of(layout, 96, 64, **small)
    assert expected < plain
    assert count(served, [image_part(data) | small, QUESTION]) == expected
    within = image_part(data)
    within["image_url"] |= small
    assert count(served, [within, QUESTION]) == expected
    assert count(served, [image_part(data) | small, QUESTION], mm_processor_kwargs={"max_pixels": 16 * 16}) == expected, "before the request's"
    other = [image_part(data) | small, image_part(data), QUESTION]
    refused(served, other, "messages[0].content[1]")
    refused(served, [image_part(data) | {"resized_height": 32, "resized_width": 32}, QUESTION], "messages[0].content[0]")


def test_pictures_with_other_bounds_are_cached_apart(served):
    def ask(part):
        return served.chat("tiny", [part, QUESTION], max_tokens=8, logprobs=True)["choices"][0]["logprobs"]["content"]

    data = picture(4, 96, 64)
    parts = [image_part(data), image_part(data) | {"max_pixels": 32 * 32}]
    answers = [ask(part) for part in parts]
    assert answers[0] != answers[1]
    assert [ask(part)[0]["token"] for part in parts] == [answer[0]["token"] for answer in answers]


def test_what_qwens_client_sends(served):
    sent = {"fps": [2.0], "do_sample_frames": False}
    plain = count(served, [frames(4), QUESTION])
    assert count(served, [frames(4), QUESTION], mm_processor_kwargs=sent) == plain
    assert count(served, [frames(4), frames(2), QUESTION], mm_processor_kwargs={"fps": [2.0, 2.0], "do_sample_frames": False}) > plain
    assert count(served, [image_part(picture(1)), QUESTION], mm_processor_kwargs={"fps": [], "do_sample_frames": False}) > 0
    for wrong in ({"fps": [2.0, 2.0]}, {"do_sample_frames": True}, {"fps": ["2"]}):
        refused(served, [frames(4), QUESTION], "mm_processor_kwargs", mm_processor_kwargs=wrong)
