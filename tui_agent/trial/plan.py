"""What a view shows: the machine's programs, the person's tools, an empty home, the workspace with what is pending."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import BinaryIO, Literal

from tui_agent.trial import system_calls

#: What every program may read. Nothing else of the machine is there.
_SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/snap",
    "/sys",
)
#: Folders of tools below the home, and variables that name others.
_TOOLS = (".local/bin", ".local/lib", ".local/share/uv", ".local/share/mise", ".local/share/pnpm", "bin")
_NAMED = (
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYENV_ROOT",
    "NVM_DIR",
    "RUSTUP_HOME",
    "GOROOT",
    "JAVA_HOME",
    "VOLTA_HOME",
)
#: Where those are if no variable says so.
_USUAL = (
    ".pyenv",
    ".nvm",
    ".rustup",
    ".volta",
    ".sdkman",
    ".rbenv",
    ".asdf",
    ".bun",
    ".deno",
    ".cargo/bin",
    "go/bin",
)
#: Caches of package managers: as they are, and what is written to them is thrown away.
_CACHES = (
    ".cache/pip",
    ".cache/uv",
    ".npm",
    ".cargo/registry",
    ".cargo/git",
    "go/pkg/mod",
    ".cache/go-build",
    ".m2",
)
#: The person's settings of git without what would hand out or run something.
_GIT_SETTINGS = (".gitconfig", ".config/git/config")

MEGABYTE = 1 << 20


class NoView(Exception):
    """There is no view: the step that failed, the error's number where the kernel gave one, and why in words."""

    def __init__(self, step: str, number: int, why: str) -> None:
        super().__init__(f"{step}: {why}")
        self.step, self.number, self.why = step, number, why


