"""The shell that started this process, and its terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tui_agent.control.launcher import TERMINAL_VARIABLES
from tui_agent.files.numbers import whole_number

#: Name that each process has for its session's terminal.
OWN_TERMINAL = "/dev/tty"
#: Continues the process group after its shell has the terminal again, or after two seconds. A slower shell
#: would not see the stop.
_CONTINUE = """
import os, sys, time
group, until = int(sys.argv[1]), time.monotonic() + 2
try:
    terminal = os.open(sys.argv[2], os.O_RDONLY | os.O_NOCTTY)
    while os.tcgetpgrp(terminal) == group and time.monotonic() < until:
        time.sleep(0.005)
except OSError:
    pass
os.killpg(group, int(sys.argv[3]))
"""


def can_be_continued() -> bool:
    """Whether a shell could resume this program after a stop.

    It is a process of this session outside our process group that started a member of the
    group. Programs started directly by a terminal or a remote connection have none.
    """
    parent, group, session = os.getppid(), os.getpgid(0), os.getsid(0)
    try:
        while os.getsid(parent) == session:
            if os.getpgid(parent) != group:
                return True
            fields = Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()
            parent = whole_number(fields[1])
    except (ProcessLookupError, PermissionError):
        pass
    except FileNotFoundError:
        return True  # without process information, assume that the parent belongs to this session
    return False


def is_in_front() -> bool | None:
    """Whether the shell's terminal belongs to this process group; None without such a terminal."""
    try:
        terminal = os.open(OWN_TERMINAL, os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return None
    finally:
        os.close(terminal)


def give_to_shell() -> None:
    """A shell takes its terminal only from a job that has stopped, so the group stops for some milliseconds."""
    given = (str(os.getpgrp()), OWN_TERMINAL, str(int(signal.SIGCONT)))
    words = [sys.executable, "-IS", "-c", _CONTINUE, *given]
    null = subprocess.DEVNULL
    subprocess.Popen(words, process_group=0, stdin=null, stdout=null, stderr=null)
    os.killpg(0, signal.SIGTSTP)


#: They take precedence over the terminal's own size.
_SIZE = ("COLUMNS", "LINES")
_LONGEST = 4096


def adopt(variables: Mapping[str, object]) -> None:
    """Replaces this process's variables by those of another terminal; ignores others."""
    for name in (*TERMINAL_VARIABLES, *_SIZE):
        os.environ.pop(name, None)
    for name in TERMINAL_VARIABLES:
        value = variables.get(name)
        if isinstance(value, str) and len(value) <= _LONGEST and "\0" not in value:
            with suppress(UnicodeEncodeError):
                os.environ[name] = value
