"""An apply whose process is killed before a system call: the next opening finds files and session in agreement."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path
from queue import Empty, SimpleQueue

import pytest
from support.faults import before_each_call, tree
from support.sessions import open_session, reply

from tui_agent.log import log
from tui_agent.log.database import LogWriter

OLD = {"a.txt": b"one\n", "b.txt": b"goes\n"}
NEW = {"a.txt": b"two\n", "made": None, "made/new.txt": b"new\n"}
CHANGES = reply(
    "Three files.",
    fileChanges=[
        {"path": "a.txt", "edits": [{"search": "one\n", "replace": "two\n"}]},
        {"path": "b.txt", "delete": True},
        {"path": "made/new.txt", "content": "new\n"},
    ],
)


def proposed(folder: Path) -> str:
    """A session in which the changes wait; its id."""
    folder.mkdir()
    for name, data in OLD.items():
        (folder / name).write_bytes(data)

    async def turn() -> str:
        async with open_session(folder, [CHANGES]) as session:
            await session.chat.submit("Change a.txt and b.txt")
            await session.chat.finished()
            return session.state.session.id

    return asyncio.run(turn())


def killed_while_applying(folder: Path, session: str, number: int) -> bool:
    """Apply in a process that is killed before its system call `number`; False if it got through."""

    async def apply() -> None:
        async with open_session(folder, session=session, services=False) as opened:
            with before_each_call(
                lambda at, _: os.kill(os.getpid(), signal.SIGKILL) if at == number else None
            ):
                await opened.review.apply()

    return died(apply)


class KilledAt:
    """Kills this process before a step of an apply: what changes names on the disk, and each commit of the log."""

    def __init__(self, number: int) -> None:
        self.number, self.made = number, 0

    def __call__(self, *_: object) -> None:
        self.made += 1
        if self.made == self.number:
            os.kill(os.getpid(), signal.SIGKILL)


def killed_over_a_buffer(
    folder: Path, session: str, number: int, monkeypatch: pytest.MonkeyPatch, what: str
) -> bool:
    """Apply to a file and to the unsaved text of another, or undo or redo that, and be killed before step `number`."""
    kill = KilledAt(number)
    commit = LogWriter.commit

    def commit_or_die(writer: LogWriter) -> None:
        kill()
        commit(writer)
        kill()

    async def act() -> None:
        monkeypatch.setattr(log, "SimpleQueue", OneByOne)
        async with open_session(folder, session=session, services=False) as opened:
            monkeypatch.setattr(LogWriter, "commit", commit_or_die)
            with before_each_call(kill, ("rename", "replace", "link", "unlink")):
                await getattr(opened.review, what)()

    return died(act)


class OneByOne(SimpleQueue):
    """The log commits each job of its own, as on a fast disk."""

    def get_nowait(self) -> None:
        raise Empty


def died(work: Callable[[], Coroutine[None, None, None]]) -> bool:
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(work())
        except BaseException:
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the apply failed by itself"
    return os.WIFSIGNALED(status)


def standing(folder: Path, session: str) -> tuple[set[str], list[str]]:
    """The states of the changes after the next opening, and what it had to say."""

    async def look() -> tuple[set[str], list[str]]:
        async with open_session(folder, session=session, services=False) as opened:
            states = {str(change.state) for change in opened.state.review.changes}
            return states, [notice.text for notice in opened.state.notices.items]

    return asyncio.run(look())


def test_files_and_session_agree_after_the_next_opening(tmp_path: Path) -> None:
    """What is still as it was is applied again, and killed one step further on, until it is through."""
    folder = tmp_path / "work"
    session = proposed(folder)
    number, old, killed = 2, 0, True
    while killed:
        killed = killed_while_applying(folder, session, number)
        states, said = standing(folder, session)
        found = tree(folder)
        assert found in (OLD, NEW), f"killed before call {number}: {found}"
        assert states == ({"pending"} if found == OLD else {"applied"}), f"call {number}: {said}"
        if found == NEW:
            break
        old, number = old + 1, number + 9
    assert old > 2, "the kills must reach the middle of the work"
    assert found == NEW


@pytest.mark.parametrize("what", ["apply", "undo", "redo"])
def test_an_apply_to_a_file_and_to_unsaved_text_is_whole_or_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """So is an undo of it, and a redo."""
    folder = tmp_path / "work"
    folder.mkdir()
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text("one\n")
    change = [{"path": name, "edits": [{"search": "one", "replace": "two"}]} for name in ("a.txt", "b.txt")]

    async def propose() -> str:
        async with open_session(folder, [reply("Both.", fileChanges=change)]) as session:
            await session.files.open("b.txt")
            session.files.edit("b.txt", "mine\none\n", (0, 0), (0, 0))
            await session.chat.submit("Change a.txt and b.txt")
            await session.chat.finished()
            for before in ("apply", "undo")[: ("apply", "undo", "redo").index(what)]:
                await getattr(session.review, before)()
            return session.state.session.id

    async def look(session: str) -> tuple[str, str, set[str]]:
        async with open_session(folder, session=session, services=False) as opened:
            (buffer,) = opened.state.buffers.open
            states = {str(change.state) for change in opened.state.review.changes}
            return (folder / "a.txt").read_text(), buffer.text, states

    unapplied, applied = ("one\n", "mine\none\n"), ("two\n", "mine\ntwo\n")
    old, new = (applied, unapplied) if what == "undo" else (unapplied, applied)
    before, after = {
        "apply": ("pending", "applied"),
        "undo": ("applied", "undone"),
        "redo": ("undone", "applied"),
    }[what]
    session, number = asyncio.run(propose()), 1
    while killed_over_a_buffer(folder, session, number, monkeypatch, what):
        on_disk, buffer, states = asyncio.run(look(session))
        assert ((on_disk, buffer), states) in ((old, {before}), (new, {after})), number
        if after in states:
            break
        number += 1
    assert number > 4
