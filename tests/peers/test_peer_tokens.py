"""/tokenize and /detokenize, token ids of chats, tool calls."""

import json

import jsonschema
import openai
import pytest
from test_peer_chat import SCHEMA, SUM, chat
from test_peer_vision import image, question

from peers import SPECIAL, peer

TOKENIZE = "serve/tokenize/test_tokenization.py"
TOKEN_IDS = "openai/basic/test_return_token_ids.py"
TOOLS = "openai/chat_completion/test_completion_with_function_calling.py"
TURNS = [{"role": "user", "content": "Hi there!"}, {"role": "assistant", "content": "Nice to meet you!"},
         {"role": "user", "content": "Can I ask a question?"}]
SURE = {"role": "assistant", "content": "Sure,"}
CASES = [(generate, special, goes_on) for generate in (False, True) for special in (False, True) for goes_on in (False, True)
         if not (generate and goes_on)]


def function(name, parameters=SCHEMA):
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


WEATHER = function("get_weather", {"type": "object", "required": ["unit"], "additionalProperties": False,
                                   "properties": {"unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}}})


def tokenize(served, **body):
    return served.post("/tokenize", {"model": "demo"} | body)


def same(answer, tokens):
    assert answer["tokens"] == tokens and answer["count"] == len(tokens) and answer["max_model_len"] == 1024
    assert answer.get("token_strs") is None


@peer(TOKENIZE, "test_tokenize_completions")
def test_text_is_tokenized(served, tokenizer):
    for special in (False, True):
        prompt = "vllm1 This is a test prompt."
        same(tokenize(served, prompt=prompt, add_special_tokens=special), tokenizer.encode(prompt, add_special_tokens=special))


@pytest.mark.parametrize("generate, special, goes_on", CASES)
@peer(TOKENIZE, "test_tokenize_chat")
def test_chat_is_tokenized(served, tokenizer, generate, special, goes_on):
    turns = TURNS + [SURE] * goes_on
    text = tokenizer.apply_chat_template(turns, add_generation_prompt=generate, continue_final_message=goes_on, tokenize=False)
    same(tokenize(served, messages=turns, add_generation_prompt=generate, continue_final_message=goes_on, add_special_tokens=special),
         tokenizer.encode(text, add_special_tokens=special))


@peer(TOKENIZE, "test_tokenize_chat_with_tools")
def test_chat_with_tools_is_tokenized(served, tokenizer):
    turns = [{"role": "user", "content": "What's the weather like in Paris today?"}]
    text = tokenizer.apply_chat_template(turns, tools=[WEATHER], add_generation_prompt=True, tokenize=False)
    same(tokenize(served, messages=turns, tools=[WEATHER], add_generation_prompt=True), tokenizer.encode(text))


@peer(TOKENIZE, "test_detokenize")
def test_tokens_are_detokenized(served, tokenizer):
    prompt = "This is a test prompt. vllm1"
    assert served.post("/detokenize", {"model": "demo", "tokens": tokenizer.encode(prompt)}) == {"prompt": prompt}


@peer("serve/tokenize/test_tokenization_vlm.py", "test_tokenize_chat_expands_image_placeholders")
def test_tokenize_counts_the_tokens_of_a_picture(served, client):
    turns = question(image(width=96, height=64))
    placeholder = tokenize(served, prompt="<|image_pad|>", add_special_tokens=False)["tokens"][0]
    answer = tokenize(served, messages=turns)
    assert answer["tokens"].count(placeholder) == (96 // 16) * (64 // 16)
    assert answer["count"] == chat(client, turns, max_completion_tokens=1).usage.prompt_tokens


@peer("serve/tokenize/test_tokenize_then_chat_vlm.py", "test_tokenize_then_chat_completion_with_image")
def test_tokenized_picture_can_be_asked_about(served, client):
    turns = question(image(seed=91))
    assert tokenize(served, messages=turns)["count"] > 0
    assert chat(client, turns, temperature=0, extra_body={"ignore_eos": True, "logit_bias": SPECIAL}).choices[0].message.content


@peer(TOKEN_IDS, "test_chat_completion_with_tool_use[a forced call]")
def test_tool_call_returns_token_ids(client, tokenizer):
    turns = [SUM[0], {"role": "user", "content": "What's the weather like in Paris?"}]
    fields = dict(tools=[WEATHER], tool_choice="required", parallel_tool_calls=False, max_completion_tokens=200, temperature=0, logprobs=True)
    answer = chat(client, turns, **fields, extra_body={"return_token_ids": True})
    assert turns[1]["content"] in tokenizer.decode(answer.prompt_token_ids)
    text = tokenizer.decode(answer.choices[0].token_ids)
    assert text.startswith("<tool_call>") and '"get_weather"' in text and text.endswith("</tool_call>")
    assert answer.choices[0].message.tool_calls[0].function.name == "get_weather"
    answer = chat(client, turns, **fields, extra_body={"return_token_ids": False})
    assert getattr(answer.choices[0], "token_ids", None) is None and getattr(answer, "prompt_token_ids", None) is None


@peer(TOKEN_IDS, "test_chat_completion_with_tool_use[the end]")
def test_token_ids_of_a_tool_call_include_its_end(client, tokenizer):
    answer = chat(client, tools=[WEATHER], tool_choice="required", parallel_tool_calls=False, max_completion_tokens=200, temperature=0,
                  extra_body={"return_token_ids": True})
    assert tokenizer.decode(answer.choices[0].token_ids).endswith("</tool_call><|im_end|>")


@peer(TOKEN_IDS, "test_chat_completion_with_emoji_and_token_ids[the end]")
def test_token_ids_include_the_end_token(client, tokenizer):
    answer = chat(client, logit_bias={str(tokenizer.eos_token_id): 100}, extra_body={"return_token_ids": True})
    assert (answer.choices[0].message.content, answer.choices[0].token_ids) == ("", [tokenizer.eos_token_id])


@peer(TOKEN_IDS, "test_chat_completion_with_emoji_and_token_ids")
def test_chat_returns_token_ids(client, tokenizer):
    turns = [{"role": "system", "content": "You like emojis."}, {"role": "user", "content": "Repeat after me: I love cats 🐱"}]
    fields = dict(temperature=0, max_completion_tokens=50, extra_body={"return_token_ids": True})
    answer = chat(client, turns, logprobs=True, **fields)
    ids = answer.choices[0].token_ids
    assert tokenizer.decode(ids, skip_special_tokens=True) == answer.choices[0].message.content
    chunks = [chunk.model_dump() for chunk in chat(client, turns, stream=True, **fields)]
    streamed = [i for chunk in chunks for choice in chunk["choices"] for i in choice.get("token_ids") or []]
    text = "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])
    assert streamed == ids and text == answer.choices[0].message.content


@peer(TOKEN_IDS, "test_chat_completion_with_emoji_and_token_ids[the prompt]")
def test_chat_prompt_token_ids_are_at_top_level(client, tokenizer):
    prompt = tokenizer.apply_chat_template(SUM, add_generation_prompt=True)
    assert chat(client, extra_body={"return_token_ids": True}).model_dump().get("prompt_token_ids") == prompt


@peer(TOKEN_IDS, "test_chat_completion_with_emoji_and_token_ids[the prompt of a stream]")
def test_first_chat_event_has_the_prompt_token_ids(client, tokenizer):
    chunks = [chunk.model_dump() for chunk in chat(client, stream=True, extra_body={"return_token_ids": True})]
    assert chunks[0].get("prompt_token_ids") == tokenizer.apply_chat_template(SUM, add_generation_prompt=True)
    assert all("prompt_token_ids" not in chunk for chunk in chunks[1:])


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "get_weather"}}])
@peer(TOOLS, "test_function_tool_use[required, named]")
def test_required_choice_forces_a_tool_call(client, choice):
    fields = dict(tools=[WEATHER, function("get_forecast")], tool_choice=choice, max_completion_tokens=200)
    assert chat(client, TURNS, **fields).choices[0].message.tool_calls
    deltas = [chunk.choices[0].delta for chunk in chat(client, TURNS, stream=True, **fields) if chunk.choices]
    assert any(delta.tool_calls for delta in deltas)


