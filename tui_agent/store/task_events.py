"""Events of what is to be done: todos and sub-tasks."""

from __future__ import annotations

from typing import Literal

from tui_agent.edits.change import FileStep
from tui_agent.store.event import Lasting, Passing
from tui_agent.store.graph import Cause, SubTask, SubTaskState
from tui_agent.store.state import SubTaskProgress, Todo


class TodosChanged(Lasting, frozen=True):
    """The todos are now these, in this order; only logs of the first version say it so."""

    todos: tuple[Todo, ...]


class TodosAdded(Lasting, frozen=True):
    """Todos came to the end of the list: from a reply, or by hand."""

    todos: tuple[Todo, ...]


class TodoChanged(Lasting, frozen=True):
    """The person reworded a todo, or ticked it, or took the tick away."""

    id: str
    text: str
    done: bool


class TodoRemoved(Lasting, frozen=True):
    """The person removed a todo."""

    id: str


class TodoMoved(Lasting, frozen=True):
    """The person moved a todo to another place, counted from 0."""

    id: str
    place: int


class SubTasksProposed(Lasting, frozen=True):
    """The model split the work: these join what is not done yet, or begin a new graph."""

    tasks: tuple[SubTask, ...]


class SubTaskMoved(Lasting, frozen=True):
    """A sub-task went from one state to another; to `pending` it is as if it had never run."""

    id: str
    state: SubTaskState
    summary: str = ""
    reason: str = ""


class SubTaskChanged(Lasting, frozen=True):
    """The person added a sub-task or reworded one: goal, files, dependencies, its mark for the batch."""

    task: SubTask


class SubTaskRemoved(Lasting, frozen=True):
    """The person took a sub-task out of the graph; nothing waits for it any more."""

    id: str


class SubTasksWanted(Lasting, frozen=True):
    """These sub-tasks were approved and begin as soon as they can, or (`wanted` false) wait for a key again."""

    ids: tuple[str, ...]
    wanted: bool = True


class SubTaskGivenBack(Lasting, frozen=True):
    """A sub-task is to be done again on top of others that it conflicted with; `note` tells it so."""

    id: str
    on_top: tuple[str, ...]
    note: str


class SubTaskProgressed(Passing, frozen=True):
    """What a running sub-task is doing."""

    id: str
    progress: SubTaskProgress


class SubTaskEnded(Lasting, frozen=True):
    """A run of a sub-task is over, and this is what came of it and what it took."""

    id: str
    state: Literal["completed", "failed", "cancelled"]
    summary: str = ""
    changed: tuple[FileStep, ...] = ()
    tokens: int = 0
    cost: float | None = 0.0
    seconds: float = 0.0
    reason: str = ""
    cause: Cause = ""
