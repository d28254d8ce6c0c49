"""Detects whether Textual is idle, so that the next key can be handled.

Defect: Textual passes a key from queue to queue and does not report when its effects are complete.

Figure: order of keys that arrive in one read. Without the patch only queued messages are detected, not
running handlers.

Upstream report: "A public `MessagePump.is_idle` could report that a pump waits for a message."
"""

from __future__ import annotations

from functools import cache
from typing import Any

from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.widget import Widget

from tui_agent.ui.textual_patches.guard import missing, usable


@cache
def _known() -> bool:
    return usable(
        "quiet",
        missing(MessagePump, "_message_queue _closed _pending_message"),
        missing(Widget, "_nodes _layout_required"),
        missing(Screen, "_callbacks"),
    )


def at_rest(pump: MessagePump) -> bool:
    if not _known():
        return not pump.message_queue_size
    queue: Any = pump._message_queue
    return pump._closed or (queue.empty() and bool(queue.ready_event._waiters) and not pump._pending_message)


def version_of(screen: Screen[Any]) -> object:
    """Changes when widgets are added to or removed from the screen."""
    return screen._nodes._updates if _known() else tuple(screen.walk_children())


def layout_waits(screen: Screen[Any]) -> bool:
    return _known() and screen._layout_required


def calls_wait(screen: Screen[Any]) -> bool:
    """Whether callbacks after the next refresh are pending, which may move widgets."""
    return _known() and bool(screen._callbacks)
