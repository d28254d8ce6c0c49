"""A session that is deleted leaves nothing behind, in the repository of its workspace neither."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.repositories import git, repository
from support.sessions import open_session, reply

from tui_agent.errors import SessionError
from tui_agent.log import catalog, directory
from tui_agent.log.directory import SessionLock
from tui_agent.log.storage import begin

EDIT = {"path": "src/a.txt", "edits": [{"search": "one", "replace": "two"}]}


async def applied(workspace: Path) -> str:
    """A session with an apply, which keeps a private commit."""
    async with open_session(workspace, [reply("Edits.", fileChanges=[EDIT])]) as session:
        await session.chat.submit("Change src/a.txt")
        await session.chat.finished()
        await session.review.apply()
        return session.state.session.id


def refs(folder: Path) -> str:
    return git(folder, "for-each-ref", "--format=%(refname)", "refs/tui-agent")


async def test_its_private_commits_go_with_it_and_those_of_others_stay(tmp_path: Path, home: Path) -> None:
    top = repository(tmp_path / "top", {"src/a.txt": "one\n", "below/b.txt": "b\n"})
    name = await applied(top)
    assert refs(top).startswith(f"refs/tui-agent/{name}/")
    before = git(top, "status", "--porcelain"), git(top, "rev-parse", "HEAD")
    git(top, "update-ref", "refs/tui-agent/other/k1", "HEAD")
    with SessionLock.take(directory.existing(home / "data", name)), pytest.raises(SessionError):
        await catalog.delete(home / "data", name)
    assert f"refs/tui-agent/{name}/" in refs(top)
    await catalog.delete(home / "data", name)
    assert refs(top) == "refs/tui-agent/other/k1\n"
    assert (git(top, "status", "--porcelain"), git(top, "rev-parse", "HEAD")) == before
    assert directory.ids(home / "data") == []


@pytest.mark.parametrize("state", ["gone", "no repository", "damaged"])
async def test_without_a_repository_it_is_deleted_all_the_same(
    tmp_path: Path, home: Path, state: str
) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    async with open_session(workspace, services=False) as session:
        name = session.state.session.id
    if state == "gone":
        shutil.rmtree(workspace)
    if state == "damaged":
        (workspace / ".git").write_text("no repository")
    await catalog.delete(home / "data", name)
    assert directory.ids(home / "data") == []


async def test_a_new_session_leaves_one_of_the_same_id_alone(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    async with open_session(workspace, []) as first:
        name = first.state.session.id
    stamp, _, number = name.rpartition("-")
    numbers = iter((number, number, "0001" if number != "0001" else "0002"))
    with monkeypatch.context() as patch:
        patch.setattr(directory.time, "strftime", lambda *_: stamp)
        patch.setattr(directory.secrets, "token_hex", lambda _: next(numbers))
        storage, _ = begin(home / "data")
    assert storage.log is not None and storage.lock is not None
    storage.log.close()
    storage.lock.release()
    assert storage.folder.name in (f"{stamp}-0001", f"{stamp}-0002")
    assert (directory.existing(home / "data", name) / directory.LOG).is_file()
