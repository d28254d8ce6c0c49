"""One run of a sub-task: copies the folder, opens a session with the hand-over, takes turns."""

from __future__ import annotations

import asyncio
import itertools
import os
import posixpath
import re
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.context.blocks import inert, item, name
from tui_agent.edits.change import Change, FileStep, Pick
from tui_agent.errors import PathRefused, PlaceLost
from tui_agent.files.gate import Gate
from tui_agent.files.names import plain
from tui_agent.log.cleanup import FOLDER
from tui_agent.log.journal import Journal
from tui_agent.store import events as e
from tui_agent.store.conversation import Usage
from tui_agent.store.graph import Cause, SubTask, needed_by
from tui_agent.store.state import State, SubTaskProgress, Todo
from tui_agent.subtasks import copies
from tui_agent.subtasks.parent import Parent, RunSession
from tui_agent.turn.conversation import last_request
from tui_agent.workspace.copies import WorkCopy

_BEGINNING = """# Your part of a larger work
Several work on parts of one request at the same time, each in a copy of the folder of its own. Yours is “{id}”.
Do this part and no other. What you propose is written into your copy at once, and the person reviews all parts \
together at the end: ask nobody, and do not wait for a decision. Where nothing is left to do, answer without changes; \
what you say beside your changes is what the others and the person are told of them."""
_ATTEMPT = """# One of several attempts
You work in a copy of the folder, and others attempt the same beside you. Your changes are written into your copy at \
once, and the person compares the attempts at the end: do not ask, and do not wait for a decision."""
_SCOPE = "Files of this part: {files}. Another file may be changed where this part needs it; the person is shown that."


class HandOver(Struct, frozen=True):
    """`before` are completed dependencies, `missing` the folders absent from the copy."""

    task: SubTask
    request: str = ""
    summary: str = ""
    before: tuple[SubTask, ...] = ()
    missing: tuple[str, ...] = ()
    splits: bool = False


def handover_text(given: HandOver) -> str:
    task = given.task
    if task.attempt:
        return "\n\n".join(filter(None, (_ATTEMPT, _list("These are not in your copy", given.missing))))
    done = []
    for before in given.before:
        changed = f" Changed: {', '.join(step.path for step in before.changed)}." if before.changed else ""
        done.append(f"{before.id}: {before.summary or before.goal}{changed}")
    parts = [
        _BEGINNING.format(id=name(task.id)),
        f"The whole request, word for word:\n{inert(given.request)}" if given.request else "",
        f"What was said of it: {inert(given.summary)}" if given.summary else "",
        _SCOPE.format(files=", ".join(map(name, task.files))) if task.files else "",
        _list("These parts are done, and your copy holds what they changed", done),
        _list("These are not in your copy, leave them alone", given.missing),
        inert(task.note),
        "" if given.splits else "Do not split this part into sub-tasks.",
    ]
    return "\n\n".join(part for part in parts if part)


def _list(title: str, items: Sequence[str]) -> str:
    lines = [f"- {item(entry)}" for entry in items]
    return "\n".join([f"{title}:", *lines]) if lines else ""


#: If `limits.turns` is 0.
MOST_TURNS = 10
GO_ON = "continue"
#: Starts of a sub-task after lost workers.
MOST_MOVES = 2
EVERY = 0.25
LONGEST_LINE = 300
LONGEST_WORK = 600
#: An answer without information, such as "OK, done".
_TELLS_NOTHING = re.compile(
    r"(?i)\W*(?:(?:ok(?:ay)?|yes|sure|all|is|it'?s|everything|now|already|nothing|left|more|to|do|(?:is )?done|"
    r"finished|completed?|ready|fine|good|great)\W*)+"
)


