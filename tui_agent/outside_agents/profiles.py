"""Profiles of agents: `config/agent-programs/NAME.toml`, and the user's folder of that name; and their homes.

A home is a folder of ours with copies of the agent's settings, and credentials shared with the user's home. The
user's own login folder is never visible in a view: a daemon's socket in it would be a way out.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec

from tui_agent.errors import FileError, SettingsError
from tui_agent.files.operating_system import read_start
from tui_agent.files.private import make_private, replace_private
from tui_agent.sandbox.folder_access import WritableFolder
from tui_agent.sandbox.proxy import parse_allowed
from tui_agent.settings.files import Unreadable, read_small, read_toml, reason_of
from tui_agent.settings.folders import Folders, config_folder

FOLDER = "agent-programs"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")
PROMPT = "{prompt}"


class AgentProfile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How an agent is run in a view.

    - program: name on PATH, or an absolute path.
    - arguments: always given; they switch the agent's own sandbox off, since sandboxes do not nest.
    - headless: arguments of a run without a terminal, with `{prompt}` as one of them.
    - acp: command that speaks the Agent Client Protocol on its standard streams; `acp_mode` is set at the start; of
      several, the first that it has.
    - hosts: allowed names on port 443, or HOST:PORT.
    - environment: names of variables that the agent gets, keys included. variables: further variables.
    - credentials: files below the home that are shared; the agent's writes are copied back.
    - copied: files below the home that the agent gets a copy of.
    - left_out: patterns of files of its own, which are never proposed.
    - memory: bytes of all its processes. processes: their number, threads included.
    """

    program: Annotated[str, msgspec.Meta(min_length=1)]
    name: str = ""
    arguments: tuple[str, ...] = ()
    headless: tuple[str, ...] = ()
    acp: tuple[str, ...] = ()
    acp_mode: str = ""
    hosts: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    variables: dict[str, str] = {}
    credentials: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    memory: Annotated[int, msgspec.Meta(ge=64 << 20)] = 16 << 30
    processes: Annotated[int, msgspec.Meta(ge=20)] = 4000

    def __post_init__(self) -> None:
        for host in self.hosts:
            try:
                parse_allowed(host)
            except ValueError as error:
                raise ValueError(f"`hosts` has {host!r}: {error}") from error
        for path in (*self.credentials, *self.copied):
            if path.startswith("/") or not {"", ".", ".."}.isdisjoint(path.split("/")):
                raise ValueError(f"{path!r} must be a path below the home")
        if "\0" in "".join((self.program, *self.arguments, *self.headless, *self.acp, *self.copied)):
            raise ValueError("it has a NUL character")
        if self.headless and PROMPT not in self.headless:
            raise ValueError(f"`headless` needs {PROMPT} as one argument")


class HostAnswers:
    """One host per line in `data/agents/NAME.hosts`."""

    def __init__(self, data: Path, name: str) -> None:
        self._path = data / "agents" / f"{name}.hosts"

    def load(self) -> list[str]:
        try:
            return read_start(self._path).decode().split()
        except (OSError, UnicodeDecodeError):
            return []

    def add(self, host: str) -> None:
        """Blocking. Raises `OSError`."""
        make_private(self._path.parent)
        replace_private(self._path, "\n".join(dict.fromkeys((*self.load(), host, ""))).encode())


def profile_folders(folders: Folders) -> tuple[Path, Path]:
    return config_folder() / FOLDER, folders.config / FOLDER


def profile_names(folders: Folders) -> list[str]:
    """Blocking, briefly."""
    names = set()
    for folder in profile_folders(folders):
        if folder.is_dir():
            names |= {path.stem for path in folder.glob("*.toml") if _NAME.fullmatch(path.stem)}
    return sorted(names)


