"""Work copies have a place by session; a session that was killed leaves them, and the next start removes them."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest
from support.repositories import git, repository
from support.sessions import open_session
from support.trees import until

from tui_agent.errors import SessionError
from tui_agent.log.directory import SessionLock
from tui_agent.session.session import Session
from tui_agent.subtasks import copies
from tui_agent.subtasks.copies import clear_leftovers, folder_for, folder_of_run
from tui_agent.workspace.workspace import Workspace

OTHER = "20260101-000000-ab12"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", {f"d{n % 7}/f{n}.txt": f"{n}\n" for n in range(60)})


@pytest.fixture
def data(home: Path) -> Path:
    return home / "data"


def test_the_place_of_a_copy_is_inside_whatever_its_name(data: Path) -> None:
    names = ["api", "a/b", "../../x", "", ".", "..", "a\0b", "ü", "x" * 300, ".seed", "a.repository", "-f"]
    folders = [folder_for(data, "s1", name) for name in names]
    assert {folder.parent for folder in folders} == {data / "worktrees" / "s1"}
    assert len(set(folders)) == len(names) and folders[0].name == "api"
    assert not [folder for folder in folders if folder.name.startswith(".") or len(folder.name) > 100]
    with pytest.raises(SessionError):
        folder_for(data, "../s1", "api")


def test_copies_of_a_sub_task_lie_with_those_of_its_session_and_apart_from_each_other(data: Path) -> None:
    kept = data / "sessions" / "s1"
    assert folder_of_run(data, kept, "api") == folder_for(data, "s1", "api")
    inner = [folder_of_run(data, kept / "subtasks" / name, "api") for name in ("a.1", "a.2", "b.1")]
    assert len({*inner, folder_for(data, "s1", "api")}) == 4
    assert {folder.parent for folder in inner} == {data / "worktrees" / "s1"}


async def _work(workspace: Path, session: str, writing: int) -> None:
    """Make copies, say which session does, and be killed over the next of them."""
    async with open_session(workspace, session=session) as session_open:
        name = session_open.state.session.id
        copies = session_open.workspace.copies
        snapshot = await copies.snapshot()
        for number in range(2):
            await copies.make(_folder(session_open, f"t{number}"), snapshot)
        making = asyncio.create_task(copies.make(_folder(session_open, "t2"), snapshot))
        await until(lambda: (_folder(session_open, "t2").parent / ".t2.repository").exists())
        os.write(writing, name.encode())
        await making
        await asyncio.Event().wait()


def _folder(session: Session, name: str) -> Path:
    return folder_for(session.folders.data, session.state.session.id, name)


def killed(workspace: Path, session: str = "") -> str:
    """Run such a session in a process of its own and kill it; the session's id."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            asyncio.run(_work(workspace, session, writing))
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        name = os.read(said.fileno(), 100).decode()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert name
    return name


async def test_what_a_killed_session_left_is_gone_after_the_next_start_of_any(
    repo: Path, data: Path, tmp_path: Path
) -> None:
    refs = git(repo, "for-each-ref")
    name = killed(repo)
    assert (data / "worktrees" / name / "t1").is_dir() and (repo / ".git/worktrees").is_dir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with open_session(elsewhere):
        await until(lambda: not os.listdir(data / "worktrees"))
    assert not (repo / ".git/worktrees").exists() and git(repo, "for-each-ref") == refs
    assert git(repo, "worktree", "list").count("\n") == 1


async def test_a_session_that_goes_on_begins_without_its_old_copies(repo: Path, data: Path) -> None:
    name = killed(repo)
    async with open_session(repo, session=name) as session:
        assert not (data / "worktrees" / name).exists() and not (repo / ".git/worktrees").exists()
        copies = session.workspace.copies
        await copies.make(_folder(session, "t0"), await copies.snapshot())


async def test_copies_of_an_open_session_stay_and_those_of_a_deleted_one_go(repo: Path, data: Path) -> None:
    workspace = Workspace(repo, watched=False)
    snapshot = await workspace.copies.snapshot()
    for session in (OTHER, "deleted"):
        await workspace.copies.make(folder_for(data, session, "one"), snapshot)
    with SessionLock.take(data / "sessions" / OTHER):
        await clear_leftovers(data, workspace.child)
        assert os.listdir(data / "worktrees") == [OTHER] and not (data / "sessions/deleted").exists()
    (repo / ".git").rename(repo / ".gone")  # a repository that is gone is no error
    await clear_leftovers(data, workspace.child)
    assert os.listdir(data / "worktrees") == []
    await workspace.close()


async def test_where_nothing_was_copied_nothing_is_asked(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = Workspace(data.parent, watched=False)
    await clear_leftovers(data, workspace.child)
    await copies.clear(data, OTHER, workspace.child)
    assert workspace.child.pid is None
    await workspace.close()
