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
import fcntl
import marshal
import os
import resource
import select
import stat
import struct
import sys
import termios
import time

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

#: Seconds from an interrupt to the kill, for leftover processes, and between checks of the limits.
INTERRUPTED, LEFT, LOOK = 0.3, 0.5, 0.25
PAGE = os.sysconf("SC_PAGESIZE")


def processes():
    """Yields (pid, parent, name, bytes of memory). Names may contain any bytes."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as file:
                    text = file.read()
                begin, end = text.index(b"("), text.rindex(b")")
                fields = text[end + 2 :].split()
                if fields[0] != b"Z":
                    name = text[begin + 1 : end].decode("utf-8", "backslashreplace")
                    found.append((int(entry), int(fields[1]), name, int(fields[21]) * PAGE))
            except (OSError, ValueError, IndexError):
                continue
    return found


def unmapped(pids, mapped=None):
    """Returns bytes of open memfd files beyond those counted for the processes: `mapped`, or each one's
    `RssShmem`.
    """
    sizes, theirs = {}, 0
    for pid in pids:
        folder, found = f"/proc/{pid}/fd", False
        try:
            for name in os.listdir(folder):
                if os.readlink(f"{folder}/{name}").startswith("/memfd:"):
                    there = os.stat(f"{folder}/{name}")
                    sizes[there.st_dev, there.st_ino] = there.st_blocks * 512
                    found = True
            if found and mapped is None:
                with open(f"/proc/{pid}/status", "rb") as file:
                    shared = next((line for line in file if line.startswith(b"RssShmem:")), b"0 0")
                theirs += int(shared.split()[1]) * 1024
        except (OSError, ValueError):
            continue
    return max(0, sum(sizes.values()) - (theirs if mapped is None else mapped))


def in_memory(others):
    """Returns bytes of all processes; shared memory counts once."""
    held = shared = 0
    for pid, _, size in others:
        try:
            with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
                lines = dict(line.split()[:2] for line in file if line.startswith(b"Pss"))
            share, memory = int(lines[b"Pss:"]) * 1024, int(lines[b"Pss_Shmem:"]) * 1024
        except (OSError, ValueError, KeyError):
            share, memory = size, 0
        held += share
        shared += memory
    return held + unmapped([pid for pid, *_ in others], shared)


def waits_for_keyboard(pid):
    """Whether the program reads from a write-only pipe: an editor without a terminal reads standard error
    instead, and would wait forever.
    """
    try:
        if not os.readlink(f"/proc/{pid}/fd/0").startswith("pipe:"):
            return False
        with open(f"/proc/{pid}/fdinfo/0", "rb") as file:
            flags = next(line for line in file if line.startswith(b"flags:"))
        return int(flags.split()[1], 8) & os.O_ACCMODE == os.O_WRONLY
    except (OSError, ValueError, StopIteration):
        return False


def in_folders(folders):
    held = 0
    for path in (*(path for path, *_ in folders), "/dev/shm"):
        try:
            space = os.statvfs(path)
            held += (space.f_blocks - space.f_bfree) * space.f_frsize
        except OSError:
            continue
    return held


class FirstProcess:
    """Exits when the other end of the socket is closed."""

    look = LOOK

    def __init__(self, plan, line):
        self.plan, self.line = plan, line
        self.running, self.ends = {}, {}

    def serve(self):
        reading, waking = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(waking)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        poll = select.poll()
        poll.register(self.line, select.POLLIN)
        poll.register(reading, select.POLLIN)
        looked = time.monotonic()
        while True:
            for descriptor, _ in poll.poll(self.look * 1000 if not self.ends else 20):
                if descriptor == reading:
                    os.read(reading, 4096)
                    continue
                text, descriptors = received(self.line, 1 << 20, 4)
                message = marshal.loads(text) if text else {"end": True}
                if "run" in message:
                    self._run(message, descriptors)
                elif "stop" in message and message["stop"] in self.running:
                    self._signal(self.running[message["stop"]], signal.SIGINT)
                    self.ends.setdefault(message["stop"], time.monotonic() + INTERRUPTED)
                if "end" in message:
                    return
            self._reap()
            now = time.monotonic()
            for number in [number for number, end in self.ends.items() if end <= now]:
                self._signal(self.running[number], signal.SIGKILL)
                if len(self.running) == 1:
                    self._end_all()
            if now - looked >= self.look:
                looked = now
                self._enforce_limits()

    def _run(self, message, descriptors):
        pid = os.fork()
        if pid:
            for descriptor in descriptors:
                os.close(descriptor)
            self.running[message["run"]] = pid
            return
        try:
            os.setsid()
            output = descriptors[0]
            if message["how"] == "terminal":
                fcntl.ioctl(output, termios.TIOCSCTTY, 0)
                os.dup2(output, 0)
            else:
                os.nice(5)  # the interface has priority
                is_input = message["how"] == "input"
                os.dup2(descriptors[1] if is_input else os.open("/dev/null", os.O_RDONLY), 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
            for limit, value in self.plan["limits"].items():
                resource.setrlimit(getattr(resource, limit), (value, value))
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            os.closerange(3, 4096)
            self.confine()
            os.chdir(message["cwd"])
            os.execvpe(message["argv"][0], message["argv"], message["env"])
        except BaseException as error:
            os.write(2, f"{message['argv'][0]}: {error}\n".encode("utf-8", "replace"))
            os._exit(127)

    def confine(self):
        """Restricts the child before `exec`."""
        drop_capabilities(self.plan)

    def _reap(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            for number, process in list(self.running.items()):
                if process == pid:
                    del self.running[number]
                    self.ends.pop(number, None)
                    left = self._end_rest() if not self.running else []
                    self._send(exit=number, status=os.waitstatus_to_exitcode(status), left=left)

    def _end_rest(self):
        until = time.monotonic() + LEFT
        while self._others() and time.monotonic() < until:
            time.sleep(0.01)
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                pass
        left = sorted(name for _, name, _ in self._others())
        self._end_all()
        return left[:20]

    def _end_all(self):
        try:
            os.kill(-1, signal.SIGKILL)
        except OSError:
            pass

    def _others(self):
        return [(pid, name, size) for pid, _, name, size in processes() if pid != 1]

    def _enforce_limits(self):
        others = self._others() if self.running else []
        most, pids = self.plan["memory"], [pid for pid, *_ in others]
        # A cheap upper bound: the sum of resident sizes.
        much = sum(size for *_, size in others) + unmapped(pids) > most
        over = "memory" if much and in_memory(others) > most else ""
        over = over or ("processes" if len(others) > self.plan["processes"] else "")
        if not over and self.running and self.plan["isolated"] == "bubblewrap":
            over = "memory" if in_folders(self.plan["folders"]) > self.plan["size"] else ""
        if over:
            self._end_all()
            self._send(over=over)
            return
        for pid in pids:
            if waits_for_keyboard(pid):
                self._send(over="keyboard")
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass

    def _signal(self, pid, what):
        try:
            os.killpg(pid, what)
        except OSError:
            pass

    def _send(self, **message):
        try:
            self.line.send(ascii(message).encode())
        except OSError:
            sys.exit(0)


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
        there, ours = processes(), {os.getpid()}
        while more := {pid for pid, parent, *_ in there if parent in ours and pid not in ours}:
            ours |= more
        ours -= {os.getpid(), self.first}
        return [(pid, name, size) for pid, _, name, size in there if pid in ours]

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
