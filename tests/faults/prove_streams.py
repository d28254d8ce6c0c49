"""Streams that end in every way there is: what is complete is proposed, nothing else is, and the cause is named.

Real sessions over a real model child, in both dialects and over both wires. Each case is one turn whose answer holds
three changes and ends at a random place; what must be there afterwards is counted from the bytes that were sent.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import signal
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS))

from msgspec.structs import replace  # noqa: E402
from support.endings import ENDINGS, OVERLOADS, TIMEOUT, WIRES, Ending, whole_body  # noqa: E402
from support.openai_wire import Answer, RawAnswer, ToolCall  # noqa: E402
from support.provider import Provider, sse  # noqa: E402
from support.trees import until  # noqa: E402

from tests.proofs.tally import WHOLE, Part, Tally  # noqa: E402
from tui_agent.model import local  # noqa: E402
from tui_agent.model.child_model import ChildModel  # noqa: E402
from tui_agent.session import opening  # noqa: E402
from tui_agent.session.opening import Opening  # noqa: E402
from tui_agent.session.session import Session  # noqa: E402

CASES = 500
#: Cases of one session: a killed model process, and each of the other endings once.
AT_ONE = 31
CHANGES = 3
DIALECTS = ("tools", "structured")
SEED = 12
PATIENCE = 300.0
#: Seconds that a model may be silent, over both wires: if an answer ends by itself, no machine is too slow for that. If
#: only the time-out ends it, it is longer each time that it struck before what was sent had come.
SILENT, HELD_OPEN = 120, (1, 4, 16, 64)
#: What breaks the promise that these cases try; each is noticed.
SABOTAGES = ("changes before a cut dropped", "cause of a cut not told")
#: What a model says that was told what of its calls could not be read.
NOTHING_MORE = Answer("That is all.")
#: Endings that may take the last events with them: bytes that nobody has read, or that cannot be unpacked.
TAKE_MORE = {"content-length too short": 1, "packed, damaged": 3, "connection reset": 3}


@dataclass(frozen=True)
class Case:
    """One answer: its events, and how many changes are complete once so many of them have come."""

    answer: Answer
    events: Sequence[bytes]
    paths: tuple[str, ...]
    ends: tuple[int, ...]

    def complete(self, at: int) -> int:
        came = "".join(_words(event) for event in self.events[: max(0, at)])
        return sum(end <= len(came) for end in self.ends)


def prove(tally: Tally, scale: float, part: Part = WHOLE) -> None:
    ways = [(wire, dialect) for wire in WIRES for dialect in DIALECTS]
    sessions = max(1, round(CASES * scale / len(ways) / AT_ONE))
    for wire, dialect, number in part.of([(*way, number) for number in range(sessions) for way in ways]):
        asyncio.run(_prove(tally, wire, dialect, number))


async def _prove(tally: Tally, wire: str, dialect: str, seed: int) -> None:
    chosen = random.Random(f"{SEED} {seed} {wire} {dialect}")
    column = f"{'Anthropic' if wire == 'anthropic' else 'OpenAI'}, {dialect}"
    with (
        TemporaryDirectory(prefix="tui-agent-streams-") as folder,
        Provider() as provider,
        _home(folder, provider),
        _given(SILENT),
    ):
        provider.otherwise = NOTHING_MORE
        session = await _opened(Path(folder) / "work", wire, dialect)
        try:
            trial = _Trial(session, provider, wire, dialect, chosen)
            for number in range(AT_ONE):
                name, held, what = await trial.next(number, killed=number == 0)
                tally.case(name, held, column=column, what=what)
        finally:
            await session.close()


@contextmanager
def _home(folder: str, provider: Provider) -> Generator[None]:
    before = dict(os.environ)
    os.environ.update(provider.environment, TUI_AGENT_HOME=f"{folder}/home", ANTHROPIC_API_KEY="test")
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _given(seconds: float) -> Generator[None]:
    """Let a server on this machine that speaks OpenAI's format be silent for so long."""
    with patch.object(local, "LOCAL_TIMEOUT_SECONDS", seconds):
        yield


