"""Chats: log probabilities, streams, answer forms, sampling."""

import json
import re
from collections import defaultdict

import jsonschema
import openai
import pytest
from test_peer_completion import GRAMMAR_WITHOUT_A_RULE, SCHEMA_WITH_TEXT

from peers import SPECIAL, peer

CHAT = "openai/chat_completion/test_chat.py"
FORMS = "openai/chat_completion/test_chat_completion.py"
ECHO = "openai/chat_completion/test_chat_echo.py"
MODELS = pytest.mark.parametrize("model", ["demo", "adapter-3"])
SUM = [{"role": "system", "content": "you are a helpful assistant"}, {"role": "user", "content": "what is 1+1?"}]
LANGUAGES = ["Python", "Rust", "C++", "Haskell"]
SCHEMA = {"type": "object", "required": ["name", "age"], "additionalProperties": False,
          "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "minimum": 18, "maximum": 99}}}
ADDRESS = r"((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"


def chat(client, messages=SUM, model="demo", **fields):
    return client.chat.completions.create(model=model, messages=messages, **{"max_completion_tokens": 10} | fields)


def free(**extra):
    """Body fields for an answer whose length does not depend on the weights."""
    return {"ignore_eos": True, "logit_bias": SPECIAL} | extra


@MODELS
@peer(CHAT, "test_no_logprobs_chat")
def test_chat_without_logprobs_returns_none(client, model):
    assert chat(client, model=model, logprobs=False).choices[0].logprobs is None


@MODELS
@peer(CHAT, "test_zero_logprobs_chat")
def test_zero_top_logprobs_returns_only_the_chosen_tokens(client, model):
    answer = chat(client, model=model, temperature=0, logprobs=True, top_logprobs=0, extra_body=free())
    assert answer.choices[0].logprobs.content[0].top_logprobs == []


@MODELS
@peer(CHAT, "test_some_logprobs_chat")
def test_chat_returns_five_top_logprobs(client, model):
    answer = chat(client, model=model, temperature=0, logprobs=True, top_logprobs=5, extra_body=free())
    assert len(answer.choices[0].logprobs.content[0].top_logprobs) == 5


@MODELS
@peer(CHAT, "test_too_many_chat_logprobs")
def test_too_many_logprobs_are_refused(client, model):
    with pytest.raises(openai.APIError):
        list(chat(client, model=model, logprobs=True, top_logprobs=21, stream=True))
    with pytest.raises(openai.BadRequestError):
        chat(client, model=model, logprobs=True, top_logprobs=30)
    assert chat(client, model=model).choices[0].message.content is not None


@MODELS
@peer(CHAT, "test_single_chat_session")
def test_second_turn_is_answered(client, tokenizer, model):
    answer = chat(client, model=model, max_completion_tokens=5, logprobs=True, top_logprobs=5, extra_body=free())
    prompt = len(tokenizer.apply_chat_template(SUM, add_generation_prompt=True))
    assert answer.id and len(answer.choices) == 1 and answer.choices[0].finish_reason == "length"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (prompt, 5, prompt + 5)
    message = answer.choices[0].message
    assert message.role == "assistant" and message.content
    turns = [*SUM, {"role": "assistant", "content": message.content}, {"role": "user", "content": "express your result in json"}]
    assert chat(client, turns, model).choices[0].message.content is not None


@MODELS
@peer(CHAT, "test_chat_streaming")
def test_streamed_chat_equals_the_whole_one(client, model):
    whole = chat(client, model=model, temperature=0, extra_body=free()).choices[0]
    choices = [chunk.choices[0] for chunk in chat(client, model=model, temperature=0, stream=True, extra_body=free())]
    assert {choice.delta.role for choice in choices if choice.delta.role} == {"assistant"}
    assert sum(choice.finish_reason is not None for choice in choices) == 1
    assert choices[-1].finish_reason == whole.finish_reason and choices[-1].delta.content
    assert "".join(choice.delta.content or "" for choice in choices) == whole.message.content


@MODELS
@peer(CHAT, "test_chat_completion_stream_options")
def test_streamed_usage_follows_its_options(client, model):
    def stream(options, **fields):
        return list(chat(client, model=model, temperature=0, stream=True, stream_options=options, extra_body=free(**fields)))

    assert all(chunk.usage is None for chunk in stream({"include_usage": False}))
    *chunks, last = stream({"include_usage": True, "continuous_usage_stats": False})
    assert all(chunk.usage is None for chunk in chunks) and chunks[-1].choices[0].finish_reason
    assert last.choices == [] and last.usage.completion_tokens == 10
    assert last.usage.total_tokens == last.usage.prompt_tokens + 10
    for options in ({"include_usage": None}, {"include_usage": True}):
        with pytest.raises(openai.BadRequestError):
            chat(client, model=model, stream=False, stream_options=options)
    counted = 0
    for chunk in stream({"include_usage": True, "continuous_usage_stats": True}, min_tokens=10):
        usage = chunk.usage
        assert usage.prompt_tokens > 0 and usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
        assert counted == 0 or usage.completion_tokens > counted or (not chunk.choices and usage.completion_tokens == counted)
        counted = usage.completion_tokens
    assert counted == 10


def wish(**form):
    return {"structured_outputs": form}


@peer(CHAT, "test_structured_outputs_choice_chat[the form]")
def test_answer_is_one_of_the_choices(client):
    for _ in range(2):
        assert chat(client, temperature=0.7, extra_body=wish(choice=LANGUAGES)).choices[0].message.content in LANGUAGES


@peer(CHAT, "test_structured_outputs_json_chat[the form]")
def test_answer_matches_the_schema(client):
    answer = chat(client, max_completion_tokens=200, extra_body=wish(json=SCHEMA))
    jsonschema.validate(json.loads(answer.choices[0].message.content), SCHEMA)


@peer(CHAT, "test_structured_outputs_regex_chat[the form]")
def test_answer_matches_the_regex(client):
    for _ in range(2):
        text = chat(client, max_completion_tokens=20, extra_body=wish(regex=ADDRESS)).choices[0].message.content
        assert re.fullmatch(ADDRESS, text)


@peer(CHAT, "test_structured_outputs_type_error")
def test_constraint_of_a_wrong_type_is_refused(client):
    with pytest.raises(openai.BadRequestError):
        chat(client, extra_body=wish(regex={"1": "Python", "2": "C++"}))


@peer(CHAT, "test_structured_outputs_choice_chat_logprobs")
def test_logprobs_under_a_choice_are_finite(client):
    answer = chat(client, logprobs=True, top_logprobs=5, extra_body=wish(choice=LANGUAGES))
    top = answer.choices[0].logprobs.content[0].top_logprobs
    assert top and all(item.logprob >= -9999 for item in top)


@peer(CHAT, "test_response_format_json_object[the form]")
def test_json_object_format_returns_an_object(client):
    answer = chat(client, max_completion_tokens=400, temperature=0, response_format={"type": "json_object"},
                  extra_body={"repetition_penalty": 1.5})
    if answer.choices[0].finish_reason == "stop":
        assert isinstance(json.loads(answer.choices[0].message.content), dict)
    assert answer.choices[0].message.content.lstrip().startswith("{")


@peer(CHAT, "test_response_format_json_schema[the form]")
def test_response_format_schema_is_followed(client):
    schema = {"type": "object", "properties": {"result": {"type": "integer"}}, "required": ["result"]}
    form = {"type": "json_schema", "json_schema": {"name": "sum", "schema": schema}}
    answer = chat(client, max_completion_tokens=100, response_format=form)
    assert isinstance(json.loads(answer.choices[0].message.content)["result"], int)


@peer(CHAT, "test_response_format_text")
def test_text_response_format_is_accepted(client):
    assert chat(client, response_format={"type": "text"}).choices[0].message.content is not None


@peer(CHAT, "test_extra_fields_allowed")
def test_unknown_message_fields_are_ignored(client):
    assert chat(client, [{"role": "user", "content": "what is 1+1?", "extra_field": "0"}], seed=0).choices[0].message.content is not None


@peer(CHAT, "test_custom_role")
def test_custom_role_accepts_text_and_parts(client):
    plain, parts = (chat(client, [{"role": "my-custom-role", "content": content}], temperature=0, seed=0).choices[0].message.content
                    for content in ("what is 1+1?", [{"type": "text", "text": "what is 1+1?"}]))
    assert plain == parts


@peer(CHAT, "test_complex_message_content[parts as a string]")
def test_text_parts_equal_the_joined_string(client):
    plain, parts = (chat(client, [{"role": "user", "content": content}], temperature=0, seed=0).choices[0].message.content
                    for content in ("what is 1+1?", [{"type": "text", "text": "what is 1+1?"}]))
    assert plain == parts


@peer(CHAT, "test_long_seed")
def test_seeds_beyond_64_bits_are_refused(client):
    for seed in (-2**63 - 1, 2**63):
        with pytest.raises(openai.BadRequestError, match="seed"):
            chat(client, seed=seed)


@peer(CHAT, "test_chat_completion_n_parameter_non_streaming")
def test_three_choices_are_returned(client):
    answer = chat(client, n=3, temperature=0.7, max_completion_tokens=20, extra_body=free())
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    contents = [choice.message.content for choice in answer.choices]
    assert all(contents) and len(set(contents)) > 1


@peer(CHAT, "test_chat_completion_n_parameter_streaming")
def test_two_choices_are_streamed(client):
    texts = defaultdict(str)
    for chunk in chat(client, n=2, temperature=0.7, max_completion_tokens=15, stream=True, extra_body=free()):
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
    assert sorted(texts) == [0, 1] and all(texts.values())


@peer(CHAT, "test_chat_completion_n_with_seed")
def test_two_seeded_choices_are_returned(client):
    answer = chat(client, n=2, seed=42, temperature=0.8, extra_body=free())
    assert [choice.index for choice in answer.choices] == [0, 1]
    assert all(choice.message.content for choice in answer.choices)


@peer(CHAT, "test_chat_completion_n_equals_1")
@peer(CHAT, "test_chat_completion_request_n_parameter_default")
def test_default_is_one_choice(client):
    for fields in ({"n": 1}, {}):
        (choice,) = chat(client, temperature=0.7, **fields).choices
        assert choice.index == 0 and choice.message.content is not None


@peer(FORMS, "test_invalid_json_schema")
def test_invalid_schema_is_refused(client):
    with pytest.raises(openai.APIError):
        chat(client, extra_body=wish(json=SCHEMA_WITH_TEXT))


@peer(FORMS, "test_invalid_regex")
def test_invalid_regex_is_refused(client):
    with pytest.raises(openai.APIError):
        chat(client, stop=["\n"], extra_body=wish(regex=r"[.*"))


@peer(FORMS, "test_invalid_grammar")
def test_invalid_grammar_is_refused(client):
    with pytest.raises(openai.APIError):
        chat(client, extra_body=wish(grammar=GRAMMAR_WITHOUT_A_RULE))


@peer(FORMS, "test_empty_grammar")
def test_empty_grammar_is_refused(client):
    with pytest.raises(openai.APIError):
        chat(client, extra_body=wish(grammar=""))


@peer(ECHO, "test_chat_session_with_echo_and_continue_final_message[echo=False]")
def test_answer_continues_the_last_message(client):
    saying = "An apple a day keeps"
    turns = [{"role": "user", "content": "tell me a common saying"}, {"role": "assistant", "content": saying}]
    answer = chat(client, turns, extra_body={"echo": False, "continue_final_message": True, "add_generation_prompt": False})
    assert answer.id and len(answer.choices) == 1
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].message.content is not None and saying not in answer.choices[0].message.content
