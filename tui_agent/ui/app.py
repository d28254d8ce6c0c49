"""The application: it opens a session behind the first frame, composes the screen, and quits cleanly."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from textual import events, on
from textual.driver import Driver

from tui_agent import debug_log
from tui_agent.errors import OpenElsewhere, TuiAgentError, UsageError
from tui_agent.ui.actions import APP, bindings_of
from tui_agent.ui.garbage import Garbage
from tui_agent.ui.host import Choice, Host, Reopen
from tui_agent.ui.keys.keyboard import Keyboard, Typed
from tui_agent.ui.keys.keymap import DEFAULT as DEFAULT_KEYS
from tui_agent.ui.keys.keymap import load_keys
from tui_agent.ui.letting_go import mend_strips, mend_styles_cache
from tui_agent.ui.screen import WorkspaceScreen
from tui_agent.ui.signals import passed_on
from tui_agent.ui.sink import counted
from tui_agent.ui.terminal import TerminalDriver, TerminalGone
from tui_agent.ui.themes import DEFAULT as DEFAULT_THEME
from tui_agent.ui.themes import NO_COLOUR, Depth, Palette, depth_of, load_palette, names, theme_of
from tui_agent.ui.widgets.session_calls import GROUP, ask

if TYPE_CHECKING:
    from tui_agent.session.session import Session
    from tui_agent.store.event import Event
    from tui_agent.store.state import State

OpenSession = Callable[[], Awaitable["Session"]]
#: Seconds in which the second press of the key that quits must come.
QUIT_WITHIN = 3.0
#: Seconds that a call on the session may still take when the person quits.
SETTLE = 10.0
#: Seconds that the same calls, and then the session, may take when a signal ends the program.
SETTLE_AT_SIGNAL, CLOSE_AT_SIGNAL = 0.5, 1.0
#: Seconds that the last records of the debug log may take then.
FLUSH_AT_SIGNAL = 0.2
#: Seconds after a signal in which the program ends, whatever still runs.
END_WITHIN = 2.6


class WorkspaceApp(Host, inherit_bindings=False):
    """Only composes, and carries what belongs to no pane: opening, themes, quitting."""

    ENABLE_COMMAND_PALETTE = False
    BINDINGS = bindings_of(APP)

    def __init__(
        self,
        open_session: OpenSession,
        *,
        theme: str = DEFAULT_THEME,
        keys: str = DEFAULT_KEYS,
        folders: Sequence[Path] = (),
        reopen: Reopen | None = None,
        pick_from: tuple[Path, Path] | None = None,
        depth: Depth | None = None,
    ) -> None:
        """`folders` may hold `keys.toml` and `themes/`; the nearest is last. `depth` is what the terminal can show,
        where it is not to be asked.

        `reopen` opens a session that was chosen on the screen; with `pick_from` (the data folder and the
        workspace) one is chosen before any is opened.
        """
        no_colour = bool(os.environ.get("NO_COLOR"))
        if not no_colour:
            os.environ.pop("NO_COLOR", None)  # empty means unset, which Textual takes for set
        mend_styles_cache()
        mend_strips()
        super().__init__(driver_class=TerminalDriver)
        self._open_session = open_session
        self._depth = depth or depth_of(self.console.color_system)
        self._theme_folders = [folder / "themes" for folder in folders]
        self.keys = load_keys(keys, folders)
        self.set_keymap(self.keys.keymap())
        self.keyboard = Keyboard(self, self._handle, self._is_urgent)
        self.garbage = Garbage(lambda: self.keyboard.idle)
        self.palette = self._use(NO_COLOUR if no_colour else theme)
        self.reopen = reopen
        self._pick_from = pick_from
        #: The session to go on with when this one is closed.
        self.next: Choice | None = None
        self.session: Session | None = None
        self.error: TuiAgentError | None = None
        self._quitting = False
        #: The signal that ends the program, 0 while none came.
        self.signal = 0

    def get_default_screen(self) -> WorkspaceScreen:
        return WorkspaceScreen()

    @property
    def workspace_screen(self) -> WorkspaceScreen:
        screen = self.screen_stack[0]
        assert isinstance(screen, WorkspaceScreen)
        return screen

    # ── keys ─────────────────────────────────────────────────────────────────────────────────────────────

    def on_mount(self) -> None:
        self.screen_change_signal.subscribe(self, lambda _: self.keyboard.look(), immediate=True)
        self._typing = asyncio.create_task(self.keyboard.run(), name="keyboard")
        self._typing.add_done_callback(self._typing_ended)

    def on_unmount(self) -> None:
        self._typing.cancel()
        self.garbage.close()

    def _typing_ended(self, task: asyncio.Task[None]) -> None:
        """An error in the handler of a key ends the screen, as one in any other handler does."""
        if not task.cancelled() and isinstance(error := task.exception(), Exception):
            self._handle_exception(error)

    async def on_event(self, event: events.Event) -> None:
        """What is typed goes through the keyboard, which hands it to `_handle` in its turn."""
        if isinstance(event, Typed) and not event.is_forwarded:
            self.keyboard.put(event)
            if self.session is None:
                self.workspace_screen.typed_early()
        else:
            await super().on_event(event)

    async def _handle(self, event: Typed) -> None:
        screen = self.screen
        if isinstance(screen, WorkspaceScreen):
            if screen.make_room(event):
                await self.keyboard.drawn()
            if screen.take_right_button(event) or await screen.take_after_leader(event):
                return
        await super().on_event(event)

    def _is_urgent(self, event: Typed) -> bool:
        return isinstance(event, events.Key) and event.key in self.keys.single(APP)

    # ── opening ──────────────────────────────────────────────────────────────────────────────────────────

    def on_ready(self) -> None:
        """The first frame is on the screen."""
        self.run_worker(self._open())

    async def _open(self) -> None:
        opening = asyncio.create_task(self._chosen())
        await asyncio.sleep(0)
        # While the disk is waited for, what the chat is made of can be read.
        import_module("tui_agent.ui.panes.chat")
        import_module("tui_agent.ui.panes.status")
        try:
            session = await opening
        except TuiAgentError as error:
            self.error = error
            self.exit(return_code=error.exit_status)
            return
        if session is None:
            self.exit(return_code=0)
            return
        self.session = session
        await self.workspace_screen.fill(session)
        self.garbage.begin()
        session.subscribe(self._happened)
        await session.start_services()
        for fault in (*self.keys.faults, *self.palette.faults):
            await session.notice(fault, "warning")

    def _happened(self, event: Event, state: State) -> None:
        from tui_agent.store.turn_events import TurnEnded

        if isinstance(event, TurnEnded):
            self.garbage.collect_soon()

    async def _chosen(self) -> Session | None:
        """The session to show; None where the person chose none. One that is open elsewhere is asked about."""
        choice = None
        if self._pick_from:
            from tui_agent.ui.dialogs.sessions import pick

            choice = await pick(self, *self._pick_from)
            if choice is None:
                return None
        if self.reopen is None:
            return await self._open_session()
        try:
            return await (self.reopen(choice) if choice else self._open_session())
        except OpenElsewhere as error:
            from tui_agent.ui.dialogs.sessions import open_otherwise

            return await open_otherwise(self, self.reopen, error)

    async def switch(self, choice: Choice) -> None:
        """Close this session and go on with another."""
        self.next = choice
        await self.leave(0)

    def copy_to_clipboard(self, text: str) -> None:
        """Hand text to the terminal's clipboard, inside tmux to the terminal around it too."""
        super().copy_to_clipboard(text)
        if (os.environ.get("TMUX") or os.environ.get("STY")) and self._driver is not None:
            encoded = b64encode(text.encode(errors="replace")).decode()
            self._driver.write(passed_on(f"\x1b]52;c;{encoded}\a"))
        self.notify(f"{counted(len(text), 'character')} copied", timeout=2, markup=False)

    @property
    def themes(self) -> list[str]:
        """The names of all that there are."""
        return names(self._theme_folders)

    def use_theme(self, name: str) -> None:
        """Draw everything in another theme, for this run."""
        if name != self.palette.name:
            self._use(name)

    def _use(self, name: str) -> Palette:
        palette = load_palette(name, self._theme_folders, self._depth)
        self.register_theme(theme_of(palette))
        self.palette = palette
        self.theme = palette.name
        return palette

    async def action_quit(self) -> None:
        """Copy what is selected; else quit, at the second press."""
        focused = self.focused
        if focused is not None and getattr(focused, "selected_text", ""):
            await self.run_action("copy", focused)
        elif (selected := self.screen.get_selected_text()) is not None:
            self.copy_to_clipboard(selected)
        elif not self._quitting:
            self._quitting = True
            self.set_timer(QUIT_WITHIN, self._stay)
            key = self.keys.shown("app.quit")
            self.notify(
                f"Press {key} again to quit{self._what_is_kept()}.", timeout=QUIT_WITHIN, markup=False
            )
        else:
            await self.leave(0)

    def _what_is_kept(self) -> str:
        state = self.session.state.session if self.session else None
        if state is None or state.read_only:
            return ""
        return "; this session is not kept" if state.not_kept else "; everything is kept"

    def action_stop_everything(self) -> None:
        if self.session is not None:
            ask(self, self.session, self.session.stop_everything())

    def _fatal_error(self) -> None:
        """A fault of ours ends the screen; `_run` raises it, so that it is told in one sentence.

        Textual would print every frame with its local values, among them whatever text is open.
        """
        self.bell()
        self._close_messages_no_wait()

    # ── suspending, and the end by a signal ──────────────────────────────────────────────────────────────

    async def suspend_to_shell(self) -> None:
        """Stop the program and whatever started it, as the shell knows it; what was typed is on its way to disk."""
        if not isinstance(self._driver, TerminalDriver) or not self._driver.can_suspend:
            said = "Nothing could bring this program back: it was not started by a shell, so it is not suspended."
            self.notify(said, severity="warning", markup=False)
            return
        await self.workspace_screen.flush()
        if self.session is not None:
            self.session.journal.flush()
        self._suspend_signal()
        self._driver.suspend()

    async def hand_over(self, words: Sequence[str]) -> int:
        if not isinstance(self._driver, TerminalDriver):
            raise UsageError("This terminal cannot be given to another program", "write the text here")
        await self.workspace_screen.flush()
        with self._driver.given_away():
            try:
                process = await asyncio.create_subprocess_exec(*words)
            except OSError as error:
                raise UsageError(
                    f"{words[0]} cannot be started ({error.strerror})", "set EDITOR to another"
                ) from error
            status = await process.wait()
        self._draw_all()
        return status

    @on(Driver.SignalResume)
    def _draw_all(self) -> None:
        self.refresh(layout=True)

    @on(TerminalGone)
    def _terminal_is_gone(self) -> None:
        os.kill(os.getpid(), signal.SIGHUP)

    def end_by(self, number: int) -> None:
        """End soon: keep what was typed, release the session, and do not wait for what hangs."""
        if not self.signal:
            self.signal = number
            asyncio.get_running_loop().create_task(self.leave(0))

    def _stay(self) -> None:
        self._quitting = False

    async def leave(self, status: int) -> None:
        """Hand everything over to the session, wait for what it was asked to do, and end."""
        await self.workspace_screen.leave()
        asked = [worker._task for worker in self.workers if worker.group == GROUP and worker._task]
        if asked:
            await asyncio.wait(asked, timeout=SETTLE_AT_SIGNAL if self.signal else SETTLE)
        self.exit(return_code=status)


