"""Bodies as vision applications send them: fields, order and forms are theirs."""

import io
import json

import openai
import pytest
from PIL import Image

import movies
from serving import Server, data_url, image_part, text_part

THUMBNAILS = 30  # Frigate sends up to 20 or 30 per event or review
REVIEW = {"type": "object", "additionalProperties": False, "required": ["title", "confidence", "potential_threat_level"], "properties": {
    "title": {"type": "string", "maxLength": 12, "description": "A short title of the activity."},
    "confidence": {"type": "number", "minimum": 0, "maximum": 1},
    "potential_threat_level": {"type": "integer", "minimum": 0, "maximum": 2},
    "other_concerns": {"anyOf": [{"type": "array", "items": {"type": "string"}, "maxItems": 1}, {"type": "null"}]}}}


# As Qwen's: media as marks, and a switch of thoughts.
TEMPLATE = """{%- for message in messages -%}<|im_start|>{{ message.role + "\n" }}
{%- if message.content is string -%}{{ message.content }}
{%- else -%}
  {%- for part in message.content -%}
    {%- if part.type == "image" -%}<|vision_start|><|image_pad|><|vision_end|>
    {%- elif part.type == "video" -%}<|vision_start|><|video_pad|><|vision_end|>
    {%- else -%}{{ part.text }}{%- endif -%}
  {%- endfor -%}
{%- endif -%}{{ "<|im_end|>\n" }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ "<|im_start|>assistant\n" }}
  {%- if enable_thinking is defined and enable_thinking is false -%}{{ "<think>\n\n</think>\n\n" }}{%- endif -%}
{%- endif -%}"""


@pytest.fixture(scope="module")
def server(folders, tmp_path_factory):
    template = tmp_path_factory.mktemp("template") / "chat_template.jinja"
    template.write_text(TEMPLATE)
    server = Server({"model": folders["model"], "one": folders["one"]}, "--allow-runtime-lora-updating", "--chat-template", str(template),
                    "--enable-tokenizer-info-endpoint")
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


def events(server, body):
    """The events of a stream."""
    status, text = server.request("POST", "/v1/chat/completions", body)
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line]
    assert status == 200 and lines[-1] == "[DONE]", text
    return [json.loads(line) for line in lines[:-1]]


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


def test_frigate_asks_as_it_asks_llama_cpp(server):
    """Its provider llamacpp: what it looks up at start, and its chats."""
    def props(model):
        status, text = server.request("GET", f"/props?model={model}")
        return status, json.loads(text)

    cards = {card["id"]: card for card in json.loads(server.request("GET", "/v1/models")[1])["data"]}
    for model in ("tiny", "one"):
        status, answer = props(model)
        assert status == 200 and "image" in cards[model]["architecture"]["input_modalities"]
        assert answer["default_generation_settings"]["n_ctx"] == cards[model]["max_model_len"]
        assert "enable_thinking" in answer["chat_template"]
        assert answer["modalities"] == {"vision": True, "audio": False} and answer["chat_template_caps"]["supports_tools"]
    assert props("none")[0] == 404
    probe = {"model": "one", "messages": [{"role": "user", "content": [{"type": "text", "text": "."}, image_part(encoded(128, "JPEG"))]}]}
    with_image = server.post("/v1/chat/completions", probe | {"max_tokens": 1})["usage"]["prompt_tokens"]
    stream = probe | {"stream": True, "stream_options": {"include_usage": True}, "timings_per_token": True, "max_tokens": 4,
                      "chat_template_kwargs": {"enable_thinking": False}}
    assert events(server, stream)[-1]["usage"]["prompt_tokens"] > with_image  # an empty thought


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


def test_open_webui_lists_models_and_asks_for_titles(server):
    status, text = server.request("GET", "/v1/models", headers={"Authorization": "Bearer none", "X-OpenWebUI-User-Role": "admin"})
    assert status == 200 and {card["id"] for card in json.loads(text)["data"]} >= {"tiny", "one"}
    asked = "### Task:\nGenerate a concise, 3-5 word title.\n### Output:\nJSON format: { \"title\": \"your title\" }\n<chat_history>\nUSER: Hi\n</chat_history>"
    # Tasks without a bound of their own (tags, follow-ups) may fill the context.
    title = {"model": "one", "messages": [{"role": "user", "content": asked}], "stream": False, "max_completion_tokens": 20,
             "metadata": {"task": "title_generation", "task_body": {"model": "one", "messages": []}, "chat_id": None}}
    answer = server.post("/v1/chat/completions", title)
    # No temperature is sent: a drawn answer of random weights may end at once.
    assert isinstance(answer["choices"][0]["message"]["content"], str) and 1 <= answer["usage"]["completion_tokens"] <= 20
    follow_up = server.post("/v1/chat/completions", {key: value for key, value in title.items() if key != "max_completion_tokens"})
    assert follow_up["choices"][0]["finish_reason"] in ("stop", "length")


