"""Work copies as the interface asks for them, with the real child: made, filled, stopped, removed."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO

import pytest
from support.faults import tree
from support.repositories import git, repository
from support.trees import make_tree, until

from tui_agent.errors import ChildFailed, FileError, Interrupted
from tui_agent.processes.child import ChildProcess
from tui_agent.workspace import copies
from tui_agent.workspace.copies import WorkCopy, copy_paths
from tui_agent.workspace.workspace import Workspace

FILES = {"a.txt": "a\n", "src/b.txt": "b\n", ".gitignore": "*.log\n.env\n"}


@asynccontextmanager
async def opened(root: Path) -> AsyncGenerator[Workspace]:
    workspace = Workspace(root, watched=False)
    workspace.start()
    try:
        await workspace.ready()
        yield workspace
    finally:
        await workspace.close()


async def test_several_at_once_each_a_worktree_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "KEPT_SECONDS", 0.02)
    repo = repository(tmp_path / "repo", FILES)
    place = tmp_path / "data" / "s1"
    async with opened(repo) as workspace:
        await workspace.copies.prepare(place)
        before = (place / ".seed/a.txt").stat().st_ino
        snapshot = await workspace.copies.snapshot()
        made = await asyncio.gather(*(workspace.copies.make(place / f"t{n}", snapshot) for n in range(4)))
        assert made[1] == WorkCopy(str(place / "t1"), str(place / "t1"), "worktree")
        assert (place / "t3/src/b.txt").read_text() == "b\n"
        assert (place / "t3/a.txt").stat().st_ino == before
        await asyncio.gather(*(workspace.copies.remove(copy) for copy in made))
        await until(lambda: not place.exists() and not (repo / ".git/worktrees").exists())
    assert git(repo, "for-each-ref", "--format=%(refname)").split() == ["refs/heads/main"]


async def test_one_that_is_stopped_while_it_is_made_leaves_nothing(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo", FILES)
    place = tmp_path / "data" / "s1"
    async with opened(repo) as workspace:
        snapshot = await workspace.copies.snapshot()
        making = [asyncio.create_task(workspace.copies.make(place / f"t{n}", snapshot)) for n in range(3)]
        await until(lambda: (place / ".t0.repository").exists())
        for task in making:
            task.cancel()
        await asyncio.wait(making)
        assert making[-1].cancelled()
        for task in making:
            if not task.cancelled():  # it was made before it could be stopped
                await workspace.copies.remove(task.result())
    assert not place.exists() and not (repo / ".git/worktrees").exists()


async def test_a_child_that_dies_over_it_leaves_nothing_and_the_next_makes_another(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo", FILES)
    place = tmp_path / "data" / "s1"
    async with opened(repo) as workspace:
        snapshot = await workspace.copies.snapshot()
        pid = workspace.child.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        making = asyncio.create_task(workspace.copies.make(place / "one", snapshot))
        await asyncio.sleep(0)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(ChildFailed):
            await making
        assert not (place / "one").exists()
        await workspace.copies.make(place / "one", snapshot)
        await workspace.copies.remove(place / "one")
    assert not place.exists()


async def test_files_that_git_ignores_and_those_of_submodules_can_be_brought(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "LARGEST_BROUGHT", 100)
    inner = repository(tmp_path / "inner", {"i.txt": "i\n"})
    repo = repository(tmp_path / "repo", FILES)
    git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub")
    (repo / ".env").write_text("KEY=1\n")
    (repo / "own.log").write_text("mine\n")
    (repo / "own.log").chmod(0o600)
    (repo / "out.log").symlink_to("/etc/passwd")
    (repo / "big.log").write_text("x" * 101)
    async with opened(repo) as workspace:
        copy = await workspace.copies.make(tmp_path / "data/one", await workspace.copies.snapshot())
        assert copy.missing == ("sub",)
        (Path(copy.root) / "a.txt").write_text("as it is there\n")
        wanted = [
            "own.log",
            ".env",
            "sub/i.txt",
            "a.txt",
            "out.log",
            "big.log",
            "none.log",
            "../x",
            ".git/config",
            "src",
        ]
        left = await workspace.copies.copy_missing(copy, wanted)
        assert left == (".env", "out.log", "big.log", "none.log", "../x", ".git/config", "src")
        assert (Path(copy.root) / "own.log").stat().st_mode & 0o777 == 0o600
        assert (Path(copy.root) / "sub/i.txt").read_text() == "i\n"
        assert (Path(copy.root) / "a.txt").read_text() == "as it is there\n"
        await workspace.copies.remove(copy)
    assert not (tmp_path / "data").exists()


async def test_without_git_the_listed_files_are_copied(tmp_path: Path) -> None:
    root = make_tree(
        tmp_path / "plain",
        {"a.txt": "a", "src/run.sh": "x", "m.log": "", ".gitignore": "*.log", "b.txt": "b"},
    )
    (root / "src/run.sh").chmod(0o555)
    (root / "src/up").symlink_to("../a.txt")
    (root / "absolute").symlink_to(root / "b.txt")
    (root / "out").symlink_to("/etc/passwd")
    os.mkfifo(root / "pipe")
    async with opened(root) as workspace:
        assert await workspace.copies.snapshot() == ""
        copy = await workspace.copies.make(tmp_path / "data/s1/one", "")
        assert copy.kind == "copy"
        found = tree(Path(copy.root))
        assert found == {
            ".gitignore": b"*.log",
            "a.txt": b"a",
            "b.txt": b"b",
            "absolute": "b.txt",
            "src": None,
            "src/run.sh": b"x",
            "src/up": "../a.txt",
        }
        assert (Path(copy.root) / "src/run.sh").stat().st_mode & 0o777 == 0o555
        (Path(copy.root) / "a.txt").write_text("other")
        assert (root / "a.txt").read_text() == "a"
        await workspace.copies.remove(copy)
    assert not (tmp_path / "data/s1").exists()


async def test_without_the_child_a_plain_copy_is_made_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise ChildFailed("The workspace process cannot be started", "free some memory and try again")

    monkeypatch.setattr(ChildProcess, "_connected", refuse)
    root = make_tree(tmp_path / "plain", {"a.txt": "a"})
    async with opened(root) as workspace:
        copy = await workspace.copies.make(tmp_path / "data/one", "")
        assert tree(Path(copy.root)) == {"a.txt": b"a"}
        await workspace.copies.remove(copy)
        assert not (tmp_path / "data/one").exists()


def test_a_plain_copy_that_fails_or_is_stopped_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_tree(tmp_path / "plain", ["a.txt", "b.txt", "c.txt"])
    stop = threading.Event()
    real = copies.copy_content

    def until_b(source: IO[bytes], target: IO[bytes]) -> None:
        if target.name.endswith("b.txt"):
            stop.set()
        real(source, target)

    def full(source: IO[bytes], target: IO[bytes]) -> None:
        if target.name.endswith("b.txt"):
            raise OSError(28, "No space left on device")
        real(source, target)

    for broken, error in ((until_b, Interrupted), (full, FileError)):
        monkeypatch.setattr(copies, "copy_content", broken)
        with pytest.raises(error):
            copy_paths(root, tmp_path / "copy", ["a.txt", "b.txt", "c.txt"], stop)
        assert not (tmp_path / "copy").exists()
        stop.clear()
    (tmp_path / "copy").mkdir()
    with pytest.raises(FileError, match="already exists"):
        copy_paths(root, tmp_path / "copy", [], stop)
    assert (tmp_path / "copy").exists()


def test_a_folder_that_became_a_link_is_not_gone_into(tmp_path: Path) -> None:
    outside = make_tree(tmp_path / "outside", {"secret.txt": "secret"})
    root = make_tree(tmp_path / "plain", {"a.txt": "a"})
    (root / "sub").symlink_to(outside)
    copy_paths(root, tmp_path / "copy", ["a.txt", "sub/secret.txt", "gone.txt"], threading.Event())
    assert tree(tmp_path / "copy") == {"a.txt": b"a"}


async def test_of_a_repository_that_takes_no_worktree_there_is_a_plain_copy(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo", FILES)
    async with opened(repo) as workspace:
        snapshot = await workspace.copies.snapshot()
        (repo / ".git/worktrees").write_text("in the way")
        copy = await workspace.copies.make(tmp_path / "data" / "s1" / "one", snapshot)
        assert copy.kind == "copy"
        assert {path: (Path(copy.root) / path).read_text() for path in FILES} == FILES
        await workspace.copies.remove(copy)
    assert (repo / ".git/worktrees").read_text() == "in the way"
