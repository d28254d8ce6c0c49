"""The graph of sub-tasks by hand: one added, reworded, connected or taken out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual.app import App
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Input, Static

from tui_agent.errors import TuiAgentError
from tui_agent.store.graph import SubTask
from tui_agent.ui.dialogs.chooser import Chooser, ChooserRow
from tui_agent.ui.dialogs.dialog import Dialog
from tui_agent.ui.editor.kept_text import KeptArea, KeptInput
from tui_agent.ui.sink import label, plain
from tui_agent.ui.widgets.lines import DONE, OPEN, Line, Lined, Piece
from tui_agent.ui.widgets.rows import Row, Rows

if TYPE_CHECKING:
    from tui_agent.session.session import Session


class Form(NamedTuple):
    """What was written."""

    id: str = ""
    goal: str = ""
    files: tuple[str, ...] = ()


class SubTaskForm(Dialog[None], inherit_bindings=False):
    """Hands what was written to `keep`, and stays with the error's sentence where that was refused.

    With `named` the id can be written too.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False, priority=True),
        Binding("f2,ctrl+enter,ctrl+g", "keep", show=False, priority=True),
        Binding("tab", "app.focus_next", show=False, priority=True),
        Binding("shift+tab", "app.focus_previous", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    SubTaskForm {
        align: center top; background: $background 40%;
        & > Vertical {
            width: 84; max-width: 94%; height: auto; max-height: 90%;
            margin-top: 2; background: $overlay; padding: 1 2;
        }
        & Static { height: 1; color: $muted; }
        & .title { color: $accent; text-style: bold; margin-bottom: 1; }
        & .fault { height: auto; color: $error; }
        & Input { border: none; height: 1; padding: 0 1; margin-bottom: 1; background: $surface; }
        & WritingArea { height: 8; padding: 0 1; margin-bottom: 1; }
    }
    """

    def __init__(
        self,
        title: str,
        form: Form,
        keep: Callable[[Form], Awaitable[None]],
        session: Session,
        *,
        named: bool = False,
    ) -> None:
        super().__init__()
        self._session = session
        self._title = title
        self._form = form
        self._keep = keep
        self._named = named

    def compose(self) -> Iterable[Widget]:
        with Vertical():
            yield Static(label(self._title), classes="title", markup=False)
            if self._named:
                yield Static(label("id, a short name"), markup=False)
                yield KeptInput(id="name", compact=True)
            yield Static(label("goal: what is to be done, in words that need no other"), markup=False)
            yield KeptArea(self._form.goal, id="goal", soft_wrap=True, tab_behavior="focus")
            yield Static(label("files that it is about, with commas between; none for any"), markup=False)
            yield KeptInput(", ".join(self._form.files), id="files", compact=True, select_on_focus=False)
            yield Static("", classes="fault", markup=False)
            yield Static(label("Ctrl+G keep   Tab next field   Esc cancel"), markup=False)

    def on_mount(self) -> None:
        about = f"subtask:{self._form.id}"
        for line in self.query(KeptInput):
            line.value = line.keep_at(self._session, f"{about}:{line.id}", line.value)
        goal = self.query_one(KeptArea)
        goal.text = goal.keep_at(self._session, f"{about}:goal", self._form.goal)
        self.query_one("#name" if self._named else "#goal").focus()

    def action_leave(self) -> None:
        self._give_up()
        self.dismiss(None)

    def _give_up(self) -> None:
        for place in (*self.query(KeptInput), *self.query(KeptArea)):
            place.give_up()

    async def on_input_submitted(self) -> None:
        await self.action_keep()

    async def action_keep(self) -> None:
        try:
            await self._keep(self._written())
        except TuiAgentError as error:
            self.query_one(".fault", Static).update(plain(str(error)))
        else:
            self._give_up()
            self.dismiss(None)

    def _written(self) -> Form:
        name = self.query_one("#name", Input).value.strip() if self._named else self._form.id
        files = [part.strip() for part in self.query_one("#files", Input).value.split(",")]
        goal = self.query_one("#goal", KeptArea).text.strip()
        return Form(name, goal, tuple(dict.fromkeys(file for file in files if file)))


class NeedsForm(Dialog[None], inherit_bindings=False):
    """Hands the ticked ids to `keep`, and stays with the error's sentence where that was refused."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", show=False),
        Binding("enter,f2", "keep", show=False),
        Binding("space", "tick", show=False),
    ]
    DEFAULT_CSS = """
    NeedsForm {
        align: center top; background: $background 40%;
        & > Vertical {
            width: 84; max-width: 94%; height: auto; max-height: 80%;
            margin-top: 2; background: $overlay; padding: 1 2;
        }
        & Static { height: 1; color: $muted; }
        & .title { color: $accent; text-style: bold; margin-bottom: 1; }
        & .fault { height: auto; color: $error; }
        & Rows { height: auto; max-height: 20; margin-bottom: 1; }
    }
    """

    def __init__(
        self,
        task: SubTask,
        others: Sequence[SubTask],
        keep: Callable[[tuple[str, ...]], Awaitable[None]],
    ) -> None:
        super().__init__()
        self._about = task
        self._others = others
        self._keep = keep
        self._ticked = set(task.dependencies)

    def compose(self) -> Iterable[Widget]:
        with Vertical():
            yield Static(label(f"What sub-task {self._about.id} waits for"), classes="title", markup=False)
            yield Rows()
            yield Static("", classes="fault", markup=False)
            yield Static(label("Space tick   Enter keep   Esc cancel"), markup=False)

    def on_mount(self) -> None:
        self._draw()
        self.query_one(Rows).focus()

    def on_lined_chosen(self, event: Lined.Chosen) -> None:
        event.stop()
        self.action_tick()

    def on_lined_marked(self, event: Lined.Marked) -> None:
        event.stop()
        self.query_one(Rows).move_to(event.key)
        self.action_tick()

    def action_tick(self) -> None:
        self._ticked ^= {self.query_one(Rows).cursor}
        self._draw()

    async def action_keep(self) -> None:
        try:
            await self._keep(tuple(other.id for other in self._others if other.id in self._ticked))
        except TuiAgentError as error:
            self.query_one(".fault", Static).update(plain(str(error)))
        else:
            self.dismiss(None)

    def _draw(self) -> None:
        self.query_one(Rows).set_rows([self._row(other) for other in self._others])

    def _row(self, other: SubTask) -> Row:
        mark = DONE if other.id in self._ticked else OPEN
        name = Piece(other.id, "", "end")
        return Row(other.id, Line((mark, Piece(" "), name), (Piece(other.goal[:50], "muted"),)), marked=True)


