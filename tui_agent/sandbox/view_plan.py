"""Contents of a view: system programs, tools, an empty home, and the workspace with pending changes."""

from __future__ import annotations

import marshal
import os
import re
import stat
import struct
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import BinaryIO, Literal

from tui_agent.files.operating_system import home_folder, read_start
from tui_agent.files.sensitive_paths import is_secret, stores_in
from tui_agent.processes.background import pause
from tui_agent.sandbox import environment
from tui_agent.sandbox.environment import SYSTEM, is_below, programs
from tui_agent.sandbox.environment import caches as find_caches
from tui_agent.sandbox.environment import tools as find_tools
from tui_agent.store.commands import Isolated

#: Numbers on x86-64 and 64-bit ARM: mounts, namespaces, keys, other processes' memory, the clock.
_CALLS = {
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "unshare": (272, 97),
    "setns": (308, 268),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "userfaultfd": (323, 282),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "vhangup": (153, 58),
}
_SOCKET, _PAIR, _IOCTL = (41, 198), (53, 199), (16, 29)
_CLONE, _CLONE3, _NEW_SPACES = (56, 220), (435, 435), 0x7E020000
#: ioctl: inserts characters into a terminal's input.
_TYPING = (0x5412, 0x541C)
#: Unix, IPv4, IPv6, netlink. Other families bypass the view's network.
_FAMILIES = (1, 2, 10, 16)
#: Unnamed socket pairs: streams and sequenced packets.
_PAIRS = (1, 5)
_LOAD, _EQUAL, _AT_LEAST, _MASK, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
_ALLOW, _DENY = 0x7FFF0000, 0x00050000 | 1
#: ENOSYS: programs fall back to the older call. Filters cannot inspect the newer call's arguments.
_MISSING = 0x00050000 | 38
_NUMBER, _MACHINE, _FIRST, _SECOND = 0, 4, 16, 24


def refused(*, sockets: bool = True) -> bytes:
    """Returns b"" if this system's call numbers are unknown. Without its own network, a view has no
    `sockets` except connected pairs.
    """
    column = {"x86_64": 0, "aarch64": 1}.get(os.uname().machine)
    if column is None:
        return b""
    machine = (0xC000003E, 0xC00000B7)[column]
    code = [_step(_LOAD, _MACHINE), _step(_EQUAL, machine, 1), _step(_RETURN, _DENY), _step(_LOAD, _NUMBER)]
    if column == 0:
        code += [_step(_AT_LEAST, 0x40000000, 0, 1), _step(_RETURN, _DENY)]
    for numbers in _CALLS.values():
        code += _answer(numbers[column], _DENY)
    code += _answer(_CLONE3[column], _MISSING)
    code += _inspect(
        _CLONE[column], _step(_LOAD, _FIRST), _step(_MASK, _NEW_SPACES), *_answer(0, _ALLOW), last=_DENY
    )
    typing = [step for request in _TYPING for step in _answer(request, _DENY)]
    code += _inspect(_IOCTL[column], _step(_LOAD, _SECOND), *typing, last=_ALLOW)
    families = [step for family in _FAMILIES if sockets for step in _answer(family, _ALLOW)]
    code += _inspect(_SOCKET[column], _step(_LOAD, _FIRST), *families, last=_DENY)
    if not sockets:
        pairs = [step for kind in _PAIRS for step in _answer(kind, _ALLOW)]
        code += _inspect(_PAIR[column], _step(_LOAD, _SECOND), _step(_MASK, 0xF), *pairs, last=_DENY)
    code.append(_step(_RETURN, _ALLOW))
    return b"".join(code)


def _step(kind: int, value: int, equal: int = 0, other: int = 0) -> bytes:
    """`equal` and `other` are steps to skip."""
    return struct.pack("HBBI", kind, equal, other, value)


def _answer(value: int, result: int) -> list[bytes]:
    return [_step(_EQUAL, value, 0, 1), _step(_RETURN, result)]


def _inspect(number: int, *steps: bytes, last: int) -> list[bytes]:
    return [_step(_EQUAL, number, 0, len(steps) + 1), *steps, _step(_RETURN, last)]


