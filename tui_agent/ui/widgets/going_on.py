"""A line over the chat's input, while the text in it asks to continue: that a memory is sent with it, and its key."""

from __future__ import annotations

from textual.widgets import Static

from tui_agent.context.memory import asks_to_go_on
from tui_agent.store.state import State
from tui_agent.ui.sink import label


class ContinueLine(Static):
    def __init__(self) -> None:
        super().__init__("", id="going-on", markup=False)

    def show(self, text: str, state: State) -> None:
        """Say it for this input, where it is so."""
        self.display = asks_to_go_on(text, state.turn.number + 1)
        if self.display:
            keys = getattr(self.app, "keys", None)
            key = keys.shown("chat.go_on") if keys is not None else ""
            what = "your words go" if state.input.memory else "your progress is sent"
            self.update(label(f"{what} with it{f': {key}' if key else ''}"))