def test_open_webui_streams_chats_with_pictures_and_tools(server):
    """Its settings of a model under the names that it sends, its own keys, and a call of a tool that it ran."""
    settings = {"temperature": 0.8, "top_p": 0.9, "top_k": 40, "min_p": 0.05, "frequency_penalty": 0.1, "presence_penalty": 0.1,
                "repeat_penalty": 1.1, "repeat_last_n": 64, "mirostat": 0, "mirostat_eta": 0.1, "mirostat_tau": 5, "tfs_z": 1, "num_ctx": 2048,
                "seed": 7, "stop": ["###"], "max_tokens": 12, "logit_bias": {"50": -100}, "reasoning_effort": "medium"}
    own = {"chat_id": "c", "session_id": "s", "id": "m", "tool_ids": [], "files": [], "features": {"web_search": False}, "model_item": {"id": "one"},
           "variables": {"{{USER_NAME}}": "x"}, "background_tasks": {"title_generation": True}, "user": {"id": "1", "name": "x", "role": "admin"}}
    weather = {"type": "function", "function": {"name": "weather", "description": "Weather of a place.", "parameters": {
        "type": "object", "properties": {"place": {"type": "string", "description": "Where"}}, "required": ["place"]}}}
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{\"place\": \"Bern\"}"}}
    messages = [{"role": "system", "content": "You are helpful."},
                {"role": "user", "content": [text_part("What is it?"), image_part(encoded(9, "JPEG"))]},
                {"role": "assistant", "content": "", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "call_1", "content": "12 degrees"},
                {"role": "user", "content": "So?"}]
    body = {"model": "one", "messages": messages, "stream": True, "stream_options": {"include_usage": True}, "tools": [weather], **settings, **own}
    *parts, last = events(server, body)
    assert last["choices"] == [] and last["usage"]["completion_tokens"] > 0 and last["usage"]["prompt_tokens"] > 0
    assert parts[0]["choices"][0]["delta"]["role"] == "assistant" and parts[-1]["choices"][0]["finish_reason"] in ("stop", "length")


def test_roboflow_loads_an_adapter_and_asks_it(server, folders):
    """Its proxy of vLLM, which reads some errors: an adapter that is there already is no failure, and one that the server has forgotten is
    loaded again."""
    name = "acme-parts-3-1f2e3d4c"
    loading = {"lora_name": name, "lora_path": str(folders["two"])}
    system = {"role": "system", "content": [text_part("You are a Qwen vision-language model that can answer questions about any image.")]}
    user = {"role": "user", "content": [image_part(encoded(9, "PNG", (64, 64))), text_part("Describe what's in this image.")]}
    chat = {"model": name, "messages": [system, user], "temperature": 0, "max_tokens": 8, "chat_template_kwargs": {"enable_thinking": False}}

    def sent(path, body):
        status, text = server.request("POST", path, body, {"X-Request-Id": "run-1"})
        return status, text

    assert sent("/v1/load_lora_adapter", loading)[0] == 200
    status, text = sent("/v1/load_lora_adapter", loading)
    assert status == 400 and "already been loaded" in text
    status, text = sent("/v1/chat/completions", chat)
    assert status == 200 and json.loads(text)["choices"][0]["message"]["content"]
    assert sent("/v1/unload_lora_adapter", {"lora_name": name})[0] == 200
    status, text = sent("/v1/chat/completions", chat)
    assert status == 404 and name in text and "does not exist" in text
    assert 400 <= sent("/v1/load_lora_adapter", loading | {"lora_path": str(folders["model"])})[0] < 500


def test_roboflow_workflows_ask_an_openai_compatible_server(client):
    messages = [{"role": "system", "content": "Be brief."},
                {"role": "user", "content": [text_part("What is it?"), image_part(encoded(9, "JPEG")), image_part(encoded(90, "JPEG"))]}]
    answer = client.chat.completions.create(model="one", messages=messages, max_tokens=8, temperature=0.1, extra_body={"top_k": 20})
    assert answer.choices[0].message.content
