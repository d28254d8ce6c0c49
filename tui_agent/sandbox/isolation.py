"""Isolation methods of this system, strongest first."""

from __future__ import annotations

import asyncio
import errno
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from tui_agent.files.private import sweep, temporary_folder
from tui_agent.sandbox import namespace_view
from tui_agent.sandbox.build_cache import RunLayer
from tui_agent.sandbox.environment import variables
from tui_agent.sandbox.folder_copy import LandlockCopy, MacCopy, RunFolder
from tui_agent.sandbox.namespace_view import View
from tui_agent.sandbox.run import Run, Runner
from tui_agent.sandbox.view_plan import NoView, Seed, ViewPlan, plan
from tui_agent.store.commands import Isolated

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
        sweep()
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
            return f"it could not be tried: {error.strerror}"
        finally:
            await asyncio.to_thread(own.remove)
        as_it_should = result.ok and [change.path for change in result.changes] == ["written"]
        reached = os.listdir(parent / "work") or os.listdir(parent / "trials")
        return "" if as_it_should and not reached else "it did not hold what it should"
