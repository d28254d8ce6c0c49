"""The control socket of a session: JSON lines both ways, and terminals as descriptors.

The first line sent is `state`, which is repeated when it changes; the events of `run --json` follow, with `finished`
after each turn. A client sends objects with a `type`: `submit`, `stop`, `answer`, `apply`, `skip`, `mode`, `model`,
`describe`, `change`, `quit`, `detach`, `attach`. Each is answered by a line `result`, to which `describe` and `change`
add fields. Three have no result: after `states`, a client gets no events; after `thoughts`, it also gets lines
`thought` with the streamed thinking of the model; after `settle`, it gets a line `settled` with the same `of` once the
turn, the checks of its changes in mode auto, and automatic further turns have ended.
A connection that has sent `attach` carries only messages about its terminal.
"""

from __future__ import annotations

import array
import asyncio
import json
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from tui_agent.control import sockets
from tui_agent.control.launcher import is_one_terminal
from tui_agent.control.sockets import SessionSocket
from tui_agent.edits.change import Pick, text_under
from tui_agent.errors import SessionError, TuiAgentError
from tui_agent.files.numbers import whole_number
from tui_agent.files.text import one_line
from tui_agent.processes.background import start_task
from tui_agent.store.conversation_events import ReplyStreamed
from tui_agent.store.session_events import OthersSeen
from tui_agent.store.state import OtherSession, State

if TYPE_CHECKING:
    from tui_agent.session.session import Session
    from tui_agent.store.event import Event

#: Bytes of a message, and of several lines for a client that does not read.
LONGEST_LINE, MOST_OUTPUT = 4_000_000, 4_000_000
MOST_CLIENTS = 64
MOST_MODELS = 200
TERMINAL = 2
_READ_AT_ONCE = 65_536
Line = dict[str, Any]
Lines = Callable[["Event", State], Iterator[Line]]
MOST_OF_TITLE = 80
PERMISSIONS = ("once", "session", "always", "no")


def state_line(state: State, *, attached: bool) -> dict[str, Any]:
    """The line `state`: `asks` is the open question or null, `choices` its answers by number from 1,
    `changes` the number of undecided changes, `cost` dollars or null.
    """
    asks, choices = question(state)
    first = next((message.text for message in state.chat.messages if message.kind == "person"), "")
    return {
        "type": "state",
        "id": state.session.id,
        "pid": os.getpid(),
        "workspace": state.session.workspace,
        "name": state.session.name or None,
        "title": state.session.name or one_line(first[:MOST_OF_TITLE]) or None,
        "state": word(state),
        "asks": asks or None,
        "choices": list(choices),
        "changes": len(state.review.open),
        "cost": state.usage.session.cost,
        "turn": state.turn.number,
        "attached": attached,
    }


def word(state: State) -> str:
    if state.turn.phase == "waiting":
        return "asks"
    if is_busy(state):
        return "works"
    if state.review.open:
        failed = any(mark.look == "failed" for mark in state.check_marks)
        return "checks failed" if failed else "has changes"
    if not state.turn.ok and state.turn.kind != "Interrupted":
        return "failed"
    return "done" if state.turn.number else "idle"


def is_busy(state: State) -> bool:
    if state.turn.running and state.turn.phase != "waiting":
        return True
    return bool(state.commands.running or state.checks.running or state.subtasks.running)


def question(state: State) -> tuple[str, tuple[str, ...]]:
    if state.turn.phase != "waiting":
        return "", ()
    if state.asked is not None:
        return state.asked.words, PERMISSIONS if state.asked.tool else ("once", "no")
    name = state.turn.waiting_for
    slot = next((slot for slot in state.plan.actions if slot.action.name == name), None)
    if slot is None:
        return name, ()
    return slot.question or f"Which file is “{name}”?", slot.nearest


#: Seconds between searches for new sessions. Known sessions send their states.
LOOK_AGAIN = 2.0


