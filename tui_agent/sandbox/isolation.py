"""Isolation methods of this system, strongest first; the weaker ones use a copy of the workspace."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import fcntl
import os
import secrets
import stat
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, Self

from msgspec import Struct

from tui_agent.files import private
from tui_agent.files.operating_system import remove_folder
from tui_agent.files.private import make_private, temporary_folder
from tui_agent.sandbox import namespace_view
from tui_agent.sandbox.build_cache import RunLayer
from tui_agent.sandbox.environment import VIRTUAL, is_below, own_folder, variables
from tui_agent.sandbox.layer_changes import LayerReader
from tui_agent.sandbox.namespace_view import View
from tui_agent.sandbox.run import FolderRunner, Run, Runner, RunResult
from tui_agent.sandbox.view_plan import NoView, Seed, ViewPlan, plan
from tui_agent.store.commands import Isolated
from tui_agent.workspace.copies import copy_content

#: Comma-separated methods to skip, for tests and diagnosis.
WITHOUT: Final = "TUI_AGENT_TRIAL_WITHOUT"
#: "none": no views.
ORDER: Final[tuple[Isolated, ...]] = ("overlay", "bubblewrap", "landlock", "sandbox-exec", "none")
WORDS: Final[dict[Isolated, str]] = {
    "overlay": "in namespaces of their own, with a layer that is thrown away",
    "bubblewrap": "in a view made by bubblewrap, with a layer that is thrown away",
    "landlock": (
        "on a copy under Landlock, which is weaker: it is at another path, has no network and no sockets, not even of "
        "its own, and cannot keep a command from changing modes, times and attributes of your other files"
    ),
    "sandbox-exec": (
        "on a copy under sandbox-exec, which is weaker: it is at another path, has no network, and was never tested"
    ),
    "none": "only in the real folder, without what is pending; what they write stays, and checks do not run",
}
_NAMES: Final[dict[Isolated, str]] = {
    "overlay": "own namespaces",
    "bubblewrap": "bubblewrap",
    "landlock": "Landlock",
    "sandbox-exec": "sandbox-exec",
    "none": "nothing",
}


class Rung(Struct, frozen=True):
    """The strongest working method; `why` no stronger one works, or ""."""

    isolated: Isolated
    why: str = ""

    def in_words(self) -> str:
        return f"trial runs: {WORDS[self.isolated]}" + (f" ({self.why})" if self.why else "")


def runner_for(plan: ViewPlan, kept: RunLayer | None = None) -> Runner:
    match plan.isolated:
        case "landlock":
            return LandlockCopy(plan)
        case "sandbox-exec":
            return MacCopy(plan)
    return View(plan, kept)


async def probe(environ: Mapping[str, str] = os.environ, unfit: Mapping[Isolated, str] | None = None) -> Rung:
    """Runs a command in a view of a small folder. It must see pending changes and write, without changing
    the folder. `unfit`: unsuitable methods, with reasons.
    """
    without = environ.get(WITHOUT, "").split(",")
    told: list[str] = []
    possible = {"linux": ("overlay", "bubblewrap", "landlock"), "darwin": ("sandbox-exec",)}
    of_this_system = possible.get(sys.platform, ())
    for isolated in ORDER[:-1]:
        if isolated not in of_this_system:
            continue
        why = f"switched off by {WITHOUT}" if isolated in without else (unfit or {}).get(isolated, "")
        why = why or await _why_not(isolated)
        if not why:
            return Rung(isolated, "; ".join(told))
        told.append(f"{_NAMES[isolated]}: {why}")
    return Rung("none", "; ".join(told) or f"there are no views on {sys.platform}")


def below(isolated: Isolated, other: Isolated) -> bool:
    return ORDER.index(isolated) > ORDER.index(other)


def _in_words(error: NoView) -> str:
    makes = error.step == "new namespaces" or error.step.startswith(("write /proc/self/", "map users"))
    refused = error.number in (errno.EPERM, errno.EACCES)
    words = {
        (True, errno.ENOSPC): "namespaces are switched off here",
        (True, errno.ENOSYS): "this kernel has no namespaces",
        (True, errno.EINVAL): "this kernel has no namespaces of users",
    }.get((makes, error.number), "")
    if not words and makes and refused:
        words = "namespaces are not permitted here, as in most containers"
    elif not words and refused:
        words = "what they may do in namespaces is restricted here, as AppArmor does"
    elif not words and "overlay" in error.step and error.number:
        words = "no layer can be laid over this file system"
    elif not words and error.number == errno.ENOSYS:
        words = "this kernel is too old"
    return f"{words} ({error})" if words else str(error)


async def _why_not(isolated: Isolated) -> str:
    with suppress(OSError):
        private.sweep()
    with temporary_folder() as folder:
        parent = Path(await asyncio.to_thread(lambda: os.path.realpath(folder)))
        (parent / "work").mkdir()
        own = RunFolder(parent / "trials")
        try:
            if isolated == "bubblewrap":
                await asyncio.to_thread(namespace_view.check)
            seeds = [Seed("pending", "file", b"pending\n")]
            made = plan(parent / "work", seeds=seeds, isolated=isolated, folder=own.path)
            chosen, _ = variables(made.root, made.places, os.environ)
            words = f"cat pending && echo x > written && ! echo x 2>/dev/null > {own.path}x"
            result = await Run(10.0).alone(runner_for(made), ["/bin/sh", "-c", words], chosen)
        except NoView as error:
            return _in_words(error)
        except OSError as error:
            return f"it could not be tried: {error.strerror or type(error).__name__}"
        finally:
            await asyncio.to_thread(own.remove)
        as_it_should = result.ok and [change.path for change in result.changes] == ["written"]
        reached = os.listdir(parent / "work") or os.listdir(parent / "trials")
        return "" if as_it_should and not reached else "it did not hold what it should"


MOST_FILES, MOST_BYTES = 20_000, 1 << 30
#: Readable entries of /proc; no process information.
_PROC = ("cpuinfo", "meminfo", "stat", "loadavg", "uptime", "version", "filesystems", "sys")
_DEVICES = ("null", "zero", "full", "random", "urandom")
_LOCK = ".lock"


class RunFolder:
    """Private folder of one run, removed after it or at the next start."""

    def __init__(self, parent: Path) -> None:
        """Raises OSError."""
        make_private(parent)
        self.path = str(parent / secrets.token_hex(6))
        os.mkdir(self.path, 0o700)
        self._lock = os.open(f"{self.path}/{_LOCK}", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        _remove(self.path)
        os.close(self._lock)


def sweep(parent: Path) -> int:
    """Removes the folders of killed programs and returns their number. Blocking."""
    found = 0
    with suppress(OSError):
        for entry in os.scandir(parent):
            with suppress(OSError), open(f"{entry.path}/{_LOCK}", "r+b") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(entry.path)
                found += 1
    return found


def _remove(folder: str) -> None:
    for inner, _, _ in os.walk(folder):
        with suppress(OSError):
            os.chmod(inner, 0o700)
    with suppress(OSError):
        remove_folder(folder)


class LandlockCopy(View):
    async def __aenter__(self) -> Self:
        self._files = await asyncio.to_thread(make_copy, self.plan)
        await self._open(landlock_rules(self.plan))
        return self

    async def with_changes(self, result: RunResult) -> RunResult:
        await self.end()
        assert self._reader is not None
        changes, unread = await self._reader.of_copy(self.plan, self._files, self._since)
        return replace(result, changes=changes, unread=unread)


class MacCopy(FolderRunner):
    def __init__(self, plan: ViewPlan) -> None:
        super().__init__(plan.root)
        self._plan = plan
        self._since = time.time()

    async def __aenter__(self) -> Self:
        self._files = await asyncio.to_thread(make_copy, self._plan)
        return self

    async def start(self, argv: Sequence[str], variables: Mapping[str, str], output: int) -> int:
        whole = ["/usr/bin/sandbox-exec", "-p", mac_profile(self._plan), *argv]
        return await super().start(whole, variables, output)

    async def with_changes(self, result: RunResult) -> RunResult:
        async with LayerReader() as reader:
            changes, unread = await reader.of_copy(self._plan, self._files, self._since)
        return replace(result, changes=changes, unread=unread)


def make_copy(plan: ViewPlan) -> dict[str, tuple[int, int, int]]:
    """Copies the workspace with the pending changes; returns each file's state. Blocking. Raises OSError,
    and `NoView` if it is too large.
    """
    hidden = {f"{plan.workspace}/{seed.path}" for seed in plan.seeds if seed.kind in ("hidden", "gone")}
    masked = {*plan.masks, *hidden, plan.folder}
    size = 0
    for files, (_, entry) in enumerate(_below(plan.workspace, masked), 1):
        size += entry.stat(follow_symlinks=False).st_size
        if files > MOST_FILES or size > MOST_BYTES:
            why = f"a copy would be of more than {MOST_FILES:,} files or {MOST_BYTES >> 30} GB"
            raise NoView("copy", 0, why)
    for place in (plan.root, *plan.places.values()):
        os.mkdir(place, 0o700)
    for path, entry in _below(plan.workspace, masked):
        target = f"{plan.root}/{path}"
        with suppress(FileNotFoundError, PermissionError):
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                os.mkdir(target, stat.S_IMODE(status.st_mode) | 0o700)
            elif stat.S_ISLNK(status.st_mode):
                there = os.readlink(entry.path)
                if is_below(there, [plan.workspace]):
                    there = plan.root + there[len(plan.workspace) :]
                os.symlink(there, target)
            elif stat.S_ISREG(status.st_mode):
                clonefile = ctypes.CDLL(None).clonefile if sys.platform == "darwin" else None
                if clonefile is None or clonefile(os.fsencode(entry.path), os.fsencode(target), 0):
                    with open(entry.path, "rb") as given, open(target, "xb") as taken:
                        copy_content(given, taken)
                os.chmod(target, stat.S_IMODE(status.st_mode))
                os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    for seed in plan.seeds:
        if seed.overlay in ("", plan.workspace):
            _plant(plan.root, seed)
    for path, content in plan.texts.items():
        place = Path(plan.places["HOME"], os.path.relpath(path, plan.home))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    return {path: state_of(entry.stat(follow_symlinks=False)) for path, entry in _below(plan.root, set())
            if not entry.is_dir(follow_symlinks=False)}  # fmt: skip


def state_of(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_mode


def _below(folder: str, masked: set[str], prefix: str = "") -> Iterator[tuple[str, os.DirEntry[str]]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.path in masked:
                continue
            yield prefix + entry.name, entry
            if entry.is_dir(follow_symlinks=False):
                with suppress(PermissionError, FileNotFoundError):
                    yield from _below(entry.path, masked, f"{prefix}{entry.name}/")


def _plant(root: str, seed: Seed) -> None:
    place = Path(root, seed.path)
    if seed.kind == "owned" or not is_below(os.path.realpath(place.parent), [os.path.realpath(root)]):
        return
    if seed.kind == "gone":
        place.unlink(missing_ok=True)
        return
    mode = seed.mode
    if mode is None:
        mode = stat.S_IMODE(place.stat().st_mode) if place.is_file() else 0o644
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    place.write_bytes(seed.content)
    place.chmod(mode)


def landlock_rules(plan: ViewPlan) -> dict[str, list[str]]:
    readable: list[str] = []
    listed: list[str] = []
    environments = [f"{plan.workspace}/{name}" for name in VIRTUAL]
    of_git = {
        path
        for path in plan.overlays[:-1]
        if os.path.isfile(f"{path}/HEAD") or os.path.lexists(f"{path}/.git")
    }
    caches = [path for path in plan.overlays[:-1] if path not in of_git]
    hidden = [f"{seed.overlay or plan.workspace}/{seed.path}" for seed in plan.seeds if seed.kind == "hidden"]
    masks = [*plan.masks, *hidden]
    apart = [path for path in (plan.home, plan.workspace, *of_git) if path != "/"]
    for path in plan.binds:
        inner = [one for one in apart if is_below(one, [path])]
        _without(path, [*masks, *inner], readable, listed)
    for path in (*caches, *filter(own_folder, environments)):
        _without(path, masks, readable, listed)
    return {
        "readable": [*readable, *plan.stores.values(), *(f"/proc/{name}" for name in _PROC)],
        "listed": listed,
        "devices": [f"/dev/{name}" for name in _DEVICES],
        "writable": [plan.folder],
    }


def _without(path: str, masks: Sequence[str], readable: list[str], listed: list[str]) -> None:
    """Adds a folder as a whole if it contains no masks; otherwise its parts, and listing rights above them."""
    if any(is_below(path, [mask]) for mask in masks):
        return
    if not any(is_below(mask, [path]) for mask in masks):
        readable.append(path)
        return
    listed.append(path)
    with suppress(OSError):
        for entry in os.scandir(path):
            if not entry.is_symlink():
                _without(entry.path, masks, readable, listed)


def mac_profile(plan: ViewPlan) -> str:
    """Returns a profile for `sandbox-exec`. Untested; derived from Apple's own."""
    reads = " ".join(
        f"(subpath {_quoted(path)})" for path in (*plan.binds, "/System", "/Library", "/private/etc")
    )
    network = "(allow network*)\n" if plan.network else ""  # the whole system shares loopback
    denied = [*plan.masks, plan.workspace]
    masked = "".join(f"(deny file-read* (subpath {_quoted(path)}))\n" for path in denied)
    return (
        '(version 1)\n(deny default)\n(import "system.sb")\n'
        "(allow process-fork)\n(allow process-exec)\n(allow signal (target same-sandbox))\n(allow sysctl-read)\n"
        f"(allow file-read-metadata)\n(allow file-read* {reads})\n{masked}"
        f"(allow file-read* file-write* (subpath {_quoted(plan.folder)}))\n"
        '(allow file-read* file-write-data (literal "/dev/null") (literal "/dev/zero") (literal "/dev/urandom"))\n'
        f"{network}(deny network* (remote unix-socket))\n"
    )


def _quoted(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
