"""A folder's chat template in the engine: prompt ids against transformers' apply_chat_template, and refusals."""

import json
import shutil

import pytest
import transformers

import checkpoints
from pictures import clip, picture
from programs import Engine, EngineError, generate
from test_generate_base import TEXT

# For a text model: contents are strings. It sets its own variable and uses one from the request.
PLAIN = """{{ bos_token }}{% for m in messages -%}
<{{ m['role'] }}>{{ m['content'] | trim }}</{{ m.role }}>
{% endfor %}{% if mood is defined %}[{{ mood }}]{% endif %}{% if add_generation_prompt %}<assistant>{% endif %}"""
# For a vision-language model: contents are lists of parts, pictures first.
PARTS = """{% for m in messages %}{{ m['role'] | upper }}:
{%- for p in m['content'] | selectattr('type', 'ne', 'text') %} <|vision_start|><|{{ p.type }}_pad|><|vision_end|>{% endfor %}
{%- for p in m['content'] | selectattr('type', 'equalto', 'text') %} {{ p['text'] }}{% endfor %};
{% endfor %}{% if add_generation_prompt %}ASSISTANT:{% endif %}"""
NO_SYSTEM = "{% if messages[0].role == 'system' %}{{ raise_exception('no system prompts, please') }}{% endif %}{{ messages[0].content }}"


def folder_with(models, name, tmp_path, template, place="jinja"):
    folder = shutil.copytree(models[name], tmp_path / "model")
    if place == "jinja":
        (folder / "chat_template.jinja").write_text(template)
    elif place == "processor":
        (folder / "chat_template.json").write_text(json.dumps({"chat_template": template}))
    else:
        named = template if place == "tokenizer" else [{"name": "tool_use", "template": "x"}, {"name": "default", "template": template}]
        (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": named, "bos_token": "<|endoftext|>"}))
    return folder


def reference_ids(template, messages, **variables):
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=checkpoints.tokenizer(), bos_token="<|endoftext|>")
    return tokenizer.apply_chat_template(messages, chat_template=template, add_generation_prompt=True, **variables)


def ask(messages, **more):
    return {"messages": messages, "sampling": {"max_tokens": 1, "temperature": 0}} | more


@pytest.mark.parametrize("place", ["tokenizer", "tokenizer, named"])
def test_text_template_equals_transformers(models, tmp_path, place):
    with Engine(folder_with(models, "text-one-layer", tmp_path, PLAIN, place)) as engine:
        for messages in TEXT.values():
            assert engine.one(ask(messages))["prompt_token_ids"] == reference_ids(PLAIN, messages)
            answer = engine.one(ask(messages, template_variables={"mood": "sunny"}))
            assert answer["prompt_token_ids"] == reference_ids(PLAIN, messages, mood="sunny")


@pytest.mark.parametrize("place", ["jinja", "processor"])
def test_visual_template_keeps_its_order_of_pictures(models, references, tmp_path, place):
    """The template has its own order of pictures and text; each placeholder becomes the tokens of its
    picture."""
    name = "vl-small-patch"
    reference = references[name]
    pads = {reference.family.special_id(f"<|{kind}_pad|>") for kind in ("image", "video")}
    with Engine(folder_with(models, name, tmp_path, PARTS, place)) as engine:
        for content in (["what is", picture(1), "this?"], [picture(2, 80, 30), clip(3, 4), "one"], ["text"]):
            messages = [{"role": "system", "content": ["Be kind."]}, {"role": "user", "content": content}]
            typed = [{"role": m["role"], "content": [{"type": "text", "text": p} if isinstance(p, str) else {"type": next(iter(p))}
                                                     for p in m["content"]]} for m in messages]
            answer = engine.one(ask(messages))["prompt_token_ids"]
            collapsed = [t for i, t in enumerate(answer) if t not in pads or answer[i - 1] != t]
            assert collapsed == reference_ids(PARTS, typed)
            expected = reference.family.prompt(messages, True, reference.processor)[0]
            assert [t for t in answer if t in pads] == [t for t in expected if t in pads]


def test_template_option_takes_precedence_and_errors_name_it(models, tmp_path):
    folder = folder_with(models, "text-one-layer", tmp_path, PLAIN)
    own = tmp_path / "own.jinja"
    own.write_text(NO_SYSTEM)
    answer = generate(folder, "--chat-template", own, "--prompt", "Hi you", "--max-tokens", 1)
    assert answer["prompt_token_ids"] == checkpoints.tokenizer().encode("Hi you").ids
    done = generate(folder, "--chat-template", own, "--system", "Be kind.", "--prompt", "Hi", check=False)
    assert done.returncode == 1 and "no system prompts, please" in done.stderr
    own.write_text("line one\n{% include 'other' %}")
    done = generate(folder, "--chat-template", own, "--prompt", "Hi", check=False)
    assert done.returncode == 1 and "include" in done.stderr and "line 2" in done.stderr
    done = generate(folder, "--chat-template", tmp_path / "absent.jinja", "--prompt", "Hi", check=False)
    assert done.returncode == 1 and "absent.jinja" in done.stderr


def test_template_that_drops_a_picture_is_refused(models, tmp_path):
    folder = folder_with(models, "vl-small-patch", tmp_path, "{{ messages[0].role }}")
    with Engine(folder) as engine, pytest.raises(EngineError, match="leaves out an image"):
        engine.one(ask([{"role": "user", "content": [picture(1), "x"]}]))


def test_built_in_format_refuses_variables(models):
    with Engine(models["text-one-layer"]) as engine, pytest.raises(EngineError, match="mood"):
        engine.one(ask(TEXT["one-turn"], template_variables={"mood": "sunny"}))