async def add(app: App[object], session: Session) -> None:
    """Ask for a new task; it waits for nothing until it is connected."""

    async def keep(form: Form) -> None:
        await session.subtasks.add(form.id, form.goal, form.files)

    await app.push_screen_wait(SubTaskForm("Add a sub-task", Form(), keep, session, named=True))


async def edit(app: App[object], session: Session, task: SubTask) -> None:
    """Let a task be reworded."""

    async def keep(form: Form) -> None:
        await session.subtasks.edit(task.id, form.goal, form.files)

    before = Form(task.id, task.goal, task.files)
    await app.push_screen_wait(SubTaskForm(f"Edit sub-task {task.id}", before, keep, session))


async def connect(app: App[object], session: Session, task: SubTask) -> None:
    """Let be ticked what a task waits for."""

    async def keep(names: tuple[str, ...]) -> None:
        await session.subtasks.connect(task.id, names)

    others = [other for other in session.state.subtasks.tasks if other.id != task.id]
    if others:
        await app.push_screen_wait(NeedsForm(task, others, keep))
    else:
        await session.notice(f"There is no other sub-task that {task.id} could wait for")


async def remove(app: App[object], session: Session, task: SubTask) -> None:
    """Take a task out of the graph, after a question."""
    behind = [other.id for other in session.state.subtasks.tasks if task.id in other.dependencies]
    waits = f"; {', '.join(behind)} no longer wait{'s' * (len(behind) == 1)} for it" if behind else ""
    rows = [
        ChooserRow("", label("Leave it")),
        ChooserRow("remove", label(f"Remove it from the graph{waits}")),
    ]
    chosen = await app.push_screen_wait(
        Chooser(f"Remove sub-task {task.id}", lambda _: rows, "Enter chooses")
    )
    if chosen:
        try:
            await session.subtasks.remove(task.id)
        except TuiAgentError as error:
            await session.notice(str(error), "error")
