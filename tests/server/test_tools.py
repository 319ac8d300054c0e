"""Function calling over HTTP with a random model, which calls nothing sensible unless forced to; also the openai client."""

import json
from typing import Annotated, Literal

import jsonschema
import openai
import pydantic
import pytest

from serving import Server, chat_body, data_url, image_part, picture, text_part

LOOK = {"type": "object", "properties": {"place": {"type": "string", "maxLength": 6}, "zoom": {"type": "integer", "minimum": 1, "maximum": 9}},
        "required": ["place", "zoom"], "additionalProperties": False}
COUNT = {"type": "object", "properties": {"kind": {"enum": ["car", "coin"]}}, "required": ["kind"], "additionalProperties": False}


def tool(name, schema, **more):
    return {"type": "function", "function": {"name": name, "description": f"To {name}.", "parameters": schema} | more}


TOOLS = [tool("look", LOOK), tool("count", COUNT)]
SCHEMAS = {"look": LOOK, "count": COUNT}


@pytest.fixture(scope="module")
def served(folders):
    server = Server({"model": folders["model"], "three": folders["three"], "one": folders["one"]})
    yield server
    server.stop()


@pytest.fixture(scope="module")
def client(served):
    return openai.OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0, timeout=120)


def ask(served, model="tiny", seed=0, **fields):
    body = chat_body(model, "Tell me.", temperature=1, seed=seed, max_tokens=200, ignore_eos=False, tools=TOOLS) | fields
    return served.post("/v1/chat/completions", body)["choices"][0]


def check_call(call):
    assert call["type"] == "function" and call["id"]
    jsonschema.validate(json.loads(call["function"]["arguments"]), SCHEMAS[call["function"]["name"]])


@pytest.mark.parametrize("model", ["tiny", "one"])
def test_required_calls_follow_their_schemas(served, model):
    names, several = set(), 0
    for seed in range(12):
        choice = ask(served, model, seed, tool_choice="required")
        if choice["finish_reason"] == "length":
            continue
        assert choice["finish_reason"] == "tool_calls" and choice["message"]["content"] is None
        calls = choice["message"]["tool_calls"]
        several += len(calls) > 1
        names |= {call["function"]["name"] for call in calls}
        assert len({call["id"] for call in calls}) == len(calls)
        for call in calls:
            check_call(call)
    assert names == {"look", "count"}
    assert several


def test_named_function_is_called_exactly_once(served):
    for seed in range(6):
        choice = ask(served, seed=seed, tool_choice={"type": "function", "function": {"name": "count"}}, parallel_tool_calls=False)
        assert choice["finish_reason"] in ("tool_calls", "length")
        (call,) = choice["message"]["tool_calls"]
        assert call["function"]["name"] == "count"
        if choice["finish_reason"] == "tool_calls":
            check_call(call)


def test_auto_leaves_the_choice_to_the_model(served):
    choice = ask(served, seed=3)
    assert choice["message"]["content"] and "tool_calls" not in choice["message"], "a random model calls nothing by chance"


def test_streamed_calls_equal_whole_ones(served):
    for seed in range(4):
        whole = ask(served, seed=seed, tool_choice="required", temperature=0.7)
        body = chat_body("tiny", "Tell me.", temperature=0.7, seed=seed, max_tokens=200, ignore_eos=False, tools=TOOLS,
                         tool_choice="required", stream=True)
        status, text = served.request("POST", "/v1/chat/completions", body)
        assert status == 200
        calls, reason = [], None
        for line in text.splitlines():
            if not line.startswith("data: {"):
                continue
            choice = json.loads(line[6:])["choices"][0]
            reason = choice["finish_reason"] or reason
            for call in choice["delta"].get("tool_calls", []):
                if "name" in call["function"]:
                    assert call["index"] == len(calls)
                    calls.append([call["function"]["name"], ""])
                calls[call["index"]][1] += call["function"]["arguments"]
        assert reason == whole["finish_reason"]
        assert calls == [[call["function"]["name"], call["function"]["arguments"]] for call in whole["message"]["tool_calls"]]