class OtherSessions:
    """Holds a connection to each other session while a terminal is attached."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._found: dict[SessionSocket, OtherSession] = {}
        self._looking: asyncio.Task[None] | None = None

    def follow(self, wanted: bool) -> None:
        if wanted and self._looking is None:
            self._looking = asyncio.create_task(self._look(), name="other sessions")
        elif not wanted and self._looking is not None:
            self._looking.cancel()
            self._looking = None

    async def _look(self) -> None:
        following: dict[SessionSocket, asyncio.Task[None]] = {}
        changed = -1
        try:
            while True:
                with suppress(SessionError, OSError):  # no session has run yet, or the folder is not private
                    if (now := sockets.folder().stat().st_mtime_ns) != changed:
                        places = sockets.places()
                        changed = now
                        for place in places:
                            if place.pid != os.getpid() and place not in following:
                                following[place] = asyncio.create_task(self._follow(place))
                        for place in following.keys() - places:
                            following.pop(place).cancel()
                await asyncio.sleep(LOOK_AGAIN)
        finally:
            for task in following.values():
                task.cancel()

    async def _follow(self, place: SessionSocket) -> None:
        try:
            connection = await asyncio.to_thread(sockets.connect, place)
            connection.setblocking(False)
            reader, writer = await asyncio.open_connection(sock=connection)
        except (SessionError, OSError):
            return
        try:
            writer.write(b'{"type": "states"}\n')
            while data := await reader.readline():
                with suppress(msgspec.DecodeError, msgspec.ValidationError):  # `result`, or another version's
                    self._found[place] = msgspec.json.decode(data, type=OtherSession)
                    self._show()
        except (OSError, ValueError):
            pass
        finally:
            writer.close()
            if self._found.pop(place, None) is not None:
                self._show()

    def _show(self) -> None:
        sessions = tuple(self._found[place] for place in sorted(self._found))
        self._session.journal.publish(OthersSeen(sessions))


class Terminals(Protocol):
    @property
    def is_attached(self) -> bool: ...

    def attach(self, client: Client, descriptors: tuple[int, int], message: Mapping[str, Any]) -> None:
        """Copies the descriptors and draws there. Raises `SessionError`."""
        ...

    def detach(self) -> None: ...

    def on_message(self, client: Client, message: Mapping[str, Any]) -> None: ...

    def on_lost(self, client: Client) -> None: ...

    async def leave(self, status: int) -> None: ...


class ControlServer:
    def __init__(self, session: Session, terminals: Terminals, lines: Lines) -> None:
        """Raises `SessionError` and `OSError`."""
        self.session, self.terminals = session, terminals
        self._lines = lines
        self._clients: set[Client] = set()
        self._said: Line = {}
        self._socket, self.place = sockets.listen(session.state.session.id)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._socket, self._accept)
        self._unsubscribe = session.subscribe(self._on_event)
        self._others = OtherSessions(session)
        self._others.follow(terminals.is_attached)

    def close(self) -> None:
        """Removes the socket and closes all connections, except of a terminal in use."""
        self._unsubscribe()
        self._others.follow(False)
        self._loop.remove_reader(self._socket)
        try:
            os.unlink(self.place.folder / self.place.name)
        except OSError:
            pass
        self._socket.close()
        for client in list(self._clients):
            if not client.is_launcher:
                client.close()

    def adopt(self, lent: LentTerminal) -> Client:
        client = Client(self, lent.connection)
        client.is_launcher, client.can_stop, client.can_run = True, lent.can_stop, lent.can_run
        self._clients.add(client)
        return client

    def lend(self, client: Client) -> LentTerminal:
        self._clients.discard(client)
        return LentTerminal(client.release(), client.can_stop, client.can_run)

    def state_changed(self) -> None:
        self._others.follow(self.terminals.is_attached)
        if self._clients:
            line = self._state()
            if line != self._said:
                self._said = line
                for client in list(self._clients):
                    if not client.is_launcher:
                        client.send(line)

    def forget(self, client: Client) -> None:
        self._clients.discard(client)
        if client.is_launcher:
            self.terminals.on_lost(client)

    def _accept(self) -> None:
        try:
            connection, _ = self._socket.accept()
        except OSError:
            return
        if len(self._clients) >= MOST_CLIENTS or not sockets.is_ours(connection):
            connection.close()
            return
        client = Client(self, connection)
        self._clients.add(client)
        self._said = self._state()
        client.send(self._said)

    def _state(self) -> Line:
        line = state_line(self.session.state, attached=self.terminals.is_attached)
        return self.session.secrets.values.masked_json(line)

    def _on_event(self, event: Event, state: State) -> None:
        if not self._clients:
            return
        listeners = [client for client in self._clients if client.wants_events and not client.is_launcher]
        for line in self._lines(event, state) if listeners else ():
            masked = self.session.secrets.values.masked_json(line)
            for client in listeners:
                client.send(masked)
        if not isinstance(event, ReplyStreamed):
            self.state_changed()
        elif event.part == "reasoning":
            thought = self.session.secrets.values.masked_json({"type": "thought", "text": event.text})
            for client in listeners:
                if client.wants_thoughts:
                    client.send(thought)

    async def execute(self, message: Mapping[str, Any]) -> Line:
        """Returns more fields of the result. Raises `TuiAgentError`."""
        session = self.session
        match message:
            case {"type": "submit", "text": str(text)} if text.strip():
                await session.chat.submit(text)
            case {"type": "stop"}:
                await session.stop_everything()
            case {"type": "answer", "text": str(text)}:
                await self._answer(text)
            case {"type": "apply"}:
                await session.review.apply(_picks(message))
            case {"type": "skip"}:
                await session.review.skip(_picks(message))
            case {"type": "mode", "mode": "ask" | "edit" | "auto" as mode}:
                await session.set_mode(mode)
            case {"type": "model", "name": str(name)} if name.strip():
                await session.models.choose(name)
            case {"type": "describe"}:
                return await self._description()
            case {"type": "change", "change": str(change)}:
                return await self._texts(change)
            case {"type": "detach"}:
                self.terminals.detach()
            case {"type": "quit"}:
                await self.terminals.leave(0)
            case _:
                shown = json.dumps(message.get("type"))[:40]
                raise SessionError(
                    f"The message {shown} is not known",
                    "send submit, stop, answer, apply, skip, mode, model, describe, change, detach or quit with "
                    "their fields",
                )
        return {}

    async def _description(self) -> Line:
        state, models = self.session.state, self.session.models
        await models.offers.read()
        suggested = [one.model for one in models.found or models.offers.suggested()]
        offered = [offer.name for offer in models.offers.all() if not offer.ended]
        return {
            "mode": self.session.mode,
            "model": models.name,
            "models": list(dict.fromkeys([models.name, *suggested, *offered]))[:MOST_MODELS],
            "window": state.model.window,
            "context": state.usage.context,
            "commands": [
                {"name": name, "description": text}
                for name, (text, _) in sorted(self.session.extensions.names().items())
            ],
            "todos": [{"text": todo.text, "done": todo.done} for todo in state.todos],
        }

    async def _texts(self, name: str) -> Line:
        change = self.session.state.review.change(name)
        if change is None:
            raise SessionError(f"There is no change {name[:40]!r}", "name one of a `change` line")
        blobs = self.session.storage.blobs
        old, new = [await asyncio.to_thread(text_under, blobs, key) for key in (change.base, change.new)]
        return self.session.secrets.values.masked_json(
            {
                "path": change.path,
                "rename_to": change.rename_to,
                "state": change.state,
                "old": old,
                "new": new,
            }
        )

    async def _answer(self, text: str) -> None:
        state = self.session.state
        asked, choices = question(state)
        if not asked:
            raise SessionError("No question is open", "send a message instead")
        number = whole_number(text) if text.isascii() and text.isdecimal() and len(text) < 4 else 0
        chosen = choices[number - 1] if 1 <= number <= len(choices) else text
        if state.asked is None:
            await self.session.chat.answer(state.turn.waiting_for, chosen)
        elif chosen in choices:
            await self.session.chat.permit(state.asked.call, chosen)
        elif number:
            raise SessionError(f"The question has no answer {number}", f"choose from 1 to {len(choices)}")
        else:
            await self.session.chat.permit(state.asked.call, "no", text)


def _picks(message: Mapping[str, Any]) -> list[Pick]:
    names = message.get("changes", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise SessionError("`changes` is not a list of ids", "name those of `change` lines, or none for all")
    return [Pick(name) for name in names]


class LentTerminal(NamedTuple):
    """Terminal of a launcher between two sessions of this process."""

    connection: socket.socket
    can_stop: bool
    can_run: bool

    def send(self, line: Mapping[str, Any]) -> None:
        """Sends the last line to the launcher, which may have ended."""
        with suppress(OSError), self.connection:
            self.connection.settimeout(1)
            self.connection.sendall(json.dumps(line).encode() + b"\n")


def receive(connection: socket.socket, descriptors: list[int]) -> bytes:
    """Reads once, and adds the descriptors that come with the data. Raises `OSError`."""
    size = array.array("i").itemsize
    data, extra, _, _ = connection.recvmsg(
        _READ_AT_ONCE, socket.CMSG_SPACE(64 * size), getattr(socket, "MSG_CMSG_CLOEXEC", 0)
    )
    for level, kind, payload in extra:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors += array.array("i", payload[: len(payload) - len(payload) % size])
    return data


class Client:
    """One connection. Closed if it sends bad data or does not read."""

    def __init__(self, server: ControlServer, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.is_launcher = False
        self.wants_events = True
        self.wants_thoughts = False
        self.can_stop = self.can_run = False
        self._server, self._connection = server, connection
        self._loop = asyncio.get_running_loop()
        self._input, self._output = bytearray(), bytearray()
        self._descriptors: list[int] = []
        self._requests: set[asyncio.Task[None]] = set()
        self._loop.add_reader(connection, self._read)

    def send(self, line: Mapping[str, Any]) -> None:
        """Sends a line, at once if the client accepts it."""
        if self._connection.fileno() < 0:
            return
        data = json.dumps(line).encode() + b"\n"
        if self._output and len(self._output) + len(data) > MOST_OUTPUT:
            self.close()
            return
        if not self._output:
            self._loop.add_writer(self._connection, self._write)
        self._output += data
        self._write()

    def close(self) -> None:
        """Idempotent."""
        if self._connection.fileno() < 0:
            return
        self._release()
        self._connection.close()
        self._server.forget(self)

    def release(self) -> socket.socket:
        self._release()
        return self._connection

    def _release(self) -> None:
        self._loop.remove_reader(self._connection)
        self._loop.remove_writer(self._connection)
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors.clear()

    def _write(self) -> None:
        try:
            sent = self._connection.send(self._output)
        except BlockingIOError:
            return
        except OSError:
            self.close()
            return
        del self._output[:sent]
        if not self._output:
            self._loop.remove_writer(self._connection)

    def _read(self) -> None:
        try:
            data = receive(self._connection, self._descriptors)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._input += data
        if not data or len(self._input) > LONGEST_LINE or len(self._descriptors) > TERMINAL:
            self.close()
            return
        while (end := self._input.find(b"\n")) >= 0:
            line = bytes(self._input[:end])
            del self._input[: end + 1]
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                message = None
            if not isinstance(message, dict):
                self.close()
                return
            if message.get("type") == "attach":
                self._attach(message)
            elif message.get("type") == "states":
                self.wants_events = False
            elif message.get("type") == "thoughts":
                self.wants_thoughts = True
            elif self.is_launcher:
                self._server.terminals.on_message(self, message)
            else:
                start_task(self._requests, self._execute(message), "control")

    def _attach(self, message: Line) -> None:
        given, self._descriptors = self._descriptors, []
        try:
            if len(given) != TERMINAL or not is_one_terminal(given):
                raise SessionError(
                    "An attach brings the input and the output of one terminal", "run it in a terminal"
                )
            self._server.terminals.attach(self, (given[0], given[1]), message)
        except TuiAgentError as error:
            self.send({"type": "result", "of": "attach", "ok": False, "error": str(error)})
        finally:
            for descriptor in given:
                os.close(descriptor)

    async def _execute(self, message: Line) -> None:
        if message.get("type") == "settle":
            await self._server.session.chat.finished()
            self.send({"type": "settled", "of": message.get("of")})
            return
        result: Line = {"type": "result", "of": str(message.get("type")), "ok": True, "error": None}
        try:
            result.update(await self._server.execute(message))
        except TuiAgentError as error:
            result.update(ok=False, error=str(error))
        self.send(result)
