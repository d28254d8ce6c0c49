"""Files that are gone: what they became is found by content and by git, and a copy that was there before is not it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.trees import make_repository, make_tree, run_git

from tui_agent.files.operating_system import inode_of
from tui_agent.files.text import md5
from tui_agent.git.client import MissingFile
from tui_agent.workspace.git_listing import TICK, find_renamed

TEXT = "".join(f"line {number} of the file\n" for number in range(40))
EDITED = TEXT.replace("line 7 ", "line seven ")
FILES = {"src/api.py": TEXT, "src/other.py": "x = 1\n"}
Act = Callable[[Path], object]


def move(root: Path, new: str = "lib/deep/client.py", text: str = "") -> None:
    (root / new).parent.mkdir(parents=True, exist_ok=True)
    (root / "src/api.py").rename(root / new)
    if text:
        (root / new).write_text(text)


def commit(root: Path) -> None:
    run_git(root, "add", "-A", "--", ".", ":(exclude)untracked*")
    run_git(root, "commit", "-q", "-m", "next")


def delete(root: Path) -> None:
    (root / "src/api.py").unlink()


def rename_folder(root: Path) -> None:
    (root / "src").rename(root / "lib")


def copy_and_delete(root: Path) -> None:
    """As a move from one file system to another is made: another inode, the old time of its content."""
    shutil.copy2(root / "src/api.py", root / "client.py")
    delete(root)


def move_and_commit(root: Path, text: str = "") -> None:
    move(root, text=text)
    commit(root)
    (root / "src/more.py").write_text("y = 1\n")
    commit(root)


def pull(root: Path) -> None:
    """What somebody else moved and edited comes with a branch."""
    run_git(root, "checkout", "-q", "-b", "theirs")
    move_and_commit(root, EDITED)
    run_git(root, "checkout", "-q", "main")
    (root / "src/mine.py").write_text("z = 1\n")
    commit(root)
    run_git(root, "merge", "-q", "theirs", "-m", "both")


def gone(root: Path, path: str = "src/api.py") -> MissingFile:
    """The file as it is seen when the file system's clock has passed everything that is there."""
    newest = max(os.lstat(place).st_ctime for place in root.rglob("*"))
    probe = root.parent / "probe"
    while not probe.exists() or probe.stat().st_ctime <= newest + 2 * TICK:
        probe.touch()
    return MissingFile(path, (md5(TEXT.encode()),), len(TEXT), inode_of(root / path), time.time())


@pytest.mark.parametrize("repository", [False, True], ids=["folder", "repository"])
@pytest.mark.parametrize(
    ("act", "new"),
    [
        (move, "lib/deep/client.py"),
        (rename_folder, "lib/api.py"),
        (copy_and_delete, "client.py"),
        (delete, None),
        (lambda root: move(root, text="all of it is something else\n"), None),
    ],
    ids=["moved", "folder renamed", "copied and deleted", "deleted", "another file"],
)
def test_by_content(tmp_path: Path, repository: bool, act: Act, new: str | None) -> None:
    make = make_repository if repository else make_tree
    root = make(tmp_path / "work", {**FILES, "old/api.py": TEXT, "src/copy.py": TEXT})
    one = gone(root)
    act(root)
    assert find_renamed(str(root), [one]) == ({one.path: new} if new else {})


@pytest.mark.parametrize(
    ("act", "new"),
    [
        (lambda root: move(root, text=EDITED), "lib/deep/client.py"),
        (lambda root: move_and_commit(root, EDITED), "lib/deep/client.py"),
        (pull, "lib/deep/client.py"),
        (lambda root: (delete(root), commit(root)), None),
        (lambda root: (delete(root), os.utime(root / "old/api.py")), None),
    ],
    ids=["moved and edited", "committed", "merged", "deleted", "deleted beside a copy that was touched"],
)
@pytest.mark.parametrize("below", ["", "part/"], ids=["top", "below the top"])
def test_by_git(tmp_path: Path, act: Act, new: str | None, below: str) -> None:
    files = {**FILES, "old/api.py": TEXT}
    top = make_repository(tmp_path / "work", {f"{below}{path}": text for path, text in files.items()})
    make_tree(top / below, {"untracked copy.py": TEXT})
    one = gone(top / below)
    act(top / below)
    assert find_renamed(str(top / below), [one]) == ({one.path: new} if new else {})


def test_two_that_were_alike_have_two_new_names(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "work", {"a/x.py": TEXT, "b/x.py": TEXT})
    files = [gone(root, "a/x.py"), gone(root, "b/x.py")]
    (root / "a").rename(root / "c")
    (root / "b").rename(root / "d")
    assert find_renamed(str(root), files) == {"a/x.py": "c/x.py", "b/x.py": "d/x.py"}
