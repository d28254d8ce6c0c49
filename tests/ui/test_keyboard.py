"""Keys and clicks that come close together: each is decided when what came before it is done and seen."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

from msgspec.structs import replace
from support.bursts import (
    ENTER,
    ESC,
    F3,
    F4,
    F5,
    F7,
    F8,
    FILES,
    FIND,
    LEADER,
    REPLACE,
    Ready,
    Typist,
    click,
    keys_of,
)
from support.screens import PATIENCE, Driven, on_screen
from support.terminal_answers import ALL
from textual.widgets import Input, OptionList, TextArea

from tui_agent.session.session import Session
from tui_agent.ui.app import PASTE_WAITS
from tui_agent.ui.dialogs.chooser import Chooser
from tui_agent.ui.dialogs.preview import Merge, Replacements
from tui_agent.ui.editor.code_editor import Editor
from tui_agent.ui.editor.find_bar import FindBar
from tui_agent.ui.keys.keyboard import WAITING
from tui_agent.ui.layout.container import TabLine
from tui_agent.ui.panes.buffers import FileTabs
from tui_agent.ui.panes.files import FileTree
from tui_agent.ui.terminal_input import OPEN_PASTE
from tui_agent.ui.widgets import pane

#: Two columns: the files lie behind the editor and the review until they are gone to.
SIZE = (130, 30)
#: Lets applying begin.
MAY_APPLY = asyncio.Event()
TODOS = LEADER + "o"


async def a_click_hits_what_is_there_after_the_key_before_it(driven: Driven, hands: Typist) -> None:
    assert driven.screen.query_one(FileTree).size
    await hands.types(F3 + click(8, 3))
    assert driven.session.state.buffers.active == "api.py"
    await hands.types(F5 + LEADER + "z" + click(75, 6))
    assert driven.session.state.layout.focus == "review", "the click went to what the zoomed pane covers"
    await hands.types(LEADER + "z")


async def keys_and_clicks_wait_for_what_was_asked_of_the_session(driven: Driven, hands: Typist) -> None:
    for where, data in ((F5, "an"), (F5, "a" + click(4, 1)), (F7, F8 + click(4, 1))):
        await hands.types(where)
        before, applies = driven.session.state.layout, len(driven.session.state.review.checkpoints)
        MAY_APPLY.clear()
        hands.read(data)
        for _ in range(60):
            await asyncio.sleep(0)
        assert not driven.app.keyboard.at_rest, repr(data)
        assert driven.session.state.layout == before, f"{data!r}: something was done before the apply was"
        MAY_APPLY.set()
        await hands.settle()
        assert len(driven.session.state.review.checkpoints) == applies + 1
        assert driven.session.state.layout != before


async def a_click_behind_a_paste_misses_the_list_that_it_emptied(driven: Driven, hands: Typist) -> None:
    await hands.types(LEADER + "t")
    listed = driven.app.screen.query_one(OptionList).region
    assert listed.height
    await hands.types("\x1b[200~no such theme\x1b[201~" + click(listed.x + 2, listed.y + 2))
    assert isinstance(driven.app.focused, Input), driven.app.focused
    await hands.types(ESC)


async def a_click_behind_a_change_hits_the_tab_that_is_there_then(driven: Driven, hands: Typist) -> None:
    await driven.session.files.open("api.py")
    await hands.types(F4)
    line = next(it for it in driven.screen.query(TabLine) if "buffers" in [pane for pane, _ in it._tabs[:-1]])
    before = [pane for pane, _ in line._tabs].index("buffers") + 1
    gap, labels = line._fitted()
    x = line.content_region.x + sum(it.cell_length + gap for it in labels[:before])
    await hands.types(F7)
    driven.session.files.edit("api.py", f"# longer title\n{FILES['api.py']}", (0, 0), (0, 0))
    await hands.types(click(x + 1, line.region.y + 1))
    assert driven.session.state.layout.focus == "buffers"


async def a_file_that_is_opened_comes_to_the_front_though_the_person_has_left(
    driven: Driven, hands: Typist
) -> None:
    opened, files = asyncio.Event(), driven.session.files
    await hands.types(F7 + F3)
    assert driven.session.state.layout.tabs["medium.chat"] == "chat"

    async def slow(path: str) -> None:
        await opened.wait()
        await type(files).open(files, path)

    with patch.object(files, "open", slow):
        hands.read("/models" + ENTER + TODOS)
        await driven.until(lambda: driven.session.state.layout.focus == "todos")
        opened.set()
        await hands.settle()
    assert driven.session.state.layout.focus == "todos"
    assert driven.session.state.layout.tabs["medium.chat"] == "buffers"


async def keys_behind_one_that_opens_a_dialog_are_for_the_dialog(driven: Driven, hands: Typist) -> None:
    session, threads, real = driven.session, asyncio.Event(), asyncio.to_thread
    await hands.types(F4 + "mine")
    (hands.workspace / "api.py").write_text(f"# theirs\n{FILES['api.py']}")
    await session._open_files.reload_changed("api.py")
    await hands.types(F4 + REPLACE + "url\turi" + F4)
    text = driven.one(Editor).text

    async def slow(*given: Any, **named: Any) -> Any:
        await threads.wait()
        return await real(*given, **named)

    driven.app.reopen = driven.app._open_session  # ty: ignore[invalid-assignment]
    with patch.object(asyncio, "to_thread", slow):
        for key, opened in (("0", Merge), ("=", Replacements), ("L", Chooser)):
            threads.clear()
            hands.read(LEADER + key + "x" + F7)
            for _ in range(60):
                await asyncio.sleep(0)
            threads.set()
            await hands.settle()
            assert isinstance(driven.app.screen, opened), driven.app.screen
            assert driven.one(Editor).text == text, key
            assert session.state.layout.focus == "buffers", key
            await hands.types(ESC)
    driven.app.reopen = None


async def what_is_replaced_was_looked_for_in_what_was_typed(driven: Driven, hands: Typist) -> None:
    text = driven.one(Editor).text.replace("(url)", "(a url )", 1)
    await hands.types(F4 + "a url " + LEADER + "=" + ENTER)
    assert driven.one(Editor).text == text.replace("url", "uri")
    await hands.types(F4 + FIND + ESC)


async def words_are_looked_for_from_where_the_cursor_was(driven: Driven, hands: Typist) -> None:
    editor = driven.one(Editor)
    for typed, row in (("f1z", 0), ("f4\x7f3", 12), ("f2" + ESC, 8)):
        for data in ([typed], keys_of(typed)):
            editor.select((0, 0), (0, 0))
            await hands.types(F4 + FIND)
            driven.one(FindBar).query_one("#find-words", Input).value = ""
            await hands.settle()
            for part in data:
                await hands.types(part)
            assert editor.place[0][0] == row, data
            await hands.types(ESC)


async def keys_behind_the_one_that_makes_the_screen_plain_go_to_the_pane_that_had_the_focus(
    driven: Driven, hands: Typist
) -> None:
    await hands.types(F5)
    for _ in range(2):
        await hands.types(LEADER + "9" + "]]")
        await driven.until(lambda: driven.screen.ready, "the other screen")
        assert driven.session.state.layout.focus == "review"


async def an_action_behind_that_key_finds_its_pane(driven: Driven, hands: Typist) -> None:
    for _ in range(2):
        await hands.types(F5)
        hands.read(LEADER + "9" + LEADER + "*")
        await driven.until(lambda: driven.app.keyboard.at_rest, "the keys to be handled")
        await hands.settle()
        assert "find_regex" in driven.one(FindBar)._switched, "the pane of the action was not there yet"
        await hands.types(LEADER + "*" + ESC)


async def a_tab_is_the_one_that_was_pressed(driven: Driven, hands: Typist) -> None:
    for path in ("api.py", "models.py", "notes/plan.md"):
        await driven.session.files.open(path)
    await hands.types(F4)
    tabs, session = driven.one(FileTabs), driven.session
    before = [
        tabs._label(buffer).cell_length + 3 for buffer in tabs._shown() if buffer.path != "notes/plan.md"
    ]
    press, _, release = click(tabs.content_region.x + sum(before) + 1, tabs.region.y + 1).partition("M")
    await hands.types(f"{press}M")
    text = f"# {'a longer title' * 3}\n"
    for path in ("api.py", "models.py"):  # a mark comes or goes beside the name
        buffer = session.state.buffers.get(path)
        assert buffer is not None
        if buffer.unsaved:
            await session.files.reload(path)
        else:
            session.files.edit(path, text, (0, 0), (0, 0))
    await hands.settle()
    after = [
        tabs._label(buffer).cell_length + 3 for buffer in tabs._shown() if buffer.path != "notes/plan.md"
    ]
    assert after != before
    await hands.types(release)
    assert session.state.buffers.active == "notes/plan.md"


async def a_key_waits_for_messages_that_are_under_way(driven: Driven, hands: Typist) -> None:
    await hands.types(F7)

    async def led_away() -> None:
        for _ in range(40):
            await asyncio.sleep(0)
        driven.screen.focus_pane("todos")

    driven.screen.call_later(led_away)
    await hands.types("a")
    assert driven.pane("todos").query_one(Input).has_focus, "the key was for the pane that was on its way"
    assert driven.session.state.input.draft == ""


async def the_focus_stays_in_the_pane_whose_focused_line_goes(driven: Driven, hands: Typist) -> None:
    for name, keys, line in (("todos", TODOS + "a", Input), ("buffers", F4 + "\x06", FindBar)):
        await hands.types(keys)
        driven.pane(name).query_one(line).display = False
        await hands.settle()
        assert driven.pane(name).has_focus_within, name
        assert driven.session.state.layout.focus == name


async def what_the_terminal_answers_late_is_no_key(driven: Driven, hands: Typist) -> None:
    def now() -> tuple[object, ...]:
        state, app = driven.session.state, driven.app
        typed = [area.text for area in driven.screen.query(TextArea)]
        return (
            state.review,
            state.todos,
            # Keys that waited for more than a fifth of a second are stored until all of them are handled.
            replace(
                state.input, typed={name: text for name, text in state.input.typed.items() if name != WAITING}
            ),
            state.buffers,
            state.layout,
            app.focused,
            app.screen,
            typed,
        )

    for place in (F4, F7, TODOS, F5):
        await hands.types(place)
        before = now()
        for answer in ALL:
            hands.read(answer)
        await hands.settle()
        assert now() == before, place


async def a_paste_without_its_end_is_told_and_ends_at_ctrl_c(driven: Driven, hands: Typist) -> None:
    await hands.types(F7 + "\x1b[200~one")
    with patch.object(hands.input, "_clock", lambda: time.monotonic() + OPEN_PASTE):
        hands.tick()
    await hands.types(" two")
    driven.app._disable_notifications = False
    await driven.until(lambda: any(it.message == PASTE_WAITS for it in driven.app._notifications))
    await hands.types("a" + F5 + "\x03")
    assert not any(it.message == PASTE_WAITS for it in driven.app._notifications)
    driven.app._disable_notifications = True
    assert driven.session.state.layout.focus == "chat"
    await driven.screen.flush()
    assert driven.session.state.input.draft.startswith("one twoa")
    await hands.types("\x15")


async def test_each_key_and_click_is_decided_when_what_came_before_it_is_done_and_seen(
    tmp_path: Path,
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    def prepare(session: Session) -> None:
        session.models.model = Ready([])
        apply = session.review.apply

        async def held(*given: Any) -> None:
            await MAY_APPLY.wait()
            await apply(*given)

        session.review.apply = held  # ty: ignore[invalid-assignment]

    MAY_APPLY.set()
    with patch.object(pane, "AT_MOST", PATIENCE):
        async with on_screen(tmp_path, size=SIZE, prepare=prepare) as driven:
            driven.session.workspace.index.replace(sorted(FILES))
            driven.app._disable_notifications = True
            hands = Typist(driven, tmp_path)
            await hands.propose()
            for case in CASES:
                await case(driven, hands)


CASES = (
    a_click_hits_what_is_there_after_the_key_before_it,
    keys_and_clicks_wait_for_what_was_asked_of_the_session,
    a_key_waits_for_messages_that_are_under_way,
    the_focus_stays_in_the_pane_whose_focused_line_goes,
    what_the_terminal_answers_late_is_no_key,
    a_paste_without_its_end_is_told_and_ends_at_ctrl_c,
    a_click_behind_a_paste_misses_the_list_that_it_emptied,
    a_file_that_is_opened_comes_to_the_front_though_the_person_has_left,
    a_click_behind_a_change_hits_the_tab_that_is_there_then,
    keys_behind_one_that_opens_a_dialog_are_for_the_dialog,
    what_is_replaced_was_looked_for_in_what_was_typed,
    words_are_looked_for_from_where_the_cursor_was,
    a_tab_is_the_one_that_was_pressed,
    keys_behind_the_one_that_makes_the_screen_plain_go_to_the_pane_that_had_the_focus,
    an_action_behind_that_key_finds_its_pane,
)
