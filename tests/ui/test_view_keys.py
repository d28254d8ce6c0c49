"""Keys of dialogs and views: none is written in the code, and each can be another one."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from support.panes import NotedSession, PaneApp, ThemedApp
from support.screens import on_screen

import tui_agent.ui
from tui_agent.store.state import State, Todo
from tui_agent.ui.dialogs.chooser import Chooser, question
from tui_agent.ui.dialogs.dialog import TextDialog
from tui_agent.ui.keys.keymap import DIALOGS, VIEW_KEYS, load_keys
from tui_agent.ui.panes.todos import TodosPane
from tui_agent.ui.widgets.command_output import CommandOutput

UI = Path(tui_agent.ui.__file__).parent
#: Keys that are part of a language of keys, or of writing itself, and not bound to an action.
OF_THEIR_OWN = {
    "editor/vim.py": "Vim's commands",
    "editor/find_bar.py": "writing in a line",
    "editor/code_editor.py": "writing: indenting",
    "editor/writing_area.py": "writing; a place holder of Textual's own bindings",
    "widgets/prompt.py": "writing: undoing a digit; Ctrl+X Ctrl+E of a shell",
    "terminal_input.py": "what a terminal sends",
    "actions.py": "ids of actions",
    "keys/views.py": "ids of views' keys",
    "keys/keymap.py": "spellings of keys",
    "app.py": "what is typed",
}


def keys_in(source: str) -> list[str]:
    """Names of keys that a module binds or compares an event with, as text."""
    found = []
    for node in ast.walk(ast.parse(source if "Binding(" in source or ".key " in source else "")):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Binding":
            found += [ast.unparse(node)]
        if isinstance(node, ast.Compare) and ast.unparse(node.left) in ("event.key", "message.key"):
            texts = [one for right in node.comparators for one in ast.walk(right)]
            found += [ast.unparse(node)] * any(
                isinstance(one, ast.Constant) and isinstance(one.value, str) for one in texts
            )
    return found


def test_no_key_is_written_in_the_code() -> None:
    sources = {str(path.relative_to(UI)): path.read_text(encoding="utf-8") for path in UI.rglob("*.py")}
    named = {name: keys for name, source in sources.items() if (keys := keys_in(source))}
    assert {name: keys for name, keys in named.items() if name not in OF_THEIR_OWN} == {}
    assert keys_in('Binding("escape", "leave")') and keys_in('event.key in ("up", "down")')


def test_each_table_belongs_to_a_dialog_or_a_view() -> None:
    used = {table for tables in DIALOGS.values() for table in tables}
    assert VIEW_KEYS.keys() - used == {
        "list",
        "graph",
        "block",
        "output",
        "blocks",
        "offers",
        "prompt",
        "line",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[form]\nkeep = "escape"\n', "The key escape is bound to dialog.close and form.keep"),
        ('[commit]\nhooks = "a"\n', "The key a is bound to ticks.tick_all and commit.hooks"),
        ('[form]\nkeep = "ctrl+c"\n', "The key ctrl+c is bound to app.quit and form.keep"),
        ('[ticks]\ntick = "leader t"\n', "is two: a dialog or a list takes single keys only"),
        ('[merge]\nhooks = "h"\n', "there is no action merge.hooks"),
    ],
)
def test_keys_of_dialogs_that_meet_are_told(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "keys.toml").write_text(text)
    faults = load_keys(folders=[tmp_path]).faults
    assert any(said in fault for fault in faults), faults


def test_the_same_key_in_two_dialogs_is_no_conflict(tmp_path: Path) -> None:
    (tmp_path / "keys.toml").write_text('[commit]\nhooks = "x"\n[merge]\nedit = "x"\n')
    assert load_keys(folders=[tmp_path]).faults == ()


class Rebound(ThemedApp):
    """Has the shipped keys, with some of the person's own."""

    def __init__(self, folder: Path, text: str) -> None:
        super().__init__()
        (folder / "keys.toml").write_text(text)
        self.keys = load_keys(folders=[folder])
        assert self.keys.faults == ()
        self.set_keymap(self.keys.keymap())
        self.keyboard = SimpleNamespace(at_rest=True)


async def test_a_form_is_kept_and_left_by_ones_own_keys_which_it_names(tmp_path: Path) -> None:
    app = Rebound(tmp_path, '[form]\nkeep = "f11"\n[dialog]\nclose = "f12"\n[app]\ntheme = ""\n')
    async with app.run_test(size=(80, 24)) as pilot:
        given: list[str | None] = []
        for last, words in (("f11", "x"), ("f12", None)):
            app.push_screen(TextDialog("A text", ""), given.append)
            await pilot.pause()
            assert "F11 keep   F12 cancel" in app.text
            await pilot.press("ctrl+g", "f2", "escape", *(words or ""), last)
            assert given[-1] == words and len(app.screen_stack) == 1


async def test_a_list_is_walked_and_chosen_by_ones_own_keys(tmp_path: Path) -> None:
    app = Rebound(tmp_path, '[chooser]\ndown = ["f7", "f8"]\nchoose = "f11"\nyes = "j"\n')
    async with app.run_test(size=(80, 24)) as pilot:
        given: list[str | None] = []
        for keys in (("enter", "f7", "f8", "f11"), ("j",)):
            answers = {"no": "No", "maybe": "Maybe", "yes": "Yes"}
            app.push_screen(
                question("Well?", answers, to_type="{yes} or {choose}", yes="maybe"), given.append
            )
            await pilot.pause()
            assert "j or F11" in app.text and isinstance(app.screen, Chooser)
            await pilot.press(*keys)
        assert given == ["yes", "maybe"]


async def test_the_line_of_a_pane_and_its_rows_have_ones_own_keys(tmp_path: Path) -> None:
    session = NotedSession(State(todos=(Todo("1", "One"), Todo("2", "Two"))))
    app = PaneApp(TodosPane, session)
    (tmp_path / "keys.toml").write_text('[line]\nleave = "f11"\n[list]\ndown = "j"\n')
    app.keys = load_keys(folders=[tmp_path])
    app.set_keymap(app.keys.keymap())
    pane = cast("TodosPane", app.pane)
    async with app.run_test() as pilot:
        await pilot.press("down", "j", "e", "escape")
        assert pane.rows.cursor == "2" and pane.line.has_focus
        await pilot.press("f11")
        assert not pane.line.display and pane.rows.has_focus


async def test_hints_name_ones_own_keys(tmp_path: Path) -> None:
    (tmp_path / "keys.toml").write_text('[output]\nopen_next = "f7"\n[check_list]\nnew = "f8"\n')
    work = tmp_path / "work"
    work.mkdir()
    (work / "b.py").write_text("here = 1\n")
    async with on_screen(work, interactive=True) as it:
        it.app.keys = load_keys(folders=[tmp_path])
        await it.press(*"!echo b.py:1: wrong; exit 1", "enter")
        await it.shows("✗ echo")
        it.one(CommandOutput).focus()
        await it.press("enter")
        await it.shows("F7 opens the next place")
        await it.press("ctrl+o", "A")
        await it.shows("No checks found: F8 adds one")
