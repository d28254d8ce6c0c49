"""Whether Textual has anything left to do, so that the next key can be decided.

Defect: Textual passes a key from queue to queue, and does not tell when its effects are over.

Figure: order of keys that arrive in one read. Without the patch a handler that is under way is not seen, only messages
that wait.

Checked with: Textual 8.2.8.

Upstream report: "A public `MessagePump.is_idle` would say that a pump waits for a message, as tests wait for it too."
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
    """Whether it waits for a message: its queue is waited for, and empty."""
    if not _known():
        return not pump.message_queue_size
    queue: Any = pump._message_queue
    return pump._closed or (queue.empty() and bool(queue.ready_event._waiters) and not pump._pending_message)


def version_of(screen: Screen[Any]) -> object:
    """A value that is another if a widget came to the screen or went."""
    return screen._nodes._updates if _known() else tuple(screen.walk_children())


def layout_waits(screen: Screen[Any]) -> bool:
    """Whether things will be elsewhere once the screen is drawn."""
    return _known() and screen._layout_required


def calls_wait(screen: Screen[Any]) -> bool:
    """Whether something is called once the screen is drawn, which may move things."""
    return _known() and bool(screen._callbacks)
