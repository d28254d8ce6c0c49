"""Three texts into one, by `git merge-file`: what both sides did to a base, and where the person has to choose."""

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

#: A merge of more than this takes longer than anybody waits for.
TIMEOUT = 60.0
#: git's own exit statuses above this are failures, not numbers of conflicts.
_MOST_CONFLICTS = 127


class Merged(Struct, frozen=True):
    """The merged text; with `conflicts` (127 for more) it holds git's markers (yours, base, theirs) around each."""

    text: str
    conflicts: int = 0


def union(base: str, ours: str, theirs: str) -> str:
    """Both sides of a conflict, one after the other, with the lines that they share only once. Blocking.

    Raises `ChildFailed` where git is missing, `EditFailed` for what is not text.
    """
    if ours == theirs:
        return ours
    with tempfile.TemporaryDirectory(prefix="tui-agent-merge-") as folder:
        sides = {"yours": ours, "base": base, "theirs": theirs}
        return _merged(Path(folder), sides, "--union").text


def merge(base: str, ours: str, theirs: str, marker: int = 7) -> Merged:
    """What `ours` and `theirs` made of `base`, both kept where they do not touch.

    A conflict's markers have `marker` characters. Blocking: it may run a process.
    Raises `ChildFailed` where git is missing, `EditFailed` for what is not text.
    """
    if ours == theirs or theirs == base:
        return Merged(ours)
    if ours == base:
        return Merged(theirs)
    with tempfile.TemporaryDirectory(prefix="tui-agent-merge-") as folder:
        sides = {"yours": ours, "base": base, "theirs": theirs}
        return _merged(Path(folder), sides, "--diff3", f"--marker-size={marker}")


def _merged(folder: Path, sides: dict[str, str], *options: str) -> Merged:
    command = ["merge-file", "-p", *options]
    for name, text in sides.items():
        (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))
        command.extend(("-L", name))
    variables = {"HOME": str(folder), "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    try:
        done = run_git(str(folder), (*command, "--", *sides), variables, seconds=TIMEOUT)
    except ChildFailed as error:
        raise EditFailed("the merge took too long", "apply the change by hand") from error
    if done.status == NOT_FOUND and not done.out:  # with a text it is so many conflicts, or more
        raise ChildFailed("git cannot be found", "install git: changes to newer files are merged by it")
    if done.status > _MOST_CONFLICTS or done.status < 0:
        why = done.err.decode("utf-8", "replace").strip()[:200]
        raise EditFailed(f"the texts cannot be merged ({why})", "apply the change by hand")
    return Merged(done.out.decode("utf-8", "surrogatepass"), done.status)


Side = Literal["yours", "theirs", "both"]
_SHORTEST_MARKER = 7
_RUNS = re.compile(r"^(?:<+|\|+|=+|>+)", re.MULTILINE)


class Region(Struct, frozen=True):
    """A stretch of a merge, as lines with their endings: `agreed` ones, or the three sides of a conflict."""

    agreed: tuple[str, ...] = ()
    base: tuple[str, ...] = ()
    yours: tuple[str, ...] = ()
    theirs: tuple[str, ...] = ()
    conflict: bool = False


class ConflictView(Struct, frozen=True):
    """A change in conflict: the merge in `regions`, and which side has no file at all.

    `now` is the hash of the file that `yours` is taken from. The names say whose the two sides are: of a conflict of
    two sub-tasks `yours` is the work of the one that was proposed first.
    """

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
        """The places (in `regions`) where there is something to choose."""
        return [at for at, region in enumerate(self.regions) if region.conflict]


def regions(base: str, yours: str | None, theirs: str | None) -> tuple[Region, ...]:
    """The merge of three texts; a side that is None has no file, so that all of it is one conflict. Blocking."""
    if yours is None or theirs is None:
        sides = (tuple(split(text or "")) for text in (base, yours, theirs))
        return (Region((), *sides, conflict=True),)
    longest = max((len(run) for text in (base, yours, theirs) for run in _RUNS.findall(text)), default=0)
    marker = max(_SHORTEST_MARKER, longest + 1)
    merged = merge(base, yours, theirs, marker)
    if not merged.conflicts:
        return (Region(tuple(split(merged.text))),) if merged.text else ()
    found = list(_parsed(split(merged.text), marker))
    return tuple(_ended(found, base, yours, theirs))


def settled(parts: Sequence[Region], sides: Sequence[Side], by_hand: Mapping[int, str] | None = None) -> str:
    """The text with a side for each conflict, in order; `by_hand` are texts to take for some of them (from 0).

    Of both sides the lines that they share come once, as in git's union merge. Blocking.
    """
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
    """The stretches between git's markers, which are longer than any run of their characters in the texts."""
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


def _ended(found: list[Region], base: str, yours: str, theirs: str) -> list[Region]:
    """With the missing newline at the end of a text, which git adds before a marker."""
    if not found or not found[-1].conflict:
        return found
    last = found[-1]
    sides = [
        _without_newline(lines, text)
        for lines, text in ((last.base, base), (last.yours, yours), (last.theirs, theirs))
    ]
    return [*found[:-1], Region((), *sides, conflict=True)]


def _without_newline(lines: tuple[str, ...], text: str) -> tuple[str, ...]:
    if not lines or not text or text.endswith("\n"):
        return lines
    return (*lines[:-1], lines[-1].rstrip("\r\n"))
