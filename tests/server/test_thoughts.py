"""Thoughts apart from answers, over HTTP, on a tiny random model with Qwen3's published chat template."""

import json
import re

import openai
import pytest

import chat_templates
import checkpoints
from serving import ServedProcess, chat_body

BEGIN, END = "<think>", "</think>"
QUESTION = [{"role": "user", "content": "Tell me."}]
PET = {"type": "object", "properties": {"pet": {"enum": ["cat", "dog"]}}, "required": ["pet"], "additionalProperties": False}
TOOL = {"type": "function", "function": {"name": "feed", "parameters": PET, "strict": True}}


def model_folder(root, name, template, marks):
    """marks: whether the marks are special tokens, or None: they are text."""
    folder = checkpoints.save_model(checkpoints.make_model("qwen3-biased"), root / name)
    path = folder / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    known = max(token["id"] for token in tokenizer["added_tokens"]) + 1
    if marks is not None:
        for number, mark in enumerate((BEGIN, END)):
            tokenizer["added_tokens"].append({"id": known + number, "content": mark, "single_word": False, "lstrip": False,
                                              "rstrip": False, "normalized": False, "special": marks})
    path.write_text(json.dumps(tokenizer))
    (folder / "chat_template.jinja").write_text(template)
    return folder


@pytest.fixture(scope="module")
def opened():
    """Qwen3's published template; prompts end with <think>."""
    template = chat_templates.templates().get("qwen3")
    if template is None:
        pytest.skip("axolotl, which has the template, is not installed")
    assert "enable_thinking is false" in template and "{{- '<think>\\n\\n' }}" in template
    return template


@pytest.fixture(scope="module")
def folder(tmp_path_factory, opened):
    return model_folder(tmp_path_factory.mktemp("thoughts"), "tokens", opened, marks=False)


class Thinker(ServedProcess):
    def __init__(self, folder, *options):
        super().__init__("--model", folder, "--served-model-name", "tiny", "--dtype", "float32", "--threads", "1",
                         "--max-model-len", "1024", "--pool-memory", "64M", *options)

    def tokens(self, text):
        return self.post("/tokenize", {"model": "tiny", "prompt": text, "add_special_tokens": False})["tokens"]

    def ask(self, **fields):
        answer = self.post("/v1/chat/completions", chat_body("tiny", "Tell me.", max_tokens=60) | fields)
        del answer["usage"]["prompt_tokens_details"]  # what the cache had
        return answer["choices"][0]["message"], answer["choices"][0]["finish_reason"], answer["usage"]

    def stream(self, **fields):
        """(thought, content, last finish reason, usage) of a stream's first choice."""
        body = chat_body("tiny", "Tell me.", max_tokens=60, stream=True, stream_options={"include_usage": True}) | fields
        status, text = self.request("POST", "/v1/chat/completions", body)
        assert status == 200, text
        thought = content = ""
        finish = usage = None
        for event in (json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")):
            usage = event.get("usage") or usage
            for choice in event["choices"]:
                delta = choice["delta"]
                assert delta.get("reasoning") == delta.get("reasoning_content")
                assert not (delta.get("reasoning") and content), "a thought after the content"
                thought += delta.get("reasoning") or ""
                content += delta.get("content") or ""
                finish = choice["finish_reason"] or finish
        del usage["prompt_tokens_details"]
        return thought, content, finish, usage

    def always(self, text):
        """A logit_bias that makes the model write this token wherever it may."""
        token, = self.tokens(text)
        return {str(token): 100}


@pytest.fixture(scope="module")
def served(folder):
    server = Thinker(folder)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def client(served):
    return openai.OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0, timeout=120)


def test_openai_client_reads_thought_and_answer(served, client):
    extra = {"thinking_token_budget": 6, "logit_bias": served.always("a"), "ignore_eos": True}
    answer = client.chat.completions.create(model="tiny", messages=QUESTION, max_tokens=20, temperature=0, extra_body=extra)
    message = answer.choices[0].message
    assert message.reasoning == message.reasoning_content == "a" * 6 and message.content == "a" * 13
    assert answer.usage.completion_tokens_details.reasoning_tokens == 6 and answer.usage.completion_tokens == 20
    with client.chat.completions.create(model="tiny", messages=QUESTION, max_tokens=20, temperature=0, stream=True,
                                        extra_body=extra) as stream:
        deltas = [chunk.choices[0].delta for chunk in stream]
    assert "".join(getattr(delta, "reasoning", None) or "" for delta in deltas) == "a" * 6
    assert "".join(delta.content or "" for delta in deltas) == "a" * 13


