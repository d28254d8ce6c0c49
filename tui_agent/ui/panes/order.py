"""The order in which panes are mounted at the start."""

from __future__ import annotations

from collections.abc import Iterator

from tui_agent.ui.widgets.pane import Pane


def after_the_chat() -> Iterator[type[Pane]]:
    """Every pane but the chat and the status line, each imported when its turn has come."""
    from tui_agent.ui.panes.files import FilesPane

    yield FilesPane
    from tui_agent.ui.panes.plan import PlanPane

    yield PlanPane
    from tui_agent.ui.panes.buffers import BuffersPane

    yield BuffersPane
    from tui_agent.ui.panes.review import ReviewPane

    yield ReviewPane
    from tui_agent.ui.panes.todos import TodosPane

    yield TodosPane
    from tui_agent.ui.panes.subtasks import SubTasksPane

    yield SubTasksPane
    from tui_agent.ui.panes.known import KnownPane

    yield KnownPane
