"""Runs the screen until the person quits, or a signal ends it; a session that was chosen on it gets the next one."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from tui_agent import debug_log
from tui_agent.ui.app import OpenSession, WorkspaceApp
from tui_agent.ui.host import Reopen
from tui_agent.ui.keys.keymap import DEFAULT as DEFAULT_KEYS
from tui_agent.ui.themes import DEFAULT as DEFAULT_THEME
from tui_agent.ui.widgets.guide import Guide

#: Seconds that the session may take to close when a signal ends the program.
CLOSE_AT_SIGNAL = 1.0
#: Seconds that the last records of the debug log may take then.
FLUSH_AT_SIGNAL = 0.2
#: Seconds after a signal in which the program ends, whatever still runs.
END_WITHIN = 2.6
#: Seconds for which another thread of ours may work before a key or a frame has its turn; Python's own are 5 ms.
MOST_IN_A_ROW = 0.0005


def run_app(
    open_session: OpenSession,
    *,
    theme: str = DEFAULT_THEME,
    keys: str = DEFAULT_KEYS,
    folders: Sequence[Path] = (),
    reopen: Reopen | None = None,
    pick_from: tuple[Path, Path] | None = None,
    plain: bool = False,
    guide: Guide | None = None,
    loop: asyncio.Runner | None = None,
    at_last: Callable[[], Awaitable[object]] | None = None,
) -> int:
    """Run full screen until the person quits; the exit status. Raises the error that kept the session shut.

    The session is opened after the first frame, and closed here, after the screen was given back. Another that is
    chosen on the screen is opened on a screen of its own, and on a loop of its own. The first runs on `loop`, on which
    something may have been started before; it is closed here, after `at_last`.
    """
    while True:
        app = WorkspaceApp(
            open_session,
            theme=theme,
            keys=keys,
            folders=folders,
            reopen=reopen,
            pick_from=pick_from,
            plain=plain,
            guide=guide,
        )
        with loop or asyncio.Runner() as runner:
            status = runner.run(_run(app, at_last))
        loop = at_last = None
        plain = app.plain
        if app.next is None or reopen is None:
            return status
        open_session, pick_from = partial(reopen, app.next), None


def _say(words: str) -> None:
    """Below the screen that was given back."""
    if words:
        with suppress(OSError):  # the terminal may be gone
            sys.stderr.write(f"tui-agent: {words} …\n")
            sys.stderr.flush()


def _end_at_last(number: int) -> None:
    """End the process when closing has not ended it: the kernel releases the lock, and the children end with us."""
    time.sleep(END_WITHIN)
    os._exit(128 + number)


async def _run(app: WorkspaceApp, at_last: Callable[[], Awaitable[object]] | None) -> int:
    sys.setswitchinterval(MOST_IN_A_ROW)
    loop = asyncio.get_running_loop()

    def end(number: int, _: object) -> None:
        """Heard also while the loop is held up, which is why it is not a handler of the loop."""
        threading.Thread(target=_end_at_last, args=(number,), daemon=True).start()
        loop.call_soon_threadsafe(app.end_by, number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    try:
        await app.run_async()
    finally:
        if app.session:
            await app.session.close(CLOSE_AT_SIGNAL if app.signal else None, _say)
        if at_last is not None and not app.signal:
            await at_last()
        if app.signal:
            debug_log.flush(FLUSH_AT_SIGNAL)
            os._exit(app.return_code or 0)  # threads that hang are not waited for
    if app.error:
        raise app.error
    if app.fault is not None:
        raise app.fault
    return app.return_code or 0
