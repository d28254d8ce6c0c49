"""Recording a model, answering from the recording, and the rehearsal."""

from __future__ import annotations

import asyncio
import json
import stat
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from tui_agent.errors import BadKey, ModelError, UsageError
from tui_agent.files.masking import MASK
from tui_agent.model.client import (
    Abilities,
    CallChunk,
    Chunk,
    EndChunk,
    ModelRequest,
    Pass,
    TextChunk,
    TokenCount,
    UsageChunk,
)
from tui_agent.model.parts import ThinkingPart
from tui_agent.model.recording import RecordedModel, Recorder, prompt_of


class Scripted:
    """A model that says what it is given, one answer a request."""

    def __init__(self, *answers: Sequence[Chunk | ModelError]) -> None:
        self._answers = list(answers)

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def abilities(self, model: str) -> Abilities:
        return Abilities(model, window=1000)

    async def count(self, model: str, texts: Sequence[str], *, wait: bool = False) -> TokenCount:
        return TokenCount((0,) * len(texts), exact=True)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        for item in self._answers.pop(0):
            if isinstance(item, ModelError):
                raise item
            yield item


HELLO = (TextChunk("Hel"), TextChunk("lo"), UsageChunk(10, 2, 5, 0.1), EndChunk("stop"))


def request(words: str, purpose: Pass = "main", **options: Any) -> ModelRequest:
    content = f"## KNOWN FILES\n<user_query>\n{words}\n</user_query>"
    return ModelRequest("openai/x", ({"role": "user", "content": content},), purpose, **options)


async def answer(model: RecordedModel | Recorder, asked: ModelRequest) -> list[Chunk]:
    return [chunk async for chunk in model.stream(asked)]


def text(chunks: list[Chunk]) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))


def write(path: Path, *exchanges: dict[str, Any], **header: Any) -> Path:
    first = {"type": "recording", "version": 1, "model": "m", "protocol": "structured", "window": 9, **header}
    path.write_text("".join(json.dumps(line) + "\n" for line in (first, *exchanges)))
    return path


def exchange(ask: str, reply: str, purpose: str = "main") -> dict[str, Any]:
    chunks = [[0, {"type": "text", "text": reply}], [0, {"type": "end", "reason": "stop"}]]
    return {"type": "exchange", "pass": purpose, "ask": ask, "chunks": chunks}


# ── the recorder ─────────────────────────────────────────────────────────────────────────────────────────


async def test_what_was_recorded_is_answered_again(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    recorder = Recorder(Scripted(HELLO, (BadKey("refused", "check"),)), path)
    assert await answer(recorder, request("hi")) == list(HELLO)
    with pytest.raises(BadKey):
        await answer(recorder, request("again"))
    replay = RecordedModel(path, speed=0)
    assert (await replay.abilities("m")).window == 1000
    assert await answer(replay, request("hi")) == list(HELLO)
    with pytest.raises(BadKey, match="refused: check"):
        await answer(replay, request("again"))


async def test_pauses_are_kept(tmp_path: Path) -> None:
    ticks = iter([0.0, 0.5, 0.75, 0.75, 1.75])
    recorder = Recorder(Scripted(HELLO), tmp_path / "r.jsonl", clock=lambda: next(ticks))
    await answer(recorder, request("hi"))
    (kept,) = RecordedModel(tmp_path / "r.jsonl").recording.exchanges
    assert [seconds for seconds, _ in kept.chunks] == [0.5, 0.25, 0.0, 1.0]


async def test_only_its_owner_can_read_a_recording(tmp_path: Path) -> None:
    await answer(Recorder(Scripted(HELLO), tmp_path / "r.jsonl"), request("hi"))
    assert stat.S_IMODE((tmp_path / "r.jsonl").stat().st_mode) == 0o600


async def test_secrets_are_masked_however_they_are_spread(tmp_path: Path) -> None:
    chunks = (
        TextChunk("use sk-proj-abc"),
        CallChunk(0, "c", "write", '{"api_key": "hunter'),
        TextChunk("DEF0123456789 now"),
        CallChunk(0, arguments='2hunter2"}'),
        EndChunk("stop", parts=(ThinkingPart("ghp_abcdefghijklmnop0123456789", {"signature": "signed"}),)),
    )
    path = tmp_path / "r.jsonl"
    await answer(Recorder(Scripted(chunks), path), request("my key is sk-proj-abcDEF0123456789"))
    written = path.read_text()
    for part in ("abcDEF", "DEF012", "hunter", "ghp_", "signed"):
        assert part not in written
    (kept,) = RecordedModel(path).recording.exchanges
    assert kept.ask == f"my key is {MASK}"
    assert text([chunk for _, chunk in kept.chunks]) == f"use {MASK} now"


async def test_an_answer_that_was_stopped_is_kept_as_cut(tmp_path: Path) -> None:
    recorder = Recorder(Scripted(HELLO), tmp_path / "r.jsonl")
    async with aclosing(recorder.stream(request("hi"))) as stream:
        await anext(stream)
    replayed = await answer(RecordedModel(tmp_path / "r.jsonl", speed=0), request("hi"))
    assert replayed == [TextChunk("Hel"), EndChunk("cut")]


async def test_a_second_recorder_goes_on_in_the_same_file(tmp_path: Path) -> None:
    for words in ("one", "two"):
        await answer(Recorder(Scripted(HELLO), tmp_path / "r.jsonl"), request(words))
    assert [kept.ask for kept in RecordedModel(tmp_path / "r.jsonl").recording.exchanges] == ["one", "two"]


async def test_many_at_once_do_not_mix(tmp_path: Path) -> None:
    recorder = Recorder(Scripted(*[HELLO] * 20), tmp_path / "r.jsonl")
    await asyncio.gather(*(answer(recorder, request(f"number {n}")) for n in range(20)))
    kept = RecordedModel(tmp_path / "r.jsonl").recording.exchanges
    assert {exchange.ask for exchange in kept} == {f"number {n}" for n in range(20)}


# ── the replay ───────────────────────────────────────────────────────────────────────────────────────────


async def test_exchanges_come_in_order_within_a_pass(tmp_path: Path) -> None:
    path = write(
        tmp_path / "r",
        exchange("a", "1"),
        exchange("a", "plan", "plan"),
        exchange("a", "2"),
        exchange("b", "3"),
    )
    model = RecordedModel(path, speed=0)
    assert text(await answer(model, request("a"))) == "1"
    assert text(await answer(model, request("a"))) == "2", "the second step of the same turn"
    assert text(await answer(model, request("a", "plan"))) == "plan"
    assert text(await answer(model, request("b"))) == "3"
    with pytest.raises(ModelError, match=r"has no more answers .main pass., and none to “c”"):
        await answer(model, request("c"))


async def test_another_request_than_the_recorded_one_is_said_with_both(tmp_path: Path) -> None:
    model = RecordedModel(write(tmp_path / "r", exchange("add a test", "1")), speed=0)
    with pytest.raises(ModelError, match="continues with “add a test”, not with “remove it”: send what"):
        await answer(model, request("remove it"))
    assert text(await answer(model, request("add  a\n test"))) == "1", "white space does not matter"


async def test_pauses_are_scaled_and_can_be_stopped(tmp_path: Path) -> None:
    slow = exchange("a", "1")
    slow["chunks"][0][0] = 3600
    path = write(tmp_path / "r", slow, slow)
    waiting = asyncio.create_task(answer(RecordedModel(path), request("a")))
    await asyncio.sleep(0)
    assert not waiting.done()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert text(await answer(RecordedModel(path, speed=1e9), request("a"))) == "1"


async def test_the_speed_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = exchange("a", "1")
    slow["chunks"][0][0] = 3600
    monkeypatch.setenv("TUI_AGENT_REPLAY_SPEED", "0")
    assert text(await answer(RecordedModel(write(tmp_path / "r", slow)), request("a"))) == "1"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read .No such file"),
        ("", "is not a recording .line 1"),
        ('{"type":"session"}\n', "is not a recording .line 1"),
        ('{"type":"recording","version":9}\n', "made by a newer tui-agent"),
        ('{"type":"recording"}\n{"type":"exchange"}\n', "is not a recording .line 2: .*`ask`"),
    ],
)
def test_a_file_that_is_no_recording(tmp_path: Path, content: str | None, message: str) -> None:
    path = tmp_path / "r.jsonl"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UsageError, match=message):
        RecordedModel(path)


