"""Event loops that continue in a forked process.

Defect: a forked process shares the selector and the wake-up sockets of its parent's loop, and has no
running loop.

Upstream report: none; asyncio does not support it.
"""

from __future__ import annotations

import asyncio
import selectors
from typing import Any


class _Selector(selectors.DefaultSelector):
    def renew(self) -> None:
        keys = list(self.get_map().values())
        self.close()
        selectors.DefaultSelector.__init__(self)
        for key in keys:
            self.register(key.fileobj, key.events, key.data)


class ForkableLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._forkable = _Selector()
        super().__init__(self._forkable)

    def renew(self) -> None:
        """Continues the loop in a forked process; called in a coroutine of the loop."""
        loop: Any = self
        self._forkable.renew()
        loop._close_self_pipe()
        loop._make_self_pipe()
        asyncio._set_running_loop(self)
