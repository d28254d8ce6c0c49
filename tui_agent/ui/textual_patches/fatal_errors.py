"""Ends the screen with a one-sentence message after an internal error.

Defect: Textual prints every frame of an unhandled exception with its local values, including any open
text. Without the patch neither these nor a message is printed. A widget that is mounted while the screen
closes fails, and a start that is ended early returned 1.

Upstream report: "Let an application control the text printed for unhandled exceptions."
"""

from __future__ import annotations

import logging
from typing import Any

from textual.app import App, ReturnType

from tui_agent.ui.textual_patches.guard import missing, plain_unless, usable

_log = logging.getLogger(__name__)


@plain_unless(
    "fatal errors",
    missing(
        App,
        "_exception _exit",
        _handle_exception="self error",
        _fatal_error="self",
        _close_messages_no_wait="self",
    ),
)
class FatalErrorsApp(App[ReturnType]):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        if "_fatal_error" not in vars(FatalErrorsApp):
            self.error_console.quiet = True

    @property
    def fault(self) -> BaseException | None:
        error = self._exception if usable("its fault", missing(App, "_exception")) else None
        return getattr(error, "error", error)  # a worker failure wraps the original error

    def _handle_exception(self, error: Exception) -> None:
        if self._exit:
            _log.debug("an error after the end of the screen", exc_info=error)
        else:
            super()._handle_exception(error)

    def _fatal_error(self) -> None:
        self.bell()
        self._close_messages_no_wait()