async def _opened(workspace: Path, wire: str, dialect: str) -> Session:
    await asyncio.to_thread(workspace.mkdir)
    overrides = (
        f"model={wire}/test-model",
        f"protocol={dialect}",
        "planner_model=none",
        f"request_timeout={SILENT}",
        "context.window=10000000",
    )
    session = await opening.open_session(Opening(workspace, overrides=overrides))
    await session.start_services()
    await session.files.ready()
    return session


class _Trial:
    """One session whose answers are cut, one a turn."""

    def __init__(
        self, session: Session, provider: Provider, wire: str, dialect: str, chosen: random.Random
    ) -> None:
        self._session = session
        self._provider = provider
        self._wire = wire
        self._dialect = dialect
        self._chosen = chosen
        self._kinds: list[object] = []

    async def next(self, number: int, killed: bool) -> tuple[str, bool, str]:
        """One turn: the kind of its ending, whether the promise held, and what was seen."""
        self._provider.reset()  # an answer that an earlier turn did not wait for would be that of this one
        case = _case(number, self._wire, self._dialect)
        at = self._chosen.randrange(1, len(case.events) - 3)
        if killed:
            return await self._killed(case, at)
        kind = self._kind()
        match kind:
            case Ending():
                if kind.held:
                    return await self._held_open(number, at, kind)
                return await self._ended(case, at, kind, SILENT)
            case ("overload", str(name)):
                return await self._overloaded(case, at, name)
            case ("finish", str(reason)):
                return await self._finished(case, at, reason)
        return await self._whole(case)

    def _kind(self) -> object:
        """Every kind comes as often as any other."""
        if not self._kinds:
            self._kinds = [
                *ENDINGS,
                *(("overload", name) for name in OVERLOADS),
                ("finish", "length"),
                ("finish", "content_filter"),
                "whole body",
            ]
            self._chosen.shuffle(self._kinds)
        return self._kinds.pop()

    async def _held_open(self, number: int, at: int, ending: Ending) -> tuple[str, bool, str]:
        core, settings = self._session.core, self._session.core.settings
        for place, seconds in enumerate(HELD_OPEN):
            case = _case(number + place * AT_ONE, self._wire, self._dialect)
            changed = replace(core.loaded, settings=replace(settings, request_timeout=seconds))
            self._session.core = core._replace(loaded=changed)
            with _given(seconds):
                name, held, what = await self._ended(case, at, ending, seconds)
            if held or f"within {seconds} s" not in what:
                break
            self._provider.reset()
        self._session.core = core
        return name, held, what

    async def _ended(self, case: Case, at: int, ending: Ending, seconds: int) -> tuple[str, bool, str]:
        self._provider.answer(Answer(raw=ending.make(case.events, at)))
        await self._turn()
        if ending.leaves == "all":
            return (ending.name, *self._judged(case, CHANGES, CHANGES))
        least = case.complete(at - TAKE_MORE.get(ending.name, 0))
        why = ending.why.replace(f"{TIMEOUT} s", f"{seconds} s")
        began = any(map(_words, case.events[:at]))
        why = f"{why}|before any text" if began else f"{why}|before any text|rejected the request"
        return (ending.name, *self._judged(case, least, case.complete(at), why))

    async def _overloaded(self, case: Case, at: int, name: str) -> tuple[str, bool, str]:
        raw = RawAnswer((*case.events[:at], OVERLOADS[name]), {"retry-after": "0.01"})
        again = Answer(raw=RawAnswer(tuple(case.events)))
        self._provider.answer(Answer(raw=raw), again)
        await self._turn()
        complete = case.complete(at)
        why = "cut off" if complete else ""
        # A call that was cut off is told to the model, which sends all of it again.
        most = CHANGES if self._dialect == "tools" else complete or CHANGES
        held, what = self._judged(case, complete or CHANGES, most, why)
        self._provider.reset()
        return f"overload: {name}", held, what

    async def _finished(self, case: Case, at: int, reason: str) -> tuple[str, bool, str]:
        ended = [
            e for e in sse(Answer("x", finish=reason), self._wire) if b"_reason" in e and reason_in(e, reason)
        ]
        self._provider.answer(Answer(raw=RawAnswer((*case.events[:at], *ended[-1:]))))
        await self._turn()
        complete = case.complete(at)
        return (
            f"finish: {reason}",
            *self._judged(case, complete, complete, "cut off|refused|declined|ran out"),
        )

    async def _whole(self, case: Case) -> tuple[str, bool, str]:
        self._provider.answer(Answer(raw=whole_body(case.answer, self._wire)))
        await self._turn()
        return ("whole body, not streamed", *self._judged(case, CHANGES, CHANGES))

    async def _killed(self, case: Case, at: int) -> tuple[str, bool, str]:
        self._provider.answer(Answer(raw=RawAnswer(tuple(case.events[:at]), ends="hold")))
        models = self._session.models.model
        model = models.inner if isinstance(models, local.LocalModels) else models
        assert isinstance(model, ChildModel)
        turn = asyncio.create_task(self._turn())
        letters = sum(map(len, map(_words, case.events[:at])))
        # One that is killed before it asks asks again, and its answer ends only by the time-out, after minutes.
        await asyncio.to_thread(self._provider.wait_for, 1)
        await until(lambda: turn.done() or self._session.state.reply.letters >= letters, "its words")
        if model.pid is not None:
            os.kill(model.pid, signal.SIGKILL)
        await turn
        complete = case.complete(at)
        why = "signal 9" if letters else ""  # before any text it may have been asked again
        return ("killed model process", *self._judged(case, complete, complete, why))

    async def _turn(self) -> None:
        self._seen = self._session.state.notices.total
        self._endless = ""
        try:
            async with asyncio.timeout(PATIENCE):
                await self._session.chat.submit(f"turn {self._session.state.turn.number + 1}")
                await self._session.chat.finished()
        except TimeoutError:
            asked = len(self._provider.requests)
            self._endless = f"no end within {PATIENCE:.0f} s, after {asked} requests; "
            await self._session.chat.stop()

    def _judged(self, case: Case, least: int, most: int, why: str = "") -> tuple[bool, str]:
        state = self._session.state
        found = [
            change.path
            for change in state.review.changes
            if change.turn == state.turn.number and change.is_open
        ]
        new = (
            state.notices.items[-(state.notices.total - self._seen) :]
            if state.notices.total > self._seen
            else ()
        )
        said = " · ".join([*(notice.text for notice in new), state.turn.error])
        kept = found == list(case.paths[: len(found)]) and least <= len(found) <= most
        named = not why or re.search(why, said) is not None
        ok = state.turn.ok or not found
        # Only an error before the first word says that the request was rejected.
        wrongly = "rejected" in said and "rejected" not in why
        held = kept and named and ok and not wrongly and not self._endless
        return held, f"{self._endless}{found} of {least} to {most}; {said}"


