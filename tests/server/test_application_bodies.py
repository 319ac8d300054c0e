"""Bodies as vision applications send them: fields, order and forms are theirs."""

import io
import json

import openai
import pytest
from PIL import Image

import movies
from serving import Server, data_url

THUMBNAILS = 30  # Frigate sends up to 20 or 30 per event or review
REVIEW = {"type": "object", "additionalProperties": False, "required": ["title", "confidence", "potential_threat_level"], "properties": {
    "title": {"type": "string", "maxLength": 12, "description": "A short title of the activity."},
    "confidence": {"type": "number", "minimum": 0, "maximum": 1},
    "potential_threat_level": {"type": "integer", "minimum": 0, "maximum": 2},
    "other_concerns": {"anyOf": [{"type": "array", "items": {"type": "string"}, "maxItems": 1}, {"type": "null"}]}}}


@pytest.fixture(scope="module")
def server(folders):
    server = Server({"model": folders["model"], "one": folders["one"]})
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="module")
def client(server):
    with openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none", max_retries=0, timeout=60) as client:
        yield client


def encoded(shade, kind, size=(40, 30)):
    buffer = io.BytesIO()
    Image.new("RGB", size, (shade, 90, 60)).save(buffer, kind)
    return buffer.getvalue()


def jpeg(shade):
    return data_url(encoded(shade, "JPEG"), "image/jpeg")


def film(frames=16):
    """A part with a film that has one frame per second."""
    clip = movies.mp4([encoded(10 * i, "PNG", (96, 64)) for i in range(frames)], [1] * frames, 1)
    return {"type": "video_url", "video_url": {"url": data_url(clip, "video/mp4")}}


def test_frigate_asks_about_captioned_thumbnails(client):
    content = [{"type": "text", "text": "Describe the activity."}]
    for i in range(THUMBNAILS):
        content.append({"type": "text", "text": f"Frame {i}"})
        content.append({"type": "image_url", "image_url": {"url": jpeg(8 * i), "detail": "low"}})
    ask = lambda **fields: client.chat.completions.create(model="one", messages=[{"role": "user", "content": content}], **fields)
    plain = ask(max_tokens=4)
    assert plain.model == "one" and plain.usage.completion_tokens > 0
    form = {"type": "json_schema", "json_schema": {"name": "review_metadata", "strict": True, "schema": REVIEW}}
    answer = json.loads(ask(response_format=form, seed=1).choices[0].message.content)
    assert set(REVIEW["required"]) <= set(answer) <= set(REVIEW["properties"])
    assert 0 <= answer["confidence"] <= 1 and answer["potential_threat_level"] in (0, 1, 2)


def test_frigate_finds_the_context_of_an_adapter(client):
    cards = {card.id: card for card in client.models.list().data}
    assert cards["one"].max_model_len == cards["tiny"].max_model_len > 0
    assert "image" in cards["one"].input_modalities


@pytest.mark.parametrize("number", [4, 8])
@pytest.mark.parametrize("sizes", [{"size": {"shortest_edge": 64, "longest_edge": 1024}},
                                   {"videos_kwargs": {"min_pixels": 64, "max_pixels": 1024}}])
def test_vss_chooses_frames_and_their_size(client, number, sizes):
    def tokens(**extra):
        messages = [{"role": "system", "content": "You watch a camera."},
                    {"role": "user", "content": [{"type": "text", "text": "What happens?"}, film()]}]
        answer = client.chat.completions.create(model="tiny", messages=messages, max_tokens=1, temperature=0.2, top_p=0.9, seed=1,
                                                extra_body={"top_k": 40} | extra)
        return answer.usage.prompt_tokens

    few, twice = (tokens(media_io_kwargs={"video": {"num_frames": n, "fps": -1}}, mm_processor_kwargs=sizes) for n in (number, 2 * number))
    large = tokens(media_io_kwargs={"video": {"num_frames": number, "fps": -1}})
    assert few < twice and few < large


@pytest.mark.parametrize("stream", [False, True])
def test_ultralytics_sends_a_picture_to_responses(client, stream):
    asked = [{"role": "user", "content": [{"type": "input_text", "text": "Which digit is this?"},
                                          {"type": "input_image", "image_url": jpeg(9)}]}]
    answer = client.responses.create(model="one", input=asked, max_output_tokens=4, temperature=0, stream=stream)
    if stream:
        answer = [event for event in answer if event.type in ("response.completed", "response.incomplete")][0].response
    assert answer.output_text == client.responses.create(model="one", input=asked, max_output_tokens=4, temperature=0).output_text != ""
