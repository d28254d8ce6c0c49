"""Recordings of exchanges with a model: JSON lines, a header followed by exchanges.

    {"type":"recording","version":1,"model":"…","protocol":"structured","window":200000,"rehearsal":false}
    {"type":"exchange","pass":"main","ask":"words of the request","chunks":[[0.5,{"type":"text","text":"…"}]]}
    {"type":"exchange","pass":"main","ask":"…","chunks":[],"error":{"kind":"BadKey","what":"…","remedy":"…"}}

Each chunk has the seconds since the previous one. `ask` is the user's prompt, shared by all requests of a
turn.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct, field

from tui_agent import errors
from tui_agent.errors import FileError, ModelError, UsageError
from tui_agent.files.masking import masked, masked_pieces
from tui_agent.files.numbers import real_number
from tui_agent.files.operating_system import read_given
from tui_agent.files.private import open_private
from tui_agent.model.client import (
    Abilities,
    CallChunk,
    CanReach,
    Chunk,
    EndChunk,
    Model,
    ModelRequest,
    Pass,
    ReasoningChunk,
    TextChunk,
    TokenCount,
    UsageChunk,
    estimate,
)
from tui_agent.model.parts import Message, text_of

VERSION = 1
T = TypeVar("T")


class Header(Struct, frozen=True, tag="recording", tag_field="type"):
    """`rehearsal`: exchanges are matched by their prompts in any order."""

    version: int = VERSION
    model: str = "recorded"
    protocol: Literal["tools", "structured"] = "structured"
    window: int = 0
    rehearsal: bool = False


class RecordedError(Struct, frozen=True):
    kind: str
    what: str
    remedy: str

    def as_error(self) -> ModelError:
        kind = getattr(errors, self.kind, None)
        known = isinstance(kind, type) and issubclass(kind, ModelError)
        return (kind if known else ModelError)(self.what, self.remedy)


class RecordedExchange(Struct, frozen=True, tag="exchange", tag_field="type"):
    """`error` ended it after `chunks`."""

    ask: str
    chunks: tuple[tuple[float, Chunk], ...] = ()
    purpose: Pass = field(default="main", name="pass")
    error: RecordedError | None = None

    @property
    def words(self) -> str:
        return folded(self.ask)


class Recording(Struct, frozen=True):
    header: Header
    exchanges: tuple[RecordedExchange, ...]


def load(path: Path) -> Recording:
    """Raises `UsageError`, with the line number for an invalid file."""
    try:
        lines = read_given(path).splitlines()
    except OSError as error:
        what = f"The recording {path} cannot be read ({error.strerror})"
        raise UsageError(what, "name a file created with --record") from error
    header = _line(path, 1, lines[0] if lines else b"", Header)
    if header.version > VERSION:
        what = f"The recording {path} was made by a newer tui-agent"
        raise UsageError(what, "update tui-agent, or record it again")
    numbered = [(number, line) for number, line in enumerate(lines[1:], 2) if line.strip()]
    return Recording(header, tuple(_line(path, number, line, RecordedExchange) for number, line in numbered))


def _line(path: Path, number: int, line: bytes, type: type[T]) -> T:
    try:
        return msgspec.json.decode(line, type=type)
    except (msgspec.MsgspecError, RecursionError) as error:
        what = f"{path} is not a recording (line {number}: {error})"
        raise UsageError(what, "name a file created with --record") from error


_QUERY = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.DOTALL)


def prompt_of(messages: Sequence[Message]) -> str:
    for message in reversed(messages):
        if message.get("role") == "user" and (found := _QUERY.findall(text_of(message))):
            return found[-1]
    return text_of(messages[-1]) if messages else ""


def folded(words: str) -> str:
    return " ".join(words.split())


def shortened(words: str, characters: int = 120) -> str:
    line = folded(words)
    return line if len(line) <= characters else line[: characters - 1] + "…"


Timed = tuple[float, Chunk]
_TEXTS: dict[type[Chunk], str] = {TextChunk: "text", ReasoningChunk: "text", CallChunk: "arguments"}


class Recorder:
    """Appends each exchange to `path`, readable only by its owner, with apparent secrets masked. Records a
    cancelled stream as cut.
    """

    def __init__(self, model: Model, path: Path | str, clock: Callable[[], float] = time.monotonic) -> None:
        self._model = model
        self._path = Path(path)
        self._clock = clock
        self._writing = threading.Lock()

    async def start(self) -> None:
        await self._model.start()

    async def close(self) -> None:
        await self._model.close()

    async def abilities(self, model: str) -> Abilities:
        return await self._model.abilities(model)

    async def reach(self, environment: Mapping[str, str]) -> None:
        if isinstance(self._model, CanReach):
            await self._model.reach(environment)

    async def count(self, model: str, texts: Sequence[str], *, wait: bool = False) -> TokenCount:
        return await self._model.count(model, texts, wait=wait)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        window = (await self._model.abilities(request.model)).window
        chunks: list[Timed] = []
        error: RecordedError | None = None
        last = self._clock()
        try:
            async with aclosing(self._model.stream(request)) as stream:
                async for chunk in stream:
                    now = self._clock()
                    chunks.append((round(now - last, 3), chunk))
                    last = now
                    yield chunk
        except ModelError as failure:
            error = RecordedError(type(failure).__name__, masked(failure.what), failure.remedy)
            raise
        finally:
            if error is None and not (chunks and isinstance(chunks[-1][1], EndChunk)):
                chunks.append((0.0, EndChunk("cut")))
            await asyncio.to_thread(self._append, request, window, chunks, error)

    def _append(
        self, request: ModelRequest, window: int, chunks: list[Timed], error: RecordedError | None
    ) -> None:
        ask = masked(prompt_of(request.messages))
        exchange = RecordedExchange(ask, tuple(without_secrets(chunks)), purpose=request.purpose, error=error)
        protocol = "tools" if request.tools else "structured"
        header = Header(model=request.model, protocol=protocol, window=window)
        with self._writing:
            try:
                descriptor = open_private(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
                with open(descriptor, "ab") as file:
                    if file.tell() == 0:
                        file.write(msgspec.json.encode(header) + b"\n")
                    file.write(msgspec.json.encode(exchange) + b"\n")
            except OSError as failure:
                what = f"The recording {self._path} cannot be written ({failure.strerror})"
                raise FileError(what, "free some disk space, or record to another place") from failure


def without_secrets(chunks: Sequence[Timed]) -> list[Timed]:
    """Masks secrets, even if they span chunks of one text or call."""
    clean = [
        (seconds, EndChunk(chunk.reason, chunk.why) if isinstance(chunk, EndChunk) else chunk)
        for seconds, chunk in chunks
    ]
    growing: dict[tuple[type[Chunk], int], list[int]] = {}
    for number, (_, chunk) in enumerate(clean):
        if type(chunk) in _TEXTS:
            growing.setdefault((type(chunk), getattr(chunk, "index", 0)), []).append(number)
    for (kind, _), numbers in growing.items():
        field = _TEXTS[kind]
        pieces = masked_pieces([getattr(clean[number][1], field) for number in numbers])
        for number, piece in zip(numbers, pieces, strict=True):
            seconds, chunk = clean[number]
            clean[number] = (seconds, msgspec.structs.replace(chunk, **{field: piece}))
    return clean


SPEED = "TUI_AGENT_REPLAY_SPEED"
READING_PAUSE_SECONDS = 0.06
#: Suggested requests of a rehearsal that fit the screen.
MOST_OFFERED = 3


class RecordedModel:
    """Replays each exchange once, in order within a pass, if the prompt matches. Concurrent sub-tasks, and
    all requests of a rehearsal, are matched by prompt only. A rehearsal answers unknown requests with
    suggestions.

    `speed` 1 keeps the recorded pauses, 2 halves them, 0 skips them; default `TUI_AGENT_REPLAY_SPEED`.
    """

    def __init__(self, path: Path | str, *, speed: float | None = None) -> None:
        """Raises `UsageError` for an invalid file."""
        self.recording = load(Path(path))
        self._path = Path(path)
        self._speed = real_number(os.environ.get(SPEED), 1.0) if speed is None else speed
        self._left: list[RecordedExchange] = list(self.recording.exchanges)

    def forget(self, asks: Iterable[str]) -> None:
        """Skips exchanges answered before a restart: one per prompt and pass."""
        for words in map(folded, asks):
            for purpose in ("plan", "main"):
                of_that = (x for x in self._left if x.words == words and x.purpose == purpose)
                used = next(of_that, None)
                if used is not None:
                    self._left.remove(used)

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def abilities(self, model: str) -> Abilities:
        header = self.recording.header
        plans = any(exchange.purpose == "plan" for exchange in self.recording.exchanges)
        return Abilities(model, header.window, tools=header.protocol == "tools", known=True, plans=plans)

    async def count(self, model: str, texts: Sequence[str], *, wait: bool = False) -> TokenCount:
        return TokenCount(tuple(estimate(text) for text in texts), exact=False)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        words = folded(prompt_of(request.messages))
        exchange = self._take(request.purpose, words)
        for seconds, chunk in exchange.chunks if exchange else self._without_recording(request.purpose):
            await asyncio.sleep(seconds / self._speed if self._speed else 0)
            yield chunk
        if exchange is not None and exchange.error is not None:
            raise exchange.error.as_error()

    def _take(self, purpose: Pass, words: str) -> RecordedExchange | None:
        rehearsal = self.recording.header.rehearsal
        for exchange in self._left:
            if exchange.purpose != purpose:
                continue
            if exchange.words == words:
                if not (rehearsal and purpose == "subtask"):  # a rehearsal can repeat sub-tasks
                    self._left.remove(exchange)
                return exchange
            if not rehearsal and purpose != "subtask":  # sub-tasks have no fixed order
                what = (
                    f"The recording continues with “{shortened(exchange.ask)}”, not with “{shortened(words)}”"
                )
                raise ModelError(what, "send what was recorded, or start without --replay")
        if rehearsal:
            return None
        what = f"{self._path.name} has no more answers ({purpose} pass), and none to “{shortened(words)}”"
        raise ModelError(what, "record it again, or start without --replay")

    def _without_recording(self, purpose: Pass) -> Sequence[Timed]:
        if purpose == "draft":
            raise ModelError("The rehearsal has no recorded commit message", "write it yourself")
        if purpose not in ("main", "subtask"):
            raise ModelError(f"The rehearsal has no reply for the {purpose} pass", "continue without it")
        left = list(dict.fromkeys(exchange.words for exchange in self._left if exchange.purpose == "main"))
        offered, more = left[:MOST_OFFERED], len(left) - MOST_OFFERED
        requests = "\n".join(f"- {ask}" for ask in offered)
        after = f"\n\nEach of these leads to the next, {more} more in all." if more > 0 else ""
        message = f"It can answer:\n\n{requests}{after}\n\n{_REAL}"
        if not left:
            again = "All recorded requests were used. Restart the rehearsal to repeat them."
            message = f"{again}\n\n{_REAL}"
        steps = [{"html": ask, "inputText": ask} for ask in offered]
        if self.recording.header.protocol == "tools":
            text = f"{_NONE} {message}"
        else:
            text = json.dumps({"summary": _NONE, "message": message, "nextSteps": steps}, ensure_ascii=False)
        pieces = [(READING_PAUSE_SECONDS, TextChunk(piece)) for piece in re.findall(r"\s*\S+", text)]
        return [*pieces, (0.0, UsageChunk(0, 0)), (0.0, EndChunk("stop"))]


_NONE = "This is a rehearsal: there is no recorded reply for this request."
_REAL = "For other requests, start `tui-agent` with a model."
