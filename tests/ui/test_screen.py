"""The screen as a person meets it: typing at once, moving by keys, at every size, quitting with nothing lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

import pytest
from support.bursts import Typist
from support.screens import on_screen
from support.sessions import open_session, reply
from textual.widgets import Static
from textual.widgets._toast import Toast

from tui_agent.errors import SessionError
from tui_agent.session.session import Session
from tui_agent.store.state import State, TurnSlice
from tui_agent.ui import signals
from tui_agent.ui.app import WorkspaceApp
from tui_agent.ui.dialogs.chooser import Chooser
from tui_agent.ui.dialogs.dialog import Dialog
from tui_agent.ui.editor.code_editor import Editor
from tui_agent.ui.layout import container
from tui_agent.ui.panes import PANES
from tui_agent.ui.panes.files import FileTree
from tui_agent.ui.themes import names as theme_names
from tui_agent.ui.widgets.prompt import Prompt


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "api.py").write_text("def fetch(url):\n    return get(url)\n")
    (folder / "README.md").write_text("# Shop\n")
    return folder


@pytest.mark.parametrize("size", [(160, 48), (100, 30), (80, 24)])
async def test_every_pane_can_be_reached_by_keys_at_every_size(
    workspace: Path, size: tuple[int, int]
) -> None:
    async with on_screen(workspace, size=size) as it:
        seen = set()
        for _ in PANES:
            await it.press("f6")
            focus = it.session.state.layout.focus
            seen.add(focus)
            assert it.pane(focus).has_focus_within or it.pane(focus).has_focus
            assert it.pane(focus).region.area > 0
        assert seen == set(PANES)


async def test_what_is_typed_before_the_session_is_open_is_kept(workspace: Path) -> None:
    gate = asyncio.Event()
    async with open_session(workspace, services=False) as session:

        async def opened() -> Session:
            await gate.wait()
            return session

        app = WorkspaceApp(opened)
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.press("h", "e", "l", "l", "o", "space", "y", "backspace", "w")
            gate.set()
            while not app.workspace_screen.ready:
                await pilot.pause(0.01)
            prompt = app.workspace_screen.query_one(Prompt)
            while prompt.text != "hello w":
                await pilot.pause(0.01)


async def test_a_session_that_does_not_open_ends_with_its_error(tmp_path: Path) -> None:
    async def refused() -> Session:
        raise SessionError("The session is open elsewhere", "close it there")

    app = WorkspaceApp(refused)
    async with app.run_test() as pilot:
        while app.error is None:
            await pilot.pause(0.01)
    assert app.return_code == 1
    assert str(app.error) == "The session is open elsewhere: close it there"


async def test_a_resize_moves_panes_and_keeps_what_was_typed(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await it.press(*"half a thought")
        for size in ((100, 30), (80, 24), (40, 10), (200, 60)):
            await it.pilot.resize_terminal(*size)
            await it.pilot.pause()
            assert it.one(Prompt).text == "half a thought"
            assert it.one(Prompt).has_focus
            assert it.pane("chat").region.area > 0
        assert "Plan" in it.text and "Todos" in it.text


async def test_a_tab_is_chosen_by_a_click(workspace: Path) -> None:
    async with on_screen(workspace, size=(80, 24)) as it:
        await it.pilot.click(offset=(it.text.splitlines()[0].index("Todos"), 0))
        await it.until(lambda: it.session.state.layout.focus == "todos")


async def test_a_click_gives_a_pane_the_focus(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await it.pilot.click(offset=(10, 12))
        await it.until(lambda: it.session.state.layout.focus == "files")


async def test_zoom_and_back(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await it.press("f9")
        assert it.pane("chat").region.width == 160
        assert not it.pane("files").display
        await it.press("escape")
        assert it.pane("files").display


async def test_a_pane_is_resized_by_keys_and_by_the_mouse(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        usual = it.pane("chat").region.width
        await it.press("ctrl+o", "right", "ctrl+o", "right")
        await it.until(lambda: it.pane("chat").region.width > usual + 4)
        assert it.session.state.layout.sizes
        await it.press("ctrl+o", "a")
        await it.until(lambda: it.pane("chat").region.width == usual)
        ground = it.pane("chat").region.x - 1
        await it.pilot.mouse_down(offset=(ground, 20))
        await it.pilot.hover(offset=(ground - 6, 20))
        await it.pilot.mouse_up(offset=(ground - 6, 20))
        await it.until(lambda: it.pane("chat").region.width == usual + 6)
        await it.pilot.hover(offset=(ground - 20, 20))
        assert it.pane("chat").region.width == usual + 6


async def test_the_mouse_presses_keys_moves_titles_and_offers_what_can_be_done(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await it.session.files.open("README.md")
        await it.session.todos.add("One")
        await it.press("end")
        await it.until(lambda: it.pane("todos").display)
        top = it.pane("todos").region.y - 1
        await it.pilot.mouse_down(offset=(150, top))
        await it.pilot.hover(offset=(150, top - 5))
        await it.pilot.mouse_up(offset=(150, top - 5))
        await it.until(lambda: it.pane("todos").region.y == top - 4, "the title was dragged")
        tree, editor = it.one(FileTree), it.one(Editor)
        lines = it.text.splitlines()
        row = next(at for at, line in enumerate(lines) if "README.md" in line[:20])
        await Typist(it, workspace).types(f"\x1b[<2;11;{row + 1}M\x1b[<2;11;{row + 1}m")
        await it.shows("Find a file")
        assert tree.cursor_node is not None and "README" in str(tree.cursor_node.label), "the place under it"
        assert "Apply the change" not in it.text
        await it.press("escape")
        x, y = editor.region.x + editor.gutter_width + 4, editor.region.y + 1
        await Typist(it, workspace).types(f"\x1b[<2;{x};{y}M\x1b[<2;{x};{y}m")
        await it.shows("Save the file")
        assert editor.cursor_location == (0, 3) and it.session.state.layout.focus == "buffers"
        await it.press("escape")
        await it.pilot.click(offset=(it.text.splitlines()[-1].index("palette"), 47))
        await it.shows("name of an action")


async def test_a_long_turn_that_ends_unseen_rings_and_the_title_says_what_runs(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("TMUX", "/tmp/tmux-1000/default,1,0")
    async with on_screen(workspace) as it:
        monkeypatch.setattr(it.app._driver, "write", written.append)
        told = signals.Signals(it.app, it.app.keyboard, "shop", it.session.loaded.settings.screen.bell_after)
        for phase in ("asking", "idle"):
            told.show(State(turn=TurnSlice(number=1, phase=phase)))
        assert written == ["\x1b]2;● shop · tui-agent\x07", "\x1b]2;shop · tui-agent\x07"], "it was short"
        monkeypatch.setattr(signals, "AWAY", 0.0)
        for long in (0.0, 1e-9):  # 0: never
            told = signals.Signals(it.app, it.app.keyboard, "shop", long)
            for phase in ("asking", "idle"):
                told.show(State(turn=TurnSlice(number=2, phase=phase)))
        assert written[6:] == ["\a", "\x1bPtmux;\x1b\x1b]9;shop: turn 2 has ended\x07\x1b\\"]
        told = signals.Signals(it.app, it.app.keyboard, "shop", 20.0)
        for _ in range(2):
            told.show(State(turn=TurnSlice(number=3, phase="waiting")))
        assert [one for one in written[8:] if "question" in one] == [
            "\x1bPtmux;\x1b\x1b]9;shop: a question is open\x07\x1b\\"
        ], "once"
        told = signals.Signals(it.app, it.app.keyboard, "shop", 1e-9, f"touch '{tmp_path}/of me'")
        for phase in ("asking", "idle"):
            told.show(State(turn=TurnSlice(number=4, phase=phase)))
        await it.until(lambda: (tmp_path / "of me").exists(), "the command is run")
        assert (tmp_path / "shop: turn 4 has ended").is_file(), "the message is its last argument"


@pytest.mark.parametrize(
    ("variables", "sequence"),
    [
        (
            {"TERM": "xterm-kitty"},
            "\x1b]99;i=tui-agent:d=0;a;b\x1b\\\x1b]99;i=tui-agent:p=body;it ended\x1b\\",
        ),
        ({"TERM": "xterm-256color", "VTE_VERSION": "7600"}, "\x1b]777;notify;a,b;it ended\x07"),
        ({"TERM": "foot"}, "\x1b]777;notify;a,b;it ended\x07"),
        ({"TERM": "xterm-256color"}, "\x1b]9;a;b: it ended\x07"),
    ],
)
def test_a_notification_has_the_form_of_the_terminal(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], sequence: str
) -> None:
    for name in ("TERM", "VTE_VERSION", "KITTY_WINDOW_ID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert signals.notification("a;b", "it ended") == sequence


async def test_a_hidden_pane_comes_back_when_it_is_wanted(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await it.press("f3", "ctrl+o", "h")
        assert it.session.state.layout.hidden == ("files",)
        assert it.session.state.layout.focus == "chat"
        await it.press("f3")
        assert it.session.state.layout.hidden == ()
        assert it.pane("files").has_focus_within


async def test_escape_leads_back_to_the_chat(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await it.press("f5", "escape")
        assert it.one(Prompt).has_focus


async def test_what_is_worth_a_look_comes_to_the_front_without_taking_the_focus(workspace: Path) -> None:
    change = {"path": "src/api.py", "edits": [{"search": "get(url)", "replace": "get(url, 5)"}]}
    async with on_screen(workspace, [reply("Adds it.", fileChanges=[change])], size=(130, 40)) as it:
        assert it.pane("files").display and not it.pane("plan").display
        await it.press(*"change src/api.py", "enter")
        await it.until(lambda: it.pane("plan").display, "the plan opened")
        await it.shows("Review ●1")  # in the title of the column that is worked in
        assert it.one(Prompt).has_focus and not it.pane("review").display


async def test_the_centre_follows_the_work_and_a_click_moves_nothing(workspace: Path) -> None:
    async with on_screen(workspace, size=(160, 48)) as it:
        assert it.pane("chat").region.width == 96 and it.pane("review").display
        await it.press("f5")
        await it.until(lambda: it.pane("review").region.width == 96, "the review wide")
        await it.pilot.click(Prompt)
        await it.until(lambda: it.one(Prompt).has_focus, "the chat in use")
        assert it.pane("review").region.width == 96, "what is clicked stays below the pointer"
        await it.press("f7")
        await it.until(lambda: it.pane("chat").region.width == 96, "the chat wide")


async def test_a_pane_that_someone_works_in_is_not_covered(workspace: Path) -> None:
    change = {"path": "src/api.py", "edits": [{"search": "get(url)", "replace": "get(url, 5)"}]}
    async with on_screen(workspace, [reply("Adds it.", fileChanges=[change])], size=(100, 30)) as it:
        await it.press("f3")
        await it.session.chat.submit("change src/api.py")
        await it.session.chat.finished()
        await it.pilot.pause(0.2)
        assert it.session.state.review.open
        assert it.pane("files").display


async def test_titles_of_tabs_always_fit(workspace: Path) -> None:
    change = {"path": "src/api.py", "edits": [{"search": "get(url)", "replace": "get(url, 5)"}]}
    async with on_screen(workspace, [reply("Adds it.", fileChanges=[change])], size=(80, 24)) as it:
        await it.session.chat.submit("change src/api.py")
        await it.session.chat.finished()
        for width in (80, 60, 50):
            await it.pilot.resize_terminal(width, 24)
            await it.press("f5")
            await it.pilot.pause()
            titles = it.text.splitlines()[0]
            assert " K" in titles and "●1" in titles, "counts are left in titles that are cut"


async def test_the_palette_does_what_it_says(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await it.press("ctrl+p", *"go to the todos")
        await it.shows("Go to the todos")
        await it.press("enter")
        await it.until(lambda: it.session.state.layout.focus == "todos")


async def test_the_leader_shows_what_can_follow(workspace: Path) -> None:
    """What can be done now, in groups, and another page at a key; the second key is the same on every page."""
    async with on_screen(workspace, size=(80, 24)) as it:
        await it.press("ctrl+o")
        await it.shows("Go to")
        await it.shows("Page 1 of")
        assert (
            "Sub-tasks" in it.text
            and "Undo the last apply" not in it.text
            and "Close the file" not in it.text
        )
        assert "Zoom the pane" not in it.text
        for _ in range(4):  # pages
            await it.press(*([] if "Zoom the pane" in it.text else ["tab"]))
        assert "Zoom the pane" in it.text and it.screen.leader.waiting is not None
        await it.press("t", "down")
        await it.until(lambda: it.app.theme == "high-contrast", "a theme is seen before it is chosen")
        await it.press("escape")
        await it.until(lambda: it.app.theme == "dark", "the theme as before")


async def test_the_palette_has_what_was_done_last_first_and_says_what_cannot_be_done(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await it.press("ctrl+p", *"zoom", "enter")
        await it.until(lambda: it.session.state.layout.zoomed)
        await it.press("ctrl+p")
        await it.shows("recent")
        assert "Zoom the pane" in next(line for line in it.text.splitlines() if "recent" in line)
        await it.press(*"the last apply")
        await it.shows("nothing was applied")
        await it.press("escape", "f1", *"ctrl+o u")
        await it.shows("Undo the last apply")
        assert "Rename this session" not in it.text
    async with on_screen(workspace) as it:  # another run knows them still
        await it.press("ctrl+p")
        await it.shows("recent")
        assert "Zoom the pane" in next(line for line in it.text.splitlines() if "recent" in line)


async def test_the_key_help_begins_with_the_pane(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await it.press("f5", "f1")
        await it.shows("Apply the change")
        await it.press("escape")
        await it.until(lambda: "Apply the change" not in it.text)


async def test_every_theme_is_drawn(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        seen = set()
        for name in theme_names(()):
            await it.press("ctrl+o", "t", *name, "enter")
            await it.until(lambda name=name: it.app.theme == name and it.app.screen is it.screen)
            seen.add(it.pane("files").styles.background.hex)
        assert len(seen) == 4


async def test_no_colour_is_honoured(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with on_screen(workspace) as it:
        assert it.app.theme == "no-colour"
        await it.press("f5", "f6", "f6")


async def test_two_presses_quit_and_everything_typed_is_kept(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await it.press(*"not sent yet")
        await it.press("ctrl+c")
        await it.shows("again to quit")
        assert it.app.return_code is None
        await it.press("ctrl+c")
        await it.until(lambda: it.app.return_code == 0, "the end")
        assert it.session.state.input.draft == "not sent yet"


async def test_the_same_key_copies_what_is_selected(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMUX", "/tmp/tmux-1000/default,1,0")
    written: list[str] = []
    async with on_screen(workspace) as it:
        monkeypatch.setattr(it.app._driver, "write", written.append)
        await it.press(*"copy me")
        await it.press("shift+home", "ctrl+c")
        assert it.app.clipboard == "copy me"
        await it.shows("Copied through tmux")  # there is no such server
        assert "\x1bPtmux;\x1b\x1b]52;c;Y29weSBtZQ==\x07\x1b\\" in written
        assert "again to quit" not in it.text and "copied" not in it.text


async def test_a_notice_is_shown_once_and_two_at_most(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        for said in ("first", "second", "second", "third", "third"):
            it.app.notify(said)
        await it.pilot.pause()
        assert [notice.message for notice in it.app._notifications] == ["second", "third"]


async def test_errors_become_notices(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await it.session.files.open("README.md")
        await it.press("f4", "x")
        await it.press("ctrl+o", "x")
        await it.asked()
        assert it.session.state.notices.items[-1].level == "error"
        assert it.session.state.buffers.get("README.md") is not None


async def test_nothing_is_drawn_while_nothing_happens(workspace: Path) -> None:
    async with on_screen(workspace, [reply("Hello.", message="**Hi**")]) as it:
        await it.press(*"hello", "enter")
        await it.shows("Hi")
        await it.session.chat.finished()
        await it.pilot.pause(0.8)
        timers = [
            timer
            for node in it.app.screen.walk_children()
            for timer in node._timers
            if timer._active.is_set()
        ]
        assert [timer for timer in timers if timer._repeat is None] == []


async def test_the_first_screen_is_help_until_something_is_said(workspace: Path) -> None:
    """Empty panes are titles, a digit tries something, and what comes opens its pane without taking the focus."""
    change = {"path": "src/api.py", "edits": [{"search": "get(url)", "replace": "get(url, 5)"}]}
    async with on_screen(workspace, [reply("Adds it.", fileChanges=[change])], size=(130, 40)) as it:
        assert "Three things to try" in it.text and it.pane("chat").region.width >= 96
        assert not it.pane("plan").display and "Plan" in it.text.splitlines()[-4]
        await it.press("1")
        assert it.one(Prompt).text.startswith("What does this project do")
        await it.press("backspace", "3")
        assert it.one(Prompt).text == "!ls", "a folder need not be a repository"
        await it.press("backspace", *"change src/api.py", "enter")
        await it.until(lambda: it.pane("plan").display, "the plan opened")
        await it.shows("Review ●1")
        assert it.one(Prompt).has_focus and "Three things to try" not in it.text


async def test_nothing_moves_while_a_text_is_written(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pane that gets something to show opens when the writing pauses, or before a key that is no part of it."""
    async with on_screen(workspace) as it:
        monkeypatch.setattr(container, "PAUSE", 1000.0)
        height = it.pane("review").region.height
        await it.press("a")
        await it.session.files.open("README.md")
        await it.press("b")
        assert it.pane("review").region.height == height
        await it.press("end")
        assert it.pane("review").region.height < height and it.one(Prompt).has_focus
        monkeypatch.setattr(container, "PAUSE", 0.1)
        await it.press("c")
        await it.session.files.close("README.md")
        await it.until(lambda: it.pane("review").region.height == height, "room again, after a pause")
        assert it.one(Prompt).text == "abc"


