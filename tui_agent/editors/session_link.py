"""A session for its editor: the control socket as a stream of lines, and requests with answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from tui_agent.control import sockets
from tui_agent.control.server import LONGEST_LINE as LONGEST_MESSAGE
from tui_agent.control.sockets import SessionSocket
from tui_agent.errors import SessionError

#: Bytes of a line from a session; seconds for it to accept a connection.
LONGEST_LINE, WITHIN = 64_000_000, 30.0
Line = dict[str, Any]


class SessionLink:
    def __init__(
        self, place: SessionSocket, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.id = place.session
        self.state: Line = {}
        self._writer = writer
        writer.write(b'{"type": "thoughts"}\n')
        self._results: asyncio.Queue[Line] = asyncio.Queue()
        #: Whether events are kept for `lines`.
        self.is_heard = False
        self._lines: asyncio.Queue[Line | None] = asyncio.Queue()
        self._asking = asyncio.Lock()
        self._reading = asyncio.create_task(self._read(reader), name="session link")

    @classmethod
    async def open(cls, place: SessionSocket) -> SessionLink:
        """Raises `SessionError`."""
        connection = await asyncio.to_thread(sockets.reach, place, WITHIN)
        connection.setblocking(False)
        return cls(place, *await asyncio.open_connection(sock=connection, limit=LONGEST_LINE))

    @classmethod
    async def begin(cls, workspace: Path) -> SessionLink:
        return await cls.open(await asyncio.to_thread(sockets.begin, workspace))

    @classmethod
    async def resume(cls, session: str, workspace: Path) -> SessionLink:
        """Opens the session with this id, which may already run. Raises `SessionError`."""
        place = await asyncio.to_thread(sockets.of_session, session)
        return await cls.open(place or await asyncio.to_thread(sockets.begin, workspace, session))

    async def request(self, kind: str, **fields: Any) -> Line:
        """Sends a message and returns its result. Raises `SessionError` if it fails."""
        message = json.dumps({"type": kind, **fields}).encode() + b"\n"
        if len(message) > LONGEST_MESSAGE:
            raise SessionError("The message is too long", "send links to its files, and not their contents")
        async with self._asking:
            self._writer.write(message)
            result = await self._results.get()
            if result.get("ok"):
                return result
            if "of" in result:
                raise failure(str(result.get("error")))
            self._results.put_nowait(result)
            raise SessionError("the session has ended", "begin another")

    def settle(self, of: int) -> None:
        """Asks for a line `settled` at the end of all that follows from a message."""
        self._writer.write(json.dumps({"type": "settle", "of": of}).encode() + b"\n")

    async def lines(self) -> AsyncGenerator[Line, None]:
        """The events since `is_heard` was set, as they come, until the session ends."""
        while (line := await self._lines.get()) is not None:
            yield line
        self._lines.put_nowait(None)

    def discard(self) -> None:
        """Drops the events that have come, and those that will."""
        self.is_heard = False
        while not self._lines.empty():
            if self._lines.get_nowait() is None:
                self._lines.put_nowait(None)
                return

    async def close(self) -> None:
        self._reading.cancel()
        self._writer.close()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while data := await reader.readline():
                line = json.loads(data)
                if line.get("type") == "result":
                    self._results.put_nowait(line)
                    continue
                if line.get("type") == "state":
                    self.state = line
                if self.is_heard:
                    self._lines.put_nowait(line)
        except (OSError, ValueError):
            pass
        finally:
            self._lines.put_nowait(None)
            self._results.put_nowait({"ok": False})


def failure(sentence: str) -> SessionError:
    """An error from its words on a line."""
    what, _, remedy = sentence.rpartition(": ")
    return SessionError(what, remedy) if what else SessionError(remedy, "send it again")
