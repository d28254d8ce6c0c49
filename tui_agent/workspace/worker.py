"""The workspace child's program: slow operations for `workspace.Workspace`."""

from __future__ import annotations

import asyncio
import os
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import aclosing, suppress
from typing import Any, Final

import msgspec

from tui_agent.errors import ChildFailed
from tui_agent.files.operating_system import remove_folder
from tui_agent.files.private import sweep
from tui_agent.git.client import MissingFile
from tui_agent.git.commits import (
    commit,
    commit_diff,
    commit_plan,
    file_at,
    forget_checkpoints,
    is_kept,
    make_checkpoint,
)
from tui_agent.git.repository import (
    find_repository,
    ignored,
    ignored_apart,
    ignored_by,
    ignored_without_repository,
    read_status,
    status_and_deleted,
    tracked,
    wholly_ignored,
)
from tui_agent.git.worktrees import (
    add_worktree,
    detach_worktree,
    prepare,
    remove_worktrees,
    take_snapshot,
    tidy,
)
from tui_agent.processes.background import start_task
from tui_agent.processes.serve import Announce, Handler, Send, run
from tui_agent.workspace.git_listing import find_renamed, list_files, list_without_repository, named_filters

#: Paths per message; the interface needs a millisecond or two.
CHUNK: Final = 2000
#: Worktrees share a seed, so concurrency would not be faster.
_one_at_a_time: Final = asyncio.Lock()
_one_leaves: Final = asyncio.Lock()
_leaving: Final[set[asyncio.Task[None]]] = set()
#: Running creations and removals by folder.
_at_work: Final[dict[str, asyncio.Future[Any]]] = {}


async def list_paths(params: dict[str, Any], send: Send) -> None:
    """{root} → {source, unnamed, cut, withheld_filters} once, {paths} in order, {listed: true}, then {gone,
    status}.

    `gone` are tracked files deleted on disk, determined with the status (fields of `GitStatus`), because
    git checks each file for either; omitted after a time-out.
    """
    root = params["root"]
    repository = await asyncio.to_thread(find_repository, root)
    listing = await asyncio.to_thread(list_files, repository) if repository else None
    source = "git" if listing is not None else "walk"
    if listing is None:
        repository, listing = None, await asyncio.to_thread(list_without_repository, root)
    withheld = await asyncio.to_thread(named_filters, repository, listing.paths) if repository else []
    await send(
        {"source": source, "unnamed": listing.unnamed, "cut": listing.cut, "withheld_filters": withheld}
    )
    for at in range(0, len(listing.paths), CHUNK):
        await send({"paths": listing.paths[at : at + CHUNK]})
    await send({"listed": True})
    with suppress(ChildFailed):
        status, gone = await asyncio.to_thread(
            status_and_deleted, root, listing.untracked if repository else None
        )
        await send({"gone": gone, "status": status})


async def watch(params: dict[str, Any], send: Send) -> None:
    """{root} → items of `Watcher.run`, until cancelled."""
    from tui_agent.workspace.watcher import Watcher

    async with aclosing(Watcher(params["root"]).run()) as items:
        async for item in items:
            await send(item)


async def watch_layer(params: dict[str, Any], send: Send) -> None:
    """{path} → {"paths": None} when watching begins, then {"paths": [relative path]} until cancelled; None:
    unknown paths."""
    from tui_agent.workspace.watcher import watch_folder

    async for paths in watch_folder(params["path"]):
        await send({"paths": paths})


async def renamed(params: dict[str, Any], send: Send) -> dict[str, str]:
    """{root, gone: fields of `MissingFile`} → see `find_renamed`."""
    gone = msgspec.convert(params["gone"], list[MissingFile])
    return await asyncio.to_thread(find_renamed, params["root"], gone)


async def ignored_paths(params: dict[str, Any], send: Send) -> list[str]:
    """{root, paths, folders, rules} → paths ignored by git, or by ignore files without a repository."""
    root, paths = params["root"], params["paths"]
    ask = wholly_ignored if params["folders"] else _ignored
    found = set(await asyncio.to_thread(ask, root, paths))
    others = [path for path in paths if path not in found]
    if params["rules"] and others:
        found |= await asyncio.to_thread(ignored_by, params["rules"], root, others, ask)
    return sorted(found)


async def imports(params: dict[str, Any], send: Send) -> list[dict[str, Any]]:
    """{language, text} → the fields of each `Import`."""
    from tui_agent.workspace.syntax_trees import read_imports

    found = await asyncio.to_thread(read_imports, params["language"], params["text"])
    return msgspec.to_builtins(found)


