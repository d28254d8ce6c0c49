"""Terminal title; bell and notification for a long turn's end or a question if the user is away."""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import signal
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from textual.app import App

from tui_agent.ui.keys.keyboard import Keyboard
from tui_agent.ui.safe_text import one_line
from tui_agent.ui.textual_patches.driver import driver_of

if TYPE_CHECKING:
    from tui_agent.store.state import State

#: Seconds without input before the user counts as away.
AWAY = 20.0
#: Seconds to copy text through tmux.
TMUX_WITHIN = 3.0
#: Seconds for the user's `notify` command.
NOTIFIER_WITHIN = 10.0
_log = logging.getLogger(__name__)


class Signals:
    """Rings no bell if the terminal has the focus and had recent input."""

    SLICES: ClassVar[tuple[str, ...]] = ("turn", "asked", "session")

    def __init__(
        self, app: App[int], keyboard: Keyboard, workspace: str, long: float, command: str = ""
    ) -> None:
        """Turns of `long` seconds or more ring the bell; 0 disables it. `command` replaces the terminal's
        notification.
        """
        self._app = app
        self._keyboard = keyboard
        self._workspace = one_line(workspace)
        self._long = long
        self._title = ""
        self._since: float | None = None
        self._command = command
        self._asks = False

    def show(self, state: State) -> None:
        asks = state.asked is not None or state.turn.phase == "waiting"
        asking, running = ("asks: ", "runs: ") if getattr(self._app, "plain", False) else ("? ", "● ")
        mark = asking if asks else running if state.turn.running else ""
        title = f"{mark}{self._workspace} · tui-agent"
        if title != self._title:
            self._title = title
            self._write(f"\x1b]2;{title}\x07")
        if state.turn.running:
            self._since = self._since or monotonic()
        elif self._since is not None:
            took, self._since = monotonic() - self._since, None
            if took >= self._long:
                self._notify(f"turn {state.turn.number} has ended")
        if asks and not self._asks:
            self._notify("a question is open")
        self._asks = asks

    def _notify(self, words: str) -> None:
        is_away = not self._app.app_focus or self._keyboard.idle >= AWAY
        if not self._long or not is_away:
            return
        self._write("\a")
        if self._command:
            self._app.run_worker(
                run_notifier(self._command, f"{self._workspace}: {words}"), exit_on_error=False
            )
        else:
            self._write(passed_on(notification(self._workspace, words)))

    def _write(self, sequence: str) -> None:
        if (driver := driver_of(self._app)) is not None:
            driver.write(sequence)


def notification(title: str, words: str) -> str:
    """The sequence for a desktop notification in this terminal.

    kitty: OSC 99; foot, rxvt and terminals based on VTE: OSC 777; others: OSC 9.
    """
    term = os.environ.get("TERM", "")
    if os.environ.get("KITTY_WINDOW_ID") or "kitty" in term:
        return f"\x1b]99;i=tui-agent:d=0;{title}\x1b\\\x1b]99;i=tui-agent:p=body;{words}\x1b\\"
    if os.environ.get("VTE_VERSION") or term.startswith(("foot", "rxvt")):
        return f"\x1b]777;notify;{title.replace(';', ',')};{words}\x07"
    return f"\x1b]9;{title}: {words}\x07"


async def run_notifier(command: str, message: str) -> None:
    """The message is the last argument. A failure is logged."""
    try:
        words = [*shlex.split(command), message]
        process = await asyncio.create_subprocess_exec(
            *words, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True
        )
    except (OSError, ValueError) as error:
        _log.warning("notify: %s", error)
        return
    try:
        async with asyncio.timeout(NOTIFIER_WITHIN):
            if status := await process.wait():
                _log.warning("notify: exit status %d", status)
    except TimeoutError:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def given_to_tmux(text: str) -> bool:
    """Copies to tmux's buffer and its terminal's clipboard. Returns whether that succeeded."""
    try:
        process = await asyncio.create_subprocess_exec(
            "tmux", "load-buffer", "-w", "-", stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL
        )
    except OSError:
        return False
    try:
        async with asyncio.timeout(TMUX_WITHIN):
            await process.communicate(text.encode(errors="replace"))
    except TimeoutError:
        with suppress(ProcessLookupError):  # it ended just now
            process.kill()
    return await process.wait() == 0


def passed_on(sequence: str) -> str:
    """Wraps a sequence for the terminal outside tmux or screen, if any."""
    if os.environ.get("TMUX"):
        return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    return f"\x1bP{sequence}\x1b\\" if os.environ.get("STY") else sequence
