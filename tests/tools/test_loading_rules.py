"""Rules of loaded files that need no session: their entries, the sentences about those left out, and rules of calls."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tui_agent.context.file_contents import LoadedFile
from tui_agent.context.known_files import KnownFile
from tui_agent.store import events as e
from tui_agent.store.conversation import UsageSlice
from tui_agent.store.state import ModelSlice, State
from tui_agent.tools.load_files import (
    FilesRead,
    in_part,
    known_file,
    least_bytes,
    leave_out,
    part_notice,
    window_of,
)
from tui_agent.tools.tool import LoadedFiles

FILE = LoadedFile("a.py", "m", "x\n" * 20, 40, "request", "python")
PART = replace(FILE, ranges=((3, 5),))
BEFORE = KnownFile("a.py", "m", 1, 40, ranges=((9, 9),), shown=((9, 9),), whole=False, modified_turn=4)


@pytest.mark.parametrize(
    ("file", "before", "whole", "ranges", "shown", "modified"),
    [
        (FILE, None, True, (), (), 0),
        (PART, None, False, ((3, 5),), ((3, 5),), 0),
        (PART, BEFORE, False, ((3, 5),), ((3, 5), (9, 9)), 4),
        (PART, replace(BEFORE, md5="other"), False, ((3, 5),), ((3, 5),), 4),
        (PART, replace(BEFORE, freshness="disk"), False, ((3, 5),), ((3, 5),), 4),
        (PART, replace(BEFORE, whole=True), True, (), (), 4),
        (FILE, BEFORE, True, (), (), 4),
        (replace(FILE, masked=True), None, False, (), (), 0),
    ],
)
def test_the_entry_of_a_file_has_what_was_seen_of_it(
    file: LoadedFile,
    before: KnownFile | None,
    whole: bool,
    ranges: tuple[tuple[int, int], ...],
    shown: tuple[tuple[int, int], ...],
    modified: int,
) -> None:
    known = known_file(file, 7, before)
    assert (known.seen_turn, known.lines, known.size, known.masked) == (7, 20, 40, file.masked)
    assert (known.whole, known.ranges, known.shown, known.modified_turn) == (whole, ranges, shown, modified)


LESS = ". Ask for less at a time."
LATER = ". Work on the files that are shown now. Do not request the others: they follow."


@pytest.mark.parametrize(
    ("action", "count", "of", "waits", "said"),
    [
        ("", 1, 1, False, f"1 file does not fit into the request and is not shown: f0{LESS}"),
        ("", 1, 3, False, f"1 of the 3 files does not fit into the request and is not shown: f0{LESS}"),
        ("A", 2, 2, False, f"2 files of “A” do not fit into the request and are not shown: f0, f1{LESS}"),
        (
            *("A", 2, 5, True),
            f"2 of the 5 files of “A” do not fit into the request and are not shown yet: f0, f1{LATER}",
        ),
    ],
)
async def test_files_without_room_are_named(action: str, count: int, of: int, waits: bool, said: str) -> None:
    events: list[e.Event] = []

    async def emit(event: e.Event) -> None:
        events.append(event)

    names = [f"f{number}" for number in range(count)]
    before = LoadedFiles(before={"f0": BEFORE}) if waits else None
    assert await leave_out(action, names, of, emit, made_room=before, waits=waits) == (said,)
    left, notice = events
    assert isinstance(left, e.FilesLeftOut) and isinstance(notice, e.NoticeGiven)
    assert (left.action, left.paths, left.reason, left.loaded) == (action, tuple(names), "room", waits)
    assert left.before == ((BEFORE,) if waits else ())
    assert notice.text.endswith("; “continue” sends the rest") is waits
    assert await leave_out(action, [], 5, emit) == () and len(events) == 2


@pytest.mark.parametrize(("count", "more"), [(20, "f19. Ask"), (23, "f19 and 3 more. Ask")])
async def test_of_many_files_without_room_the_first_are_named(count: int, more: str) -> None:
    async def emit(event: e.Event) -> None:
        pass

    (said,) = await leave_out("", [f"f{number}" for number in range(count)], count, emit)
    assert more in said


@pytest.mark.parametrize(
    ("window", "server", "scale", "room"),
    [
        (0, "", 1.0, 32_000),
        (10_000, "", 1.0, 10_000),
        (10_000, "", 2.0, 5_000),
        (8_000, "ollama", 1.0, 6_000),
    ],
)
def test_the_window_is_corrected(window: int, server: str, scale: float, room: int) -> None:
    state = State(model=ModelSlice(window=window, server=server), usage=UsageSlice(scale=scale))
    assert window_of(state) == room


def test_a_part_is_said() -> None:
    assert part_notice(PART).text == "a.py: the model sees lines 3-5 of 20"


def test_lines_that_a_request_names_are_kept_inside_the_file() -> None:
    read = FilesRead((FILE,))
    assert in_part(read, ()) is read
    assert in_part(read, [(19, 30)]).files[0].ranges == ((19, 20),)
    assert in_part(read, [(28, 30)]).files[0].ranges == ()
    assert [least_bytes(one) for one in (FILE, PART, replace(FILE, file_id="x"))] == [40, 0, 0]
