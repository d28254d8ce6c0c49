"""Background session calls from keys and clicks; refused in read-only sessions."""

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
#: Minimum seconds between repeated refusals.
SAID_AGAIN_AFTER = 5.0
_refused: WeakKeyDictionary[App[Any], float] = WeakKeyDictionary()


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
    except OnlyRead:
        await refuse(app, session)
    except NoMatches:
        # A widget may be unmounted before the call ends, if the program ends.
        if app.is_running:
            raise
    except TuiAgentError as error:
        await session.notice(str(error), "error")


async def refuse(app: App[Any], session: Session) -> None:
    """Report that the session is read-only, at most once while the notice is visible."""
    keys = getattr(app, "keys", None)
    fork = keys.shown("session.fork") if keys else ""
    words = f"This session is open elsewhere and can only be read here: {fork} forks it"
    now = time.monotonic()
    if now - _refused.get(app, -SAID_AGAIN_AFTER) >= SAID_AGAIN_AFTER:
        _refused[app] = now
        await session.notice(words, "warning")
