"""Clients of a session's socket that send bad data, too much, or never read: each loses only its own connection."""

from __future__ import annotations

import array
import asyncio
import json
import os
import pty
import socket
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.sessions import open_session

from tui_agent.control import server as server_module
from tui_agent.control import sockets
from tui_agent.control.server import Client, ControlServer
from tui_agent.errors import SessionError
from tui_agent.session.session import Session
from tui_agent.store.event import Event
from tui_agent.store.session_events import NoticeGiven
from tui_agent.store.state import State

ATTACH = b'{"type": "attach", "environment": {}}\n'
#: Bytes of a line for each event.
LONG = 100_000
PATIENCE = 20.0


class Terminals:
    """A screen that draws nothing."""

    def __init__(self) -> None:
        self.attached: list[tuple[int, int]] = []
        self.lost: list[Client] = []
        self.is_leaving = False
        self.is_attached = False

    def attach(self, client: Client, descriptors: tuple[int, int], message: Mapping[str, Any]) -> None:
        if self.is_leaving:
            raise SessionError("The session is ending", "resume it with `tui-agent --resume`")
        client.is_launcher = True
        self.attached.append(descriptors)

    def detach(self) -> None: ...

    def on_message(self, client: Client, message: Mapping[str, Any]) -> None: ...

    def on_lost(self, client: Client) -> None:
        self.lost.append(client)

    async def leave(self, status: int) -> None: ...


def long_lines(event: Event, state: State) -> Iterator[dict[str, Any]]:
    if isinstance(event, NoticeGiven):
        yield {"type": "event", "text": "x" * LONG}