def reason_in(event: bytes, reason: str) -> bool:
    """Whether an event says why the model ended, in the words of either wire."""
    return any(word in event for word in (reason.encode(), b"max_tokens", b"refusal"))


def _case(number: int, wire: str, dialect: str) -> Case:
    paths = tuple(f"made/{number}_{place}.py" for place in range(CHANGES))
    changes = [{"path": path, "content": f"# {path}\nvalue = {number}\n"} for path in paths]
    text, ends = _joined(
        '{"changes": [' if dialect == "tools" else '{"summary": "Adds.", "fileChanges": [', changes
    )
    text += "]}"
    if dialect == "tools":
        answer = Answer("", calls=(ToolCall("propose_changes", text),))
    else:
        answer = Answer(text, chunks=tuple(text[at : at + 12] for at in range(0, len(text), 12)))
    return Case(answer, list(sse(answer, wire)), paths, ends)


def _joined(text: str, changes: Sequence[dict[str, str]]) -> tuple[str, tuple[int, ...]]:
    """The list as it is written, and the place at which each of its entries ends."""
    ends = []
    for place, change in enumerate(changes):
        text += (", " if place else "") + json.dumps(change)
        ends.append(len(text))
    return text, tuple(ends)


def _words(event: bytes) -> str:
    """What an event adds to the answer, read from the wire without any code of the program."""
    for line in event.decode().split("\n"):
        if line.startswith("data: {"):
            return _added(json.loads(line.removeprefix("data: ")))
    return ""


def _added(value: dict) -> str:
    match value:
        case {"choices": [{"delta": {"tool_calls": [{"function": {"arguments": str(text)}}]}}]}:
            return text
        case {"choices": [{"delta": {"content": str(text)}}]}:
            return text
        case {"delta": {"text": str(text)}} | {"delta": {"partial_json": str(text)}}:
            return text
    return ""
