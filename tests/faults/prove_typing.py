"""The program on a real terminal, killed a second after a text was typed: the next start shows that text again.

Every place that takes typing is tried: the prompt, the editor, lines of panes and dialogs. Each has a folder and a home
of its own, prepared by a scripted session. Text typed while the program starts counts from when the log is open.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[1]))  # `support`, as in the tests

from support.logs import load
from support.provider import dead_url
from support.repositories import git, repository
from support.sessions import Reply, model_of, open_session, reply
from support.terminal_program import Program, running

from tests.proofs.tally import WHOLE, Part, Tally
from tui_agent.errors import EditFailed
from tui_agent.log.directory import LOG
from tui_agent.session.session import Session
from tui_agent.store import events as e
from tui_agent.store.graph import SubTask

ROOT = Path(__file__).parents[2]
#: Tries of each place at full scale, and seconds after which a typed text is kept.
EACH, WITHIN = 10, 1.0
#: Breaks of the promise, each of which is noticed.
SABOTAGES = (
    "draft not kept",
    "typing not kept",
    "typing not written",
    "nothing opened again",
    "waiting keys not kept",
)
F4, F5, F7, LEADER, REPLACE, TAB, BACK_TAB = "\x1bOS", "\x1b[15~", "\x1b[18~", "\x0f", "\x1c", "\t", "\x1b[Z"
FILES = {"a.txt": "".join(f"line {number}\n" for number in range(9)), "b.txt": "b\n"}
LINE = {"search": "line 3\n", "replace": "the model's line\n"}


class Place(NamedTuple):
    """A place for text: the keys that lead there, the words beside it, and the preparation of the session.

    `early`: typed before the screen is there. `waits`: behind work that never ends.
    """

    keys: str
    beside: str = ""
    prepare: Callable[[Session, Path], Awaitable[None]] | None = None
    replies: tuple[Reply, ...] = ()
    early: bool = False
    waits: bool = False


async def _propose(session: Session, work: Path) -> None:
    await session.chat.submit("Change a.txt")
    await session.chat.finished()


async def _clash(session: Session, work: Path) -> None:
    """The same line is changed in the editor and on the disk."""
    await _open(session, work)
    session.files.edit("a.txt", FILES["a.txt"].replace("line 3", "my line"), (0, 0), (0, 0))
    (work / "a.txt").write_text(FILES["a.txt"].replace("line 3", "their line"))


async def _conflict(session: Session, work: Path) -> None:
    await _propose(session, work)
    (work / "a.txt").write_text(FILES["a.txt"].replace("line 3", "their line"))
    model_of(session).replies = [reply("It is left to you.")] * 3
    with suppress(EditFailed):
        await session.review.apply()
    await session.chat.finished()
    assert [change.state for change in session.state.review.changes] == ["conflict"]


async def _open(session: Session, work: Path) -> None:
    await session.files.open("a.txt")


async def _modify(session: Session, work: Path) -> None:
    (work / "a.txt").write_text("modified\n")


async def _add_todo(session: Session, work: Path) -> None:
    await session.todos.add("an old todo")


async def _add_subtask(session: Session, work: Path) -> None:
    await session.journal.record(e.SubTasksProposed((SubTask("t1", "an old goal"),)))


async def _summarise(session: Session, work: Path) -> None:
    for _ in range(4):
        model_of(session).replies = [reply("An answer. " * 20)]
        await session.chat.submit("A question. " * 20)
        await session.chat.finished()
    model_of(session).replies = ["Four questions were asked."]
    await session.chat.compact()
    await session.chat.finished()
    assert await session.chat.summary()


CHANGE = (reply("One line.", fileChanges=[{"path": "a.txt", "edits": [LINE]}]),)
PLACES: dict[str, Place] = {
    "the prompt": Place(F7),
    "the prompt, before it is there": Place("", early=True),
    "the prompt, while keys wait": Place(F7, waits=True),
    "the editor": Place(F4, "a.txt", _open),
    "the editor, beside a clash": Place(F4, "Changed on disk", _clash),
    "a commit message": Place(LEADER + "i" + BACK_TAB, "Commit", _modify),
    "a comment on a hunk": Place(F5 + "c", "change 1 of 1", _propose, CHANGE),
    "a hunk by hand": Place(F5 + "e", "Edit change 1 of a.txt", _propose, CHANGE),
    "a place of a conflict": Place(F5 + "e", "a.txt: conflict 1 of 1", _conflict, CHANGE),
    "a place of a merge": Place(F4 + LEADER + "0e", "a.txt: conflict 1 of 1", _clash),
    "a new todo": Place(LEADER + "oa", "Todos"),
    "a todo": Place(LEADER + "oe", "Todos", _add_todo),
    "the name of a new sub-task": Place(LEADER + "sa", "goal"),
    "the goal of a new sub-task": Place(LEADER + "sa" + TAB, "goal"),
    "the goal of a sub-task": Place(LEADER + "se", "goal", _add_subtask),
    "the files of a sub-task": Place(LEADER + "se" + TAB, "files", _add_subtask),
    "a replacement": Place(F4 + REPLACE + "line" + TAB, "with", _open),
    "the summary": Place(LEADER + "J", "Summary of older messages", _summarise, (reply("x"),)),
    "the memory": Place(LEADER + "C", "Request for", _propose, (reply("Done."),)),
    "the command of a check": Place(LEADER + "An", "Checks in work"),
}


def prove(tally: Tally, scale: float, part: Part = WHOLE) -> None:
    tries = range(max(1, round(EACH * scale)))
    jobs = part.of([(name, seed) for seed in tries for name in PLACES])
    with ProcessPoolExecutor(part.processes, get_context("spawn")) as pool:
        for (name, _), fault in zip(jobs, pool.map(_case, *zip(*jobs, strict=True)), strict=True):
            tally.case(f"killed while typing in {name}", not fault, what=fault)


def _case(name: str, seed: int) -> str:
    """The fault after the kill, or ""."""
    place, chance = PLACES[name], random.Random(seed)
    words = "".join(chance.choice("abcdefghkmpqrtuvwxyz") for _ in range(chance.randrange(8, 24)))
    with tempfile.TemporaryDirectory(prefix="tui-agent-typing-", ignore_cleanup_errors=True) as folder:
        home, work = Path(folder) / "home", repository(Path(folder) / "work", FILES)
        home.mkdir(mode=0o700)
        environment = {
            "TUI_AGENT_HOME": str(home),
            "TUI_AGENT_MODEL": "openai/test-model",
            "TUI_AGENT_PLANNER_MODEL": "none",
            "OPENAI_API_KEY": "sk-test",
            "OPENAI_API_BASE": dead_url(),
            "PYTHONPATH": str(ROOT),
        }
        for key, value in (("user.name", "A"), ("user.email", "a@example.com")):
            git(work, "config", key, value)
        with patch.dict(os.environ, environment):
            try:
                asyncio.run(_prepare(place, work))
                _type_and_kill(place, work, home, words, WITHIN + chance.random())
                _look_for(place, work, home, words)
            except Exception as error:
                logged = [log.read_text(errors="replace") for log in home.rglob("debug.log")]
                return f"seed {seed}: {type(error).__name__}: {error}\n{''.join(logged)[-4_000:]}"
    return ""


async def _prepare(place: Place, work: Path) -> None:
    async with open_session(work, place.replies, services=bool(place.replies)) as session:
        await session.chat.set_queue([])
        if place.prepare is not None:
            await place.prepare(session, work)


def _started(work: Path, home: Path, waits: bool = False) -> Program:
    variables = {"CI": "true"}  # no program leaves a host behind
    if waits:
        variables["PROOF_LETTERS_WAIT"] = "1"
    return Program("--continue", folder=work, home=home, module="tests.proofs.sabotage", variables=variables)


def _type_and_kill(place: Place, work: Path, home: Path, words: str, later: float) -> None:
    with running(_started(work, home, place.waits), "Chat") as program:
        if place.early:
            program.type(words.encode())
            program.until(lambda: words in program.text, f"{words!r} typed", 20)
            program.until(lambda: list(home.rglob(f"{LOG}-wal")), "the log is open", 20)
        else:
            program.shows("F1 keys")
            program.type(place.keys.encode())
            program.until(lambda: place.beside in program.text, place.beside, 20)
            program.settle()  # Keys that still wait are shown by nothing.
            program.type(words.encode())
            if not place.waits:
                program.until(lambda: words in program.text, f"{words!r} typed", 20)
        time.sleep(later)  # the promise is about this time


def _look_for(place: Place, work: Path, home: Path, words: str) -> None:
    stored = [str(event) for log in home.rglob(LOG) for event in load(log).growing]
    with running(_started(work, home), "Chat") as program:
        found = lambda: words in program.text and place.beside in program.text  # noqa: E731
        program.until(found, f"{words!r} again; stored: {stored}", 20)