@pytest.fixture
async def session(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncGenerator[Session]:
    private = tmp_path / "sockets"
    private.mkdir()
    monkeypatch.setenv("TMPDIR", str(private))
    folder = tmp_path / "workspace"
    folder.mkdir()
    async with open_session(folder, services=False) as found:
        yield found


@pytest.fixture
async def served(session: Session) -> AsyncGenerator[ControlServer]:
    server = ControlServer(session, Terminals(), long_lines)
    yield server
    server.close()


@pytest.fixture
def terminals() -> Generator[Callable[[int], list[int]]]:
    opened: list[int] = []

    def several(count: int) -> list[int]:
        pairs = [pty.openpty() for _ in range(count)]
        opened.extend(number for pair in pairs for number in pair)
        return [theirs for _, theirs in pairs]

    yield several
    for number in opened:
        os.close(number)


def connect(server: ControlServer) -> socket.socket:
    client = sockets.connect(server.place, PATIENCE)
    client.settimeout(PATIENCE)
    return client


def send(client: socket.socket, data: bytes, descriptors: list[int] | None = None) -> None:
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
    client.sendall(data[client.sendmsg([data], rights) :])


def rest(client: socket.socket) -> list[dict[str, Any]]:
    """The lines until the session closes the connection."""
    with client, client.makefile("rb") as stream:
        try:
            return [json.loads(line) for line in stream]
        except ConnectionResetError:
            return []  # closed before its data was read


async def still_serves(server: ControlServer) -> bool:
    client = connect(server)
    found = await asyncio.to_thread(lambda: json.loads(client.makefile("rb").readline()))
    client.close()
    return found["id"] == server.session.state.session.id


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110 - the other side has no event
            await asyncio.sleep(0.005)


@pytest.mark.parametrize(
    "data", [b"no JSON\n", b"[]\n", b"[" * 100_000 + b"\n", b"\xff\n", b'{"a": 1' * 600_000]
)
async def test_a_client_with_bad_data_is_closed(served: ControlServer, data: bytes) -> None:
    client = connect(served)

    def talk() -> list[dict[str, Any]]:
        try:
            send(client, data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # closed before all was sent
        return rest(client)

    lines = await asyncio.to_thread(talk)
    assert [line["type"] for line in lines] in ([], ["state"])
    assert await still_serves(served)


async def test_a_message_of_100_mb_is_not_kept(
    served: ControlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    most, read = 0, Client._read

    def watched(self: Client) -> None:
        nonlocal most
        read(self)
        most = max(most, len(self._input))

    monkeypatch.setattr(Client, "_read", watched)
    client, sent = connect(served), 0

    def flood() -> None:
        nonlocal sent
        with client:
            try:
                while sent < 100_000_000:
                    sent += client.send(b"x" * 1_000_000)
            except (BrokenPipeError, ConnectionResetError):
                pass

    await asyncio.to_thread(flood)
    assert sent < 10_000_000 and most <= server_module.LONGEST_LINE + 65_536
    assert await still_serves(served)


async def test_a_client_that_never_reads_is_closed_and_others_get_every_event(served: ControlServer) -> None:
    deaf, other = connect(served), connect(served)
    await until(lambda: len(served._clients) == 2)
    count = server_module.MOST_OUTPUT // LONG + 20

    def heard() -> int:
        with other, other.makefile("rb") as stream:
            found = 0
            for line in stream:
                found += json.loads(line)["type"] == "event"
                if found == count:
                    break
            return found

    listening = asyncio.create_task(asyncio.to_thread(heard))
    for number in range(count):
        await served.session.notice(f"notice {number}")
        await until(lambda: any(len(one._output) < LONG for one in served._clients) or listening.done())
    assert await listening == count
    await until(lambda: len(served._clients) <= 1)
    deaf.close()
    assert await still_serves(served)


DESCRIPTORS: dict[str, Callable[[Callable[[int], list[int]]], list[int]]] = {
    "none": lambda terminals: [],
    "one": lambda terminals: terminals(1),
    "three": lambda terminals: terminals(1) * 3,
    "two terminals": lambda terminals: terminals(2),
    "files": lambda terminals: [os.open(__file__, os.O_RDONLY) for _ in range(2)],
    "sockets": lambda terminals: [one.detach() for one in socket.socketpair()],
    "253": lambda terminals: terminals(1) * 253,
}


@pytest.mark.parametrize("kind", DESCRIPTORS)
async def test_wrong_descriptors_are_closed_and_refused(
    served: ControlServer, terminals: Callable[[int], list[int]], kind: str
) -> None:
    given = DESCRIPTORS[kind](terminals)
    names = {os.readlink(f"/proc/self/fd/{number}") for number in given}

    def held() -> int:
        found = 0
        for number in os.listdir("/proc/self/fd"):
            with suppress(FileNotFoundError):
                found += os.readlink(f"/proc/self/fd/{number}") in names
        return found

    before, client = held(), connect(served)

    def talk() -> list[dict[str, Any]]:
        with client, client.makefile("rb") as stream:
            try:
                send(client, ATTACH, given)
                return [json.loads(line) for line in (stream.readline(), stream.readline()) if line]
            except ConnectionError:  # the connection can be closed as soon as they arrive
                return []

    results = [line for line in await asyncio.to_thread(talk) if line["type"] == "result"]
    assert all(not line["ok"] and "one terminal" in line["error"] for line in results)
    await until(lambda: held() == before)
    assert isinstance(served.terminals, Terminals) and served.terminals.attached == []
    assert await still_serves(served)
    if kind in ("files", "sockets"):
        for number in given:
            os.close(number)


async def test_an_attach_while_the_session_ends_is_refused(
    served: ControlServer, terminals: Callable[[int], list[int]]
) -> None:
    assert isinstance(served.terminals, Terminals)
    served.terminals.is_leaving = True
    client = connect(served)

    def talk() -> dict[str, Any]:
        send(client, ATTACH, terminals(1) * 2)
        with client, client.makefile("rb") as stream:
            stream.readline()
            return json.loads(stream.readline())

    line = await asyncio.to_thread(talk)
    assert line["error"] == "The session is ending: resume it with `tui-agent --resume`"
    assert served.terminals.attached == [] and await still_serves(served)


async def test_more_clients_than_are_served_are_closed(
    served: ControlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "MOST_CLIENTS", 3)
    clients = [connect(served) for _ in range(4)]
    await until(lambda: len(served._clients) == 3)
    assert await asyncio.to_thread(rest, clients[3]) == []
    for client in clients[:3]:
        client.close()
    await until(lambda: not served._clients)
    assert await still_serves(served)
