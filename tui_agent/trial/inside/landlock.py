"""Landlock: what a process and all that it starts may read and write; it can never get more back.

The rights of a folder are those of everything below it, so that what is not to be read is left out of the rules.
"""

from __future__ import annotations

import _signal as signal  # ty: ignore[import-not-found]
import os
import resource
import stat
import struct
import time

from tui_agent.trial.inside.commands import FirstProcess, processes
from tui_agent.trial.inside.kernel import (
    DEATH_SIGNAL,
    Failed,
    call,
    give_up_power,
    libc,
    prctl,
    syscall,
    write,
)

CREATE, ADD, RESTRICT = 444, 445, 446
EXECUTE, WRITE, READ, LIST = 1, 2, 4, 8
#: Of these what a file can have; the others are of folders.
OF_FILES = EXECUTE | WRITE | READ | 1 << 14 | 1 << 15
#: Rights on files that each version of Landlock knows: more for names, cutting, device commands.
KNOWN = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
ORPHANS_ARE_OURS = 36
NEW_USERS, NEW_PROCESSES = 0x10000000, 0x20000000
#: From this version on a file cannot be cut; from these on there are rules for TCP, and for signals and sockets.
LEAST, WITH_NETWORK, WITH_SCOPES = 3, 4, 6


def version():
    """The version of Landlock that the kernel has; `Failed` where it has none, or one that forbids too little."""
    found = syscall("Landlock", CREATE, None, 0, 1)
    if found < LEAST:
        raise Failed("Landlock is too old", 0)
    return found


def restrict(plan):
    """Reading and running `readable`, the names in `listed`, everything in `writable`, using `devices`; no more."""
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


def _tasks():
    """How many threads there are on the machine."""
    found = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                found += len(os.listdir(f"/proc/{name}/task"))
            except OSError:
                continue
    return found


def own_processes():
    """A space of processes of its own, if the kernel gives one: what is started from here on ends with its first
    process, and that with us, however we end. The number of that process; 0 where there is none."""
    user, group = os.geteuid(), os.getegid()
    try:
        call("new processes", libc.unshare, NEW_PROCESSES | (NEW_USERS if user else 0))
    except Failed:
        return 0
    if user:
        write("/proc/self/setgroups", "deny")
        write("/proc/self/uid_map", f"{user} {user} 1")
        write("/proc/self/gid_map", f"{group} {group} 1")
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
    """Where there is no view: the processes that descend from this one are the command's."""

    #: Seconds between two looks: nothing else holds the number of processes down.
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
        most = _tasks() + self.plan["processes"]  # of all that this user has; the kernel lets root have more
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
        restrict(self.plan)
        give_up_power(self.plan)

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
        """By groups, whose members all get the signal before one of them can start another. Raises nothing."""
        until = time.monotonic() + 5
        while (others := self._others()) and time.monotonic() < until:
            groups = set()
            for pid, *_ in others:
                try:
                    group = os.getpgid(pid)
                    if group == os.getpgid(0):  # it has not begun yet
                        os.kill(pid, signal.SIGKILL)
                    elif group not in groups:
                        groups.add(group)
                        os.killpg(group, signal.SIGKILL)
                except OSError:
                    continue
