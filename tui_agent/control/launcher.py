"""Hands this process's terminal to a session and waits until it is returned.

Run as a script, it starts the program: through the host if one is ready for this environment, otherwise
by executing the cold start. Imports only modules that are built into Python or need no others, because
every start waits for it.
"""

from __future__ import annotations

import _blake2
import _signal  # ty: ignore[import-not-found]
import _socket
import posix
import select
import sys
import termios

from tui_agent.control import connections
from tui_agent.control.connections import ANSWER_WITHIN, connect, dumps, loads, posix_text, sockets_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

#: Resets all modes of the screen, for a session that was killed.
RESET = (
    "\x1b[?2004l\x1b[?7h\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?1004l"
)
ENDED_BY_SIGNAL = 128
#: Seconds in which a new program of the host must be ready, and in which it must accept the terminal.
MADE_WITHIN, ACCEPT_WITHIN = 0.4, 2.0
MOST_VARIABLES = 2_000_000
_COLD = (
    "view demo run apply skip undo redo stats doctor login logout mcp trust completion manual config places ps attach "
    "stop logs answer sessions serve setup worker hooks ssh acp"
)
#: First words that open no screen, or a screen without a folder.
COLD_WORDS = _COLD.split()
#: Options that start no screen, or whose output must reach this process's own streams.
COLD_OPTIONS = ("--version", "--help", "-h", "--bg", "--debug", "--record", "--replay")
#: Beginnings of variables that are read only when a process starts, or that decide which host is the right
#: one.
READ_AT_START = (
    *("PYTHON", "LD_", "LC_", "LANG", "TZ", "MALLOC_", "GLIBC_", "TEXTUAL", "ESCDELAY"),
    *("TUI_AGENT", "HOME", "XDG_", "TMPDIR"),
)
#: Lines of /proc/self/status that a forked program inherits from the host.
_INHERITED = ("Uid", "Gid", "Groups", "NoNewPrivs", "Seccomp", "Cpus_allowed", "Mems_allowed")
_PROC = "/proc/self/"


def main(words: list[str], cold: str) -> int:
    launcher = None
    if words in (["ps"], ["ps", "--json"]) and connections.is_printed(as_json=len(words) == 2):
        return 0
    if is_for_host(words):
        launcher = _reach_host(words)
    elif len(words) == 2 and words[0] == "attach":
        launcher = _reach_session(words[1])
    while launcher is not None and is_terminal():
        try:
            status, sentence = launcher.run()
        except SessionLost:
            status, sentence = 1, f"{SessionLost.what}: {SessionLost.remedy}"
        if launcher.moved_to:
            words = ["attach", launcher.moved_to]
            launcher = _reach_session(launcher.moved_to)
            continue
        if not launcher.is_accepted:
            break
        if sentence:
            posix.write(2, f"tui-agent: {sentence}\n".encode(errors="surrogateescape"))
        return status
    posix.execv(cold, [cold, *words])
    return 1


def is_for_host(words: Sequence[str]) -> bool:
    """Whether a start with these words opens the screen for a folder."""
    if words and words[0] in COLD_WORDS:
        return False
    return not any(word.partition("=")[0] in COLD_OPTIONS for word in words)


def is_terminal() -> bool:
    """Whether the three standard streams are one terminal, in whose foreground this process runs."""
    try:
        if posix.tcgetpgrp(0) != posix.getpgrp():
            return False
    except OSError:
        pass  # not this session's terminal, which therefore has no background
    return is_one_terminal((0, 1, 2))


def is_one_terminal(descriptors: Sequence[int]) -> bool:
    try:
        devices = {posix.fstat(number).st_rdev for number in descriptors}
    except OSError:
        return False
    return len(devices) == 1 and all(map(posix.isatty, descriptors))


def host_name(python: str, package: str) -> str:
    """Returns the socket's name of the host for processes like this one; "" on systems without process
    information.

    `package` is the folder of this package, under any name. The name contains all that a program inherits
    from the process that starts it: its user, groups and capabilities, namespaces, control group,
    priority, and the variables that are read only at its start.
    """
    try:
        folder = posix.stat(package)
        parts = [python, f"{folder.st_dev} {folder.st_ino}"]
        parts += [posix.readlink(f"{_PROC}ns/{name}") for name in sorted(posix.listdir(_PROC + "ns"))]
        parts += [posix.readlink(_PROC + "root"), _read("cgroup"), _read("oom_score_adj")]
        parts += [
            line
            for line in _read("status").split("\n")
            if line.startswith("Cap") or line.partition(":")[0] in _INHERITED
        ]
    except OSError:
        return ""
    try:
        parts.append(_read("attr/current"))
    except OSError:
        pass
    parts.append(str(posix.getpriority(posix.PRIO_PROCESS, 0)))
    parts += sorted(
        f"{name}={value}" for name, value in _variables().items() if name.startswith(READ_AT_START)
    )
    whole = "\0".join(parts).encode(errors="surrogateescape")
    return "host-" + _blake2.blake2s(whole, digest_size=12).hexdigest()


