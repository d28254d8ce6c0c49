"""Reports of the process that compares a layer."""

from __future__ import annotations

import asyncio
import errno
import marshal
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tui_agent.sandbox import layer_changes
from tui_agent.sandbox.layer_changes import ChangedPath, LayerReader
from tui_agent.sandbox.view_plan import Seed, ViewPlan

FOUND = ("a", "new", True, "", 3, False, 2, "d", "")


def read(found: list[Any], left: dict[str, Any], *, size: int | None = None) -> layer_changes.Read:
    data = marshal.dumps({"found": found, "left": left})
    with tempfile.TemporaryFile() as file:
        file.write(b"..abc" + data)
        file.flush()
        changes, why = layer_changes._read_report(file, 5, len(data) if size is None else size)
        assert os.fstat(file.fileno()).st_size == 5
        assert [one.after for one in changes if one.contents is not None] in ([], [b"abc"])
        return changes, why


def test_a_change_has_its_content_if_it_was_kept() -> None:
    kept, left = read([FOUND, ("b", "deleted", False, "", 0, True, -1, "", "why")], {})[0]
    assert kept == ChangedPath("a", "new", True, size=3, digest="d") and kept.contents is not None
    assert left == ChangedPath("b", "deleted", meanwhile=True, why="why")
    assert (left.contents, left.after) == (None, None)


@pytest.mark.parametrize("size", [0, -1, (64 << 20) + 1])
def test_a_report_of_another_size_is_refused(size: int) -> None:
    with pytest.raises(ValueError):
        read([], {}, size=size)


@pytest.mark.parametrize("found", [[("a", "unknown", False, "", 0, False, -1, "", "")], [("a",)], [5]])
def test_a_report_of_another_shape_is_refused(found: list[Any]) -> None:
    with pytest.raises(ValueError):
        read(found, {})


REASONS = [
    ({}, ""),
    ({"files": (1, ["a"])}, "a (more than 20,000 files were written)"),
    ({"deleted": (2, ["a", "b"])}, "a, b (more than 20,000 files were deleted)"),
    ({"entries": (9, ["a", "b"])}, "a, b and others (there are more than 200,000 names)"),
    (
        {"texts": (1, ["a"]), "read": (1, ["b"])},
        "a (it is more than 64 MB of text); b (it is more than 1,024 MB)",
    ),
    ({"seconds": (1, ["a"])}, "a (it takes more than 20 s to read)"),
    ({"depth": (1, ["a\x1b[1m"])}, "a\\x1b[1m (folders lie more than 256 deep in others)"),
    ({"unreadable": (1, ["a" * 80])}, f"{'a' * 80} (it could not be read)"),
    ({"else": (1, [f"{'a' * 50}{'b' * 50}"])}, f"{'a' * 40}…{'b' * 39} (else)"),
]


@pytest.mark.parametrize(("left", "words"), REASONS)
def test_what_is_left_out_is_named_with_its_reason(left: dict[str, Any], words: str) -> None:
    whole = f"Not all written files are listed; left out: {words}" if words else ""
    assert read([FOUND], left)[1] == whole


PLAN = ViewPlan("/w", "/h", (), {}, (), (), ("/c", "/w"))


@pytest.mark.parametrize(
    ("seeds", "seeded"),
    [
        ((), False),
        ((Seed("a", "file"),), True),
        ((Seed("d/a", "hidden", overlay="/w"),), True),
        ((Seed(".git/config", "hidden"),), False),
        ((Seed("a", "hidden", overlay="/c"),), False),
    ],
)
async def test_an_empty_layer_of_bubblewrap_is_read_if_files_of_the_workspace_are_pending(
    seeds: tuple[Seed, ...], seeded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_: object) -> None:
        raise OSError(errno.ENOMEM, "no memory")

    monkeypatch.setattr(layer_changes, "start_apart", refused)
    (tmp_path / "1/u").mkdir(parents=True)
    held = os.open(tmp_path, os.O_RDONLY)
    try:
        async with layer_changes.LayerReader() as reader:
            plan = replace(PLAN, seeds=seeds, isolated="bubblewrap")
            _, unread = await reader.of_layer(held, plan, 0.0)
    finally:
        os.close(held)
    assert ("no memory" in unread) is seeded


def test_a_layer_is_empty_but_for_caches_and_folders_apart(tmp_path: Path) -> None:
    (tmp_path / "0/u/.pytest_cache").mkdir(parents=True)
    (tmp_path / "0/u/target").mkdir()
    held = os.open(tmp_path, os.O_RDONLY)
    try:
        assert layer_changes._is_empty("0/u", held, ["target"]) is True
        assert layer_changes._is_empty("0/u", held, []) is False
    finally:
        os.close(held)


async def test_a_caller_that_is_cancelled_while_the_reader_closes_is_cancelled() -> None:
    """Otherwise a session could wait forever for an agent that it ends while its changes are read."""
    closing = asyncio.Event()

    async def look() -> None:
        async with LayerReader():
            await asyncio.sleep(0)  # the reader waits until it is needed
            closing.set()

    looking = asyncio.create_task(look())
    await closing.wait()
    looking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await looking


async def test_a_caller_that_is_cancelled_just_as_its_reader_starts_is_cancelled(tmp_path: Path) -> None:
    """At any step: in Python 3.11, a limit of `wait_for` loses a cancellation that arrives at its end."""
    (tmp_path / "1/u").mkdir(parents=True)
    layers = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)

    async def look() -> None:
        async with LayerReader() as reader:
            await asyncio.sleep(0)  # the reader waits until it is needed
            await reader.of_paths(layers, PLAN, 0.0, ["a"])

    try:
        for steps in range(1, 8):
            looking = asyncio.create_task(look())
            for _ in range(steps):
                await asyncio.sleep(0)
            looking.cancel()
            await asyncio.wait([looking])
            assert looking.cancelled(), steps
    finally:
        os.close(layers)
