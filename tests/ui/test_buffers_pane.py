"""The editor: the session has the truth, the pane shows it and hands over what is typed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.color import Color
from support.screens import Driven, on_screen
from support.sessions import reply
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode
from textual.events import MouseScrollUp
from textual.widgets import OptionList

from tui_agent.ui.editor.code_editor import MOST_LINES, PART, Editor
from tui_agent.ui.layout.container import PaneContainer, RoomMaker
from tui_agent.ui.panes import buffers
from tui_agent.ui.panes.buffers import BuffersPane, FileTabs
from tui_agent.ui.panes.files import FilesPane
from tui_agent.ui.panes.status import StatusPane
from tui_agent.ui.widgets.syntax import CHUNK, LineHighlights

CODE = "import time\n\n\ndef fetch(url):\n    return get(url)\n"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "api.py").write_text(CODE)
    (folder / "evil.txt").write_text("a\x1b[31mred\x07 [bold]x[/] \u202eb\n")
    (folder / "README.md").write_text("# Shop\n")
    return folder


def editor(it: Driven) -> Editor:
    pane = it.pane("buffers")
    assert isinstance(pane, BuffersPane)
    assert pane.editor is not None
    return pane.editor


async def open_in(it: Driven, path: str, line: int = 0) -> Editor:
    await it.session.files.open(path, line)
    await it.until(lambda: any(e.path == path and e.revision >= 0 for e in it.screen.query(Editor)), path)
    await it.press("f4")
    return editor(it)


async def test_a_file_is_shown_with_numbers_and_its_tab(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await open_in(it, "src/api.py")
        assert "api.py" in it.text
        assert "4  def fetch(url):" in it.text


async def test_what_is_typed_is_handed_over_and_saved(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await open_in(it, "README.md")
        await it.press("X")
        await it.until(lambda: it.session.state.buffers.open[0].unsaved, "the edit")
        await it.until(lambda: it.one(FileTabs).render().plain == "README.md ●")
        await it.press("Y", "f2")
        await it.asked()
        assert (workspace / "README.md").read_text() == "XY# Shop\n"
        await it.until(lambda: it.one(FileTabs).render().plain == "README.md")


async def test_undo_takes_back_what_was_typed(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await open_in(it, "README.md")
        await it.press("X", "Y", "ctrl+z")
        assert editor(it).text == "# Shop\n"


async def test_a_file_opens_at_a_line(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await open_in(it, "src/api.py", 4)
        assert editor(it).cursor_location[0] == 3
        await it.session.files.open("src/api.py", 1)
        await it.until(lambda: editor(it).cursor_location[0] == 0)


async def test_the_cursor_is_handed_over(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await open_in(it, "src/api.py")
        await it.press("down", "down", "down", "right", "shift+right")
        await it.until(lambda: it.session.state.buffers.open[0].cursor == (3, 2), "the cursor")
        assert it.session.state.buffers.open[0].anchor == (3, 1)


async def test_a_change_from_outside_keeps_the_cursor(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await open_in(it, "src/api.py", 5)
        (workspace / "src" / "api.py").write_text(CODE + "# more\n")
        await it.session.files.reload("src/api.py")
        await it.until(lambda: "# more" in editor(it).text)
        assert editor(it).cursor_location[0] == 4
        await it.pilot.pause(0.5)
        assert not it.session.state.buffers.open[0].unsaved


async def test_what_was_just_typed_is_laid_over_a_change_that_comes_meanwhile(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buffers, "HAND_OVER_AFTER", 60.0)  # what is typed stays in the editor
    monkeypatch.setattr(BuffersPane, "on_text_area_changed", lambda *_: None)
    edits = [
        {"search": "import time", "replace": "import os\nimport time"},
        {"search": "get(url)", "replace": "get(url, 5)"},
    ]
    change = reply("Imports os.", fileChanges=[{"path": "src/api.py", "edits": edits}])
    async with on_screen(workspace, [change]) as it:
        await it.session.chat.submit("change src/api.py")
        await it.session.chat.finished()
        await open_in(it, "src/api.py", 5)
        await it.press("end", "#")
        await it.session.review.apply()
        applied = (workspace / "src" / "api.py").read_text()
        await it.until(lambda: "import os" in editor(it).text, "the change in the editor")
        await it.press("!")
        both = applied.replace("get(url, 5)", "get(url, 5)#!")
        assert editor(it).text == both
        await it.screen.flush()
        buffer = it.session.state.buffers.open[0]
        assert (buffer.text, buffer.unsaved, buffer.cursor) == (both, True, (5, 24))
        it.session.journal.grow(it.session._open_files.with_text("src/api.py", f"# first\n{both}"))
        await it.press("?")
        await it.screen.leave()  # before the screen has shown that change
        assert it.session.state.buffers.open[0].text == f"# first\n{both.replace('#!', '#!?')}"


async def test_every_character_stays_as_it_is_when_others_are_typed(workspace: Path) -> None:
    texts = ("a\x0cb\nc\u2028d\x85e\n", "a\r\nb\nc\r\n", "a\nb\r\nc", "a\rb\rc", "a\r\nb\rc\r\n", "a\nb\r")
    async with on_screen(workspace) as it:
        for number, text in enumerate(texts):
            path = f"odd{number}.py"
            (workspace / path).write_bytes(text.encode())
            await open_in(it, path)
            await it.press("down", "up", "right")
            await it.screen.flush()
            assert not it.session.state.buffers.open[-1].unsaved, repr(text)
            await it.press("x", "f2")
            await it.asked()
            assert (workspace / path).read_bytes() == (text[0] + "x" + text[1:]).encode()
            await it.press("ctrl+z")
            await it.screen.flush()
            assert it.session.state.buffers.open[-1].text == text


async def test_a_clash_with_the_disk_is_said_and_settled_by_a_key(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await open_in(it, "README.md")
        await it.press("X")
        await it.until(lambda: it.session.state.buffers.open[0].unsaved)
        (workspace / "README.md").write_text("# Other\n")
        await it.until(lambda: it.session.state.buffers.open[0].clash)  # the watcher has told
        await it.press("f2")
        await it.asked()
        assert (workspace / "README.md").read_text() == "# Other\n"
        await it.shows("Changed on disk while you edited")
        await it.press("backspace")  # what was read is there again, which is not what the disk has
        await it.until(lambda: not it.session.state.buffers.open[0].unsaved)
        await it.shows("Changed on disk while you edited")
        await it.press("X", "ctrl+o", "Y")
        await it.asked()
        await it.until(lambda: (workspace / "README.md").read_text() == "X# Shop\n")


async def test_a_clash_with_the_disk_is_merged_and_undone(workspace: Path) -> None:
    ours, theirs = CODE.replace("import time", "import tim"), CODE.replace("get(url)", "get(url, 5)")
    async with on_screen(workspace) as it:
        area = await open_in(it, "src/api.py", 1)
        await it.press("end", "backspace")
        await it.until(lambda: it.session.state.buffers.open[0].unsaved)
        (workspace / "src" / "api.py").write_text(theirs)
        await it.session._open_files.reload_changed("src/api.py")
        await it.shows("compare and merge")
        await it.press("ctrl+o", "0")
        await it.shows("src/api.py: changes on disk")
        await it.shows("return get(url, 5)")
        await it.press("enter")
        both = ours.replace("get(url)", "get(url, 5)")
        await it.until(lambda: area.text == both and not it.session.state.buffers.open[0].clash, "the merge")
        await it.press("ctrl+z")
        assert area.text == ours
        await it.until(lambda: it.session.state.buffers.open[0].clash, "the clash is there again")
        await it.press("ctrl+y", "f2")
        await it.asked()
        assert (workspace / "src" / "api.py").read_text() == both


async def test_where_both_changed_a_line_the_person_chooses(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await open_in(it, "src/api.py", 1)
        await it.press("end", "x")
        await it.until(lambda: it.session.state.buffers.open[0].unsaved)
        (workspace / "src" / "api.py").write_text(
            CODE.replace("time", "os").replace("get(url)", "get(url, 5)")
        )
        await it.session._open_files.reload_changed("src/api.py")
        await it.press("ctrl+o", "0")
        await it.shows("src/api.py: 1 conflict to resolve")
        await it.shows("theirs: the version of the disk")
        await it.press("3")
        both = CODE.replace("import time", "import timex\nimport os").replace("get(url)", "get(url, 5)")
        await it.until(lambda: editor(it).text == both, "both sides")
        await it.press("f2")
        await it.asked()
        assert (workspace / "src" / "api.py").read_text() == both


async def test_tabs_are_walked_and_closed_by_keys(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await open_in(it, "README.md")
        await open_in(it, "src/api.py")
        await it.press("ctrl+pagedown")
        await it.until(lambda: it.session.state.buffers.active == "README.md")
        await it.until(lambda: editor(it).has_focus)
        await it.press("ctrl+o", "x")
        await it.until(lambda: [b.path for b in it.session.state.buffers.open] == ["src/api.py"])
        await it.until(lambda: [e.path for e in it.screen.query(Editor)] == ["src/api.py"])


async def test_a_tab_is_chosen_by_a_click(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await open_in(it, "README.md")
        await open_in(it, "src/api.py")
        row = next(y for y, line in enumerate(it.text.splitlines()) if "README.md   api.py" in line)
        await it.pilot.click(offset=(it.text.splitlines()[row].index("README.md   api.py") + 1, row))
        await it.until(lambda: it.session.state.buffers.active == "README.md")


async def test_a_tab_shows_with_the_first_key_that_its_file_is_changed(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A click in the same moment finds the tabs where they are drawn."""
    monkeypatch.setattr(buffers, "HAND_OVER_AFTER", 60.0)
    async with on_screen(workspace) as it:
        await open_in(it, "README.md")
        tabs = it.one(FileTabs)
        for key, shown in (("X", "README.md ●"), ("Y", "README.md ●"), ("backspace", "README.md ●")):
            await it.press(key)
            assert tabs.render().plain == shown, key
        assert it.session.state.buffers.open[0].text == "X# Shop\n", "the others wait for a pause"
        await it.press("backspace")
        assert tabs.render().plain == "README.md", "the text is that of the disk again"


