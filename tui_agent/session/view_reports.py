"""Failure causes inside the view: emptied, missing or refused files, no network, excluded variables."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from tui_agent.checks.causes import cause_of, missing_programs
from tui_agent.files.lazy_regex import late
from tui_agent.files.names import display_path
from tui_agent.store.commands import CommandResult

if TYPE_CHECKING:
    from tui_agent.session.trial_views import PreparedView

#: Maximum number of names in a sentence, and of output paths examined.
MOST_NAMED, MOST_PATHS = 8, 100
_PATH = late(r"(?<![\w/.:-])(/[\w.@+,=-]{1,100}(?:/[\w.@+,=-]{1,100}){0,30})")
_NOT_THERE = late(r"[Nn]o such file|ENOENT|not found|Not found|[Cc]annot find|[Dd]oes not exist")
#: The view's own folders, initially empty.
_OF_ITS_OWN = ("/tmp", "/var/tmp", "/dev", "/proc")
_WIDEST = 2_000
_READ_ONLY = late(
    r"Read-only file system:? ?['\"]?([^\s'\"]{0,200})|([^\s'\"]{1,200})['\"]?: Read-only file system"
)
_REFUSED = late(
    r"\b(unshare|mount|ptrace|io_uring|keyctl|bpf|perf_event)\w*\b.{0,80}(?:not permitted|Permission denied)"
)


class ViewFacts(NamedTuple):
    """emptied: files with removed content or keys. left_out: excluded variables. offline: no network."""

    emptied: tuple[str, ...]
    left_out: tuple[str, ...]
    offline: bool
    visible: tuple[str, ...]
    path: str


def facts(prepared: PreparedView, environ: Mapping[str, str]) -> ViewFacts:
    from tui_agent.sandbox.environment import omitted_variables

    plan = prepared.plan
    emptied = [
        seed.path
        for seed in plan.seeds
        if seed.kind == "hidden"
        and seed.overlay in ("", plan.workspace)
        and not f"/{seed.path}".count("/.git/")
    ]
    visible = (*plan.binds, *plan.overlays, *plan.links, *plan.texts, "/dev", "/proc")
    return ViewFacts(
        tuple(emptied),
        tuple(omitted_variables(environ, prepared.variables)),
        not plan.network,
        visible,
        environ.get("PATH", os.defpath),
    )


def explained(result: CommandResult, view: ViewFacts | None, *, full: bool = False) -> CommandResult:
    """Adds the failure's cause, if it is not the change, and contents missing from the view. Blocking."""
    if result.ok or result.how in ("stopped", "proposal", "interrupted", "background"):
        return result
    cause = cause_of(
        result.how, result.status, result.output, emptied=view.emptied if view else (), full=full
    )
    if (
        cause is not None
        and cause.kind in ("network", "docker", "service")
        and (view is None or not view.offline)
    ):
        cause = None  # The view equals the machine.
    if cause is not None:
        named = missing_programs(result.output)[:MOST_NAMED] if cause.kind == "program" else []
        words = f"{cause.words}: {_listed(named)}" if named else cause.words
        result = replace(result, cause=words, excused=cause.excused)
    return replace(result, report=tuple(_report(result, view))) if view else result


def _report(result: CommandResult, view: ViewFacts) -> list[str]:
    told, output = [], result.output
    if view.emptied:
        told.append(f"emptied: {_listed(_mentioned_first(view.emptied, output))} (trial.reveal shows them)")
    for name in missing_programs(output)[:MOST_NAMED]:
        place = shutil.which(name, path=view.path) if "/" not in name else None
        there = place is not None and not _is_below(os.path.realpath(place), view.visible)
        told.append(
            f"missing: {name}" + (f", which is at {place} (add its folder to trial.tools)" if there else "")
        )
    # A command must not reveal whether hidden paths exist.
    if hidden := [path for path in _absent(output) if not _is_below(path, view.visible)]:
        told.append(f"not shown, whether they exist or not: {_listed(hidden)}")
    read_only = [one[1] or one[2] for one in _READ_ONLY.finditer(output) if one[1] or one[2]]
    if read_only:
        told.append(f"read-only: {_listed(read_only)}")
    refused = [one[1] for one in _REFUSED.finditer(output)]
    if refused:
        told.append(f"refused: {_listed(refused)}")
    if view.offline:
        told.append("offline: only a loopback network is available")
    if view.left_out:
        told.append(f"variables left out: {_listed(_mentioned_first(view.left_out, output))} (trial.env)")
    return told


def _absent(output: str) -> list[str]:
    lines = (line for line in output.splitlines() if _NOT_THERE.search(line))
    found = dict.fromkeys(one[1] for line in lines for one in _PATH.finditer(line[:_WIDEST]))
    return [path for path in list(found)[-MOST_PATHS:] if not _is_below(path, _OF_ITS_OWN)]


def _is_below(path: str, folders: Sequence[str]) -> bool:
    from tui_agent.sandbox.user_tools import is_below

    return is_below(path, folders)


def _mentioned_first(names: Sequence[str], output: str) -> list[str]:
    return sorted(names, key=lambda name: name.rpartition("/")[2] not in output)


def _listed(names: Sequence[str]) -> str:
    names = list(dict.fromkeys(names))
    more = len(names) - MOST_NAMED
    return ", ".join(map(display_path, names[:MOST_NAMED])) + (f" and {more:,} more" if more > 0 else "")
