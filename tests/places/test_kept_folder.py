"""Kept copies: shared by work copies of a folder, updated by what changed, removed when unused."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tui_agent.errors import SessionError
from tui_agent.places.contents import RACY, Contents, contents_of
from tui_agent.places.kept_folder import MOST, CopySlot, KeptFolder, sweep
from tui_agent.sandbox.view_plan import Seed


async def nothing(_: Sequence[str]) -> set[str]:
    return set()


def contents(root: Path, *seeds: Seed) -> Contents:
    paths = [str(path.relative_to(root)) for path in sorted(root.rglob("*")) if not path.is_dir()]
    return contents_of(str(root), paths, seeds)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    (root / "src").mkdir(parents=True)
    (root / "a.txt").write_text("one\n")
    (root / "src" / "b.txt").write_text("b\n")
    while time.time_ns() - (root / "src" / "b.txt").stat().st_ctime_ns < 2 * RACY:
        time.sleep(0.01)  # A newer file could change again without a trace, so it is copied twice.
    return root


def opened(parent: Path, found: Contents) -> Path:
    kept = KeptFolder(parent, nothing)
    path = Path(asyncio.run(kept.open(found)))
    kept.close()
    return path


def test_an_unchanged_file_is_not_written_again(root: Path, tmp_path: Path) -> None:
    path = opened(tmp_path / "kept", contents(root))
    before = {name: (path / name).stat() for name in ("a.txt", "src/b.txt")}
    (root / "a.txt").write_text("two\n")
    assert opened(tmp_path / "kept", contents(root)) == path
    assert (path / "a.txt").read_text() == "two\n"
    assert (path / "src/b.txt").stat().st_ctime_ns == before["src/b.txt"].st_ctime_ns
    # Build tools and caches of bytecode compare whole seconds.
    assert int((path / "a.txt").stat().st_mtime) > int(before["a.txt"].st_mtime)


def test_work_copies_of_a_folder_share_it(root: Path, tmp_path: Path) -> None:
    first = opened(tmp_path / "kept", contents(root))
    other = tmp_path / "t1.1"
    root.rename(other)
    second = opened(tmp_path / "kept", contents(other))
    assert (first.name, second.name) == ("work", "t1.1")
    assert first.parent == second.parent
    assert not first.exists()
    assert (second / "src/b.txt").read_text() == "b\n"


def test_a_command_cannot_lead_a_later_copy_elsewhere(root: Path, tmp_path: Path) -> None:
    """Links in place of folders and files, and times that were set back."""
    path, outside = opened(tmp_path / "kept", contents(root)), tmp_path / "outside"
    outside.mkdir()
    (outside / "b.txt").write_text("theirs\n")
    times = (path / "a.txt").stat()
    (path / "a.txt").write_text("six\n")
    os.utime(path / "a.txt", ns=(times.st_atime_ns, times.st_mtime_ns))
    (path / "src" / "b.txt").unlink()
    (path / "src").rmdir()
    (path / "src").symlink_to(outside)
    assert opened(tmp_path / "kept", contents(root)) == path
    assert (path / "a.txt").read_text() == "one\n"
    assert not (path / "src").is_symlink()
    assert (path / "src" / "b.txt").read_text() == "b\n"
    assert (outside / "b.txt").read_text() == "theirs\n"


def test_a_file_that_is_gone_is_not_deleted_behind_a_link(root: Path, tmp_path: Path) -> None:
    path, outside = opened(tmp_path / "kept", contents(root)), tmp_path / "outside"
    outside.mkdir()
    (outside / "b.txt").write_text("theirs\n")
    (path / "src" / "b.txt").unlink()
    (path / "src").rmdir()
    (path / "src").symlink_to(outside)
    (root / "src" / "b.txt").unlink()

    async def all_of_them(paths: Sequence[str]) -> set[str]:
        return set(paths)

    kept = KeptFolder(tmp_path / "kept", all_of_them)  # git ignores the link, so it stays.
    asyncio.run(kept.open(contents(root)))
    kept.close()
    assert (outside / "b.txt").read_text() == "theirs\n"


@pytest.mark.parametrize(("before", "after"), [("file", "folder"), ("folder", "file"), ("file", "link")])
def test_a_path_becomes_another_kind(root: Path, tmp_path: Path, before: str, after: str) -> None:
    def make(kind: str) -> None:
        target = root / "x"
        if kind == "folder":
            target.mkdir()
            (target / "y").write_text("y\n")
        elif kind == "file":
            target.write_text("x\n")
        else:
            target.symlink_to("a.txt")

    make(before)
    opened(tmp_path / "kept", contents(root))
    if before == "folder":
        (root / "x" / "y").unlink()
        (root / "x").rmdir()
    else:
        (root / "x").unlink()
    make(after)
    path = opened(tmp_path / "kept", contents(root)) / "x"
    assert (path.is_dir(), path.is_symlink()) == (after == "folder", after == "link")
    assert (path / "y" if after == "folder" else path).read_text() in ("x\n", "y\n", "one\n")


def test_pending_contents_replace_files(root: Path, tmp_path: Path) -> None:
    seeds = (
        Seed("a.txt", "file", b"pending\n"),
        Seed("src/b.txt", "gone"),
        Seed("new/c.txt", "file", b"new\n", 0o755),
        Seed(".env", "hidden", b""),
    )
    path = opened(tmp_path / "kept", contents(root, *seeds))
    assert (path / "a.txt").read_text() == "pending\n"
    assert not (path / "src/b.txt").exists()
    assert (path / "new/c.txt").stat().st_mode & 0o777 == 0o755
    assert not (path / ".env").exists()  # It is no part of the copy, so nothing has to be hidden.
    path = opened(tmp_path / "kept", contents(root))
    assert (path / "a.txt").read_text() == "one\n"
    assert not (path / "new").exists()


def test_the_folder_with_the_same_contents_is_taken_again(root: Path, tmp_path: Path) -> None:
    first, second = CopySlot(tmp_path / "kept", "one"), CopySlot(tmp_path / "kept", "two")
    for slot, key in ((first, "one"), (second, "two")):
        slot.save({"key": key})
        slot.close()
    again = CopySlot(tmp_path / "kept", "two")
    assert again.path == second.path
    held = [again, *(CopySlot(tmp_path / "kept", str(number)) for number in range(MOST - 1))]
    with pytest.raises(SessionError, match="already use this place"):
        CopySlot(tmp_path / "kept", "more")
    for slot in held:
        slot.close()


def test_an_unused_folder_is_removed_and_one_in_use_is_not(root: Path, tmp_path: Path) -> None:
    parent = tmp_path / "places" / "key" / "here"
    paths = [opened(parent, contents(root))]
    used = KeptFolder(parent, nothing)
    asyncio.run(used.open(contents(root)))
    long_ago = time.time() - 40 * 86_400
    for record in parent.glob("*/record"):
        os.utime(record, (long_ago, long_ago))
    sweep(tmp_path / "places")
    assert paths[0].exists()
    used.close()
    sweep(tmp_path / "places")
    assert not paths[0].exists()
