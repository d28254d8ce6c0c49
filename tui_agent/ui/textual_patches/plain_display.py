"""Replaces a frame's output for the plain screen.

Defect: an application cannot replace a frame's output. Without the patch the plain layout is drawn as
usual, with more output than the changed words.

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
        raise NotImplementedError

    @property
    def plain(self) -> bool:
        """Whether `words_for` replaces frames."""
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
