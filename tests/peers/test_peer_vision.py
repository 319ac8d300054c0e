"""Pictures and clips in chats."""

import base64
import io

import openai
import pytest
from PIL import Image

from peers import DEMO, SPECIAL, peer
from serving import data_url, image_part, picture, text_part

VISION = "multimodal/openai/chat_completion/test_vision.py"
RESPONSES = "multimodal/openai/responses/test_image.py"
VIDEO = "multimodal/openai/chat_completion/test_video.py"
SAMPLES = ["digits-1.png", "street-1.png", "coins-1.png"]
CLIPS = ["actions-1.mp4", "race-1.mp4"]


def image(seed=1, width=64, height=64):
    return data_url(picture(seed, width, height))


def clip(name):
    return data_url((DEMO / "samples" / name).read_bytes(), "video/mp4")


def video_part(url):
    return {"type": "video_url", "video_url": {"url": url}}


def question(*urls, part=image_part):
    return [{"role": "user", "content": [*map(part, urls), text_part("What's in this?")]}]


def ask(client, messages, **fields):
    more = {"max_completion_tokens": 10, "temperature": 0, "extra_body": {"ignore_eos": True, "logit_bias": SPECIAL}} | fields
    return client.chat.completions.create(model="demo", messages=messages, **more)


def prompt_tokens(data, words="What's in this?", **template):
    """The prompt's length according to transformers."""
    from transformers import AutoTokenizer, Qwen2VLImageProcessor
    processor = Qwen2VLImageProcessor.from_pretrained(DEMO / "model")
    grid = processor([Image.open(io.BytesIO(data)).convert("RGB")], return_tensors="np")["image_grid_thw"][0]
    turns = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": words}]}]
    text = AutoTokenizer.from_pretrained(DEMO / "model").apply_chat_template(turns, **{"add_generation_prompt": True} | template)
    return len(text) - 1 + int(grid.prod()) // processor.merge_size**2  # the template has one placeholder


def session(client, url, tokens=None, part=image_part):
    """An answer of ten tokens, and a second turn."""
    turns = question(url, part=part)
    answer = ask(client, turns, logprobs=True, top_logprobs=5)
    (choice,) = answer.choices
    assert choice.finish_reason == "length" and choice.message.role == "assistant" and choice.message.content
    usage = answer.usage
    assert usage.completion_tokens == 10 and usage.total_tokens == usage.prompt_tokens + 10
    assert tokens in (None, usage.prompt_tokens)
    turns += [{"role": "assistant", "content": choice.message.content}, {"role": "user", "content": "express your result in json"}]
    assert ask(client, turns).choices[0].message.content
    return usage.prompt_tokens


def streams_alike(client, turns):
    whole = ask(client, turns).choices[0]
    choices = [chunk.choices[0] for chunk in ask(client, turns, stream=True)]
    assert {choice.delta.role for choice in choices if choice.delta.role} == {"assistant"}
    assert sum(choice.finish_reason is not None for choice in choices) == 1
    assert choices[-1].finish_reason == whole.finish_reason
    assert "".join(choice.delta.content or "" for choice in choices) == whole.message.content
    return choices


@pytest.mark.parametrize("name", SAMPLES)
@peer(VISION, "test_single_chat_session_image")
def test_picture_by_url_is_answered(client, samples_url, name):
    session(client, f"{samples_url}/{name}", prompt_tokens((DEMO / "samples" / name).read_bytes()))


@peer(VISION, "test_error_on_invalid_image_url_type")
def test_image_url_without_its_object_is_refused(client, samples_url):
    content = [{"type": "image_url", "image_url": f"{samples_url}/{SAMPLES[0]}"}, text_part("What's in this?")]
    with pytest.raises(openai.BadRequestError):
        ask(client, [{"role": "user", "content": content}])


@pytest.mark.parametrize("name", SAMPLES)
@peer(VISION, "test_single_chat_session_image_base64encoded")
def test_picture_in_the_body_is_answered(client, name):
    data = (DEMO / "samples" / name).read_bytes()
    session(client, "data:image/png;base64," + base64.b64encode(data).decode(), prompt_tokens(data))


@peer(VISION, "test_chat_streaming_image")
def test_answer_about_a_picture_is_streamed(client, samples_url):
    streams_alike(client, question(f"{samples_url}/{SAMPLES[0]}"))


@peer(VISION, "test_multi_image_input")
def test_too_many_pictures_are_refused(client, samples_url):
    urls = [f"{samples_url}/{name}" for name in SAMPLES]
    assert ask(client, question(*urls[:2])).choices[0].message.content
    with pytest.raises(openai.BadRequestError):
        ask(client, question(*urls))
    assert client.completions.create(model="demo", prompt=[5] * 5, max_tokens=5).choices[0].text is not None


