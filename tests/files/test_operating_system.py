"""What a system lacks is done another way: macOS has no `os.listxattr`, and a plain sync there reaches no disk."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tui_agent.files import operating_system
from tui_agent.files.batch import write_file
from tui_agent.files.gate import Gate


def test_without_listxattr_the_system_s_own_copy_takes_tags_and_lists_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def fcopyfile(source: int, target: int, state: object, flags: ctypes.c_uint32) -> int:
        asked.append((os.fstat(source).st_ino, os.fstat(target).st_ino, state, flags.value))
        return 0

    monkeypatch.delattr(os, "listxattr")
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: SimpleNamespace(fcopyfile=fcopyfile))
    (tmp_path / "a.txt").write_text("old")
    before = (tmp_path / "a.txt").stat().st_ino
    write_file(Gate(tmp_path), "a.txt", b"new", None)
    after = (tmp_path / "a.txt").stat().st_ino
    assert asked == [(before, after, None, 0b101)], "attributes and lists, from the old file to the new"
    assert (tmp_path / "a.txt").read_text() == "new"


@pytest.mark.parametrize(("code", "passes"), [(errno.ENOTSUP, True), (errno.EPERM, True), (errno.EIO, False)])
def test_what_cannot_be_copied_is_left_out_but_a_broken_disk_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, passes: bool
) -> None:
    def fcopyfile(*_: object) -> int:
        ctypes.set_errno(code)
        return -1

    monkeypatch.delattr(os, "listxattr")
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: SimpleNamespace(fcopyfile=fcopyfile))
    with (tmp_path / "a").open("w") as one, (tmp_path / "b").open("w") as other:
        if passes:
            operating_system.copy_attributes(one.fileno(), other.fileno())
        else:
            with pytest.raises(OSError, match="Input/output"):
                operating_system.copy_attributes(one.fileno(), other.fileno())


@pytest.mark.parametrize("works", [True, False])
def test_where_there_is_a_full_sync_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, works: bool
) -> None:
    full, plain = [], []

    def control(descriptor: int, command: int) -> int:
        full.append(command)
        if not works:
            raise OSError(errno.ENOTSUP, "no full sync here")
        return 0

    monkeypatch.setattr(operating_system, "_FULL_SYNC", 51)
    monkeypatch.setattr(fcntl, "fcntl", control)
    monkeypatch.setattr(os, "fsync", plain.append)
    write_file(Gate(tmp_path), "a.txt", b"new", None)
    assert set(full) == {51} and len(full) >= 2, "the file and its folder"
    assert bool(plain) is not works


def test_on_windows_one_sentence_says_what_to_do() -> None:
    """Before any import that does not exist there."""
    program = (
        "import sys; sys.platform = 'win32'; sys.argv = ['tui-agent', '.']\n"
        "for name in ('fcntl', 'termios', 'pwd', 'resource', 'click', 'msgspec'): sys.modules[name] = None\n"
        "from tui_agent.__main__ import main; sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "tui-agent: Windows is not supported: run it in WSL\n"


def test_calls_within_calls_at_once_end_and_keep_their_threads() -> None:
    done: list[int] = []

    def outer(number: int) -> None:
        operating_system.several_at_once(lambda inner: done.append(10 * number + inner), range(8))

    operating_system.several_at_once(outer, range(64))
    threads = threading.active_count()
    for _ in range(20):
        operating_system.several_at_once(outer, range(64))
    assert len(done) == 21 * 64 * 8
    assert threading.active_count() <= max(threads, 2 * operating_system.AT_ONCE + 1)


def test_the_first_failure_of_calls_at_once_is_raised_after_all_have_ended() -> None:
    done: list[int] = []

    def work(number: int) -> None:
        if number == 1:
            raise OSError(errno.EIO, "broken")
        done.append(number)

    with pytest.raises(OSError, match="broken"):
        operating_system.several_at_once(work, range(4))
    assert sorted(done) == [0, 2, 3]


def test_a_copy_of_the_process_has_threads_of_its_own_for_calls_at_once() -> None:
    operating_system.several_at_once(lambda _: None, range(4))
    if not (pid := os.fork()):
        found: list[int] = []
        operating_system.several_at_once(found.append, range(64))
        os._exit(0 if len(found) == 64 else 1)
    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_only_a_regular_file_is_read(tmp_path: Path, make: Callable[[str], None]) -> None:
    place = str(tmp_path / "a")
    make(place)
    before = os.listdir("/proc/self/fd")
    with pytest.raises(OSError, match="not a regular file"):
        operating_system.read_start(place)
    assert os.listdir("/proc/self/fd") == before
