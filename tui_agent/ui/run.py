"""Runs one screen per selected session until the user quits or a signal arrives."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent import debug_log
from tui_agent.errors import SessionError
from tui_agent.ui.app import Arrival, OpenSession, WorkspaceApp
from tui_agent.ui.host import Reopen
from tui_agent.ui.keys.keymap import DEFAULT as DEFAULT_KEYS
from tui_agent.ui.themes import DEFAULT as DEFAULT_THEME
from tui_agent.ui.widgets.guide import Guide

if TYPE_CHECKING:
    from tui_agent.control.server import LentTerminal
    from tui_agent.session.hooks import EndReason
    from tui_agent.ui.attachment import Serve

#: Seconds to close the session after a signal.
CLOSE_AT_SIGNAL = 1.0
#: Seconds to flush the debug log after a signal.
FLUSH_AT_SIGNAL = 0.2
#: Seconds from a signal to a forced exit.
END_WITHIN = 2.6
#: Thread switch interval in seconds, for prompt keys and frames; Python's default is 5 ms.
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
    follows_background: bool = False,
    begin_with: Sequence[str] = (),
    first_action: str = "",
    loop: asyncio.Runner | None = None,
    at_last: Callable[[], Awaitable[object]] | None = None,
    serve: Serve | None = None,
    lent: LentTerminal | None = None,
    arrival: Arrival | None = None,
) -> int:
    """Returns the exit status, or raises the error that prevented opening a session.

    The session opens after the first frame and closes after the screen is restored; each further session
    has its own screen and loop. The first uses `loop`, which may already run tasks and is closed after
    `at_last`, and waits for its terminal if `arrival` is set.
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
            follows_background=follows_background,
            begin_with=begin_with,
            first_action=first_action,
            serve=serve,
            lent=lent,
            arrival=arrival,
        )
        with loop or asyncio.Runner() as runner:
            status = runner.run(_run(app, at_last))
        loop, at_last, arrival, begin_with, first_action = None, None, None, (), ""
        plain, lent = app.plain, app.lent
        reopen, serve, follows_background = app.reopen, app.serve, app.follows_background
        if app.next is None or reopen is None:
            if lent is not None:
                lent.send({"type": "ended", "status": status})
            return status
        if not app.next.attach:
            open_session, pick_from = partial(reopen, app.next), None
            continue
        # Another process's session, which the terminal's launcher shows; without one, this process does.
        session = app.next.session
        if lent is not None:
            lent.send({"type": "moved", "session": session})
            return 0
        from tui_agent.control import sockets

        if (place := sockets.of_session(session)) is None:
            raise SessionError(f"The session {session} has just ended", "open it with `tui-agent --resume`")
        return sockets.attach(place, sys.stderr.write)


def _print(words: str) -> None:
    if words:
        with suppress(OSError):
            sys.stderr.write(f"tui-agent: {words} …\n")
            sys.stderr.flush()


async def _run(app: WorkspaceApp, at_last: Callable[[], Awaitable[object]] | None) -> int:
    sys.setswitchinterval(MOST_IN_A_ROW)
    loop = asyncio.get_running_loop()

    def end(number: int, _: object) -> None:
        """A signal handler, not a loop handler: it also runs if the loop is blocked."""
        attachment = app.attachment
        if number == signal.SIGHUP and attachment is not None and attachment.outlives_terminal:
            loop.call_soon_threadsafe(attachment.hang_up)
            return
        forced = threading.Timer(END_WITHIN, os._exit, (128 + number,))
        forced.daemon = True
        forced.start()
        loop.call_soon_threadsafe(app.end_by, number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    try:
        await app.run_async()
    finally:
        if app.session:
            reason: EndReason = "other" if app.signal else "prompt_input_exit"
            if app.next is not None and not app.signal:
                reason = "resume" if app.next.session else "clear"
            await app.session.close(CLOSE_AT_SIGNAL if app.signal else None, _print, reason)
        if at_last is not None and not app.signal:
            await at_last()
        if app.signal:
            debug_log.flush(FLUSH_AT_SIGNAL)
            os._exit(app.return_code or 0)  # skips blocked threads
    if app.error:
        raise app.error
    if app.fault is not None:
        raise app.fault
    return app.return_code or 0
