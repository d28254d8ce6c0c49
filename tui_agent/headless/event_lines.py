"""Events as output lines: JSON for programs (a stable contract, see the README), or text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from tui_agent.context.blocks import holds
from tui_agent.context.known_files import KnownFile, freshness_mark
from tui_agent.edits.change import Change, proposing_tasks
from tui_agent.files.text import clean, one_line
from tui_agent.planning.chain import Attempt
from tui_agent.store import events as e
from tui_agent.store.commands import MARKS, CheckLook, CheckResult, CommandResult
from tui_agent.store.conversation import Usage
from tui_agent.store.graph import SubTask
from tui_agent.store.state import State

Line = dict[str, Any]


def session_line(state: State) -> Line:
    return {
        "type": "session",
        "id": state.session.id,
        "workspace": state.session.workspace,
        "turn": state.turn.number,
        "model": state.model.name or None,
        "protocol": state.model.protocol or None,
    }


def finished_line(ok: bool, error: str, usage: Usage, seconds: float, limit: str) -> Line:
    return {
        "type": "finished",
        "ok": ok,
        "error": error or None,
        "usage": {
            "input": usage.input,
            "output": usage.output,
            "cached": usage.cached,
            "cost": usage.cost,
            "thinking": usage.thinking,
        },
        "seconds": round(seconds, 3),
        "limit": limit or None,
    }


def _line(kind: str, source: object, *fields: str) -> Line:
    return {"type": kind, **{field: getattr(source, field) for field in fields}}


def lines(event: e.Event, state: State) -> Iterator[Line]:
    match event:
        case e.PlanMade():
            files = (
                {
                    "type": "file",
                    "name": action.name,
                    "patterns": list(action.patterns),
                    "reason": action.reason,
                    "required": action.required,
                    "fallbackAction": action.fallback,
                    "all": action.all,
                }
                for action in event.actions
            )
            folders = (_line("directory", one, "path", "recursive", "filter") for one in event.directories)
            actions = [*files, *folders]
            yield {"type": "plan", "source": event.source, "actions": actions}
        case e.AttemptEnded(attempt):
            fields = ("action", "pattern", "by", "index", "total", "outcome", "matches")
            yield {**_line("attempt", attempt, *fields), "ms": round(attempt.ms, 2)}
        case e.FallbackTaken(action, kind, patterns):
            yield {"type": "fallback", "action": action, "kind": kind, "patterns": list(patterns)}
        case e.FileLoaded(file):
            yield _line("file_loaded", file, "path", "md5", "lines", "tokens", "loaded_by")
        case e.FilesLeftOut(reason=reason) if reason in ("room", "limit"):
            yield {"type": "left_out", "paths": list(event.paths), "reason": reason}
        case e.FreshnessChanged(path, cause, by_agent=False, undone=False) if cause not in (
            "fresh",
            "edited",
        ):
            yield {"type": "stale", "path": path, "cause": cause}
        case e.FreshnessChanged(path, undone=True) | e.KnownFileEdited(KnownFile(path), undone=True):
            yield {"type": "stale", "path": path, "cause": "undo"}
        case e.TurnStarted():
            rows = state.conversation.rows
            for path, entry in state.known.files.items():
                if entry.freshness == "undone" and freshness_mark(entry) not in rows.get(path, ""):
                    yield {"type": "stale", "path": path, "cause": "undo"}
        case e.DirectoryListed(path, entries, error):
            listed = [{"name": name, "type": kind, "size": size} for name, kind, size in entries]
            yield {"type": "listing", "path": path, "entries": listed, "error": error or None}
        case e.NoticeGiven(level, text):
            yield {"type": "notice", "level": level, "text": text}
        case _:
            yield from _of_calls(event, state)
            yield from _of_the_answer(event, state)


def lines_with_end(event: e.Event, state: State) -> Iterator[Line]:
    yield from lines(event, state)
    if isinstance(event, e.TurnEnded):
        yield finished_line(
            state.turn.ok, state.turn.error, state.usage.turn, state.turn.seconds, state.turn.limit
        )


def _of_calls(event: e.Event, state: State) -> Iterator[Line]:
    match event:
        case e.CallEnded():
            yield _line("tool", event, "id", "name", "arguments", "ok", "seconds")
        case e.CommandStarted(name, command, where=where, isolated=isolated):
            yield {"type": "command", "id": name, "command": command, "where": where, "isolated": isolated}
        case e.CommandEnded(result):
            yield {
                "type": "command_result",
                "id": result.id,
                "exit": result.status,
                "seconds": round(result.seconds, 3),
                "changed": list(result.changed),
                "output": result.output,
                "cut": result.cut,
                "cause": result.cause or None,
                "view": list(result.report),
            }
        case e.CheckEnded(result):
            yield check_line(result, _check_state(result, state))
        case e.TurnEnded():
            stale = (
                result for result in state.checks.results if state.review.open and not state.holds(result)
            )
            yield from (check_line(result, "stale") for result in stale)


def _of_the_answer(event: e.Event, state: State) -> Iterator[Line]:
    match event:
        case e.RequestSent():
            yield {
                "type": "request",
                "pass": event.purpose,
                "tokens": event.tokens,
                "prefix_share": event.prefix_share,
                "reset": event.reset,
                "files": sorted(event.files),
            }
        case e.ReplyStreamed(part, text) if part in ("summary", "message"):
            yield {"type": "delta", "text": text}
        case e.ReplyRead():
            yield _response(event)
        case e.ChangeProposed(change) | e.ChangeReworked(change):
            yield from _change_and_whose(change, state)
        case e.ChangeMoved(id=name):
            change = state.review.change(name)
            if change is not None:
                yield from _change_and_whose(change, state)
        case e.SubTasksProposed():
            yield from (_subtask(task, state) for task in state.subtasks.tasks)
        case e.SubTaskMoved(id=name) | e.SubTaskEnded(id=name) | e.SubTaskGivenBack(id=name):
            for task in state.subtasks.tasks:  # An ended task may have unblocked its dependents.
                if task.id == name or (name in task.dependencies and task.state == "ready"):
                    yield _subtask(task, state)


def _check_state(result: CheckResult, state: State) -> CheckLook:
    return result.state if result.state == "stopped" or state.holds(result) else "stale"


def check_line(result: CheckResult, now: CheckLook) -> Line:
    return {
        "type": "check",
        "name": result.name,
        # The contract has four states; a check without its program has no verdict either.
        "state": "stopped" if now == "missing" else now,
        "missing": now == "missing",
        "passed": result.passed,
        "failed": result.failed,
        "seconds": result.seconds,
        "repair": result.repair,
        "new": result.new,
        "old": result.old,
        "flaky": len(result.flaky),
    }


def change_line(change: Change) -> Line:
    return {
        "type": "change",
        "id": change.id,
        "path": change.path,
        "kind": change.kind,
        "state": change.state,
        "rung": change.rung or None,
        "hunks": len(change.hunks),
        "added": change.added,
        "removed": change.removed,
        "reason": change.reason or None,
        **({} if change.executable is None else {"executable": change.executable}),
    }


def _response(event: e.ReplyRead) -> Line:
    return {
        "type": "response",
        "summary": event.summary,
        "message": event.message,
        "todos": [{"text": todo.text, "aiText": todo.ai_text, "done": todo.done} for todo in event.todos],
        "changes": list(event.changes),
        "sub_tasks": [
            {
                "id": task.id,
                "goal": task.goal,
                "files": list(task.files),
                "dependencies": list(task.dependencies),
                "autoExecute": task.auto_execute,
            }
            for task in event.sub_tasks
        ],
        "next_steps": [{"html": step.label, "inputText": step.input_text} for step in event.next_steps],
        "cut": event.cut,
    }


def _change_and_whose(change: Change, state: State) -> Iterator[Line]:
    yield change_line(change)
    if change.state == "conflict":
        both = {name for side in proposing_tasks(change, state.review.changes) for name in side}
        yield from (_subtask(task, state) for task in state.subtasks.tasks if task.id in both)


def _subtask(task: SubTask, state: State) -> Line:
    changes = state.review.changes
    disputed = any(
        task.id in side for c in changes if c.state == "conflict" for side in proposing_tasks(c, changes)
    )
    return {
        "type": "subtask",
        "id": task.id,
        "state": task.state,
        "goal": task.goal,
        "files": list(task.files),
        "summary": task.summary or None,
        "reason": task.cause or ("conflict" if disputed else None),
    }


def place(attempt: Attempt) -> str:
    rank = f"{attempt.index}/{attempt.total}"
    return rank if attempt.by == "model" else f"built in {rank}"


def text_line(event: e.Event, state: State) -> Iterator[tuple[Literal["out", "err"], str]]:
    """Yields (stream, text); only a reply has several lines."""
    match event:
        case e.AttemptEnded(attempt):
            mark = "found" if attempt.outcome == "hit" else attempt.why or attempt.outcome
            yield (
                "err",
                one_line(f"  {attempt.action}: {attempt.pattern} ({place(attempt)}) {mark}"),
            )
        case e.FallbackTaken(action, kind):
            yield "err", one_line(f"  {action}: nothing loaded, {kind.replace('_', ' ')}")
        case e.NoticeGiven(level, text):
            yield "err", one_line(f"{level}: {text}")
        case e.RetryCounted(seconds, attempt, why):
            yield "err", one_line(f"  {why}: attempt {attempt} in {seconds} s")
        case e.ReplyRead(summary=summary, message=message):
            for part in filter(None, ("" if holds(message, summary) else summary, message.strip())):
                yield "out", clean(part)
        case e.ChangeProposed(change):
            counts = f"+{change.added} −{change.removed}"
            yield "out", one_line(f"{change.id} {change.kind} {change.path} {counts}{_why(change)}")
        case e.ChangeMoved(id=name, state=now):
            change = state.review.change(name)
            if change is not None:
                yield "out", one_line(f"{change.id} {now} {change.path}{_why(change)}")
        case e.CheckEnded(result):
            mark = MARKS[_check_state(result, state)]
            amount = f", {result.failed} failed" if result.failed else ""
            if result.old or result.flaky:
                amount += f" ({result.new} new, {result.old} before, {len(result.flaky)} flaky)"
            passed = f", {result.passed} passed" if result.passed else ""
            yield (
                "err",
                one_line(f"  {mark} {result.name}: {result.state}{passed}{amount}, {result.seconds:.1f} s"),
            )
            for path, line in result.places[:10]:
                yield "err", one_line(f"      {path}:{line}")
            run = state.commands.result(result.run)
            if run is not None and result.state == "failed":
                yield from _of_its_view(run)
        case e.CommandEnded(result) if result.by != "check":
            yield "err", one_line(f"  ran {result.command}: {result.ending}, {result.seconds:.1f} s")
            yield from _of_its_view(result)
        case e.SubTaskMoved(id=name, state="running"):
            yield "err", one_line(f"  sub-task {name} runs")
        case e.SubTaskEnded(id=name):
            said = event.summary if event.state == "completed" else event.reason
            yield "out", one_line(f"sub-task {name} {event.state}{f': {said}' if said else ''}")


def _of_its_view(result: CommandResult) -> Iterator[tuple[Literal["out", "err"], str]]:
    for told in (*filter(None, [result.cause]), *result.report):
        yield "err", one_line(f"      {told}")


def _why(change: Change) -> str:
    return f" ({change.state}: {change.reason})" if change.reason else ""
