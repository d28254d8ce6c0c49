"""Each action of the table can be done: the pane, the screen or the app has what it calls."""

from __future__ import annotations

from importlib import import_module
from typing import cast

import pytest
from support.panes import NotedSession

from tui_agent.session.session import Session
from tui_agent.store.state import State
from tui_agent.ui.actions import ACTIONS, ANYWHERE, APP, bindings_of, why_not
from tui_agent.ui.app import WorkspaceApp
from tui_agent.ui.commands import DIALOGS
from tui_agent.ui.dialogs.chooser import MENU, room_of
from tui_agent.ui.dialogs.palette import help_rows, palette_rows, place_rows
from tui_agent.ui.keys.keymap import load_keys
from tui_agent.ui.keys.leader import menu_pages
from tui_agent.ui.panes import PANES
from tui_agent.ui.screen import WorkspaceScreen


@pytest.mark.parametrize("pane", PANES.values(), ids=lambda pane: pane.id)
def test_a_pane_can_do_what_its_keys_are_registered_for(pane) -> None:
    kind = pane.load()
    assert (kind.ID, kind.TITLE, list(kind.BINDINGS)) == (pane.id, pane.title, bindings_of(pane.id))
    shown = kind(cast(Session, NotedSession()))
    assert shown.commands.keys() == {key.name for key in pane.keys}


def test_the_screen_and_the_app_can_do_what_counts_anywhere() -> None:
    anywhere = {action.id for action in ACTIONS.values() if action.pane == ANYWHERE}
    assert WorkspaceScreen()._commands.table.keys() == anywhere
    for action in ACTIONS.values():
        if action.pane == APP:
            assert callable(getattr(WorkspaceApp, f"action_{action.name}", None))
    for source in DIALOGS.values():
        module, _, name = source.partition(":")
        assert callable(getattr(import_module(f"tui_agent.ui.dialogs.{module}"), name))


def test_the_help_shows_all_that_a_key_does_and_the_menu_tells_keys_apart() -> None:
    rows = [row.words.plain for row in help_rows("", load_keys(), "chat", room_of(160))]
    assert len(rows) == len(ACTIONS) and all(any(it.words in row for row in rows) for it in ACTIONS.values())
    for pane in ("buffers", "session", "commands", "checks"):
        actions = {str(at): it for at, it in enumerate(ACTIONS.values()) if it.id.startswith(f"{pane}.")}
        page = menu_pages(actions, 200, 100)[0][1:]
        lines = [line.plain[5:] for line in page if line.plain.strip()]
        assert len(set(lines)) == len(lines) >= len(actions), lines


@pytest.mark.parametrize("name", ["again", "online", "list"])
def test_what_is_about_commands_that_ran_is_offered_once_one_has(name: str) -> None:
    assert why_not(f"commands.{name}", State()) == "no command has run"


@pytest.mark.parametrize("width", [80, 160])
def test_a_row_of_the_palette_is_one_line_with_the_whole_reason(width: int) -> None:
    rows = palette_rows("", load_keys(), "chat", (), lambda it: why_not(it, State()), room_of(width))
    assert "review.undo" in ACTIONS and not {"review.undo", "changes.undo"} <= {row.value for row in rows}
    words = {it.words for it in ACTIONS.values()}
    assert all(sum(it in row.words.plain for row in rows) for it in words if len(it) < room_of(width) - 34)
    assert [row.words.plain for row in rows if row.words.cell_length > room_of(width)] == []


def test_a_menu_at_the_pointer_shows_whole_names() -> None:
    rows = place_rows("", load_keys(), "files", lambda _: "", MENU - 5)
    assert "Compare the file with the last commit or any apply" in {row.words.plain[:50] for row in rows}
    assert all(row.words.cell_length <= MENU - 5 for row in rows)
