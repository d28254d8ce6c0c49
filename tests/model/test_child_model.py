"""The real litellm in its real child, against a provider on loopback."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from pathlib import Path

import pytest
import pytest_asyncio
from support.anthropic_wire import SIGNATURE
from support.provider import Answer, Provider, ToolCall, dead_url

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
from tui_agent.model.child import ChildModel, ModelStatus
from tui_agent.model.client import (
    CallChunk,
    Chunk,
    EndChunk,
    ModelRequest,
    ReasoningChunk,
    RetryChunk,
    TextChunk,
    TokenCount,
    UsageChunk,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")
SECRET = "sk-proj-0123456789abcdefghij"
MODEL = "openai/test-model"
SPY = """
import os, sys
log = os.open(os.environ["SPY_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
def spy(event, args):
    if event == "socket.connect":
        os.write(log, f"{args[1]!r}\\n".encode())
    elif event == "socket.getaddrinfo":
        os.write(log, f"{args[:2]!r}\\n".encode())
sys.addaudithook(spy)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Provider]:
    with Provider() as provider:
        yield provider


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a spy in the child writes every address that anything there looks up or connects to."""
    folder = tmp_path_factory.mktemp("spy")
    (folder / "sitecustomize.py").write_text(SPY)
    return folder / "log"


@pytest.fixture(scope="module")
def statuses() -> list[ModelStatus]:
    return []


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model(server: Provider, log: Path, statuses: list[ModelStatus]) -> AsyncGenerator[ChildModel, None]:
    """One child for all tests here: litellm takes seconds to import."""
    environment = {
        **server.environment,
        "OPENAI_API_KEY": SECRET,
        "HOSTED_VLLM_API_BASE": dead_url(),
        "ANTHROPIC_API_KEY": "test",
        "SPY_LOG": str(log),
        "PYTHONPATH": os.pathsep.join((str(log.parent), str(Path(__file__).parents[2]))),
    }
    model = ChildModel(environment=environment, on_status=statuses.append)
    await model.start()
    yield model
    await model.close()


@pytest.fixture
def provider(server: Provider) -> Provider:
    server.reset()
    return server


def request(words: str = "hello", **options: object) -> ModelRequest:
    return ModelRequest(
        **{"model": MODEL, "messages": ({"role": "user", "content": words},), **options}  # ty: ignore[invalid-argument-type]
    )


async def answer(model: ChildModel, asked: ModelRequest | None = None) -> list[Chunk]:
    return [chunk async for chunk in model.stream(asked or request())]


def text(chunks: list[Chunk]) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_answer_streams_in_pieces_and_ends_with_usage(model: ChildModel, provider: Provider) -> None:
    provider.answer(Answer("one two three", usage=(1000, 3, 900)))
    chunks = await answer(model)
    assert chunks == [
        TextChunk("one"),
        TextChunk(" two"),
        TextChunk(" three"),
        UsageChunk(input=1000, output=3, cached=900, cost=None),
        EndChunk("stop"),
    ]


async def test_the_first_piece_is_here_before_the_last_was_sent(
    model: ChildModel, provider: Provider
) -> None:
    provider.answer(Answer("one two", hold_after=1))
    async with aclosing(model.stream(request())) as stream:
        assert await anext(stream) == TextChunk("one")
        provider.release()
        assert await anext(stream) == TextChunk(" two")


async def test_the_price_comes_from_litellms_own_table(model: ChildModel, provider: Provider) -> None:
    provider.answer(Answer("one", usage=(1_000_000, 0, 0)))
    chunks = await answer(model, request(model="openai/gpt-4o"))
    usage = next(chunk for chunk in chunks if isinstance(chunk, UsageChunk))
    assert usage.cost == pytest.approx(2.5)


async def test_function_calls_come_piece_by_piece(model: ChildModel, provider: Provider) -> None:
    calls = (ToolCall("read_files", {"actions": [1, 2, 3]}), ToolCall("set_todos", {"todos": []}))
    provider.answer(Answer("Looking.", calls=calls))
    tool = {"type": "function", "function": {"name": "read_files", "parameters": {"type": "object"}}}
    chunks = await answer(model, request(tools=(tool,)))
    pieces = [chunk for chunk in chunks if isinstance(chunk, CallChunk)]
    named = [(piece.index, piece.id, piece.name) for piece in pieces if piece.name]
    assert named == [(0, "call_0", "read_files"), (1, "call_1", "set_todos")]
    for index, call in enumerate(calls):
        assert "".join(piece.arguments for piece in pieces if piece.index == index) == call.text
    assert chunks[-1] == EndChunk("tool_calls")
    body = provider.requests[0].body
    assert body["tools"] == [tool]
    assert set(body) == {"model", "messages", "stream", "stream_options", "tools"}


async def test_reasoning_is_kept_apart_from_the_answer(model: ChildModel, provider: Provider) -> None:
    provider.answer(Answer("four", reasoning="two and two"))
    chunks = await answer(model)
    assert "".join(chunk.text for chunk in chunks if isinstance(chunk, ReasoningChunk)) == "two and two "
    assert text(chunks) == "four"


async def test_a_json_schema_is_passed_on(model: ChildModel, provider: Provider) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    provider.answer("{}")
    await answer(model, request(schema=schema))
    sent = provider.requests[0].body["response_format"]
    assert sent["type"] == "json_schema"
    assert sent["json_schema"]["schema"] == schema
    assert sent["json_schema"]["strict"] is False


async def test_a_server_that_takes_no_schema_is_asked_without(model: ChildModel, provider: Provider) -> None:
    refusal = Answer(status=400, message="'response_format.type' must be 'text'")
    provider.answer(refusal, "first", "second")
    asked = request(model="openai/schemaless", schema={"type": "object", "properties": {}})
    assert text(await answer(model, asked)) == "first"
    assert text(await answer(model, asked)) == "second"
    formats = ["response_format" in received.body for received in provider.requests]
    assert formats == [True, False, False], "asked once with, and not again"


async def test_the_request_holds_what_was_given_and_nothing_else(
    model: ChildModel, provider: Provider
) -> None:
    provider.answer("ok")
    messages = ({"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"})
    await answer(model, request(messages=messages))
    assert provider.requests[0].body == {
        "model": "test-model",
        "messages": list(messages),
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_many_requests_at_once_each_get_their_own_answer(model: ChildModel, provider: Provider) -> None:
    provider.answer(*(lambda received: Answer(f"to {received.last_text}") for _ in range(12)))
    answers = await asyncio.gather(*(answer(model, request(f"number {n}")) for n in range(12)))
    assert [text(chunks) for chunks in answers] == [f"to number {n}" for n in range(12)]


async def test_closing_the_stream_hangs_up(model: ChildModel, provider: Provider) -> None:
    provider.answer(Answer("one two three", hang_after=1))
    async with aclosing(model.stream(request())) as stream:
        assert await anext(stream) == TextChunk("one")
    assert await asyncio.to_thread(provider.requests[0].gone.wait, 20)


async def test_stopping_before_the_first_piece_hangs_up(model: ChildModel, provider: Provider) -> None:
    provider.answer(Answer(hang=True))
    asking = asyncio.create_task(answer(model))
    received = (await asyncio.to_thread(provider.wait_for, 1))[0]
    asking.cancel()
    assert await asyncio.to_thread(received.gone.wait, 20)


# ── failures ─────────────────────────────────────────────────────────────────────────────────────────────


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
    with pytest.raises(RequestRejected, match="which provider nonsense belongs to"):
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
    chunks = []
    with pytest.raises(TimedOut):
        async for chunk in model.stream(request(timeout=0.3)):
            chunks.append(chunk)  # noqa: PERF401 (what came before the error is what is looked at)
    assert text(chunks) == "one"
    assert await asyncio.to_thread(provider.requests[0].gone.wait, 20)


async def test_a_rate_limit_is_waited_for_with_a_countdown(model: ChildModel, provider: Provider) -> None:
    provider.answer(Answer(status=429, retry_after=2), "done")
    chunks = await answer(model)
    waits = [(chunk.attempt, chunk.seconds) for chunk in chunks if isinstance(chunk, RetryChunk)]
    assert waits == [(2, 2.0), (2, 1.0)]
    assert text(chunks) == "done"


async def test_a_fault_of_the_provider_is_tried_again(model: ChildModel, provider: Provider) -> None:
    faults = [Answer(status=status, retry_after=0) for status in (500, 502, 503, 529)]
    provider.answer(*faults, "done")
    assert text(await answer(model)) == "done"
    assert len(provider.requests) == 5


@pytest.mark.parametrize(("status", "kind"), [(429, RateLimited), (503, Unreachable)])
async def test_after_the_last_retry_it_is_an_error(
    model: ChildModel, provider: Provider, status: int, kind: type[ModelError]
) -> None:
    provider.otherwise, before = Answer(status=status, retry_after=0), provider.otherwise
    try:
        with pytest.raises(kind, match="also after asking again 5 times"):
            await answer(model)
    finally:
        provider.otherwise = before
    assert len(provider.requests) == 6


async def test_a_countdown_can_be_stopped(model: ChildModel, provider: Provider) -> None:
    provider.answer(Answer(status=429, retry_after=60), "never asked for")
    async with aclosing(model.stream(request())) as stream:
        assert isinstance(await anext(stream), RetryChunk)
    assert await model._ask("ping", {}) == "pong"
    assert len(provider.requests) == 1


async def test_an_account_without_credit_is_not_waited_for(model: ChildModel, provider: Provider) -> None:
    quota = "You exceeded your current quota, please check your plan and billing details."
    provider.answer(Answer(status=429, message=quota, code="insufficient_quota"))
    with pytest.raises(RateLimited, match="no credit left"):
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
    assert chunks[-1] == EndChunk("cut")
    assert len(provider.requests) == 1, "what had begun to arrive is not silently asked for again"


async def test_a_stream_that_just_ends_is_cut_whatever_litellm_says(
    model: ChildModel, provider: Provider
) -> None:
    """litellm makes up `finish_reason="stop"` here; only `received_finish_reason` on its wrapper tells."""
    provider.answer(Answer("one two three", cut_after=2, cut_cleanly=True))
    chunks = await answer(model)
    assert text(chunks) == "one two"
    assert chunks[-1] == EndChunk("cut")


@pytest.mark.parametrize("cleanly", [True, False])
async def test_a_connection_that_breaks_before_the_first_word(
    model: ChildModel, provider: Provider, cleanly: bool
) -> None:
    provider.answer(Answer("one", cut_after=0, cut_cleanly=cleanly))
    with pytest.raises(Unreachable, match="ended the answer before its first word"):
        await answer(model)


async def test_an_empty_answer(model: ChildModel, provider: Provider) -> None:
    provider.answer(Answer(""))
    with pytest.raises(EmptyReply, match="openai/test-model ended without a word"):
        await answer(model)


async def test_a_refusal_in_words(model: ChildModel, provider: Provider) -> None:
    provider.answer(Answer(refusal="I cannot help with that."))
    with pytest.raises(Refused, match="declined, saying: I cannot help with that"):
        await answer(model)


async def test_a_content_filter_before_and_within_an_answer(model: ChildModel, provider: Provider) -> None:
    provider.answer(Answer("", finish="content_filter"), Answer("Well, ", finish="content_filter"))
    with pytest.raises(Refused, match="refused to answer"):
        await answer(model)
    assert (await answer(model))[-1] == EndChunk("refused")


async def test_an_answer_that_ran_out_of_room(model: ChildModel, provider: Provider) -> None:
    provider.answer(Answer("one two", finish="length"))
    assert (await answer(model))[-1] == EndChunk("length")


# ── a provider with an API of its own ────────────────────────────────────────────────────────────────────

CLAUDE = "anthropic/test-model"


async def test_thought_that_a_provider_wants_back_is_kept_as_it_came(
    model: ChildModel, provider: Provider
) -> None:
    call = ToolCall("read_files", {"actions": []})
    provider.answer(Answer("Looking.", reasoning="two and two", calls=(call,), usage=(1000, 7, 900)))
    chunks = await answer(model, request(model=CLAUDE))
    assert chunks[-1] == EndChunk(
        "tool_calls", ({"type": "thinking", "thinking": "two and two ", "signature": SIGNATURE},)
    )
    assert text(chunks) == "Looking."
    assert "".join(chunk.arguments for chunk in chunks if isinstance(chunk, CallChunk)) == call.text
    usage = next(chunk for chunk in chunks if isinstance(chunk, UsageChunk))
    assert (usage.input, usage.output, usage.cached) == (1000, 7, 900)


async def test_its_stream_that_just_ends_is_cut(model: ChildModel, provider: Provider) -> None:
    provider.answer(Answer("one two three", cut_after=4, cut_cleanly=True))
    chunks = await answer(model, request(model=CLAUDE))
    assert (text(chunks), chunks[-1]) == ("one two", EndChunk("cut"))


async def test_its_overload_is_waited_for(model: ChildModel, provider: Provider) -> None:
    overloaded = Answer(status=529, code="overloaded_error", message="Overloaded", retry_after=1)
    provider.answer(overloaded, "done")
    chunks = await answer(model, request(model=CLAUDE))
    assert [type(chunk) for chunk in chunks[:2]] == [RetryChunk, TextChunk]


@pytest.mark.parametrize(
    ("status", "code", "message", "kind"),
    [
        (401, "authentication_error", "invalid x-api-key", BadKey),
        (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", ContextTooLong),
        (404, "not_found_error", "model: test-model", RequestRejected),
    ],
)
async def test_its_errors(
    model: ChildModel, provider: Provider, status: int, code: str, message: str, kind: type[ModelError]
) -> None:
    provider.answer(Answer(status=status, code=code, message=message))
    with pytest.raises(kind) as caught:
        await answer(model, request(model=CLAUDE))
    assert type(caught.value) is kind


# ── what is known, counted ───────────────────────────────────────────────────────────────────────────────


async def test_what_litellm_knows_of_models(model: ChildModel) -> None:
    known = await model.abilities("anthropic/claude-sonnet-4-5")
    assert known.known and known.tools and known.schema and known.cache_marks
    assert known.window == 200_000
    unknown = await model.abilities(MODEL)
    assert (unknown.known, unknown.window, unknown.tools, unknown.schema) == (False, 0, False, False)


async def test_counting_is_exact_with_the_models_own_vocabulary(model: ChildModel) -> None:
    await model._ask("warm", {})
    counted = await model.count("openai/gpt-4o", ["hello world", "", "<|endoftext|>"])
    assert (counted.counts, counted.exact) == ((2, 0, 7), True)
    assert (await model.count("anthropic/claude-sonnet-4-5", ["hello world"])).exact is False


# ── the child's own life ─────────────────────────────────────────────────────────────────────────────────


async def test_a_server_that_is_not_there(model: ChildModel) -> None:
    with pytest.raises(Unreachable, match=r"hosted_vllm/x cannot be reached: .* and HOSTED_VLLM_API_BASE"):
        await answer(model, request(model="hosted_vllm/x"))


async def test_nothing_is_asked_for_but_on_loopback(model: ChildModel, provider: Provider, log: Path) -> None:
    provider.answer("ok")
    assert text(await answer(model, request(model="openai/gpt-4o"))) == "ok"
    await model.abilities("gemini/gemini-2.5-pro")
    await model.count("openai/gpt-4o", ["hello"])
    lines = (await asyncio.to_thread(log.read_text)).splitlines()
    assert any(str(provider.port) in line for line in lines), "the request itself is seen"
    assert {line for line in lines if "'127.0.0.1'" not in line} == set()


async def test_a_child_that_dies_in_the_middle_says_so_and_comes_back(
    model: ChildModel, provider: Provider, statuses: list[ModelStatus]
) -> None:
    """Until it is warm again counts are estimates, and requests wait."""
    provider.answer("warm", Answer("one two", hang_after=1), "again")
    assert text(await answer(model)) == "warm"
    pid = model.pid
    assert pid is not None
    async with aclosing(model.stream(request())) as stream:
        assert await anext(stream) == TextChunk("one")
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(ModelError, match="in the middle of the answer: what came is kept"):
            await anext(stream)
    assert statuses == ["starting", "ready", "failed"]
    assert await model.count("openai/gpt-4o", ["twelve bytes"]) == TokenCount((3,), exact=False)
    assert text(await answer(model)) == "again"
    assert model.pid != pid
    assert statuses[:4] == ["starting", "ready", "failed", "starting"]
