"""Full-screen chat of a sub-task, live or stored."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.app import App
from textual.containers import Vertical
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from tui_agent.errors import TuiAgentError
from tui_agent.store.graph import SubTask
from tui_agent.store.state import ChatMessage, State
from tui_agent.ui.bridge import Bridge
from tui_agent.ui.dialogs.dialog import Dialog
from tui_agent.ui.graph.facts import facts_of
from tui_agent.ui.panes import chat
from tui_agent.ui.safe_text import label, parts, plain
from tui_agent.ui.widgets.transcript import Source, Transcript

if TYPE_CHECKING:
    from tui_agent.session.session import Session
    from tui_agent.subtasks.parent import RunSession


async def open_chat(app: App[object], session: Session, task: SubTask) -> None:
    """Show the chat of a task's newest run, or a message if it never ran."""
    if task.runs:
        await app.push_screen_wait(SubTaskView(session, task.id))
    else:
        await session.notice(f"The sub-task {task.id} has not run yet and has no chat")


class EndedRun:
    """A finished run, as a transcript source."""

    def __init__(self, state: State) -> None:
        self.state = state

    async def earlier(self, before: int, count: int = 50) -> tuple[ChatMessage, ...]:
        older = [message for message in self.state.chat.messages if message.number < before]
        return tuple(older[-count:])


class RunTranscript(Vertical):
    """The transcript of one run, updated live."""

    SLICES: ClassVar[tuple[str, ...]] = ("chat", "reply", "review")

    def __init__(self, source: Source, running: RunSession | None) -> None:
        super().__init__()
        self._source = source
        self._running_child = running
        self._bridge: Bridge | None = None

    def compose(self) -> Iterable[Widget]:
        yield Transcript(self._source)

    def on_mount(self) -> None:
        if self._running_child is None:
            self.show(self._source.state)
        else:
            self._bridge = Bridge(self._running_child, self.call_later)
            self._bridge.attach(self)
        self.query_one(Transcript).focus()

    def on_unmount(self) -> None:
        if self._bridge is not None:
            self._bridge.close()

    def show(self, state: State) -> None:
        self.query_one(Transcript).show(state)


class SubTaskView(Dialog[None]):
    """Task state, goal and transcript; Esc closes it."""

    SLICES: ClassVar[tuple[str, ...]] = ("subtasks",)
    ID = "subtask_chat"
    # Same message style as in the chat.
    DEFAULT_CSS = (
        Path(chat.__file__).with_suffix(".tcss").read_text(encoding="utf-8")
        + """
    SubTaskView {
        align: center middle;
        & > Vertical { width: 96%; height: 94%; max-height: 94%; margin-top: 0; background: $surface; }
        & #head { height: 1; }
        & #goal { height: auto; max-height: 4; color: $muted; margin-bottom: 1; }
        & #keys { dock: bottom; height: 1; color: $muted; }
        & #nothing { height: auto; color: $muted; }
        & RunTranscript { height: 1fr; }
    }
    """
    )

    def __init__(self, session: Session, task: str) -> None:
        super().__init__()
        self._session = session
        self._about = task
        self._above: Bridge | None = None
        #: The displayed run, and whether it is active.
        self._drawn: object = None
        self._clock: Timer | None = None

    def compose(self) -> Iterable[Widget]:
        with Vertical():
            yield Static("", id="head", markup=False)
            yield Static("", id="goal", markup=False)
            yield Static("", id="nothing", markup=False)
            yield Static(
                label(self.keys_for(("dialog.close", "close"), ("subtask_chat.reasoning", "thinking"))),
                id="keys",
                markup=False,
            )

    def on_mount(self) -> None:
        self.query_one("#nothing").display = False
        self._above = Bridge(self._session, self.call_later)
        self._above.attach(self)

    def on_unmount(self) -> None:
        if self._above is not None:
            self._above.close()

    def action_reasoning(self) -> None:
        for transcript in self.query(Transcript):
            transcript.unfold_reasoning()

    def show(self, state: State) -> None:
        task = state.subtasks.get(self._about)
        if task is None:
            self.dismiss(None)
            return
        self._show_head()
        self._keep_time(running=task.state == "running")
        child = self._session.subtasks.child(task.id) if task.state == "running" else None
        drawn = (task.runs, task.state == "running", child is None)
        if drawn != self._drawn:
            self._drawn = drawn
            self.run_worker(self._open(child), exclusive=True)

    def _keep_time(self, *, running: bool) -> None:
        if running and self._clock is None:
            self._clock = self.set_interval(1, self._show_head)
        elif not running and self._clock is not None:
            self._clock.stop()
            self._clock = None

    def _show_head(self) -> None:
        tasks = self._session.state.subtasks
        task = tasks.get(self._about)
        if task is None:
            return
        after = self._session.loaded.settings.subtasks.silent_after
        fact = facts_of([task], tasks.running, time.time(), after)[task.id]
        words = fact.full or task.reason
        mark, told = fact.mark, f" · {words}" if words else ""
        self.query_one("#head", Static).update(
            parts((f"{mark.text} ", f"${mark.ink}"), (task.id, "bold $accent"), f"  {task.state}{told}")
        )
        self.query_one("#goal", Static).update(plain(task.goal))

    async def _open(self, child: RunSession | None) -> None:
        source: Source | None = child
        words = ""
        if source is None:
            try:
                source = EndedRun(await self._session.subtasks.state_of(self._about))
            except TuiAgentError as error:
                words = str(error)
        await self.query(RunTranscript).remove()
        nothing = self.query_one("#nothing", Static)
        nothing.display = source is None
        nothing.update(label(words))
        if source is not None:
            await self.query_one(Vertical).mount(RunTranscript(source, child))