@dataclass(frozen=True, slots=True)
class Seed:
    """What is in the view instead of what is in the folder.

    path: relative, with slashes.
    kind: "file" with `content`; "gone"; "hidden", an empty file in place of one that nobody may read.
    mode: the file's permissions; None for those of the file that is there.
    """

    path: str
    kind: Literal["file", "gone", "hidden"]
    content: bytes = b""
    mode: int | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What all commands of a view may take together.

    layer: bytes that they may write. memory: bytes. file: bytes of one file.
    """

    layer: int = 2048 * MEGABYTE
    memory: int = 4096 * MEGABYTE
    processes: int = 512
    file: int = 1024 * MEGABYTE


@dataclass(frozen=True, slots=True)
class ViewPlan:
    """One view.

    binds: absolute paths that can be read, in order. links: symbolic links by path.
    folders: empty ones in memory, with mode and size. masks: what of all this nobody sees.
    overlays: what can be written, each write into a layer; the workspace is the last. network: that of the machine.
    """

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

    def write(self, to: BinaryIO) -> None:
        """The plan in one line of JSON, and the contents of its seeds behind it."""
        last = len(self.overlays) - 1
        seeds = [[last, seed.path, seed.kind, seed.mode, len(seed.content)] for seed in self.seeds]
        plan = {
            "stage": _stage(),
            "binds": self.binds,
            "links": self.links,
            "folders": self.folders,
            "masks": self.masks,
            "overlays": self.overlays,
            "seeds": seeds,
            "network": self.network,
            "size": self.limits.layer,
            "memory": self.limits.memory,
            "processes": self.limits.processes,
            "limits": {"RLIMIT_FSIZE": self.limits.file, "RLIMIT_CORE": 0},
            "filter": system_calls.refused().hex(),
        }
        to.write(json.dumps(plan).encode() + b"\n")
        to.writelines(seed.content for seed in self.seeds)


def _stage() -> str:
    """A folder that is there on every machine; the view is put together over it."""
    return next(folder for folder in ("/tmp", "/mnt", "/run") if os.path.isdir(folder))


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
) -> ViewPlan:
    """The view of a workspace (an absolute path without links). Raises `NoView` for one that no view can show.

    git_folders: those of a linked worktree or a submodule, which are elsewhere. tools: more folders to read.
    hidden: folders and files that nobody sees, wherever they are.
    """
    environ = dict(os.environ) if environ is None else environ
    if why := _unfit(str(workspace), os.path.realpath(environ.get("HOME") or "/nonexistent")):
        raise NoView("workspace", 0, why)
    root, home = str(workspace), os.path.realpath(environ.get("HOME") or "/nonexistent")
    limits = limits or _fitting(Limits())
    binds, links = _system()
    more = _tools(root, home, environ, tools)
    caches = [path for path in (f"{home}/{name}" for name in _CACHES) if _own_folder(path)]
    covered = (*binds, *more)
    folders = [("/tmp", 0o1777, limits.layer), ("/var/tmp", 0o1777, limits.layer), ("/run", 0o755, MEGABYTE)]
    if not _is_below(home, covered):
        folders.append((home, 0o700, limits.layer))
    overlays = (*caches, *(folder for folder in git_folders if not _is_below(folder, [root])), root)
    settings = [f"{home}/{name}" for name in _GIT_SETTINGS if os.path.isfile(f"{home}/{name}")]
    masks = [*_private_settings(), *_credentials(caches), *map(os.path.realpath, hidden)]
    return ViewPlan(
        root,
        home,
        (*binds, *more, *settings),
        links,
        tuple(folders),
        tuple(masks),
        overlays,
        tuple(seeds),
        network,
        limits,
    )


def _unfit(root: str, home: str) -> str:
    """Why an overlay over this folder would not show what is there; "" where it would."""
    if root in ("/", home):
        return f"{root} is too much for a view"
    try:
        lines = Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines()
    except OSError:
        return ""
    mounted = (line.split()[4].encode().decode("unicode_escape", "replace") for line in lines)
    below = next((path for path in mounted if path.startswith(f"{root}/")), "")
    return f"{below} is mounted below it, and would be empty in a view" if below else ""


def _fitting(limits: Limits) -> Limits:
    """The layer is in memory: no more than a quarter of what is free."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    return Limits(
        min(limits.layer, max(free // 4, 64 * MEGABYTE)), limits.memory, limits.processes, limits.file
    )


@cache
def _system() -> tuple[list[str], dict[str, str]]:
    binds: list[str] = []
    links: dict[str, str] = {}
    for path in _SYSTEM:
        if os.path.islink(path):
            links[path] = os.readlink(path)
        elif os.path.isdir(path):
            binds.append(path)
    return binds, links


def _tools(root: str, home: str, environ: dict[str, str], more: Iterable[str]) -> list[str]:
    """Folders of the person's tools that are neither the machine's nor the workspace's, the outer ones alone."""
    wanted = [*environ.get("PATH", "").split(":"), sys.base_prefix, sys.prefix, *more]
    wanted += [environ[name] for name in _NAMED if environ.get(name)]
    wanted += [f"{home}/{name}" for name in (*_TOOLS, *_USUAL)]
    found: list[str] = []
    for path in sorted({os.path.realpath(path) for path in wanted if path.startswith("/")}, key=len):
        outside = (
            path == "/"
            or _is_below(home, [path])
            or _is_below(root, [path])
            or path in ("/tmp", "/run", "/var")
        )
        if outside or not os.path.isdir(path) or _is_below(path, (*_SYSTEM, root, *found)):
            continue
        found.append(path)
    return found


def _is_below(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder.rstrip('/')}/") for folder in folders)


def _own_folder(path: str) -> bool:
    """Whether a folder is there, itself and not by a link, and may be read."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode) and os.access(path, os.R_OK | os.X_OK)
    except OSError:
        return False


@cache
def _private_settings() -> tuple[str, ...]:
    return tuple(_private_parts("/etc"))


def _private_parts(folder: str) -> Iterator[str]:
    """What of a folder only its owner may read, at most two levels down: keys of servers, passwords, sudo's rules."""
    for entry in os.scandir(folder):
        if entry.is_symlink():
            continue
        mode = entry.stat(follow_symlinks=False).st_mode
        if entry.is_dir(follow_symlinks=False):
            if not mode & 0o001:
                yield entry.path
            elif entry.path.count("/") < 3:
                yield from _private_parts(entry.path)
        elif stat.S_ISREG(mode) and not mode & 0o004:
            yield entry.path


def _credentials(caches: Iterable[str]) -> Iterator[str]:
    for folder in caches:
        for name in (".npmrc", "settings.xml", "settings-security.xml", "credentials", "credentials.toml"):
            if os.path.lexists(f"{folder}/{name}"):
                yield f"{folder}/{name}"
