"""Three-way merge with `git merge-file`, and conflict resolution."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from tui_agent.edits.lines import split
from tui_agent.errors import ChildFailed, EditFailed
from tui_agent.git.process import NOT_FOUND, run_git

#: Seconds.
TIMEOUT = 60.0
#: Larger exit statuses of git are failures.
_MOST_CONFLICTS = 127


class MergeResult(Struct, frozen=True):
    """With `conflicts` (at most 127) the text contains git's markers (yours, base, theirs)."""

    text: str
    conflicts: int = 0


def union(base: str, ours: str, theirs: str) -> str:
    """Both sides of a conflict in sequence, common lines once. Blocking. Raises `ChildFailed` without git,
    `EditFailed` for binary content."""
    if ours == theirs:
        return ours
    with tempfile.TemporaryDirectory(prefix="tui-agent-merge-") as folder:
        sides = {"yours": ours, "base": base, "theirs": theirs}
        return _merged(Path(folder), sides, "--union").text


def merge(base: str, ours: str, theirs: str, marker: int = 7) -> MergeResult:
    """`marker`: length of conflict markers. Blocking: may start a process. Raises `ChildFailed` without git,
    `EditFailed` for binary content."""
    if ours == theirs or theirs == base:
        return MergeResult(ours)
    if ours == base:
        return MergeResult(theirs)
    with tempfile.TemporaryDirectory(prefix="tui-agent-merge-") as folder:
        sides = {"yours": ours, "base": base, "theirs": theirs}
        return _merged(Path(folder), sides, "--diff3", f"--marker-size={marker}")


def _merged(folder: Path, sides: dict[str, str], *options: str) -> MergeResult:
    command = ["merge-file", "-p", *options]
    for name, text in sides.items():
        (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))
        command.extend(("-L", name))
    variables = {"HOME": str(folder), "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    try:
        done = run_git(str(folder), (*command, "--", *sides), variables, seconds=TIMEOUT)
    except ChildFailed as error:
        raise EditFailed("the merge took too long", "apply the change by hand") from error
    if done.status == NOT_FOUND and not done.out:  # with output, the status is the number of conflicts
        raise ChildFailed("git cannot be found", "install git: changes to newer files are merged by it")
    if done.status > _MOST_CONFLICTS or done.status < 0:
        why = done.err.decode("utf-8", "replace").strip()[:200]
        raise EditFailed(f"the texts cannot be merged ({why})", "apply the change by hand")
    return MergeResult(done.out.decode("utf-8", "surrogatepass"), done.status)


Side = Literal["yours", "theirs", "both"]
_SHORTEST_MARKER = 7
_RUNS = re.compile(r"^(?:<+|\|+|=+|>+)", re.MULTILINE)


class Region(Struct, frozen=True):
    """Lines with endings: `agreed`, or the three sides of a conflict."""

    agreed: tuple[str, ...] = ()
    base: tuple[str, ...] = ()
    yours: tuple[str, ...] = ()
    theirs: tuple[str, ...] = ()
    conflict: bool = False


class ConflictView(Struct, frozen=True):
    """`yours_gone` and `theirs_gone` mark missing files. `now` is the hash of the file behind `yours`. In a
    conflict of two sub-tasks `yours` is the earlier proposal."""

    path: str
    reason: str
    regions: tuple[Region, ...]
    yours_gone: bool = False
    theirs_gone: bool = False
    now: str = ""
    yours_name: str = "yours"
    theirs_name: str = "proposed"

    @property
    def conflicts(self) -> list[int]:
        return [at for at, region in enumerate(self.regions) if region.conflict]


def regions(base: str, yours: str | None, theirs: str | None) -> tuple[Region, ...]:
    """A side without a file (`None`) makes one conflict of everything. Blocking."""
    if yours is None or theirs is None:
        sides = (tuple(split(text or "")) for text in (base, yours, theirs))
        return (Region((), *sides, conflict=True),)
    longest = max((len(run) for text in (base, yours, theirs) for run in _RUNS.findall(text)), default=0)
    marker = max(_SHORTEST_MARKER, longest + 1)
    merged = merge(base, yours, theirs, marker)
    if not merged.conflicts:
        return (Region(tuple(split(merged.text))),) if merged.text else ()
    found = list(_parsed(split(merged.text), marker))
    # The final newline that git adds before a marker
    if not found or not found[-1].conflict:
        ended = found
    else:
        last = found[-1]
        sides = [
            _without_newline(lines, text)
            for lines, text in ((last.base, base), (last.yours, yours), (last.theirs, theirs))
        ]
        ended = [*found[:-1], Region((), *sides, conflict=True)]
    return tuple(ended)


def merged_with_choices(
    parts: Sequence[Region], sides: Sequence[Side], by_hand: Mapping[int, str] | None = None
) -> str:
    """Returns one side per conflict, in order; `by_hand`: manual texts by conflict (from 0). "both" includes
    common lines once, as git's union merge. Blocking."""
    result: list[str] = []
    number = 0
    for region in parts:
        if not region.conflict:
            result.extend(region.agreed)
            continue
        written = (by_hand or {}).get(number)
        result.extend(_chosen(region, sides[number]) if written is None else [written])
        number += 1
    return "".join(result)


def _chosen(region: Region, side: Side) -> Sequence[str]:
    match side:
        case "yours":
            return region.yours
        case "theirs":
            return region.theirs
        case "both":
            return split(union("".join(region.base), "".join(region.yours), "".join(region.theirs)))


def _parsed(lines: Sequence[str], marker: int) -> Iterator[Region]:
    """Regions between git's markers, which are longer than any similar run in the texts."""
    order = {"<" * marker: "yours", "|" * marker: "base", "=" * marker: "theirs", ">" * marker: ""}
    part = "agreed"
    taken: dict[str, list[str]] = {"agreed": []}
    for line in lines:
        found = order.get(line[:marker]) if line[:marker] in order else None
        if found is None:
            taken.setdefault(part, []).append(line)
            continue
        if found == "yours":
            if taken["agreed"]:
                yield Region(tuple(taken["agreed"]))
            taken = {}
        elif not found:
            sides = (tuple(taken.get(name, ())) for name in ("base", "yours", "theirs"))
            yield Region((), *sides, conflict=True)
            taken = {"agreed": []}
        part = found or "agreed"
    if taken.get("agreed"):
        yield Region(tuple(taken["agreed"]))


def _without_newline(lines: tuple[str, ...], text: str) -> tuple[str, ...]:
    if not lines or not text or text.endswith("\n"):
        return lines
    return (*lines[:-1], lines[-1].rstrip("\r\n"))
