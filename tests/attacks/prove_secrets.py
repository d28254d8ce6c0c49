"""Every disguise of a secret on every reader that feeds a model, with a provider on loopback.

A case holds if the secret's canary is in no request that the provider received, in no file that was uploaded to it, in
no JSON line, and in no export of the session; and if what is not secret did arrive, so that the reader really read.
Sessions, children and the log are the program's own; one model child serves all cases, for its start takes seconds.
"""

from __future__ import annotations

import asyncio
import io
import json
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path

from msgspec import Struct

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.disguises import CANARY, DISGUISES
from support.openai_wire import Answer, ToolCall
from support.provider import Provider
from support.repositories import repository

from tests.proofs.tally import Tally
from tui_agent.errors import TuiAgentError
from tui_agent.headless.run import JsonReporter
from tui_agent.log.log import events_of
from tui_agent.log.transfer import as_json, as_markdown
from tui_agent.model.child_model import ChildModel
from tui_agent.session.opening import Opening, open_session
from tui_agent.session.session import Session
from tui_agent.settings.folders import Folders

#: Stands in files that are no secret.
PLAIN = "PLAIN-MARK"
MODEL = "openai/test-model"


class Shared(ChildModel):
    """The one model of all cases: a session that ends leaves it open."""

    async def close(self) -> None: ...

    async def end(self) -> None:
        await super().close()


class Case(Struct):
    """A folder with a secret in it, its provider and model; `told` is what was printed, `session` the one that ran."""

    root: Path
    folders: Folders
    provider: Provider
    model: Shared
    kind: str
    told: io.StringIO
    exports: str = ""

    def put(self, name: str = "notes.txt") -> str:
        return DISGUISES[self.kind](self.root, name)

    @asynccontextmanager
    async def session(self, *overrides: str) -> AsyncGenerator[Session]:
        settings = (f"model={MODEL}", "planner_model=none", "protocol=tools", *overrides)
        session = await open_session(Opening(self.root, overrides=settings), self.folders)
        session.models.model = self.model
        session.subscribe(JsonReporter(self.told).on_event)
        await session.start_services()
        await session.files.ready()
        try:
            yield session
        finally:
            name, log, blobs = session.state.session.id, session.log_path, session.storage.blobs
            await session.close()
            events = list(events_of(log)) if log else []
            self.exports = as_json(name, events, blobs) + as_markdown(name, events)

    async def run(
        self,
        words: str,
        *overrides: str,
        answers: tuple[Answer, ...] = (),
        attach: tuple[str, ...] = (),
        opened: str = "",
        then: str = "",
    ) -> None:
        """One turn, or with `then` one whose changes are applied and another."""
        self.provider.answer(*answers)
        async with self.session(*overrides) as session:
            if opened:
                await session.files.open(opened, 1, last_line=30)
            await _turn(session, words, attach)
            if then:
                await session.review.apply()
                await _turn(session, then)


async def _turn(session: Session, words: str, attach: tuple[str, ...] = ()) -> None:
    await session.chat.submit(words, attach)
    await session.chat.finished()
    await session.subtasks.settled()


def _asks(tool: str, *arguments: dict) -> tuple[Answer, ...]:
    calls = tuple(ToolCall(tool, each, f"call_{number}") for number, each in enumerate(arguments))
    return Answer(calls=calls), Answer("Done.")


def _files(*patterns: str, everything: bool = False) -> dict:
    action = {"type": "file", "name": "It", "patterns": list(patterns), "required": True}
    return {"actions": [action | ({"all": True} if everything else {})]}


async def _plan(case: Case) -> None:
    await case.run(f"Look at {case.put()} and plain.txt")


async def _attached(case: Case) -> None:
    await case.run("Look at these", attach=(case.put(), "plain.txt"))


async def _request(case: Case) -> None:
    name = case.put()
    asked = _asks("read_files", _files(name, f"**/{name}"), _files("plain.txt"))
    await case.run("Look around", answers=asked)


async def _batch(case: Case) -> None:
    case.put()
    await case.run("Look around", answers=_asks("read_files", _files("**/*", everything=True)))


async def _search(case: Case) -> None:
    case.put()
    pattern = "(CANARY|PASS|PLAIN|token|[A-Z]{5}).*"
    await case.run("Look", answers=_asks("search_text", {"pattern": pattern, "regex": True}))


