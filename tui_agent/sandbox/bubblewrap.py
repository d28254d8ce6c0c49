"""Views made by bubblewrap, if only that program may create namespaces (AppArmor)."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tui_agent.files.numbers import whole_number
from tui_agent.sandbox.inside.mounts import plant
from tui_agent.sandbox.namespace_view import PACKAGE, View
from tui_agent.sandbox.user_tools import is_below, own_folder
from tui_agent.sandbox.view_plan import NoView, ViewPlan

#: First version with overlays whose layers are readable afterwards.
LEAST = (0, 11)


def program() -> str:
    """Raises `NoView` if it is missing."""
    found = shutil.which("bwrap")
    if found is None:
        raise NoView("", 0, "it is not installed")
    return os.path.realpath(found)


def check() -> None:
    """Raises `NoView` without bubblewrap or overlays. Blocking."""
    done = subprocess.run([program(), "--version"], capture_output=True, text=True, timeout=5, check=False)
    found = tuple(whole_number(number) for number in re.findall(r"\d+", done.stdout)[:2])
    if found < LEAST:
        raise NoView(
            "bubblewrap", 0, f"it is {done.stdout.strip() or 'broken'}, and has overlays from 0.11 on"
        )


class BubblewrapView(View):
    async def _command(self, inner: list[str]) -> list[str]:
        return await asyncio.to_thread(command, self.plan, PACKAGE, inner)

    async def _open(self) -> None:
        await super()._open()
        self.layers = os.open(self.plan.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def command(plan: ViewPlan, package: Sequence[str], inner: Sequence[str]) -> list[str]:
    """Returns the command line that creates the view and runs `inner` as its first process. Blocking. Raises
    `NoView` and OSError. `package`: files and folders that `inner` needs."""
    found = program()
    for number, path in enumerate(plan.overlays):
        for name in ("u", "w"):
            os.makedirs(f"{plan.folder}/{number}/{name}")
        shutil.copymode(path, f"{plan.folder}/{number}/u")
    for seed in plan.seeds:
        overlay = seed.overlay or plan.workspace
        layer = f"{plan.folder}/{plan.overlays.index(overlay)}/u"
        plant(overlay, layer, seed.path, seed.kind, seed.mode, seed.content)
    return [found, *arguments(plan, package), "--", *inner]


def arguments(plan: ViewPlan, package: Sequence[str]) -> list[str]:
    """Returns the arguments in execution order: later mounts cover earlier ones."""
    told = ["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-cgroup-try", "--die-with-parent"]
    told += ["--new-session", "--as-pid-1", "--cap-drop", "ALL", "--disable-userns"]
    told += [] if plan.network else ["--unshare-net"]
    covering = [one for one in plan.folders if is_below(one[0], plan.binds)]
    told += _in_memory([one for one in plan.folders if one not in covering])
    for path, target in plan.links.items():
        told += ["--symlink", target, path]
    for path in plan.binds:
        told += ["--ro-bind", path, path]
        told += _in_memory([one for one in covering if is_below(one[0], [path])])
    for path in package:
        told += ["--ro-bind", path, path]
    for path, source in plan.stores.items():
        told += ["--ro-bind", source, path]
    for number, (path, content) in enumerate(plan.texts.items()):
        told += ["--ro-bind", _write_file(plan, f"text{number}", content), path]
    for number, path in enumerate(plan.overlays):
        layer = f"{plan.folder}/{number}"
        told += ["--overlay-src", path, "--overlay", f"{layer}/u", f"{layer}/w", path]
    told += ["--dev", "/dev", "--size", str(plan.limits.layer), "--tmpfs", "/dev/shm"]
    empty = _write_file(plan, "empty", b"")
    for path in plan.masks:
        if os.path.islink(path) or not os.path.lexists(path):
            continue
        told += ["--tmpfs", path, "--remount-ro", path] if own_folder(path) else ["--ro-bind", empty, path]
    return [*told, "--proc", "/proc", "--remount-ro", "/proc", "--remount-ro", "/"]


def _in_memory(folders: Sequence[tuple[str, int, int]]) -> list[str]:
    return [
        word
        for path, mode, size in folders
        for word in ("--perms", f"{mode:o}", "--size", str(size), "--tmpfs", path)
    ]


def _write_file(plan: ViewPlan, name: str, content: bytes) -> str:
    place = Path(plan.folder, name)
    place.write_bytes(content)
    return str(place)
