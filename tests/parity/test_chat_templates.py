"""src/jinja and src/text/chat_template against jinja2 in transformers' own environment."""

import collections
import copy
import json
import random
import re
import unicodedata

import pytest
import transformers.utils.chat_template_utils as reference
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

import chat_templates as ct
from jinja_grammar import VARIABLES, Grammar
from wide import EVERYTHING

CONVERSATIONS = 60  # per template, with and without generation prompt
TEMPLATES = ct.templates()
# Whether a message's content may be a list or a string, determined by reading the templates.
BOTH = ["gemma3", "gemma3n", "gemma4", "llama3_2_vision", "llama4", "llava", "pixtral", "qwen2_vl", "qwen3_5", "qwen3", "mistral_v1",
        "transformers_qwen2_audio", "llama3"]
LIST_ONLY = ["transformers_smolvlm"]
STRING_ONLY = ["chatml", "phi_4", "deepseek_v2", "cohere", "exaone", "aya", "jamba"]


@pytest.fixture(autouse=True)
def fixed_time(monkeypatch):
    monkeypatch.setattr(reference, "datetime", ct.FixedTime)


@pytest.fixture(scope="module")
def uses():
    answers = ct.ask([{"template": text, "content_use": True} for text in TEMPLATES.values()])
    return dict(zip(TEMPLATES, answers))


def test_corpus_covers_enough_families():
    assert {"llava", "qwen2_vl", "gemma3", "llama3_2_vision", "llama4", "pixtral", "transformers_smolvlm"} <= set(TEMPLATES)


def test_no_template_is_refused(uses):
    assert {name: use for name, use in uses.items() if "refused" in use} == {}


def test_content_types_of_templates_are_detected(uses):
    expected = dict.fromkeys(BOTH, (True, True)) | dict.fromkeys(LIST_ONLY, (True, False))
    assert {name: (uses[name]["list"], uses[name]["string"]) for name in expected if name in uses} == {
        name: forms for name, forms in expected.items() if name in uses}
    assert [name for name in STRING_ONLY if name in uses and uses[name]["list"]] == []


@pytest.mark.parametrize("name", TEMPLATES)
def test_published_template_renders_as_in_transformers(name, uses):
    rng = random.Random(f"template {name}")
    template = TEMPLATES[name]
    flags = ct.variables_of(template)
    requests, expected = [], []
    for _ in range(CONVERSATIONS):
        messages = ct.random_conversation(rng)
        for prompt in (False, True):
            kwargs = {flag: rng.choice([True, False]) for flag in flags if rng.random() < 0.5}
            requests.append({"template": template, "messages": messages, "special_tokens": ct.TOKENS,
                             "add_generation_prompt": prompt, "chat_template_kwargs": kwargs} | ct.PLACEHOLDERS)
            expected.append(ct.render(template, ct.in_form(messages, uses[name]), prompt, **ct.TOKENS, **kwargs))
    for request, answer, text in zip(requests, ct.ask(requests), expected):
        ct.expect_same(answer, text, request["messages"])
    rendered = collections.Counter(not isinstance(text, Exception) for text in expected)
    assert rendered[True] >= len(expected) // 10, expected[:4]


TOOL_TEMPLATES = [name for name, text in TEMPLATES.items() if re.search(r"\btools\b", text)]
TOOLS = [{"type": "function", "function": {"name": "look", "description": "Look at a place, 'there'.", "parameters": {
            "type": "object", "properties": {"place": {"type": "string", "description": "é & <b>"}, "at": {"type": "integer"}},
            "required": ["place"]}}},
         {"type": "function", "function": {"name": "stop", "description": "", "parameters": {"type": "object", "properties": {}}}}]


def conversation_with_tools(rng):
    messages = [{"role": "system", "content": ct.random_text(rng)}] if rng.random() < 0.5 else []
    messages.append({"role": "user", "content": "Where? " + ct.random_text(rng)})
    for number in range(rng.randint(0, 2)):
        calls = [{"id": f"call{number}{index:04}", "type": "function",
                  "function": {"name": "look", "arguments": {"place": ct.random_text(rng), "at": index, "more": [1.5, None, {}]}}}
                 for index in range(rng.choice([1, 1, 2]))]
        messages.append({"role": "assistant", "content": rng.choice(["", "I look."]), "tool_calls": calls})
        messages += [{"role": "tool", "tool_call_id": call["id"], "content": ct.random_text(rng)} for call in calls]
        if rng.random() < 0.5:
            messages += [{"role": "assistant", "content": ct.random_text(rng)}, {"role": "user", "content": "And now?"}]
    return messages


