"""`tool_choice` when it is absent, null or nonsense."""

import openai
import pytest
from test_peer_chat import SCHEMA, SUM, chat
from test_peer_tokens import WEATHER

from peers import peer

NULL = "openai/chat_completion/test_tool_choice_null.py"


def greedy(client, tools=None, form=None, **choice):
    """An answer; a `tool_choice` of None is sent as null."""
    body = choice | ({"tools": tools} if tools else {}) | ({"structured_outputs": form} if form else {})
    return chat(client, SUM, temperature=0, extra_body=body).choices[0].model_dump()


@peer(NULL, "test_null_tool_choice_defaults_to_auto_like_an_absent_one")
@peer(NULL, "test_null_tool_choice_without_tools_matches_an_absent_one")
def test_null_tool_choice_equals_an_omitted_one(client):
    assert greedy(client, [WEATHER], tool_choice=None) == greedy(client, [WEATHER]) == greedy(client, [WEATHER], tool_choice="auto")
    assert greedy(client, tool_choice=None) == greedy(client)


@peer(NULL, "test_null_tool_choice_does_not_conflict_with_structured_outputs")
def test_null_tool_choice_allows_a_response_format(client):
    assert greedy(client, form={"json": SCHEMA}, tool_choice=None)["message"]["content"].startswith("{")


@peer(NULL, "test_invalid_tool_choice_is_still_rejected")
def test_unknown_tool_choice_is_refused(client):
    with pytest.raises(openai.BadRequestError):
        greedy(client, [WEATHER], tool_choice="bogus")


@peer(NULL, "test_invalid_tool_choice_is_still_rejected[auto without tools]")
def test_tool_choice_without_tools_is_refused(client):
    with pytest.raises(openai.BadRequestError):
        greedy(client, tool_choice="auto")


@peer(NULL, "test_explicit_none_tool_choice_is_untouched")
def test_tool_choice_none_makes_no_call(client):
    assert not greedy(client, [WEATHER], tool_choice="none")["message"].get("tool_calls")
