"""Coming together: what sub-tasks changed, merged three ways into one review; their todos join the others."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.edits.change import Change, ChangeKind, FileStep, text_under
from tui_agent.edits.rebase import is_nothing, joined, with_texts
from tui_agent.files.blobs import Blobs
from tui_agent.log.journal import Journal
from tui_agent.review.conflicts import given_up
from tui_agent.store import events as e
from tui_agent.store.state import State, Todo
from tui_agent.subtasks.run import RunOutcome

#: The turn that changes of sub-tasks belong to: none of the conversation's, so that all of them are one batch.
TURN = 0


class FileResult(Struct, frozen=True):
    """What a sub-task did to one file: its hash before and after (empty: no file), and its new name if it has one."""

    path: str
    before: str
    after: str
    rename_to: str = ""

    @property
    def kind(self) -> ChangeKind:
        if self.rename_to:
            return "rename"
        if not self.before:
            return "create"
        return "edit" if self.after else "delete"


class ResultMerger:
    """Takes in what sub-tasks came to, one after the other. `on_newest` puts a change on the file as it is by now."""

    def __init__(
        self, journal: Journal, blobs: Blobs, on_newest: Callable[[Change], Awaitable[Change]]
    ) -> None:
        self._journal = journal
        self._blobs = blobs
        self._on_newest = on_newest
        self.one_at_a_time = asyncio.Lock()

    @property
    def state(self) -> State:
        return self._journal.store.state

    async def end(self, event: e.SubTaskEnded, ended: RunOutcome) -> None:
        """Write down how a run ended, and propose what it changed."""
        async with self.one_at_a_time:
            proposed: dict[str, Change] = {}
            events: list[e.Event] = []
            for result in results(ended.changed, ended.changes):
                change, *told = await self._proposed(event.id, result, ended, len(proposed))
                proposed[result.path] = change
                events += told
            todos = self._todos(event.id, ended, proposed)
            there = {todo.id for todo in self.state.todos}
            added = tuple(todo for todo in todos if todo.id not in there)
            events += [e.TodosAdded(added)] if added else []
            tied = {name: todo.id for todo in todos if todo.id in there for name in todo.changes}
            await self._journal.record(event, *(_with_todo(told, tied) for told in events))

    async def _proposed(
        self, task: str, result: FileResult, ended: RunOutcome, ahead: int
    ) -> tuple[Change, *tuple[e.Event, ...]]:
        """What a task did to one file, together with what others have proposed for it; and what says so."""
        number = sum(change.turn == TURN for change in self.state.review.changes) + ahead + 1
        alone = await asyncio.to_thread(self._change, f"s{number}", task, result, ended)
        while True:
            beside = self.beside(alone.path)
            change = await self.together(beside, alone)
            if self.beside(alone.path) == beside:  # nobody decided about it meanwhile
                break
        told: list[e.Event] = [] if is_nothing(change) else [e.ChangeProposed(change)]
        if beside is not None and (is_nothing(change) or change.path != beside.path):
            told.insert(0, given_up(beside, f"“{task}” went on from it"))
        return change, *told

    def beside(self, path: str) -> Change | None:
        """What waits for the person and leaves its file at that path; else what took it away from there."""
        waiting = [change for change in self.state.review.changes if change.is_open]
        there = (change for change in waiting if (change.rename_to or change.path) == path)
        return next(there, None) or next((change for change in waiting if change.path == path), None)

    async def together(self, beside: Change | None, change: Change) -> Change:
        """One change that holds both, on the file as it is by now, or a conflict."""
        if beside is not None:
            read = partial(text_under, self._blobs)
            change = await asyncio.to_thread(joined, beside, change, read, self._blobs.put_text)
        if change.state == "conflict" or is_nothing(change):
            return change
        return await self._on_newest(change)

    def _change(self, name: str, task: str, result: FileResult, ended: RunOutcome) -> Change:
        mine = [change for change in ended.changes if result.path in (change.path, change.rename_to)]
        base, new = text_under(self._blobs, result.before), text_under(self._blobs, result.after)
        return with_texts(
            Change(
                name,
                TURN,
                result.path,
                result.kind,
                base=result.before,
                rename_to=result.rename_to,
                rung=mine[0].rung if len(mine) == 1 else "",
                ask=next((change.ask for change in mine if change.ask), ""),
                tasks=(task,),
                checks=ended.checks,
                executable=next(
                    (change.executable for change in mine if change.executable is not None), None
                ),
            ),
            base or "",
            new or "",
            self._blobs.put_text,
        )

    def _todos(self, task: str, ended: RunOutcome, proposed: Mapping[str, Change]) -> tuple[Todo, ...]:
        """The child's todos under ids of their own, one that is there already under its id; tied to the changes of
        the files that they were about."""
        ids = {path: change.id for path, change in proposed.items()}
        paths = {change.id: change.path for change in ended.changes}
        there = {todo.text: todo for todo in self.state.todos}
        taken = {todo.id for todo in self.state.todos}
        found = []
        for todo in ended.todos:
            about = (ids.get(paths.get(change, ""), "") for change in todo.changes)
            tied = tuple(dict.fromkeys(filter(None, about)))
            if todo.text in there:
                found.append(replace(there[todo.text], changes=tied))
                continue
            name = next(free for n in itertools.count() if (free := _id(task, todo, n)) not in taken)
            found.append(replace(todo, id=name, changes=tied, done=todo.done and not tied, turn=TURN))
        return tuple(found)


def _id(task: str, todo: Todo, number: int) -> str:
    return f"{task}.{todo.id}.{number}" if number else f"{task}.{todo.id}"


def _with_todo(told: e.Event, tied: Mapping[str, str]) -> e.Event:
    """A proposal that carries out a todo of before names it."""
    if isinstance(told, e.ChangeProposed) and told.change.id in tied:
        return e.ChangeProposed(replace(told.change, todo=tied[told.change.id]))
    return told


def results(changed: Sequence[FileStep], said: Sequence[Change]) -> Iterator[FileResult]:
    """What was done file by file; a file that was renamed is one result and not two."""
    steps = {step.path: step for step in changed}
    renamed = {
        change.path: change.rename_to
        for change in said
        if change.rename_to in steps
        and change.path in steps
        and not steps[change.path].after
        and not steps[change.rename_to].before
    }
    for step in changed:
        if step.path in renamed.values():
            continue
        to = renamed.get(step.path, "")
        yield FileResult(step.path, step.before, steps[to].after if to else step.after, to)
