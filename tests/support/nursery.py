"""Children of the tests' own process as copies of one that has imported what they need.

A session has two children, and each computes 0.2 s for its imports: a third of what the whole suite would compute. So
they are forked from a nursery, on Linux, by the code that forks the children of `tui-agent run`. A second nursery,
which begins with the first `Popen`, has imported what the program without a screen needs: two thirds of what a short
run computes. A third has imported the screen, for programs on a pseudo-terminal. Other programs, and children of other
kinds, are started as ever.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import gc
import importlib
import json
import os
import platform
import signal
import socket
import subprocess
import sys
import termios
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, AnyStr, NoReturn

from tui_agent.processes import child
from tui_agent.processes.child import ProcessCopy, adopt, become, variables

MODULES = ("tui_agent.model.worker", "tui_agent.workspace.worker")
#: The child of the servers of tools imports the SDK, which computes a second, in a nursery of its own.
SERVERS = "tui_agent.mcp_servers.worker"
#: What nearly every workspace child imports for its first request, longer than all else that it computes.
_AT_ONCE = ("tui_agent.workspace.watcher", "tui_agent.workspace.syntax_trees", "tree_sitter_python", "git")
#: The number of clone(2) where it is known, and its flag for a child of the nursery's own parent.
_CLONE = {"x86_64": 56, "aarch64": 220}.get(platform.machine(), 0) if sys.platform == "linux" else 0
_CLONE_PARENT = 0x8000
_MOST_BYTES = 1 << 20
#: What a run and the commands for sessions import, most of it when they need it.
_PROGRAM = (
    *("tui_agent.__main__", "tui_agent.cli", "tui_agent.headless.run", "tui_agent.session.opening"),
    *("tui_agent.log.cleanup", "tui_agent.model.recording", "tui_agent.model.login.access"),
    *("tui_agent.tools.propose_changes", "tui_agent.turn.turn", "tui_agent.subtasks.scheduler"),
)
#: Beginnings of variables that are read when a process starts, and by a copy no more.
_READ_AT_START = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_", "TEXTUAL_", "TUI_AGENT_PATCHES")
#: Takes standard input as the terminal of the session, and becomes the program.
OWN_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
#: The process whose children they are: one that a test forks could not wait for them.
_OWNER = os.getpid()
_started_as_ever, _imported_from = child.spawn, variables({}).get("PYTHONPATH")
_read_at_start = {name: value for name, value in os.environ.items() if name.startswith(_READ_AT_START)}
_asking = threading.Lock()


def use() -> None:
    """Have the children of this process come from the nursery from now on."""
    if _CLONE:
        child.spawn = _spawn  # ty: ignore[invalid-assignment]


async def _spawn(module: str, env: Mapping[str, str]) -> Any:
    given = variables(env)
    plain = not given.get("LD_PRELOAD") and given.get("PYTHONPATH") == _imported_from
    ours = module in (*MODULES, SERVERS) and os.getpid() == _OWNER
    copied = _forked(module, given) if ours and plain else None
    return await (adopt(copied) if copied else _started_as_ever(module, env))


def _forked(module: str, given: Mapping[str, str]) -> ProcessCopy | None:
    """A copy of the nursery; None where the system makes none."""
    pipes = [os.pipe() for _ in range(3)]
    (stdin, our_stdin), (our_stdout, stdout), (our_stderr, stderr) = pipes
    told = {"module": module, "variables": dict(given), "folder": os.getcwd()}
    kind = "servers" if module == SERVERS else "children"
    pid = _asked(kind, told, (stdin, stdout, stderr))
    ours = (our_stdin, our_stdout, our_stderr)
    for descriptor in (stdin, stdout, stderr, *(() if pid else ours)):
        os.close(descriptor)
    return ProcessCopy(pid, *ours) if pid else None


class Popen(subprocess.Popen[AnyStr]):
    """`python -m tui_agent WORDS…` as a copy of a nursery, if that is the same; any other command is started. With
    `OWN_TERMINAL` before it, in a session of its own on the terminal that is its standard input."""

    def _execute_child(self, args: Any, *others: Any) -> None:
        folder, env = others[4:6]
        streams = others[9:15]  # for each of three pipes the end to read from, and the one to write to
        stdin, _, _, stdout, _, stderr = streams
        given = dict(os.environ if env is None else env)
        as_here = {name: given[name] for name in given if name.startswith(_READ_AT_START)} == _read_at_start
        on_terminal = list(args[:3]) == [sys.executable, "-c", OWN_TERMINAL]
        command = list(args[3:] if on_terminal else args)
        ours = command[:3] == [sys.executable, "-m", "tui_agent"] and os.getpid() == _OWNER
        pid = 0
        if _CLONE and ours and as_here and -1 not in (stdin, stdout, stderr):
            told = {"words": command[3:], "variables": given, "folder": str(folder or os.getcwd())}
            kind = "screens" if on_terminal else "programs"
            pid = _asked(kind, told | {"on_terminal": on_terminal}, (stdin, stdout, stderr))
        if not pid:
            super()._execute_child(args, *others)  # ty: ignore[missing-attribute]
            return
        self.pid, self._child_created = pid, True
        self._close_pipe_fds(*streams)  # ty: ignore[missing-attribute]


def _asked(kind: str, told: Mapping[str, Any], streams: tuple[int, int, int]) -> int:
    """The process id of a new copy; 0 where the system makes none."""
    with _asking:
        try:
            nursery = _nursery(kind)
            socket.send_fds(nursery, [json.dumps(told).encode()], streams)
            return int(nursery.recv(32) or 0)
        except OSError:
            return 0


@cache
def _nursery(kind: str) -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for one in (ours, theirs):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MOST_BYTES)
    safely = () if kind in ("programs", "screens") else ("-P",)  # as each of them is started
    command = [sys.executable, *safely, __file__, kind, str(theirs.fileno())]
    process = subprocess.Popen(command, pass_fds=[theirs.fileno()], start_new_session=True)
    theirs.close()
    atexit.register(process.wait)
    atexit.register(ours.close)
    return ours


def _serve(asked: socket.socket, kind: str) -> None:
    """Fork what is asked for until nobody can ask any more."""
    for module in {"servers": (SERVERS,), "screens": ()}.get(kind, MODULES):
        importlib.import_module(module).build(lambda event: None)  # imports what it needs
    os.environ.update(
        GIT_PYTHON_REFRESH="quiet", GIT_PYTHON_GIT_EXECUTABLE=os.devnull
    )  # as `git.repository` has it
    if kind == "screens":
        importlib.import_module("tui_agent.start.host").import_everything()
    for module in {"programs": (*_AT_ONCE, *_PROGRAM), "children": _AT_ONCE}.get(kind, ()):
        importlib.import_module(module)
    gc.freeze()
    while True:
        told, streams, flags, _ = socket.recv_fds(asked, _MOST_BYTES, 3)
        if not told:
            return
        if flags or len(streams) != 3:
            raise OSError("the request came in part")
        pid = _copy()
        if pid == 0:
            _be(json.loads(told), tuple(streams))
        for descriptor in streams:
            os.close(descriptor)
        asked.send(b"%d" % pid)


def _copy() -> int:
    """fork(2), except that the child's parent is ours: who asked can wait for it."""
    api, library = ctypes.pythonapi, ctypes.PyDLL(None)
    api.PyOS_BeforeFork()
    pid = library.syscall(ctypes.c_long(_CLONE), ctypes.c_long(_CLONE_PARENT | signal.SIGCHLD), 0, 0, 0, 0)
    (api.PyOS_AfterFork_Child if pid == 0 else api.PyOS_AfterFork_Parent)()
    if pid < 0:
        raise OSError("clone failed")
    return pid


def _be(told: dict[str, Any], streams: tuple[int, ...]) -> NoReturn:
    os.chdir(told["folder"])
    stdin, stdout, stderr = streams
    if module := told.get("module"):
        become(module, told["variables"], (stdin, stdout, stderr))
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    if told["on_terminal"]:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    sys.stdin = sys.__stdin__ = os.fdopen(0, closefd=False)
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.__stderr__ = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(told["variables"])
    from tui_agent import __main__ as program

    sys.argv[:] = [str(Path(program.__file__)), *told["words"]]
    sys.path[0] = told["folder"]
    sys.exit(program.main())


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[2])), sys.argv[1])
