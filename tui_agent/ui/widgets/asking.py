"""Asking the session for something from a key or a click, without waiting for it."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from textual.dom import DOMNode

from tui_agent.errors import TuiAgentError

if TYPE_CHECKING:
    from tui_agent.session.session import Session

GROUP = "ask"


def ask(node: DOMNode, session: Session, call: Coroutine[Any, Any, object]) -> None:
    """Run a call on the session beside the screen; an error for the person becomes a notice.

    The call belongs to the application and not to the node: closing a pane does not cut a write short.
    """
    node.app.run_worker(_told(session, call), group=GROUP)


async def _told(session: Session, call: Coroutine[Any, Any, object]) -> None:
    try:
        await call
    except TuiAgentError as error:
        await session.notice(str(error), "error")