class RunOutcome(Struct, frozen=True):
    """`changes` are the child's; `checks` are failed ones in its copy."""

    state: Literal["completed", "failed", "cancelled"] = "completed"
    summary: str = ""
    reason: str = ""
    cause: Cause = ""
    changed: tuple[FileStep, ...] = ()
    changes: tuple[Change, ...] = ()
    checks: tuple[str, ...] = ()
    #: "checks passed" if they ran and none failed.
    passed: str = ""
    todos: tuple[Todo, ...] = ()
    tokens: int = 0
    cost: float | None = 0.0


def folder_of(parent: Path, task: SubTask) -> Path:
    return parent / FOLDER / f"{plain(task.id)}.{task.run}"


class SubTaskRun:
    def __init__(self, parent: Parent, task: SubTask) -> None:
        self.child: RunSession | None = None
        self._parent = parent
        self._task = task
        name = f"{task.id}.{task.run}"
        self._is_here = False
        self._brought: set[str] = set()
        self._lost: dict[str, str] = {}
        self._folder = copies.folder_of_run(parent.data, parent.storage.folder, name)

    async def __call__(self, snapshot: Awaitable[str]) -> RunOutcome:
        """The copy exists until `remove`. Raises errors of the preparation."""
        done = await self._placed() if self._parent.settings.subtasks.place else None
        if done is None:
            parent = self._parent
            copy = await parent.workspace.copies.make(self._folder, await snapshot)
            self._is_here = True
            there = await self._copyable()
            missing = await parent.workspace.copies.copy_missing(copy, there)
            self._brought = set(there) - set(missing)
            paths = await asyncio.to_thread(self._lay_over, copy)
            opening = partial(parent.open_child, self._task, copy)
            done = await self._work(opening, (*copy.missing, *missing), paths)
            assert done is not None
        made = {step.path for step in done.changed} | {it.rename_to or it.path for it in done.changes}
        lost = {path: why for path, why in self._lost.items() if posixpath.normpath(path) not in made}
        if not lost:
            return done
        told = "; ".join(f"{path} {why}" if path not in why else why for path, why in lost.items())
        await self._parent.journal.record(e.NoticeGiven("warning", f"Sub-task {self._task.id}: {told}"))
        return replace(done, summary=f"{done.summary} ({told})".lstrip())

    async def remove(self) -> None:
        """Raises `FileError` or `ChildFailed`."""
        if self._is_here:
            await self._parent.workspace.copies.remove(self._folder)

    async def _placed(self) -> RunOutcome | None:
        """Restarts if the worker is lost; None if the run has to be here."""
        parent, name = self._parent, self._task.id
        there: list[str] = []
        if self._task.files:
            there = await self._copyable()
            self._brought = set(there)
        tokens, cost = 0, 0.0
        for moves in itertools.count(1):
            try:
                texts = copies.overlay(parent.journal.store.state, self._task, parent.storage.blobs)
                contents = (
                    await asyncio.to_thread(copies.encoded, parent.workspace.gate, texts) if texts else {}
                )
                paths = self._paths_with(texts)
                done = await self._work(partial(parent.open_placed, self._task, contents, there), (), paths)
                return done and replace(
                    done, tokens=done.tokens + tokens, cost=None if done.cost is None else done.cost + cost
                )
            except PlaceLost as lost:
                used = self.child.state.usage.session if self.child else Usage()
                tokens, cost = tokens + used.input + used.output, cost + (used.cost or 0.0)
                if moves > MOST_MOVES:
                    return RunOutcome("failed", reason=str(lost), cause="error", tokens=tokens, cost=cost)
                moved = f"Moved ({moves} of {MOST_MOVES}). {lost.what}"
                await parent.journal.record(e.SubTaskMoved(name, "running", reason=moved))
                self._task = parent.journal.store.state.subtasks.get(name) or self._task
                self.child = None
        raise AssertionError

    async def _copyable(self) -> list[str]:
        why = await asyncio.to_thread(_why_lost, self._parent.workspace.gate, self._task.files)
        self._lost = {path: reason for path, reason in why.items() if reason}
        return [path for path, reason in why.items() if not reason]

    def _lay_over(self, copy: WorkCopy) -> list[str]:
        parent = self._parent
        gate = Gate(Path(copy.root))
        copies.copy_exact_bytes(gate, parent.workspace.gate, self._task.files)
        texts = copies.overlay(parent.journal.store.state, self._task, parent.storage.blobs)
        copies.write_texts(gate, texts)
        return self._paths_with(texts)

    def _paths_with(self, texts: copies.Texts) -> list[str]:
        gone = {path for path, text in texts.items() if text is None}
        return sorted({*self._parent.workspace.index.paths, *self._brought, *texts} - gone)

    async def _work(
        self,
        open_child: Callable[[str], Awaitable[RunSession | None]],
        missing: tuple[str, ...],
        paths: list[str],
    ) -> RunOutcome | None:
        parent = self._parent
        state = self._parent.journal.store.state
        said = (gist for m in reversed(state.chat.messages) if m.kind == "agent" and (gist := m.gist))
        hand_over = HandOver(
            self._task,
            request=last_request(state),
            summary=next(said, ""),
            before=tuple(t for t in needed_by(self._task, state.subtasks.tasks) if t.state == "completed"),
            missing=missing,
            splits=self._parent.settings.subtasks.max_depth > 1,
        )
        part = handover_text(hand_over)
        child = await open_child(part)
        if child is None:
            return None
        self.child = child
        telling = ProgressReporter(parent.journal, self._task.id, child)
        try:
            child.start(paths)
            most = parent.settings.subtasks.max_seconds
            try:
                async with asyncio.timeout(most or None):
                    reason, cause = await self._drive(child, set(paths))
            except TimeoutError:
                reason, cause = f"It exceeded {most} s: raise subtasks.max_seconds, or split it", "limit"
            return outcome(child.state, reason, cause)
        finally:
            task = asyncio.create_task(self._end(child, telling))
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError:
                await task
                raise

    async def _end(self, child: RunSession, telling: ProgressReporter) -> None:
        await child.close()
        await telling.close()

    async def _drive(self, child: RunSession, there: Collection[str]) -> tuple[str, Cause]:
        """Returns the failure's reason and cause, or empty strings."""
        most = self._parent.settings.limits.turns or MOST_TURNS
        await child.run_turn(self._task.goal, [path for path in self._task.files if path in there])
        for number in range(1, most + 1):
            turn = child.state.turn
            if not turn.ok:
                reason = turn.error.replace("limits.session_", "subtasks.max_")
                return reason, "limit" if turn.kind == "LimitReached" else "error"
            told_all = not child.state.conversation.untold
            await _apply_open(child)
            if child.state.subtasks.tasks:
                async with self._parent.capacity.lend_slot():
                    await child.subtasks_settled()
                await _apply_open(child)
            if told_all and not may_continue(child.state):
                return "", ""
            if number < most:
                await child.run_turn(GO_ON)
        return f"It was not finished after {most} turns: raise limits.turns, or split it", "limit"


