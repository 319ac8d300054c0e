"""Clients that return typed objects: pydantic-ai, instructor, langchain and guidance."""

import base64
from typing import Annotated, Literal

import guidance
import instructor
import langchain_openai
import openai
import pydantic
import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from pydantic_ai import Agent, BinaryContent, NativeOutput, ToolOutput
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

ASKED = "Tell me."
Pixel = Annotated[int, pydantic.Field(ge=0, le=999)]


class Find(pydantic.BaseModel):
    """A find."""
    label: str = pydantic.Field(max_length=8)
    side: Literal["left", "right"]
    box: tuple[Pixel, Pixel]


def agent(url, name="valora-demo", kind=OpenAIChatModel, **more):
    model = kind(name, provider=OpenAIProvider(base_url=url, api_key="none"))
    return Agent(model, model_settings={"max_tokens": 180, "temperature": 0}, retries=0, **more)


@pytest.mark.parametrize("kind", [OpenAIChatModel, OpenAIResponsesModel])
def test_pydantic_ai_asks_about_pictures(url, digit, answer, kind):
    picture = BinaryContent(data=base64.b64decode(digit.split(",")[1]), media_type="image/png")
    said = agent(url, "digits", kind).run_sync([picture, "Which digit is written here?"])
    assert said.output == answer and said.usage.input_tokens > 0


@pytest.mark.parametrize("output", [NativeOutput, ToolOutput])
@pytest.mark.parametrize("kind", [OpenAIChatModel, OpenAIResponsesModel])
def test_pydantic_ai_returns_objects(url, kind, output):
    assert isinstance(agent(url, kind=kind, output_type=output(Find)).run_sync(ASKED).output, Find)


async def streamed(asker, prompt):
    async with asker.run_stream(prompt) as result:
        return [text async for text in result.stream_text(debounce_by=None)]


def test_pydantic_ai_streams(url):
    import asyncio
    whole = agent(url).run_sync(ASKED).output
    assert asyncio.run(streamed(agent(url), ASKED))[-1] == whole


def test_instructor_returns_objects_in_every_mode(url):
    asked = {"model": "valora-demo", "messages": [{"role": "user", "content": ASKED}], "response_model": Find, "max_tokens": 180,
             "max_retries": 0, "temperature": 0}
    for mode in [instructor.Mode.TOOLS, instructor.Mode.TOOLS_STRICT, instructor.Mode.JSON_SCHEMA]:
        client = instructor.from_openai(openai.OpenAI(base_url=url, api_key="none", max_retries=0), mode=mode)
        assert isinstance(client.chat.completions.create(**asked), Find), mode


def test_langchain_returns_objects_and_calls(url):
    model = langchain_openai.ChatOpenAI(model="valora-demo", base_url=url, api_key="none", max_retries=0, max_tokens=180, temperature=0)
    for method in ["function_calling", "json_schema"]:
        assert isinstance(model.with_structured_output(Find, method=method).invoke(ASKED), Find), method
    caller = model.bind_tools([Find], tool_choice="any", parallel_tool_calls=False)
    said = caller.invoke(ASKED)
    assert said.tool_calls and all(Find.model_validate(call["args"]) for call in said.tool_calls)
    merged = None
    for chunk in caller.stream(ASKED):
        merged = chunk if merged is None else merged + chunk
    assert [call["args"] for call in merged.tool_calls] == [call["args"] for call in said.tool_calls]
    result = ToolMessage("a cat", tool_call_id=said.tool_calls[0]["id"])
    assert model.bind_tools([Find]).invoke([HumanMessage(ASKED), said, result]).usage_metadata["input_tokens"] > 30


def test_langchain_asks_about_pictures(url, question, answer):
    model = langchain_openai.ChatOpenAI(model="digits", base_url=url, api_key="none", max_retries=0, max_tokens=8, temperature=0)
    assert model.invoke(question).content == answer


def test_guidance_answers_and_follows_schemas(url):
    model = guidance.models.OpenAI("valora-demo", api_key="none", base_url=url, echo=False)
    with guidance.user():
        asked = model + ASKED
    with guidance.assistant():
        assert (asked + guidance.gen("said", max_tokens=8))["said"]
        assert isinstance(Find.model_validate_json((asked + guidance.json("found", schema=Find, max_tokens=180))["found"]), Find)


def test_guidance_grammars_in_lark_are_refused_by_name(url):
    """Its class for vLLM writes grammars in llguidance's dialect of Lark; here they are EBNF."""
    model = guidance.models.experimental.VLLMModel("valora-demo", api_key="none", base_url=url, echo=False)
    with guidance.user():
        model += ASKED
    with pytest.raises(openai.BadRequestError, match="Lark"), guidance.assistant():
        model + guidance.select(["cat", "dog"], name="kind")
