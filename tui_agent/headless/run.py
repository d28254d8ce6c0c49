"""`tui-agent run`: one turn without a screen, as text or JSON lines."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from typing import TextIO

from tui_agent import errors
from tui_agent.files.known_secrets import KnownSecrets
from tui_agent.headless import output
from tui_agent.headless.arguments import RunOptions
from tui_agent.headless.event_lines import Line, finished_line, lines, session_line, text_line
from tui_agent.headless.output import OutputLost, ProgressStream
from tui_agent.processes.child import ChildProcess
from tui_agent.session.auto_apply import unchecked
from tui_agent.session.opening import Opening, open_session
from tui_agent.session.session import Session
from tui_agent.store import events as e
from tui_agent.store.conversation import Usage, used_since
from tui_agent.store.state import State, TurnSlice
from tui_agent.workspace.early_start import EarlyChild

#: Unresolved changes after an apply.
LEFT = ("failed", "conflict", "pending", "merged")


async def run(options: RunOptions, ahead: EarlyChild | None, model_ahead: ChildProcess | None) -> int:
    """Returns the documented exit status. Raises `TuiAgentError` before the turn begins.

    `ahead` and `model_ahead` are started processes.
    """
    opening = Opening(
        workspace=options.workspace,
        session=options.session,
        overrides=options.overrides,
        trust=options.trust,
        replay=options.replay,
        record=options.record,
    )
    session = await open_session(opening, ahead=ahead, model_ahead=model_ahead)
    teller: RunReporter = TextReporter(sys.stdout, sys.stderr)
    if options.as_json:
        teller = JsonReporter(sys.stdout, session.secrets)
    session.subscribe(teller.on_event)
    undone = UnfinishedWork()
    session.subscribe(undone.on_event)
    try:
        status = await _turn(session, options, teller, undone)
    finally:
        await session.close()
    if isinstance(teller.failed, OutputLost):
        name = session.state.session.id
        raise OutputLost(teller.failed.why, f"the turn is saved: `tui-agent sessions show {name}` shows it")
    if teller.failed is not None:
        raise teller.failed
    return status


class UnfinishedWork:
    """`files` omitted from every request, `tasks` that failed or did not start, with reasons by id, and
    `calls` denied because the user could not be asked.
    """

    def __init__(self) -> None:
        self.files: list[str] = []
        self.tasks: dict[str, str] = {}
        self.calls: list[str] = []

    def on_event(self, event: e.Event, state: State) -> None:
        match event:
            case e.FilesLeftOut(paths=paths, why=why, reason="room" | "limit"):
                self.files += [path for path in paths or (why,) if path not in self.files]
            case e.FileLoaded(file) if file.path in self.files:
                self.files.remove(file.path)
            case e.SubTaskEnded(id=name, state="failed", reason=reason):
                self.tasks[name] = reason
            case e.SubTaskEnded(id=name) | e.SubTaskMoved(id=name):
                self.tasks.pop(name, None)
            case e.SubTasksWanted(ids, wanted=False):
                self.tasks.update(dict.fromkeys(ids, "not started"))
            case e.PermissionDecided(one) if one.acts and one.answer == "no" and one.by == "nobody":
                self.calls.append(f"{one.tool} {one.shown}".strip())

    def sentences(self) -> list[str]:
        said = []
        if self.tasks:
            parts = "; ".join(f"{name} ({why})" for name, why in self.tasks.items())
            some = "A sub-task is" if len(self.tasks) == 1 else f"{len(self.tasks)} sub-tasks are"
            said.append(f"{some} not done: {parts}")
        if self.calls:
            said.append(f"Not done, because confirmation was not possible: {', '.join(self.calls)}")
        return said


async def _turn(session: Session, options: RunOptions, teller: RunReporter, undone: UnfinishedWork) -> int:
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, lambda: loop.create_task(_stop(session)))
    await session.start_services()
    await session.files.ready()
    for file in options.open:
        await session.files.open(file.path, file.first, last_line=file.last)
    if options.open:
        await session.files.activate(options.open[0].path)
    before, begun = session.state.usage.session, loop.time()
    proposed = len(session.state.review.changes)
    if options.best:
        return await _best(session, options, teller)
    if options.agent:
        await session.delegate(options.agent, options.prompt)
    else:
        await session.chat.submit(options.prompt, options.attach)
    await session.chat.finished()
    await session.subtasks.settled()
    await session.checks.settled()
    turn = session.state.turn
    left: list[str] = []
    if turn.ok and options.apply != "none":
        why = await apply_all(session, proposed, checked=options.apply == "checked")
        if undone.files and not why:
            files = "1 file" if len(undone.files) == 1 else f"{len(undone.files)} files"
            why = f"Applied, but {files} did not fit into the request: send “continue” for the rest"
        left += [why] if why else []
    await session.hooks.settled(background=False)
    if turn.ok and turn.limit:
        left.append(f"{turn.limit} ended the turn early: send “continue” to resume it")
    if turn.ok:
        left += undone.sentences()
    status = exit_status(turn) or (1 if left else 0)
    used = used_since(before, session.state.usage.session)
    error = turn.error or ". ".join(left)
    teller.finish(session.state, turn.ok and not left, error, used, loop.time() - begun)
    return status


async def _best(session: Session, options: RunOptions, teller: RunReporter) -> int:
    before, begun = session.state.usage.session, time.monotonic()
    await session.extensions.read()
    known = {"", *session.extensions.agents, *await asyncio.to_thread(session.outside_agents.names)}
    models = {name for name in options.best if name not in known and session.models.is_model(name)}
    if unknown := [name for name in options.best if name not in known | models]:
        raise errors.UsageError(
            f"there is no agent or model {unknown[0]}", f"name one of {', '.join(sorted(known - {''}))}"
        )
    names = await session.subtasks.best(options.best, options.prompt, models)
    await session.subtasks.settled()
    ended = {task.id: task for task in session.state.subtasks.tasks if task.id in names}
    why = "" if any(task.state == "completed" for task in ended.values()) else "No attempt completed"
    if not why and options.apply != "none":
        proposed = len(session.state.review.changes)
        taken = await session.subtasks.take_first(names)
        why = "" if taken else "Nothing was written: no attempt has changes without a failed check"
        why = why or await apply_all(session, proposed, checked=options.apply == "checked")
        await session.hooks.settled(background=False)
    used = used_since(before, session.state.usage.session)
    teller.finish(session.state, not why, why, used, time.monotonic() - begun)
    return 1 if why else 0


async def _stop(session: Session) -> None:
    await session.checks.stop()
    await session.chat.stop()
    await session.subtasks.stop_all()


async def apply_all(session: Session, before: int, *, checked: bool = False) -> str:
    """All or nothing. Returns the reason if changes are left or unchecked, or "". `before` is the number of
    changes before this turn; with `checked`, nothing is written unless every check has passed.
    """
    if len(session.state.review.changes) == before:
        return ""
    while True:
        proposed = len(session.state.review.changes)
        if checked:
            doubt = await unchecked(session.core, session.checks)
        else:
            if any(mark.look == "stale" for mark in session.state.check_marks):
                await session.checks.run()
            doubt = "" if session.state.checks.refused else session.state.check_doubt
        if checked and doubt and session.state.review.open:
            return f"Nothing was written: {doubt}"
        try:
            await session.review.apply()
            break
        except errors.TuiAgentError as error:
            await (
                session.chat.finished()
            )  # The model is asked again about conflicts, a limited number of times.
            if len(session.state.review.changes) == proposed:
                return str(error)
    left = [change for change in session.state.review.changes[before:] if change.state in LEFT]
    sentences = [f"Not applied: {', '.join(change.path for change in left)}"] if left else []
    return ". ".join([*sentences, *([f"Applied, but {doubt}"] if doubt else [])])


def exit_status(turn: TurnSlice) -> int:
    if turn.ok:
        return 0
    return getattr(getattr(errors, turn.kind, None), "exit_status", 1)


class RunReporter:
    """An output failure does not end the turn."""

    def __init__(self, out: TextIO) -> None:
        self._out = ProgressStream(out)

    @property
    def failed(self) -> Exception | None:
        return self._out.failed

    def on_event(self, event: e.Event, state: State) -> None:
        raise NotImplementedError

    def finish(self, state: State, ok: bool, error: str, used: Usage, seconds: float) -> None:
        raise NotImplementedError


class JsonReporter(RunReporter):
    """`session` first. Defers all output until the model is known."""

    def __init__(self, out: TextIO, secrets: KnownSecrets | None = None) -> None:
        super().__init__(out)
        self._secrets = secrets or KnownSecrets()
        self._waiting: list[Line] | None = []

    def on_event(self, event: e.Event, state: State) -> None:
        told = lines(event, state)
        if self._waiting is None:
            self._write(told)
            return
        if isinstance(event, (e.PlanMade, e.TurnEnded)):
            self._begin(state)
            self._write(told)
        else:
            self._waiting.extend(told)

    def finish(self, state: State, ok: bool, error: str, used: Usage, seconds: float) -> None:
        self._begin(state)
        self._write([finished_line(ok, error, used, seconds, state.turn.limit)])

    def _begin(self, state: State) -> None:
        if self._waiting is None:
            return
        waiting, self._waiting = self._waiting, None
        self._write([session_line(state), *waiting])

    def _write(self, told) -> None:
        for line in told:
            output.json_line(self._secrets.values.masked_json(line), self._out)


class TextReporter(RunReporter):
    """Replies and proposals on standard output, all other text on standard error."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        super().__init__(out)
        self._err = ProgressStream(err)

    def on_event(self, event: e.Event, state: State) -> None:
        for stream, text in text_line(event, state):
            output.write_text(text, self._out if stream == "out" else self._err)

    def finish(self, state: State, ok: bool, error: str, used: Usage, seconds: float) -> None:
        if error:
            output.error(error, self._err)
        kept = "not kept" if state.session.not_kept else f"session {state.session.id}"
        about = "about " if used.estimated else ""
        price = "price unknown" if used.cost is None else f"${used.cost:.4f}"
        thinking = f" ({used.thinking} of thinking)" if used.thinking else ""
        cost = f"{about}{used.input} tokens in, {used.output} out{thinking} · {price}"
        output.write_text(f"{cost} · {kept}", self._err)
