"""Temporary folders: what others put into the system's folder for them is neither read nor removed."""

from __future__ import annotations

import os
import signal
import stat
import tempfile
from pathlib import Path

import pytest

from tui_agent.edits import merge
from tui_agent.files import private, staging
from tui_agent.log import storage

HUGE = "9" * 30


@pytest.fixture(autouse=True)
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    system = tmp_path / "tmp"
    system.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(system))
    monkeypatch.setattr(private, "_instead", {})
    return system


@pytest.mark.parametrize("owner", [HUGE, "9" * 5000, "0", "4294967297", "99999999"])
def test_a_name_of_somebody_else_is_left_alone(system: Path, owner: str) -> None:
    made = []
    for begin in ("tui-agent-index-", "tui-agent-git-", ""):
        try:
            made.append(system / f"{begin}{owner}-x")
            made[-1].mkdir()
        except OSError:
            made.pop()  # no name is as long
    private.sweep()
    assert all(folder.is_dir() for folder in made)


def test_what_a_process_that_ended_left_is_removed(system: Path) -> None:
    place = Path(private.own_place())
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    kept = Path(private.make_temporary())
    ended, odd = place / "4194304-abc", place / f"{HUGE}-x"
    ended.mkdir()
    odd.mkdir()
    private.sweep()
    assert kept.is_dir() and odd.is_dir() and not ended.exists()


def test_a_killed_process_leaves_no_folder_to_the_next(
    system: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a merge, and of a session in memory."""

    def kill(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(merge, "run_git", kill)
    child = os.fork()
    if child == 0:
        try:
            storage.in_memory(tmp_path, "", tmp_path)
            merge.merge("one\n", "two\n", "three\n")
        finally:
            os._exit(1)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    assert sum(path.is_dir() for path in system.rglob("*")) == 3, "the place, and two folders in it"
    private.sweep()
    assert list(system.rglob("*")) == [Path(private.own_place())]


@pytest.mark.parametrize("taken", ["open", "link", "file"])
def test_a_place_that_is_not_ours_alone_is_not_used(system: Path, taken: str) -> None:
    place = system / f"tui-agent-{os.geteuid()}"
    other = system / "other"
    other.mkdir()
    match taken:
        case "open":
            place.mkdir()
            place.chmod(0o777)
        case "link":
            place.symlink_to(other)
        case "file":
            place.write_text("")
    folder = Path(private.make_temporary())
    assert folder.parent != place and not any(other.iterdir())
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    assert private.own_place() == str(folder.parent)


def test_a_staged_file_with_a_number_of_no_process_is_left_alone(tmp_path: Path) -> None:
    letters = "0" * 16
    odd, ended = tmp_path / f".tui-agent-{HUGE}-{letters}.tmp", tmp_path / f".tui-agent-4194304-{letters}.tmp"
    odd.write_text("")
    ended.write_text("")
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        staging.sweep(descriptor)
    finally:
        os.close(descriptor)
    assert odd.exists() and not ended.exists()