@pytest.mark.parametrize("marks", [None, False, True], ids=["text", "tokens", "special"])
@pytest.mark.parametrize("opens", [True, False], ids=["opened", "by the model"])
def test_marks_of_all_kinds(tmp_path, opened, marks, opens):
    if marks is None and not opens:
        pytest.skip("no bias writes a mark of several tokens")
    template = opened if opens else opened.replace("{{- '<think>\\n\\n' }}", "")
    server = Thinker(model_folder(tmp_path, "model", template, marks))
    try:
        fields = {"thinking_token_budget": 5, "structured_outputs": {"regex": "[b-d]{4}"}}
        if not opens:
            fields["logit_bias"] = {str(server.tokens(BEGIN)[0]): 100}
        whole, finish, usage = server.ask(**fields)
        assert re.fullmatch("[b-d]{4}", whole["content"]) and finish == "stop"
        assert usage["completion_tokens_details"]["reasoning_tokens"] == 5
        assert END not in whole.get("reasoning", "")
        thought, content, finish, streamed = server.stream(**fields)
        assert (thought, content, finish) == (whole.get("reasoning", ""), whole["content"], "stop") and streamed == usage
        if not opens:
            direct, _, _ = server.ask(**fields | {"logit_bias": {str(server.tokens(BEGIN)[0]): -100}})
            assert "reasoning" not in direct and re.fullmatch("[b-d]{4}", direct["content"])
    finally:
        server.stop()


def test_forms_and_tools_follow_the_thought(served):
    thinking = {"thinking_token_budget": 4}
    schema = {"type": "json_schema", "json_schema": {"name": "pet", "schema": PET, "strict": True}}
    for fields in ({"response_format": schema}, {"structured_outputs": {"json": PET}}, {"guided_json": PET}):
        message, finish, usage = served.ask(**thinking, **fields)
        assert json.loads(message["content"])["pet"] in ("cat", "dog") and finish == "stop"
        assert usage["completion_tokens_details"]["reasoning_tokens"] == 4
    message, _, _ = served.ask(**thinking, structured_outputs={"choice": ["yes", "no"]})
    assert message["content"] in ("yes", "no")
    message, finish, _ = served.ask(**thinking, tools=[TOOL], tool_choice="required", parallel_tool_calls=False, max_tokens=300)
    call, = message["tool_calls"]
    assert json.loads(call["function"]["arguments"])["pet"] in ("cat", "dog") and finish == "tool_calls"
    assert message["reasoning"] and message["content"] is None


def test_calls_within_a_thought_are_none(served):
    """A free answer under tools is constrained from its first call on, and a thought is not."""
    bias = {str(served.tokens(BEGIN)[0]): -100}
    message, _, usage = served.ask(tools=[TOOL], thinking_token_budget=7, logit_bias=bias)
    assert usage["completion_tokens_details"]["reasoning_tokens"] == 7 and message["reasoning"]


def test_thought_that_is_not_closed(served):
    bias = {str(served.tokens(END)[0]): -100}
    message, finish, usage = served.ask(structured_outputs={"regex": "[a-z]+"}, max_tokens=9, logit_bias=bias)
    assert message["content"] is None and message["reasoning"] and finish == "length"
    assert usage["completion_tokens_details"]["reasoning_tokens"] == usage["completion_tokens"] == 9


def test_stops_apply_to_the_answer_alone(served):
    fields = {"logit_bias": served.always("a"), "thinking_token_budget": 5}
    message, finish, _ = served.ask(stop=["aa"], **fields)
    assert (message["reasoning"], message["content"], finish) == ("a" * 5, None, "stop")
    message, finish, _ = served.ask(stop_token_ids=served.tokens("a"), **fields)
    assert message["reasoning"] == "a" * 5 and finish == "stop"
    message, _, _ = served.ask(stop=["aa"], separate_reasoning=False, **fields)
    assert message["content"] == "" and "reasoning" not in message


def test_thinking_is_switched(served):
    for fields in ({"enable_thinking": False}, {"chat_template_kwargs": {"enable_thinking": False}}, {"reasoning_effort": "none"},
                   {"reasoning_effort": "high", "enable_thinking": False}):
        message, _, usage = served.ask(**fields)
        assert "reasoning" not in message and message["content"] and "completion_tokens_details" not in usage
    for fields in ({"enable_thinking": True}, {"reasoning_effort": "low"},
                   {"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": True}}):
        assert served.ask(**fields, thinking_token_budget=2)[2]["completion_tokens_details"]["reasoning_tokens"] == 2
    hidden, _, usage = served.ask(include_reasoning=False, thinking_token_budget=3)
    assert "reasoning" not in hidden and hidden["content"] and usage["completion_tokens_details"]["reasoning_tokens"] == 3


def test_servers_have_defaults_and_other_parsers(folder):
    server = Thinker(folder, "--default-chat-template-kwargs", '{"enable_thinking": false}', "--reasoning-parser", "qwen3")
    try:
        assert "reasoning" not in server.ask()[0]
        assert server.ask(chat_template_kwargs={"enable_thinking": True}, max_tokens=3)[0]["reasoning"]
        assert server.ask(reasoning_effort="low", max_tokens=3)[0]["reasoning"]
    finally:
        server.stop()
    server = Thinker(folder, "--reasoning-parser", "none")
    try:
        message, _, _ = server.ask(logit_bias=server.always("a"), max_tokens=3)
        assert message["content"] == "aaa" and "reasoning" not in message
    finally:
        server.stop()


