"""The real model child, directly and through litellm, against a provider on loopback: every way to fail."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest
from support.asking import MODEL, SECRET, answer, answering, request, text
from support.provider import Answer, Provider

from tui_agent.errors import (
    BadKey,
    ContextTooLong,
    EmptyReply,
    ModelError,
    RateLimited,
    Refused,
    RequestRejected,
    TimedOut,
    Unreachable,
)
from tui_agent.model.child_model import ChildModel
from tui_agent.model.client import (
    EndChunk,
    RetryChunk,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize("status", [401, 403])
async def test_a_bad_key_names_the_variable_and_never_the_key(
    model: ChildModel, provider: Provider, status: int
) -> None:
    provider.answer(Answer(status=status, message=f"Incorrect API key provided: {SECRET}"))
    with pytest.raises(BadKey, match="check OPENAI_API_KEY") as caught:
        await answer(model)
    assert MODEL in caught.value.what
    assert SECRET not in str(caught.value)
    assert len(provider.requests) == 1


async def test_a_key_that_a_server_repeats_is_masked(model: ChildModel, provider: Provider) -> None:
    provider.answer(Answer(status=400, message=f"unknown field in request with key {SECRET}"))
    with pytest.raises(RequestRejected, match=r"unknown field in request with key \[masked\]"):
        await answer(model)


async def test_a_missing_key_names_the_variable_to_set(model: ChildModel) -> None:
    with pytest.raises(BadKey, match=r"no key for gemini/gemini-2.5-pro: set GEMINI_API_KEY or"):
        await answer(model, request(model="gemini/gemini-2.5-pro"))


async def test_a_model_of_no_provider_is_named(model: ChildModel) -> None:
    with pytest.raises(RequestRejected, match="The provider of nonsense is unknown"):
        await answer(model, request(model="nonsense"))


async def test_a_model_that_the_server_does_not_know(model: ChildModel, provider: Provider) -> None:
    provider.answer(Answer(status=404, message="The model does not exist", code="model_not_found"))
    with pytest.raises(RequestRejected, match="does not know openai/test-model"):
        await answer(model)


async def test_no_answer_in_time(model: ChildModel, provider: Provider) -> None:
    provider.answer(Answer(hang=True))
    with pytest.raises(TimedOut, match=r"sent nothing within 0.2 s: .*request_timeout"):
        await answer(model, request(timeout=0.2))


async def test_silence_in_the_middle_of_an_answer(model: ChildModel, provider: Provider) -> None:
    provider.answer(Answer("one two", hang_after=1))
    chunks = await answer(model, request(timeout=0.8))
    assert text(chunks) == "one"
    assert chunks[-1] == EndChunk("cut", why="openai/test-model sent nothing more within 0.8 s")
    assert await asyncio.to_thread(provider.requests[0].gone.wait, 20)


async def test_a_rate_limit_is_waited_for_with_a_countdown(model: ChildModel, provider: Provider) -> None:
    provider.answer(Answer(status=429, retry_after=2), "done")
    chunks = await answer(model)
    waits = [(chunk.attempt, chunk.seconds) for chunk in chunks if isinstance(chunk, RetryChunk)]
    assert waits == [(2, 2.0), (2, 1.0)]
    assert text(chunks) == "done"


async def test_a_fault_of_the_provider_is_tried_again(model: ChildModel, provider: Provider) -> None:
    for statuses in ((500, 502, 503, 529), (408, 409)):
        asked = len(provider.requests)
        provider.answer(*(Answer(status=status, retry_after=0.01) for status in statuses), "done")
        assert text(await answer(model)) == "done"
        assert len(provider.requests) == asked + len(statuses) + 1


@pytest.mark.parametrize(("status", "kind"), [(429, RateLimited), (503, Unreachable)])
async def test_after_the_last_retry_it_is_an_error(
    model: ChildModel, provider: Provider, status: int, kind: type[ModelError]
) -> None:
    provider.otherwise, before = Answer(status=status, retry_after=0.01), provider.otherwise
    try:
        with pytest.raises(kind, match="even after 5 retries"):
            await answer(model)
    finally:
        provider.otherwise = before
    assert len(provider.requests) == 6


async def test_a_countdown_can_be_stopped(model: ChildModel, provider: Provider) -> None:
    provider.answer(Answer(status=429, retry_after=60), "never asked for")
    async with aclosing(answering(model)) as stream:
        assert isinstance(await anext(stream), RetryChunk)
    assert await model._ask("ping", {}) == "pong"
    assert len(provider.requests) == 1


async def test_an_account_without_credit_is_not_waited_for(model: ChildModel, provider: Provider) -> None:
    quota = "You exceeded your current quota, please check your plan and billing details."
    provider.answer(Answer(status=429, message=quota, code="insufficient_quota"))
    with pytest.raises(RateLimited, match="no credit"):
        await answer(model)
    assert len(provider.requests) == 1


@pytest.mark.parametrize(
    "words",
    [
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    ],
)
async def test_a_request_that_is_too_long(model: ChildModel, provider: Provider, words: str) -> None:
    provider.answer(Answer(status=400, message=words))
    with pytest.raises(ContextTooLong, match="too long for openai/test-model"):
        await answer(model)


async def test_a_broken_connection_ends_the_answer_as_cut(model: ChildModel, provider: Provider) -> None:
    provider.answer(Answer("one two three", cut_after=2))
    chunks = await answer(model)
    assert text(chunks) == "one two"
    why = "The server of openai/test-model broke the connection during the answer"
    assert chunks[-1] == EndChunk("cut", why=why)
    assert len(provider.requests) == 1, "what had begun to arrive is not silently asked for again"


async def test_a_stream_that_just_ends_is_cut_whatever_litellm_says(
    model: ChildModel, provider: Provider
) -> None:
    """litellm makes up `finish_reason="stop"` here; only `received_finish_reason` on its wrapper tells."""
    provider.answer(Answer("one two three", cut_after=2, cut_cleanly=True))
    chunks = await answer(model)
    assert text(chunks) == "one two"
    why = "The server of openai/test-model ended the answer early"
    assert chunks[-1] == EndChunk("cut", why=why)


@pytest.mark.parametrize(("cleanly", "how"), [(True, "ended the answer"), (False, "broke the connection")])
async def test_a_connection_that_breaks_before_the_first_word(
    model: ChildModel, provider: Provider, cleanly: bool, how: str
) -> None:
    provider.answer(Answer("one", cut_after=0, cut_cleanly=cleanly))
    with pytest.raises(Unreachable, match=f"{how} before any text"):
        await answer(model)


async def test_an_empty_answer(model: ChildModel, provider: Provider) -> None:
    provider.answer(Answer(""))
    with pytest.raises(EmptyReply, match="openai/test-model sent an empty answer"):
        await answer(model)


async def test_a_refusal_in_words(model: ChildModel, provider: Provider) -> None:
    provider.answer(Answer(refusal="I cannot help with that."))
    with pytest.raises(Refused, match="declined, saying: I cannot help with that"):
        await answer(model)


async def test_a_content_filter_before_and_within_an_answer(model: ChildModel, provider: Provider) -> None:
    provider.answer(Answer("", finish="content_filter"), Answer("Well, ", finish="content_filter"))
    with pytest.raises(Refused, match="refused to answer"):
        await answer(model)
    why = "The content filter of openai/test-model's provider ended the answer"
    assert (await answer(model))[-1] == EndChunk("refused", why=why)


async def test_an_answer_that_ran_out_of_room(model: ChildModel, provider: Provider) -> None:
    provider.answer(Answer("one two", finish="length"))
    why = "openai/test-model reached the length limit of its answers"
    assert (await answer(model))[-1] == EndChunk("length", why=why)
