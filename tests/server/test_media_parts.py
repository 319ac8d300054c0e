"""Pictures of all formats and clips of varying rate through HTTP, and errors that name the part of a medium."""

import io
import json
import pathlib

import numpy
import pytest
from PIL import Image

import movies
import pictures
from serving import Server, chat_body, data_url, image_part, picture, text_part

QUESTION = text_part("What is this?")
JPEG_XL = b"\xff\x0a" + bytes(40)


@pytest.fixture(scope="module")
def served(folders, tmp_path_factory):
    media = tmp_path_factory.mktemp("media")
    (media / "broken.png").write_bytes(JPEG_XL)
    server = Server({"model": folders["model"]}, "--allowed-local-media-path", str(media))
    server.media = media
    yield server
    assert server.stop() == 0


def count(served, content, **fields):
    return served.post("/v1/chat/completions", chat_body("tiny", content, **fields) | {"max_tokens": 1})["usage"]["prompt_tokens"]


def refusal(served, path, body):
    status, text = served.request("POST", path, body)
    assert status == 400, text
    return json.loads(text)["error"]


@pytest.mark.parametrize("kind", ["BMP", "TIFF", "AVIF"])
def test_formats_give_the_answer_of_their_pixels(served, kind):
    buffer = io.BytesIO()
    Image.open(io.BytesIO(picture(3, 96, 64))).convert("RGB").save(buffer, kind)
    same = pictures.png(Image.open(io.BytesIO(buffer.getvalue())).convert("RGB"))

    def ask(data):
        content = [image_part(data), QUESTION]
        return served.chat("tiny", content, max_tokens=4, logprobs=True, temperature=0)["choices"][0]["logprobs"]["content"]

    assert ask(buffer.getvalue()) == ask(same)


@pytest.mark.parametrize("broken", [JPEG_XL, "file"], ids=["data", "file"])
def test_errors_name_the_part(served, broken):
    url = pathlib.Path(served.media / "broken.png").as_uri() if broken == "file" else data_url(broken)
    content = [QUESTION, image_part(picture(1)), image_part(url), image_part(picture(2))]
    messages = [{"role": "system", "content": "Answer."}, {"role": "user", "content": content}]
    for path in ("/v1/chat/completions", "/v1/embeddings"):
        error = refusal(served, path, {"model": "tiny", "messages": messages})
        assert error["param"] == "messages[1].content[2]" and "JPEG XL" in error["message"], error
    parts = [{"type": "input_text", "text": "What is this?"}, *({"type": "input_image", "image_url": part["image_url"]["url"]}
                                                                 for part in content[1:])]
    error = refusal(served, "/v1/responses", {"model": "tiny", "instructions": "Answer.", "input": [{"role": "user", "content": parts}]})
    assert error["param"] == "input[0].content[2]" and error["message"].startswith('"input[0].content[2]": the image is JPEG XL')


@pytest.mark.parametrize("key", ["images", "image", "videos", "video"])
def test_media_beside_the_content_are_refused(served, key):
    message = {"role": "user", "content": "What is this?", key: ["iVBORw0KGgo="]}
    error = refusal(served, "/v1/chat/completions", {"model": "tiny", "messages": [message]})
    assert error["param"] == f"messages[0].{key}" and "image_url" in error["message"]
    assert key in refusal(served, "/v1/responses", {"model": "tiny", "input": [message]})["message"]
    empty = {"role": "user", "content": "What is this?", key: None}
    assert count(served, "What is this?") == served.post("/v1/chat/completions", {
        "model": "tiny", "messages": [empty], "max_tokens": 1})["usage"]["prompt_tokens"]


def test_frames_of_a_clip_follow_its_average_rate(served):
    """20 frames in a second, then ten more, one every half second: 6 s, of which 12 frames are kept at 2 per second. By the
    lowest rate that holds all times, 20 per second, it would last 1.5 s."""
    stills = [pictures.png(Image.fromarray(numpy.full((24, 32, 3), 8 * i, numpy.uint8))) for i in range(30)]
    clip = movies.mp4(stills, [1] * 20 + [10] * 10, 20)

    def part(data, **settings):
        return {"type": "video_url", "video_url": {"url": data_url(data, "video/mp4")}} | settings

    taken = count(served, [part(clip), QUESTION])
    per_pair = count(served, [part(clip, nframes=4), QUESTION]) - count(served, [part(clip, nframes=2), QUESTION])
    assert taken == count(served, [part(clip, nframes=2), QUESTION]) + 5 * per_pair