def _variables() -> dict[str, str]:
    return {posix_text(name): posix_text(value) for name, value in posix.environ.items()}


def _read(name: str) -> str:
    descriptor = posix.open(_PROC + name, posix.O_RDONLY | posix.O_CLOEXEC)
    try:
        data = b""
        while piece := posix.read(descriptor, 65_536):
            data += piece
    finally:
        posix.close(descriptor)
    return data.decode(errors="surrogateescape")


def _reach_host(words: Sequence[str]) -> Launcher | None:
    if b"CI" in posix.environ or not is_terminal() or not (folder := sockets_folder()):
        return None
    package = __file__.rpartition("/control/")[0]
    if not (name := host_name(sys.executable, package)):
        return None
    variables = _variables()
    if sum(len(key) + len(value) for key, value in variables.items()) > MOST_VARIABLES:
        return None
    try:
        connection = connect(folder, name)
    except OSError:
        return None
    launcher = Launcher(connection, {"type": "start", "words": list(words), "variables": variables})
    if launcher.is_answered():
        return launcher
    connection.close()
    return None


def _reach_session(session: str) -> Launcher | None:
    if not is_terminal() or not (folder := sockets_folder()):
        return None
    found = [name for name in posix.listdir(folder) if name.rpartition(".")[0] == session]
    try:
        return Launcher(connect(folder, found[0])) if len(found) == 1 else None
    except OSError:
        return None


class SessionLost(Exception):
    """The session's process ended without a reason."""

    what, remedy = "the session ended unexpectedly", "`tui-agent --resume` opens it again"


