"""Each action of the table can be done: the pane, the screen or the app has the method that it calls."""

from __future__ import annotations

from importlib import import_module

import pytest

from tui_agent.ui.actions import ACTIONS, ANYWHERE, APP, PANES, bindings_of
from tui_agent.ui.app import WorkspaceApp
from tui_agent.ui.panes.chat import ChatPane
from tui_agent.ui.panes.registry import ORDER
from tui_agent.ui.screen import WorkspaceScreen
from tui_agent.ui.widgets.pane import Pane

OWNERS: dict[str, type] = {
    APP: WorkspaceApp,
    ANYWHERE: WorkspaceScreen,
    ChatPane.ID: ChatPane,
    **{
        pane.ID: pane
        for module, name in ORDER
        for pane in [getattr(import_module(f"tui_agent.ui.panes.{module}"), name)]
    },
}


@pytest.mark.parametrize("action", ACTIONS.values(), ids=lambda action: action.id)
def test_its_call_exists(action) -> None:
    method = action.call.partition("(")[0]
    assert callable(getattr(OWNERS[action.pane], f"action_{method}", None))


def test_the_panes_of_the_table_are_the_panes() -> None:
    assert set(PANES) | {APP, ANYWHERE} == set(OWNERS)


@pytest.mark.parametrize("pane", PANES)
def test_a_pane_has_the_bindings_of_its_actions_by_id(pane: str) -> None:
    found = OWNERS[pane]
    assert issubclass(found, Pane)
    assert list(found.BINDINGS) == bindings_of(pane)
