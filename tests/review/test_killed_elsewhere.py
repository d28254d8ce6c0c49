"""A process killed in the middle of an apply or a save: any next start in that folder puts it right and says so."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from support.command_line import run_here
from support.faults import before_each_call, tree
from support.logs import load
from support.sessions import open_session, reply

from tui_agent.files.staging import sweep
from tui_agent.log import directory
from tui_agent.log.directory import SessionLock
from tui_agent.log.transfer import write
from tui_agent.review.open_files import SAVE
from tui_agent.session.session import Session
from tui_agent.settings.folders import user_folders
from tui_agent.store import events as e

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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    for name, data in OLD.items():
        (work / name).write_bytes(data)
    return work


def in_a_session(
    folder: Path, work: Callable[[Session], Awaitable[None]], replies: tuple = (), session: str = ""
) -> str:
    """Do something in a session, a new one or the one named; its id."""

    async def run() -> str:
        async with open_session(folder, replies, session=session, services=bool(replies)) as opened:
            await work(opened)
            return opened.state.session.id

    return asyncio.run(run())


def killed(work: Callable[[], object], when: Callable[[str], bool]) -> None:
    """Do the work in a child that is killed before the first system call of whose name `when` says so."""
    child = os.fork()
    if child == 0:
        try:
            with before_each_call(
                lambda _, made: os.kill(os.getpid(), signal.SIGKILL) if when(made) else None
            ):
                work()
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the work came to its end"


@pytest.fixture
def half_done(folder: Path) -> str:
    """A session that was killed when half of its batch was written; its id."""

    async def propose(session: Session) -> None:
        await session.chat.submit("Change a.txt and b.txt")
        await session.chat.finished()

    name = in_a_session(folder, propose, (CHANGES,))
    killed(
        lambda: in_a_session(folder, lambda session: session.review.apply(), session=name),
        lambda call: call == "unlink" and (folder / "made" / "new.txt").exists(),
    )
    assert tree(folder) not in (OLD, NEW), "the kill must come in the middle"
    return name


def another_session(folder: Path) -> str:
    """A session of this folder that was written without looking at the others."""
    name = directory.new_id(user_folders().data)
    write(user_folders().data, name, [e.SessionStarted(name, str(folder))], workspace=str(folder))
    return name


def said(folder: Path, session: str = "") -> list[str]:
    """What a session that is opened has to say."""
    found: list[str] = []

    async def look(opened: Session) -> None:
        await opened.notify_opening()
        found.extend(notice.text for notice in opened.state.notices.items)

    in_a_session(folder, look, session=session)
    return found


@pytest.mark.parametrize("start", ["new", "another", "same"])
def test_any_next_session_settles_it_file_by_file(folder: Path, half_done: str, start: str) -> None:
    name = {"new": "", "same": half_done, "another": another_session(folder)}[start]
    sentences = said(folder, name)
    assert tree(folder) == OLD
    assert any("a.txt was restored" in line for line in sentences), sentences
    assert any("made/new.txt was removed" in line for line in sentences), sentences
    assert start == "same" or all(half_done in line for line in sentences)
    assert said(folder) == [], "said once"


def test_a_headless_command_on_another_session_settles_and_says_it(
    folder: Path, half_done: str, capfd: pytest.CaptureFixture[str]
) -> None:
    other = another_session(folder)
    assert other != half_done
    done = run_here(capfd, ["undo", "--session", other, "--workspace", str(folder)])
    assert tree(folder)["a.txt"] == b"one\n"
    assert "a.txt was restored" in done.err


def test_while_the_session_that_applies_still_runs_nobody_settles_it(
    folder: Path, half_done: str, home: Path
) -> None:
    before = tree(folder)
    with SessionLock.take(home / "data" / "sessions" / half_done):
        assert said(folder) == []
        assert tree(folder) == before
    assert said(folder) != [] and tree(folder) == OLD


def test_a_session_of_another_folder_leaves_it_alone(folder: Path, half_done: str, tmp_path: Path) -> None:
    before = tree(folder)
    (tmp_path / "elsewhere").mkdir()
    assert said(tmp_path / "elsewhere") == []
    assert tree(folder) == before


@pytest.mark.parametrize("call", ["fchmod", "fsync", "rename"])
def test_the_temporary_file_of_a_killed_save_is_removed(folder: Path, call: str) -> None:
    sentences = said(folder) if killed_save(folder, call) else []
    assert tree(folder) == OLD
    assert any("A save of a.txt was interrupted" in line for line in sentences), sentences


@pytest.mark.parametrize("same", [True, False])
def test_it_is_removed_after_a_power_cut_that_left_the_note_empty(
    folder: Path, home: Path, same: bool
) -> None:
    name = killed_save(folder, "rename")
    (home / "data" / "sessions" / name / SAVE).write_bytes(b"")
    said(folder, name if same else "")
    assert tree(folder) == OLD


def test_a_number_that_another_process_has_since_the_machine_was_started_keeps_none(tmp_path: Path) -> None:
    (left, kept) = (tmp_path / f".tui-agent-{os.getpid()}-{digit * 16}.tmp" for digit in "ab")
    for path in (left, kept):
        path.touch()
    os.utime(left, (1, 1))
    folder = os.open(tmp_path, os.O_RDONLY)
    sweep(folder)
    os.close(folder)
    assert os.listdir(tmp_path) == [kept.name]


def killed_save(folder: Path, call: str) -> str:
    """A session that was killed in the middle of a save; its id."""

    async def save(session: Session) -> None:
        await session.files.open("a.txt")
        session.files.edit("a.txt", "typed\n", (0, 0), (0, 0))
        session.journal.flush()
        assert session.storage.log is not None
        await asyncio.to_thread(load, session.storage.log)
        await session.files.save("a.txt")

    killed(
        lambda: in_a_session(folder, save),
        lambda made: made == call and any(name.startswith(".tui-agent-") for name in os.listdir(folder)),
    )
    left = [path.name for path in folder.iterdir() if path.name.startswith(".tui-agent-")]
    assert left, "the kill must leave a temporary file"
    return next(path.parent.name for path in (user_folders().data / "sessions").glob(f"*/{SAVE}"))
