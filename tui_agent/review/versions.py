"""Versions of files in git: a private commit per apply, diffs, and commits on request."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

from msgspec import Struct, structs

from tui_agent.edits.change import Checkpoint, Diff, diff_of
from tui_agent.errors import ChildFailed, FileError, SessionError
from tui_agent.files.gate import Gate
from tui_agent.files.masking import hits
from tui_agent.files.sensitive_paths import is_secret
from tui_agent.files.text import decode, md5
from tui_agent.git.client import CommitPlan
from tui_agent.log.journal import Journal
from tui_agent.processes.background import start_task
from tui_agent.review.apply import apply_named
from tui_agent.review.writer import Writer
from tui_agent.store import events as e
from tui_agent.store.state import State
from tui_agent.workspace.workspace import Workspace

LAST_COMMIT = "HEAD"


class Version(Struct, frozen=True):
    """`name` is `HEAD` or a checkpoint's id."""

    name: str
    words: str


class Versions:
    def __init__(self, journal: Journal, workspace: Workspace, writer: Writer) -> None:
        self._journal = journal
        self._workspace = workspace
        self._writer = writer
        self._tasks: set[asyncio.Task[None]] = set()
        self._listen_no_more = journal.store.subscribe(self._note)

    @property
    def state(self) -> State:
        return self._journal.store.state

    def keep_none(self) -> None:
        self._listen_no_more()

    async def wait_for_commits(self) -> None:
        while self._tasks:
            await asyncio.wait(self._tasks)

    def all(self) -> list[Version]:
        points = [point for point in self.state.review.checkpoints if point.commit]
        return [
            Version(LAST_COMMIT, "the last commit"),
            *(Version(point.id, f"apply {point.id[1:]} of turn {point.turn}") for point in reversed(points)),
        ]

    async def diff(self, path: str, version: str) -> Diff:
        """Compares the current file, with unsaved text. Raises `SessionError` and `FileError`."""
        if version == LAST_COMMIT and not self._is_repository():
            raise _no_repository()
        now = await self._writer.current(path)
        revision = LAST_COMMIT if version == LAST_COMMIT else apply_named(self.state.review, version).commit
        if not revision:
            raise SessionError(f"{version} is not kept in git", "compare with another")
        before = await self._text_at(revision, path)
        return await asyncio.to_thread(diff_of, path, before, now.text or "")

    async def commit_plan(self) -> CommitPlan:
        """Files applied in this session first. Raises `SessionError`."""
        # Hashes before the first and after the last apply, without undone applies.
        before, after = dict[str, str](), dict[str, str]()
        for point in self.state.review.checkpoints:
            for step in () if point.undone else point.files:
                before.setdefault(step.path, step.before)
                after[step.path] = step.after
        applied = {path: left for path, left in after.items() if left != before[path] and not is_secret(path)}
        plan = await self._workspace.repository.commit_plan(list(applied))
        if not plan.is_repository:
            raise _no_repository()
        if not plan.files:
            raise SessionError("There is nothing to commit", "no file differs from the last commit")
        committed = set()
        for path, left in applied.items():
            data = await self._workspace.repository.file_at(LAST_COMMIT, path)
            if (md5(data) if data is not None else "") == left:
                committed.add(path)
        files = [
            structs.replace(file, applied=file.path in applied and file.path not in committed)
            for file in plan.files
        ]
        return structs.replace(plan, files=tuple(sorted(files, key=lambda file: not file.applied)))

    async def commit_file(self, path: str) -> Diff:
        """Raises `FileError`."""
        before = await self._text_at(LAST_COMMIT, path)
        return await asyncio.to_thread(diff_of, path, before, await self._writer.on_disk(path))

    async def _text_at(self, revision: str, path: str) -> str:
        data = await self._workspace.repository.file_at(revision, path)
        return "" if data is None else decode(data, path).text

    async def commit(self, message: str, plan: CommitPlan) -> str:
        """Runs hooks. Raises `FileError` with git's reason."""
        if not message.strip():
            raise FileError("A commit needs a message", "write one")
        if not plan.files:
            raise FileError("No file is selected", "tick one")
        made = await self._workspace.repository.commit(message, plan)
        words = message.strip().split("\n", 1)[0]
        await self._journal.record(e.NoticeGiven("info", f"Committed {made[:7]}: {words}"))
        await self._workspace.git_status()
        return made

    async def for_model(self, plan: CommitPlan) -> str:
        diff, cut = await self._workspace.repository.commit_diff(plan.paths)
        return await asyncio.to_thread(for_model, plan.paths, diff, cut, self._workspace.gate)

    def _note(self, event: e.Event, state: State) -> None:
        if isinstance(event, e.CheckpointMade) and self._is_repository():
            start_task(self._tasks, self._keep(event.checkpoint))

    async def _keep(self, point: Checkpoint) -> None:
        paths = [step.path for step in point.files if not is_secret(step.path)]
        try:
            made = await self._workspace.repository.checkpoint(self.state.session.id, point.id, paths)
        except ChildFailed as error:
            sentence = f"{error}; apply {point.id} is kept, but not in git"
            await self._journal.record(e.NoticeGiven("warning", sentence))
            return
        if made:
            await self._journal.record(e.CheckpointCommitted(point.id, made))

    def _is_repository(self) -> bool:
        root = self._workspace.root
        return any((folder / ".git").exists() for folder in (root, *root.parents))


def _no_repository() -> SessionError:
    return SessionError("There is no git repository here", "make one with `git init`")


def for_model(paths: Sequence[str], diff: str, cut: bool, gate: Gate) -> str:
    """Omits files that look like or contain secrets. Blocking."""
    shown = gate.without_secrets(paths)
    hidden = set(paths) - set(shown)
    head, *parts = diff.split("diff --git ")
    quoted = {
        "".join(chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}" for byte in os.fsencode(path))
        for path in hidden
    }
    kept = [
        part
        for part in parts
        if not any(name in part.split("\n", 1)[0] for name in hidden | quoted)
        and not hits("\n".join(line[1:] for line in part.split("\n")))
    ]
    names = "\n".join(shown)
    return (
        f"Files:\n{names}\n\n{head}" + "".join(f"diff --git {part}" for part in kept) + ("\n…" if cut else "")
    )
