"""Children of the tests' own process as copies of one that has imported what they need.

A session has two children, and each computes 0.2 s for its imports: a third of what the whole suite would compute. So
they are forked from a nursery, on Linux, by the code that forks the children of `tui-agent run`. Programs that a test
starts, and children of other kinds, are started as ever.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import json
import os
import platform
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any, NoReturn

from tui_agent.processes import child
from tui_agent.processes.connection import variables
from tui_agent.processes.forked import ProcessCopy, adopt, become

MODULES = ("tui_agent.model.worker", "tui_agent.workspace.worker")
#: The number of clone(2) where it is known, and its flag for a child of the nursery's own parent.
_CLONE = {"x86_64": 56, "aarch64": 220}.get(platform.machine(), 0) if sys.platform == "linux" else 0
_CLONE_PARENT = 0x8000
_MOST_BYTES = 1 << 20
#: The process whose children they are: one that a test forks could not wait for them.
_OWNER = os.getpid()
_started_as_ever, _imported_from = child.spawn, variables({}).get("PYTHONPATH")


def use() -> None:
    """Have the children of this process come from the nursery from now on."""
    if _CLONE:
        child.spawn = _spawn  # ty: ignore[invalid-assignment]


async def _spawn(module: str, env: Mapping[str, str]) -> Any:
    given = variables(env)
    plain = not given.get("LD_PRELOAD") and given.get("PYTHONPATH") == _imported_from
    ours = module in MODULES and os.getpid() == _OWNER
    copied = _forked(module, given) if ours and plain else None
    return await (adopt(copied) if copied else _started_as_ever(module, env))


def _forked(module: str, given: Mapping[str, str]) -> ProcessCopy | None:
    """A copy of the nursery; None where the system makes none."""
    pipes = [os.pipe() for _ in range(3)]
    (stdin, our_stdin), (our_stdout, stdout), (our_stderr, stderr) = pipes
    told = json.dumps({"module": module, "variables": dict(given), "folder": os.getcwd()}).encode()
    try:
        nursery = _nursery()
        socket.send_fds(nursery, [told], [stdin, stdout, stderr])
        pid = nursery.recv(32)
    except OSError:
        pid = b""
    ours = (our_stdin, our_stdout, our_stderr)
    for descriptor in (stdin, stdout, stderr, *(() if pid else ours)):
        os.close(descriptor)
    return ProcessCopy(int(pid), *ours) if pid else None


@cache
def _nursery() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for one in (ours, theirs):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MOST_BYTES)
    command = [sys.executable, "-P", __file__, str(theirs.fileno())]
    process = subprocess.Popen(command, pass_fds=[theirs.fileno()], start_new_session=True)
    theirs.close()
    atexit.register(process.wait)
    atexit.register(ours.close)
    return ours


def _serve(asked: socket.socket) -> None:
    """Fork what is asked for until nobody can ask any more."""
    for module in MODULES:
        importlib.import_module(module).build(lambda event: None)  # imports what it needs
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
    become(told["module"], told["variables"], (stdin, stdout, stderr))


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
