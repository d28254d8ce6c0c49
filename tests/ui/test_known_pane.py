from __future__ import annotations

from support.panes import HOSTILE, NotedSession, PaneApp

from tui_agent.context.known_files import KnownFile, Touch
from tui_agent.files.text import size_in_words
from tui_agent.store.files import KnownSlice
from tui_agent.store.state import State
from tui_agent.ui.panes.known_files import KnownPane, columns_for, modified_since

FILES = (
    KnownFile("src/api.py", "9a906fd5909d0000", 4, 1200, modified_turn=4),
    KnownFile(
        "src/utils.py", "0123456789abcdef", 3, 98_000, freshness="disk", whole=False, loaded_by="bundle"
    ),
    KnownFile("old.py", "f" * 32, 2, 300, freshness="deleted"),
)


TOUCHES = (
    Touch("src/api.py", 1, "mentioned", ""),
    Touch("src/utils.py", 2, "read", "0123456789abcdef", at=1.0, read_at=1.0),
    Touch("src/api.py", 3, "read", "9a906fd5909d0000"),
    Touch("src/utils.py", 3, "changed outside", "", active=False, at=2.0, read_at=1.0, outside_at=2.0),
)


def known(*files: KnownFile, touches: tuple[Touch, ...] = (), dropped: tuple[str, ...] = ()) -> PaneApp:
    slice = KnownSlice({file.path: file for file in files}, touches, dropped)
    return PaneApp(KnownPane, NotedSession(State(known=slice)))


async def test_the_table_has_the_columns_that_fit():
    app = known(*FILES)
    async with app.run_test(size=(110, 8)) as pilot:
        heading = app.text.split("\n")[0]
        words = ["File", "Modified since", "Last seen", "Hash", "Seen", "Size", "Loaded by"]
        assert all(word in heading for word in words)
        row = app.line_with("src/utils.py")
        assert "⚠ Yes (on disk)" in row and "0123456789ab" in row and "part" in row and row.endswith("bundle")
        await pilot.resize_terminal(60, 8)
        await pilot.pause()
        assert "Hash" not in app.text and "Last seen" in app.text
        await pilot.resize_terminal(24, 8)
        await pilot.pause()
        assert app.line_with("src/utils.py").strip("▎▌ ") == "⚠ src/utils.py      3"


async def test_stale_files_stand_first_and_are_counted():
    app = known(*FILES)
    async with app.run_test(size=(60, 8)):
        order = [line.strip("▎▌ ").split()[0] for line in app.text.split("\n")[1:4]]
        assert order == ["src/utils.py", "old.py", "src/api.py"]
        assert str(app.pane.title_text) == "Known 3 ⚠2"


async def test_a_file_is_opened_by_key_and_by_mouse():
    app = known(*FILES)
    async with app.run_test(size=(60, 8)) as pilot:
        await pilot.press("enter")
        await pilot.click(offset=(5, 2))
        await pilot.click(offset=(5, 2))
        await pilot.pause()
        assert app.noted.named("files.open") == [("src/utils.py", 0), ("old.py", 0)]


async def test_files_that_had_to_leave_are_counted():
    app = known(*FILES, dropped=("a.py", "b.py"))
    async with app.run_test(size=(60, 8)):
        assert "2 more, seen longest ago" in app.text


async def test_the_timeline_of_the_file_at_the_cursor_stands_below_where_there_is_room():
    app = known(*FILES, touches=TOUCHES)
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        lines = [line for line in app.text.split("\n") if "turn" in line][-2:]
        assert "turn 3   changed outside" in lines[0] and "turn 2   read" in lines[1]
        assert "· outside" in app.text and "edited" not in app.text and "01234567" in lines[1]
        await pilot.press("end")
        await pilot.pause()
        assert "mentioned" in app.text and "changed outside" not in app.text
        await pilot.press("up")  # a file that nothing is told of
        await pilot.pause()
        assert "Timeline" not in app.text


async def test_a_key_shows_the_timeline_where_there_is_no_room_for_it():
    app = known(*FILES, touches=TOUCHES)
    async with app.run_test(size=(60, 8)) as pilot:
        assert "Timeline" not in app.text
        await pilot.press("t", "end")
        await pilot.pause()
        assert "mentioned" in app.text and "src/utils.py" not in app.text
        await pilot.press("t")
        await pilot.pause()
        assert "Timeline" not in app.text and "src/utils.py" in app.text


def test_every_way_to_be_out_of_date_has_its_words():
    def file(**fields) -> KnownFile:
        return KnownFile("a.py", "", 3, 0, **fields)

    said = [
        modified_since(file()),
        modified_since(file(freshness="edited", modified_turn=4)),
        modified_since(file(freshness="disk", modified_turn=4)),
        modified_since(file(freshness="buffer")),
        modified_since(file(freshness="deleted")),
        modified_since(file(freshness="renamed", renamed_to="b.py")),
    ]
    assert said == [
        "No",
        "⚠ Yes (turn 4)",
        "⚠ Yes (on disk)",
        "⚠ Yes (unsaved in the editor)",
        "deleted",
        "renamed to b.py",
    ]


def test_columns_are_given_up_from_the_right():
    counts = [len(columns_for(width)) for width in range(10, 130)]
    assert counts == sorted(counts) and counts[0] == 0 and counts[-1] == 6


def test_sizes_are_short():
    assert [size_in_words(n) for n in (0, 999, 12_345, 3_000_000)] == ["0 B", "999 B", "12.3 kB", "3.0 MB"]


async def test_an_empty_table_says_what_it_is_for():
    app = known()
    async with app.run_test(size=(60, 8)) as pilot:
        await pilot.press("enter")
        assert "Files that the model has read" in app.text and app.noted.calls == []


async def test_hostile_names_stay_text_at_any_width():
    for width in (20, 60, 120):
        app = known(
            KnownFile(HOSTILE, HOSTILE, 1, 1, freshness="renamed", renamed_to=HOSTILE, language=HOSTILE)
        )
        async with app.run_test(size=(width, 8)):
            assert "日本語" in app.text and "\x1b" not in app.text
