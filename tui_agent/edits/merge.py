"""Three-way merge, conflict resolution, and changes or typed text moved onto another text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.edits.change import PLACED, Change, ChangeKind, compose, counts, hunks
from tui_agent.edits.lines import split
from tui_agent.errors import ChildFailed, EditFailed
from tui_agent.files.private import temporary_folder
from tui_agent.git.process import NOT_FOUND, run_git

TIMEOUT = 60.0
#: Larger statuses of git are failures.
_MOST_CONFLICTS = 127


class MergeResult(Struct, frozen=True):
    """If there are `conflicts` (at most 127), the text contains git's markers (yours, base, theirs)."""

    text: str
    conflicts: int = 0


def union(base: str, ours: str, theirs: str) -> str:
    """Keeps the lines of both sides, common ones once; otherwise as `merge`."""
    if ours == theirs:
        return ours
    return _merged(base, ours, theirs, "--union").text


def merge(base: str, ours: str, theirs: str, marker: int = 7) -> MergeResult:
    """Blocking: may start a process. Raises `ChildFailed` without git, `EditFailed` for binary content."""
    if ours == theirs or theirs == base:
        return MergeResult(ours)
    if ours == base:
        return MergeResult(theirs)
    return _merged(base, ours, theirs, "--diff3", f"--marker-size={marker}")


def _merged(base: str, ours: str, theirs: str, *options: str) -> MergeResult:
    sides = {"yours": ours, "base": base, "theirs": theirs}
    command = ["merge-file", "-p", *options, *(word for name in sides for word in ("-L", name)), "--", *sides]
    with temporary_folder() as folder:
        for name, text in sides.items():
            Path(folder, name).write_bytes(text.encode("utf-8", "surrogatepass"))
        variables = {"HOME": folder, "GIT_CEILING_DIRECTORIES": str(Path(folder).parent)}
        try:
            done = run_git(folder, command, variables, seconds=TIMEOUT)
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
    """Lines with endings: `agreed`, or a conflict's three sides."""

    agreed: tuple[str, ...] = ()
    base: tuple[str, ...] = ()
    yours: tuple[str, ...] = ()
    theirs: tuple[str, ...] = ()
    conflict: bool = False


class ConflictView(Struct, frozen=True):
    """`now` is the hash of the file behind `yours`, which in a conflict of two sub-tasks is the earlier
    proposal.
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
        return [at for at, region in enumerate(self.regions) if region.conflict]


def regions(base: str, yours: str | None, theirs: str | None) -> tuple[Region, ...]:
    """A side without a file (`None`) makes everything one conflict. Blocking."""
    if yours is None or theirs is None:
        sides = (tuple(split(text or "")) for text in (base, yours, theirs))
        return (Region((), *sides, conflict=True),)
    longest = max((len(run) for text in (base, yours, theirs) for run in _RUNS.findall(text)), default=0)
    marker = max(_SHORTEST_MARKER, longest + 1)
    merged = merge(base, yours, theirs, marker)
    if not merged.conflicts:
        return (Region(tuple(split(merged.text))),) if merged.text else ()
    order = {"<" * marker: "yours", "|" * marker: "base", "=" * marker: "theirs", ">" * marker: ""}
    found: list[Region] = []
    part = "agreed"
    taken: dict[str, list[str]] = {"agreed": []}
    for line in split(merged.text):
        name = order.get(line[:marker])
        if name is None:
            taken.setdefault(part, []).append(line)
            continue
        if name == "yours":
            if taken["agreed"]:
                found.append(Region(tuple(taken["agreed"])))
            taken = {}
        elif not name:
            read = (tuple(taken.get(side, ())) for side in ("base", "yours", "theirs"))
            found.append(Region((), *read, conflict=True))
            taken = {"agreed": []}
        part = name or "agreed"
    if taken.get("agreed"):
        found.append(Region(tuple(taken["agreed"])))
    # git adds a final newline before a marker
    if not found or not found[-1].conflict:
        ended = found
    else:
        last = found[-1]
        sides = [
            (*lines[:-1], lines[-1].rstrip("\r\n")) if lines and text and not text.endswith("\n") else lines
            for lines, text in ((last.base, base), (last.yours, yours), (last.theirs, theirs))
        ]
        ended = [*found[:-1], Region((), *sides, conflict=True)]
    return tuple(ended)


def merged_with_choices(
    parts: Sequence[Region], sides: Sequence[Side], by_hand: Mapping[int, str] | None = None
) -> str:
    """`by_hand` has manual texts by conflict. "both" is git's union merge. Blocking."""
    result: list[str] = []
    number = 0
    for region in parts:
        if not region.conflict:
            result.extend(region.agreed)
            continue
        written = (by_hand or {}).get(number)
        if written is not None:
            result.append(written)
        elif (side := sides[number]) == "both":
            result.extend(split(union("".join(region.base), "".join(region.yours), "".join(region.theirs))))
        else:
            result.extend(region.yours if side == "yours" else region.theirs)
        number += 1
    return "".join(result)


