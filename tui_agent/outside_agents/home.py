"""The home of an agent: a folder of ours with copies of its settings, and credentials shared with the user's home.

The user's own login folder is never visible in a view: a daemon's socket in it would be a way out.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from contextlib import suppress
from pathlib import Path

import msgspec

from tui_agent.errors import FileError
from tui_agent.files.private import make_private, replace_private
from tui_agent.outside_agents.profiles import AgentProfile
from tui_agent.sandbox.folder_access import WritableFolder

#: Bytes of a shared file, seconds between two comparisons of the shared files, agents of one name at once.
MOST, EVERY, MOST_AT_ONCE = 1 << 20, 0.2, 16


class AgentHome:
    """A home that no other running agent uses: `STATE/agents/NAME`, or NAME.2 and so on."""

    def __init__(self, state: Path, home: str, profile: AgentProfile) -> None:
        self._state, self._home, self._profile = state / "agents", home, profile
        self._lock = -1
        self._access: WritableFolder | None = None
        #: Contents of shared files when both sides were last equal, by path; None if missing.
        self._equal: dict[str, bytes | None] = {}
        self._watching: asyncio.Task[None] | None = None
        self.path = ""

    async def open(self) -> None:
        """Raises `FileError`."""
        try:
            await asyncio.to_thread(self._open)
        except OSError as error:
            raise FileError(
                f"The home of {self._profile.name} cannot be made ({error.strerror})",
                f"check {self._state}",
            ) from error
        self._watching = asyncio.create_task(self._share(), name="credentials of an agent")

    async def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching
            await asyncio.to_thread(self._share_once)
        if self._access is not None:
            self._access.close()
        if self._lock >= 0:
            os.close(self._lock)

    def _open(self) -> None:
        make_private(self._state)
        for number in range(1, MOST_AT_ONCE + 1):
            path = self._state / (self._profile.name + (f".{number}" if number > 1 else ""))
            make_private(path)
            lock = os.open(path.with_name(f"{path.name}.lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                continue
            self._lock, self.path = lock, str(path)
            break
        else:
            raise OSError(0, f"{MOST_AT_ONCE} of these agents are running")
        self._access = WritableFolder(self.path)
        for name in self._profile.copied:
            if (content := self._outside(name)) is not None:
                self._access.replace(name, content, 0o600)
        for name in self._profile.credentials:
            self._equal[name] = content = self._outside(name)
            if content is not None:
                self._access.replace(name, content, 0o600)

    async def _share(self) -> None:
        while self._profile.credentials:
            await asyncio.sleep(EVERY)
            await asyncio.to_thread(self._share_once)

    def _share_once(self) -> None:
        for name in self._profile.credentials:
            with suppress(OSError):
                self._share_file(name)

    def _share_file(self, name: str) -> None:
        assert self._access is not None
        inside, outside, equal = self._access.read(name, MOST), self._outside(name), self._equal.get(name)
        if inside == outside:
            self._equal[name] = inside
            return
        begun = not inside or (_is_json(outside or b"") and not _is_json(inside))
        if inside is not None and inside != equal and outside and begun:
            return  # the agent is writing it
        place = os.path.realpath(f"{self._home}/{name}")
        there = self._access.status(name)
        newer_inside = there is not None and (
            not os.path.exists(place) or there.st_mtime >= os.stat(place).st_mtime
        )
        if inside is not None and (outside == equal or (inside != equal and newer_inside)):
            if not os.path.isdir(os.path.dirname(place)):
                make_private(os.path.dirname(place))
            replace_private(Path(place), inside)
            self._equal[name] = inside
        elif outside is not None:
            self._access.replace(name, outside, 0o600)
            self._equal[name] = outside

    def _outside(self, name: str) -> bytes | None:
        try:
            with open(f"{self._home}/{name}", "rb") as file:
                content = file.read(MOST + 1)
        except OSError:
            return None
        return content if len(content) <= MOST else None


def _is_json(content: bytes) -> bool:
    try:
        msgspec.json.decode(content)
    except msgspec.DecodeError:
        return False
    return True
