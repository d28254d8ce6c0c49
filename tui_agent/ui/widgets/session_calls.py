"""Background session calls from keys and clicks."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from textual.app import App
from textual.css.query import NoMatches
from textual.dom import DOMNode

from tui_agent.errors import TuiAgentError

if TYPE_CHECKING:
    from tui_agent.session.session import Session

GROUP = "ask"


@runtime_checkable
class HoldsTyping(Protocol):
    """A widget that can hold unsaved typed text."""

    async def flush(self) -> None: ...


def call_session(node: DOMNode, session: Session, call: Coroutine[Any, Any, object]) -> None:
    """Run a session call in the background; user-facing errors become notices.

    Typed text of all panes is flushed first. The task belongs to the application, so closing a pane does
    not interrupt a write.
    """
    node.app.run_worker(_notify_result(node.app, session, call), group=GROUP)


async def _notify_result(app: App[Any], session: Session, call: Coroutine[Any, Any, object]) -> None:
    try:
        workspace = getattr(app.screen_stack[0], "workspace", None)
        for pane in workspace.panes if workspace is not None else ():
            if isinstance(pane, HoldsTyping):
                await pane.flush()
        await call
    except NoMatches:
        # A widget may be unmounted before the call ends, if the program ends.
        if app.is_running:
            raise
    except TuiAgentError as error:
        await session.notice(str(error), "error")
