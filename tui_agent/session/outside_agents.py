"""Other agents at work in views: their changes appear in the review, and the user's in their views."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import stat
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from fnmatch import fnmatchcase

from tui_agent.errors import ChildFailed, SessionError, SettingsError, TuiAgentError
from tui_agent.log.core import Core, call
from tui_agent.outside_agents.profiles import (
    PROMPT,
    AgentHome,
    AgentProfile,
    HostAnswers,
    load_profile,
    needed_folders,
    profile_names,
    profile_of_command,
    program_path,
    summary_of,
)
from tui_agent.processes.background import start_task
from tui_agent.review.review import Review
from tui_agent.sandbox.environment import NO_KEYBOARD, PROXIED, variables
from tui_agent.sandbox.folder_access import UNFINISHED, FolderAccess
from tui_agent.sandbox.layer_changes import ChangedPath, LayerReader
from tui_agent.sandbox.layer_comparison import LEFT_OUT
from tui_agent.sandbox.namespace_view import View
from tui_agent.sandbox.proxy import HostProxy, allowed, parse_allowed
from tui_agent.sandbox.view_plan import Limits, NoView, fitting
from tui_agent.session.trial_views import PreparedView, TrialViews
from tui_agent.session.view_mirror import ViewMirror
from tui_agent.store import events as e
from tui_agent.store.commands import FULL_VIEWS
from tui_agent.store.state import State
from tui_agent.workspace.workspace import FileChange, Workspace

#: Free share of a view's memory below which it is reported as full.
LEAST_FREE = 0.1
#: Maximum files of a program in the review.
MOST_FILES = 3000
RULES = ".gitignore"
#: Files with rules, bytes of one, and folders of a layer that are examined.
MOST_RULES, LONGEST_RULES, MOST_FOLDERS = 100, 64 * 1024, 20_000
#: Seconds for a first write in the view, before the agent starts.
WRITES_WITHIN = 10.0
#: Exit status of the shell for a program that it does not find.
_MISSING = 127


class AgentRun:
    """Saves and applies are merged into its view; its changes are proposed within a second."""

    def __init__(
        self, core: Core, review: Review, views: TrialViews, profile: AgentProfile, number: int
    ) -> None:
        self.profile = profile
        self.source = f"a{number}"
        self._core, self._review, self._views = core, review, views
        self._workspace, self._blobs, self._journal = core.workspace, core.blobs, core.journal
        self._home = AgentHome(core.folders.state, os.path.realpath(os.environ.get("HOME") or "/"), profile)
        self._hosts = HostAnswers(core.folders.data, profile.name)
        named = (*self.profile.hosts, *self._core.settings.trial.network, *self._hosts.load())
        self._paths = ReviewedPaths(core.workspace, profile.left_out, self._notify)
        self.proxy = HostProxy(
            allowed(named),
            on_refused=lambda target: self._notify(
                f"{profile.name} tried to connect to {target}, which is not allowed; /allow-host {target} allows it"
            ),
        )
        self._prepared: PreparedView | None = None
        self._view: View | None = None
        self._variables: dict[str, str] = {}
        self._mirror: ViewMirror | None = None
        self._since = time.time()
        self._proposed: set[str] = set()
        #: Paths beyond `MOST_FILES`, proposed once others are gone.
        self._left_over: set[str] = set()
        self._said: set[str] = set()
        self._telling: set[asyncio.Task[None]] = set()
        self._following: asyncio.Task[None] | None = None
        self._moved: asyncio.Queue[set[str] | None] = asyncio.Queue()
        self._mirroring: asyncio.Task[None] | None = None
        self._number = 0

    async def open(self) -> None:
        """Raises `SessionError` without a view, and `FileError`."""
        program = await asyncio.to_thread(program_path, self.profile)
        rung = await self._views.rung()
        if rung.isolated not in FULL_VIEWS:
            raise SessionError(
                f"Agents need a full view, which is not available here ({rung.why})",
                "see docs/trial-runs.md for a full view",
            )
        tools = await asyncio.to_thread(needed_folders, program)
        prepared = await self._views.prepare(rung.isolated, "person", pending=False, tools=tools)
        await self._home.open()
        try:
            self._prepared = prepared
            limits = fitting(Limits(memory=self.profile.memory, processes=self.profile.processes))
            plan = dataclasses.replace(
                prepared.plan.without_sockets(),
                own_home=self._home.path,
                proxy=True,
                terminal=True,
                folders=tuple(one for one in prepared.plan.folders if one[0] != prepared.plan.home),
                limits=limits,
            )
            named = (*self._core.settings.trial.env, *self.profile.environment)
            chosen, _ = variables(plan.root, plan.places, os.environ, named)
            for name in NO_KEYBOARD:  # it has a keyboard
                chosen.pop(name, None)
                if name in os.environ:
                    chosen[name] = os.environ[name]
            self._variables = {**chosen, **PROXIED, "IS_SANDBOX": "1", **self.profile.variables}
            self._since = time.time()
            view = View(plan, shared=True)
            await view.__aenter__()
            self._view = view
            self._paths.layer = view.layer
            loop = asyncio.get_running_loop()
            self._mirror = ViewMirror(
                str(self._workspace.root),
                view.merged,
                view.layer,
                self._blobs,
                frozenset(seed.path for seed in plan.seeds if seed.kind == "hidden"),
                lambda path, why: loop.call_soon_threadsafe(
                    self._notify, f"{path} could not be copied into the view of {self.profile.name}: {why}"
                ),
            )
            await self.proxy.serve(view.listener)
            await self._check_writable()
        except (NoView, OSError) as error:
            await self.close()
            raise SessionError(
                f"There is no view for {self.profile.name}: {error}", "run it outside of tui-agent"
            ) from error
        except BaseException:
            await self.close()
            raise
        self._following = asyncio.create_task(self._follow(), name="changes of an agent")
        following = self._mirror.follow(self._moved, self._workspace.index, self._copied)
        self._mirroring = asyncio.create_task(following, name="changes for an agent")

    def start(self, words: Sequence[str], terminal: int) -> None:
        assert self._view is not None
        argv = [self.profile.program, *self.profile.arguments, *words]
        self._number = self._view.start_with(argv, self._variables, "terminal", terminal)

    def start_command(self, argv: Sequence[str], output: int, source: int | None = None) -> None:
        """`source` is its input. Raises `OSError`."""
        assert self._view is not None
        if source is None:
            self._number = self._view.start_with(argv, self._variables, "", output)
        else:
            self._number = self._view.start_with(argv, self._variables, "input", output, source)

    @property
    def root(self) -> str:
        assert self._view is not None
        return self._view.plan.root

    async def catch_up(self) -> None:
        """Notes what was applied of its changes, so that an undo reaches its view."""
        if (mirror := self._mirror) is None:
            return
        ours = (one for one in self._core.state.review.changes if one.id.startswith(f"{self.source}."))
        applied = {
            one.path
            for one in ours
            if "applied" in (one.state, *one.hunks)
            and (one.executable is not None or mirror.bases.get(one.path) != one.new)
        }
        if applied:
            await asyncio.to_thread(mirror.copy, sorted(applied))

    @property
    def running(self) -> bool:
        return self._view is not None and self._view.runs(self._number)

    def headless(self, prompt: str) -> list[str]:
        """Raises `SettingsError` if the profile has none."""
        if not self.profile.headless:
            raise SettingsError(
                f"The profile of {self.profile.name} has no `headless` arguments",
                "add them, or run it full screen",
            )
        words = (*self.profile.arguments, *self.profile.headless)
        return [self.profile.program, *(prompt if word == PROMPT else word for word in words)]

    async def ended(self) -> int:
        """Returns the exit status once all changes are in the review."""
        assert self._view is not None
        status = (await self._view.ended(self._number)).status
        if self._view is not None:
            await self.propose_all()
        return status

    async def propose_all(self) -> None:
        await self._propose(None)

    def stop(self) -> None:
        if self._view is not None:
            self._view.stop(self._number)

    async def close(self) -> None:
        """Closes every part, then raises the error of one, or the cancellation of the caller."""
        async with AsyncExitStack() as parts:  # closed from the last to the first
            if self._prepared is not None:
                parts.push_async_callback(self._prepared.remove)
            parts.push_async_callback(self._home.close)
            if self._view is not None:
                parts.push_async_exit(self._view)
            if self._mirror is not None:
                parts.push_async_callback(asyncio.to_thread, self._mirror.close)
            parts.push_async_callback(self.proxy.close)
            for task in (self._following, self._mirroring):
                if task is not None:
                    task.cancel()
                    parts.push_async_callback(_ended, task)
            self._view = self._mirror = None

    async def _check_writable(self) -> None:
        assert self._view is not None
        name = f"{UNFINISHED}test"
        script = f': > {name} && rm {name} || exit 1; command -v -- "$0" || exit {_MISSING}'
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        try:
            words = ["/bin/sh", "-c", script, self.profile.program]
            number = self._view.start_with(words, self._variables, "", nowhere)
        finally:
            os.close(nowhere)
        async with asyncio.timeout(WRITES_WITHIN):
            ended = await self._view.ended(number)
        if ended.status == _MISSING:
            raise SessionError(
                f"{self.profile.program} is not visible in a view", "add its folder to `trial.tools`"
            )
        if ended.status:
            raise SessionError(
                "Programs cannot write to the workspace in a view here", "check its permissions"
            )

    def _notify(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            start_task(self._telling, self._journal.record(e.NoticeGiven("warning", text)), "notice")

    async def _follow(self) -> None:
        assert self._view is not None
        try:
            async for paths in self._workspace.layer_changes(self._view.layer):
                layer = os.fstatvfs(self._view.layers)
                if layer.f_blocks and layer.f_bavail < LEAST_FREE * layer.f_blocks:
                    size = layer.f_blocks * layer.f_frsize >> 20
                    self._notify(
                        f"The view of {self.profile.name} is nearly full, of {size:,} MB for its files: let it "
                        "remove large files, or apply its changes and start it again"
                    )
                await self._propose(paths)
        except ChildFailed as error:
            self._notify(f"Changes of {self.profile.name} are shown when it ends ({error.what})")

    async def _propose(self, paths: Sequence[str] | None) -> None:
        assert self._view is not None and self._mirror is not None
        mirror = self._mirror
        view, apart = self._view, []
        if paths is not None:
            paths = await self._paths.kept(paths)
            if not paths:
                return
            if await asyncio.to_thread(self._paths.read_rules, paths, mirror.read):
                paths = None
        if paths is None:
            apart = await self._paths.ignored_folders()
        await asyncio.to_thread(mirror.remember, paths or ())
        async with LayerReader() as reader:
            if paths is None:
                written, unread = await reader.of_layer(view.layers, view.plan, self._since, apart)
            else:
                written, unread = await reader.of_paths(view.layers, view.plan, self._since, paths)
        if unread:
            self._notify(unread)
            if missing := sorted(self._proposed.difference(one.path for one in written)):
                async with LayerReader() as reader:
                    more, _ = await reader.of_paths(view.layers, view.plan, self._since, missing)
                written = (*written, *more)
        found = [one.path for one in written]
        if paths is None:
            await asyncio.to_thread(self._paths.read_rules, found, mirror.read)
        kept = set(await self._paths.kept(found))
        kept -= {one.path for one in written if one.kind == "deleted" and one.path in mirror.kept_folders}
        written = tuple(one for one in written if one.path in kept)
        await asyncio.to_thread(mirror.remember, [one.path for one in written])
        await self._to_review(written, paths)

    async def _to_review(self, written: Sequence[ChangedPath], looked: Sequence[str] | None) -> None:
        assert self._mirror is not None
        there = {one.path for one in written}
        same = {
            path
            for path in self._proposed - there
            if looked is None or any(path == one or path.startswith(f"{one}/") for one in looked)
        }
        new = [one.path for one in written if one.path not in self._proposed]
        out = set(new[max(0, MOST_FILES - len(self._proposed - same)) :])
        if out:
            self._notify(
                f"{self.profile.name} writes more files than the {MOST_FILES:,} that the review holds of it"
            )
            written = tuple(one for one in written if one.path not in out)
            there -= out
        known = self._mirror.bases
        bases = {one.path: known[one.path] for one in written if one.path in known}
        left = await self._review.propose_live(self.source, self.profile.name, written, same, bases)
        self._proposed = (self._proposed - same) | there
        self._left_over = (self._left_over - there) | out
        if same and self._left_over:
            waiting = sorted(self._left_over)[:MOST_FILES]
            self._left_over.difference_update(waiting)
            await self._propose(waiting)
        for sentence in left:
            self._notify(sentence)

    def on_batch(self, changes: Sequence[FileChange]) -> None:
        """An empty batch means any file."""
        if self._mirroring is not None:
            self._moved.put_nowait({change.path for change in changes} or None)

    async def _copied(self, again: list[str], paths: set[str]) -> None:
        rules = any(path.rpartition("/")[2] == RULES for path in paths)
        if rules:
            self._paths.forget()
        if rules or again:
            await self._propose(None if rules else again)


class OutsideAgents:
    def __init__(self, core: Core, review: Review, views: TrialViews) -> None:
        self._core, self._review, self._views = core, review, views
        #: Running agents by name, the newest last.
        self.running: dict[str, AgentRun] = {}
        #: By agent, also of ended agents; the newest last.
        self._proxies: dict[str, list[HostProxy]] = {}

    @property
    def state(self) -> State:
        return self._core.state

    @call(changes=False)
    def names(self) -> list[str]:
        return profile_names(self._core.folders)

    @call(changes=False)
    def summaries(self) -> dict[str, str]:
        """By name. Blocking, briefly."""
        return {name: summary_of(self._core.folders, name) for name in self.names()}

    @call(changes=True)
    async def open(self, words: Sequence[str], *, by_name: bool = False) -> AgentRun:
        """Runs a command, or the profile that `words[0]` names. Raises `TuiAgentError`."""
        folders = self._core.folders
        if by_name:
            profile = await asyncio.to_thread(load_profile, folders, words[0])
        else:
            profile = await asyncio.to_thread(profile_of_command, folders, words)
        taken = {change.id.partition(".")[0] for change in self._core.state.review.changes}
        number = next(
            n
            for n in range(1, 1 << 20)
            if f"a{n}" not in taken and all(run.source != f"a{n}" for run in self.running.values())
        )
        run = AgentRun(self._core, self._review, self._views, profile, number)
        await run.open()
        self.running[run.source] = run
        self._proxies[profile.name] = [*self._proxies.pop(profile.name, ()), run.proxy]
        return run

    @call(changes=True)
    async def end(self, run: AgentRun) -> None:
        self.running.pop(run.source, None)
        await run.close()

    def on_batch(self, changes: Sequence[FileChange]) -> None:
        for run in self.running.values():
            run.on_batch(changes)

    async def catch_up(self) -> None:
        await asyncio.gather(*(run.catch_up() for run in self.running.values()))

    @call(changes=False)
    def refused_hosts(self) -> list[tuple[str, str, int]]:
        """Agents, hosts, and numbers of attempts."""
        tries: dict[tuple[str, str], int] = {}
        for name, proxies in self._proxies.items():
            for proxy in proxies:
                for target, count in proxy.refused.items():
                    if target not in proxies[-1].allowed:
                        tries[name, str(target)] = tries.get((name, str(target)), 0) + count
        return [(*one, count) for one, count in tries.items()]

    @call(changes=True)
    async def allow_host(self, host: str, agent: str = "") -> str:
        """Allows a host permanently. Returns the agent, by default the newest. Raises `SessionError`."""
        if not self._proxies:
            raise SessionError("No agent was started", "start one with /agent")
        name = agent or list(self._proxies)[-1]
        try:
            target = parse_allowed(host)
        except ValueError as error:
            raise SessionError(
                f"{host} cannot be allowed: {error}", "name a host, such as example.com"
            ) from error
        await asyncio.to_thread(HostAnswers(self._core.folders.data, name).add, str(target))
        for proxy in self._proxies.get(name, ()):
            proxy.allowed.add(target)
        return name

    @call(changes=False)
    async def close(self) -> None:
        for run in list(self.running.values()):
            run.stop()
            with suppress(TuiAgentError, OSError):
                await run.propose_all()
            await self.end(run)


class ReviewedPaths:
    """Omits files that git ignores, also by rules that the program writes in its view."""

    def __init__(self, workspace: Workspace, left_out: Sequence[str], notify: Callable[[str], None]) -> None:
        """`left_out`: patterns of the program's own files."""
        self._workspace, self._left_out, self._notify = workspace, left_out, notify
        #: Path of the program's writes.
        self.layer = ""
        self._ignored: dict[str, bool] = {}
        self._rules: dict[str, str] = {}

    async def kept(self, paths: Iterable[str]) -> list[str]:
        """Asks git about each folder before its contents."""
        left = []
        for path in paths:
            if any("\udc80" <= character <= "\udcff" for character in path):
                self._notify(f"{ascii(path)[1:-1]} is left out: its name is not UTF-8")
                continue
            names = path.split("/")
            own = names[-1].startswith(UNFINISHED) or any(
                fnmatchcase(names[0], glob) for glob in self._left_out
            )
            if not own and LEFT_OUT.isdisjoint(names):
                left.append(path)
        deepest = max((path.count("/") for path in left), default=-1)
        for depth in range(deepest + 1):
            folders = {"/".join(path.split("/")[: depth + 1]) for path in left if path.count("/") > depth}
            ends = [path for path in left if path.count("/") == depth]
            out = await self._ignored_of(folders)
            if ends:
                found = await self._workspace.ignored(ends, rules=self._rules)
                # Patterns can be about files only.
                inner = await asyncio.to_thread(_are_folders, self.layer, found)
                out |= (found - inner) | await self._ignored_of(inner)
            if out:
                left = [path for path in left if "/".join(path.split("/")[: depth + 1]) not in out]
        return left

    async def ignored_folders(self) -> list[str]:
        """Returns the outermost folders of which git ignores each file."""
        found, waiting, count = [], [""], 0
        while waiting and count < MOST_FOLDERS:
            inner = await asyncio.to_thread(_folders_in, self.layer, waiting)
            out = await self._ignored_of(inner)
            found += out
            waiting = [folder for folder in inner if folder not in out]
            count += len(inner)
        return found

    def read_rules(self, paths: Iterable[str], read: Callable[[str, int], bytes | None]) -> bool:
        """Returns whether rules changed. `read` is that of `ViewMirror`. Blocking."""
        before = dict(self._rules)
        for path in paths:
            if path.rpartition("/")[2] == RULES:
                self._rules.pop(path, None)
                with suppress(OSError, UnicodeDecodeError):
                    content = read(path, LONGEST_RULES)
                    if content and len(self._rules) < MOST_RULES:
                        self._rules[path] = content.decode()
        changed = self._rules != before
        if changed:
            self.forget()
        return changed

    def forget(self) -> None:
        self._ignored.clear()

    async def _ignored_of(self, folders: Iterable[str]) -> set[str]:
        asked = [folder for folder in folders if folder not in self._ignored]
        if asked:
            found = await self._workspace.ignored(asked, folders=True, rules=self._rules)
            self._ignored |= {folder: folder in found for folder in asked}
        return {folder for folder in folders if self._ignored[folder]}


async def _ended(task: asyncio.Task[None]) -> None:
    """Waits for a cancelled task. An await of the task itself would raise its cancellation as the caller's."""
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()  # raises its error


def _are_folders(layer: str, paths: Iterable[str]) -> set[str]:
    with FolderAccess(layer) as access:
        found = {path: access.status(path) for path in paths}
    return {path for path, there in found.items() if there is not None and stat.S_ISDIR(there.st_mode)}


def _folders_in(layer: str, folders: Sequence[str]) -> list[str]:
    found = []
    with FolderAccess(layer, own=True) as access:
        for folder in folders:
            for name in access.names(folder):
                path = f"{folder}/{name}" if folder else name
                there = None if name in LEFT_OUT else access.status(path)
                if there is not None and stat.S_ISDIR(there.st_mode):
                    found.append(path)
    return found
