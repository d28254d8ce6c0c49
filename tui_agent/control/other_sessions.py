"""Keeps the state of the user's other running sessions, for the inbox."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from tui_agent.control import sockets
from tui_agent.control.sockets import SessionSocket
from tui_agent.errors import SessionError
from tui_agent.store.session_events import OthersSeen
from tui_agent.store.state import OtherSession

if TYPE_CHECKING:
    from tui_agent.session.session import Session

#: Seconds between two looks for new sessions. The states of known ones arrive when they change.
LOOK_AGAIN = 2.0


class OtherSessions:
    """Holds a connection to each other session while a terminal is attached."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._found: dict[SessionSocket, OtherSession] = {}
        self._looking: asyncio.Task[None] | None = None

    def follow(self, wanted: bool) -> None:
        """Begins or ends following. Idempotent."""
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
        """Reads the states of one session until it ends."""
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
            pass  # it has ended, or sends lines that are too long
        finally:
            writer.close()
            if self._found.pop(place, None) is not None:
                self._show()

    def _show(self) -> None:
        sessions = tuple(self._found[place] for place in sorted(self._found))
        self._session.journal.publish(OthersSeen(sessions))
