"""Changes on disk are told as they happen; what is ignored, linked or git's own is not."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.trees import SECONDS, make_repository, make_tree, run_git
from watchfiles import watch
from watchfiles.main import FileChange

from tui_agent.errors import ChildFailed
from tui_agent.files.staging import temporary_name
from tui_agent.git.repository import find_repository
from tui_agent.workspace import watcher
from tui_agent.workspace.watcher import RelevantChanges, Watcher, _one, make_plan, read_changes

ADDED, CHANGED, DELETED = 1, 2, 3
Batches = Generator[set[FileChange], None, None]


class Told:
    """What a watcher yields, gathered until it shows what a test waits for."""

    def __init__(self, items: AsyncGenerator[dict[str, Any], None]) -> None:
        self._items = items
        self.kinds: dict[str, str] = {}
        self.git = self.relist = False
        self.states: list[tuple[str, str]] = []

    async def until(self, condition: Callable[[Told], object]) -> None:
        async with asyncio.timeout(SECONDS):
            while not condition(self):
                item = await anext(self._items)
                if "state" in item:
                    self.states.append((item["state"], item["why"]))
                    continue
                self.kinds.update({path: kind for kind, path in item["changes"]})
                self.git = self.git or item["git"]
                self.relist = self.relist or item["relist"]


@asynccontextmanager
async def watching(root: Path, **options: Any) -> AsyncGenerator[Told, None]:
    items = Watcher(str(root), **options).run()
    told = Told(items)
    try:
        await told.until(lambda seen: seen.states)
        yield told
    finally:
        await items.aclose()


def test_a_plan_knows_when_something_last_came_or_went(tmp_path: Path) -> None:
    make_tree(tmp_path, {"sub/a.py": "1", "sub/.gitignore": "b.py\n"})
    plan = make_plan(str(tmp_path), None)

    def times(*names: str) -> list[float]:
        return [(tmp_path / name).stat().st_ctime for name in names]

    assert plan.newest() == max(times("", "sub", "sub/.gitignore"))
    os.utime(tmp_path / "sub", (0, 0))  # as an archive does that is unpacked
    assert plan.newest() == times("sub")[0]
    (tmp_path / "sub" / ".gitignore").write_text("")
    assert plan.newest() == times("sub/.gitignore")[0]
    (tmp_path / "sub").rename(tmp_path / "other")
    assert plan.newest() > times("other")[0] - 1
    make_repository(tmp_path)
    plan = make_plan(str(tmp_path), find_repository(str(tmp_path)))
    run_git(tmp_path, "commit", "-q", "--allow-empty", "-m", "more")  # only git's own files tell
    assert plan.newest() == max(times(".git", ".git/logs"))


@pytest.mark.parametrize("repository", [True, False])
async def test_files_come_change_and_go(tmp_path: Path, repository: bool) -> None:
    make_tree(tmp_path, {"a.py": "1", "sub/b.py": "1", ".gitignore": "*.log\nbuild/\n", "build/o": ""})
    if repository:
        make_repository(tmp_path)
    async with watching(tmp_path) as told:
        assert told.states == [("watching", "")]
        make_tree(tmp_path, {"new\nline.py": "1", "x.log": "", "build/p": ""})
        await told.until(lambda seen: "new\nline.py" in seen.kinds)
        (tmp_path / "sub/b.py").write_text("2")
        await told.until(lambda seen: seen.kinds.get("sub/b.py") == "changed")
        (tmp_path / "a.py").unlink()
        await told.until(lambda seen: seen.kinds.get("a.py") == "deleted")
        assert told.kinds["new\nline.py"] == "added"
        assert not {"x.log", "build/p", "build"} & told.kinds.keys()


async def test_a_folder_that_is_moved_brings_its_files(tmp_path: Path) -> None:
    make_repository(tmp_path, ["old/deep/a.py", "old/b.py"])
    async with watching(tmp_path) as told:
        (tmp_path / "old").rename(tmp_path / "new")
        await told.until(lambda seen: {"old", "new/b.py", "new/deep/a.py"} <= seen.kinds.keys())
        assert (told.kinds["old"], told.kinds["new/b.py"]) == ("deleted", "added")
        await told.until(lambda seen: seen.relist)  # the new folder is watched from here on
        (tmp_path / "new/deep/c.py").touch()
        await told.until(lambda seen: seen.kinds.get("new/deep/c.py") == "added")


async def test_ignore_files_and_git_are_told_apart(tmp_path: Path) -> None:
    make_repository(tmp_path, ["a.py"])
    async with watching(tmp_path) as told:
        run_git(tmp_path, "commit", "-q", "--allow-empty", "-m", "more")
        await told.until(lambda seen: seen.git)
        assert not told.relist and not told.kinds
        make_tree(tmp_path, {".gitignore": "*.log\n"})
        await told.until(lambda seen: seen.relist)
    assert not [path for path in told.kinds if path.startswith(".git/")]


async def test_a_folder_made_before_the_watcher_listens_is_watched(tmp_path: Path) -> None:
    make_tree(tmp_path, {"a.py": "1", ".gitignore": "build/\n", "build/o": ""})

    def late(*folders: str, **how: Any) -> Batches:
        (tmp_path / "new").mkdir(exist_ok=True)
        return watch(*folders, **how)

    async with watching(tmp_path, watch=late) as told:
        await told.until(lambda seen: seen.relist)
        (tmp_path / "new/b.py").touch()
        await told.until(lambda seen: seen.kinds.get("new/b.py") == "added")


async def test_in_a_large_tree_each_folder_is_watched_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "MANY_FILES", 2)
    make_tree(tmp_path, ["a/b/c.py", "a/d.py", "e.py"])
    asked: list[tuple[int, bool]] = []

    def counted(*folders: str, recursive: bool, **how: Any) -> Batches:
        asked.append((len(folders), recursive))
        return watch(*folders, recursive=recursive, **how)

    async with watching(tmp_path, watch=counted) as told:
        assert asked == [(3, False)], "for a whole folder the watcher looks at each file"
        (tmp_path / "a/b/c.py").write_text("2")
        await told.until(lambda seen: seen.kinds.get("a/b/c.py") == "changed")
        make_tree(tmp_path, ["a/new/f.py"])
        await told.until(lambda seen: seen.kinds.get("a/new/f.py") == "added" and seen.relist)
        (tmp_path / "a/new/g.py").touch()
        await told.until(lambda seen: seen.kinds.get("a/new/g.py") == "added")


async def test_polling_where_the_system_watches_no_more(tmp_path: Path) -> None:
    make_tree(tmp_path, ["a.py"])

    def limited(*folders: str, force_polling: bool, **how: Any) -> Batches:
        if not force_polling:
            raise OSError("OS file watch limit reached")
        how["poll_delay_ms"] = 50
        return watch(*folders, force_polling=True, **how)

    async with watching(tmp_path, watch=limited) as told:
        [(state, why)] = told.states
        assert state == "polling" and "limit reached" in why
        (tmp_path / "new.py").write_text("1")
        await told.until(lambda seen: "new.py" in seen.kinds)


async def test_a_folder_that_is_not_there_cannot_be_watched(tmp_path: Path) -> None:
    with pytest.raises(ChildFailed, match="cannot be watched"):
        async with watching(tmp_path / "none"):
            pass


async def test_a_folder_that_goes_is_told(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "root", ["a.py"])
    with pytest.raises(ChildFailed, match="is not a folder"):
        async with watching(root) as told:
            root.rename(tmp_path / "other")
            await told.until(lambda seen: False)


async def test_a_watcher_that_breaks_says_so(tmp_path: Path) -> None:
    def broken(*_: str, **__: Any) -> Batches:
        yield set()
        raise OSError("the disk went away")

    with pytest.raises(ChildFailed, match="the disk went away"):
        async with watching(tmp_path, watch=broken) as told:
            await told.until(lambda seen: False)


async def test_a_name_that_is_not_utf_8_ends_no_watching(tmp_path: Path) -> None:
    """The system's events cannot name it: from then on changes are looked for, and all is listed once."""
    async with watching(tmp_path) as told:
        make_tree(tmp_path, [os.fsdecode(b"b\xffd.txt")])
        await told.until(lambda seen: seen.relist)
    assert [state for state, _ in told.states] == ["watching", "polling"] and "UTF-8" in told.states[1][1]


