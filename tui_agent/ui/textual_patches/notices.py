"""A notice that goes with the widget around it, and before its time.

Defect: a notice that a key takes away leaves its `ToastHolder`, which each frame lays out from then on. Nor can one
notice be taken away before its time, only all.

Figure: time of a frame after many notices; widgets on the screen do not grow with them.

Checked with: Textual 8.2.8.

Upstream report: "`ToastRack.show` removes a toast that expired and leaves its holder. Removing the holder, which the
toast fills alone, removes both. A public
`App.unnotify(notification)` could take one away."
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textual.app import App
from textual.await_remove import AwaitRemove
from textual.notifications import Notification
from textual.widget import Widget

from tui_agent.ui.textual_patches.guard import missing, usable

try:
    from textual.widgets._toast import Toast, ToastHolder
except ImportError:
    Toast = ToastHolder = None


def apply() -> bool:
    known = usable("notices", missing(Toast or object, remove="self"))
    if known and Toast is not None:
        Toast.remove = _remove  # ty: ignore[invalid-assignment]
    return known


def _remove(toast: Widget) -> AwaitRemove:
    return Widget.remove(toast.parent if ToastHolder and isinstance(toast.parent, ToastHolder) else toast)


def take_away(app: App[Any], which: Callable[[list[Notification]], list[Notification]]) -> None:
    """Take away the notices that `which` chooses of those that are shown; they expire if there is no such name."""
    if usable("one notice", missing(App, "_notifications", _unnotify="self notification refresh")):
        for notice in which(list(app._notifications)):
            app._unnotify(notice)