def load_profile(folders: Folders, name: str) -> AgentProfile:
    """Blocking, briefly. Raises `SettingsError` if it is missing or invalid."""
    for folder in reversed(profile_folders(folders)):
        path = folder / f"{name}.toml"
        if _NAME.fullmatch(name) and path.is_file():
            try:
                profile = msgspec.convert(read_toml(read_small(path).decode()), AgentProfile)
                return msgspec.structs.replace(profile, name=name)
            except OSError as error:
                raise SettingsError(
                    f"{path} cannot be read ({reason_of(error)})", "correct the file"
                ) from error
            except (Unreadable, msgspec.ValidationError, ValueError) as error:
                raise SettingsError(
                    f"{path} cannot be used as a profile: {error}", "correct the file"
                ) from error
    known = ", ".join(profile_names(folders))
    more = f", or add {folders.config / FOLDER / name}.toml" if _NAME.fullmatch(name) else ""
    raise SettingsError(f"There is no agent profile {name[:40]!r}", f"choose one of {known}{more}")


def summary_of(folders: Folders, name: str) -> str:
    """Blocking, briefly."""
    try:
        profile = load_profile(folders, name)
    except SettingsError as error:
        return error.what
    place = shutil.which(profile.program) or f"{profile.program} is not installed"
    return " · ".join((place, ", ".join(profile.hosts) or "no hosts"))


def profile_of_command(folders: Folders, words: Sequence[str]) -> AgentProfile:
    """Returns the profile of the command's program; otherwise one without hosts and credentials."""
    name = os.path.basename(words[0])
    if name in profile_names(folders):
        profile = load_profile(folders, name)
        return msgspec.structs.replace(profile, program=words[0])
    safe = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-.") or "command"
    return AgentProfile(words[0], name=safe[:40])


def program_path(profile: AgentProfile) -> str:
    """Raises `SettingsError` if it is not installed."""
    found = shutil.which(profile.program)
    if found is None:
        raise SettingsError(
            f"{profile.program} is not installed, or not on PATH", "install it, then try again"
        )
    return os.path.abspath(found)


def needed_folders(program: str) -> list[str]:
    """That a program needs to start: its links, interpreter, virtual environment and `node_modules`. Blocking."""
    found: list[str] = []
    waiting = [program]
    while waiting and len(found) < 40:
        path = waiting.pop()
        real = os.path.realpath(path)
        folder = os.path.dirname(real)
        parts = real.split("/")
        if "node_modules" in parts:
            folder = "/".join(parts[: parts.index("node_modules") + 1])
        if folder in found:
            continue
        found += folder, real  # A folder around the workspace or the home is not shown.
        for environment in (os.path.dirname(os.path.dirname(path)), os.path.dirname(os.path.dirname(real))):
            if home := _python_home(environment):
                found.append(environment)
                waiting.append(os.path.join(home, os.path.basename(real) if "python" in real else "python3"))
            elif os.path.basename(os.path.dirname(real)) == "bin" and os.path.isdir(f"{environment}/lib"):
                found.append(environment)
        if interpreter := _interpreter(real):
            waiting.append(interpreter)
    return list(dict.fromkeys(one for one in found if one.count("/") > 1))


def _interpreter(path: str) -> str:
    try:
        with open(path, "rb") as file:
            first = file.read(256).split(b"\n")[0]
    except OSError:
        return ""
    if not first.startswith(b"#!"):
        return ""
    words = first[2:].decode("utf-8", "replace").split()
    if words and os.path.basename(words[0]) == "env":
        names = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        return shutil.which(names[0]) or "" if names else ""
    return words[0] if words else ""


def _python_home(environment: str) -> str:
    try:
        with open(f"{environment}/pyvenv.cfg", encoding="utf-8", errors="replace") as file:
            lines = [line.partition("=") for line in file.read(10_000).splitlines()]
    except OSError:
        return ""
    return next((value.strip() for key, _, value in lines if key.strip() == "home"), "")


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
        try:
            if self._watching is not None:
                self._watching.cancel()
                # Its own await would raise its cancellation as the caller's.
                await asyncio.wait([self._watching])
                await asyncio.to_thread(self._share_once)
        finally:
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
