"""Published chat templates, conversations for them, and the probe that test_chat_templates.py compares with jinja2.

The templates come from packages that ship them (axolotl, transformers); none is kept here.
"""

import ast
import datetime
import importlib.util
import json
import pathlib
import re
import subprocess

import jinja2
import transformers.utils.chat_template_utils as reference

from programs import find_program

NOW = datetime.datetime(2024, 7, 26, 13, 5, 9)
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
PLACEHOLDERS = {"image_placeholder": "<image>", "video_placeholder": "<video>"}

TEXTS = ["Hello!", "", " ", "  two words \n", "\n\nlines\r\nand\ttabs\n", "Grüße, 世界 🌍 é", "{{ 7 * 7 }}{% if x %}", "a 'b' \"c\" \\ d",
         "<think>\nmaybe\n</think>\n\nyes", "</think>", "<s>[INST] <<SYS>> </s>", "<|im_end|>", "<image>", "x" * 300, "0", "None",
         "Name: value; /no_think", "\u00a0thin\u2009space\u00a0", "1. a\n2. b\n3. c", "ﬁ ß İ Σ"]


def template_in_source(name):
    """The longest template among a processor's string constants, read from the source because the module may import
    packages that are not installed."""
    folder = pathlib.Path(importlib.util.find_spec("transformers").submodule_search_locations[0]) / "models" / name
    tree = ast.parse((folder / f"processing_{name}.py").read_text())
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return max((text for text in texts if "{%" in text and "endfor" in text and "```" not in text), key=len)


def templates():
    """The published templates, by name."""
    found = {}
    spec = importlib.util.find_spec("axolotl")
    if spec:
        folder = pathlib.Path(spec.submodule_search_locations[0]) / "utils" / "chat_templates" / "templates"
        found.update({path.stem: path.read_text() for path in sorted(folder.glob("*.jinja"))})
    for name in ["smolvlm", "qwen2_audio", "llama4"]:
        found[f"transformers_{name}"] = template_in_source(name)
    return found


class FixedTime:
    @staticmethod
    def now():
        return NOW


def ask(requests):
    """The probe's answers to all requests, in order."""
    text = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run([find_program("chat_template_probe")], input=text, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split("\n")[:-1]
    assert len(lines) == len(requests)
    return [json.loads(line) for line in lines]


def environment():
    """transformers' own jinja2 environment."""
    return reference._compile_jinja_template("").environment


def render(template, messages, add_generation_prompt, **variables):
    """The text rendered by transformers, or the error it raises."""
    try:
        rendered, _ = reference.render_jinja_template([messages], chat_template=template,
                                                      add_generation_prompt=add_generation_prompt, **variables)
        return rendered[0]
    except Exception as error:  # templates can raise any exception
        return error


def expect_same(answer, expected, what):
    """Checks that both rendered the same text, or both failed. The messages must agree if the template itself
    raised the error."""
    if isinstance(expected, Exception):
        assert "error" in answer, (what, answer, expected)
        if type(expected) is jinja2.exceptions.TemplateError:
            assert answer["error"] == str(expected), (what, answer)
    else:
        assert answer.get("rendered") == expected, (what, answer, expected)


def random_text(rng):
    return "".join(rng.choice(TEXTS) for _ in range(rng.choice([1, 1, 1, 2])))


def random_content(rng, media):
    if rng.random() < (0.5 if media else 0.9):
        return random_text(rng)
    kinds = ["text", "image", "image", "video"] if media else ["text"]
    parts = [rng.choice(kinds) for _ in range(rng.choice([0, 1, 1, 2, 3, 4]))]
    return [{"type": "text", "text": random_text(rng)} if kind == "text" else {"type": kind} for kind in parts]


def random_conversation(rng, media=True):
    messages = []
    if rng.random() < 0.4:
        messages.append({"role": "system", "content": random_content(rng, media and rng.random() < 0.1)})
    turns = ["user", "assistant"] * 4
    for role in turns[rng.random() < 0.05:rng.randint(1, 6)]:
        messages.append({"role": role, "content": random_content(rng, media and (role == "user" or rng.random() < 0.2))})
    if rng.random() < 0.1:
        messages.insert(rng.randint(0, len(messages)), {"role": rng.choice(["tool", "narrator", "system", "user", "developer"]),
                                                        "content": random_text(rng)})
    return messages or [{"role": "user", "content": random_text(rng)}]


def in_form(messages, use):
    """The messages as valora passes them to a template; `use` says which forms of content the template
    accepts."""
    def content_of(content):
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        media = any(part["type"] != "text" for part in parts)
        if use["list"] and (media or not use["string"]):
            return parts
        return "".join(part["text"] if part["type"] == "text" else PLACEHOLDERS[part["type"] + "_placeholder"] for part in parts)
    return [{"role": message["role"], "content": content_of(message["content"])} for message in messages]


def variables_of(template):
    """Flags read by current templates."""
    return sorted(set(re.findall(r"\b(enable_thinking|add_vision_id|date_string|custom_tools|builtin_tools|keep_past_thinking)\b", template)))
