"""What is ours is for this user alone, whatever the umask."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tui_agent.files.private import make_private, open_private, replace_private, write_private


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@contextmanager
def umask(value: int) -> Generator[None]:
    before = os.umask(value)
    try:
        yield
    finally:
        os.umask(before)


@pytest.mark.parametrize("value", [0o000, 0o022, 0o077, 0o277, 0o777])
def test_the_umask_makes_no_difference(tmp_path: Path, value: int) -> None:
    with umask(value):
        make_private(tmp_path / "home" / "data" / "sessions")
        write_private(tmp_path / "other" / "a", b"1")
        os.close(open_private(tmp_path / "home" / "b", os.O_WRONLY | os.O_CREAT))
    for folder in ("home", "home/data", "home/data/sessions", "other"):
        assert mode(tmp_path / folder) == 0o700, folder
    assert mode(tmp_path / "other/a") == mode(tmp_path / "home/b") == 0o600


def test_what_was_open_to_others_is_closed_and_folders_above_are_left_alone(tmp_path: Path) -> None:
    ours = tmp_path / "home" / "data"
    ours.mkdir(parents=True)
    ours.chmod(0o755)
    ours.parent.chmod(0o755)
    (ours / "a").write_text("old")
    (ours / "a").chmod(0o644)
    make_private(ours)
    os.close(open_private(ours / "a", os.O_RDONLY))
    assert (mode(ours), mode(ours.parent), mode(ours / "a")) == (0o700, 0o755, 0o600)


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    replace_private(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        replace_private(tmp_path / "folder", b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "folder"]
