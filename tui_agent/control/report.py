"""The state of a session as one JSON line, the first line of each control connection."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from tui_agent.control import sockets
from tui_agent.control.sockets import SessionSocket
from tui_agent.errors import SessionError
from tui_agent.files.text import one_line
from tui_agent.store.session_events import OthersSeen
from tui_agent.store.state import OtherSession, State

if TYPE_CHECKING:
    from tui_agent.session.session import Session


MOST_OF_TITLE = 80
PERMISSIONS = ("once", "session", "always", "no")


def state_line(state: State, *, attached: bool) -> dict[str, Any]:
    """Returns the line `state`: `asks` is the open question or null, `choices` its answers by number from 1,
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