def test_what_is_ignored_or_linked_is_not_watched(tmp_path: Path) -> None:
    root = make_repository(
        tmp_path / "root", {".gitignore": "out/\n", "src/a.py": "", "src/app/b.py": "", "docs/c": ""}
    )
    make_tree(root, ["out/x/y", "src/out/z"])
    (root / "link").symlink_to(tmp_path)
    plan = make_plan(str(root), find_repository(str(root)))
    inside = {str(Path(folder).relative_to(root)) for folder in plan.single - plan.git_folders}
    assert inside == {".", "src"}
    assert {str(Path(folder).relative_to(root)) for folder in plan.whole} == {"docs", "src/app"}
    assert str(root / ".git") in plan.git_folders


def test_a_clean_folder_is_watched_as_a_whole(tmp_path: Path) -> None:
    make_tree(tmp_path, ["a/b/c", "d"])
    plan = make_plan(str(tmp_path), None)
    assert (plan.single, plan.whole) == (frozenset(), frozenset({str(tmp_path)}))


def changes(root: Path, *raw: tuple[int, str]) -> RelevantChanges:
    repository = find_repository(str(root))
    plan = make_plan(str(root), repository)
    return read_changes(str(root), repository, plan, [(kind, str(root / path)) for kind, path in raw])


def test_the_disk_decides_what_happened(tmp_path: Path) -> None:
    make_tree(tmp_path, ["there.py", "sub/in.py"])
    seen = changes(tmp_path, (ADDED, "gone.py"), (DELETED, "there.py"), (CHANGED, "sub"), (CHANGED, "."))
    assert seen.changes == {"gone.py": "deleted", "there.py": "changed"}
    assert not seen.replan and not seen.relist


