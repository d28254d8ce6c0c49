"""The order in which panes are mounted at the start."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from importlib import import_module

from tui_agent.ui.widgets.pane import Pane

#: Module and class of every pane but the chat and the status line.
ORDER = (
    ("files", "FilesPane"),
    ("plan", "PlanPane"),
    ("buffers", "BuffersPane"),
    ("review", "ReviewPane"),
    ("todos", "TodosPane"),
    ("subtasks", "SubTasksPane"),
    ("known", "KnownPane"),
)


async def after_the_chat() -> AsyncIterator[type[Pane]]:
    """Each pane when its turn has come, imported in a thread: an import on the loop would hold up the keys."""
    for module, name in ORDER:
        found = await asyncio.to_thread(import_module, f"tui_agent.ui.panes.{module}")
        yield getattr(found, name)
