"""What a running sub-task does, told to its parent a few times a second; and what it pays, as it pays it."""

from __future__ import annotations

import asyncio
import time

from msgspec.structs import replace

from tui_agent.log.journal import Journal
from tui_agent.store import events as e
from tui_agent.store.state import State, SubTaskProgress
from tui_agent.store.store import Store

#: Seconds between two pieces of news about one sub-task.
EVERY = 0.25
#: More of a line than this nobody can see.
LONGEST_LINE = 300


class ProgressTeller:
    """Listens to the store of a child and tells the parent's journal."""

    def __init__(self, journal: Journal, task: str, child: Store) -> None:
        now = time.time()
        self._journal = journal
        self._task = task
        self._progress = SubTaskProgress(started=now, heard=now)
        self._timer: asyncio.TimerHandle | None = None
        self._paying: set[asyncio.Task[None]] = set()
        self._unsubscribe = child.subscribe(self._on_event)
        self._tell()

    async def close(self) -> None:
        """Listen no more; what was paid is written down when this returns."""
        self._unsubscribe()
        if self._timer is not None:
            self._timer.cancel()
        await asyncio.gather(*self._paying)

    def _on_event(self, event: e.Event, state: State) -> None:
        match event:
            case e.RequestSent():
                self._journal.tell(replace(event, purpose="subtask", messages=()))
            case e.UsageCounted(usage):
                paid = e.UsageCounted(usage, "subtask")
                self._paying.add(asyncio.ensure_future(self._journal.record(paid)))
            case e.ReplyStreamed() | e.ChangeProposed() | e.PhaseChanged() | e.RetryCounted():
                pass
            case e.TurnEnded() | e.TurnStarted() | e.ReplyRead() | e.SubTaskEnded():
                pass
            case _:
                return
        self._progress = _after(self._progress, event, state)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(EVERY, self._tell)

    def _tell(self) -> None:
        self._timer = None
        self._journal.tell(e.SubTaskProgressed(self._task, self._progress))


def _after(progress: SubTaskProgress, event: e.Event, state: State) -> SubTaskProgress:
    used = state.usage.session
    return replace(
        progress,
        phase=state.turn.phase,
        line=_line(event, state) or progress.line,
        tokens=used.input + used.output,
        cost=used.cost,
        heard=time.time(),
        turn=state.turn.number,
    )


def _line(event: e.Event, state: State) -> str:
    """The last line that it said, or what it just did."""
    match event:
        case e.ReplyStreamed():
            said = (state.reply.message or state.reply.summary).rstrip()
            return said[said.rfind("\n") + 1 :][-LONGEST_LINE:]
        case e.ChangeProposed(change):
            return f"{change.kind} {change.path}"
        case e.RetryCounted(seconds, _, why):
            return f"{why}: waits {seconds} s"
        case e.ReplyRead(summary=summary):
            return summary
        case e.SubTaskEnded(id=name, state=ended):
            return f"{name} {ended}"
        case _:
            return ""