#: System folders with files that one user may read.
_PRIVATE = ("/etc", "/opt", "/usr/local")
#: Caches with hashed names, and git's objects.
_NAMELESS = frozenset({"_cacache", "go-build", "objects", "__pycache__", ".git"})
#: Depth checked each time; deeper folders are checked again after their ancestors' entries change.
_WATCHED_DEPTH = 2
_CREDENTIALS = re.compile(rb"://[^/\s]*@|extraheader|://\S*\?|password|token", re.IGNORECASE)
_MOST_CONFIG = 1 << 16


class _Look:
    """Hidden paths of a folder and of descendants without an entry."""

    def __init__(self, changed: tuple[int, int]) -> None:
        self.changed = changed
        self.found: list[str] = []
        self.folders: list[str] = []


class ToolFolders:
    """Scans folders of tools, caches and the system; caches unchanged ones. Blocking."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, bool], dict[str, _Look]] = {}
        self._looking = threading.Lock()

    def hidden(self, folders: Iterable[str], tools: Sequence[str] = ()) -> list[str]:
        """Returns hidden paths: in system folders also files that only their owner can read; in `tools`
        these only if neighbours are world-readable, because a strict umask makes all private.
        """
        with self._looking:
            return sorted({path for folder in folders for path in self._below(folder, tools)})

    def _below(self, top: str, tools: Sequence[str]) -> list[str]:
        found: list[str] = []
        parts = [part for part in _PRIVATE if part == top or part.startswith(f"{top}/")]
        if parts and top not in parts:
            return [path for part in parts for path in self._below(part, tools)]
        private = is_below(top, _PRIVATE)
        if not private and top in ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/sys"):
            return []
        seen = self._seen.get((top, private), {})
        now: dict[str, _Look] = {}
        waiting = [(top, 0)]
        while waiting:
            folder, depth = waiting.pop()
            try:
                status = os.lstat(folder)
                changed = status.st_ino, status.st_mtime_ns
                entry = seen.get(folder)
                if entry is None or entry.changed != changed:
                    entry = _Look(changed)
                    _scan(folder, entry, tools, private, deep=depth >= _WATCHED_DEPTH)
            except OSError:
                continue
            now[folder] = entry
            found += entry.found
            waiting += [(path, depth + 1) for path in entry.folders]
        self._seen[top, private] = now
        return found


def _scan(folder: str, entry: _Look, tools: Sequence[str], private: bool, *, deep: bool) -> None:
    """`deep`: all descendants. Raises OSError for the folder itself."""
    waiting = [folder]
    while waiting:
        pause()
        place = waiting.pop()
        try:
            entries = list(os.scandir(place))
        except OSError:
            if place == folder:
                raise
            continue
        names: list[str] = []
        closed: list[str] = []
        is_open = False
        for one in entries:
            try:
                if one.is_symlink():
                    continue
                is_folder = one.is_dir(follow_symlinks=False)
                mode = one.stat(follow_symlinks=False).st_mode if private else 0o5
            except OSError:
                continue
            if not is_folder:
                names.append(one.name)
                if private and stat.S_ISREG(mode) and not mode & 0o104:
                    closed.append(one.path)
                else:
                    is_open = True
            elif (
                private
                and not mode & 0o001
                and not is_below(one.path, tools)
                and not any(is_below(tool, [one.path]) for tool in tools)
            ):
                entry.found.append(one.path)
            elif one.name not in _NAMELESS:
                (waiting if deep else entry.folders).append(one.path)
            elif one.name == ".git" and _has_credentials(f"{one.path}/config"):
                entry.found.append(f"{one.path}/config")
        if closed and is_below(place, tools) and not is_open:
            closed = [path for path in closed if is_secret(path)]
        entry.found += [*closed, *(f"{place}/{name}" for name in stores_in(place, names))]
        if "config" in names and "HEAD" in names and _has_credentials(f"{place}/config"):
            entry.found.append(f"{place}/config")


def _has_credentials(path: str) -> bool:
    try:
        return _CREDENTIALS.search(read_start(path, _MOST_CONFIG)) is not None
    except OSError:
        return False


#: Visible even if one is a user's home.
_OF_MACHINE = tuple(path for path in SYSTEM if path not in ("/opt", "/snap"))
MEGABYTE = 1 << 20
#: The only import path in a view besides the standard library.
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
    - overlay: "" is the workspace.
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
    - hosts: allow-list of `View` for that port, HOST or HOST:PORT. Empty if the owner of the view serves
      it.
    - terminal: programs may open /dev/tty.
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
        return self.isolated in ("landlock", "sandbox-exec")

    @property
    def root(self) -> str:
        return f"{self.folder}/{os.path.basename(self.workspace)}" if self.on_copy else self.workspace

    @property
    def places(self) -> dict[str, str]:
        if self.on_copy:
            return {"HOME": f"{self.folder}/.home", "TMPDIR": f"{self.folder}/.tmp"}
        return {"HOME": self.home, "TMPDIR": "/tmp"}

    def without_sockets(self) -> ViewPlan:
        """A socket or pipe that is made later in a system folder has no listener in this view."""
        system = (path for path in self.binds if path in SYSTEM and path != "/sys")
        shown = (path for path in system if not _mounted_below(path))
        return replace(self, tools=(*self.tools, *shown))

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
            # The view is assembled over a folder of every system.
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
            "filter": refused(sockets=self.network or self.isolated != "landlock").hex(),
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
    - folder: private folder of this run, for methods that need one.
    """
    environ = dict(os.environ) if environ is None else environ
    root, home = str(workspace), home_folder(environ)
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
        paths = [f"{home}/{name}" for name in environment.OF_PERSON]
        texts = {path: environment.visible_settings(path) for path in paths if os.path.isfile(path)}
    apart = [path for path in git_folders if not is_below(path, [root])]
    overlays = (*caches, *apart, root)
    masks = _STORES.hidden((*binds, *more), [*of_person, *more])
    if own_home:
        masks = [path for path in masks if not is_below(path, [home]) or is_below(path, more)]
    else:
        with suppress(OSError):
            masks = [*(entry.path for entry in os.scandir(home) if entry.name.startswith(".")), *masks]
    masks += [path for path in map(os.path.realpath, hidden) if not is_below(root, [path])]
    masks += [path for path in _sockets() if is_below(path, (*binds, *more, *caches))]
    every_seed = (*seeds, *_scrubbed(root, apart, caches))
    return ViewPlan(
        root,
        home,
        (*binds, *more),
        {**links, **on_the_way},
        tuple(folders),
        tuple(masks),
        overlays,
        tuple({(seed.overlay, seed.path): seed for seed in every_seed}.values()),
        network,
        limits,
        texts,
        isolated,
        folder,
        tools=tuple(path for path in more if not _mounted_below(path)),
    )


