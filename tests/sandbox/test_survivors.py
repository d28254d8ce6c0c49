"""Limits and survivors: whatever a process is called and wherever it holds memory, it counts, and ends with the run."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shlex
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.views import Runner, in_view, on_a_copy, text

from tui_agent.sandbox.view_plan import MEGABYTE, Limits

PYTHON = shlex.quote(sys.executable)
VIEWS = pytest.mark.parametrize("view", [in_view, on_a_copy], ids=["overlay", "landlock"])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    return root


def survivors(argument: str) -> list[str]:
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if argument.encode() in Path(f"/proc/{name}/cmdline").read_bytes():
                found.append(name)
    return found


#: A process named by a byte that is no letter in any encoding of ours, which holds so many megabytes.
ODD = """
import ctypes, os, sys, time
ctypes.CDLL(None).prctl(15, b"\\xff\\xfe)(", 0, 0, 0)
if sys.argv[2] == "fork":
    for _ in range(60):
        if not os.fork():
            break
held = b"x" * (int(sys.argv[1]) << 20)
if sys.argv[2] == "leave":
    os.fork() and os._exit(0)
    os.setsid()
time.sleep(60)
"""


@VIEWS
@pytest.mark.parametrize(
    ("words", "how"), [("400 hold", "memory"), ("1 fork", "processes"), ("1 leave", "exit")]
)
async def test_a_process_with_an_odd_name_escapes_no_limit(
    root: Path, view: Runner, words: str, how: str
) -> None:
    (root / "odd.py").write_text(ODD)
    limits = Limits(memory=(4000 if how == "processes" else 300) * MEGABYTE, processes=40)
    own = secrets.token_hex(8)
    result = await view(root, f"{PYTHON} odd.py {words} {own}", limits=limits, timeout=20)
    assert result.how == how, text(result)
    assert how != "exit" or result.left == ("\\xff\\xfe)(",)
    assert survivors(own) == []


@VIEWS
async def test_memory_without_a_name_counts(root: Path, view: Runner) -> None:
    (root / "held.py").write_text(
        "import os, time\n"
        "held = os.memfd_create('x')\n"
        "for _ in range(400): os.write(held, bytes(1 << 20))\n"
        "time.sleep(60)\n"
    )
    limits = Limits(memory=300 * MEGABYTE)
    assert (await view(root, f"{PYTHON} held.py", limits=limits, timeout=20)).how == "memory"


async def test_all_that_is_written_shares_one_limit(root: Path) -> None:
    words = "for f in /tmp /var/tmp $HOME /dev/shm .; do head -c 8000000 /dev/zero > $f/x; done"
    result = await in_view(root, words, limits=Limits(layer=20 * MEGABYTE))
    assert "No space left" in text(result)
    assert result.full


#: clone by its number, with flags that ask for users of its own.
SPACES = """
import ctypes, os, sys
number = 220 if os.uname().machine == "aarch64" else 56
libc = ctypes.CDLL(None, use_errno=True)
for flags in (0x10000000, 0x10020000, 0x20000000, 0x40000000):
    pid = libc.syscall(number, flags | 17, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    print(pid > 0, ctypes.get_errno())
print(libc.syscall(435, 0, 0), ctypes.get_errno(), os.system("true"))
"""


@VIEWS
async def test_no_process_with_users_of_its_own_can_be_made(root: Path, view: Runner) -> None:
    (root / "spaces.py").write_text(SPACES)
    assert text(await view(root, f"{PYTHON} spaces.py")) == "False 1\n" * 4 + "-1 38 0\n"


async def test_what_a_command_started_ends_with_a_supervisor_that_is_killed(root: Path) -> None:
    task = asyncio.create_task(on_a_copy(root, "(setsid sleep 4324 &); setsid sleep 4324"))
    assert await asyncio.to_thread(within_seconds, lambda: len(survivors("sleep\x004324")) >= 2)
    supervisors = [pid for pid in survivors("tui_agent.sandbox.inside.main") if parent(pid) == os.getpid()]
    assert len(supervisors) == 1
    os.kill(int(supervisors[0]), signal.SIGKILL)
    await task
    assert await asyncio.to_thread(within_seconds, lambda: not survivors("sleep\x004324"))


def within_seconds(found: Callable[[], object]) -> bool:
    until = time.monotonic() + 10
    while not found():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def parent(pid: str) -> int:
    """Of a process; 0 if it has ended."""
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
    return 0