MERGED = "merged with what changed since the model saw it"
THERE_ALREADY = "the file already has this content"


def rebased(
    change: Change,
    base: str,
    new: str,
    now: str | None,
    now_hash: str,
    put_text: Callable[[str], str],
) -> Change:
    """`now` `None`: the file was deleted. Blocking if a merge is necessary. A failed merge keeps the base
    and sets `conflict`; a later inexact match needs the user's explicit choice.
    """
    if now is None:
        return replace(change, state="conflict", reason="the file no longer exists")
    if change.kind == "create":
        if now == new:
            return replace(
                change, state="applied", reason=THERE_ALREADY, hunks=("applied",) * len(change.hunks)
            )
        return replace(change, state="conflict", reason="another file now has this path")
    if change.kind == "delete":
        return replace(
            change, state="conflict", reason="the file has changed since its deletion was proposed"
        )
    merged = merge(base, now, new)
    if merged.conflicts:
        return replace(change, state="conflict", reason="the same lines have changed since the model saw it")
    if merged.text == now and change.kind == "edit" and change.executable is None:
        return replace(change, state="applied", reason=THERE_ALREADY, hunks=("applied",) * len(change.hunks))
    return reworked(change, now, now_hash, merged.text, put_text, MERGED)


def followed(change: Change, path: str) -> Change:
    if change.rename_to != path:
        return replace(change, path=path)
    rest = replace(change, path=path, kind="edit", rename_to="")
    return (
        rest
        if rest.hunks or rest.executable is not None
        else replace(rest, state="applied", reason=THERE_ALREADY)
    )


def reworked(
    change: Change, base: str, base_hash: str, new: str, put_text: Callable[[str], str], reason: str
) -> Change:
    """Sets the state `merged`, all hunks pending."""
    parts = hunks(base, new)
    added, removed = counts(parts)
    guess = change.rung not in ("", "exact") and not change.by_hand
    ask = f"{PLACED.get(change.rung)} in a version that has changed since" if guess else change.ask
    return replace(
        change,
        state="merged",
        base=base_hash,
        new=put_text(new),
        hunks=("pending",) * len(parts),
        added=added,
        removed=removed,
        reason=reason,
        ask=ask,
    )


#: The text of a hash; `None` for the empty hash (no file).
TextUnder = Callable[[str], str | None]
PutText = Callable[[str], str]
#: Author of changes outside sub-tasks.
CONVERSATION = "the conversation"


def joined(before: Change, change: Change, text_under: TextUnder, put_text: PutText) -> Change:
    """Combines a change with the rest of `before`, on its base. A change that starts from the result of
    `before` is chained. A failed merge sets `conflict`, with `before` as rival. Blocking.
    """
    ours, theirs = remaining(before, text_under), text_under(change.new) if change.new else None
    follows = change.path == (before.rename_to or before.path)
    if follows and ours == (text_under(change.base) if change.base else None):
        return _on_top(before, change, theirs, text_under, put_text)
    if ours is None or theirs is None or change.rename_to or (before.rename_to and not follows):
        if ours == theirs and before.rename_to == change.rename_to:
            return _both(before, replace(change, base=before.base))
        return in_conflict(change, before, "one of them removes or renames it")
    merged = merge(text_under(change.base) or "", ours, theirs)
    if merged.conflicts:
        return in_conflict(change, before, "both changed the same lines")
    return _on_top(before, change, merged.text, text_under, put_text)