def test_choices_and_log_probabilities(served):
    answer = served.post("/v1/chat/completions", chat_body("tiny", "Tell me.", max_tokens=40) | {
        "n": 3, "temperature": 1, "seed": 5, "logprobs": True, "top_logprobs": 2, "thinking_token_budget": 4,
        "return_token_ids": True, "structured_outputs": {"regex": "[a-d]{3}"}})
    assert answer["usage"]["completion_tokens_details"]["reasoning_tokens"] == 12
    end, = served.tokens(END)
    for choice in answer["choices"]:
        assert re.fullmatch("[a-d]{3}", choice["message"]["content"])
        assert choice["token_ids"][4] == end and len(choice["logprobs"]["content"]) == len(choice["token_ids"])
        forced = choice["logprobs"]["content"][4]
        assert forced["token"] == END and forced["logprob"] == 0 and len(forced["top_logprobs"]) == 1


def test_guessed_tokens_do_not_change_thoughts(folder, served):
    guessing = Thinker(folder, "--speculative-config", '{"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 2, '
                       '"prompt_lookup_min": 1}', "--max-num-batched-tokens", "16")
    try:
        for fields in ({"thinking_token_budget": 9}, {"thinking_token_budget": 11, "structured_outputs": {"regex": "(ab|cd){9}"}},
                       {"thinking_token_budget": 7, "logit_bias": served.always("a"), "stop": ["aaaa"]}):
            assert guessing.ask(**fields) == served.ask(**fields)
            assert guessing.stream(**fields) == served.stream(**fields)
        assert guessing.metric("vllm:spec_decode_num_accepted_tokens_total") > 0
    finally:
        guessing.stop()


def test_responses_have_items_of_reasoning(served, client):
    fields = {"thinking_token_budget": 5, "logit_bias": served.always("a"), "ignore_eos": True}
    answer = client.responses.create(model="tiny", input="Tell me.", max_output_tokens=12, temperature=0, extra_body=fields)
    thought, message = answer.output
    assert (thought.type, thought.content[0].type, thought.content[0].text, thought.summary) == ("reasoning", "reasoning_text", "a" * 5, [])
    assert message.type == "message" and answer.output_text == "a" * 6
    assert answer.usage.output_tokens_details.reasoning_tokens == 5
    with client.responses.create(model="tiny", input="Tell me.", max_output_tokens=12, temperature=0, stream=True,
                                 extra_body=fields) as stream:
        events = list(stream)
    assert "".join(event.delta for event in events if event.type == "response.reasoning_text.delta") == "a" * 5
    done, = [event for event in events if event.type == "response.reasoning_text.done"]
    assert done.text == "a" * 5 and done.output_index == 0
    assert [event.item.type for event in events if event.type == "response.output_item.done"] == ["reasoning", "message"]
    off = client.responses.create(model="tiny", input="Tell me.", max_output_tokens=4, reasoning={"effort": "none"})
    assert [item.type for item in off.output] == ["message"]
    again = client.responses.create(model="tiny", input=[*QUESTION, *answer.output, {"role": "user", "content": "More."}], max_output_tokens=2)
    assert again.usage.output_tokens == 2


def test_thoughts_of_earlier_turns_reach_the_template(served):
    def prompt(**fields):
        turns = [*QUESTION, {"role": "assistant", "content": "", "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "feed", "arguments": "{}"}}]} | fields,
            {"role": "tool", "tool_call_id": "1", "content": "done"}]
        ids = served.post("/tokenize", {"model": "tiny", "messages": turns})["tokens"]
        return served.post("/detokenize", {"model": "tiny", "tokens": ids})["prompt"]
    for name in ("reasoning", "reasoning_content"):
        assert "\nI wonder\n" in prompt(**{name: "I wonder"})
    assert "I wonder" not in prompt()


@pytest.mark.parametrize(("field", "value"), [
    ("thinking_token_budget", -2), ("thinking_token_budget", "many"), ("thinking_token_budget", 1.5), ("enable_thinking", "no"),
    ("reasoning_effort", "huge"), ("reasoning_effort", 3), ("include_reasoning", "x"), ("separate_reasoning", [])])
def test_bad_values_are_named(served, field, value):
    status, text = served.request("POST", "/v1/chat/completions", chat_body("tiny", "a") | {field: value})
    assert status == 400 and json.loads(text)["error"]["param"] == field and field in json.loads(text)["error"]["message"]


def test_switches_that_differ_are_refused(served):
    body = chat_body("tiny", "a") | {"enable_thinking": True, "chat_template_kwargs": {"enable_thinking": False}}
    status, text = served.request("POST", "/v1/chat/completions", body)
    assert status == 400 and json.loads(text)["error"]["param"] == "enable_thinking"
    body = {"model": "tiny", "input": "a", "reasoning": {"effort": "huge"}}
    status, text = served.request("POST", "/v1/responses", body)
    assert status == 400 and json.loads(text)["error"]["param"] == "reasoning"
