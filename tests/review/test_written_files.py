"""Files that a command or a program wrote become changes, and two changes of one file are settled."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from tui_agent.edits.change import Change, text_under
from tui_agent.edits.merge import Side
from tui_agent.errors import EditFailed
from tui_agent.files.blobs import Blobs
from tui_agent.files.masking import MASK
from tui_agent.files.text import TextFile, md5
from tui_agent.review.conflicts import merge_two_changes, view_of_two
from tui_agent.review.review import change_of, changes_of, with_skips
from tui_agent.review.writer import CurrentFile, Writer
from tui_agent.sandbox.layer_changes import ChangedPath
from tui_agent.store import events as e


class Folder:
    """Stands for the writer: files by name, with permission bits."""

    def __init__(self, **files: tuple[str, int]) -> None:
        self._files = files

    async def current(self, path: str) -> CurrentFile:
        text, mode = self._files.get(path, (None, None))
        return now(path, text, mode)


def now(path: str, text: str | None, mode: int | None = None) -> CurrentFile:
    found = "" if text is None else md5(text.encode())
    return CurrentFile(path, text, found, TextFile(text or ""), mode=mode)


def folder() -> Writer:
    return cast(Writer, Folder(a=("one\ntwo\n", 0o644), run=("echo\n", 0o755), masked=(f"{MASK}\n", 0o644)))


def written(path: str, kind: Any, text: str | bytes | None = None, **fields: Any) -> ChangedPath:
    if text is None:
        return ChangedPath(path, kind, **fields)
    data = text.encode() if isinstance(text, str) else text
    file = tempfile.TemporaryFile()  # noqa: SIM115 the change owns it
    file.write(data)
    file.flush()
    return ChangedPath(path, kind, size=len(data), contents=file, **fields)


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return Blobs(tmp_path / "blobs")


@pytest.mark.parametrize(
    ("one", "kind", "executable", "counts"),
    [
        (written("new", "new", "x\n"), "create", None, (1, 0)),
        (written("new", "new", "x\n", executable=True), "create", True, (1, 0)),
        (written("a", "changed", "one\nTWO\n"), "edit", None, (1, 1)),
        (written("a", "new", "one\n"), "edit", None, (0, 1)),
        (written("a", "changed", "one\ntwo\n", executable=True), "edit", True, (0, 0)),
        (written("a", "mode", executable=True), "edit", True, (0, 0)),
        (written("run", "mode", executable=False), "edit", False, (0, 0)),
        (written("run", "changed", "ls\n", executable=True), "edit", None, (1, 1)),
        (written("run", "deleted"), "delete", None, (0, 1)),
        (written("masked", "changed", f"{MASK}\nmore\n"), "edit", None, (1, 0)),
        (written("gone", "changed", "x\n"), "create", None, (1, 0)),
    ],
)
async def test_a_written_file_is_a_change_of_the_current_one(
    blobs: Blobs, one: ChangedPath, kind: str, executable: bool | None, counts: tuple[int, int]
) -> None:
    named = Change("r1.1", 3, one.path, "edit", reason="from `make`")
    change = await change_of(one, named, folder(), blobs)
    assert (change.id, change.turn, change.kind, change.executable) == ("r1.1", 3, kind, executable)
    assert (change.added, change.removed) == counts and change.is_open
    before = await folder().current(one.path)
    assert change.base == before.md5


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (written("l", "link"), "it is a link"),
        (written("s", "special"), "it is not a file"),
        (written("big", "new", why="it is larger than 8 MiB"), "it is larger than 8 MiB"),
        (written("gone", "deleted"), "it was deleted, but is only proposed so far"),
        (written("a", "changed", f"{MASK}\n"), "stands for a secret"),
        (written("a", "changed", "x", meanwhile=True), "it was changed in the folder while the command ran"),
        (written("a", "changed", b"\xff\xfe\x00"), "a"),
    ],
)
async def test_another_path_is_left_out_with_the_reason(blobs: Blobs, one: ChangedPath, why: str) -> None:
    fine = written("new", "new", "x\n")
    changes, left = await changes_of([one, fine], "7", "make", 2, folder(), blobs)
    assert [(change.id, change.path, change.reason) for change in changes] == [("r7.2", "new", "from `make`")]
    assert len(left) == 1 and left[0].startswith(f"{one.path} is left out: ") and why in left[0]


@pytest.mark.parametrize(
    ("base", "text", "state", "result"),
    [
        ("one\ntwo\n", "one\nTWO\n", "pending", "one\nTWO\n"),
        ("uno\ntwo\n", "uno\ntwo\nthree\n", "merged", "one\ntwo\nthree\n"),
        ("uno\ntwo\n", "eins\ntwo\n", "conflict", None),
    ],
)
async def test_a_file_that_the_program_saw_otherwise_is_merged(
    blobs: Blobs, base: str, text: str, state: str, result: str | None
) -> None:
    one, named = written("a", "changed", text), Change("v.1", 1, "a", "edit")
    change = await change_of(one, named, folder(), blobs, blobs.put_text(base))
    assert change.state == state
    assert result is None or text_under(blobs, change.new) == result


async def test_skipped_hunks_stay_skipped_in_the_next_version(blobs: Blobs) -> None:
    async def version(text: str) -> Change:
        return await change_of(written("a", "changed", text), Change("v.1", 1, "a", "edit"), folder(), blobs)

    first = replace(await version("ONE\ntwo\nthree\n"), hunks=("skipped", "pending"))
    assert with_skips(await version("ONE\ntwo\nfour\n"), first, blobs).hunks == ("skipped", "pending")
    assert with_skips(await version("uno\ntwo\nthree\n"), first, blobs).hunks == ("pending", "pending")
    kept = replace(first, hunks=("pending", "pending"))
    assert with_skips(await version("ONE\ntwo\nfour\n"), kept, blobs).hunks == ("pending", "pending")


def two(blobs: Blobs, ours: str | None, theirs: str | None) -> tuple[Change, Change]:
    """The rival, and the change that is in conflict with it."""

    def change(name: str, text: str | None) -> Change:
        base = blobs.put_text("one\ntwo\n")
        new = "" if text is None else blobs.put_text(text)
        kind = "delete" if text is None else "edit"
        return Change(name, 1, "a", kind, base=base, new=new, hunks=("pending",), tasks=(name,))

    rival = change("first", ours)
    return rival, replace(change("second", theirs), state="conflict", rival="first", reason="both")


@pytest.mark.parametrize(
    ("theirs", "sides", "by_hand", "moved", "text"),
    [
        ("2\ntwo\n", ["yours"], {}, ("second", "skipped", "kept"), None),
        ("2\ntwo\n", ["theirs"], {}, ("first", "skipped", "joined into second"), "2\ntwo\n"),
        ("2\ntwo\n", ["yours"], {0: "3\n"}, ("first", "skipped", "joined into second"), "3\ntwo\n"),
        (None, ["theirs"], {}, ("first", "skipped", "kept"), ""),
    ],
)
def test_two_changes_become_one(
    blobs: Blobs,
    theirs: str | None,
    sides: list[Side],
    by_hand: Mapping[int, str],
    moved: tuple[str, str, str],
    text: str | None,
) -> None:
    rival, change = two(blobs, "1\ntwo\n", theirs)
    here = now("a", "one\ntwo\n")
    view = view_of_two(change, rival, blobs)
    assert (view.yours_gone, view.theirs_gone, len(view.conflicts)) == (False, theirs is None, 1)
    events = merge_two_changes(change, rival, sides, by_hand, view.now, here, blobs)
    first = events[0]
    assert isinstance(first, e.ChangeMoved)
    assert (first.id, first.state) == moved[:2] and moved[2] in first.reason and first.hunks == ("skipped",)
    reworked = [event.change for event in events if isinstance(event, e.ChangeReworked)]
    assert [one.state for one in reworked] == ([] if text is None else ["pending"])
    if text:
        assert text_under(blobs, reworked[0].new) == text
        assert (reworked[0].tasks, reworked[0].by_hand) == (("first", "second"), True)
    with pytest.raises(EditFailed, match="changed meanwhile"):
        merge_two_changes(change, rival, sides, by_hand, "older", here, blobs)
    with pytest.raises(EditFailed, match="changed meanwhile"):
        merge_two_changes(change, rival, [*sides, *sides], by_hand, view.now, here, blobs)


def test_a_merged_change_is_based_on_the_current_file(blobs: Blobs) -> None:
    rival, change = two(blobs, "1\ntwo\n", "2\ntwo\n")
    here = now("a", "one\ntwo\nthree\n")
    events = merge_two_changes(change, rival, ["theirs"], {}, "", here, blobs)
    (joined,) = (event.change for event in events if isinstance(event, e.ChangeReworked))
    assert text_under(blobs, joined.new) == "2\ntwo\nthree\n" and joined.base == here.md5