async def _apply_open(child: RunSession) -> None:
    if picks := [Pick(change.id) for change in child.state.review.open]:
        await child.apply(picks)


def _why_lost(gate: Gate, paths: Sequence[str]) -> dict[str, str]:
    """Why a copy does not get each path; "" for those that it gets."""
    found: dict[str, str] = {}
    for path in paths:
        try:
            place = gate.place(path, "read")
        except PathRefused as error:
            outside = os.path.isabs(path) or os.path.normpath(path).startswith("..")
            found[path] = "is outside the workspace" if outside else error.what
            continue
        found[path] = "looks like a secret" if place.secret else "" if place.exists else "is not there"
    return found


def may_continue(state: State) -> bool:
    turn = state.turn.number
    did_something = any(change.turn == turn for change in state.review.changes)
    return did_something and any(not todo.done for todo in state.todos)


def work_of(state: State) -> str:
    """Returns the text of messages with standing changes, or the last message, or the changed paths."""
    said = [(m, gist) for m in state.chat.messages if m.kind == "agent" and (gist := m.gist)]
    telling = [(message, gist) for message, gist in said if not _TELLS_NOTHING.fullmatch(gist)]
    standing = {c.id: c for c in state.review.changes if c.state not in ("failed", "skipped", "undone")}
    turns = {change.turn for change in standing.values()}
    work = [gist for message, gist in telling if standing.keys() & set(message.changes)]
    work = work or [gist for message, gist in telling if message.turn in turns][-1:]
    if not work and standing:
        work = [f"Changed {', '.join(dict.fromkeys(change.path for change in standing.values()))}."]
    text = " ".join(dict.fromkeys(work or [gist for _, gist in (telling or said)[-1:]]))
    return text if len(text) <= LONGEST_WORK else f"{text[: LONGEST_WORK - 1].rstrip()}…"