def described(url, **fields):
    part = {"type": "image_url", "image_url": {"url": url} if url else {}} | fields
    return [{"role": "system", "content": "You are a helpful assistant."}, {"role": "user", "content": [text_part("Describe this."), part]}]


@peer(VISION, "test_completions_with_image")
def test_picture_may_follow_its_question(client, samples_url):
    for name in SAMPLES:
        assert ask(client, described(f"{samples_url}/{name}")).choices[0].message.content


@peer(VISION, "test_completions_with_empty_image_with_uuid_without_cache_hit")
def test_reference_to_an_unsent_picture_is_refused(client):
    with pytest.raises(openai.BadRequestError):
        ask(client, described(None, uuid="never seen"))


@peer(VISION, "test_completions_with_image_with_incorrect_uuid_format")
def test_unknown_fields_of_a_picture_part_are_ignored(client, samples_url):
    turns = described(f"{samples_url}/{SAMPLES[0]}", another_key="x")
    turns[1]["content"][1]["image_url"]["yet_another"] = "y"
    assert ask(client, turns).choices[0].message.content


def respond(client, *urls):
    parts = [{"type": "input_image", "image_url": url, "detail": "auto"} for url in urls]
    answer = client.responses.create(model="demo", input=[{"role": "user", "content": [*parts, {"type": "input_text", "text": "What is it?"}]}],
                                     temperature=0, max_output_tokens=10, extra_body={"ignore_eos": True, "logit_bias": SPECIAL})
    return answer.output_text


@peer(RESPONSES, "test_single_chat_session_image")
@peer(RESPONSES, "test_single_chat_session_image_base64encoded")
def test_response_about_a_picture_is_equal_by_url_and_in_body(client, samples_url):
    for name in SAMPLES:
        data = base64.b64encode((DEMO / "samples" / name).read_bytes()).decode()
        answers = {respond(client, f"{samples_url}/{name}"), respond(client, f"data:image/png;base64,{data}")}
        assert len(answers) == 1 and "" not in answers


@peer(RESPONSES, "test_multi_image_input")
def test_response_about_too_many_pictures_is_refused(client, samples_url):
    urls = [f"{samples_url}/{name}" for name in SAMPLES]
    assert respond(client, *urls[:2])
    with pytest.raises(openai.BadRequestError):
        respond(client, *urls)
    assert respond(client)


@pytest.mark.parametrize("name", CLIPS)
@peer(VIDEO, "test_single_chat_session_video")
@peer(VIDEO, "test_single_chat_session_video_base64encoded")
def test_clip_by_url_equals_clip_in_the_body(client, samples_url, name):
    assert session(client, f"{samples_url}/{name}", part=video_part) == session(client, clip(name), part=video_part) > 30


@peer(VIDEO, "test_request_media_io_kwargs_override_uses_fewer_video_frames")
def test_request_may_reduce_the_frames(client):
    def tokens(**video):
        return ask(client, question(clip(CLIPS[0]), part=video_part), extra_body={"media_io_kwargs": {"video": video}}).usage.prompt_tokens

    assert tokens(num_frames=2) < tokens(num_frames=4) < tokens(num_frames=-1)


@peer(VIDEO, "test_invalid_num_frames_request_recoverable")
def test_invalid_frame_count_is_refused(client):
    with pytest.raises(openai.BadRequestError):
        ask(client, question(clip(CLIPS[0]), part=video_part), extra_body={"media_io_kwargs": {"video": {"num_frames": "invalid"}}})
    assert ask(client, question(clip(CLIPS[0]), part=video_part)).choices[0].message.content is not None


@peer(VIDEO, "test_error_on_invalid_video_url_type")
def test_video_url_without_its_object_is_refused(client, samples_url):
    content = [{"type": "video_url", "video_url": f"{samples_url}/{CLIPS[0]}"}, text_part("What's in this?")]
    with pytest.raises(openai.BadRequestError):
        ask(client, [{"role": "user", "content": content}])


@peer(VIDEO, "test_chat_streaming_video")
def test_answer_about_a_clip_is_streamed(client):
    assert streams_alike(client, question(clip(CLIPS[0]), part=video_part))[-1].delta.content


@peer(VIDEO, "test_multi_video_input")
def test_too_many_clips_are_refused(client):
    with pytest.raises(openai.BadRequestError):
        ask(client, question(*map(clip, CLIPS), part=video_part))
    assert client.completions.create(model="demo", prompt=[5] * 5, max_tokens=5).choices[0].text is not None
