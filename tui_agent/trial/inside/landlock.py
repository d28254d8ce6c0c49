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

from tui_agent.trial.inside.commands import PAGE, FirstProcess
from tui_agent.trial.inside.kernel import Failed, give_up_power, prctl, syscall

CREATE, ADD, RESTRICT = 444, 445, 446
EXECUTE, WRITE, READ, LIST = 1, 2, 4, 8
#: Of these what a file can have; the others are of folders.
OF_FILES = EXECUTE | WRITE | READ | 1 << 14 | 1 << 15
#: Rights on files that each version of Landlock knows: more for names, cutting, device commands.
KNOWN = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
ORPHANS_ARE_OURS = 36
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


class Supervisor(FirstProcess):
    """Without a space of processes of their own: those that descend from this one are the view's."""

    #: Seconds between two looks: nothing else holds the number of processes down.
    look = 0.05

    def serve(self):
        prctl(ORPHANS_ARE_OURS, 1, 0, 0, 0)
        try:
            super().serve()
        finally:
            self._end_all()

    def confine(self):
        os.nice(5)  # whoever watches comes first
        most = _tasks() + self.plan["processes"]  # of all that this user has; the kernel lets root have more
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
        restrict(self.plan)
        give_up_power(self.plan)

    def _others(self):
        parents, facts = {}, {}
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    with open(f"/proc/{name}/stat") as file:
                        text = file.read()
                except OSError:
                    continue
                fields = text[text.rindex(")") + 2 :].split()
                parents[int(name)] = int(fields[1])
                if fields[0] != "Z":
                    facts[int(name)] = text[text.index("(") + 1 : text.rindex(")")], int(fields[21]) * PAGE
        return [(pid, *facts[pid]) for pid in facts if self._descends(pid, parents)]

    def _descends(self, pid, parents):
        seen = set()
        while pid in parents and pid not in seen:
            seen.add(pid)
            pid = parents[pid]
            if pid == os.getpid():
                return True
        return False

    def _end_all(self):
        """By groups, whose members all get the signal before one of them can start another."""
        until = time.monotonic() + 5
        while (others := self._others()) and time.monotonic() < until:
            ours, groups = os.getpgid(0), set()
            for pid, *_ in others:
                try:
                    group = os.getpgid(pid)
                    if group == ours:  # it has not begun yet
                        os.kill(pid, signal.SIGKILL)
                    elif group not in groups:
                        groups.add(group)
                        os.killpg(group, signal.SIGKILL)
                except ProcessLookupError:
                    pass
