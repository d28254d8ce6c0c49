"""The real model child, both ways, against raw bytes on loopback: however an answer ends, what came is kept."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import zlib
from collections.abc import AsyncIterator

import httpx
import pytest
from support.asking import answer, request, text
from support.endings import ENDINGS, OVERLOADS, TIMEOUT, WIRES, Ending, whole_body
from support.provider import Answer, Provider, RawAnswer, Request, ToolCall, sse

from tui_agent.errors import ModelError, RequestRejected, Unreachable
from tui_agent.model import event_stream
from tui_agent.model.child_model import ChildModel
from tui_agent.model.client import (
    CallChunk,
    Chunk,
    EndChunk,
    ReasoningChunk,
    RetryChunk,
    TextChunk,
    UsageChunk,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")
both_wires = pytest.mark.parametrize("wire", WIRES)
CALLS = (ToolCall("set_todos", {"todos": [{"text": "Ünïcode"}]}), ToolCall("read_files", {"actions": []}))


async def asked_at_once(
    model: ChildModel,
    provider: Provider,
    answers: dict[tuple[str, str], list[RawAnswer | str]],
    timeout: float,
) -> dict[tuple[str, str], list[Chunk]]:
    """Ask for each name over its wire, all at the same time; each gets its own answers, one a request."""

    def script(asked: Request) -> Answer:
        wire = "anthropic" if asked.path.endswith("/messages") else "openai"
        next_one = answers[asked.last_text, wire].pop(0)
        return Answer(next_one) if isinstance(next_one, str) else Answer(raw=next_one)

    provider.answer(*[script] * sum(map(len, answers.values())))
    chunks = await asyncio.gather(
        *(answer(model, request(name, model=f"{wire}/test-model", timeout=timeout)) for name, wire in answers)
    )
    return dict(zip(answers, chunks, strict=True))


def broken_off(ending: Ending, wire: str) -> RawAnswer:
    """An answer that ends so after two of its four words."""
    events = list(sse(Answer("one two three four", usage=(70, 7, 0)), wire))
    return ending.make(events, next(place for place, event in enumerate(events) if b"three" in event))


def check_end(ending: Ending, chunks: list[Chunk]) -> None:
    end = chunks[-1]
    assert isinstance(end, EndChunk)
    if ending.leaves == "all":
        assert (text(chunks), end) == ("one two three four", EndChunk("stop"))
        return
    assert text(chunks) in ("one two", "one"), "a length that is too short loses an event"
    assert end.reason == "cut"
    assert re.search(ending.why, end.why), end.why
    assert "rejected" not in end.why
    assert not any(isinstance(chunk, UsageChunk) for chunk in chunks), "nobody counted, so nothing is said"


@both_wires
@pytest.mark.parametrize(
    "ending", [ending for ending in ENDINGS if not ending.held], ids=lambda ending: ending.name
)
async def test_however_a_stream_ends_its_words_stay_and_the_cause_is_named(
    model: ChildModel, provider: Provider, ending: Ending, wire: str
) -> None:
    provider.answer(Answer(raw=broken_off(ending, wire)))
    check_end(ending, await answer(model, request(model=f"{wire}/test-model")))
    assert len(provider.requests) == 1


async def test_a_stream_that_is_held_open_ends_as_well(model: ChildModel, provider: Provider) -> None:
    """Both wires and all ways at once: each waits for the whole of the time-out, and several of them for longer."""
    provider.answer("what is imported at first takes its time")
    await answer(model)
    held = {ending.name: ending for ending in ENDINGS if ending.held}
    made: dict[tuple[str, str], list[RawAnswer | str]] = {
        (name, wire): [broken_off(ending, wire)] for name, ending in held.items() for wire in WIRES
    }
    for (name, wire), chunks in (await asked_at_once(model, provider, made, TIMEOUT)).items():
        try:
            check_end(held[name], chunks)
        except AssertionError as error:
            error.add_note(f"{name}, {wire}")
            raise
    assert len(provider.requests) == 1 + len(made)


@pytest.mark.parametrize("said", ["", "one two"])
async def test_an_overload_inside_a_stream_is_waited_for_like_one_before_it(
    model: ChildModel, provider: Provider, said: str
) -> None:
    """Every overload over both wires at once: each asks for a wait of a second."""

    def overloaded(overload: str, wire: str) -> RawAnswer:
        events = list(sse(Answer(said or "x"), wire))
        last = max(place for place, event in enumerate(events) if b"two" in event) + 1 if said else 1
        begun = events[: last if said or wire == "anthropic" else 0]
        return RawAnswer((*begun, OVERLOADS[overload]), {"retry-after": "1"})

    made: dict[tuple[str, str], list[RawAnswer | str]] = {
        (overload, wire): [overloaded(overload, wire), "done"] for overload in OVERLOADS for wire in WIRES
    }
    for case, chunks in (await asked_at_once(model, provider, made, timeout=60)).items():
        void = max(place for place, chunk in enumerate(chunks) if isinstance(chunk, RetryChunk))
        assert (text(chunks[:void]), text(chunks[void:])) == (said, "done"), case
        assert chunks[-1] == EndChunk("stop"), case


async def test_an_overload_to_the_last_leaves_what_came(provider: Provider) -> None:
    events = list(sse(Answer("one two"), "openai"))
    model = ChildModel(environment=provider.environment, retries=0)
    provider.answer(Answer(raw=RawAnswer((*events[:1], OVERLOADS["529"]))))
    chunks = await answer(model)
    await model.close()
    assert text(chunks) == "one"
    assert chunks[-1] == EndChunk(
        "cut", why="The provider of openai/test-model ended the answer with an error (Too busy)"
    )


@both_wires
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream", "text/plain"])
async def test_a_whole_body_in_reply_to_a_streaming_request_is_an_answer(
    model: ChildModel, provider: Provider, wire: str, kind: str
) -> None:
    whole = Answer("Here:\n\nit is.", calls=CALLS, usage=(50, 5, 0))
    provider.answer(Answer(raw=whole_body(whole, wire, **{"content-type": kind})))
    chunks = await answer(model, request(model=f"{wire}/test-model"))
    assert text(chunks) == "Here:\n\nit is."
    calls = [chunk for chunk in chunks if isinstance(chunk, CallChunk)]
    assert [call.name for call in calls if call.name] == ["set_todos", "read_files"]
    assert [call.id for call in calls if call.id] == ["call_0", "call_1"]
    assert "".join(call.arguments for call in calls) == "".join(call.text for call in CALLS)
    assert chunks[-1] == EndChunk("tool_calls")
    usage = next(chunk for chunk in chunks if isinstance(chunk, UsageChunk))
    assert (usage.input, usage.output) == (50, 5)


@both_wires
@pytest.mark.parametrize("piece", ["0", "000", "-----", " ", "    ", "\n", "| --- "])
async def test_a_row_of_the_same_is_no_fault(
    model: ChildModel, provider: Provider, wire: str, piece: str
) -> None:
    words = Answer("", chunks=("Begin", *[piece] * 150, "end"))
    provider.answer(words)
    chunks = await answer(model, request(model=f"{wire}/test-model"))
    assert text(chunks) == f"Begin{piece * 150}end"
    assert chunks[-1] == EndChunk("stop")


@both_wires
async def test_a_server_that_shows_that_it_is_there_is_waited_for(
    model: ChildModel, provider: Provider, wire: str
) -> None:
    late = tuple(sse(Answer("late"), wire))
    beats = (b": working\n\n", b'event: ping\ndata: {"type": "ping"}\n\n') * 8
    provider.answer(Answer(raw=RawAnswer((*beats, *late), pause=0.05)))
    chunks = await answer(model, request(model=f"{wire}/test-model", timeout=TIMEOUT))
    assert (text(chunks), chunks[-1]) == ("late", EndChunk("stop"))


@both_wires
@pytest.mark.parametrize("pieces", [(), (b": working\n\n", b": working\n\n"), (b"\n\n",)])
async def test_a_stream_without_a_word(
    model: ChildModel, provider: Provider, wire: str, pieces: tuple[bytes, ...]
) -> None:
    provider.answer(Answer(raw=RawAnswer(pieces)))
    with pytest.raises(Unreachable, match="ended the answer before any text"):
        await answer(model, request(model=f"{wire}/test-model"))


UNPROCESSABLE = {
    "detail": [{"loc": ["body", "messages", 0], "msg": "Input should be a list", "type": "list"}]
}


@both_wires
@pytest.mark.parametrize(
    ("body", "said"),
    [
        (UNPROCESSABLE, "body.messages.0: Input should be a list"),
        ({"detail": "No such field"}, "No such field"),
        ({"error": "Bad field"}, "Bad field"),
        ({"error": {"message": "Bad \x1b[31mfield\x07"}}, r"Bad \[31mfield"),
        ("<html><head><title>x</title></head><body>Bad <b>proxy</b></body></html>", "Bad proxy"),
    ],
)
async def test_what_a_server_says_of_an_error_is_shown(
    model: ChildModel, provider: Provider, wire: str, body: object, said: str
) -> None:
    raw = (body if isinstance(body, str) else json.dumps(body)).encode()
    kind = "text/html" if isinstance(body, str) else "application/json"
    provider.answer(Answer(raw=RawAnswer((raw,), {"content-type": kind}, status=422)))
    with pytest.raises(RequestRejected, match=rf"rejected the request \({said}\)"):
        await answer(model, request(model=f"{wire}/test-model"))


async def test_an_error_whose_body_breaks_off_is_still_that_error(
    model: ChildModel, provider: Provider
) -> None:
    raw = RawAnswer(
        (b'{"error": {"mess',), {"content-length": "900", "content-type": "application/json"}, status=422
    )
    provider.answer(Answer(raw=raw))
    with pytest.raises(RequestRejected, match="rejected the request"):
        await answer(model)


async def test_an_error_in_a_body_that_says_200_is_that_error(model: ChildModel, provider: Provider) -> None:
    raw = RawAnswer(
        (b'{"error": {"message": "No such thing", "code": 400}}',), {"content-type": "application/json"}
    )
    provider.answer(Answer(raw=raw))
    with pytest.raises(ModelError, match="No such thing"):
        await answer(model)


async def test_half_of_a_pair_of_letters_does_not_end_the_answer(
    model: ChildModel, provider: Provider
) -> None:
    """Servers that cut a text at any of its units send a smile in two halves, and sometimes one alone."""
    halves = (rb'"\ud83d"', rb'"\ude00"', rb'" and "', rb'"\ud83d"', rb'" end"')
    events = tuple(
        b'data: {"choices": [{"index": 0, "delta": {"content": %s}, "finish_reason": null}]}\n\n' % half
        for half in halves
    )
    ended = b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n'
    provider.answer(Answer(raw=RawAnswer((*events, ended, b"data: [DONE]\n\n"))))
    chunks = await answer(model)
    assert text(chunks) == "\U0001f600 and \ufffd end"
    assert chunks[-1] == EndChunk("stop")


async def test_reasoning_alone_is_void_when_the_server_is_overloaded(
    model: ChildModel, provider: Provider
) -> None:
    events = list(sse(Answer("", reasoning="two and two"), "openai"))
    provider.answer(Answer(raw=RawAnswer((*events[:2], OVERLOADS["503"]), {"retry-after": "0.01"})), "four")
    chunks = await answer(model)
    kinds = [type(chunk) for chunk in chunks]
    assert set(kinds[: kinds.index(RetryChunk)]) == {ReasoningChunk}
    assert chunks[-1] == EndChunk("stop")
    assert [chunk for chunk in chunks if isinstance(chunk, TextChunk)] == [TextChunk("four")]


async def test_the_time_out_counts_from_when_the_request_is_sent(provider: Provider) -> None:
    """A cold child imports for seconds; a server that answers at once is not too late then."""
    model = ChildModel(environment=provider.environment)
    provider.answer("here")
    chunks = await asyncio.wait_for(answer(model, request(timeout=0.5)), 60)
    await model.close()
    assert text(chunks) == "here"


@both_wires
async def test_a_line_that_does_not_end_cuts_the_answer_long_before_it_fills_the_memory(
    model: ChildModel, provider: Provider, wire: str
) -> None:
    events = list(sse(Answer("one two three", usage=(70, 7, 0)), wire))
    at = next(place for place, event in enumerate(events) if b"three" in event)
    endless = (b"data: " + b"x" * 99_994, *(b"x" * 100_000 for _ in range(90)))
    provider.answer(Answer(raw=RawAnswer((*events[:at], *endless), ends="hold")))
    chunks = await answer(model, request(model=f"{wire}/test-model"))
    assert text(chunks).split() == ["one", "two"]
    assert isinstance(chunks[-1], EndChunk)
    assert (chunks[-1].reason, "an event without an end" in chunks[-1].why) == ("cut", True)


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_a_packed_body_is_unpacked_in_small_pieces(encoding: str) -> None:
    whole = b"x" * 50_000_000
    packed = gzip.compress(whole) if encoding == "gzip" else zlib.compress(whole)

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(packed), 65_536):
            yield packed[at : at + 65_536]

    for most in (1_000_000, len(whole)):
        response = httpx.Response(200, headers={"content-encoding": encoding}, stream=Body(pieces()))
        sizes, came = [], 0
        async for piece in event_stream._unpacked(response):
            sizes.append(len(piece))
            came += len(piece)
            if came >= most:
                break
        assert max(sizes) <= event_stream.MOST_PIECE_BYTES and came - most < event_stream.MOST_PIECE_BYTES


class Body(httpx.AsyncByteStream):
    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self._pieces = pieces

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces
