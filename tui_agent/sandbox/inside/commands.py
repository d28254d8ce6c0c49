"""First process of a view: starts commands, reaps processes, enforces limits."""

from __future__ import annotations

import _signal as signal  # ty: ignore[import-not-found]
import fcntl
import marshal
import os
import resource
import select
import sys
import termios
import time

from tui_agent.sandbox.inside.kernel import drop_capabilities, received

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
