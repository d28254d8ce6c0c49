"""Merges the sub-tasks' changes into one review, imports their todos, restarts a sub-task. Handles attempts
at one goal by several agents, which wait until one is taken.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.edits.change import Change, ChangeKind, FileStep, hunks, text_under
from tui_agent.edits.merge import is_nothing, joined, merge, remaining, with_texts
from tui_agent.errors import EditFailed, SessionError
from tui_agent.files.blobs import Blobs
from tui_agent.log.journal import Journal
from tui_agent.review.conflicts import given_up
from tui_agent.store import events as e
from tui_agent.store.graph import OPEN_STATES, SubTask, may_become
from tui_agent.store.state import State
from tui_agent.subtasks.run import RunOutcome

#: Outside the conversation, so all form one batch.
TURN = 0


_log = logging.getLogger(__name__)

MOST_ATTEMPTS = 8
_REPORT = re.compile(r"(?:(.*?), )?(\d+ files?, \+\d+ -\d+|no change)(?:: (.*))?", re.DOTALL)


class FileResult(Struct, frozen=True):
    """Hashes are "" for no file."""

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


@dataclass
class _Result:
    event: e.SubTaskEnded
    ended: RunOutcome
    done: asyncio.Future[None]

    @cached_property
    def paths(self) -> set[str]:
        return {step.path for step in self.ended.changed}


class ResultMerger:
    """`on_newest` rebases a change onto the current file."""

    def __init__(
        self, journal: Journal, blobs: Blobs, on_newest: Callable[[Change], Awaitable[Change]]
    ) -> None:
        self._journal = journal
        self._blobs = blobs
        self._on_newest = on_newest
        self._waiting: list[_Result] = []
        self.one_at_a_time = asyncio.Lock()

    @property
    def state(self) -> State:
        return self._journal.store.state

    async def end(self, event: e.SubTaskEnded, ended: RunOutcome) -> None:
        """Results that wait for an earlier one are recorded together, so that they share a write to the disk."""
        mine = _Result(event, ended, asyncio.get_running_loop().create_future())
        self._waiting.append(mine)
        async with self.one_at_a_time:
            if not mine.done.done():
                await self._record_waiting()
        mine.done.result()

    async def _record_waiting(self) -> None:
        """The first result, and those after it that change other files and bring no todos."""
        recorded: list[tuple[_Result, Sequence[e.Event]]] = []
        paths: set[str] = set()
        ahead = 0
        while self._waiting:
            one = self._waiting[0]
            if recorded and (recorded[-1][0].ended.todos or one.ended.todos or paths & one.paths):
                break
            del self._waiting[0]
            try:
                recorded.append((one, await self._events_of(one, ahead)))
            except Exception as error:
                _log.debug("a result is not recorded", exc_info=True)
                one.done.set_exception(error)
                continue
            paths |= one.paths
            ahead += len(one.ended.changed)
        said = await asyncio.gather(
            *(self._journal.record(*events) for _, events in recorded), return_exceptions=True
        )
        for (one, _), error in zip(recorded, said, strict=True):
            one.done.set_exception(error) if error else one.done.set_result(None)

    async def _events_of(self, result: _Result, ahead: int) -> Sequence[e.Event]:
        """`ahead` is the number of changes that are proposed but not in the state yet."""
        event, ended = result.event, result.ended
        task = self.state.subtasks.get(event.id)
        if task is not None and task.attempt:
            summary = await asyncio.to_thread(report, ended, self._blobs)
            return [replace(event, summary=summary)]
        proposed, events = await self._all_proposed(event.id, ended, ahead)
        # A todo with the text of an existing one is that one.
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
            name = next(
                free
                for n in itertools.count()
                if (free := (f"{event.id}.{todo.id}.{n}" if n else f"{event.id}.{todo.id}")) not in taken
            )
            found.append(replace(todo, id=name, changes=tied, done=todo.done and not tied, turn=TURN))
        todos = tuple(found)
        there = {todo.id for todo in self.state.todos}
        added = tuple(todo for todo in todos if todo.id not in there)
        events += [e.TodosAdded(added)] if added else []
        tied = {name: todo.id for todo in todos if todo.id in there for name in todo.changes}
        return [
            event,
            *(
                e.ChangeProposed(replace(told.change, todo=tied[told.change.id]))
                if isinstance(told, e.ChangeProposed) and told.change.id in tied
                else told
                for told in events
            ),
        ]

    async def take(self, task: str, ended: RunOutcome) -> int:
        async with self.one_at_a_time:
            proposed, events = await self._all_proposed(task, ended)
            await self._journal.record(*events)
        return len(proposed)

    async def _all_proposed(
        self, task: str, ended: RunOutcome, ahead: int = 0
    ) -> tuple[dict[str, Change], list[e.Event]]:
        proposed: dict[str, Change] = {}
        events: list[e.Event] = []
        for result in results(ended.changed, ended.changes):
            earlier = sum(change.turn == TURN for change in self.state.review.changes)
            name = f"s{earlier + ahead + len(proposed) + 1}"
            alone = await asyncio.to_thread(self._change, name, task, result, ended)
            while True:
                beside = self.beside(alone.path)
                change = await self.together(beside, alone)
                if self.beside(alone.path) == beside:
                    break
            if beside is not None and (is_nothing(change) or change.path != beside.path):
                events.append(given_up(beside, f"“{task}” went on from it"))
            if not is_nothing(change):
                events.append(e.ChangeProposed(change))
            proposed[result.path] = change
        return proposed, events

    def beside(self, path: str) -> Change | None:
        about = [
            change
            for change in self.state.review.changes
            if path in (change.path, change.rename_to) and change.is_open
        ]
        there = (change for change in about if (change.rename_to or change.path) == path)
        return next(there, None) or next(iter(about), None)

    async def together(self, beside: Change | None, change: Change) -> Change:
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


def results(changed: Sequence[FileStep], said: Sequence[Change]) -> Iterator[FileResult]:
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


_NOTE = (
    "You have done this part once, and what you changed in {path} does not go together with what {others} changed "
    "there. Your copy now holds that: do your part again on top of it, and keep what is there."
)


class SubTaskRestart:
    def __init__(self, journal: Journal, blobs: Blobs, merger: ResultMerger) -> None:
        self._journal = journal
        self._blobs = blobs
        self._merger = merger

    @property
    def state(self) -> State:
        return self._journal.store.state

    async def retract(self, task: SubTask, why: str, *, all_of_it: bool = False) -> None:
        """Withdraws the undecided proposals of a task's last run. Inseparable changes stay; with `all_of_it`
        they raise `EditFailed` first.
        """
        async with self._merger.one_at_a_time:
            parted: list[tuple[Change, Change | None]] = []
            paths = {step.path for step in task.changed}
            made = [
                change
                for change in self.state.review.changes
                if task.id in change.tasks
                and (change.is_open or change.state == "conflict")
                and not paths.isdisjoint((change.path, change.rename_to))
            ]
            for change in made:
                try:
                    parted.append((change, await asyncio.to_thread(self._without, change, task)))
                except EditFailed:
                    if all_of_it:
                        raise
            for change, rest in parted:
                changes = self.state.review.changes
                against = [
                    other.id for other in changes if other.rival == change.id and other.state == "conflict"
                ]
                if rest is not None:
                    await self._journal.record(e.ChangeReworked(await self._merger.together(None, rest)))
                else:
                    await self._journal.record(given_up(change, why))
                for name in against:
                    other = self.state.review.change(name)
                    if other is None:
                        continue
                    beside = self._merger.beside(other.path)
                    if beside is not None and beside.id == name:
                        beside = None
                    alone = replace(other, state="pending", rival="", reason="")
                    both = await self._merger.together(beside, alone)
                    told: list[e.Event] = [e.ChangeReworked(both)]
                    if beside is not None and both.state != "conflict":
                        told.append(given_up(beside, f"joined into {name}"))
                    await self._journal.record(*told)

    async def redo(self, change_id: str, task: str) -> None:
        """Reruns `task` and keeps other changes of the same files. Raises `SessionError` if the change is
        not a conflict of that task.
        """
        change = self.state.review.change(change_id)
        rival = self.state.review.change(change.rival) if change else None
        if change is None or rival is None or change.state != "conflict":
            raise SessionError(
                f"{change_id} is not a conflict of two sub-tasks", "choose one from the review"
            )
        both = (*rival.tasks, *change.tasks)
        others = tuple(name for name in both if name != task)
        if task not in both or not others:
            raise SessionError(
                f"{task} has no part in the conflict in {change.path}", f"choose one of {', '.join(both)}"
            )
        found = self.state.subtasks.get(task)
        if found is None or not may_become(found, "pending"):
            raise SessionError(f"{task} cannot be restarted", "resolve the conflict by hand")
        await self.retract(found, f"given back to “{task}”", all_of_it=True)
        note = _NOTE.format(path=change.path, others=", ".join(f"“{name}”" for name in others))
        await self._journal.record(e.SubTaskGivenBack(task, others, note))

    def _without(self, change: Change, task: SubTask) -> Change | None:
        path = change.rename_to or change.path
        step = next((step for step in task.changed if step.path == path), None)
        alone = change.tasks == (task.id,)
        if alone and (step is None or not step.before or not step.after or not change.is_open):
            return None
        mixed = EditFailed(
            f"The work of “{task.id}” in {change.path} cannot be told from that of others",
            "resolve the conflict by hand, or give it back to another",
        )
        if step is None or not step.before or not step.after:
            raise mixed
        read = partial(text_under, self._blobs)
        base = read(change.base) or ""
        merged = merge(read(step.after) or "", remaining(change, read) or "", read(step.before) or "")
        if merged.conflicts:
            raise mixed
        if merged.text == base and not change.rename_to:
            return None
        others = tuple(name for name in change.tasks if name != task.id)
        return with_texts(replace(change, tasks=others), base, merged.text, self._blobs.put_text)


def attempts(
    names: Sequence[str], goal: str, graph: Sequence[SubTask], models: Collection[str] = ()
) -> tuple[SubTask, ...]:
    """Returns a sub-task for each agent or model ("": the session's), with a new group and ids. Raises
    `SessionError`.
    """
    if not goal.strip() or not 2 <= len(names) <= MOST_ATTEMPTS:
        raise SessionError(
            f"/best needs a goal and 2 to {MOST_ATTEMPTS} attempts",
            "write /best claude codex GOAL, /best MODEL MODEL GOAL, or /best 3 GOAL",
        )
    groups = {task.attempt for task in graph}
    group = next(name for n in itertools.count(1) if (name := f"best {n}") not in groups)
    found = []
    for number, name in enumerate(names, 1):
        agent, model = ("", name) if name in models else (name, "")
        shown = f"{group}.{number} {name}".rstrip()
        found.append(SubTask(shown, goal.strip(), agent=agent, attempt=group, model=model))
    return tuple(found)


def report(ended: RunOutcome, blobs: Blobs) -> str:
    """Returns checks, size of the change and summary. Blocking."""
    added = removed = 0
    for step in ended.changed:
        before, after = (text_under(blobs, key) or "" for key in (step.before, step.after))
        for hunk in hunks(before, after):
            added, removed = added + len(hunk.added), removed + len(hunk.removed)
    count = len(ended.changed)
    size = f"{count} file{'' if count == 1 else 's'}, +{added} -{removed}" if count else "no change"
    checks = f"{', '.join(ended.checks)} failed" if ended.checks else ended.passed
    return ", ".join(filter(None, (checks, size))) + (f": {ended.summary}" if ended.summary else "")


def report_parts(summary: str) -> tuple[str, str, str]:
    found = _REPORT.fullmatch(summary)
    return (found[1] or "", found[2], found[3] or "") if found else ("", "", summary)


def comparison(group: str, graph: Sequence[SubTask]) -> str:
    """Returns "" if one attempt has not ended."""
    ours = [task for task in graph if task.attempt == group]
    if any(task.state in OPEN_STATES for task in ours):
        return ""
    lines = []
    for task in ours:
        cost = f", ${task.cost:.2f}" if task.cost else ""
        said = task.summary if task.state == "completed" else f"{task.state}: {task.reason}"
        lines.append(f"{task.id} ({task.seconds:.0f} s{cost}): {said}")
    return "\n".join([*lines, "/take and a name puts one into the review; /attempts shows them side by side"])