def test_a_new_folder_where_folders_are_watched_one_by_one_changes_the_plan(tmp_path: Path) -> None:
    make_repository(tmp_path, {".gitignore": "out/\n", "a": "", "sub/b": ""})
    make_tree(tmp_path, ["new/[x]/c.py", "new/out/d", "sub/new/e"])
    assert changes(tmp_path, (ADDED, "new")).changes == {"new/[x]/c.py": "added"}
    assert changes(tmp_path, (ADDED, "new")).replan
    assert not changes(tmp_path, (ADDED, "sub/new")).replan


def test_what_git_cannot_tell_is_listed_again(tmp_path: Path) -> None:
    make_repository(tmp_path, ["real/a.py"])
    (tmp_path / "link").symlink_to(tmp_path / "real")
    seen = changes(tmp_path, (ADDED, "link/a.py"))
    assert seen.relist and not seen.changes


def test_a_repository_that_is_made_is_noticed(tmp_path: Path) -> None:
    make_tree(tmp_path, ["a.py", ".git/HEAD"])
    seen = changes(tmp_path, (ADDED, ".git"), (ADDED, ".git/HEAD"))
    assert seen.git and seen.relist and seen.replan and not seen.changes


def test_what_we_write_aside_is_nobodys_file(tmp_path: Path) -> None:
    name = temporary_name()
    (tmp_path / name).write_text("on its way")
    seen = RelevantChanges()
    assert not _one(str(tmp_path), name, {ADDED}, seen)
    assert seen.changes == {}
