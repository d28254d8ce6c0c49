"""Asking the session for something from a key or a click, without waiting for it."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from textual.app import App
from textual.dom import DOMNode

from tui_agent.errors import TuiAgentError

if TYPE_CHECKING:
    from tui_agent.session.session import Session

GROUP = "ask"


@runtime_checkable
class Flushing(Protocol):
    """What may hold something that was typed and not handed over."""

    async def flush(self) -> None: ...


def ask(node: DOMNode, session: Session, call: Coroutine[Any, Any, object]) -> None:
    """Run a call on the session beside the screen; an error for the person becomes a notice.

    What was typed in any pane is handed over first, so that the call sees it. The call belongs to the
    application and not to the node: closing a pane does not cut a write short.
    """
    node.app.run_worker(_told(node.app, session, call), group=GROUP)


async def _told(app: App[Any], session: Session, call: Coroutine[Any, Any, object]) -> None:
    try:
        for pane in app.screen_stack[0].query("Pane"):
            if isinstance(pane, Flushing):
                await pane.flush()
        await call
    except TuiAgentError as error:
        await session.notice(str(error), "error")
