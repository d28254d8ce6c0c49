"""Views for this workspace's commands: isolation, contents, revealed files, confirmations."""

from __future__ import annotations

import asyncio
import dataclasses
import glob
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import msgspec

from tui_agent.checks.output import REPORTING
from tui_agent.errors import AnswerNeeded, SessionError
from tui_agent.files.git_folder import find_git_folder, repository_around
from tui_agent.files.known_secrets import KnownSecrets
from tui_agent.files.lazy_regex import late
from tui_agent.files.names import display_path
from tui_agent.files.private import FolderAnswers
from tui_agent.files.secret_files import SecretFiles
from tui_agent.files.secret_values import SecretValues
from tui_agent.files.text import TextFile, encode
from tui_agent.log.core import Core
from tui_agent.review.review import Review
from tui_agent.store import events as e
from tui_agent.store.commands import FULL_VIEWS, By, Isolated
from tui_agent.store.state import State

if TYPE_CHECKING:
    from tui_agent.sandbox.build_cache import KeptLayer, RunLayer
    from tui_agent.sandbox.git_objects import GitObjects
    from tui_agent.sandbox.hidden_files import HiddenFiles
    from tui_agent.sandbox.isolation import RunFolder, Rung
    from tui_agent.sandbox.view_plan import Seed, ViewPlan

STORE: Final = "revealed.json"
OF_TESTS = late(
    r"(?:^|/)(?:tests?|specs?|testdata|testing|fixtures?|__tests__|e2e|spec)/|(?:^|/)\.env\.(?:test|testing|ci)\b"
)


class _StoredReveal(msgspec.Struct, frozen=True):
    offered: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    declined: bool = False


class RevealedFiles:
    def __init__(self, data: Path, root: str) -> None:
        self._answers = FolderAnswers(data / STORE, Path(root))
        self._found: _StoredReveal | None = None

    @property
    def globs(self) -> tuple[str, ...]:
        """Blocking on first use."""
        return tuple(map(glob.escape, self._stored_answer.shown))

    @property
    def waiting(self) -> tuple[str, ...]:
        return tuple(path for path in self._stored_answer.offered if path not in self._stored_answer.shown)

    def unoffered(self, emptied: Sequence[str]) -> list[str]:
        return (
            []
            if self._stored_answer.declined
            else [
                path for path in emptied if OF_TESTS.search(path) and path not in self._stored_answer.offered
            ]
        )

    def offer(self, paths: Sequence[str]) -> None:
        kept = _StoredReveal((*self._stored_answer.offered, *paths), self._stored_answer.shown)
        self._found = kept
        try:
            self._answers.keep(msgspec.to_builtins(kept))
        except OSError:
            return  # the next session repeats the offer

    def show(self) -> tuple[str, ...]:
        """Blocking. Raises `OSError`."""
        waiting = self.waiting
        self._found = _StoredReveal(self._stored_answer.offered, (*self._stored_answer.shown, *waiting))
        self._answers.keep(msgspec.to_builtins(self._found))
        return waiting

    def hide(self) -> tuple[str, ...]:
        """Blocking. Raises `OSError`."""
        shown = self._stored_answer.shown
        self._found = _StoredReveal((*self._stored_answer.offered,), (), declined=True)
        self._answers.keep(msgspec.to_builtins(self._found))
        return shown

    @property
    def _stored_answer(self) -> _StoredReveal:
        if self._found is None:
            try:
                self._found = msgspec.convert(self._answers.get() or {}, _StoredReveal)
            except msgspec.ValidationError:
                self._found = _StoredReveal()
        return self._found


#: Last isolation per workspace, in the folder of sessions.
LAST = "rungs.json"
#: Seconds between notices about waiting commands, and maximum files in a sentence.
TOLD_AFTER, MOST_NAMED = 2.0, 5
#: Seconds from its start that a command waits for the secret search.
KNOWN_WITHIN = 20.0
_COMPARED = ("python", "python3", "node", "ruby", "java", "go", "cargo")


class PreparedView(NamedTuple):
    """`key` identifies the proposal; `pending` are its paths."""

    plan: ViewPlan
    variables: dict[str, str]
    pending: tuple[str, ...]
    key: str
    folder: RunFolder | None

    async def remove(self) -> None:
        if self.folder is not None:
            await asyncio.to_thread(self.folder.remove)


