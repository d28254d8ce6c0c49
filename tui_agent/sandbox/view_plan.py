"""The contents of a view: system programs, tools, an empty home, and the workspace with pending changes."""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import BinaryIO, Literal

from tui_agent.sandbox import git_settings, system_calls
from tui_agent.sandbox.credential_stores import ToolFolders
from tui_agent.sandbox.user_tools import SYSTEM, is_below, programs
from tui_agent.sandbox.user_tools import caches as find_caches
from tui_agent.sandbox.user_tools import tools as find_tools
from tui_agent.store.commands import Isolated

#: Visible even if one is a user's home.
_OF_MACHINE = tuple(path for path in SYSTEM if path not in ("/opt", "/snap"))
MEGABYTE = 1 << 20
#: The package's parent: the only import path in a view besides the standard library.
OURS = str(Path(__file__).parents[2])
#: A virtual environment's base interpreter starts faster.
PYTHON: str = getattr(sys, "_base_executable", sys.executable)


class NoView(Exception):
    """Failed step, errno if known, and a reason in words."""

    def __init__(self, step: str, number: int, why: str) -> None:
        super().__init__(f"{step}: {why}" if step else why)
        self.step, self.number, self.why = step, number, why


@dataclass(frozen=True, slots=True)
class Seed:
    """A replacement for a file of the folder.

    - path: relative, with slashes.
    - kind: "file" with `content`; "gone"; "hidden", a secret with other content, usually none; "owned",
      another user's file or folder, copied so that it is writable.
    - mode: permissions; None for those of the existing file.
    - overlay: the overlay that contains it; "" is the workspace.
    """

    path: str
    kind: Literal["file", "gone", "hidden", "owned"]
    content: bytes = b""
    mode: int | None = None
    overlay: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """Joint limits of a view's commands in bytes: total writes (layer), RAM (memory), one file."""

    layer: int = 2048 * MEGABYTE
    memory: int = 4096 * MEGABYTE
    processes: int = 512
    file: int = 1024 * MEGABYTE


@dataclass(frozen=True, slots=True)
class ViewPlan:
    """- binds: absolute readable paths, in order. `tools` are the user's.
    - links: symbolic links by path.
    - folders: empty in-memory folders with mode and size; they cover folders in `binds`.
    - masks: hidden paths.
    - overlays: writable folders, each with a layer; the workspace is the last.
    - network: access to the host's network.
    - texts: readable files by path.
    - stores: readable folders by mount point.
    - folder: private folder of this run on disk, for methods that need one.
    - kept: layer of `build_cache.py` over the workspace, or "".
    - own_home: outside folder that is the writable HOME, or "" for one in memory.
    - proxy: opens a port on the view's loopback; its socket is `View.listener`.
    - hosts: allow-list of `View` for that port, HOST or HOST:PORT. Empty if the owner of the view serves it.
    - terminal: programs may open /dev/tty."""

    workspace: str
    home: str
    binds: tuple[str, ...]
    links: dict[str, str]
    folders: tuple[tuple[str, int, int], ...]
    masks: tuple[str, ...]
    overlays: tuple[str, ...]
    seeds: tuple[Seed, ...] = ()
    network: bool = False
    limits: Limits = field(default_factory=Limits)
    texts: dict[str, bytes] = field(default_factory=dict)
    isolated: Isolated = "overlay"
    folder: str = ""
    stores: dict[str, str] = field(default_factory=dict)
    kept: str = ""
    own_home: str = ""
    proxy: bool = False
    hosts: tuple[str, ...] = ()
    terminal: bool = False
    tools: tuple[str, ...] = ()

    @property
    def on_copy(self) -> bool:
        """Whether commands run on a copy of the folder, at another path."""
        return self.isolated in ("landlock", "sandbox-exec")

    @property
    def root(self) -> str:
        return f"{self.folder}/{os.path.basename(self.workspace)}" if self.on_copy else self.workspace

    @property
    def places(self) -> dict[str, str]:
        if self.on_copy:
            return {"HOME": f"{self.folder}/.home", "TMPDIR": f"{self.folder}/.tmp"}
        return {"HOME": self.home, "TMPDIR": "/tmp"}

    def write(self, to: BinaryIO, rules: Mapping[str, list[str]]) -> None:
        """Writes the plan with `marshal`, then the contents of seeds and texts. `rules`: Landlock's."""
        at = {path: number for number, path in enumerate(self.overlays)} | {"": len(self.overlays) - 1}
        seeds = [
            [at[seed.overlay], seed.path, seed.kind, seed.mode, len(seed.content)] for seed in self.seeds
        ]
        plan = {
            **rules,
            "isolated": self.isolated,
            "texts": [[path, len(content)] for path, content in self.texts.items()],
            "stores": list(self.stores.items()),
            # On every system; the view is assembled over it.
            "stage": next(folder for folder in ("/tmp", "/mnt", "/run") if os.path.isdir(folder)),
            "binds": self.binds,
            "links": self.links,
            "folders": self.folders,
            "masks": self.masks,
            "overlays": self.overlays,
            "kept": self.kept,
            "home": [self.own_home, self.home] if self.own_home else [],
            "proxy": self.proxy,
            "terminal": self.terminal,
            "tools": self.tools,
            "seeds": seeds,
            "network": self.network,
            "size": self.limits.layer,
            "memory": self.limits.memory,
            "processes": self.limits.processes,
            "limits": {"RLIMIT_FSIZE": self.limits.file, "RLIMIT_CORE": 0},
            "filter": system_calls.refused(sockets=self.network or self.isolated != "landlock").hex(),
        }
        marshal.dump(plan, to)
        to.writelines(seed.content for seed in self.seeds)
        to.writelines(self.texts.values())


