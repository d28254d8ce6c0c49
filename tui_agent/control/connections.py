"""Connections to processes of this user, and the list of running sessions.

Imports only modules that are built into Python or need no others, like the launcher.
"""

from __future__ import annotations

import _json
import _socket
import posix
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

#: Seconds in which a process must accept a connection, and the host must answer.
ANSWER_WITHIN = 0.05
#: Seconds in which all sessions together must state their state, and maximum asked at once.
STATES_WITHIN, MOST_ASKED = 2.0, 32


def posix_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def sockets_folder() -> str:
    """Returns the private folder of sockets; "" if missing or not private."""
    user = posix.geteuid()
    path = f"{posix_text(posix.environ.get(b'TMPDIR') or b'/tmp')}/tui-agent-{user}"
    try:
        status = posix.lstat(path)
    except OSError:
        return ""
    return path if status.st_uid == user and status.st_mode == 0o40_700 else ""


def connect(folder: str, name: str) -> _socket.socket:
    """Raises `OSError`."""
    folder_descriptor = -1
    client = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    try:
        client.settimeout(ANSWER_WITHIN)
        path = f"{folder}/{name}"
        if len(path.encode(errors="surrogateescape")) > 96:
            folder_descriptor = posix.open(folder, posix.O_RDONLY | posix.O_DIRECTORY | posix.O_CLOEXEC)
            path = f"/proc/self/fd/{folder_descriptor}/{name}"
        client.connect(path)
        if hasattr(_socket, "SO_PEERCRED"):  # without peer credentials, the folder is private
            peer = client.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
            if int.from_bytes(peer[4:8], sys.byteorder) != posix.geteuid():
                raise PermissionError
    except BaseException:
        client.close()
        raise
    finally:
        if folder_descriptor >= 0:
            posix.close(folder_descriptor)
    return client


def states(folder: str, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The lines `state` of all sessions, asked at once, by socket name. Omits stopped sessions. Removes sockets
    without a process.
    """
    found: dict[str, dict[str, Any]] = {}
    waiting: dict[int, tuple[str, _socket.socket, bytearray]] = {}
    unasked, poll, until = list(names), select.poll(), time.monotonic() + STATES_WITHIN
    while (unasked or waiting) and (left := until - time.monotonic()) > 0:
        for name in unasked[: MOST_ASKED - len(waiting)]:
            try:
                connection = connect(folder, name)
            except ConnectionRefusedError:
                try:
                    posix.unlink(f"{folder}/{name}")
                except OSError:
                    pass
            except BlockingIOError:
                continue
            except OSError:
                pass
            else:
                waiting[connection.fileno()] = name, connection, bytearray()
                poll.register(connection, select.POLLIN)
            unasked.remove(name)
        for number, _ in poll.poll(10 if unasked else left * 1000):
            name, connection, data = waiting[number]
            try:
                piece = connection.recv(65_536)
            except OSError:
                piece = b""
            data += piece
            if b"\n" in data:
                found[name] = loads(data.decode(), 0)[0]
            elif piece:
                continue
            poll.unregister(number)
            del waiting[number]
            connection.close()
    for _, connection, _ in waiting.values():
        connection.close()
    return found


def row_of(state: dict[str, Any]) -> str:
    host = f"{state['host']}: " if "host" in state else ""
    asks = f" · {state['asks']}" if state.get("asks") else ""
    changes = f" · {state['changes']} changes" if state.get("changes") else ""
    cost = "price unknown" if state.get("cost") is None else f"${state['cost']:.2f}"
    where = "attached" if state.get("attached") else "detached"
    return f"{host}{state['id']}  {state['state']} · {where}{changes} · {cost}  {state['workspace']}{asks}"


def is_printed(as_json: bool) -> bool:
    """Prints the running sessions; returns False if that requires more than built-in modules."""
    if _may_have_hosts() or not (folder := sockets_folder()):
        return False
    names = [name for name in sorted(posix.listdir(folder)) if is_of_session(name)]
    found = states(folder, names)
    rows = []
    for name in names:
        if state := found.get(name):
            state.pop("type")
            rows.append((dumps if as_json else row_of)(state))
    text = "".join(f"{row}\n" for row in rows)
    plain = text.replace("·", "").replace("\n", "")
    if not (plain.isascii() and plain.isprintable()):
        return False  # control characters have to be escaped
    try:
        data = text.encode(sys.stdout.encoding, "backslashreplace")
        while data:
            data = data[posix.write(1, data) :]
    except BrokenPipeError:
        pass
    return True


def is_of_session(name: str) -> bool:
    """Whether the name can be that of a session's socket: its id, a dot and the process id."""
    session, _, pid = name.rpartition(".")
    return bool(session) and name[0] != "." and pid.isascii() and pid.isdecimal() and len(pid) < 10


def _may_have_hosts() -> bool:
    home = posix.environ.get(b"TUI_AGENT_HOME", b"")
    folder = posix.environ.get(b"XDG_CONFIG_HOME", b"") or posix.environ.get(b"HOME", b"") + b"/.config"
    path = home + b"/config" if home else folder + b"/tui-agent"
    if b"TUI_AGENT_REMOTE__HOSTS" in posix.environ or path[:1] != b"/" or sys.platform != "linux":
        return True
    try:
        descriptor = posix.open(path + b"/settings.toml", posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        return b"hosts" in posix.read(descriptor, 1_000_000)
    except OSError:
        return True
    finally:
        posix.close(descriptor)


class _Values:
    """The options of `json.loads`."""

    strict, memo, parse_float, parse_int = True, {}, float, int
    object_hook = object_pairs_hook = array_hook = parse_constant = None


loads = _json.make_scanner(_Values)  # ty: ignore[invalid-argument-type]


def dumps(value: Any) -> str:
    match value:
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case int() | float():
            return repr(value)
        case str():
            return _json.encode_basestring_ascii(value)
        case dict():
            return "{" + ", ".join(f"{dumps(key)}: {dumps(of)}" for key, of in value.items()) + "}"
        case _:
            return "[" + ", ".join(map(dumps, value)) + "]"
