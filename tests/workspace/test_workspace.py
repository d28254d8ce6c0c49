"""The workspace as the interface sees it, with its real child."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.trees import make_repository, make_tree, until

from tui_agent.errors import ChildFailed, PathRefused
from tui_agent.processes.child import ChildProcess
from tui_agent.workspace import workspace as module
from tui_agent.workspace.workspace import FileChange, GitStatus, Workspace


class Heard:
    """Everything that a workspace told."""

    def __init__(self) -> None:
        self.indexed: list[int] = []
        self.changes: list[FileChange] = []
        self.statuses: list[GitStatus] = []
        self.watching: list[str] = []
        self.notices: list[str] = []

    def callbacks(self) -> dict[str, Any]:
        return {
            "on_index": lambda files, complete: self.indexed.append(files),
            "on_batch": self.changes.extend,
            "on_status": self.statuses.append,
            "on_watch": lambda state, why: self.watching.append(state),
            "on_notice": lambda level, text: self.notices.append(text),
        }


@asynccontextmanager
async def opened(root: Path, *, watch: bool = True) -> AsyncGenerator[tuple[Workspace, Heard], None]:
    heard = Heard()
    workspace = Workspace(root)
    workspace.listen(**heard.callbacks())
    workspace.start()
    try:
        await workspace.ready()
        if watch:
            await until(lambda: "watching" in heard.watching)
        yield workspace, heard
    finally:
        await workspace.close()


async def test_it_lists_watches_and_knows_what_git_says(tmp_path: Path) -> None:
    make_repository(tmp_path, {"a.py": "1", "sub/b.py": "1", "gone.py": "", ".gitignore": "*.log\n"})
    (tmp_path / "gone.py").unlink()
    async with opened(tmp_path) as (workspace, heard):
        await until(lambda: workspace.index.paths == [".gitignore", "a.py", "sub/b.py"])
        await until(lambda: heard.statuses)
        assert heard.statuses[0] == GitStatus(True, "main", marks={"gone.py": " D"})
        make_tree(tmp_path, {"new.py": "", "new.log": ""})
        (tmp_path / "a.py").write_text("2")
        await until(
            lambda: workspace.index.contains("new.py") and FileChange("changed", "a.py") in heard.changes
        )
        await until(lambda: heard.statuses[-1].marks == {"gone.py": " D", "a.py": " M", "new.py": "??"})
        assert not workspace.index.contains("new.log")
        assert heard.indexed[-1] == len(workspace.index)


@pytest.mark.parametrize(("apart", "listings"), [(-3600.0, 1), (3600.0, 2)])
async def test_all_is_listed_again_only_where_something_came_or_went_while_nobody_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apart: float, listings: int
) -> None:
    make_tree(tmp_path, {"a.py": "1"})
    asked: list[str] = []
    stream = ChildProcess.stream

    def noted(self: ChildProcess, method: str, params: dict[str, Any]) -> AsyncGenerator[Any, None]:
        asked.append(method)
        return stream(self, method, params)

    monkeypatch.setattr(ChildProcess, "stream", noted)
    monkeypatch.setattr(module, "CLOCKS_APART", apart)
    async with opened(tmp_path) as (workspace, heard):
        await until(lambda: len(asked) == listings + 1 and not workspace.busy)
        make_tree(tmp_path, {"b.py": ""})
        await until(lambda: workspace.index.contains("b.py"))
        assert sorted(asked) == [*["list"] * listings, "watch"] and heard.statuses == [GitStatus()]


async def test_a_file_that_is_replaced_was_changed_and_not_added(tmp_path: Path) -> None:
    make_tree(tmp_path, {"a.py": "1"})
    async with opened(tmp_path) as (_, heard):
        make_tree(tmp_path, {".a.tmp": "2"})
        (tmp_path / ".a.tmp").rename(tmp_path / "a.py")
        await until(lambda: FileChange("changed", "a.py") in heard.changes)
        assert FileChange("added", "a.py") not in heard.changes


async def test_a_new_ignore_rule_takes_files_out(tmp_path: Path) -> None:
    make_repository(tmp_path, {"a.py": "", "b.log": ""}, commit=False)
    async with opened(tmp_path) as (workspace, _):
        make_tree(tmp_path, {".gitignore": "*.log\n"})
        await until(lambda: workspace.index.paths == [".gitignore", "a.py"])


async def test_below_the_root_of_a_repository(tmp_path: Path) -> None:
    make_repository(tmp_path, ["a.py", "sub/b.py"])
    async with opened(tmp_path / "sub") as (workspace, heard):
        assert workspace.index.paths == ["b.py"]
        make_tree(tmp_path, ["top.py", "sub/new.py"])
        await until(lambda: heard.statuses and heard.statuses[-1].marks == {"new.py": "??"})


async def test_names_that_cannot_be_shown_are_told(tmp_path: Path) -> None:
    make_tree(tmp_path, ["a.py"])
    (tmp_path / "caf\udce9").touch()
    async with opened(tmp_path, watch=False) as (workspace, heard):
        assert workspace.index.paths == ["a.py"]
        assert [notice for notice in heard.notices if "not UTF-8" in notice]


async def test_it_works_without_its_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise ChildFailed("The workspace process cannot be started", "free some memory and try again")

    monkeypatch.setattr(module.ChildProcess, "_connected", refuse)
    make_tree(tmp_path, ["a.py", "node_modules/m.js"])
    heard = Heard()
    workspace = Workspace(tmp_path)
    workspace.listen(**heard.callbacks())
    workspace.start()
    await workspace.ready()
    await until(lambda: "failed" in heard.watching)
    assert workspace.index.paths == ["a.py"]
    assert "without git's rules" in heard.notices[0]
    make_tree(tmp_path, ["b.py"])
    await workspace.refresh()
    assert workspace.index.paths == ["a.py", "b.py"]
    assert await workspace.git_status() == GitStatus()
    await workspace.close()


async def test_a_child_that_dies_is_followed_by_another(tmp_path: Path) -> None:
    import os
    import signal

    make_repository(tmp_path, ["a.py"])
    async with opened(tmp_path) as (workspace, heard):
        pid = workspace.child.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await until(lambda: heard.watching[-2:] == ["failed", "watching"])
        make_tree(tmp_path, ["b.py"])
        await until(lambda: workspace.index.contains("b.py"))


async def test_nothing_runs_while_nothing_happens(tmp_path: Path) -> None:
    import asyncio

    make_repository(tmp_path, ["a.py"])
    async with opened(tmp_path) as (workspace, heard):
        await until(lambda: heard.statuses and not workspace.busy)
        timers = getattr(asyncio.get_running_loop(), "_scheduled")  # noqa: B009 there is no public way to ask
        assert [timer for timer in timers if not timer.cancelled()] == []


def test_a_file_is_no_workspace(tmp_path: Path) -> None:
    make_tree(tmp_path, ["a.py"])
    with pytest.raises(PathRefused):
        Workspace(tmp_path / "a.py")


def test_the_interface_never_imports_what_the_child_needs() -> None:
    program = (
        "import sys, tui_agent.workspace.workspace, tui_agent.planning.built_in_planner, tui_agent.planning.chain;"
        "print([m for m in ('git', 'watchfiles', 'rapidfuzz', 'frizbee') if m in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


async def test_two_share_a_child_and_the_one_that_has_it_ends_it(tmp_path: Path) -> None:
    make_repository(tmp_path / "one", ["a.py"])
    make_repository(tmp_path / "two", ["b.py"])
    async with opened(tmp_path / "one", watch=False) as (first, _):
        second = Workspace(tmp_path / "two", child=first.child)
        second.start()
        await second.ready()
        assert second.index.paths == ["b.py"] and second.child.pid == first.child.pid
        await second.close()
        assert await first.git_status() == GitStatus(True, "main")
    assert first.child.pid is None


async def test_one_that_is_not_watched_lists_and_knows_what_git_says(tmp_path: Path) -> None:
    make_repository(tmp_path, {"a.py": "1"})
    (tmp_path / "a.py").write_text("22")
    heard = Heard()
    workspace = Workspace(tmp_path, watched=False)
    workspace.listen(**heard.callbacks())
    workspace.start()
    await workspace.ready()
    await until(lambda: heard.statuses and not workspace.busy)
    assert workspace.index.paths == ["a.py"] and heard.statuses == [
        GitStatus(True, "main", marks={"a.py": " M"})
    ]
    assert heard.watching == []
    await workspace.close()


async def test_files_that_an_ignore_rule_hides_or_shows_are_reported(tmp_path: Path) -> None:
    make_repository(tmp_path, {"a.py": "1", ".gitignore": "*.log\n"})
    (tmp_path / "x.log").write_text("")
    async with opened(tmp_path) as (workspace, heard):
        (tmp_path / ".gitignore").write_text("")
        await until(
            lambda: FileChange("added", "x.log") in heard.changes, "the file that is ignored no longer"
        )
        (tmp_path / ".gitignore").write_text("*.log\n")
        await until(lambda: FileChange("deleted", "x.log") in heard.changes, "the file that is ignored again")
        assert workspace.index.paths == [".gitignore", "a.py"]