def test_unsupported_tool_schema_is_refused_only_if_strict(served):
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "not": {"required": ["b"]}}
    choice = ask(served, tools=[tool("odd", schema)], tool_choice="required")
    if choice["finish_reason"] == "tool_calls":
        assert isinstance(json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"]), dict)
    status, text = served.request("POST", "/v1/chat/completions", chat_body(
        "tiny", "x", tools=[tool("odd", schema, strict=True)], tool_choice="required"))
    assert status == 400 and json.loads(text)["error"]["param"] == "tools"


def test_tool_results_reach_the_model(served):
    first = ask(served, tool_choice={"type": "function", "function": {"name": "count"}}, parallel_tool_calls=False)
    assert first["finish_reason"] == "tool_calls"
    messages = [{"role": "user", "content": "Tell me."}, first["message"]]
    messages += [{"role": "tool", "tool_call_id": call["id"], "content": "a cat"} for call in first["message"]["tool_calls"]]
    answer = served.post("/v1/chat/completions", {"model": "tiny", "messages": messages, "tools": TOOLS, "max_tokens": 5})
    assert answer["usage"]["prompt_tokens"] > 20
    plain = served.post("/tokenize", {"model": "tiny", "messages": messages})["count"]
    assert served.post("/tokenize", {"model": "tiny", "messages": messages, "tools": TOOLS})["count"] > plain + 20


Pixel = Annotated[int, pydantic.Field(ge=0, le=999)]


class Picture(pydantic.BaseModel):
    """A find."""
    label: str = pydantic.Field(max_length=8)
    side: Literal["left", "right"]
    box: tuple[Pixel, Pixel]


def test_openai_client_parses_tool_calls(client):
    messages = [{"role": "user", "content": "Tell me."}]
    parsed = client.beta.chat.completions.parse(
        model="tiny", messages=messages, tools=[openai.pydantic_function_tool(Picture)], tool_choice="required",
        parallel_tool_calls=False, max_tokens=180, seed=4)
    call = parsed.choices[0].message.tool_calls[0]
    assert call.function.name == "Picture"
    assert isinstance(call.function.parsed_arguments, Picture)
    with client.beta.chat.completions.stream(model="tiny", messages=messages, tools=[openai.pydantic_function_tool(Picture)],
                                             tool_choice="required", parallel_tool_calls=False, max_tokens=180, seed=4) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_completion()
    assert "tool_calls.function.arguments.delta" in kinds
    assert final.choices[0].finish_reason == "tool_calls"
    assert final.choices[0].message.tool_calls[0].function.parsed_arguments == call.function.parsed_arguments


def test_openai_client_works_with_responses(client):
    answer = client.responses.create(model="tiny", input="Tell me.", instructions="Be brief.", max_output_tokens=8)
    assert answer.output_text and answer.usage.output_tokens <= 8
    assert answer.status in ("completed", "incomplete")
    again = client.responses.create(model="tiny", input=[{"role": "user", "content": "Tell me."}, *answer.output,
                                                         {"role": "user", "content": "And now?"}], max_output_tokens=4)
    assert again.usage.input_tokens > answer.usage.input_tokens
    parsed = client.responses.parse(model="tiny", input="Tell me.", text_format=Picture, max_output_tokens=180)
    assert isinstance(parsed.output_parsed, Picture)
    function = {"type": "function", "name": "look", "parameters": LOOK, "strict": True}
    with client.responses.stream(model="tiny", input="Tell me.", tools=[function], tool_choice="required", parallel_tool_calls=False,
                                 max_output_tokens=180) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert kinds[0] == "response.created" and "response.function_call_arguments.delta" in kinds
    jsonschema.validate(json.loads(final.output[0].arguments), LOOK)


def test_responses_with_pictures_equal_chat(served, client):
    url = data_url(picture(5))
    asked = [{"role": "user", "content": [{"type": "input_text", "text": "What is it?"},
                                          {"type": "input_image", "image_url": url, "detail": "auto"}]}]
    answer = client.responses.create(model="tiny", input=asked, max_output_tokens=4, temperature=0)
    chat = served.chat("tiny", [text_part("What is it?"), image_part(url)], max_tokens=4, temperature=0, ignore_eos=False)
    assert answer.output_text == chat["choices"][0]["message"]["content"]
    assert answer.usage.input_tokens == chat["usage"]["prompt_tokens"]