def outcome(state: State, reason: str = "", cause: Cause = "") -> RunOutcome:
    """A `reason` marks it as failed, without files and todos."""
    used = state.usage.session
    failed = tuple(result.name for result in state.checks.results if result.state != "passed")
    steps: dict[str, FileStep] = {}
    for point in state.review.checkpoints:
        for step in point.files:
            first = steps.get(step.path, step)
            steps[step.path] = replace(first, after=step.after, mode_after=step.mode_after)
    changed = tuple(
        step
        for step in steps.values()
        if step.before != step.after or (step.after and step.mode_after not in (None, step.mode))
    )
    return RunOutcome(
        state="failed" if reason else "completed",
        summary=work_of(state),
        reason=reason,
        cause=cause,
        changed=() if reason else changed,
        changes=state.review.changes,
        checks=failed,
        passed="checks passed" if state.checks.results and not failed else "",
        todos=() if reason else state.todos,
        tokens=used.input + used.output,
        cost=used.cost,
    )


class ProgressReporter:
    def __init__(self, journal: Journal, task: str, child: RunSession) -> None:
        now = time.time()
        self._journal = journal
        self._task = task
        self._progress = SubTaskProgress(started=now, heard=now)
        self._timer: asyncio.TimerHandle | None = None
        self._paying: set[asyncio.Task[None]] = set()
        self._unsubscribe = child.subscribe(self._on_event)
        self._publish_progress()

    async def close(self) -> None:
        self._unsubscribe()
        if self._timer is not None:
            self._timer.cancel()
        await asyncio.gather(*self._paying)

    def _on_event(self, event: e.Event, state: State) -> None:
        line = ""
        match event:
            case e.RequestSent():
                self._journal.publish(replace(event, purpose="subtask", messages=()))
            case e.UsageCounted(usage):
                paid = e.UsageCounted(usage, "subtask")
                # The end of the task makes it durable.
                self._paying.add(asyncio.ensure_future(self._journal.record_soon(paid)))
            case e.ReplyStreamed():
                said = (state.reply.message or state.reply.summary).rstrip()
                line = said[said.rfind("\n") + 1 :][-LONGEST_LINE:]
            case e.ChangeProposed(change):
                line = f"{change.kind} {change.path}"
            case e.RetryCounted(seconds, _, why):
                line = f"{why}: waits {seconds} s"
            case e.ReplyRead(summary=summary):
                line = summary
            case e.SubTaskEnded(id=name, state=ended):
                line = f"{name} {ended}"
            case e.PhaseChanged() | e.TurnStarted() | e.TurnEnded():
                pass
            case _:
                return
        used = state.usage.session
        self._progress = replace(
            self._progress,
            phase=state.turn.phase,
            line=line or self._progress.line,
            tokens=used.input + used.output,
            cost=used.cost,
            heard=time.time(),
            turn=state.turn.number,
        )
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(EVERY, self._publish_progress)

    def _publish_progress(self) -> None:
        self._timer = None
        self._journal.publish(e.SubTaskProgressed(self._task, self._progress))