class TrialViews:
    def __init__(
        self,
        core: Core,
        review: Review,
        secrets: KnownSecrets,
        copied: Path | None = None,
    ) -> None:
        """`copied` is the original of a copied workspace."""
        self._journal = journal = core.journal
        self._workspace = workspace = core.workspace
        self._root = str(workspace.root)
        self._review = review
        self._settings = core.settings.trial
        self._folders = folders = core.folders
        self._copied = str(copied) if copied else ""
        self._before = FolderAnswers(folders.data / LAST, workspace.root)
        self._parent = folders.state / "trials"
        self._revealed = RevealedFiles(folders.data, self._root)
        self._judge = workspace.gate.secrets
        self._known = secrets
        self._hidden: dict[str, HiddenFiles] = {}
        self._scan: asyncio.Task[None] | None = None
        self._git: GitObjects | None = None
        self._looking: asyncio.Task[None] | None = None
        self._since = 0.0
        self._rung: Rung | None = None
        self._probing = asyncio.Lock()
        self._said: set[str] = set()
        self.skills: tuple[str, ...] = ()
        self._allowed: set[str] = set()
        self._unsubscribe = journal.store.subscribe(self._on_event)

    async def rung(self) -> Rung:
        rung = await self._found()
        if rung.isolated not in FULL_VIEWS:
            await self.notify_once(f"There is no full trial view here: {rung.why}", "warning")
        return rung

    async def _found(self) -> Rung:
        from tui_agent.sandbox.isolation import WORDS, below, probe, sweep
        from tui_agent.sandbox.view_plan import unfit

        async with self._probing:
            if self._rung is None:
                left = await asyncio.to_thread(sweep, self._parent)
                if left:
                    await self.notify_once(f"{left} folder{'s' * (left > 1)} of interrupted commands removed")
                self._rung = rung = await probe(unfit=await asyncio.to_thread(unfit, self._root))
                kept = self._before.get()
                last = next((isolated for isolated in WORDS if isolated == kept), None)
                if last and below(rung.isolated, last):
                    await self.notify_once(
                        f"Commands used to run {WORDS[last].partition(',')[0]} here; this no longer works "
                        f"({rung.why})",
                        "warning",
                    )
                if last != rung.isolated:
                    with suppress(OSError):
                        self._before.keep(rung.isolated)
            return self._rung

    async def check_allowed(self, command: str, by: By, *, network: bool, allowed: bool) -> Rung:
        """Raises `AnswerNeeded` with the reason. Checks are already named by the user; without a view they
        raise `SessionError`.
        """
        from tui_agent.sandbox.isolation import WORDS

        if by == "check":
            rung = await self.rung()
            if rung.isolated == "none":
                raise SessionError(
                    f"There is no trial view here ({rung.why})", "run the checks after you apply"
                )
            return rung
        rung = await self._found()
        if allowed:
            if not network and rung.isolated != "none":
                self._allowed.add(rung.isolated)
            return rung
        if rung.isolated == "none":
            raise AnswerNeeded(f"{WORDS['none']}, because there is no trial view ({rung.why})", command)
        if network:
            raise AnswerNeeded("with the network of this machine, including its own services", command)
        if rung.isolated not in FULL_VIEWS and rung.isolated not in self._allowed:
            how = f"{WORDS[rung.isolated]}; there is no full trial view here: {rung.why}"
            raise AnswerNeeded(how, command, once=True)
        return rung

    async def prepare(
        self,
        isolated: Isolated,
        by: By,
        *,
        network: bool = False,
        seeded: Callable[[], object] | None = None,
        pending: bool = True,
        tools: Sequence[str] = (),
    ) -> PreparedView:
        """Includes pending and unsaved content, unless `pending` is `False`. Calls `seeded` once the content
        is fixed; `tools` are additional readable folders. Raises `SessionError`.
        """
        from tui_agent.extensions.markdown_files import hidden_config
        from tui_agent.sandbox.isolation import RunFolder
        from tui_agent.sandbox.view_plan import Limits, NoView, fitting, plan

        seeds, paths = await self.replaced(pending=pending, seeded=seeded)
        key = await asyncio.to_thread(_digest, seeds)
        environments = [f"{self._copied}/{name}" for name in (".venv", "venv")] if self._copied else []
        folder = None
        try:
            repository, folders = await asyncio.to_thread(_git_folders, self._root)
            more = await asyncio.to_thread(self._around, repository, folders)
            owned, why = await asyncio.to_thread(self._of(self._root).owned)
            if isolated != "overlay":
                folder = await asyncio.to_thread(RunFolder, self._parent)
            made = await asyncio.to_thread(
                plan,
                Path(self._root),
                seeds=[*seeds, *more, *owned],
                git_folders=folders,
                tools=(*self._settings.tools, *environments, *self.skills, *tools),
                hidden=(
                    *hidden_config(self._folders.config, self.skills),
                    *map(str, (self._folders.data, self._folders.state)),
                    *self._judge.outside(),
                ),
                network=network,
                limits=fitting(Limits(memory=self._settings.memory, processes=self._settings.processes)),
                isolated=isolated,
                folder=folder.path if folder else "",
            )
            if self._settings.network and isolated in FULL_VIEWS and not network:
                made = dataclasses.replace(made, proxy=True, hosts=self._settings.network)
            made, without_git = await self._git_objects.hidden_in_view(made, *await self._secret(more))
        except (NoView, OSError) as error:
            if folder is not None:
                await asyncio.to_thread(folder.remove)
            why = error.why if isinstance(error, NoView) else str(error.strerror)
            raise SessionError(f"There is no trial view of this folder: {why}", "run it with !!") from error
        for sentence in filter(None, (why, without_git)):
            await self.notify_once(sentence, "warning")
        return PreparedView(made, await self._variables(made, by, network), paths, key, folder)

    async def replaced(
        self, *, pending: bool = True, seeded: Callable[[], object] | None = None
    ) -> tuple[list[Seed], tuple[str, ...]]:
        """Contents that differ from the folder (pending and unsaved ones unless `pending` is `False`), and
        the pending paths. Calls `seeded` once they are fixed.
        """
        await self._scanned()
        found = await self._seeds() if pending else (await asyncio.to_thread(self._judged, {}), ())
        if seeded is not None:
            seeded()
        return found

    async def replaced_by(self, contents: Mapping[str, bytes | None]) -> list[Seed]:
        await self._scanned()
        return await asyncio.to_thread(self._judged, contents)

    def shown_secrets(self) -> list[str]:
        from tui_agent.sandbox.hidden_files import is_revealed

        return [one.path for one in self._judge.last if is_revealed(one, self._reveal)]

    async def _variables(self, made: ViewPlan, by: By, network: bool) -> dict[str, str]:
        from tui_agent.sandbox.environment import PROXIED, variables

        chosen, environment = variables(
            *(self._copied or made.root, made.places, os.environ, self._settings.env),
            offline=not network and not made.hosts,
        )
        if made.hosts:
            chosen |= PROXIED
        if by == "person":
            chosen = {"FORCE_COLOR": "1", "CLICOLOR_FORCE": "1", "PY_COLORS": "1", **chosen}
        elif by == "check":
            chosen |= {
                name: f"{os.environ.get(name, '')} {value}".strip() for name, value in REPORTING.items()
            }
        if environment:
            await self.notify_once(f"Commands use the virtual environment {environment} of this folder")
        if hidden := await asyncio.to_thread(_hidden_tools, made, chosen["PATH"]):
            await self.notify_once(
                f"Commands may find a different {' and '.join(hidden)} than you do, since yours is hidden from "
                "them; add its folder to trial.tools",
                "warning",
            )
        return chosen

    async def key(self) -> str:
        seeds, _ = await self._seeds()
        return await asyncio.to_thread(_digest, seeds)

    async def keeping(self, prepared: PreparedView, command: str, by: By) -> RunLayer | None:
        """The build cache, read-only for the model's commands because checks reuse it."""
        from tui_agent.sandbox.build_cache import MARKED, RunLayer, key_of

        if prepared.plan.isolated != "overlay" or self._copied or not self._settings.kept:
            return None
        values = [
            f"{name}={value}"
            for name, value in prepared.variables.items()
            if any(fnmatchcase(name, name_pattern) for name_pattern in self._settings.env)
        ]
        key = key_of(prepared.plan.seeds, values)
        clean, paths = not prepared.pending and by != "model", self._workspace.index.paths
        lent = await asyncio.to_thread(
            lambda: self._kept_layer.borrow(key, paths, clean=clean, command=command)
        )
        if lent is None:
            return None
        return RunLayer(lent, asyncio.create_task(self._workspace.ignored([f"{name}/a" for name in MARKED])))

    async def forget_builds(self) -> bool:
        """`False` without any. Raises `SessionError` during a command that uses it."""
        try:
            return await asyncio.to_thread(self._kept_layer.delete)
        except OSError as error:
            raise SessionError(
                "A running command uses the kept build files", "stop it first (F10)"
            ) from error

    @property
    def _kept_layer(self) -> KeptLayer:
        from tui_agent.sandbox.build_cache import KeptLayer

        return KeptLayer(self._folders.state / "builds", self._root, self._settings.kept)

    @property
    def _reveal(self) -> tuple[str, ...]:
        return (*self._settings.reveal, *self._revealed.globs)

    async def offer_emptied(self) -> None:
        found = await asyncio.to_thread(self._of(self._root).last, self._reveal)
        new = await asyncio.to_thread(self._revealed.unoffered, [one.path for one in found])
        if new and (new := await self._workspace.tracked(new)):
            await asyncio.to_thread(self._revealed.offer, new)
            said = f"{_listed(list(map(display_path, new)))} may hold a secret"
            said += f" and {'was' if len(new) == 1 else 'were'} empty for the check that failed"
            await self.notify_once(
                f"{said}; /show-test-files shows such files of tests to commands here, /hide-test-files says no",
                "warning",
            )

    async def show_test_files(self) -> tuple[str, ...]:
        """Raises `SessionError` if there are none."""
        if not await asyncio.to_thread(lambda: self._revealed.waiting):
            raise SessionError("No tracked test file is hidden", "list other files in trial.reveal")
        paths = await asyncio.to_thread(self._revealed.show)
        self._git = None  # recomputed with the new settings
        return paths

    async def hide_test_files(self) -> tuple[str, ...]:
        paths = await asyncio.to_thread(self._revealed.hide)
        self._git = None
        return paths

    @property
    def _git_objects(self) -> GitObjects:
        from tui_agent.git.object_stores import KEPT
        from tui_agent.sandbox.git_objects import GitObjects

        if self._git is None:
            self._git = GitObjects(self._root, self._folders.state / KEPT, self._reveal, self._known.add)
        return self._git

    def start_scan(self) -> None:
        if self._scan is None:
            self._since = time.monotonic()
            self._scan = asyncio.create_task(asyncio.to_thread(self._judge.scan), name="secrets")
            self._looking = asyncio.create_task(self._look_ahead(self._scan), name="secrets of git")

    def _on_event(self, event: e.Event, _: State) -> None:
        if isinstance(event, e.CheckpointCommitted) and self._scan and self._looking and self._looking.done():
            self._looking = asyncio.create_task(self._look_ahead(self._scan), name="secrets of git")

    async def _look_ahead(self, scan: asyncio.Task[None]) -> None:
        await asyncio.wait([scan])
        with suppress(OSError):
            await asyncio.to_thread(self._judge.found)
            repository, folders = await asyncio.to_thread(_git_folders, self._root)
            around = await asyncio.to_thread(self._around, repository, folders)
            await self._git_objects.precompute(*await self._secret(around))

    async def known(self) -> None:
        self.start_scan()
        assert self._looking is not None
        left = self._since + KNOWN_WITHIN - time.monotonic()
        await asyncio.wait([self._looking], timeout=max(0.0, left))

    async def _secret(self, around: Sequence[Seed]) -> tuple[list[Seed], list[str], list[str]]:
        from tui_agent.sandbox.view_plan import Seed

        found = await asyncio.to_thread(self._of(self._root).last, self._reveal)
        nested = await asyncio.to_thread(self._judge.repositories)
        decisions = self._journal.store.state.secrets
        sent = sorted(digest for digest, choice in decisions.items() if choice == "send")
        return [*(Seed(one.path, "hidden") for one in found), *around], nested, sent

    async def close(self) -> None:
        self._unsubscribe()  # a checkpoint can still be committed
        self._judge.close()
        if self._looking is not None:
            self._looking.cancel()
        tasks = [task for task in (self._scan, self._looking) if task is not None]
        if tasks:
            await asyncio.wait(tasks)

    async def _scanned(self) -> None:
        self.start_scan()
        assert self._scan is not None
        while not (await asyncio.wait([self._scan], timeout=TOLD_AFTER))[0]:
            done, every = self._judge.progress
            if every:
                said = f"Commands wait until {every:,} files are searched for keys, once in a session ({done:,} so far)"
                await self._journal.record(e.NoticeGiven("info", said))

    def _of(self, root: str, *, git: bool = False) -> HiddenFiles:
        from tui_agent.sandbox.hidden_files import HiddenFiles

        if root not in self._hidden:
            judge = self._judge if root == self._root else SecretFiles(root, git=git)
            self._hidden[root] = HiddenFiles(judge)
        return self._hidden[root]

    def _around(self, repository: str, folders: Sequence[str]) -> list[Seed]:
        seeds: list[Seed] = []
        for folder in dict.fromkeys((*filter(None, [repository]), *folders)):
            hidden = self._of(folder, git=folder != repository)
            seeds += hidden.seeds(hidden.found(self._reveal), folder)
        return seeds

    async def _seeds(self) -> tuple[list[Seed], tuple[str, ...]]:
        targets, missing = await self._review.would_write()
        for sentence in missing:
            await self.notify_once(f"Not part of the trial: {sentence}", "warning")
        contents: dict[str, bytes | None] = {
            buffer.path: encode(TextFile("", buffer.encoding, buffer.mark), buffer.text)
            for buffer in self._journal.store.state.buffers.open
            if buffer.unsaved
        }
        for target in targets:
            contents[target.now.path] = (
                None if target.text is None else encode(target.now.stored, target.text)
            )
        modes = {target.now.path: target.step.mode_after for target in targets}
        seeds = [
            seed
            if seed.kind == "gone" or seed.overlay or seed.mode is not None
            else dataclasses.replace(seed, mode=modes.get(seed.path))
            for seed in await asyncio.to_thread(self._judged, contents)
        ]
        await self._say_what_is_shown()
        return seeds, tuple(contents)

    def _judged(self, contents: Mapping[str, bytes | None]) -> list[Seed]:
        from tui_agent.sandbox.hidden_files import sent_by_person

        state = self._journal.store.state
        renamed: dict[str, str] = {}
        for change in state.review.changes:
            if change.kind != "rename" or not change.rename_to:
                continue
            if change.waits:
                renamed[change.rename_to] = change.path
            elif change.state == "applied" and self._judge.is_known(change.path):
                self._judge.add_origin(change.rename_to, change.path)
        values = self._known.look(state.secrets) if contents else SecretValues()
        return self._of(self._root).pending(
            contents,
            renamed,
            self._reveal,
            sent_by_person(self._root, state.secrets),
            lambda text: values.masked(text)[0],
        )

    async def _say_what_is_shown(self) -> None:
        from tui_agent.sandbox.hidden_files import is_revealed, sent_by_person

        found = self._judge.last
        for pattern in self._settings.reveal:
            paths = [display_path(one.path) for one in found if is_revealed(one, (pattern,))]
            if paths:
                await self.notify_once(
                    f"Commands may read {_listed(paths)}, since trial.reveal has {display_path(pattern)}"
                )
        paths = [display_path(path) for path in self._of(self._root).masked]
        if paths:
            await self.notify_once(
                f"Commands see the keys in {_listed(paths)} masked; trial.reveal shows them", "warning"
            )
        sent = sent_by_person(self._root, self._journal.store.state.secrets)
        hidden = await asyncio.to_thread(self._of(self._root).last, self._reveal, sent)
        paths = [display_path(one.path) for one in hidden if one.why == "name" and OF_TESTS.search(one.path)]
        if paths:
            await self.notify_once(
                f"Commands find nothing in {_listed(paths)}, which may hold a secret; where tests need "
                f"{'it' if len(paths) == 1 else 'them'}, trial.reveal shows {'it' if len(paths) == 1 else 'them'}"
            )

    async def notify_once(self, sentence: str, level: Literal["info", "warning"] = "info") -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            await self._journal.record(e.NoticeGiven(level, sentence))