async def test_a_dialog_that_is_closed_while_it_works_ends_nothing_else(tmp_path: Path) -> None:
    closed, looked = asyncio.Event(), asyncio.Event()

    class Slow(Dialog[None]):
        def compose(self) -> Iterable[Static]:
            yield Static("late", id="late")

        def on_mount(self) -> None:
            self.run_worker(self._look())

        async def _look(self) -> None:
            try:
                await closed.wait()
                await self.query(Static).remove()
                self.query_one("#late")
            finally:
                looked.set()

    async with on_screen(tmp_path, []) as it:
        slow = Slow()
        it.app.push_screen(slow)
        await it.shows("late")
        slow.dismiss(None)
        await it.until(lambda: it.app.screen is not slow)
        closed.set()
        await looked.wait()
        await it.press(*"still here")
        await it.shows("still here")


async def test_a_dialog_that_is_about_to_open_does_not_disturb_the_end(tmp_path: Path) -> None:
    """Its worker is cancelled while the application itself still waits for the end of the screen."""
    cancelled = asyncio.Event()
    async with on_screen(tmp_path) as it:

        async def ask() -> None:
            while it.app.is_running:  # noqa: ASYNC110 nothing reports the end of its loop
                await asyncio.sleep(0)
            try:
                await it.app.push_screen_wait(Chooser("Theme", lambda _: []))
            finally:
                cancelled.set()

        it.screen.run_worker(ask())
        it.app.call_next(cancelled.wait)
    assert cancelled.is_set()


@pytest.mark.parametrize(("pane", "low"), [("f7", False), ("f5", True)])
async def test_a_notice_hides_no_key_and_the_next_key_takes_it_away(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, pane: str, low: bool
) -> None:
    monkeypatch.setattr("tui_agent.ui.app.NOTICE_SECONDS", 0.0)
    async with on_screen(workspace, size=(80, 24)) as it:
        await it.press(pane)
        await it.session.notice("Something happened", "error")
        await it.shows("Something happened")
        toast = it.app.screen.query_one(Toast).region
        assert (toast.y > 12) is low and toast.bottom < 23 and toast.width < 30
        await it.press("f6")
        await it.until(lambda: "Something happened" not in it.text, "the notice gone")
