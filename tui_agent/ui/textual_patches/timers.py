"""Runs single timers that are late.

Defect: a single timer whose time is over when its task begins is skipped, and never runs. With a negative
delay, such as that of a notice which expires while it is mounted, its loop does not end.

Figure: programs that hang, 2 of 200 that were started in 5 s.

Upstream report: "`MessagePump.set_timer` could create its timer with `skip=False`."
"""

from __future__ import annotations

from typing import Any

from textual.timer import Timer

from tui_agent.ui.textual_patches.guard import missing, usable


def apply() -> bool:
    names = "self event_target interval name callback repeat skip pause"
    if not usable("timers", missing(Timer, __init__=names)):
        return False
    create: Any = Timer.__init__

    def created(timer: Timer, *arguments: Any, **named: Any) -> None:
        create(timer, *arguments, **named | ({"skip": False} if named.get("repeat") == 0 else {}))

    Timer.__init__ = created
    return True
