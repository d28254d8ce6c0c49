"""Manual editing of the sub-task graph."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from textual import events, on
from textual.app import App
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Static

from tui_agent.errors import TuiAgentError
from tui_agent.store.graph import SubTask
from tui_agent.ui.dialogs.chooser import question
from tui_agent.ui.dialogs.form import Form
from tui_agent.ui.editor.stored_input import KeptArea, KeptInput
from tui_agent.ui.safe_text import label
from tui_agent.ui.widgets.line_view import DONE, OPEN, Line, Piece
from tui_agent.ui.widgets.rows import Row, Rows

if TYPE_CHECKING:
    from tui_agent.session.session import Session


class Wording(NamedTuple):
    id: str = ""
    goal: str = ""
    files: tuple[str, ...] = ()


class SubTaskForm(Form[None]):
    """Passes the input to `use`. With `named`, the id is editable."""

    ID = "fields"
    DEFAULT_CSS = """
    SubTaskForm {
        & > Vertical { width: 84; max-width: 94%; margin-top: 2; }
        & Static { height: 1; color: $muted; }
        & .title { color: $accent; margin-bottom: 1; }
        & WritingArea { height: 8; max-height: 25vh; padding: 0 1; margin-bottom: 1; }
    }
    """

    def __init__(
        self,
        title: str,
        before: Wording,
        use: Callable[[Wording], Awaitable[None]],
        session: Session,
        *,
        named: bool = False,
    ) -> None:
        super().__init__(title)
        self._session = session
        self._wording = before
        self._use = use
        self._named = named

    def body(self) -> Iterable[Widget]:
        if self._named:
            yield Static(label("id, a short name"), markup=False)
            yield KeptInput(id="name", compact=True)
        yield Static(label("goal: a complete description of the work"), markup=False)
        yield KeptArea(self._wording.goal, id="goal", soft_wrap=True, tab_behavior="focus")
        yield Static(label("files, separated by commas; empty for any"), markup=False)
        yield KeptInput(", ".join(self._wording.files), id="files", compact=True, select_on_focus=False)

    def hint(self) -> Content:
        return label(
            self.keys_for(("form.keep", "keep"), ("fields.next", "next field"), ("dialog.close", "cancel"))
        )

    @on(events.Mount)
    def _mounted(self) -> None:
        about = f"subtask:{self._wording.id}"
        for line in self.query(KeptInput):
            line.value = line.keep_at(self._session, f"{about}:{line.id}", line.value)
        goal = self.query_one(KeptArea)
        goal.text = goal.keep_at(self._session, f"{about}:goal", self._wording.goal)
        self.query_one("#name" if self._named else "#goal").focus()

    @on(Input.Submitted)
    async def _input_submitted(self) -> None:
        await self.action_keep()

    async def keep(self) -> None:
        name = self.query_one("#name", Input).value.strip() if self._named else self._wording.id
        files = [part.strip() for part in self.query_one("#files", Input).value.split(",")]
        goal = self.query_one("#goal", KeptArea).text.strip()
        await self._use(Wording(name, goal, tuple(dict.fromkeys(file for file in files if file))))


class NeedsForm(Form[None]):
    """Passes the ticked ids to `use`."""

    ID = "needs"
    DEFAULT_CSS = """
    NeedsForm {
        & > Vertical { width: 84; max-width: 94%; max-height: 80%; margin-top: 2; }
        & .title { margin-bottom: 1; }
        & Rows { height: auto; max-height: 20; margin-bottom: 1; }
    }
    """

    def __init__(
        self,
        task: SubTask,
        others: Sequence[SubTask],
        use: Callable[[tuple[str, ...]], Awaitable[None]],
    ) -> None:
        super().__init__(f"Dependencies of sub-task {task.id}")
        self._others = others
        self._use = use
        self.ticked = set(task.dependencies)

    def body(self) -> Iterable[Widget]:
        yield Rows()

    def hint(self) -> Content:
        return label(
            self.keys_for(("ticks.tick", "tick"), ("answer.accept", "keep"), ("dialog.close", "cancel"))
        )

    @on(events.Mount)
    def _mounted(self) -> None:
        self.draw()
        self.query_one(Rows).focus()

    def tickable(self) -> Collection[str]:
        return [other.id for other in self._others]

    async def keep(self) -> None:
        await self._use(tuple(other.id for other in self._others if other.id in self.ticked))

    def draw(self) -> None:
        self.query_one(Rows).set_rows([self._row(other) for other in self._others])

    def _row(self, other: SubTask) -> Row:
        mark = DONE if other.id in self.ticked else OPEN
        name = Piece(other.id, "", "end")
        return Row(other.id, Line((mark, Piece(" "), name), (Piece(other.goal[:50], "muted"),)), marked=True)


async def add(app: App[object], session: Session) -> None:
    """Ask for a new task, initially without dependencies."""

    async def keep(form: Wording) -> None:
        await session.subtasks.add(form.id, form.goal, form.files)

    await app.push_screen_wait(SubTaskForm("Add a sub-task", Wording(), keep, session, named=True))


async def edit(app: App[object], session: Session, task: SubTask) -> None:
    async def keep(form: Wording) -> None:
        await session.subtasks.edit(task.id, form.goal, form.files)

    before = Wording(task.id, task.goal, task.files)
    await app.push_screen_wait(SubTaskForm(f"Edit sub-task {task.id}", before, keep, session))


async def connect(app: App[object], session: Session, task: SubTask) -> None:
    """Edit a task's dependencies."""

    async def keep(names: tuple[str, ...]) -> None:
        await session.subtasks.connect(task.id, names)

    others = [other for other in session.state.subtasks.tasks if other.id != task.id]
    if others:
        await app.push_screen_wait(NeedsForm(task, others, keep))
    else:
        await session.notice(f"There is no other sub-task for {task.id} to depend on")


async def remove(app: App[object], session: Session, task: SubTask) -> None:
    """Delete a task after confirmation."""
    behind = [other.id for other in session.state.subtasks.tasks if task.id in other.dependencies]
    waits = f"; {', '.join(behind)} no longer wait{'s' * (len(behind) == 1)} for it" if behind else ""
    answers = {"": "Cancel", "remove": f"Remove it from the graph{waits}"}
    chosen = await app.push_screen_wait(question(f"Remove sub-task {task.id}", answers))
    if chosen:
        try:
            await session.subtasks.remove(task.id)
        except TuiAgentError as error:
            await session.notice(str(error), "error")
