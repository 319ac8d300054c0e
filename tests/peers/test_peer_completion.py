"""Plain completions, token ids in answers, and refused prompts."""

import openai
import pytest

from peers import SPECIAL, peer

COMPLETION = "openai/completion/test_completion.py"
VALIDATION = "openai/completion/test_prompt_validation.py"
EMPTY = "openai/completion/test_empty_prompt_list.py"
TOKEN_IDS = "openai/basic/test_return_token_ids.py"
IDS = [5, 6, 7, 8, 9]
SCHEMA_WITH_TEXT = {"type": "object", "required": ["brand"], "properties": {"brand": {"type": "string"}, "wheels": "four"}}
GRAMMAR_WITHOUT_A_RULE = 'root ::= nowhere\n\ntable ::= "t1" | "t2"\n'


def complete(client, prompt="Hello, my name is", **fields):
    extra = {"ignore_eos": True, "logit_bias": SPECIAL} | fields.pop("extra_body", {})
    return client.completions.create(model="demo", prompt=prompt, **{"max_tokens": 5, "temperature": 0} | fields, extra_body=extra)


@peer(COMPLETION, "test_single_completion")
def test_completion_is_answered(client, tokenizer):
    answer = complete(client)
    prompt = len(tokenizer.encode("Hello, my name is"))
    assert answer.id and len(answer.choices) == 1
    assert answer.choices[0].finish_reason == "length"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (prompt, 5, prompt + 5)
    assert answer.usage.prompt_tokens_details.cached_tokens == 0
    answer = complete(client, IDS)
    assert answer.choices[0].text
    assert getattr(answer.choices[0], "prompt_logprobs", None) is None


@peer(COMPLETION, "test_no_logprobs")
def test_null_logprobs_returns_none(client):
    assert complete(client, IDS, logprobs=None).choices[0].logprobs is None


@peer(COMPLETION, "test_zero_logprobs")
def test_zero_logprobs_returns_only_the_chosen_token(client):
    logprobs = complete(client, IDS, logprobs=0).choices[0].logprobs
    assert len(logprobs.token_logprobs) == 5
    assert len(logprobs.top_logprobs[0]) == 1


@peer(COMPLETION, "test_some_logprobs")
def test_five_logprobs_are_returned(client):
    logprobs = complete(client, IDS, logprobs=5).choices[0].logprobs
    assert len(logprobs.token_logprobs) == 5
    assert 5 <= len(logprobs.top_logprobs[0]) <= 6


@peer(COMPLETION, "test_too_many_completion_logprobs")
def test_more_than_twenty_logprobs_are_refused(client):
    with pytest.raises(openai.APIError):
        complete(client, IDS, logprobs=21)
    with pytest.raises(openai.APIError):
        list(complete(client, IDS, logprobs=30, stream=True))
    assert complete(client, IDS).choices[0].text is not None


@peer(COMPLETION, "test_completion_streaming")
def test_a_stream_ends_with_its_reason_and_text(client):
    chunks = list(complete(client, "What is an LLM?", stream=True))
    assert [chunk.choices[0].finish_reason for chunk in chunks].count("length") == 1
    assert chunks[-1].choices[0].finish_reason == "length"
    assert chunks[-1].choices[0].text
    assert "".join(chunk.choices[0].text for chunk in chunks) == complete(client, "What is an LLM?").choices[0].text


def lengths_differ(lengths, texts):
    assert len(lengths) == 3
    assert len(set(lengths)) > 1, lengths
    assert len(set(texts)) == 3


@peer(COMPLETION, "test_parallel_no_streaming")
def test_three_samples_are_returned(client):
    answer = complete(client, "What is an LLM?", n=3, temperature=1, seed=42, max_tokens=50, logprobs=0,
                      extra_body={"ignore_eos": False, "logit_bias": {}})
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert all(choice.finish_reason for choice in answer.choices)
    lengths_differ([len(choice.logprobs.tokens) for choice in answer.choices], [choice.text for choice in answer.choices])


@peer(COMPLETION, "test_parallel_streaming")
def test_three_samples_are_streamed(client):
    texts, lengths, reasons = [""] * 3, [0] * 3, [None] * 3
    for chunk in complete(client, "What is an LLM?", n=3, temperature=1, seed=42, max_tokens=50, stream=True,
                          extra_body={"ignore_eos": False, "logit_bias": {}}):
        choice = chunk.choices[0]
        texts[choice.index] += choice.text
        lengths[choice.index] += 1
        reasons[choice.index] = choice.finish_reason or reasons[choice.index]
    assert all(reasons) and max(lengths) <= 50
    lengths_differ(lengths, texts)


def usages(client, options):
    return list(complete(client, "What is the capital of France?", stream=True, stream_options=options))


@peer(COMPLETION, "test_completion_stream_options")
def test_streamed_usage_follows_its_options(client):
    for options in ({"include_usage": False, "continuous_usage_stats": False}, {"include_usage": False, "continuous_usage_stats": True}, {}):
        assert all(chunk.usage is None for chunk in usages(client, options))
    for continuous in (False, True):
        chunks = usages(client, {"include_usage": True, "continuous_usage_stats": continuous})
        assert chunks[-1].choices == [] and chunks[-2].choices[0].finish_reason
        for chunk in chunks if continuous else chunks[-1:]:
            assert chunk.usage.prompt_tokens > 0 and chunk.usage.completion_tokens > 0
            assert chunk.usage.total_tokens == chunk.usage.prompt_tokens + chunk.usage.completion_tokens
        if not continuous:
            assert all(chunk.usage is None for chunk in chunks[:-1])
    for options in ({"include_usage": None}, {"include_usage": True}, {"continuous_usage_stats": None}, {"continuous_usage_stats": True}):
        with pytest.raises(openai.BadRequestError):
            complete(client, stream=False, stream_options=options)


