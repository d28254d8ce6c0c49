"""Makes a view of the workspace and runs commands in it; started by `outside.py`.

It imports the standard library alone, and of that nothing that imports much, since it is started for each view: json,
socket and signal take longer to import than all the mounts. All that it does comes from the plan that it gets (see
`plan.py`); it decides nothing itself.

Over the socket (Unix, packets; what comes in as `marshal` has it, what goes out as literals of Python) it gets

    the plan            once, with a descriptor that holds the plan and the seeds behind it
    {"run": N, argv, env, cwd}      with a descriptor for the output of the command
    {"stop": N}         an interrupt first, and the end 0.3 s later
    {"end": True}

and answers

    {"failed": STEP, "errno": E, "why": TEXT}      there is no view
    {"ready": True}     with the descriptor of the layers: `0/u` what was written to the first overlay, and so on
    {"exit": N, "status": S, "left": [NAME]}       S as `os.waitstatus_to_exitcode` has it
    {"over": "memory" | "processes"}               everything in the view was ended
    {"over": "keyboard"}                           a program that waited for a keyboard was ended

Where the plan says "bubblewrap" that program has made the view and started this one as its first process; where it says
"landlock" there is a copy of the folder, and this one ends what it started.

Three processes: one outside, which waits; the view's first process, which makes the mounts and starts commands; and the
commands. When our side of the socket is closed, or either of the first two dies, everything ends.
"""

from __future__ import annotations

import _signal as signal  # ty: ignore[import-not-found]
import _socket
import marshal
import os
import struct
import sys

from tui_agent.trial.inside.commands import FirstProcess
from tui_agent.trial.inside.kernel import (
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
from tui_agent.trial.inside.landlock import Supervisor, own_processes, version
from tui_agent.trial.inside.mounts import ViewMounts


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
    line.sendmsg([ascii({"ready": True}).encode()], [(_socket.SOL_SOCKET, 1, struct.pack("i", layers))])
    os.close(layers)
    FirstProcess(plan, line).serve()


def _serve(plan, line):
    """Where something else made the view (bubblewrap, which we are in), or there is none (a copy under Landlock)."""
    first = 0
    try:
        if plan["isolated"] == "landlock":  # it outlives us by a moment, to end what it started
            version()
            first = own_processes()
        else:
            prctl(DEATH_SIGNAL, signal.SIGKILL)
        prctl(DUMPABLE, 0)
    except Failed as error:
        _say_failed(line, error)
        return
    line.send(ascii({"ready": True}).encode())
    (Supervisor(plan, line, first) if plan["isolated"] == "landlock" else FirstProcess(plan, line)).serve()


def _say_failed(line, error):
    step, number = error.args if isinstance(error, Failed) else (str(error.filename), error.errno)
    why = os.strerror(number) if number else "not on this machine"
    line.send(ascii({"failed": step, "errno": number, "why": why}).encode())
