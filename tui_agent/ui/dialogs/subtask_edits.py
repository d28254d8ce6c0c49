"""The graph by hand: a sub-task added, reworded, connected or taken out, over the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import App

from tui_agent.errors import TuiAgentError
from tui_agent.store.graph import SubTask
from tui_agent.ui.dialogs.chooser import Chooser, ChooserRow
from tui_agent.ui.dialogs.subtask_form import Form, SubTaskForm
from tui_agent.ui.dialogs.subtask_needs import NeedsForm
from tui_agent.ui.sink import label

if TYPE_CHECKING:
    from tui_agent.session.session import Session


async def add(app: App[object], session: Session) -> None:
    """Ask for a new task; it waits for nothing until it is connected."""

    async def keep(form: Form) -> None:
        await session.subtasks.add(form.id, form.goal, form.files)

    await app.push_screen_wait(SubTaskForm("Add a sub-task", Form(), keep, named=True))


async def edit(app: App[object], session: Session, task: SubTask) -> None:
    """Let a task be reworded."""

    async def keep(form: Form) -> None:
        await session.subtasks.edit(task.id, form.goal, form.files)

    before = Form(task.id, task.goal, task.files)
    await app.push_screen_wait(SubTaskForm(f"Edit {task.id}", before, keep))


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
    behind = ", ".join(other.id for other in session.state.subtasks.tasks if task.id in other.dependencies)
    waits = f"; what waits for it ({behind}) waits no more" if behind else ""
    rows = [
        ChooserRow("", label("Leave it")),
        ChooserRow("remove", label(f"Take it out of the graph{waits}")),
    ]
    chosen = await app.push_screen_wait(Chooser(f"Remove {task.id}", lambda _: rows, "Enter chooses"))
    if chosen:
        try:
            await session.subtasks.remove(task.id)
        except TuiAgentError as error:
            await session.notice(str(error), "error")