def is_nothing(change: Change) -> bool:
    """Whether it deletes a file that was only proposed."""
    return change.kind == "delete" and not change.base


def _on_top(
    before: Change, change: Change, text: str | None, text_under: TextUnder, put_text: PutText
) -> Change:
    rename_to = "" if text is None else change.rename_to or before.rename_to
    path = before.path
    if not before.base:
        path, rename_to = rename_to or path, ""
    if text is None:
        kind: ChangeKind = "delete"
    elif not before.base:
        kind = "create"
    else:
        kind = "rename" if rename_to else "edit"
    one = replace(change, path=path, rename_to=rename_to, kind=kind, base=before.base)
    return _both(before, with_texts(one, text_under(before.base) or "", text or "", put_text))


def remaining(change: Change, text_under: TextUnder) -> str | None:
    if change.kind == "delete" or not change.new:
        return None
    base, new = text_under(change.base) or "", text_under(change.new) or ""
    chosen = {number for number, state in enumerate(change.hunks) if state != "skipped"}
    if len(chosen) == len(change.hunks):
        return new
    return compose(base, hunks(base, new), chosen)


def with_texts(change: Change, base: str, new: str, put_text: PutText) -> Change:
    parts = hunks(base, new)
    added, removed = counts(parts)
    hash_of_new = put_text(new) if change.kind != "delete" else ""
    return replace(
        change, new=hash_of_new, hunks=("pending",) * len(parts), added=added, removed=removed, rival=""
    )


def in_conflict(change: Change, rival: Change, why: str) -> Change:
    sides = f"{named(rival)} and {named(change)}"
    return replace(change, state="conflict", rival=rival.id, reason=f"{sides} do not go together: {why}")


def named(change: Change) -> str:
    return " with ".join(f"“{task}”" for task in change.tasks) or CONVERSATION


def _both(before: Change, change: Change) -> Change:
    return replace(
        change,
        tasks=tuple(dict.fromkeys((*before.tasks, *change.tasks))),
        todo=change.todo or before.todo,
        ask=before.ask or change.ask,
        rung=change.rung if change.rung == before.rung else "",
        by_hand=before.by_hand or change.by_hand,
        executable=before.executable if change.executable is None else change.executable,
        checks=tuple(dict.fromkeys((*before.checks, *change.checks))),
        comments=(*before.comments, *change.comments),
    )


class Overlay:
    """A run of characters typed over `base`, applied to `now` from the same base; `text` contains both.
    Drops a deletion if `now` changed the deleted text. Starts no process.
    """

    def __init__(self, base: str, typed: str, now: str) -> None:
        start = _same_start(base, typed)
        same_end = _same_end(base, typed, start)
        self._start, self._end, self._base_end = start, len(typed) - same_end, len(base) - same_end
        self._changed = list(_changed(base, now))
        self._at, after = self._moved(start), self._moved(self._base_end)
        if now[self._at : after] != base[start : self._base_end]:
            self._at = after
        self._grown = self._end - start - (after - self._at)
        self.text = now[: self._at] + typed[start : self._end] + now[after:]

    def place(self, at: int) -> int:
        if at < self._start:
            return self._moved(at)
        if at <= self._end:
            return self._at + at - self._start
        return self._moved(at - self._end + self._base_end) + self._grown

    def _moved(self, at: int) -> int:
        shift = 0
        for begin, old, new in self._changed:
            within = at - begin
            if within >= len(old) and within >= 0:
                shift += len(new) - len(old)
                continue
            start = _same_start(old, new)
            if within > start:
                left = min(len(old) - within, _same_end(old, new, start))
                return begin + shift + len(new) - left
            break
        return at + shift


def _changed(base: str, now: str) -> Iterator[tuple[int, str, str]]:
    lines, at, line = split(base), 0, 0
    for hunk in hunks(base, now):
        at += sum(map(len, lines[line : hunk.start]))
        line = hunk.start
        yield at, "".join(hunk.removed), "".join(hunk.added)


def _same_start(one: str, other: str) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def _same_end(one: str, other: str, start: int) -> int:
    low, high = 0, min(len(one), len(other)) - start
    while low < high:
        middle = (low + high + 1) // 2
        same = one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]
        low, high = (middle, high) if same else (low, middle - 1)
    return low