def test_published_templates_render_tools_as_in_transformers(uses):
    rng = random.Random(7)
    assert len(TOOL_TEMPLATES) > 8
    rendered = collections.Counter()
    for name in TOOL_TEMPLATES:
        requests, expected = [], []
        for _ in range(40):
            messages, tools = conversation_with_tools(rng), rng.choice([TOOLS, TOOLS, TOOLS[:1], None])
            sent = copy.deepcopy(messages)
            for message in sent:
                for call in message.get("tool_calls", []):
                    call["function"]["arguments"] = json.dumps(call["function"]["arguments"])
            requests.append({"template": TEMPLATES[name], "messages": sent, "special_tokens": ct.TOKENS, "add_generation_prompt": True,
                             "tools": json.dumps(tools) if tools else ""} | ct.PLACEHOLDERS)
            shaped = [message | form for message, form in zip(messages, ct.in_form(messages, uses[name]), strict=True)]
            expected.append(ct.render(TEMPLATES[name], shaped, True, tools=tools, **ct.TOKENS))
        for request, answer, text in zip(requests, ct.ask(requests), expected, strict=True):
            ct.expect_same(answer, text, (name, request["messages"]))
        rendered[name] = sum(not isinstance(text, Exception) for text in expected)
    assert sum(count > 10 for count in rendered.values()) > 8, rendered


def test_published_templates_continue_the_last_message_as_in_transformers(uses):
    rng = random.Random(8)
    cut = 0
    for name, template in TEMPLATES.items():
        requests, expected = [], []
        for _ in range(12):
            messages = [{"role": "user", "content": "Say it."}, {"role": "assistant", "content": ct.random_text(rng)}]
            requests.append({"template": template, "messages": messages, "special_tokens": ct.TOKENS, "continue_final_message": True}
                            | ct.PLACEHOLDERS)
            expected.append(ct.render(template, ct.in_form(messages, uses[name]), False, continue_final_message=True, **ct.TOKENS))
        for request, answer, text in zip(requests, ct.ask(requests), expected, strict=True):
            ct.expect_same(answer, text, (name, request["messages"]))
            cut += isinstance(text, str)
    assert cut > 100


OURS_ALONE = ("is not supported", "are not supported", "no fixed text to print", "64 bits")  # messages about unsupported features


COUNT = 6000 if EVERYTHING else 1500


def test_random_templates_render_as_in_jinja():
    """Small templates from a grammar over all constructs: same text, or an error on both sides."""
    rng = random.Random(2024)
    templates = [Grammar(rng).template() for _ in range(COUNT)]
    answers = ct.ask([{"template": text, "variables": VARIABLES} for text in templates])
    environment, outcomes = ct.environment(), collections.Counter()
    for template, answer in zip(templates, answers):
        outcomes[compare(environment, template, answer)] += 1
    assert outcomes["same"] > COUNT / 2 and outcomes["fault"] > COUNT / 20 > outcomes["unsupported"], outcomes


def compare(environment, template, answer):
    said = answer.get("error", answer.get("refused", ""))
    if any(words in said for words in OURS_ALONE):
        return "unsupported"
    try:
        expected = environment.from_string(template).render(**copy.deepcopy(VARIABLES))  # |indent changes a list in place
    except Exception as error:  # templates can raise any exception
        assert "rendered" not in answer, (template, answer, error)
        return "fault"
    assert answer.get("rendered") == expected, (template, answer, expected)
    return "same"


CHARACTERS = [chr(c) for c in range(1, 0x110000) if unicodedata.category(chr(c)) not in ("Cn", "Cs")]


@pytest.mark.parametrize("method", ["upper", "lower", "title", "capitalize", "swapcase", "isupper", "islower", "isalpha", "isdigit",
                                    "isdecimal", "isnumeric", "isalnum", "isspace", "__repr__"])
def test_string_methods_equal_python_on_every_character(method):
    template = "{% for c in s %}{{ " + ("[c]" if method == "__repr__" else f"c.{method}()") + " }}\0{% endfor %}"
    chunks = [CHARACTERS[i:i + 8192] for i in range(0, len(CHARACTERS), 8192)]
    answers = ct.ask([{"template": template, "variables": {"s": "".join(chunk)}} for chunk in chunks])
    for chunk, answer in zip(chunks, answers):
        expected = [f"[{c!r}]" if method == "__repr__" else str(getattr(c, method)()) for c in chunk]
        assert answer["rendered"].split("\0")[:-1] == expected


def test_template_and_special_tokens_of_a_folder_equal_transformers(tmp_path):
    """A folder's template and special tokens must be those of transformers' tokenizer."""
    Tokenizer(models.BPE()).save(str(tmp_path / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": {"__type": "AddedToken", "content": "<s>"}, "eos_token": "</s>",
              "pad_token": None, "additional_special_tokens": ["<a>"],
              "chat_template": [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]}
    for change in [{}, {"chat_template": "one"}, {"added_tokens_decoder": {}}, {"chat_template.jinja": "{{ 1 }}\n"},
                   {"special_tokens_map.json": {"eos_token": "<end>", "unk_token": {"content": "<unk>"}}}, {"bos_token": None}]:
        for name, value in change.items():
            if "." in name:
                (tmp_path / name).write_text(value if isinstance(value, str) else json.dumps(value))
            else:
                config[name] = value
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
        tokenizer = PreTrainedTokenizerFast.from_pretrained(tmp_path)
        answer = ct.ask([{"folder": str(tmp_path)}])[0]
        assert answer == {"template": tokenizer.get_chat_template(), "special_tokens": tokenizer.special_tokens_map}, change
