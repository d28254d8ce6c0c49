"""A notice that goes with the widget around it.

Defect: a notice that a key takes away leaves its `ToastHolder`, which each frame lays out from then on.

Figure: time of a frame after many notices; widgets on the screen do not grow with them.

Checked with: Textual 8.2.8.

Upstream report: "`ToastRack.show` removes a toast that expired and leaves its holder. Removing the holder, which the
toast fills alone, removes both."
"""

from __future__ import annotations

from textual.await_remove import AwaitRemove
from textual.widget import Widget
from textual.widgets._toast import Toast, ToastHolder

from tui_agent.ui.textual_patches.guard import missing, usable


def apply() -> bool:
    known = usable("notices", missing(Toast, remove="self"))
    if known:
        Toast.remove = _remove  # ty: ignore[invalid-assignment]
    return known


def _remove(toast: Toast) -> AwaitRemove:
    return Widget.remove(toast.parent if isinstance(toast.parent, ToastHolder) else toast)
