"""A home whose disk is full: the session is in memory, says so, and a turn that reads comes to its end."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest
from support.command_line import run_here
from support.sessions import open_session, reply
from support.trees import until

from tui_agent.files.blobs import Blobs
from tui_agent.log import catalog

READS = reply("Two lines.", message="It has two lines.")


@contextmanager
def full(folder: Path, leave: int = 0) -> Generator[None]:
    """A disk at `folder` on which there is no room: a real one where we may mount it, else calls that fail."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as last:
        if os.geteuid() == 0 and _mounted(folder):
            last.callback(subprocess.run, ["umount", "-l", str(folder)], check=True)
            with (folder / "ballast").open("wb", buffering=0) as file:
                try:
                    while True:
                        file.write(bytes(1024))
                except OSError:
                    pass
            os.truncate(folder / "ballast", (folder / "ballast").stat().st_size - leave)
        else:
            last.enter_context(_refusing(folder))
        yield


def _mounted(folder: Path) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@contextmanager
def _refusing(folder: Path) -> Generator[None]:
    real = os.open

    def refuse(path: str, flags: int, *more: int, **named: int) -> int:
        if flags & os.O_CREAT and str(path).startswith(str(folder)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        return real(path, flags, *more, **named)

    with patch.object(os, "open", refuse):
        yield


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.py").write_text("a = 1\nb = 2\n")
    return folder


async def test_a_new_session_begins_in_memory_and_says_so(
    tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "full"
    monkeypatch.setenv("TUI_AGENT_HOME", str(home))
    with full(home):
        async with open_session(work, [READS]) as session:
            assert "no space left" in session.state.session.not_kept
            assert "free some space" in session.state.session.not_kept
            await session.chat.submit("what is in a.py?")
            await session.chat.finished()
            assert session.state.turn.ok, session.state.turn.error
            assert "a.py" in session.state.known.files
        assert catalog.list_sessions(home / "data") == []


def test_without_a_screen_too(
    tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "full"
    monkeypatch.setenv("TUI_AGENT_HOME", str(home))
    with full(home):
        done = run_here(capfd, ["run", "--workspace", str(work), "--set", "model=none/such", "x"])
    assert "no space left" in done.err and "Traceback" not in done.err


async def test_a_text_that_cannot_be_kept_does_not_end_a_turn_that_reads(
    work: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = {"path": "a.py", "edits": [{"search": "a = 1", "replace": "a = 3"}]}
    async with open_session(work, [READS, reply("One.", fileChanges=[change])]) as session:
        blobs = home / "data" / "blobs"
        blobs.parent.mkdir(parents=True, exist_ok=True)
        with full(blobs):
            await session.chat.submit("what is in a.py?")
            await session.chat.finished()
            assert session.state.turn.ok, session.state.turn.error
            await until(lambda: session.state.notices.total)
            assert "only in memory" in session.state.notices.items[-1].text
            assert "disk is full" in session.state.notices.items[-1].text
            await session.chat.submit("change a.py")
            await session.chat.finished()
            (change_made,) = session.state.review.open
            assert (await session.review.diff(change_made.id)).hunks
            with pytest.raises(Exception, match="disk is full"):
                await session.review.apply()
            assert (work / "a.py").read_text() == "a = 1\nb = 2\n"
        await session.review.apply()
        assert (work / "a.py").read_text() == "a = 3\nb = 2\n"
        assert len(await session.chat.sent()) == 2
    assert Blobs(home / "data" / "blobs").has(change_made.new), "written when there was room again"
