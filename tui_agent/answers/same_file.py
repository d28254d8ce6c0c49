"""Joins all changes of one file in a reply into one change, or refuses them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from tui_agent.answers import file_names
from tui_agent.answers.values import ChangeRequest, Refusal

#: Maximum number of steps; each is applied to the original file and merged.
MOST_STEPS = 100


def joined(
    changes: Iterable[ChangeRequest], refused: Iterable[Refusal] = ()
) -> tuple[list[ChangeRequest], list[Refusal]]:
    """One change per file, at the position of its first change, or a refusal. A renamed file keeps its
    identity. One refusal refuses all changes of the file."""
    files: dict[str, list[ChangeRequest]] = {}
    #: New name to the key of the file in `files`.
    moved: dict[str, str] = {}
    clashes: dict[str, str] = {}
    for change in changes:
        path = file_names.plain(change.path)
        path = moved.get(path, path)
        files.setdefault(path, []).append(change)
        target = file_names.plain(change.rename_to or "")
        if not target or target == path:
            continue
        if target in files or moved.get(target, path) != path:
            other = moved.get(target, target)
            clashes[path] = f"it is to become {target}, of which the same reply makes something else"
            clashes[other] = f"{path} is to take the place of {target} in the same reply"
        moved.setdefault(target, path)
    made = [
        (_name_after(several), path)
        for path, several in files.items()
        if not all(one.delete for one in several)
    ]
    names_made = {name for name, _ in made}
    for name, path in made:
        above = next((folder for folder in _folders(name) if folder in names_made), "")
        if above:
            clashes[path] = f"the same reply makes {above} a file, in which no other can be"
            clashes[moved.get(above, above)] = f"the same reply makes {name}, in which it would be a folder"
    told: dict[str, Refusal] = {}
    for refusal in refused:
        path = file_names.plain(refusal.path)
        told.setdefault(moved.get(path, path), refusal)
    found: list[ChangeRequest] = []
    without: list[Refusal] = []
    for path, several in files.items():
        if path in told:
            continue
        one = clashes.get(path) or (several[0] if len(several) == 1 else _together(several))
        if isinstance(one, str):
            without.extend(Refusal(change.path, one, change.rename_to or "") for change in several)
        else:
            found.append(one)
    return found, [*told.values(), *without]


def _name_after(several: Sequence[ChangeRequest]) -> str:
    """The name of a file after its changes."""
    return file_names.plain(
        next((one.rename_to for one in several if one.rename_to), None) or several[0].path
    )


def _folders(name: str) -> Iterator[str]:
    while "/" in name.strip("/"):
        name = name.rpartition("/")[0]
        yield name


def _together(several: Sequence[ChangeRequest]) -> ChangeRequest | str:
    """The changes of one file in order as one change, or the reason why they conflict."""
    steps: list[ChangeRequest] = []
    #: Edits of the last step, which the next entry continues.
    edits: list[list] = []
    rename, delete = None, False
    hashes = {change.base_hash for change in several if change.base_hash}
    if len(hashes) > 1 and not _one_hash(hashes):
        return "the same reply changes two versions of it"
    seen: set[ChangeRequest] = set()
    for change in several:
        bare = replace(change, todo_index=None, base_hash="", rename_to=None, executable=None)
        if change.rename_to:
            if rename and rename != change.rename_to:
                return f"the same reply moves it to {rename} and to {change.rename_to}"
            rename = change.rename_to
        elif (
            rename
            and change.content is not None
            and file_names.plain(change.path) != file_names.plain(rename)
        ):
            return "the same reply moves it away and writes another file in its place"
        if bare in seen:
            continue
        seen.add(bare)
        if change.delete:
            if steps or rename:
                return "the same reply removes it and changes it"
            delete = True
        elif change.content is not None:
            if steps:
                return "the same reply gives it whole content after another change of it"
            steps.append(replace(bare, fresh=bare.fresh and not delete))
            delete = False
            edits.append([])
        elif delete:
            return "the same reply removes it and changes it"
        elif change.edits:
            if not (steps and edits[-1]):
                steps.append(bare)
                edits.append([])
            edits[-1].extend(change.edits)
        elif change.diff:
            steps.append(bare)
            edits.append([])
    if len(steps) > MOST_STEPS:
        return f"the same reply changes it in more than {MOST_STEPS} steps"
    steps = [
        replace(step, edits=tuple(some)) if some else step for step, some in zip(steps, edits, strict=True)
    ]
    first = steps[0] if steps else ChangeRequest(several[0].path, delete=delete)
    return replace(
        first,
        path=several[0].path,
        rename_to=rename,
        todo_index=next((one.todo_index for one in several if one.todo_index is not None), None),
        base_hash=max(hashes, key=len, default=""),
        then=tuple(steps[1:]),
        executable=next((one.executable for one in reversed(several) if one.executable is not None), None),
    )


def _one_hash(hashes: set[str]) -> bool:
    """Whether all are prefixes of one hash."""
    longest = max(hashes, key=len)
    return all(longest.startswith(one) for one in hashes)
