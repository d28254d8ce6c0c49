"""Delivers typed characters to the focused widget without a search through all bindings.

Defect: for each key Textual looks up the priority bindings of every widget from the application down to
the focus.

Figure: echo of a key; the search takes a millisecond.

Upstream report: "The chain of bindings could be cached with its priority keys."
"""

from __future__ import annotations

from textual.app import App, ReturnType

from tui_agent.ui.textual_patches.guard import missing, plain_unless


@plain_unless("typed keys", missing(App, _check_bindings="self key priority"))
class TypedKeysApp(App[ReturnType]):
    def is_typed(self, key: str) -> bool:
        """Whether no widget has a priority binding for this key."""
        raise NotImplementedError

    async def _check_bindings(self, key: str, priority: bool = False) -> bool:
        return not (priority and self.is_typed(key)) and await super()._check_bindings(key, priority)