class Launcher:
    """Owns the terminal while a session draws on it."""

    def __init__(self, connection: _socket.socket, first: dict[str, Any] | None = None) -> None:
        """`connection` is a new connection to the session, or to the host's program, which gets `first`."""
        self._connection = connection
        self._first = first
        self._input = bytearray()
        self._before: list[Any] | None = None
        self._signals: list[int] = []
        self._is_in_use = False
        #: The program that runs in the terminal in place of the session, such as an editor.
        self._child = 0
        self._program = 0
        #: Whether the session has accepted the terminal. A host's program that refuses leaves it unchanged.
        self.is_accepted = first is None
        #: Id of the session that the user opened in place of this one, or "".
        self.moved_to = ""

    def is_answered(self) -> bool:
        """Whether the host's program answers in time. The host may state once that a program is being made."""
        self._connection.settimeout(ANSWER_WITHIN)
        for _ in range(2):
            for message in self._messages():
                match message:
                    case {"type": "ready", "pid": int(pid)}:
                        self._program = pid
                        return True
                    case {"type": "wait"}:
                        self._connection.settimeout(MADE_WITHIN)
                    case _:
                        return False
        return False

    def run(self) -> tuple[int, str]:
        """Attaches until the session ends or leaves the terminal. Returns the exit status and a sentence.
        Raises `SessionLost`.
        """
        self._before = termios.tcgetattr(0)
        reader, writer = posix.pipe()
        posix.set_blocking(writer, False)
        _signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for number in _HANDLED:
            _signal.signal(number, lambda number, _: self._signals.append(number))
        try:
            if self._first is not None and not self._is_started(self._first):
                return 1, ""
            if self._first is None:
                self._hand_over()
            while True:
                for message in self._arrived():
                    if (ended := self._handle(message)) is not None:
                        return ended
                ready, _, _ = select.select([self._connection, reader], [], [])
                if reader in ready:
                    posix.read(reader, 256)
                taken, self._signals = self._signals, []
                for number in taken:
                    if number in _ENDING:
                        return ENDED_BY_SIGNAL + number, ""
                    if number == _signal.SIGWINCH:
                        self._send({"type": "resized"})
                    elif number == _signal.SIGCHLD:
                        self._collect()
                if self._connection in ready:
                    for message in self._messages():
                        if (ended := self._handle(message)) is not None:
                            return ended
        finally:
            _signal.set_wakeup_fd(-1)
            for number in _HANDLED:
                _signal.signal(number, _signal.SIG_DFL)
            posix.close(reader)
            posix.close(writer)
            self._restore()

    def _is_started(self, first: dict[str, Any]) -> bool:
        """Hands the terminal to the host's program. Returns whether it accepts it; otherwise it has ended."""
        import fcntl
        import resource

        umask = posix.umask(0o077)
        posix.umask(umask)
        limits = [
            [number, *resource.getrlimit(number)]
            for name, number in sorted(vars(resource).items())
            if name.startswith("RLIMIT_")
        ]
        size = fcntl.ioctl(1, termios.TIOCGWINSZ, b"\0" * 8)
        try:
            folder = posix.open(".", posix.O_PATH | posix.O_DIRECTORY | posix.O_CLOEXEC)
        except OSError:
            return False
        try:
            lines, columns = (int.from_bytes(size[at : at + 2], sys.byteorder) for at in (0, 2))
            first |= {"umask": umask, "limits": limits, "size": [columns, lines]}
            self._connection.settimeout(ACCEPT_WITHIN)
            self._send_with(first, [0, 1, 2, folder])
            for message in self._messages():
                if message.get("type") == "accepted":
                    self.is_accepted = self._is_in_use = True
                    self._connection.settimeout(None)
                    return True
                break
        except OSError:
            pass
        finally:
            posix.close(folder)
        self._connection.close()
        try:
            posix.kill(self._program, _signal.SIGKILL)  # it would draw when it is continued
        except OSError:
            pass
        return False

    def _hand_over(self, stopped: bool = True) -> None:
        kept = {name: value for name, value in _variables().items() if name in TERMINAL_VARIABLES}
        self._is_in_use = True
        self._send_with({"type": "attach", "environment": kept, "can_stop": True, "stopped": stopped}, [0, 1])

    def _send_with(self, message: dict[str, Any], descriptors: list[int]) -> None:
        data = dumps(message).encode() + b"\n"
        rights = b"".join(number.to_bytes(4, sys.byteorder) for number in descriptors)
        sent = self._connection.sendmsg([data], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
        self._connection.sendall(data[sent:])

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._connection.sendall(dumps(message).encode() + b"\n")
        except OSError:
            pass  # the next read reports the session's end

    def _messages(self) -> Iterator[dict[str, Any]]:
        try:
            data = self._connection.recv(65_536)
        except TimeoutError:
            return
        except OSError:
            data = b""
        if not data:
            yield {"type": "lost"}
            return
        self._input += data
        yield from self._arrived()

    def _arrived(self) -> Iterator[dict[str, Any]]:
        while (end := self._input.find(b"\n")) >= 0:
            line = self._input[:end].decode()
            del self._input[: end + 1]
            yield loads(line, 0)[0]

    def _handle(self, message: dict[str, Any]) -> tuple[int, str] | None:
        match message:
            case {"type": "detached", "words": words}:
                self._is_in_use = False
                return 0, str(words)
            case {"type": "moved", "session": session}:
                self._wait_for_end()
                self.moved_to = str(session)
                return 0, ""
            case {"type": "suspended"}:
                self._restore()
                self._is_in_use = False
                self._signals.clear()
                # Stops until the shell continues this process; without such a shell the signal is ignored.
                posix.kill(0, _signal.SIGTSTP)
                self._before = termios.tcgetattr(0)
                self._hand_over(_signal.SIGCONT in self._signals)
            case {"type": "run", "words": words, "folder": folder}:
                self._run([str(word) for word in words], str(folder))
            case {"type": "ended", "status": status}:
                self._wait_for_end()
                self._is_in_use = False
                return int(status), ""
            case {"type": "lost"}:
                raise SessionLost
            case {"type": "result", "ok": False, "error": error}:
                self._is_in_use = False
                return 1, str(error)
        return None

    def _run(self, words: list[str], folder: str) -> None:
        self._restore()
        self._is_in_use = False
        if self._child:
            return
        if not (child := posix.fork()):
            try:
                for number in (*_HANDLED, _signal.SIGPIPE, _signal.SIGXFSZ):
                    _signal.signal(number, _signal.SIG_DFL)
                posix.chdir(folder)
                folders = posix_text(posix.environ.get(b"PATH") or b"/usr/local/bin:/usr/bin:/bin").split(":")
                for place in [""] if "/" in words[0] else [f"{place or '.'}/" for place in folders]:
                    try:
                        posix.execv(place + words[0], words)
                    except OSError:
                        continue
            finally:
                posix._exit(127)
        self._child = child

    def _collect(self) -> None:
        if self._child:
            pid, status = posix.waitpid(self._child, posix.WNOHANG)
            if pid:
                self._child = 0
                self._restore()
                self._is_in_use = True
                self._send({"type": "ran", "status": posix.waitstatus_to_exitcode(status)})

    def _wait_for_end(self) -> None:
        self._connection.settimeout(10)
        try:
            while self._connection.recv(65_536):
                pass
        except OSError:
            pass

    def _restore(self) -> None:
        try:
            if self._is_in_use:
                posix.write(1, RESET.encode())
            if self._before is not None:
                termios.tcsetattr(0, termios.TCSANOW, self._before)
        except (OSError, termios.error):
            pass


_ENDING = (_signal.SIGTERM, _signal.SIGHUP)
_HANDLED = (*_ENDING, _signal.SIGWINCH, _signal.SIGCONT, _signal.SIGINT, _signal.SIGCHLD)
#: Variables that describe a terminal, and change with it.
TERMINAL_VARIABLES = (
    *("TERM", "COLORTERM", "NO_COLOR", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TMUX", "TMUX_PANE", "STY"),
    *("KITTY_WINDOW_ID", "VTE_VERSION", "SSH_TTY", "SSH_CONNECTION", "DISPLAY", "WAYLAND_DISPLAY"),
)
