"""Git in a view without the secrets in the repository: replacement objects and index.

A process (`git/without_secrets.py`) finds the secrets, once per state of the repository. A sentence
replaces their blobs, packs that contain them are rewritten, and the index and a sparse checkout exclude
these files, so that no command writes or commits them. A repository without secrets is unchanged.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec

from tui_agent.errors import ChildFailed
from tui_agent.files.git_folder import GitFolder, find_git_folder, is_true, parse_config, read_regular
from tui_agent.git.object_stores import (
    SEARCH,
    SECONDS,
    HistoryAnswer,
    HistoryRequest,
    WithoutSecrets,
    all_repositories,
    borrowed,
    stamp,
)
from tui_agent.processes.ending import end
from tui_agent.processes.environment import for_any, for_workspace
from tui_agent.sandbox import environment
from tui_agent.sandbox.environment import is_below
from tui_agent.sandbox.view_plan import Seed, ViewPlan

STORES = "/run/tui-agent"
_SPARSE = b"""[core]
\tsparseCheckout = true
\tsparseCheckoutCone = false
[sparse]
\texpectFilesOutsideOfPatterns = true
"""
_ALL = b"/*\n"
_SIGNS = re.compile(rb"([\\*?\[! #])")
_REMEDY = "look at that repository with git itself"


class GitObjects:
    """Blocking work runs in a thread or process."""

    def __init__(
        self,
        root: str,
        cache: Path,
        reveal: Sequence[str],
        add: Callable[[str, bytes], None] = lambda name, data: None,
    ) -> None:
        """`cache` is our folder; `reveal` are globs of revealed files. `add` receives each secret found in
        git, in a thread.
        """
        self._add = add
        self._root, self._cache, self._reveal = root, cache, list(reveal)
        self._finding = asyncio.Lock()
        self._stamp: tuple[object, ...] = ()
        self._answer = HistoryAnswer()

    async def hidden_in_view(
        self, plan: ViewPlan, secret: Sequence[Seed], nested: Sequence[str] = (), sent: Sequence[str] = ()
    ) -> tuple[ViewPlan, str]:
        """Returns the view with git as visible to commands, and a sentence if it has no git. Raises OSError.

        - secret: hidden files on disk, also pending ones with another name.
        - nested: folders below with their own repository.
        - sent: SHA-256 hashes of revealed contents.
        """
        top, hidden = await asyncio.to_thread(_of_view, plan, secret, nested)
        if not top:
            return plan, ""
        async with self._finding:
            found = await self._find(top, hidden, nested, sent)
        if not found.repositories and not found.gone:
            return plan, ""
        return await asyncio.to_thread(_with_objects, plan, found), found.why

    async def precompute(
        self, secret: Sequence[Seed], nested: Sequence[str] = (), sent: Sequence[str] = ()
    ) -> None:
        """Prepares the first command. Raises OSError."""
        found = await asyncio.to_thread(find_git_folder, self._root)
        if found is not None or nested:
            top = self._root if found is None else found.work_tree
            async with self._finding:
                await self._find(top, _hidden(found, secret, self._root), nested, sent)

    async def _find(
        self, top: str, hidden: list[bytes], nested: Sequence[str], sent: Sequence[str]
    ) -> HistoryAnswer:
        now = (*sent, *await asyncio.to_thread(_stamp, top, hidden, nested))
        if now != self._stamp:
            prefix = f"{self._root}/"[len(top) + 1 :]
            asked = HistoryRequest(
                top, str(self._cache), hidden, self._reveal, prefix, list(nested), list(sent)
            )
            try:
                self._answer = await _answered(asked)
                await asyncio.to_thread(self._know, self._answer.secrets)
                self._stamp = now
            except (ChildFailed, TimeoutError, OSError, msgspec.MsgspecError):
                why = "Commands cannot use git here: its history could not be searched for secrets"
                folders, _ = await asyncio.to_thread(all_repositories, top, nested)
                gone = [os.fsencode(f"{folder.common_dir}/objects") for folder in folders]
                return HistoryAnswer(gone=gone, why=why)
        return self._answer

    def _know(self, secrets: list[tuple[bytes, bytes]]) -> None:
        for name, data in secrets:
            self._add(os.fsdecode(name), data)
        secrets.clear()


async def _answered(asked: HistoryRequest) -> HistoryAnswer:
    process = await asyncio.create_subprocess_exec(
        *SEARCH,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={**for_any(), **for_workspace()},
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(SECONDS):
            told, _ = await process.communicate(msgspec.msgpack.encode(asked))
    finally:
        if process.returncode is None:
            await end(process)
    if process.returncode:
        raise ChildFailed("The search for secrets in git's history ended early", _REMEDY)
    return msgspec.msgpack.decode(told, type=HistoryAnswer)


def _of_view(plan: ViewPlan, secret: Sequence[Seed], nested: Sequence[str]) -> tuple[str, list[bytes]]:
    """The top is the workspace if it only contains other repositories; "" if there is none."""
    found = find_git_folder(plan.workspace)
    if found is not None and (
        found.work_tree not in plan.overlays or (plan.on_copy and found.work_tree != plan.workspace)
    ):
        found = None
    if found is None and not nested:
        return "", []
    return plan.workspace if found is None else found.work_tree, _hidden(found, secret, plan.workspace)


def _hidden(found: GitFolder | None, seeds: Iterable[Seed], workspace: str) -> list[bytes]:
    top, of_git = workspace, []
    if found is not None:
        top, of_git = found.work_tree, [found.git_dir, found.common_dir]
    hidden = set()
    for seed in seeds:
        path = f"{seed.overlay or workspace}/{seed.path}"
        # Commands with another overlay also check the workspace's files.
        others = of_git if seed.overlay in ("", workspace) else [*of_git, workspace]
        if is_below(path, [top]) and not is_below(path, others):
            hidden.add(os.fsencode(os.path.relpath(path, top)))
    return sorted(hidden)


def _stamp(top: str, hidden: list[bytes], nested: Sequence[str]) -> tuple[object, ...]:
    folders, others = all_repositories(top, nested)
    return (top, tuple(hidden), tuple(others), *(stamp(folder) for folder in folders))


def _with_objects(plan: ViewPlan, found: HistoryAnswer) -> ViewPlan:
    seeds = {f"{seed.overlay or plan.workspace}/{seed.path}": seed for seed in plan.seeds}
    masks, stores = list(plan.masks), dict(plan.stores)

    def put(path: str, content: bytes | None) -> None:
        """None masks the file."""
        overlay = max((each for each in plan.overlays if is_below(path, [each])), key=len, default="")
        if not overlay:
            masks.append(path)
            return
        below = os.path.relpath(path, overlay)
        seeds[path] = Seed(below, "gone" if content is None else "hidden", content or b"", None, overlay)

    for path in found.gone:
        put(os.fsdecode(path), None)
    for each in found.repositories:
        for path in each.gone:
            put(os.fsdecode(path), None)
        for path in each.emptied:
            put(os.fsdecode(path), b"")
        common, own = os.fsdecode(each.common_dir), os.fsdecode(each.git_dir)
        lines = []
        for source in map(os.fsdecode, each.stores):
            shown = source if plan.on_copy else f"{STORES}/{os.path.basename(source)}"
            stores[shown] = source
            lines.append(os.fsencode(shown) + b"\n")
        if lines:
            others = borrowed(f"{common}/objects").rstrip(b"\n")
            put(f"{common}/objects/info/alternates", (others + b"\n" if others else b"") + b"".join(lines))
        if each.refs is not None:
            put(f"{common}/packed-refs", each.refs)
        if each.index is not None:
            put(f"{own}/index", each.index)
        if each.tracked:
            _leave_out(each, common, own, seeds, put)
    return replace(plan, seeds=tuple(seeds.values()), masks=tuple(masks), stores=stores)


def _leave_out(
    each: WithoutSecrets,
    common: str,
    own: str,
    seeds: dict[str, Seed],
    put: Callable[[str, bytes | None], None],
) -> None:
    """Git neither writes nor checks files outside a sparse checkout."""
    sparse = False
    for path in dict.fromkeys((f"{common}/config", f"{own}/config.worktree")):
        if os.path.isfile(path):
            text = seeds[path].content if path in seeds else environment.visible_settings(path)
            with suppress(ValueError):
                settings = dict(parse_config(text.decode(errors="surrogateescape")))
                sparse = is_true(settings.get("core.sparsecheckout", "")) or sparse
            put(path, text + _SPARSE)
    place = f"{own}/info/sparse-checkout"
    before = _ALL
    if sparse:
        with suppress(OSError):
            before = read_regular(place, 1 << 20).rstrip(b"\n") + b"\n"
    patterns = (_SIGNS.sub(rb"\\\1", path).replace(b"\n", b"?") for path in each.tracked)
    put(place, before + b"".join(b"!/" + pattern + b"\n" for pattern in patterns))
