"""Baselines of checks on the unmodified folder; the result of a proposal is the difference."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import msgspec

from tui_agent.checks.comparison import Finding
from tui_agent.session.stored_answers import FolderAnswers
from tui_agent.settings.schema import CheckCommand

STORE = "baselines.json"
#: Maximum number of commands with a baseline per folder.
MOST_KEPT = 20


class _StoredBaseline(msgspec.Struct, frozen=True):
    tree: str
    finding: Finding
    seconds: float = 0.0


class Baselines:
    """Findings by command with the state of the folder, stored for later sessions."""

    def __init__(self, data: Path, root: Path, paths: Callable[[], list[str]]) -> None:
        self._root = root
        self._paths = paths
        self._store = FolderAnswers(data / STORE, root)
        self._kept: dict[str, _StoredBaseline] | None = None
        #: Last duration of each command in this session.
        self._seconds: dict[str, float] = {}

    def took(self, command: str, seconds: float) -> None:
        self._seconds[command] = seconds

    async def seconds(self, command: str) -> float:
        """Last duration of a command, 0 if unknown."""
        kept = (await self._load()).get(command)
        return self._seconds.get(command, kept.seconds if kept is not None else 0.0)

    async def known(self, check: CheckCommand) -> bool:
        kept = (await self._load()).get(check.command)
        return kept is not None and kept.tree == await asyncio.to_thread(self._tree)

    async def of(self, check: CheckCommand, run: Callable[[], Awaitable[Finding | None]]) -> Finding | None:
        """The check's baseline; calls `run` if it is not current. None if `run` returns none."""
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
        """Stores findings as the current baseline, for example after all checked changes were applied."""
        tree = await asyncio.to_thread(self._tree)
        for check, found in findings:
            await self._keep(check.command, tree, found)

    async def _keep(self, command: str, tree: str, found: Finding) -> None:
        kept = await self._load()
        kept.pop(command, None)
        kept[command] = _StoredBaseline(tree, found, self._seconds.get(command, 0.0))
        while len(kept) > MOST_KEPT:
            del kept[next(iter(kept))]
        try:
            await asyncio.to_thread(self._store.keep, msgspec.to_builtins(kept))
        except OSError:
            return  # Kept in memory; later sessions repeat the run.

    async def _load(self) -> dict[str, _StoredBaseline]:
        if self._kept is None:
            told = await asyncio.to_thread(self._store.get)
            try:
                self._kept = msgspec.convert(told or {}, dict[str, _StoredBaseline])
            except msgspec.ValidationError:
                self._kept = {}
        return self._kept

    def _tree(self) -> str:
        """A digest of size, time and mode of every file not ignored by git. Blocking."""
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