def test_the_words_of_a_request() -> None:
    newest = {"role": "user", "content": "<user_query>\nnew\n</user_query>"}
    older = {"role": "user", "content": [{"type": "text", "text": "<user_query>old</user_query>"}]}
    result = {"role": "tool", "content": "file text"}
    files = {"role": "user", "content": '{"type": "read_files"}'}
    assert prompt_of([older, newest]) == "new"
    assert prompt_of([older, result, files]) == "old", "a step within a turn still has the turn's words"
    assert prompt_of([{"role": "user", "content": "plain"}]) == "plain"
    assert prompt_of([]) == ""


# ── the rehearsal ────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def rehearsal(tmp_path: Path) -> RecordedModel:
    exchanges = (exchange("first", "1"), exchange("second", "2a"), exchange("second", "2b"))
    return RecordedModel(write(tmp_path / "r", *exchanges, rehearsal=True), speed=0)


async def test_a_rehearsal_finds_replies_in_any_order(rehearsal: RecordedModel) -> None:
    assert text(await answer(rehearsal, request("second"))) == "2a"
    assert text(await answer(rehearsal, request("second"))) == "2b"
    assert text(await answer(rehearsal, request("first"))) == "1"


async def test_a_rehearsal_says_what_it_can_answer(rehearsal: RecordedModel) -> None:
    await answer(rehearsal, request("first"))
    chunks = await answer(rehearsal, request("write me a poem"))
    reply = json.loads(text(chunks))
    assert "rehearsal" in reply["summary"]
    assert "This is a rehearsal" not in reply["message"], "it is said once"
    assert "- second" in reply["message"] and "- first" not in reply["message"]
    assert reply["nextSteps"] == [{"html": "second", "inputText": "second"}]
    assert chunks[-1] == EndChunk("stop")


async def test_a_rehearsal_that_is_through_says_how_to_begin_anew(rehearsal: RecordedModel) -> None:
    for words in ("first", "second", "second"):
        await answer(rehearsal, request(words))
    reply = json.loads(text(await answer(rehearsal, request("first"))))
    assert "Restart the rehearsal" in reply["message"]
    assert reply["nextSteps"] == []


async def test_a_rehearsal_says_in_a_sentence_that_it_drafts_no_message(rehearsal: RecordedModel) -> None:
    with pytest.raises(ModelError, match="has no recorded commit message"):
        await answer(rehearsal, request("diff --git a/x b/x", "draft"))


async def test_in_the_other_dialect_it_answers_in_plain_words(tmp_path: Path) -> None:
    path = write(tmp_path / "r", exchange("first", "1"), rehearsal=True, protocol="tools")
    reply = text(await answer(RecordedModel(path, speed=0), request("else")))
    assert reply.startswith("This is a rehearsal") and "- first" in reply


async def test_a_plan_that_was_not_recorded_is_an_error_so_that_the_built_in_planner_takes_over(
    rehearsal: RecordedModel,
) -> None:
    with pytest.raises(ModelError, match="no reply for the plan pass"):
        await answer(rehearsal, request("first", "plan"))
