"""Versions of files in git: a private commit for every apply, diffs against any, commits on request."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any

from msgspec import Struct

from tui_agent.edits.change import Checkpoint, Diff
from tui_agent.edits.hunks import diff_of
from tui_agent.errors import ChildFailed, FileError, SessionError
from tui_agent.files.gate import is_secret
from tui_agent.files.text import decode
from tui_agent.session.journal import Journal
from tui_agent.session.writing import Writing
from tui_agent.store import events as e
from tui_agent.store.state import State
from tui_agent.workspace.repository import CommitPlan
from tui_agent.workspace.workspace import Workspace

LAST_COMMIT = "HEAD"


class Version(Struct, frozen=True):
    """Something that a file can be compared with: `name` is `HEAD` or a checkpoint's id, `words` say which it is."""

    name: str
    words: str


class Versions:
    def __init__(self, journal: Journal, workspace: Workspace, writing: Writing) -> None:
        self._journal = journal
        self._workspace = workspace
        self._writing = writing
        self._tasks: set[asyncio.Task[None]] = set()
        self._listen_no_more = journal.store.subscribe(self._note)

    @property
    def state(self) -> State:
        return self._journal.store.state

    def keep_none(self) -> None:
        """Let git keep nothing of what is applied from now on."""
        self._listen_no_more()

    async def settled(self) -> None:
        """Wait until every apply so far has its commit."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def all(self) -> list[Version]:
        """What a file can be compared with, the last commit first, then the newest apply."""
        points = [point for point in self.state.review.checkpoints if point.commit]
        found = [Version(LAST_COMMIT, "the last commit")]
        return [*found, *(Version(point.id, f"after apply {point.id}") for point in reversed(points))]

    async def diff(self, path: str, version: str) -> Diff:
        """What a file is now (unsaved text included) against a version. Raises `SessionError`, `FileError`."""
        now = await self._writing.current(path)
        revision = LAST_COMMIT if version == LAST_COMMIT else self._point(version).commit
        if not revision:
            raise SessionError(f"{version} is not kept in git", "compare with another")
        then = await self._workspace.repository.file_at(revision, path)
        before = "" if then is None else decode(then, path).text
        return await asyncio.to_thread(diff_of, path, before, now.text or "")

    async def commit_plan(self) -> CommitPlan:
        """What a commit would hold now: what is staged, else what this session wrote. Raises `SessionError`."""
        plan = await self._workspace.repository.commit_plan(list(dict.fromkeys(_written(self.state))))
        if not plan.is_repository:
            raise SessionError("There is no git repository here", "make one with `git init`")
        if not plan.paths:
            raise SessionError(
                "There is nothing to commit",
                "stage what you wrote yourself; what was applied here is taken by itself",
            )
        return plan

    async def commit(self, message: str, plan: CommitPlan) -> str:
        """Commit it; hooks are not run. Raises `FileError` with git's reason."""
        if not message.strip():
            raise FileError("A commit needs a message", "write one")
        made = await self._workspace.repository.commit(message, plan)
        words = message.strip().split("\n", 1)[0]
        await self._journal.record(e.NoticeGiven("info", f"Committed {made[:7]}: {words}"))
        await self._workspace.git_status()
        return made

    def _point(self, name: str) -> Checkpoint:
        found = next((point for point in self.state.review.checkpoints if point.id == name), None)
        if found is None:
            raise SessionError(f"There is no apply {name}", "choose one from the list")
        return found

    def _note(self, event: e.Event, state: State) -> None:
        if isinstance(event, e.CheckpointMade) and self._is_repository():
            self._spawn(self._keep(event.checkpoint))

    async def _keep(self, point: Checkpoint) -> None:
        """Nothing waits for this: the texts are kept already, git is one more place to find them."""
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
        """Whether it is worth asking git, which a child has to be started for."""
        root = self._workspace.root
        return any((folder / ".git").exists() for folder in (root, *root.parents))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _written(state: State) -> Iterator[str]:
    for point in state.review.checkpoints:
        for step in point.files:
            if not is_secret(step.path):
                yield step.path


def for_model(plan: CommitPlan) -> str:
    """What a model is shown of a commit: its diff without files that look like secrets."""
    parts = plan.diff.split("diff --git ")
    kept = [part for part in parts if not _is_of_secret(part, plan)]
    names = "\n".join(path for path in plan.paths if not is_secret(path))
    return f"Files:\n{names}\n\n" + "diff --git ".join(kept) + ("\n…" if plan.cut else "")


def _is_of_secret(part: str, plan: CommitPlan) -> bool:
    head = part.split("\n", 1)[0]
    return any(is_secret(path) and path in head for path in plan.paths)
