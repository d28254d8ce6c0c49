"""What each check finds in the folder as it is: the result of a proposal is the difference."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import msgspec

from tui_agent.checks.comparison import Finding
from tui_agent.session.answers import FolderAnswers
from tui_agent.settings.schema import CheckCommand

STORE = "baselines.json"
#: Commands of which a baseline is kept for a folder.
MOST_KEPT = 20


class _Kept(msgspec.Struct, frozen=True):
    tree: str
    finding: Finding
    seconds: float = 0.0


class Baselines:
    """Findings by command, each with the state of the folder that it was made on; kept for later sessions."""

    def __init__(self, data: Path, root: Path, paths: Callable[[], list[str]]) -> None:
        """`data` is the folder of sessions, `paths` returns the files of the workspace."""
        self._root = root
        self._paths = paths
        self._store = FolderAnswers(data / STORE, root)
        self._kept: dict[str, _Kept] | None = None
        #: How long each command took last in this session.
        self._seconds: dict[str, float] = {}

    def took(self, command: str, seconds: float) -> None:
        """Say how long a command took."""
        self._seconds[command] = seconds

    async def seconds(self, command: str) -> float:
        """How long a command took when it ran last, 0 if that is not known."""
        kept = (await self._load()).get(command)
        return self._seconds.get(command, kept.seconds if kept is not None else 0.0)

    async def known(self, check: CheckCommand) -> bool:
        """Whether it is known what the check finds in the folder as it is now."""
        kept = (await self._load()).get(check.command)
        return kept is not None and kept.tree == await asyncio.to_thread(self._tree)

    async def of(self, check: CheckCommand, run: Callable[[], Awaitable[Finding | None]]) -> Finding | None:
        """What the check finds in the folder as it is; `run` finds it out, unless it is known for this very state.

        None where `run` cannot say.
        """
        kept = await self._load()
        tree = await asyncio.to_thread(self._tree)
        known = kept.get(check.command)
        if known is not None and known.tree == tree:
            return known.finding
        found = await run()
        if found is not None:
            await self._keep(check.command, tree, found)
        return found

    async def adopt(self, findings: Iterable[tuple[CheckCommand, Finding]]) -> None:
        """Take what was found for what the folder has as it is now, as when all that was checked has been applied."""
        tree = await asyncio.to_thread(self._tree)
        for check, found in findings:
            await self._keep(check.command, tree, found)

    async def _keep(self, command: str, tree: str, found: Finding) -> None:
        kept = await self._load()
        kept.pop(command, None)
        kept[command] = _Kept(tree, found, self._seconds.get(command, 0.0))
        while len(kept) > MOST_KEPT:
            del kept[next(iter(kept))]
        try:
            await asyncio.to_thread(self._store.keep, msgspec.to_builtins(kept))
        except OSError:
            return  # it is known for this session, and found out again in the next

    async def _load(self) -> dict[str, _Kept]:
        if self._kept is None:
            told = await asyncio.to_thread(self._store.get)
            try:
                self._kept = msgspec.convert(told or {}, dict[str, _Kept])
            except msgspec.ValidationError:
                self._kept = {}
        return self._kept

    def _tree(self) -> str:
        """The state of the folder: size, time and mode of every file that git does not ignore. Blocking."""
        digest = hashlib.blake2b(digest_size=20)
        root = str(self._root)
        for path in self._paths():
            try:
                status = os.lstat(f"{root}/{path}")
            except OSError:
                continue
            digest.update(
                f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_mode}\0".encode(
                    errors="surrogatepass"
                )
            )
        return digest.hexdigest()
