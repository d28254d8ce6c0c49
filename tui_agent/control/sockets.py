"""The private folder with a socket for each running session of this user.

A name is the session's id and the process id, so two sessions never share one. A socket is bound and
listens under a hidden name before it gets its own: a visible socket that refuses a connection has lost
its process.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import struct
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from tui_agent.control import connections
from tui_agent.control.launcher import Launcher, SessionLost
from tui_agent.errors import SessionError
from tui_agent.files.names import display_path
from tui_agent.files.numbers import whole_number
from tui_agent.files.text import one_line

#: Bytes of a socket's address on all systems, with room for the hidden name.
LONGEST = 96
_PEER = struct.Struct("3i")


class SessionSocket(NamedTuple):
    folder: Path
    session: str
    pid: int

    @property
    def name(self) -> str:
        return f"{self.session}.{self.pid}"


def folder() -> Path:
    return Path(os.environ.get("TMPDIR") or "/tmp") / f"tui-agent-{os.geteuid()}"


def checked(path: Path) -> bool:
    """Whether the folder exists. Raises `SessionError` unless it is a real folder of this user with mode
    0700, because its owner could answer for a session.
    """
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _not_usable(path, error.strerror or str(error)) from error
    if not stat.S_ISDIR(status.st_mode):
        raise _not_usable(path, "it is not a folder")
    if status.st_uid != os.geteuid():
        raise SessionError(
            f"the folder of running sessions, {display_path(str(path))}, belongs to another user",
            "set TMPDIR to your own folder",
        )
    if stat.S_IMODE(status.st_mode) != 0o700:
        raise _not_usable(path, "its mode is not 0700")
    return True


def places() -> list[SessionSocket]:
    """Returns sockets of running sessions, oldest first. Raises `SessionError` for a folder that is not
    private.
    """
    path = folder()
    if not checked(path):
        return []
    found = []
    with os.scandir(path) as entries:
        for entry in entries:
            if not connections.is_of_session(entry.name):
                continue
            session, _, pid = entry.name.rpartition(".")
            try:
                is_socket = stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode)
            except FileNotFoundError:
                continue
            if is_socket:
                found.append(SessionSocket(path, session, whole_number(pid)))
    return sorted(found)


def of_session(session: str) -> SessionSocket | None:
    """Returns the socket of a session in another process; None without one, or if the folder is not private."""
    with suppress(SessionError, OSError):
        for place in places():
            if place.session == session and place.pid != os.getpid():
                with connect(place):
                    return place
    return None


def made_folder() -> Path:
    """Returns the private folder, created if missing. Raises `SessionError` and `OSError`."""
    path = folder()
    if not checked(path):
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
            path.chmod(0o700)  # a strict umask would deny access
        checked(path)
    return path


def listen(session: str) -> tuple[socket.socket, SessionSocket]:
    """Returns a listening, non-blocking socket for this process's session. Raises `SessionError` and
    `OSError`.
    """
    place = SessionSocket(made_folder(), session, os.getpid())
    return listening(place.folder, place.name), place


def listening(path: Path, name: str) -> socket.socket:
    """Returns a listening, non-blocking socket in the private folder, which replaces one of a killed
    process. Raises `OSError`.
    """
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    hidden = f".{name}"
    try:
        with suppress(FileNotFoundError):
            os.unlink(path / hidden)
        with _address(path, hidden) as address:
            server.bind(address)
        os.chmod(path / hidden, 0o600)
        server.listen(16)
        server.setblocking(False)
        os.rename(path / hidden, path / name)
    except BaseException:
        server.close()
        raise
    return server


def connect(place: SessionSocket, timeout: float = 2.0) -> socket.socket:
    """Raises `ConnectionRefusedError` for a process that has ended, and removes its socket. Raises
    `SessionError` and `OSError`.
    """
    checked(place.folder)
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        client.settimeout(timeout)
        with _address(place.folder, place.name) as address:
            client.connect(address)
        if not is_ours(client):
            raise _not_usable(place.folder, "a socket in it belongs to another user")
    except ConnectionRefusedError:
        client.close()
        with suppress(OSError):
            os.unlink(place.folder / place.name)
        raise
    except BaseException:
        client.close()
        raise
    return client


def reach(place: SessionSocket, timeout: float = 2.0) -> socket.socket:
    """Like `connect`, but raises only `SessionError`."""
    try:
        return connect(place, timeout)
    except OSError as error:
        why = error.strerror or str(error)
        raise SessionError(
            f"the session {place.session} cannot be reached ({why})", "try it again"
        ) from error


def states() -> list[tuple[SessionSocket, dict[str, Any]]]:
    """Oldest first, with their lines `state`; omits stopped sessions. Raises `SessionError`."""
    running = places()
    found = connections.states(str(folder()), [place.name for place in running])
    return [(place, found[place.name]) for place in running if place.name in found]


def states_in(workspace: Path) -> list[tuple[SessionSocket, dict[str, Any]]]:
    """Newest first. Raises `SessionError`."""
    here = os.path.realpath(workspace)
    return [(place, state) for place, state in reversed(states()) if state["workspace"] == here]


def request(place: SessionSocket, message: Mapping[str, Any]) -> None:
    """Sends a message and waits for its result, or for the end of the session. Raises `SessionError`."""
    with reach(place) as connection:
        connection.settimeout(None)
        connection.sendall(json.dumps(message).encode() + b"\n")
        result = next((line for line in lines(connection) if line.get("type") == "result"), {})
    if not result.get("ok", True):
        raise SessionError(str(result.get("error")), "`tui-agent ps` shows its state")


def attach(place: SessionSocket, note: Callable[[str], object]) -> int:
    """Attaches this terminal. Returns the exit status. `note` prints a last line. Raises `SessionError`."""
    if not (os.isatty(0) and os.isatty(1)):
        raise SessionError(
            "a session needs a terminal, and standard input or output is not one",
            "run this in a terminal, or use `tui-agent logs`",
        )
    while True:
        with reach(place) as connection:
            connection.settimeout(None)
            launcher = Launcher(connection)
            try:
                status, words = launcher.run()
            except SessionLost:
                raise SessionError(SessionLost.what, SessionLost.remedy) from None
        following = of_session(launcher.moved_to) if launcher.moved_to else None
        if following is None:
            if words:
                note(f"tui-agent: {words}\n")
            return status
        place = following


def lines(connection: socket.socket) -> Iterator[dict[str, Any]]:
    with connection.makefile("rb") as stream:
        for line in stream:
            yield json.loads(line)


def is_ours(connection: socket.socket) -> bool:
    """Whether the process at the other end belongs to this user; without such information, the folder is
    private.
    """
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return True
    _, user, _ = _PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, option, _PEER.size))
    return user == os.geteuid()


@contextmanager
def _address(path: Path, name: str) -> Generator[str]:
    if len(os.fsencode(path / name)) <= LONGEST:
        yield str(path / name)
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{name}"
    finally:
        os.close(descriptor)


def _not_usable(path: Path, why: str) -> SessionError:
    return SessionError(
        f"the folder of running sessions, {display_path(str(path))}, cannot be used ({why})",
        "remove it, or set TMPDIR to your own folder",
    )


def begin(workspace: Path, resumed: str = "") -> SessionSocket:
    """Raises `SessionError`. Blocking."""
    words = [sys.executable, "-m", "tui_agent", "--bg", "", *([f"--resume={resumed}"] if resumed else [])]
    done = subprocess.run(
        [*words, str(workspace)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    session = done.stdout.strip()
    for place in places():
        if session and place.session == session:
            return place
    said = one_line(done.stderr.strip()[-300:]) or "it ended at once"
    raise SessionError(f"no session could begin ({said})", "start `tui-agent` in a terminal")
