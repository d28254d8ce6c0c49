"""Asking the session for something from a key or a click, without waiting for it; refusing it where it is only read."""

from __future__ import annotations

import time
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

from textual.app import App
from textual.css.query import NoMatches
from textual.dom import DOMNode

from tui_agent.errors import OnlyRead, TuiAgentError

if TYPE_CHECKING:
    from tui_agent.session.session import Session

GROUP = "ask"
#: Seconds after which a refusal is said again.
SAID_AGAIN_AFTER = 5.0
_refused: WeakKeyDictionary[App[Any], float] = WeakKeyDictionary()


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
        workspace = getattr(app.screen_stack[0], "workspace", None)
        for pane in workspace.panes if workspace is not None else ():
            if isinstance(pane, Flushing):
                await pane.flush()
        await call
    except OnlyRead:
        await refuse(app, session)
    except NoMatches:
        # What would show it goes before it is done when the program ends.
        if app.is_running:
            raise
    except TuiAgentError as error:
        await session.notice(str(error), "error")


async def refuse(app: App[Any], session: Session) -> None:
    """Say that nothing can be written here, and what can be done; not again while that is still on the screen."""
    keys = getattr(app, "keys", None)
    fork = keys.shown("session.fork") if keys else ""
    words = (
        f"This session is open elsewhere and can only be read here: {fork} continues in a copy of it (a fork)"
    )
    now = time.monotonic()
    if now - _refused.get(app, -SAID_AGAIN_AFTER) >= SAID_AGAIN_AFTER:
        _refused[app] = now
        await session.notice(words, "warning")