def _listed(paths: Sequence[str]) -> str:
    more = len(paths) - MOST_NAMED
    return ", ".join(paths[:MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _digest(seeds: Sequence[Seed]) -> str:
    told = hashlib.sha256()
    for seed in sorted(seeds, key=lambda seed: seed.path):
        told.update(f"{seed.path}\0{seed.kind}\0".encode(errors="surrogatepass") + seed.content + b"\0")
    return told.hexdigest()


def _git_folders(root: str) -> tuple[str, list[str]]:
    found = find_git_folder(root)
    if found is None:
        return "", []
    apart = sorted({found.common_dir, found.git_dir}, key=len)[:1]
    if found.work_tree == root:
        return "", apart
    if not (around := repository_around(root)):
        return "", []
    return around, [around, *(path for path in apart if not path.startswith(around))]


def _hidden_tools(plan: ViewPlan, path: str) -> list[str]:
    """Partly hidden tools, for which a command finds another program or none."""
    from tui_agent.sandbox.environment import is_below

    shown = (*plan.binds, *plan.overlays, *plan.links)
    found = []
    for name in _COMPARED:
        place = shutil.which(name, path=path)
        if place is not None and not (is_below(place, shown) and is_below(os.path.realpath(place), shown)):
            found.append(name)
    return found
