"""The yardstick: a Textual app with one widget, which echoes what is typed."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.widgets import Input

MARK = "nothing typed yet"


class BareApp(App[None]):
    def compose(self) -> ComposeResult:
        yield Input(placeholder=MARK)


if __name__ == "__main__":
    BareApp().run()
