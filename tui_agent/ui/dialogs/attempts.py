"""The attempts of `/best` side by side: checks, size, time and cost of each, and a file as each leaves it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from textual import events
from textual.app import App
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from tui_agent.edits.change import Diff, diff_of, text_under
from tui_agent.errors import TuiAgentError
from tui_agent.session.session import Session
from tui_agent.store import events as e
from tui_agent.store.graph import SubTask
from tui_agent.store.state import State
from tui_agent.subtasks.merge import report_parts
from tui_agent.ui.dialogs.dialog import Dialog
from tui_agent.ui.diff.diff_view import DiffView
from tui_agent.ui.safe_text import counted, label, one_line, plain

#: Columns of the terminal that an attempt needs.
LEAST = 36

#: The change of each file of an attempt by path, or a sentence about it.
Changes = dict[str, Diff | str]


async def compare_attempts(app: App[object], session: Session) -> None:
    """Compares the newest attempts, and puts the chosen one into the review."""
    group = next((task.attempt for task in reversed(session.state.subtasks.tasks) if task.attempt), "")
    if not group:
        await session.notice("There are no attempts: /best claude codex GOAL or /best 3 GOAL begins some")
        return
    chosen = await app.push_screen_wait(Attempts(session, group))
    if chosen:
        try:
            count = await session.subtasks.take(chosen)
            await session.notice(f"{counted(count, 'change')} of {chosen} in the review")
        except TuiAgentError as error:
            await session.notice(str(error), "error")


class Attempts(Dialog[str | None]):
    """Returns the id of the chosen attempt, or `None`."""

    ID = "attempts"
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
        super().__init__()
        self._session, self._group = session, group
        self._changes: dict[str, Changes] = {}
        self._seen = session.state.subtasks
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

    def hint(self) -> Content:
        told = (
            ("attempts.previous attempts.next", "attempt"),
            ("attempts.previous_file attempts.next_file", "file"),
            ("attempts.take", "take it into the review"),
            ("dialog.close", "close"),
        )
        return label(self.keys_for(*told))

    def on_mount(self) -> None:
        self._stop = self._session.subscribe(self._on_event)
        self._load()

    def on_unmount(self) -> None:
        self._stop()

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

    def _on_event(self, event: e.Event, state: State) -> None:
        if state.subtasks is not self._seen:
            self._seen = state.subtasks
            self._load()

    def _load(self) -> None:
        self.fill(self._fetch())

    async def _fetch(self) -> None:
        ended = [task for task in self._tasks if task.state == "completed"]
        self._changes = {task.id: await asyncio.to_thread(self._changes_of, task) for task in ended}
        self._draw()

    def _changes_of(self, task: SubTask) -> Changes:
        """Blocking."""
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
            found[step.path] = diff if diff.hunks else _only_mode(step.before, step.after)
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
            self._show(column.query_one(DiffView), task, path)
            if at == self._at:
                column.query_one(DiffView).focus()

    def _show(self, view: DiffView, task: SubTask, path: str) -> None:
        found = self._changes.get(task.id, {}).get(path)
        if isinstance(found, Diff):
            view.show_undecided(found, -1)
        elif task.state != "completed":
            view.show_words(f"{task.state}: {task.reason}" if task.reason else task.state)
        else:
            view.show_words(found or ("It does not change this file." if path else "It changes nothing."))


def _only_mode(before: str, after: str) -> str:
    if before and after:
        return "Its text stays; its mode changes."
    return "An empty file." if after else "It deletes the empty file."


def head(task: SubTask, current: bool) -> Content:
    """Name, checks, size, time and cost, a line each, and the summary."""
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