def run_app(
    open_session: OpenSession,
    *,
    theme: str = DEFAULT_THEME,
    keys: str = DEFAULT_KEYS,
    folders: Sequence[Path] = (),
    reopen: Reopen | None = None,
    pick_from: tuple[Path, Path] | None = None,
) -> int:
    """Run full screen until the person quits; the exit status. Raises the error that kept the session shut.

    The session is opened after the first frame, and closed here, after the screen was given back. Another that is
    chosen on the screen is opened on a screen of its own.
    """
    while True:
        app = WorkspaceApp(
            open_session, theme=theme, keys=keys, folders=folders, reopen=reopen, pick_from=pick_from
        )
        status = asyncio.run(_run(app))
        if app.next is None or reopen is None:
            return status
        open_session, pick_from = partial(reopen, app.next), None


def _end_at_last(number: int) -> None:
    """End the process when closing has not ended it: the kernel releases the lock, and the children end with us."""
    time.sleep(END_WITHIN)
    os._exit(128 + number)


async def _run(app: WorkspaceApp) -> int:
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
            await app.session.close(within=CLOSE_AT_SIGNAL if app.signal else None)
        if app.signal:
            debug_log.flush(FLUSH_AT_SIGNAL)
            os._exit(app.return_code or 0)  # threads that hang are not waited for
    if app.error:
        raise app.error
    if app._exception is not None:
        raise getattr(app._exception, "error", app._exception)  # a worker's failure wraps what it failed with
    return app.return_code or 0
