"""Creates a view of the workspace and runs commands in it; started by `namespace_view.py`.

Every view starts this program, so imports are limited to fast modules of the standard library: json,
socket and signal take longer to import than all mounts to create. All decisions are in the plan (see
`view_plan.py`).

Requests on the Unix packet socket, encoded with `marshal`:

    the plan            once, with a descriptor of a file that holds the plan and the seeds
    {"run": N, argv, env, cwd, how}     with descriptors: the output for how "" , the output and the input for "input",
                                        a terminal for "terminal"
    {"stop": N}         interrupt, then kill after 0.3 s
    {"end": True}

Responses, as Python literals:

    {"failed": STEP, "errno": E, "why": TEXT}      no view
    {"ready": [NAME]}   with a descriptor for each name: "layers" (`0/u` has the writes to the first overlay, and so
                        on), "merged" (the workspace as programs see it), "listener" (a port on the loopback)
    {"exit": N, "status": S, "left": [NAME]}       S as in `os.waitstatus_to_exitcode`
    {"over": "memory" | "processes"}               all processes in the view were killed
    {"over": "keyboard"}                           a program waiting for a keyboard was killed

With "bubblewrap" in the plan, that program has created the view and started this one as its first process.
With "landlock" there is no view but a copy of the folder, and this program kills its own descendants.

Three kinds of processes: an outer one that waits, the first process of the view, and the commands.
Everything ends if the socket is closed or one of the first two dies.
"""

from __future__ import annotations

import _signal as signal  # ty: ignore[import-not-found]
import _socket
import marshal
import os
import struct
import sys

from tui_agent.sandbox.inside.commands import FirstProcess
from tui_agent.sandbox.inside.kernel import (
    DEATH_SIGNAL,
    DUMPABLE,
    NEW_NETWORK,
    Failed,
    call,
    libc,
    loopback_up,
    map_users,
    prctl,
    received,
)
from tui_agent.sandbox.inside.landlock import Supervisor, own_processes, version
from tui_agent.sandbox.inside.mounts import ViewMounts

#: Port of the proxy on a view's own loopback.
PROXY_PORT = 3128


def main() -> None:
    line = _socket.socket(fileno=int(sys.argv[1]))
    _, descriptors = received(line, 1 << 16, 1)
    with open(descriptors[0], "rb") as seeds:
        plan = marshal.load(seeds)
        if plan["isolated"] != "overlay":
            _serve(plan, line)
            return
        try:
            map_users()
            if not plan["network"]:
                call("new network", libc.unshare, NEW_NETWORK)
            prctl(DEATH_SIGNAL, signal.SIGKILL)
            first = os.fork()
            if first:
                line.close()
                os.waitpid(first, 0)
                return
            prctl(DEATH_SIGNAL, signal.SIGKILL)
            layers = ViewMounts(plan, seeds).make()
            if not plan["network"]:
                loopback_up()
            prctl(DUMPABLE, 0)
        except (Failed, OSError) as error:
            _say_failed(line, error)
            return
    _say_ready(line, plan, {"layers": layers})
    FirstProcess(plan, line).serve()


def _serve(plan, line):
    """Serves in a view created by bubblewrap, or without a view under Landlock."""
    first = 0
    try:
        if plan["isolated"] == "landlock":  # must outlive its parent to kill its descendants
            version()
            first = own_processes()
        else:
            prctl(DEATH_SIGNAL, signal.SIGKILL)
        prctl(DUMPABLE, 0)
    except Failed as error:
        _say_failed(line, error)
        return
    _say_ready(line, plan, {})
    (Supervisor(plan, line, first) if plan["isolated"] == "landlock" else FirstProcess(plan, line)).serve()


def _say_ready(line, plan, descriptors):
    if plan["isolated"] != "landlock":
        descriptors["merged"] = os.open(plan["overlays"][-1], os.O_RDONLY | os.O_DIRECTORY)
    if plan["proxy"]:
        port = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        port.bind(("127.0.0.1", PROXY_PORT))
        port.listen(128)
        descriptors["listener"] = port.detach()
    passed = struct.pack(f"{len(descriptors)}i", *descriptors.values())
    line.sendmsg([ascii({"ready": list(descriptors)}).encode()], [(_socket.SOL_SOCKET, 1, passed)])
    for descriptor in descriptors.values():
        os.close(descriptor)


def _say_failed(line, error):
    step, number = error.args if isinstance(error, Failed) else (str(error.filename), error.errno)
    why = os.strerror(number) if number else "not on this machine"
    line.send(ascii({"failed": step, "errno": number, "why": why}).encode())
