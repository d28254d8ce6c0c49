"""Opens a session after the first frame, composes the screen, and shuts down."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack, suppress
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

from rich.console import Console
from textual import events, on, work
from textual.driver import Driver
from textual.notifications import Notification, Notify
from textual.screen import Screen
from textual.scrollbar import ScrollBar

from tui_agent.errors import OpenElsewhere, TuiAgentError, UsageError
from tui_agent.ui import textual_patches
from tui_agent.ui.actions import APP, bindings_of
from tui_agent.ui.garbage_collection import Garbage
from tui_agent.ui.host import Choice, Host, Reopen, T
from tui_agent.ui.keys.keyboard import Keyboard, Typed
from tui_agent.ui.keys.keymap import DEFAULT as DEFAULT_KEYS
from tui_agent.ui.keys.keymap import VIM, load_keys
from tui_agent.ui.layout.areas import MEDIUM_FROM
from tui_agent.ui.safe_text import counted
from tui_agent.ui.screen import WorkspaceScreen, keys_wait
from tui_agent.ui.signals import given_to_tmux, passed_on
from tui_agent.ui.terminal import TerminalDriver, TerminalGone
from tui_agent.ui.terminal_input import BackgroundReported, PasteWaits
from tui_agent.ui.textual_patches.driver import driver_of
from tui_agent.ui.textual_patches.fatal_errors import FatalErrorsApp
from tui_agent.ui.textual_patches.notices import dismiss_notices
from tui_agent.ui.textual_patches.plain_display import PlainDisplayApp
from tui_agent.ui.textual_patches.sequences import known
from tui_agent.ui.textual_patches.typed_keys import TypedKeysApp
from tui_agent.ui.themes import DEFAULT as DEFAULT_THEME
from tui_agent.ui.themes import LIGHT, NO_COLOUR, Depth, Palette, depth_of, load_palette, theme_of
from tui_agent.ui.widgets.pane import GROUP, call_session
from tui_agent.ui.widgets.scroll_bar import ScrollBarCells

if TYPE_CHECKING:
    from tui_agent.control.server import LentTerminal
    from tui_agent.session.session import Session
    from tui_agent.store.event import Event
    from tui_agent.store.state import State
    from tui_agent.ui.agents import Agents
    from tui_agent.ui.attachment import Attachment, Serve
    from tui_agent.ui.plain_screen import Announcements, PlainScreen
    from tui_agent.ui.widgets.guide import Guide

OpenSession = Callable[[], Awaitable["Session"]]
#: Waits for a terminal. Returns `None` if another screen is needed.
Arrival = Callable[["WorkspaceApp"], Awaitable["Beginning | None"]]
#: Modules of the chat and the status line, imported during disk waits.
BEHIND_THE_FIRST_FRAME = (
    "editor.writing_area",
    "widgets.prompt",
    "widgets.transcript",
    "panes.chat",
    "panes.status",
)
#: Seconds for the first frame, which an import of the session would delay.
FIRST_FRAME = 0.2
#: Seconds between the two presses of the quit key.
QUIT_WITHIN = 3.0
#: Seconds for pending session calls on quit.
SETTLE = 10.0
#: Seconds for them after a termination signal.
SETTLE_AT_SIGNAL = 0.5
#: Seconds before a key dismisses a notice.
NOTICE_SECONDS = 1.0
#: Seconds until a change of the whole screen is tried again, if its panes are not mounted yet.
AGAIN_AFTER = 0.1
MOST_NOTICES = 2
#: Exit status of a command that cannot start, as in shells.
NOT_STARTED = 127
#: Notice for a paste without an end sequence, and its seconds on screen.
PASTE_WAITS, A_DAY = "paste not finished · Ctrl+C ends it", 86_400


class Beginning(NamedTuple):
    open_session: OpenSession
    reopen: Reopen
    pick_from: tuple[Path, Path] | None
    serve: Serve
    lent: LentTerminal


class WorkspaceApp(
    FatalErrorsApp[int], TypedKeysApp[int], PlainDisplayApp[int], Host, inherit_bindings=False
):
    ENABLE_COMMAND_PALETTE = False
    BINDINGS = bindings_of(APP)
    MODES: ClassVar[dict[str, str | Callable[[], Screen[Any]]]] = {"workspace": WorkspaceScreen}
    DEFAULT_MODE = "workspace"

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
        plain: bool = False,
        guide: Guide | None = None,
        follows_background: bool = False,
        begin_with: Sequence[str] = (),
        first_action: str = "",
        serve: Serve | None = None,
        lent: LentTerminal | None = None,
        arrival: Arrival | None = None,
    ) -> None:
        """`folders` may contain `keys.toml` and `themes/`; later folders take precedence.

        `depth` overrides colour detection. `reopen` opens a selected session. `pick_from` (data folder,
        workspace) shows the session picker first. `follows_background`: use the light theme on a light
        terminal. `begin_with` is an agent's command; `first_action` runs on the complete screen. `serve`
        opens the control socket. `lent` is a launcher's terminal.
        """
        no_colour = bool(os.environ.get("NO_COLOR"))
        if not no_colour:
            os.environ.pop("NO_COLOR", None)  # Textual treats an empty value as set
        textual_patches.apply()
        ScrollBar.renderer = ScrollBarCells
        super().__init__(driver_class=TerminalDriver)
        self._open_session = open_session
        self._depth = depth or depth_of(self.console.color_system)
        self.theme_folders = [folder / "themes" for folder in folders]
        self._key_folders = folders
        self.keys = load_keys(keys, folders)
        self.set_keymap(self.keys.keymap())
        self.keyboard = Keyboard(
            self, self._handle, lambda event: isinstance(event, events.Key) and event.key in self.keys.of_app
        )
        self.garbage = Garbage(
            lambda: self.keyboard.idle, lambda: self.session is not None and self.session.state.turn.running
        )
        self.follows_background = follows_background and not no_colour
        self._theme = theme
        self.palette = self._use(NO_COLOUR if no_colour else theme)
        self.plain_screen: PlainScreen | None = None
        if plain:
            self._draw_plainly(plain)
        self.reopen = reopen
        self.guide = guide
        self._pick_from = pick_from
        self._begin_with = begin_with
        self._first_action = first_action
        self.serve = serve
        self._arrival = arrival
        self.lent = lent
        self.attachment: Attachment | None = None
        self.is_leaving = False
        self.next = None
        self.session: Session | None = None
        self.error: TuiAgentError | None = None
        #: Until this time another press of the quit key quits.
        self._quits_until = 0.0
        self._copied = ""
        self.signal = 0

    @property
    def workspace_screen(self) -> WorkspaceScreen:
        screen = self.screen_stack[0]
        assert isinstance(screen, WorkspaceScreen)
        return screen

    @property
    def plain(self) -> bool:
        return self.plain_screen is not None

    def _draw_plainly(self, plain: bool) -> None:
        from tui_agent.ui.plain_screen import STYLES, PlainScreen

        self.plain_screen = PlainScreen() if plain else None
        self.stylesheet.add_source(STYLES.read_text(encoding="utf-8"), (str(STYLES), ""))
        self.set_class(plain, "-plain")

    def show_as(self, *, plain: bool | None = None, keys: str = "") -> None:
        def change() -> None:
            if plain is not None:
                self._draw_plainly(plain)
            if keys:
                self.keys = load_keys(keys, self._key_folders)
                self.set_keymap(self.keys.keymap())

        if keys:
            shown = "Vim keys" if keys == VIM else "Vim keys off"
            said = f'{shown}; set keys = "{keys}" in settings.toml to keep this.'
        else:
            shown = "Plain screen, one pane at a time" if plain else "Full screen"
            said = f"{shown}; set screen.plain in settings.toml to keep this."
        if self.session is None or not self.workspace_screen.ready:
            self.set_timer(AGAIN_AFTER, lambda: self.show_as(plain=plain, keys=keys))
        else:
            waiting = ExitStack()  # takes effect before the worker starts
            waiting.enter_context(keys_wait(self.workspace_screen))
            self.run_worker(self._rebuild(self.session, change, said, waiting), exclusive=True, group="plain")

    async def _rebuild(
        self, session: Session, change: Callable[[], None], said: str, keys: ExitStack
    ) -> None:
        """Recreates the widgets; `keys` blocks input until then."""
        with keys:
            await self.workspace_screen.leave()
            change()
            after = WorkspaceScreen()
            keys.enter_context(keys_wait(after))
            mode = self.current_mode
            self.add_mode(name := "again" if mode == "workspace" else "workspace", lambda: after)
            await self.switch_mode(name)
            await self.remove_mode(mode)
            await after.fill(session, opened=False)
            await after.complete(session)
        self.notify(said, markup=False)

    def notify(self, message: str, **how: Any) -> None:
        lines = self.workspace_screen.query("Announcements") if self.plain else ()
        for announcements in lines:
            cast("Announcements", announcements).say([message])
        if not lines:
            # Opposite the pane's input: at the top for the chat, otherwise at the bottom.
            in_chat = self.workspace_screen.arrangement.layout.focus == "chat"
            self.workspace_screen.set_class(self.size.width < MEDIUM_FROM and not in_chat, "-low-notices")
            super().notify(message, **how)

    async def push_screen_wait(self, screen: Screen[Any] | str, *, mode: str | None = None) -> Any:
        """Textual's own method runs the application's pending callbacks in the task of its caller. If one
        awaits the end of a screen, a cancellation of the caller ends it halfway.
        """
        return await asyncio.shield(self.push_screen(screen, wait_for_dismiss=True, mode=mode))

    def on_notify(self, event: Notify) -> None:
        def gone(shown: list[Notification]) -> list[Notification]:
            shown = [it for it in shown if it.message != PASTE_WAITS]
            same = [it for it in shown if it.message == event.notification.message]
            return same or shown[: 1 - MOST_NOTICES]

        dismiss_notices(self, gone)

    def words_for(self, screen: Screen[Any]) -> str:
        assert self.plain_screen is not None
        return self.plain_screen.update(screen, self.console)

    def on_mount(self) -> None:
        self.screen_change_signal.subscribe(self, lambda _: self.keyboard.look(), immediate=True)
        self._typing = asyncio.create_task(self.keyboard.run(), name="keyboard")
        self._typing.add_done_callback(self._typing_ended)

    def on_unmount(self) -> None:
        self._typing.cancel()
        self.garbage.close()

    def _typing_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and isinstance(task.exception(), Exception):
            self.call_later(task.result)  # raises it

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, Typed) and not event.is_forwarded:
            self.keyboard.put(event)
            if self.session is None:
                self.workspace_screen.typed_early()
            elif (bridge := self.workspace_screen.bridge) is not None:
                bridge.hurry()
        else:
            await super().on_event(event)

    async def _handle(self, event: Typed) -> None:
        if isinstance(event, events.Key):
            now = time.time()
            dismiss_notices(self, lambda shown: [it for it in shown if now - it.raised_at > NOTICE_SECONDS])
        if isinstance(screen := self.screen, WorkspaceScreen):
            if screen.make_room(event):
                await self.keyboard.drawn()
            if screen.handle_right_click(event) or await screen.handle_after_leader(event):
                return
        await super().on_event(event)

    def is_typed(self, key: str) -> bool:
        # Only the application has keys before a workspace's focused widget.
        return (len(key) == 1 or isinstance(self.screen, WorkspaceScreen)) and key not in self.keys.of_app

    @work
    async def on_ready(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_FRAME):
                await self.workspace_screen.wait_for_refresh()
        if self._arrival is not None:
            found = await self._arrival(self)
            driver = driver_of(self)
            if found is None or not isinstance(driver, TerminalDriver):
                self.exit()
                return
            self._open_session, self.reopen, self._pick_from, self.serve, self.lent = found
            driver.take(0, 1)
            self.use_theme("")
        opening = asyncio.create_task(self._chosen())
        for module in BEHIND_THE_FIRST_FRAME:
            await asyncio.sleep(0)  # lets the session open
            import_module(f"tui_agent.ui.{module}")
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
        session.subscribe(self._on_session_event)
        driver = driver_of(self)
        if isinstance(driver, TerminalDriver) and known():
            from tui_agent.ui.attachment import Attachment

            self.attachment = Attachment(self, driver, session)
        typed, handled = session.state.input.typed, self.keyboard.handled
        await self.workspace_screen.fill(session)
        # Lists the folder in another process.
        await asyncio.gather(session.start_services(), self.workspace_screen.complete(session))
        if self.attachment is not None and self.serve is not None:
            self.attachment.serve(self.serve)
        self.garbage.begin()
        if self._begin_with:
            self.agents.ends_with_it = True
            self.agents.begin(self._begin_with, by_name=False)
        if self._first_action:
            await self.workspace_screen.do(self._first_action)
        if typed:
            from tui_agent.ui.reopening import reopen

            await reopen(self.workspace_screen, session, typed, self.keyboard.handled > handled)
        for fault in (*self.keys.faults, *self.palette.faults):
            await session.notice(fault, "warning")

    def _on_session_event(self, event: Event, state: State) -> None:
        from tui_agent.store.turn_events import TurnEnded

        if isinstance(event, TurnEnded):
            self.garbage.collect_soon()

    async def _chosen(self) -> Session | None:
        """`None` if the user cancelled or another process shows the session here. Raises `OpenElsewhere` if
        that process cannot.
        """
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
            from tui_agent.control import sockets

            if not sockets.of_session(error.session):
                raise
            self.next = Choice(error.session, attach=True)
            return None

    @cached_property
    def agents(self) -> Agents:
        from tui_agent.ui.agents import Agents

        assert self.session is not None
        return Agents(self, self.session, lambda: self.workspace_screen.focus_pane("review"))

    async def switch(self, choice: Choice) -> None:
        if choice.host:
            words = (sys.executable, "-P", "-m", "tui_agent", "ssh", choice.host, "--attach", choice.session)
            if await self.hand_over(words):
                raise UsageError(f"{choice.host} has ended the connection", f"try `ssh {choice.host}`")
        elif choice.attach and self.attachment is not None and self.attachment.outlives_terminal:
            await self.workspace_screen.flush()
            self.attachment.visit(choice.session)
        else:
            self.next = choice
            await self.leave(0)

    @property
    def clipboard(self) -> str:
        return self._copied

    def copy_to_clipboard(self, text: str) -> None:
        """Copies through tmux if present, since it ignores OSC 52 by default."""
        if os.environ.get("TMUX"):
            self._copied = text
            self.run_worker(self._copy_in_tmux(text), group="clipboard")
        else:
            self._hand_to_terminal(text)
            self._tell_copied(text)

    async def _copy_in_tmux(self, text: str) -> None:
        if await given_to_tmux(text):
            self._tell_copied(text)
            return
        self._hand_to_terminal(text)
        said = "Copied through tmux; if it does not arrive, add `set -g set-clipboard on` to tmux.conf"
        self.notify(said, severity="warning", markup=False)

    def _hand_to_terminal(self, text: str) -> None:
        self._copied = text
        super().copy_to_clipboard(text)
        if (os.environ.get("TMUX") or os.environ.get("STY")) and (driver := driver_of(self)) is not None:
            encoded = b64encode(text.encode(errors="replace")).decode()
            driver.write(passed_on(f"\x1b]52;c;{encoded}\a"))

    def _tell_copied(self, text: str) -> None:
        self.notify(f"{counted(len(text), 'character')} copied", timeout=2, markup=False)

    def use_theme(self, name: str) -> None:
        if not name:
            console = Console(
                file=self.console.file,
                highlight=False,
                emoji=False,
                legacy_windows=False,
                force_terminal=True,
                safe_box=False,
                no_color=False,
            )
            shown = NO_COLOUR if os.environ.get("NO_COLOR") else self._theme
            if (console.color_system, shown) == (self.console.color_system, self.palette.name):
                return
            self.console = console
            self._depth = depth_of(console.color_system)
            self._use(shown)
            self.mutate_reactive(WorkspaceApp.theme)  # the colours changed, not the name
            return
        self.follows_background = False
        self._theme = name
        if name != self.palette.name:
            self._use(name)

    @on(BackgroundReported)
    def _follow_background(self, event: BackgroundReported) -> None:
        theme = DEFAULT_THEME if event.dark else LIGHT
        if self.follows_background and theme != self.palette.name:
            self._theme = theme
            self._use(theme)

    def _use(self, name: str) -> Palette:
        palette = load_palette(name, self.theme_folders, self._depth)
        self.register_theme(theme_of(palette))
        self.palette = palette
        self.theme = palette.name
        return palette

    async def action_quit(self) -> None:
        """Copies the selection, if any; otherwise quits on the second press."""
        focused = self.focused
        if focused is not None and getattr(focused, "selected_text", ""):
            await self.run_action("copy", focused)
        elif (selected := self.screen.get_selected_text()) is not None:
            self.copy_to_clipboard(selected)
        elif time.monotonic() > self._quits_until:
            self._quits_until = time.monotonic() + QUIT_WITHIN
            kept = ""
            if self.session is not None:
                unsaved = self.session.state.session.not_kept
                kept = "; this session is not saved" if unsaved else "; everything is saved"
            said = f"Press {self.keys.shown('app.quit')} again to quit{kept}."
            self.notify(said, timeout=QUIT_WITHIN, markup=False)
        else:
            await self.leave(0)

    def action_stop_everything(self) -> None:
        if self.session is not None:
            call_session(self, self.session, self.session.stop_everything())

    async def suspend_to_shell(self, *, leave: bool = False) -> None:
        await self.workspace_screen.flush()
        if self.session is not None:
            self.session.journal.flush()
        if self.attachment is not None and leave:
            try:
                self.attachment.detach()
            except TuiAgentError as error:
                self.notify(str(error), severity="warning", markup=False)
        elif self.attachment is None or not self.attachment.suspend():
            from tui_agent.ui.attachment import NOT_SUSPENDED

            self.notify(NOT_SUSPENDED, severity="warning", markup=False)

    async def hand_over(self, words: Sequence[str]) -> int:
        driver = driver_of(self)
        if not isinstance(driver, TerminalDriver):
            raise UsageError("This terminal cannot run another program", "edit the text here")
        await self.workspace_screen.flush()
        with driver.given_away():
            status = await self.attachment.run_in_terminal(words) if self.attachment is not None else None
            if status is None:
                try:
                    status = await (await asyncio.create_subprocess_exec(*words)).wait()
                except OSError:
                    status = NOT_STARTED
        self._draw_all()
        if status == NOT_STARTED:
            raise UsageError(f"{words[0]} cannot be started", "set EDITOR to another program")
        return status

    async def lend_terminal(self, use: Callable[[int, int], Awaitable[T]]) -> T:
        driver = driver_of(self)
        if not isinstance(driver, TerminalDriver):
            raise UsageError("This terminal cannot run another program", "run the agent outside of tui-agent")
        await self.workspace_screen.flush()
        with driver.given_away():
            used = await use(driver.fileno, driver.output)
        self._draw_all()
        return used

    @on(Driver.SignalResume)
    def _draw_all(self) -> None:
        if self.plain_screen is not None:
            self.plain_screen.forget()
        self.refresh(layout=True)

    @on(PasteWaits)
    def _paste_waits(self, event: PasteWaits) -> None:
        if event.open:
            self.notify(PASTE_WAITS, severity="warning", timeout=A_DAY, markup=False)
        else:
            dismiss_notices(self, lambda shown: [it for it in shown if it.message == PASTE_WAITS])

    @on(TerminalGone)
    def _terminal_is_gone(self, event: TerminalGone) -> None:
        if self.attachment is not None and self.attachment.outlives_terminal:
            self.attachment.on_gone(event.number)
            return
        os.kill(os.getpid(), signal.SIGHUP)

    def end_by(self, number: int) -> None:
        """Saves typed text and releases the session without waiting for blocked calls."""
        if not self.signal:
            self.signal = number
            asyncio.get_running_loop().create_task(self.leave(0))

    async def leave(self, status: int) -> None:
        self.is_leaving = True
        await self.workspace_screen.leave()
        await asyncio.sleep(0)  # starts pending calls
        asked = [worker.wait() for worker in self.workers if worker.group == GROUP and worker.is_running]
        ended = asyncio.gather(*asked, return_exceptions=True)
        await asyncio.wait([ended], timeout=SETTLE_AT_SIGNAL if self.signal else SETTLE)
        if self.attachment is not None:
            self.attachment.close(status)
        self.exit(return_code=status)
