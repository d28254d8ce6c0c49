"""Creates a view of the workspace and runs commands in it; started by `namespace_view.py`.

Every view starts this program, so it imports only fast standard modules: json, socket and signal take longer
than all mounts. All decisions are in the plan (see
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
import resource
import stat
import struct
import sys
import time

from tui_agent.sandbox.inside.commands import FirstProcess, processes
from tui_agent.sandbox.inside.kernel import (
    DEATH_SIGNAL,
    DUMPABLE,
    NEW_NETWORK,
    Failed,
    call,
    drop_capabilities,
    libc,
    loopback_up,
    map_own_ids,
    map_users,
    prctl,
    received,
    syscall,
)
from tui_agent.sandbox.inside.mounts import ViewMounts

CREATE, ADD, RESTRICT = 444, 445, 446
EXECUTE, WRITE, READ, LIST = 1, 2, 4, 8
#: Rights on files; the others apply only to folders.
OF_FILES = EXECUTE | WRITE | READ | 1 << 14 | 1 << 15
#: File rights by Landlock version; later versions add renaming, truncation and device commands.
KNOWN = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
ORPHANS_ARE_OURS = 36
NEW_USERS, NEW_PROCESSES = 0x10000000, 0x20000000
#: Versions with rules for truncation, TCP, and signals and sockets.
LEAST, WITH_NETWORK, WITH_SCOPES = 3, 4, 6


def version():
    found = syscall("Landlock", CREATE, None, 0, 1)
    if found < LEAST:
        raise Failed("Landlock is too old", 0)
    return found


def restrict(plan):
    """Permits running `readable`, listing `listed`, everything in `writable`, and using `devices`."""
    now = version()
    known = max(rights for since, rights in KNOWN.items() if since <= now)
    rights = struct.pack("QQQ", known, 3, 3)[: 24 if now >= WITH_SCOPES else 16 if now >= WITH_NETWORK else 8]
    rules = syscall("Landlock's rules", CREATE, rights, len(rights), 0)
    wanted = [(path, READ | LIST | EXECUTE) for path in plan["readable"]]
    wanted += [(path, LIST) for path in plan["listed"]]
    wanted += [(path, READ | WRITE) for path in plan["devices"]]
    wanted += [(path, known) for path in plan["writable"]]
    for path, allowed in wanted:
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            allowed &= OF_FILES
        syscall(f"allow {path}", ADD, rules, 1, struct.pack("=Qi", allowed & known, place), 0)
        os.close(place)
    prctl(38, 1, 0, 0, 0)
    syscall("Landlock", RESTRICT, rules, 0)
    os.close(rules)


def own_processes():
    """Returns the pid of the first process of a new namespace, or 0 without permission.

    All later children end with that process, and it ends with this one.
    """
    user, group = os.geteuid(), os.getegid()
    try:
        call("new processes", libc.unshare, NEW_PROCESSES | (NEW_USERS if user else 0))
    except Failed:
        return 0
    if user:
        map_own_ids(user, group)
    first = os.fork()
    if first:
        return first
    try:
        prctl(DEATH_SIGNAL, signal.SIGKILL)
        os.closerange(0, 4096)
        os.setsid()
        while True:
            try:
                os.wait()
            except ChildProcessError:
                time.sleep(0.2)
    finally:
        os._exit(1)


class Supervisor(FirstProcess):
    """Supervises its own descendants, without a view."""

    #: Seconds; the only limit on the number of processes.
    look = 0.05

    def __init__(self, plan, line, first):
        super().__init__(plan, line)
        self.first = first

    def serve(self):
        try:
            prctl(ORPHANS_ARE_OURS, 1, 0, 0, 0)
            super().serve()
        finally:
            if self.first:
                try:
                    os.kill(self.first, signal.SIGKILL)
                except OSError:
                    pass
            self._end_all()

    def confine(self):
        found = 0
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    found += len(os.listdir(f"/proc/{name}/task"))
                except OSError:
                    continue
        most = found + self.plan["processes"]
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
        restrict(self.plan)
        drop_capabilities(self.plan)

    def _others(self):
        there = processes()
        parents = {pid: parent for pid, parent, *_ in there}
        return [
            (pid, name, size)
            for pid, _, name, size in there
            if pid != self.first and self._descends(pid, parents)
        ]

    def _descends(self, pid, parents):
        seen = set()
        while pid in parents and pid not in seen:
            seen.add(pid)
            pid = parents[pid]
            if pid == os.getpid():
                return True
        return False

    def _end_all(self):
        """Kills whole process groups, so that no member starts another. Never raises."""
        until = time.monotonic() + 5
        while (others := self._others()) and time.monotonic() < until:
            groups = set()
            for pid, *_ in others:
                try:
                    group = os.getpgid(pid)
                    if group == os.getpgid(0):
                        os.kill(pid, signal.SIGKILL)
                    elif group not in groups:
                        groups.add(group)
                        os.killpg(group, signal.SIGKILL)
                except OSError:
                    continue


PROXY_PORT = 3128


def main() -> None:
    line = _socket.socket(fileno=int(sys.argv[1]))
    _, opened = received(line, 1 << 16, 1)
    passed, first = {}, 0
    with open(opened[0], "rb") as seeds:
        plan = marshal.load(seeds)
        try:
            if plan["isolated"] == "overlay":
                map_users()
                if not plan["network"]:
                    call("new network", libc.unshare, NEW_NETWORK)
                prctl(DEATH_SIGNAL, signal.SIGKILL)
                child = os.fork()
                if child:
                    line.close()
                    os.waitpid(child, 0)
                    return
                prctl(DEATH_SIGNAL, signal.SIGKILL)
                passed["layers"] = ViewMounts(plan, seeds).make()
                if not plan["network"]:
                    loopback_up()
            elif plan["isolated"] == "landlock":
                version()
                first = own_processes()
            else:
                prctl(DEATH_SIGNAL, signal.SIGKILL)
            prctl(DUMPABLE, 0)
        except (Failed, OSError) as error:
            step, number = error.args if isinstance(error, Failed) else (str(error.filename), error.errno)
            why = os.strerror(number) if number else "not on this machine"
            line.send(ascii({"failed": step, "errno": number, "why": why}).encode())
            return
    if plan["isolated"] != "landlock":
        passed["merged"] = os.open(plan["overlays"][-1], os.O_RDONLY | os.O_DIRECTORY)
    if plan["proxy"]:
        port = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        port.bind(("127.0.0.1", PROXY_PORT))
        port.listen(128)
        passed["listener"] = port.detach()
    descriptors = struct.pack(f"{len(passed)}i", *passed.values())
    line.sendmsg([ascii({"ready": list(passed)}).encode()], [(_socket.SOL_SOCKET, 1, descriptors)])
    for descriptor in passed.values():
        os.close(descriptor)
    (Supervisor(plan, line, first) if plan["isolated"] == "landlock" else FirstProcess(plan, line)).serve()