@peer(COMPLETION, "test_batch_completions[lists and streams]")
def test_two_prompts_are_answered_in_order(client):
    for prompts in (["Hello, my name is"] * 2, [IDS] * 2):
        one, two = complete(client, prompts).choices
        assert one.text == two.text
        texts = ["", ""]
        for chunk in complete(client, prompts, stream=True):
            assert len(chunk.choices) == 1
            texts[chunk.choices[0].index] += chunk.choices[0].text
        assert texts == [one.text, two.text]


@peer(COMPLETION, "test_echo_logprob_completion[the text]")
def test_echo_begins_with_the_prompt(client, tokenizer):
    for prompt in ("Hello, my name is", tokenizer.encode("Hello there")):
        text = prompt if isinstance(prompt, str) else tokenizer.decode(prompt)
        assert complete(client, prompt, echo=True).choices[0].text.startswith(text)


@peer(COMPLETION, "test_invalid_json_schema")
def test_invalid_schema_is_refused(client):
    with pytest.raises(openai.APIError):
        complete(client, extra_body={"structured_outputs": {"json": SCHEMA_WITH_TEXT}})


@peer(COMPLETION, "test_invalid_regex")
def test_invalid_regex_is_refused(client):
    with pytest.raises(openai.APIError):
        complete(client, stop=["\n"], extra_body={"structured_outputs": {"regex": r"[.*"}})


@peer(COMPLETION, "test_invalid_grammar")
def test_invalid_grammar_is_refused(client):
    with pytest.raises(openai.APIError):
        complete(client, extra_body={"structured_outputs": {"grammar": GRAMMAR_WITHOUT_A_RULE}})


@peer("openai/completion/test_completion_text_offset.py", "test_stream_text_offset_matches_non_stream_with_stop_holdback")
def test_streamed_text_offsets_equal_the_whole_ones(client):
    fields = dict(logprobs=0, stop=["\n\n"], max_tokens=12)
    whole = complete(client, **fields).choices[0].logprobs
    streamed = [offset for chunk in complete(client, **fields, stream=True) for offset in chunk.choices[0].logprobs.text_offset]
    expected = [sum(map(len, whole.tokens[:i])) for i in range(len(whole.tokens))]
    assert streamed == whole.text_offset == expected


@peer(VALIDATION, "test_empty_prompt")
def test_missing_prompt_is_refused(client):
    with pytest.raises(openai.BadRequestError, match="prompt"):
        complete(client, None, extra_body={"prompt_embeds": []})


@peer(VALIDATION, "test_out_of_vocab_token_ids")
def test_unknown_prompt_tokens_are_refused(client):
    with pytest.raises(openai.BadRequestError, match="vocabulary"):
        complete(client, [999999])


@peer(VALIDATION, "test_out_of_vocab_token_ids[the words]")
def test_unknown_token_message_says_out_of_vocabulary(client):
    with pytest.raises(openai.BadRequestError) as error:
        complete(client, [999999])
    assert "out of vocabulary" in str(error.value)


@peer(EMPTY, "test_empty_prompt_list_rejected")
def test_empty_prompt_list_is_refused(client):
    with pytest.raises(openai.BadRequestError, match="prompt"):
        complete(client, [])


@peer(EMPTY, "test_nonempty_prompt_list_ok")
def test_list_of_one_prompt_gives_one_choice(client):
    assert len(complete(client, ["hello"]).choices) == 1


EMOJI = "Complete this sentence with emojis: I love coding 🚀"


@peer(TOKEN_IDS, "test_basic_completion_with_emoji")
def test_completion_returns_token_ids_on_request(client, tokenizer):
    choice = complete(client, EMOJI, max_tokens=10, logprobs=1, extra_body={"return_token_ids": True}).choices[0]
    assert choice.prompt_token_ids == tokenizer.encode(EMOJI)
    assert len(choice.token_ids) == 10
    assert tokenizer.decode(choice.token_ids).startswith(choice.text)
    for wish in ({"return_token_ids": False}, {}):
        choice = complete(client, EMOJI, logprobs=1, extra_body=wish).choices[0].model_dump()
        assert choice.get("token_ids") is None and choice.get("prompt_token_ids") is None


@peer(TOKEN_IDS, "test_basic_completion_with_emoji[the field is there]")
def test_prompt_token_ids_are_null_when_not_asked_for(client):
    assert "prompt_token_ids" in complete(client, EMOJI).choices[0].model_dump()


@peer(TOKEN_IDS, "test_comparison_with_prompt_logprobs_and_logprobs[streamed]")
def test_streamed_token_ids_are_those_of_the_logprobs(client):
    ids, named = [], []
    wish = {"return_token_ids": True, "return_tokens_as_token_ids": True}
    for chunk in complete(client, max_tokens=30, stream=True, logprobs=1, extra_body=wish):
        choice = chunk.choices[0]
        ids += choice.token_ids
        named += [int(token.removeprefix("token_id:")) for token in choice.logprobs.tokens]
    assert len(ids) == 30 and ids == named


@peer(TOKEN_IDS, "test_comparison_with_prompt_logprobs_and_logprobs[the prompt of a stream]")
def test_first_stream_event_has_the_prompt_token_ids(client, tokenizer):
    first = next(iter(complete(client, stream=True, extra_body={"return_token_ids": True})))
    assert first.choices[0].model_dump().get("prompt_token_ids") == tokenizer.encode("Hello, my name is")
