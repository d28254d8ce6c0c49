"""What is written to the terminal in the place of a frame, by the plain screen.

Defect: an application cannot choose what is written for a frame.

Figure: none; without it the plain layout is drawn as usual, and more than the changed words are written.

Checked with: Textual 8.2.8.

Upstream report: "`App._display` could be public, for programs that write to screen readers."
"""

from __future__ import annotations

from typing import Any

from textual.app import App, ReturnType
from textual.screen import Screen

from tui_agent.ui.textual_patches.guard import missing, plain_unless


@plain_unless(
    "plain display",
    missing(App, "_batch_count _driver _running", _display="self screen renderable"),
    missing(App, _begin_update="self", _end_update="self"),
)
class PlainDisplayApp(App[ReturnType]):
    def words_for(self, screen: Screen[Any]) -> str:
        """What makes the terminal show this screen in words."""
        raise NotImplementedError

    @property
    def plain(self) -> bool:
        """Whether `words_for` is written in the place of a frame."""
        raise NotImplementedError

    def _display(self, screen: Screen[Any], renderable: Any) -> None:
        if not self.plain:
            super()._display(screen, renderable)
        elif renderable is not None and not self._batch_count and self._running and self._driver is not None:
            written = self.words_for(screen)
            self._begin_update()
            self._driver.write(written)
            self._end_update()
            self._driver.flush()
            self.post_display_hook()
