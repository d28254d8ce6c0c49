"""A session for its editor: the control socket as a stream of lines, and requests with answers."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from tui_agent.control import sockets
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
        """Returns the result. Raises `SessionError` if it fails."""
        async with self._asking:
            self._writer.write(json.dumps({"type": kind, **fields}).encode() + b"\n")
            result = await self._results.get()
            if result.get("ok"):
                return result
            self._results.put_nowait(result) if "of" not in result else None
            raise SessionError(str(result.get("error") or "the session has ended"), "begin another")

    async def lines(self) -> AsyncGenerator[Line, None]:
        """Yields the events since the last call, until the session ends."""
        while (line := await self._lines.get()) is not None:
            yield line
        self._lines.put_nowait(None)

    def discard(self) -> None:
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
                self._lines.put_nowait(line)
        except (OSError, ValueError):
            pass  # the session has ended, or is another program's
        finally:
            self._lines.put_nowait(None)
            self._results.put_nowait({"ok": False})


def pictures_of(session: str, data: Path) -> Path:
    from tui_agent.log import directory

    return Path(os.fspath(directory.folder_of(data, session))) / "pictures"