async def git_file(params: dict[str, Any], send: Send) -> str | bool | None:
    """{root, revision, path} → content in base64; null if the commit does not contain it, false if the commit
    is gone (HEAD may be unborn)."""
    root, revision = params["root"], params["revision"]
    found = await asyncio.to_thread(file_at, root, revision, params["path"])
    if found is not None:
        return b64encode(found).decode()
    return None if revision == "HEAD" or await asyncio.to_thread(is_kept, root, revision) else False


async def git_worktrees_prepare(params: dict[str, Any], send: Send) -> None:
    """{root, folder} → null."""
    async with _one_at_a_time:
        await _to_its_end(params["folder"], prepare, params["root"], params["folder"])


async def git_worktree_add(params: dict[str, Any], send: Send) -> dict[str, Any]:
    """{root, commit, folder} → {root, submodules}, see `add_worktree`."""
    folder = params["folder"]
    async with _one_at_a_time:
        return await _to_its_end(folder, add_worktree, params["root"], params["commit"], folder)


async def git_worktree_remove(params: dict[str, Any], send: Send) -> None:
    """{root, folder} → null after detaching; files are removed in the background."""
    folder = params["folder"]
    if folder in _at_work:  # created for a cancelled call
        await asyncio.wait([_at_work[folder]])
    aside = await _to_its_end(folder, detach_worktree, params["root"], folder)
    start_task(_leaving, _release(aside))


async def git_worktrees_tidy(params: dict[str, Any], send: Send) -> None:
    """{root, folder} → null."""
    if _leaving:
        await asyncio.wait(list(_leaving))
    async with _one_at_a_time:
        await _to_its_end(params["folder"], tidy, params["root"], params["folder"])


async def git_worktrees_remove(params: dict[str, Any], send: Send) -> None:
    """{folder} → null."""
    async with _one_at_a_time:
        await _to_its_end(params["folder"], remove_worktrees, params["folder"])


async def _release(folder: str) -> None:
    async with _one_leaves:
        with suppress(OSError):
            await asyncio.to_thread(remove_folder, folder)


async def _to_its_end(folder: str, work: Callable[..., Any], *arguments: Any) -> Any:
    """Defers cancellation until the work is complete."""
    done = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    _at_work[folder] = done
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        await asyncio.wait([done])
        raise
    finally:
        _at_work.pop(folder, None)


def _in_thread(work: Callable[..., Any], *names: str) -> Handler:
    async def handle(params: dict[str, Any], send: Send) -> Any:
        return await asyncio.to_thread(work, *(params[name] for name in names))

    return handle


def build(announce: Announce) -> Mapping[str, Handler]:
    with suppress(OSError):
        sweep()
    return {
        "list": list_paths,
        "watch": watch,
        "watch_layer": watch_layer,
        "git_status": _in_thread(read_status, "root"),
        "git_checkpoint": _in_thread(make_checkpoint, "root", "session", "name", "paths"),
        "git_forget": _in_thread(forget_checkpoints, "root", "session", "names"),
        "git_file": git_file,
        "git_commit_plan": _in_thread(commit_plan, "root", "first"),
        "git_commit_diff": _in_thread(commit_diff, "root", "paths"),
        "git_commit": _in_thread(commit, "root", "message", "files", "hooks"),
        "git_snapshot": _in_thread(take_snapshot, "root"),
        "git_worktrees_prepare": git_worktrees_prepare,
        "git_worktree_add": git_worktree_add,
        "git_worktree_remove": git_worktree_remove,
        "git_worktrees_tidy": git_worktrees_tidy,
        "git_worktrees_remove": git_worktrees_remove,
        "ignored": ignored_paths,
        "tracked": _in_thread(tracked, "root", "paths"),
        "imports": imports,
        "renamed": renamed,
    }


def _ignored(root: str, paths: list[str]) -> list[str]:
    """Judges paths behind links by their target. Targets outside have no rules; the gate rejects writes to
    them.
    """
    repository = find_repository(root)
    if repository is not None:
        found = ignored(repository, paths)
        if found is not None:
            return sorted(found)
    # Places behind links, below the folder; "" if outside.
    real = os.path.realpath(root)
    folders = {path.rpartition("/")[0] for path in paths}
    leads = {folder: os.path.realpath(os.path.join(real, folder)) for folder in folders}
    places = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        place = os.path.relpath(os.path.join(leads[folder], name), real)
        places[path] = "" if place.split("/")[0] == ".." else place
    inside = sorted({place for place in places.values() if place})
    if repository is None:
        found = ignored_without_repository(root, inside)
        found = set(inside) if found is None else found
    else:
        found = ignored_apart(repository, inside)
    return sorted(path for path, place in places.items() if place in found)


if __name__ == "__main__":
    run(build)
