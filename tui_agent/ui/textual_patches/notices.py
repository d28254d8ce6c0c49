"""Removes notices with their holder, also before they expire.

Defect: a dismissed notice leaves its `ToastHolder` in every layout. Before its timeout, a single notice
cannot be dismissed.

Figure: time of a frame after many notices.

Upstream report: "`ToastRack.show` could remove the holder of an expired toast. A public
`App.unnotify(notification)` could dismiss one."
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
    if not usable("notices", missing(Toast or object, remove="self")) or Toast is None:
        return False

    def remove(toast: Widget) -> AwaitRemove:
        return Widget.remove(toast.parent if ToastHolder and isinstance(toast.parent, ToastHolder) else toast)

    Toast.remove = remove  # ty: ignore[invalid-assignment]
    return True


def dismiss_notices(app: App[Any], which: Callable[[list[Notification]], list[Notification]]) -> None:
    """Notices only expire if the private names are missing."""
    if usable("one notice", missing(App, "_notifications", _unnotify="self notification refresh")):
        for notice in which(list(app._notifications)):
            app._unnotify(notice)