def _scrubbed(root: str, git_folders: Sequence[str], caches: Sequence[str]) -> Iterator[Seed]:
    for overlay in (root, *git_folders):
        inside = [f"{overlay}/.git", overlay] if overlay != root else [f"{root}/.git"]
        for folder in inside:
            if os.path.isdir(folder) and os.path.isfile(f"{folder}/HEAD"):
                for path in environment.files_of(folder):
                    content = environment.visible_settings(path)
                    yield Seed(os.path.relpath(path, overlay), "hidden", content, None, overlay)
    for path in _STORES.hidden(caches):
        cache = next(cache for cache in caches if is_below(path, [cache]))
        content = environment.visible_settings(path) if os.path.basename(path) == "config" else b""
        yield Seed(os.path.relpath(path, cache), "hidden", content, None, cache)


def _sockets() -> list[str]:
    try:
        lines = Path("/proc/net/unix").read_text(errors="surrogateescape").splitlines()[1:]
    except OSError:
        return []
    paths = {parts[7] for line in lines if len(parts := line.split(None, 7)) == 8}
    return sorted(path for path in paths if path.startswith("/"))


def unfit(root: str, environ: Mapping[str, str] = os.environ) -> dict[Isolated, str]:
    """Returns unsuitable isolation methods, with reasons. Blocking, briefly."""
    if root in ("/", home_folder(environ)):
        return dict.fromkeys(
            ("overlay", "bubblewrap", "landlock", "sandbox-exec"), f"{root} is too much for a view"
        )
    why = _mounted_below(root)
    return {"overlay": why, "bubblewrap": why} if why else {}


def _mounted_below(root: str) -> str:
    """Returns why an overlay would not show the folder's contents, or ""."""
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


_STORES = ToolFolders()
