"""Loaded files: the parts that the model has seen, and sentences about files without room."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tui_agent.context.file_contents import LoadedFile
from tui_agent.context.known_files import KnownFile
from tui_agent.store import events as e
from tui_agent.tools.load_files import (
    NAMED,
    FilesRead,
    in_part,
    known_file,
    least_bytes,
    leave_out,
    part_notice,
)

FILE = LoadedFile("a.py", "m", "1\n2\n3\n4\n5\n", 10, "request")
SEEN = KnownFile("a.py", "m", 1, 10, whole=False, shown=((1, 1),), ranges=((1, 1),), modified_turn=3)


@pytest.mark.parametrize(
    ("file", "before", "whole", "ranges", "shown"),
    [
        ({}, None, True, (), ()),
        ({"masked": True}, None, False, (), ()),
        ({"ranges": ((2, 3),)}, None, False, ((2, 3),), ((2, 3),)),
        ({"ranges": ((2, 3),)}, {}, False, ((2, 3),), ((1, 3),)),
        ({"ranges": ((3, 4),)}, {}, False, ((3, 4),), ((1, 1), (3, 4))),
        ({"ranges": ((2, 3),)}, {"md5": "other"}, False, ((2, 3),), ((2, 3),)),
        ({"ranges": ((2, 3),)}, {"freshness": "disk"}, False, ((2, 3),), ((2, 3),)),
        ({"ranges": ((2, 3),)}, {"whole": True}, True, (), ()),
        ({"ranges": ((2, 3),)}, {"whole": True, "md5": "other"}, False, ((2, 3),), ((2, 3),)),
        ({}, {}, True, (), ()),
    ],
)
def test_of_a_file_the_parts_that_were_shown_are_known(
    file: dict[str, Any], before: dict[str, Any] | None, whole: bool, ranges: Any, shown: Any
) -> None:
    earlier = None if before is None else replace(SEEN, **before)
    found = known_file(replace(FILE, **file), 7, earlier)
    assert (found.whole, found.ranges, found.shown) == (whole, ranges, shown)
    assert (found.seen_turn, found.lines, found.modified_turn) == (7, 5, 3 if earlier else 0)
    assert found.tokens == (2 if file.get("ranges") else 8)


def test_lines_that_a_request_names_are_kept_inside_the_file() -> None:
    read = FilesRead((FILE,))
    assert in_part(read, ()) is read
    assert in_part(read, [(2, 9)]).files[0].ranges == ((2, 5),)
    assert in_part(read, [(8, 9)]).files[0].ranges == ()
    assert [least_bytes(replace(FILE, **one)) for one in ({}, {"file_id": "x"}, {"ranges": ((1, 1),)})] == [
        10,
        0,
        0,
    ]
    words = part_notice(replace(FILE, ranges=((2, 3), (5, 5)))).text
    assert words == "a.py: the model sees lines 2-3, 5 of 5"


@pytest.mark.parametrize(
    ("action", "count", "of", "waits", "words"),
    [
        (
            "",
            1,
            1,
            False,
            "1 file does not fit into the request and is not shown: f0. Ask for less at a time.",
        ),
        ("x", 2, 2, False, "2 files of “x” do not fit into the request and are not shown: f0, f1."),
        (
            "x",
            1,
            3,
            True,
            "1 of the 3 files of “x” does not fit into the request and is not shown yet: f0. Work on",
        ),
        ("", NAMED + 2, 90, False, f"f{NAMED - 1} and 2 more. Ask for less"),
        ("", NAMED, 90, False, f"f{NAMED - 1}. Ask for less"),
    ],
)
async def test_files_without_room_are_counted_and_named(
    action: str, count: int, of: int, waits: bool, words: str
) -> None:
    emitted: list[e.Event] = []

    async def emit(event: e.Event) -> None:
        emitted.append(event)

    paths = [f"f{number}" for number in range(count)]
    (told,) = await leave_out(action, paths, of, emit, waits=waits)
    assert words in told
    left, notice = emitted
    assert isinstance(left, e.FilesLeftOut) and left.paths == tuple(paths) and not left.loaded
    assert isinstance(notice, e.NoticeGiven) and ("“continue” sends the rest" in notice.text) is waits
    assert await leave_out(action, [], of, emit) == () and len(emitted) == 2