@pytest.mark.parametrize("arguments", ["{}", ""])
@peer(TOOLS, "test_no_args_tool_call[the turns]")
def test_tool_call_without_arguments_can_be_sent_back(client, arguments):
    call = {"id": "c1", "type": "function", "function": {"name": "get_time", "arguments": arguments}}
    turns = [*SUM, {"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c1", "content": "12:00"}]
    assert chat(client, turns, temperature=0, seed=42, extra_body={"ignore_eos": True, "logit_bias": SPECIAL}).choices[0].message.content


@peer(TOOLS, "test_named_tool_use[the form]")
def test_named_tool_call_follows_its_schema(client):
    fields = dict(tools=[function("dummy")], tool_choice={"type": "function", "function": {"name": "dummy"}},
                  max_completion_tokens=300, temperature=0, parallel_tool_calls=False)
    message = chat(client, **fields).choices[0].message
    assert not message.content
    jsonschema.validate(json.loads(message.tool_calls[0].function.arguments), SCHEMA)
    choices = [chunk.choices[0] for chunk in chat(client, stream=True, **fields)]
    assert {choice.delta.role for choice in choices if choice.delta.role} == {"assistant"}
    assert not any(choice.delta.content for choice in choices)
    assert sum(choice.finish_reason is not None for choice in choices) == 1
    written = "".join(call.function.arguments or "" for choice in choices for call in choice.delta.tool_calls or [])
    jsonschema.validate(json.loads(written), SCHEMA)


@peer(TOOLS, "test_named_tool_use[one call]")
def test_named_function_is_called_once(client):
    answer = chat(client, tools=[function("dummy")], tool_choice={"type": "function", "function": {"name": "dummy"}},
                  max_completion_tokens=300, temperature=0)
    assert len(answer.choices[0].message.tool_calls) == 1


@pytest.mark.parametrize("fields", [
    {"tool_choice": {"type": "function", "function": {"name": "dummy"}}},
    {"tools": [function("dummy")], "tool_choice": {"type": "function", "function": {"name": "undefined"}}},
    {"tools": [function("dummy")], "tool_choice": {}},
], ids=["no tools", "another tool", "an empty choice"])
@peer(TOOLS, "test_inconsistent_tool_choice_and_tools")
def test_choice_that_does_not_fit_the_tools_is_refused(client, fields):
    with pytest.raises(openai.BadRequestError):
        chat(client, **fields)


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "get_weather"}}])
@peer(TOOLS, "test_max_tokens_with_tool_choice_required")
def test_tool_call_cut_after_one_token_is_empty(client, choice):
    answer = chat(client, TURNS, tools=[WEATHER], tool_choice=choice, max_completion_tokens=1, temperature=0).choices[0]
    assert answer.finish_reason == "length"
    assert not answer.message.tool_calls and not answer.message.content
