"""Dialogs of sub-tasks: chat, forms, and attempts side by side."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import App
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ScreenResultType
from textual.widget import Widget
from textual.widgets import Input, Static

from tui_agent.edits.change import Diff, diff_of, text_under
from tui_agent.errors import TuiAgentError
from tui_agent.session.session import Session
from tui_agent.store.graph import SubTask
from tui_agent.store.state import ChatMessage, State
from tui_agent.subtasks.merge import report_parts
from tui_agent.ui.bridge import Bridge
from tui_agent.ui.dialogs.chooser import question
from tui_agent.ui.dialogs.dialog import Dialog, Form
from tui_agent.ui.diff.diff_view import DiffView
from tui_agent.ui.editor.writing_area import KeptArea, KeptInput
from tui_agent.ui.graph.facts import Facts
from tui_agent.ui.panes import chat
from tui_agent.ui.safe_text import counted, label, one_line, parts, plain
from tui_agent.ui.widgets.line_view import DONE, OPEN, Line, Piece, Row, Rows
from tui_agent.ui.widgets.pane import Ticker
from tui_agent.ui.widgets.transcript import Source, Transcript

if TYPE_CHECKING:
    from tui_agent.subtasks.parent import RunSession


async def open_chat(app: App[object], session: Session, task: SubTask) -> None:
    if task.runs:
        await app.push_screen_wait(SubTaskView(session, task.id))
    else:
        await session.notice(f"The sub-task {task.id} has not run yet and has no chat")


class EndedRun:
    def __init__(self, state: State) -> None:
        self.state = state

    async def earlier(self, before: int, count: int = 50) -> tuple[ChatMessage, ...]:
        older = [message for message in self.state.chat.messages if message.number < before]
        return tuple(older[-count:])


class RunTranscript(Vertical):
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


class SubTasksDialog(Dialog[ScreenResultType]):
    """Follows the sub-tasks while it is open."""

    SLICES: ClassVar[tuple[str, ...]] = ("subtasks",)

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._above: Bridge | None = None

    def on_mount(self) -> None:
        self._above = Bridge(self._session, self.call_later)
        self._above.attach(self)

    def on_unmount(self) -> None:
        if self._above is not None:
            self._above.close()

    def show(self, state: State) -> None:
        raise NotImplementedError


class SubTaskView(SubTasksDialog[None]):
    ID = "subtask_chat"
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
        super().__init__(session)
        self._about = task
        self._drawn: object = None
        self._ticker = Ticker(self, self._show_head)

    def compose(self) -> Iterable[Widget]:
        with Vertical():
            yield Static("", id="head", markup=False)
            yield Static("", id="goal", markup=False)
            nothing = Static("", id="nothing", markup=False)
            nothing.display = False
            yield nothing
            yield Static(
                label(self.keys_for(("dialog.close", "close"), ("subtask_chat.reasoning", "thinking"))),
                id="keys",
                markup=False,
            )

    def action_reasoning(self) -> None:
        for transcript in self.query(Transcript):
            transcript.unfold_reasoning()

    def show(self, state: State) -> None:
        task = state.subtasks.get(self._about)
        if task is None:
            self.dismiss(None)
            return
        self._show_head()
        runs = task.state == "running"
        self._ticker.run(runs)
        child = self._session.subtasks.child(task.id) if runs else None
        drawn = (task.runs, runs, child is None)
        if drawn != self._drawn:
            self._drawn = drawn
            self.run_worker(self._open(child), exclusive=True)

    def _show_head(self) -> None:
        tasks = self._session.state.subtasks
        task = tasks.get(self._about)
        if task is None:
            return
        after = self._session.loaded.settings.subtasks.silent_after
        fact = Facts([task], tasks.running, time.time(), after)[task.id]
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
        self.query(RunTranscript).remove()  # not awaited: a cancellation here would end it halfway
        nothing = self.query_one("#nothing", Static)
        nothing.display = source is None
        nothing.update(label(words))
        if source is not None:
            await self.query_one(Vertical).mount(RunTranscript(source, child))


class SubTaskForm(Form[None]):
    """Without `task`, adds one."""

    ID = "fields"
    HINTS = (("form.keep", "keep"), ("fields.next", "next field"), ("dialog.close", "cancel"))
    DEFAULT_CSS = """
    SubTaskForm {
        & > Vertical { width: 84; max-width: 94%; margin-top: 2; }
        & Static { height: 1; color: $muted; }
        & .title { color: $accent; margin-bottom: 1; }
        & WritingArea { height: 8; max-height: 25vh; padding: 0 1; margin-bottom: 1; }
    }
    """

    def __init__(self, session: Session, task: SubTask | None = None) -> None:
        super().__init__(f"Edit sub-task {task.id}" if task else "Add a sub-task")
        self._session = session
        self._edited = task

    def body(self) -> Iterable[Widget]:
        task = self._edited
        if task is None:
            yield Static(label("id, a short name"), markup=False)
            yield KeptInput(id="name", compact=True)
        yield Static(label("goal: a complete description of the work"), markup=False)
        yield KeptArea(task.goal if task else "", id="goal", soft_wrap=True, tab_behavior="focus")
        yield Static(label("files, separated by commas; empty for any"), markup=False)
        files = ", ".join(task.files) if task else ""
        yield KeptInput(files, id="files", compact=True, select_on_focus=False)

    @on(events.Mount)
    def _mounted(self) -> None:
        about = f"subtask:{self._edited.id if self._edited else ''}"
        for line in self.query(KeptInput):
            line.value = line.keep_at(self._session, f"{about}:{line.id}", line.value)
        goal = self.query_one(KeptArea)
        goal.text = goal.keep_at(self._session, f"{about}:goal", goal.text)
        self.query_one("#goal" if self._edited else "#name").focus()

    @on(Input.Submitted)
    async def _input_submitted(self) -> None:
        await self.action_keep()

    async def keep(self) -> None:
        named = [part.strip() for part in self.query_one("#files", Input).value.split(",")]
        files = tuple(dict.fromkeys(filter(None, named)))
        goal, tasks = self.query_one("#goal", KeptArea).text.strip(), self._session.subtasks
        if self._edited is None:
            await tasks.add(self.query_one("#name", Input).value.strip(), goal, files)
        else:
            await tasks.edit(self._edited.id, goal, files)


class NeedsForm(Form[None]):
    ID = "needs"
    HINTS = (("ticks.tick", "tick"), ("answer.accept", "keep"), ("dialog.close", "cancel"))
    DEFAULT_CSS = """
    NeedsForm {
        & > Vertical { width: 84; max-width: 94%; max-height: 80%; margin-top: 2; }
        & .title { margin-bottom: 1; }
        & Rows { height: auto; max-height: 20; margin-bottom: 1; }
    }
    """

    def __init__(self, session: Session, task: SubTask, others: Sequence[SubTask]) -> None:
        super().__init__(f"Dependencies of sub-task {task.id}")
        self._session = session
        self._of = task.id
        self._others = others
        self.ticked = set(task.dependencies)

    def body(self) -> Iterable[Widget]:
        yield Rows()

    @on(events.Mount)
    def _mounted(self) -> None:
        self.draw()
        self.query_one(Rows).focus()

    def tickable(self) -> Collection[str]:
        return [other.id for other in self._others]

    async def keep(self) -> None:
        names = tuple(other.id for other in self._others if other.id in self.ticked)
        await self._session.subtasks.connect(self._of, names)

    def draw(self) -> None:
        rows = []
        for other in self._others:
            mark = DONE if other.id in self.ticked else OPEN
            left = (mark, Piece(" "), Piece(other.id, "", "end"))
            rows.append(Row(other.id, Line(left, (Piece(other.goal[:50], "muted"),)), marked=True))
        self.query_one(Rows).set_rows(rows)


async def add(app: App[object], session: Session) -> None:
    await app.push_screen_wait(SubTaskForm(session))


async def edit(app: App[object], session: Session, task: SubTask) -> None:
    await app.push_screen_wait(SubTaskForm(session, task))


async def connect(app: App[object], session: Session, task: SubTask) -> None:
    others = [other for other in session.state.subtasks.tasks if other.id != task.id]
    if others:
        await app.push_screen_wait(NeedsForm(session, task, others))
    else:
        await session.notice(f"There is no other sub-task for {task.id} to depend on")


async def remove(app: App[object], session: Session, task: SubTask) -> None:
    behind = [other.id for other in session.state.subtasks.tasks if task.id in other.dependencies]
    waits = f"; {', '.join(behind)} no longer wait{'s' * (len(behind) == 1)} for it" if behind else ""
    answers = {"": "Cancel", "remove": f"Remove it from the graph{waits}"}
    chosen = await app.push_screen_wait(question(f"Remove sub-task {task.id}", answers))
    if chosen:
        await session.subtasks.remove(task.id)


LEAST = 36

#: Changes by path, or a sentence instead.
Changes = dict[str, Diff | str]


async def compare_attempts(app: App[object], session: Session) -> None:
    group = next((task.attempt for task in reversed(session.state.subtasks.tasks) if task.attempt), "")
    if not group:
        await session.notice("There are no attempts: /best claude codex GOAL or /best 3 GOAL starts some")
        return
    chosen = await app.push_screen_wait(Attempts(session, group))
    if chosen:
        count = await session.subtasks.take(chosen)
        await session.notice(f"{counted(count, 'changed file')} of {chosen} in the review")


class Attempts(SubTasksDialog[str | None]):
    ID = "attempts"
    HINTS = (
        ("attempts.previous attempts.next", "attempt"),
        ("attempts.previous_file attempts.next_file", "file"),
        ("attempts.take", "take it into the review"),
        ("dialog.close", "close"),
    )
    DEFAULT_CSS = """
    Attempts {
        & > Vertical { width: 96%; height: 90%; }
        & Horizontal { height: 1fr; }
        & .attempt { width: 1fr; height: 1fr; border-left: vkey $muted; padding-left: 1; }
        & .attempt.current { border-left: vkey $accent; }
        & .head { height: 5; margin-bottom: 1; text-wrap: nowrap; text-overflow: ellipsis; }
        & DiffView { height: 1fr; }
    }
    """

    def __init__(self, session: Session, group: str) -> None:
        super().__init__(session)
        self._group = group
        self._changes: dict[str, Changes] = {}
        self._at = self._file = self._first = 0

    @property
    def _tasks(self) -> list[SubTask]:
        return [task for task in self._session.state.subtasks.tasks if task.attempt == self._group]

    @property
    def _paths(self) -> list[str]:
        return sorted({path for changes in self._changes.values() for path in changes})

    def body(self) -> Iterable[Widget]:
        with Horizontal():
            for _ in self._tasks:
                with Vertical(classes="attempt"):
                    yield Static("", classes="head", markup=False)
                    yield DiffView()

    def on_resize(self) -> None:
        self._draw()

    def needs_content(self, event: events.Event) -> bool:
        return self.matches(event, "attempts.next_file", "attempts.previous_file")

    def action_attempt(self, step: int) -> None:
        self._at = max(0, min(self._at + step, len(self._tasks) - 1))
        self._draw()

    def action_file(self, step: int) -> None:
        if paths := self._paths:
            self._file = (self._file + step) % len(paths)
            self._draw()

    def action_take(self) -> None:
        task = self._tasks[self._at]
        if task.state == "completed":
            self.dismiss(task.id)
        else:
            self.say(label(f"{task.id} is {task.state}: choose a completed attempt"))

    def show(self, state: State) -> None:
        async def fetch() -> None:
            ended = [task for task in self._tasks if task.state == "completed"]
            self._changes = {task.id: await asyncio.to_thread(self._changes_of, task) for task in ended}
            self._draw()

        self.fill(fetch())

    def _changes_of(self, task: SubTask) -> Changes:
        found: Changes = {}
        for step in task.changed:
            try:
                before, after = (
                    text_under(self._session.storage.blobs, one) for one in (step.before, step.after)
                )
            except TuiAgentError as error:
                found[step.path] = str(error)
                continue
            diff = diff_of(step.path, before or "", after or "")
            if diff.hunks:
                found[step.path] = diff
            elif step.before and step.after:
                found[step.path] = "Its text stays; its mode changes."
            else:
                found[step.path] = "An empty file." if step.after else "It deletes the empty file."
        return found

    def _draw(self) -> None:
        if not self.is_mounted:
            return
        tasks, paths = self._tasks, self._paths
        room = max(1, (self.size.width * 96 // 100 - 4) // LEAST)
        self._first = max(min(self._first, self._at), self._at - room + 1, 0)
        path = paths[min(self._file, len(paths) - 1)] if paths else ""
        place = f" · {path} ({paths.index(path) + 1} of {len(paths)})" if path else ""
        some = f" · attempt {self._at + 1} of {len(tasks)}" if room < len(tasks) else ""
        self.retitle(f"{one_line(tasks[0].goal)[:60]}{place}{some}")
        for at, (task, column) in enumerate(zip(tasks, self.query(".attempt"), strict=True)):
            column.display = self._first <= at < self._first + room
            column.set_class(at == self._at, "current")
            column.query_one(".head", Static).update(head(task, at == self._at))
            view, found = column.query_one(DiffView), self._changes.get(task.id, {}).get(path)
            if isinstance(found, Diff):
                view.show_undecided(found, -1)
            elif task.state != "completed":
                view.show_words(f"{task.state}: {task.reason}" if task.reason else task.state)
            else:
                none = "It does not change this file." if path else "It changes nothing."
                view.show_words(found or none)
            if at == self._at:
                view.focus()


def head(task: SubTask, current: bool) -> Content:
    checks, size, said = (
        report_parts(task.summary) if task.state == "completed" else (task.state, "", task.reason)
    )
    ink = "$error" if checks.endswith("failed") else "$success" if checks.endswith("passed") else "$muted"
    cost = f", ${task.cost:.2f}" if task.cost else ""
    name = f"{'▸' if current else ' '} {one_line(task.id)}\n"
    return Content.assemble(
        plain(name, "bold $accent" if current else "bold"),
        plain(f"  {one_line(checks or 'no checks')}\n", ink),
        f"  {size or 'no change yet'}\n  {task.seconds:.0f} s{cost}\n",
        plain(f"  {one_line(said)[:200]}", "$muted"),
    )