async def test_a_letter_shows_no_other_pane_and_no_tab_again_and_asks_nobody_above(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on_screen(workspace) as it:
        await open_in(it, "README.md")
        await it.press("X")
        await it.until(lambda: it.session.state.buffers.open[0].text == "X# Shop\n")
        await it.pilot.pause(0.1)
        called: list[str] = []

        def counted(kind: type, name: str) -> None:
            """Count calls that are not about the editor itself."""
            method = getattr(kind, name)

            def count(self: Any, *given: Any) -> Any:
                called.append(f"{type(self).__name__}.{name}")
                return method(self, *given)

            monkeypatch.setattr(kind, name, count)

        for kind in (StatusPane, FilesPane, FileTabs, RoomMaker):
            counted(kind, "show")
        counted(PaneContainer, "_get_dispatch_methods")
        monkeypatch.setattr(
            PaneContainer, "children", property(lambda self: called.append("children") or self._nodes)
        )
        await it.press("Y", "Z")
        await it.until(lambda: it.session.state.buffers.open[0].text == "XYZ# Shop\n")
        assert it.screen.bridge is not None
        while it.screen.bridge.flush():
            await it.pilot.pause()
        assert not called
        await it.press("backspace", "backspace", "backspace")
        await it.until(lambda: not it.session.state.buffers.open[0].unsaved)
        await it.until(lambda: "StatusPane.show" in called and "FileTabs.show" in called)


async def test_words_are_found_and_the_search_wraps(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await open_in(it, "src/api.py")
        await it.press("ctrl+f", *"URL")
        await it.until(lambda: editor(it).selected_text == "url")
        assert editor(it).selection.start == (3, 10)
        await it.press("enter")
        assert editor(it).selection.start == (4, 15)
        await it.press("enter")
        assert editor(it).selection.start == (3, 10)
        await it.press("up")
        assert editor(it).selection.start == (4, 15)
        await it.press(*"zzz")
        await it.shows("not found")
        await it.shows("Esc close")
        await it.press("escape")
        await it.until(lambda: editor(it).has_focus)


async def test_words_are_replaced_one_by_one_and_all_at_once(workspace: Path) -> None:
    text = "".join(f"def get_{n}(url, URL):\r\n    return x\r\n" for n in range(3))
    (workspace / "calls.py").write_bytes(text.encode())
    async with on_screen(workspace) as it:
        area = await open_in(it, "calls.py")
        await it.press("ctrl+backslash", *"url", "tab", *"a$1")
        await it.shows("1: def get_0(urla$1, URL):")  # what it is, and what it would be
        await it.shows("1 of 6 found")
        await it.press("enter")
        assert area.text == text.replace("url", "a$1", 1)
        await it.press("alt+c", "tab")  # now only what is written alike
        await it.shows("1 of 2 found")
        await it.press("tab", "alt+a")
        await it.shows("Replace 2 places in 2 lines of calls.py")
        await it.press("enter")
        await it.shows("Replaced 2 places in 2 lines")
        assert area.text == text.replace("url", "a$1")
        await it.press("escape", "ctrl+z")
        assert area.text == text.replace("url", "a$1", 1)
        await it.press("ctrl+z")
        assert area.text == text
        area.select((2, 0), (4, 0))
        await it.press("ctrl+backslash", "alt+r", *r"(\w+)_\d", "tab", "ctrl+u", *r"\1\n", "alt+a")
        await it.shows("Replace 1 place in 1 line of calls.py")
        await it.press("enter")
        await it.shows("Replaced 1 place")
        assert area.text == text.replace("get_1", "get\r\n")


async def test_an_expression_that_is_wrong_or_takes_for_ever_is_a_sentence(workspace: Path) -> None:
    (workspace / "long.txt").write_text("a" * 60 + "b\n")
    async with on_screen(workspace) as it:
        await open_in(it, "long.txt")
        await it.press("ctrl+f", "alt+r", *"(a|aa")
        await it.shows("The expression cannot be read, missing ) at position 5: correct it")
        await it.press(*")+$", "x")  # letters do not wait for it
        await it.press("backspace")
        await it.shows("The expression takes longer than 1 s: make it more specific")
        await it.press("ctrl+u", "b", "enter")
        await it.shows("1 of 1 found")


async def test_going_to_a_line_styles_only_what_looks_different(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on_screen(workspace) as it:
        area = await open_in(it, "src/api.py")
        styled: list[DOMNode] = []
        apply = Stylesheet.apply

        def applied(sheet: Stylesheet, node: DOMNode, **how: Any) -> None:
            styled.append(node)
            apply(sheet, node, **how)

        monkeypatch.setattr(Stylesheet, "apply", applied)
        await it.press("ctrl+l", "4", "enter")
        await it.until(lambda: area.cursor_location == (3, 0) and area.has_focus)
        pane, tabs = it.pane("buffers"), it.one(FileTabs)
        assert not {area, pane, tabs}.intersection(styled), "the focus stays in the pane"
        found = pane.styles.border_left[1], tabs.styles.color
        await it.press("f7")
        await it.until(lambda: tabs in styled and pane in styled)
        assert area not in styled
        left = pane.styles.border_left[1], tabs.styles.color
        assert left[0] != found[0] and left[1] != found[1]
        await it.press("f4")
        await it.until(lambda: area.has_focus)
        assert (pane.styles.border_left[1], tabs.styles.color) == found


async def test_escape_sequences_in_a_file_are_seen_and_kept(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        before = (workspace / "evil.txt").read_bytes()
        await open_in(it, "evil.txt")
        assert "a␛[31mred␇ [bold]x[/]" in it.text
        await it.press("end", "!", "f2")
        await it.asked()
        assert (workspace / "evil.txt").read_bytes() == before.replace(b"\n", b"!\n")


async def test_a_binary_file_is_read_only(workspace: Path) -> None:
    (workspace / "logo.png").write_bytes(b"\x89PNG\x00\x01\x02")
    async with on_screen(workspace) as it:
        await it.session.files.open("logo.png")
        await it.shows("Read only: it is not UTF-8 text")
        await it.press("f4", "x")
        assert "F2 save" not in it.text.splitlines()[-1]
        await it.pilot.pause(0.5)
        assert not it.session.state.buffers.open[0].unsaved


async def test_tab_indents_and_f6_leaves(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await open_in(it, "README.md")
        await it.press("tab")
        assert editor(it).text.startswith("    # Shop")
        await it.press("f6")
        assert it.session.state.layout.focus == "review"


async def test_code_is_coloured_in_the_lines_in_view_only(workspace: Path) -> None:
    (workspace / "long.py").write_text("def f(x):\n    return 'text'\n" * 1000)
    async with on_screen(workspace) as it:
        await open_in(it, "long.py")
        keyword = Color.parse(it.app.theme_variables["syntax-keyword"]).triplet
        drawn = {style.color.triplet for _, style, _ in editor(it).render_line(0) if style and style.color}
        assert keyword in drawn
        highlights = editor(it).colours
        assert isinstance(highlights, LineHighlights)
        assert {name for _, _, name in highlights[1]} >= {"string"}
        assert 0 < len(highlights) <= 3 * CHUNK


async def test_unsaved_text_is_handed_over_before_anything_is_asked(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await open_in(it, "README.md")
        await it.press("Z", "ctrl+c", "ctrl+c")
        await it.until(lambda: it.app.return_code == 0)
        assert it.session.state.buffers.open[0].text == "Z# Shop\n"


async def test_a_very_long_file_is_shown_in_parts_and_never_edited(workspace: Path) -> None:
    (workspace / "long.txt").write_text("".join(f"line {n}\n" for n in range(1, MOST_LINES + 5_000)))
    async with on_screen(workspace) as it:
        await open_in(it, "long.txt")
        await it.shows("shown in parts")
        assert editor(it).document.line_count == PART
        await it.press("ctrl+l", *"52000", "enter")
        await it.shows("52000  line 52000")
        await it.until(lambda: it.session.state.buffers.open[0].cursor == (51_999, 0), "the cursor")
        await it.press("ctrl+f", *"line 777")
        await it.until(lambda: editor(it).place[0] == (776, 8))
        await it.press("escape", "x", "f2")
        await it.asked()
        assert not it.session.state.buffers.open[0].unsaved


async def test_the_next_part_comes_at_the_edge(workspace: Path) -> None:
    (workspace / "long.txt").write_text("".join(f"line {n}\n" for n in range(1, MOST_LINES + 5_000)))
    async with on_screen(workspace) as it:
        await open_in(it, "long.txt", PART)
        assert editor(it).place[0] == (PART - 1, 0)
        editor(it).go_to_line(editor(it).first_line + editor(it).document.line_count)
        at = editor(it).place[0][0]
        await it.press("down")
        await it.until(lambda: editor(it).place[0] == (at + 1, 0))
        assert editor(it).document.get_line(editor(it).cursor_location[0]) == f"line {at + 2}"


async def test_the_widest_line_can_be_reached(workspace: Path) -> None:
    (workspace / "wide.txt").write_text("short\n" + "\t" + "日本" * 200 + "\n" + "x" * 300 + "\n")
    async with on_screen(workspace) as it:
        await open_in(it, "wide.txt")
        assert editor(it).virtual_size.width > 800


async def test_the_view_comes_back_from_a_long_line_with_the_cursor(workspace: Path) -> None:
    (workspace / "wide.py").write_text("short = 1\n" + "x" * 300 + "\nshort = 2\n" + "y" * 300)
    async with on_screen(workspace, size=(80, 24)) as it:
        area = await open_in(it, "wide.py", 2)
        await it.press("end")
        await it.until(lambda: area.scroll_x > 200, "the end of the line")
        await it.press("down")
        await it.until(lambda: area.scroll_x == 0, "the beginning")
        await it.press("down", "end", *["ctrl+left"], "home")
        await it.until(lambda: area.scroll_x == 0, "the beginning")
        await it.press("end")
        await it.until(lambda: area.scroll_x > 200)
        left = area.scroll_x
        for _ in range(12):
            area.post_message(scrolled(area, MouseScrollUp))
        await it.until(lambda: area.scroll_x < left, "Shift and the wheel")
        left = area.scroll_x
        await it.pilot.click(area, offset=(20, 3))
        assert area.scroll_x == left and area.cursor_location[1] > left  # the mouse stays on what it pressed
        await it.press("up")
        await it.until(lambda: area.scroll_x == 0, "the beginning")


async def test_brackets_that_belong_together_are_seen_and_gone_between(workspace: Path) -> None:
    text = "f(\n    [1, '', {2: 3}],\n)\n" + "# (\n" * 20_000
    (workspace / "calls.txt").write_text(text)
    async with on_screen(workspace) as it:
        area = await open_in(it, "calls.txt")
        await it.press("right", "ctrl+right_square_bracket")
        assert area.cursor_location == (2, 0)
        await it.press("ctrl+right_square_bracket")
        assert area.cursor_location == (0, 1)
        area.move_cursor((1, 4))
        await it.press("ctrl+right_square_bracket")
        assert area.cursor_location == (1, 18) and area.matching_bracket_location == (1, 4)
        partner = area._theme.bracket_matching_style
        assert partner and partner.underline and partner.bold  # seen where there are no colours
        assert any(text == "[" and style and style.underline for text, style, _ in area.render_line(1))
        area.move_cursor((3, 2))
        assert area.matching_bracket_location is None  # looked for among the next lines only


def scrolled(area: Editor, kind: type[MouseScrollUp]) -> MouseScrollUp:
    return kind(area, 5, 5, 0, 0, 0, True, False, False)


#: Keys from the beginning of the line `    return get(url)`, and the lines from there on.
WRITING = (
    (("end", "enter", "x"), ["    return get(url)", "    x"]),
    (("shift+tab",), ["return get(url)"]),
    (("ctrl+underscore",), ["    # return get(url)"]),
    (("ctrl+underscore", "ctrl+underscore"), ["    return get(url)"]),
    (("ctrl+o", "2", "x"), ["    return get(url)", "x    return get(url)"]),
    (("ctrl+o", "3"), ["def fetch(url):"]),
    (("ctrl+o", "4"), ["    return get(url)", ""]),
    (("ctrl+o", "3", "ctrl+o", "4"), ["    return get(url)", ""]),
)


async def test_lines_are_written_as_in_any_editor_and_a_save_is_confirmed(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        area = await open_in(it, "src/api.py")
        for keys, wanted in WRITING:
            area.text = CODE
            area.move_cursor((4, 0))
            await it.press(*keys)
            assert area.text.split("\n")[4 : 4 + len(wanted)] == wanted, keys
        await it.press("ctrl+f", *"url")
        await it.shows("2 found")
        await it.press("escape", "ctrl+o", "5")
        assert area.soft_wrap
        await it.press("f2")
        await it.shows("Saved src/api.py")


async def test_symbols_are_listed_in_order_narrowed_and_gone_to(workspace: Path) -> None:
    (workspace / "shop.py").write_text(
        "class Cart:\n    def add(self, item):\n        return item\n\n    def total(self):\n        return 0\n\n\n"
        "def fetch(url):\n    return url\n"
    )
    (workspace / "README.md").write_text("# Shop\n\n```\n# none\n```\n\n## Set up\n\nRun it.\n")
    async with on_screen(workspace) as it:
        area = await open_in(it, "shop.py", 6)
        await it.press("ctrl+o", "8")
        await it.until(
            lambda: it.app.screen.query(OptionList) and it.app.screen.query_one(OptionList).options
        )
        options = it.app.screen.query_one(OptionList)
        shown = [str(option.prompt)[:24].rstrip() for option in options.options]
        assert shown == ["Cart", "  add", "  total", "fetch"] and options.highlighted == 2
        await it.press("escape")
        assert area.cursor_location == (5, 0)
        await it.press("ctrl+o", "8", "f", "e", "t", "enter")  # keys wait for what is looked for in a thread
        await it.until(lambda: area.cursor_location == (8, 4))

        area = await open_in(it, "README.md", 9)
        await it.press("ctrl+o", "8")
        await it.press("up", "enter")
        await it.until(lambda: area.cursor_location == (0, 2))

        await open_in(it, "evil.txt")
        await it.press("ctrl+o", "8")
        await it.until(
            lambda: any(
                "The language of evil.txt has no symbols" in notice.text
                for notice in it.session.state.notices.items
            )
        )
