"""An apply whose process is killed before a system call: the next opening finds files and session in agreement."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest
from support.faults import before_each_call, tree
from support.sessions import open_session, reply

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

    child = os.fork()
    if child == 0:
        try:
            asyncio.run(apply())
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


@pytest.mark.parametrize("first", [1, 2])
def test_files_and_session_agree_after_the_next_opening(tmp_path: Path, first: int) -> None:
    """What is still as it was is applied again, and killed one step further on, until it is through."""
    folder = tmp_path / "work"
    session = proposed(folder)
    number, old, killed = first, 0, True
    while killed:
        killed = killed_while_applying(folder, session, number)
        states, said = standing(folder, session)
        found = tree(folder)
        assert found in (OLD, NEW), f"killed before call {number}: {found}"
        assert states == ({"pending"} if found == OLD else {"applied"}), f"call {number}: {said}"
        if found == NEW:
            break
        old, number = old + 1, number + 6
    assert old > 3, "the kills must reach the middle of the work"
    assert found == NEW
