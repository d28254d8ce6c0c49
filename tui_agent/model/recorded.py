"""A model that answers from a recording, with no network; `Recorder`, which makes one, is here too."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from pathlib import Path

from tui_agent.errors import ModelError
from tui_agent.model.client import (
    Abilities,
    Chunk,
    EndChunk,
    ModelRequest,
    Pass,
    TextChunk,
    TokenCount,
    UsageChunk,
)
from tui_agent.model.recorder import Recorder
from tui_agent.model.recording import RecordedExchange, asked, folded, load, shortened
from tui_agent.model.tokens import estimate

__all__ = ["RecordedModel", "Recorder"]

SPEED = "TUI_AGENT_REPLAY_SPEED"
#: Between two words of an answer that is made up here: about a hundred characters a second.
READING_PAUSE_SECONDS = 0.06
#: Of the requests that a rehearsal still has a reply to, so many are named: more would fill the screen.
MOST_OFFERED = 3

Timed = Sequence[tuple[float, Chunk]]


class RecordedModel:
    """A `Model`. `speed` 1 keeps the recorded pauses, 2 halves them, 0 leaves them out; by default it is read
    from the environment (`TUI_AGENT_REPLAY_SPEED`).

    Exchanges are used in order within a pass, each once, and checked by the words of the request. Those of sub-tasks,
    which run at once, are found by their words. So are all in a rehearsal, where a request that has none is answered
    with what can be asked.
    """

    def __init__(self, path: Path | str, *, speed: float | None = None) -> None:
        """Reads the recording. Raises `UsageError` for a file that is none."""
        self.recording = load(Path(path))
        self._path = Path(path)
        self._speed = _speed() if speed is None else speed
        self._left: list[RecordedExchange] = list(self.recording.exchanges)

    def forget(self, asks: Iterable[str]) -> None:
        """These requests were answered before the program was restarted: each uses up one exchange of each pass."""
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
        words = folded(asked(request.messages))
        exchange = self._take(request.purpose, words)
        for seconds, chunk in exchange.chunks if exchange else self._without_recording(request.purpose):
            await asyncio.sleep(seconds / self._speed if self._speed else 0)
            yield chunk
        if exchange is not None and exchange.error is not None:
            raise exchange.error.as_error()

    def _take(self, purpose: Pass, words: str) -> RecordedExchange | None:
        """The exchange for this request, used up; None in a rehearsal that has none."""
        rehearsal = self.recording.header.rehearsal
        for exchange in self._left:
            if exchange.purpose != purpose:
                continue
            if exchange.words == words:
                if not (rehearsal and purpose == "subtask"):  # there one can be run again
                    self._left.remove(exchange)
                return exchange
            if not rehearsal and purpose != "subtask":  # those of sub-tasks come in any order
                what = (
                    f"The recording goes on with “{shortened(exchange.ask)}”, not with “{shortened(words)}”"
                )
                raise ModelError(what, "send what was recorded, or start without --replay")
        if rehearsal:
            return None
        what = f"{self._path.name} has no more answers ({purpose} pass), and none to “{shortened(words)}”"
        raise ModelError(what, "record it again, or start without --replay")

    def _without_recording(self, purpose: Pass) -> Timed:
        """Says so, in the dialect of the recording. A plan or a summary is not for a person, so it just fails."""
        if purpose not in ("main", "subtask"):
            raise ModelError(f"The rehearsal has no reply for the {purpose} pass", "go on without it")
        message, steps = self._what_can_be_asked()
        if self.recording.header.protocol == "tools":
            text = message
        else:
            text = json.dumps({"summary": _NONE, "message": message, "nextSteps": steps}, ensure_ascii=False)
        pieces = [(READING_PAUSE_SECONDS, TextChunk(piece)) for piece in re.findall(r"\s*\S+", text)]
        return [*pieces, (0.0, UsageChunk(0, 0)), (0.0, EndChunk("stop"))]

    def _what_can_be_asked(self) -> tuple[str, list[dict[str, str]]]:
        left = list(dict.fromkeys(self._asks(self._left)))
        if not left:
            again = "All of them have been asked. Leave and restart the rehearsal to begin again."
            return f"{_NONE} {again}\n\n{_REAL}", []
        offered, more = left[:MOST_OFFERED], len(left) - MOST_OFFERED
        requests = "\n".join(f"- {ask}" for ask in offered)
        after = f"\n\nEach of these leads on to the next, {more} more in all." if more > 0 else ""
        return f"{_NONE} It can answer:\n\n{requests}{after}\n\n{_REAL}", [
            {"html": ask, "inputText": ask} for ask in offered
        ]

    def _asks(self, exchanges: Sequence[RecordedExchange]) -> Iterator[str]:
        return (exchange.words for exchange in exchanges if exchange.purpose == "main")


_NONE = "This is a rehearsal: its replies are recorded, and there is none to this request."
_REAL = "For answers to anything else, start `tui-agent` with a model of your own."


def _speed() -> float:
    try:
        return max(0.0, float(os.environ.get(SPEED, "1")))
    except ValueError:
        return 1.0
