"""A folder goes with all that is in it, and nothing that it only points at."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.privileges import unprivileged
from support.trees import make_tree

from tui_agent.files.operating_system import remove_folder


def test_folders_that_are_closed_to_us_go_too() -> None:
    with unprivileged() as home:
        folder = make_tree(home / "folder", ["a/b/c.txt", "d/e.txt"])
        for name in ("a/b", "a", "d"):
            (folder / name).chmod(0)
        remove_folder(str(folder))
        assert not folder.exists()


def test_where_we_may_not_remove_it_says_so() -> None:
    with unprivileged() as home:
        folder = make_tree(home / "closed/folder", ["a.txt"])
        (home / "closed").chmod(0o500)
        with pytest.raises(PermissionError):
            remove_folder(str(folder))


def test_a_link_goes_and_what_it_points_at_stays(tmp_path: Path) -> None:
    target = make_tree(tmp_path / "target", ["kept.txt"])
    folder = make_tree(tmp_path / "folder", ["a.txt"])
    (folder / "inner").symlink_to(target)
    (tmp_path / "link").symlink_to(target)
    for name in ("link", "folder", "nothing", "folder"):
        remove_folder(str(tmp_path / name))
    assert [path.name for path in tmp_path.iterdir()] == ["target"] and (target / "kept.txt").exists()