async def _listing(case: Case) -> None:
    case.put()
    asked = _asks("list_directory", {"requests": [{"path": ".", "recursive": True}]})
    await case.run("Look at plain.txt", answers=asked)


async def _instructions(case: Case) -> None:
    name = Path(case.put("AGENTS.md")).name
    await case.run("Look at plain.txt", f'instructions.names=["{name}"]')


async def _base_files(case: Case) -> None:
    case.put()
    await case.run("Hello", 'base_files=["**/*"]')


async def _editor(case: Case) -> None:
    try:
        await case.run("Explain this and plain.txt", opened=case.put())
    except TuiAgentError:  # what leads out is not opened at all
        await case.run("Look at plain.txt")


async def _bundle(case: Case) -> None:
    name = case.put("conf.json")
    (case.root / "a.js").write_text(f"import './{name}'\nimport './plain.js'\nlet a = 1\n")
    (case.root / "plain.js").write_text(f"// {PLAIN}\n")
    change = {"path": "a.js", "edits": [{"search": "let a = 1", "replace": "let a = 2"}]}
    asked = (Answer(calls=(ToolCall("propose_changes", {"changes": [change]}),)),)
    await case.run("Change a.js", answers=asked, then="What next?")


async def _failed_edit(case: Case) -> None:
    name = case.put()
    changes = [
        {"path": name, "edits": [{"search": f"PASSWORD={CANARY[:20]}\n", "replace": "PASSWORD=\n"}]},
        {"path": "plain.txt", "edits": [{"search": f"{PLAIN[:-1]} is not here\n", "replace": ""}]},
    ]
    asked = (*_asks("propose_changes", {"changes": changes}), Answer("Done."))
    await case.run("Change it, and look at plain.txt", answers=asked)


async def _sub_task(case: Case) -> None:
    task = {
        "id": "a",
        "goal": "Read",
        "files": ["plain.txt", case.put()],
        "dependencies": [],
        "autoExecute": True,
    }
    asked = (
        Answer(calls=(ToolCall("spawn_subtasks", {"subTasks": [task]}),)),
        *_asks("read_files", _files("**/*", everything=True)),
    )
    await case.run("Split the work", "subtasks.begin=auto", answers=asked)


async def _upload(case: Case) -> None:
    await case.run("Look at both", "files_api=on", attach=(case.put(), "plain.txt"))


READERS: dict[str, Callable[[Case], Awaitable[None]]] = {
    "plan": _plan,
    "attached": _attached,
    "request": _request,
    "batch": _batch,
    "search": _search,
    "listing": _listing,
    "instructions": _instructions,
    "base files": _base_files,
    "editor": _editor,
    "bundle": _bundle,
    "failed edit": _failed_edit,
    "sub-task": _sub_task,
    "upload": _upload,
}


def prove(tally: Tally, scale: float) -> None:
    """Every disguise on every reader; with a smaller `scale` every so many-th pair."""
    pairs = list(product(DISGUISES, READERS))[:: max(1, round(1 / scale))]
    asyncio.run(_prove(tally, pairs))


async def _prove(tally: Tally, pairs: list[tuple[str, str]]) -> None:
    with Provider() as provider:
        model = Shared(environment=provider.environment)
        for kind, reader in pairs:
            provider.reset()
            provider.otherwise = Answer("Done.")
            with tempfile.TemporaryDirectory(prefix="secrets-") as folder:
                why = await _why_not(Path(folder), provider, model, kind, reader)
            tally.case(kind, not why, column=reader, what=why)
        await model.end()


async def _why_not(folder: Path, provider: Provider, model: Shared, kind: str, reader: str) -> str:
    root = folder / "work"
    root.mkdir()
    repository(root, {"plain.txt": f"{PLAIN}\n", "src/a.txt": "a\n"})
    folders = Folders(folder / "config", folder / "data", folder / "cache", folder / "state")
    case = Case(root, folders, provider, model, kind, io.StringIO())
    try:
        await READERS[reader](case)
    except TuiAgentError as error:
        return f"it did not run: {error}"
    received = json.dumps([request.body for request in provider.requests]) + repr(provider.uploaded)
    told = case.told.getvalue()
    if CANARY in received:
        return "it was sent"
    if PLAIN not in received:
        return f"nothing was read: {told[-300:]}"
    if CANARY in told:
        return "it was printed"
    return "it is in an export" if CANARY in case.exports else ""
