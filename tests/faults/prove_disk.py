"""A disk that is full at any call of an apply, and a log that is damaged anywhere: nothing lost, nothing silent."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import shutil
import sys
import tempfile
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # `support`, as in the tests

from support.faults import before_each_call, failing_at, tree
from support.sessions import open_session, reply

from tests.proofs.tally import Tally
from tui_agent.errors import TuiAgentError
from tui_agent.log import catalog, directory, snapshot
from tui_agent.session.session import Session

#: Applies that meet a full disk, and logs that are damaged, at full scale.
FULL, DAMAGED = 200, 300
TURNS = 12
#: What breaks the promise that these cases try; each is noticed.
SABOTAGES = ("halves of failed batches left", "missing records not told")
#: Calls that a full disk fails; opening what is there is none of them.
NEEDS_ROOM = ("write", "fsync", "mkdir", "link", "rename", "replace")


def prove(tally: Tally, scale: float) -> None:
    for kind, count, work in (("disk full during an apply", FULL, _full), ("log damaged", DAMAGED, _damaged)):
        with tempfile.TemporaryDirectory(prefix="tui-agent-disk-", ignore_cleanup_errors=True) as folder:
            os.environ["TUI_AGENT_HOME"] = str(Path(folder) / "home")
            (Path(folder) / "work").mkdir()
            for held, what in asyncio.run(work(Path(folder), max(1, round(count * scale)))):
                tally.case(kind, held, what=what)


async def _full(folder: Path, count: int) -> list[tuple[bool, str]]:
    """One call of an apply, an undo or a redo fails: the files are the old ones or the new ones, and it works then."""
    work, cases, chance = folder / "work", [], random.Random(5)
    (work / "a.txt").write_text("one\n")
    changes = [
        {"path": "a.txt", "edits": [{"search": "one", "replace": "two"}]},
        {"path": "new/b.txt", "content": "new\n"},
    ]
    async with open_session(work, [reply("Two.", fileChanges=changes)]) as session:
        await session.chat.submit("change a.txt")
        await session.chat.finished()
        old = tree(work)
        await session.review.apply()
        new = tree(work)
        for number in range(count):
            undone = bool(number % 2)
            before, after = (old, new) if undone else (new, old)
            held, what = await _met(session, work, undone, chance.randrange(1, 30), before, after)
            cases.append((held, f"case {number}: {what}"))
    return cases


async def _met(
    session: Session, work: Path, undone: bool, at: int, before: dict, after: dict
) -> tuple[bool, str]:
    move = session.review.redo if undone else session.review.undo
    made = 0

    def full(_: int, name: str) -> None:
        nonlocal made
        if threading.current_thread() is not threading.main_thread():
            made += 1
            failing_at(at, errno.ENOSPC)(made, name)

    try:
        with before_each_call(full, NEEDS_ROOM):
            await move()
    except TuiAgentError as error:
        if tree(work) != before or "disk is full" not in str(error):
            return False, f"call {at}: {error}, {tree(work)}"
        await move()
    return tree(work) == after, f"call {at}: {tree(work)}"


async def _damaged(folder: Path, count: int) -> list[tuple[bool, str]]:
    """A log is cut or overwritten: what is missing is said, what there is goes on, and nothing is said twice."""
    work, chance = folder / "work", random.Random(6)
    replies = [reply(f"Answer {number}.", message="word " * 300) for number in range(TURNS)]
    async with open_session(work, replies) as session:
        for number in range(TURNS):
            await session.chat.submit(f"question {number}")
            await session.chat.finished()
        name = session.state.session.id
    whole = folder / "whole"
    shutil.copytree(folder / "home" / "data", whole)
    cases = []
    for number in range(count):
        shutil.rmtree(folder / "home" / "data")
        shutil.copytree(whole, folder / "home" / "data")
        log = folder / "home" / "data" / "sessions" / name / directory.LOG
        if number % 2:
            (log.parent / snapshot.NAME).unlink(missing_ok=True)
        what = _spoil(log, chance)
        try:
            cases.append((await _goes_on(work, name), what))
        except Exception as error:
            cases.append((False, f"{what}: {type(error).__name__}: {error}"))
    return cases


def _spoil(log: Path, chance: random.Random) -> str:
    data = bytearray(log.read_bytes())
    at = chance.choice([chance.randrange(len(data)), chance.randrange(4096)])
    if chance.random() < 0.2:
        log.write_bytes(data[:at])
        return f"cut at {at}"
    length = min(chance.choice([1, 16, 300, 5000]), len(data) - at)
    data[at : at + length] = chance.randbytes(length)
    log.write_bytes(data)
    return f"{length} bytes overwritten at {at}"


async def _goes_on(work: Path, name: str) -> bool:
    listed = [entry.id for entry in catalog.list_sessions(Path(os.environ["TUI_AGENT_HOME"]) / "data")]
    async with open_session(work, services=False, session=name) as session:
        total, said, own = session.state.chat.total, session.storage.lost, session.state.session.id
        await session.notice("it goes on")
    async with open_session(work, services=False, session=own) as session:
        again = session.state.notices.items[-1].text == "it goes on" and session.state.chat.total == total
        silent = total < 2 * TURNS and not said
        return again and not silent and not session.storage.lost and (name in listed or total == 0)