def plan(
    workspace: Path,
    *,
    seeds: Sequence[Seed] = (),
    git_folders: Iterable[str] = (),
    tools: Iterable[str] = (),
    hidden: Iterable[str] = (),
    network: bool = False,
    limits: Limits | None = None,
    environ: dict[str, str] | None = None,
    isolated: Isolated = "overlay",
    folder: str = "",
) -> ViewPlan:
    """Returns the view of a workspace (an absolute path without links). Raises `NoView` if the folder is
    unsuitable.

    - git_folders: outside folders of linked worktrees, submodules, or the enclosing repository.
    - tools: additional readable folders.
    - folder: private folder of this run, for methods that need one.
    """
    environ = dict(os.environ) if environ is None else environ
    root, home = str(workspace), os.path.realpath(environ.get("HOME") or "/nonexistent")
    if why := unfit(root, environ).get(isolated):
        raise NoView("workspace", 0, why)
    limits = limits or fitting(Limits())
    binds, links = _system()
    of_person = programs(environ)
    own_home = home not in of_person and not any(is_below(path, [home]) for path in _OF_MACHINE)
    more, on_the_way = find_tools(root, home if own_home else "", environ, tools)
    caches = find_caches(home, environ, [*(() if own_home else binds), *more, root])
    folders = [("/tmp", 0o1777, limits.layer), ("/var/tmp", 0o1777, limits.layer), ("/run", 0o755, MEGABYTE)]
    texts: dict[str, bytes] = {}
    if own_home:
        folders.append((home, 0o700, limits.layer))
        paths = [f"{home}/{name}" for name in git_settings.OF_PERSON]
        texts = {path: git_settings.visible_settings(path) for path in paths if os.path.isfile(path)}
    apart = [path for path in git_folders if not is_below(path, [root])]
    overlays = (*caches, *apart, root)
    inside = _STORES.hidden(caches)
    masks = [*(() if own_home else _dotted(home)), *_STORES.hidden((*binds, *more), [*of_person, *more])]
    if own_home:
        masks = [path for path in masks if not is_below(path, [home]) or is_below(path, more)]
    masks += [path for path in map(os.path.realpath, hidden) if not is_below(root, [path])]
    masks += [path for path in _sockets() if is_below(path, (*binds, *more, *caches))]
    every_seed = (*seeds, *_scrubbed(root, apart), *_emptied(caches, inside))
    return ViewPlan(
        root,
        home,
        (*binds, *more),
        {**links, **on_the_way},
        tuple(folders),
        tuple(masks),
        overlays,
        tuple({(seed.overlay, seed.path): seed for seed in every_seed}.values()),  # the last of each file
        network,
        limits,
        texts,
        isolated,
        folder,
        tools=tuple(path for path in more if not _mounted_below(path)),
    )


def _scrubbed(root: str, git_folders: Sequence[str]) -> Iterator[Seed]:
    """Git settings without credentials."""
    for overlay in (root, *git_folders):
        inside = [f"{overlay}/.git", overlay] if overlay != root else [f"{root}/.git"]
        for folder in inside:
            if os.path.isdir(folder) and os.path.isfile(f"{folder}/HEAD"):
                for path in git_settings.files_of(folder):
                    yield Seed(
                        os.path.relpath(path, overlay),
                        "hidden",
                        git_settings.visible_settings(path),
                        None,
                        overlay,
                    )


def _sockets() -> list[str]:
    try:
        lines = Path("/proc/net/unix").read_text(errors="surrogateescape").splitlines()[1:]
    except OSError:
        return []
    paths = {parts[7] for line in lines if len(parts := line.split(None, 7)) == 8}
    return sorted(path for path in paths if path.startswith("/"))


def unfit(root: str, environ: Mapping[str, str] = os.environ) -> dict[Isolated, str]:
    """Isolation methods unsuitable for a workspace, with reasons. Blocking, briefly."""
    if root in ("/", os.path.realpath(environ.get("HOME") or "/nonexistent")):
        return dict.fromkeys(
            ("overlay", "bubblewrap", "landlock", "sandbox-exec"), f"{root} is too much for a view"
        )
    why = _mounted_below(root)
    return {"overlay": why, "bubblewrap": why} if why else {}


def _mounted_below(root: str) -> str:
    """Why an overlay would not show the folder's contents, or ""."""
    try:
        lines = Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines()
    except OSError:
        return ""
    mounted = (line.split()[4].encode().decode("unicode_escape", "replace") for line in lines)
    below = next((path for path in mounted if path.startswith(f"{root}/")), "")
    return f"{below} is mounted below it, and would be empty in a view" if below else ""


def fitting(limits: Limits) -> Limits:
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    return Limits(
        min(limits.layer, max(free // 4, 64 * MEGABYTE)), limits.memory, limits.processes, limits.file
    )


@cache
def _system() -> tuple[list[str], dict[str, str]]:
    binds: list[str] = []
    links: dict[str, str] = {}
    for path in SYSTEM:
        if os.path.islink(path):
            links[path] = os.readlink(path)
        elif os.path.isdir(path):
            binds.append(path)
    return binds, links


#: Shared by all views.
_STORES = ToolFolders()


def _emptied(caches: Sequence[str], paths: Iterable[str]) -> Iterator[Seed]:
    for path in paths:
        cache = next(cache for cache in caches if is_below(path, [cache]))
        content = git_settings.visible_settings(path) if os.path.basename(path) == "config" else b""
        yield Seed(os.path.relpath(path, cache), "hidden", content, None, cache)


def _dotted(home: str) -> list[str]:
    try:
        return [entry.path for entry in os.scandir(home) if entry.name.startswith(".")]
    except OSError:
        return []
