"""Global commands: palette, help, session, turn and bulk changes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

from tui_agent.files.operating_system import read_start
from tui_agent.files.private import make_private, replace_private
from tui_agent.ui.actions import ACTIONS, why_not
from tui_agent.ui.host import Host
from tui_agent.ui.keys.keymap import DEFAULT, VIM
from tui_agent.ui.keys.leader import Leader
from tui_agent.ui.layout.container import Arrangement
from tui_agent.ui.panes import PANES
from tui_agent.ui.widgets.pane import noticed

if TYPE_CHECKING:
    from textual.geometry import Offset
    from textual.widget import Widget

    from tui_agent.session.session import Session
    from tui_agent.settings.schema import Mode
    from tui_agent.ui.dialogs.chooser import ChooserRow

MOST = 5
#: In the order of the key that changes them.
MODES: tuple[Mode, ...] = ("edit", "ask", "auto")


class RecentActions:
    """Action ids, newest first, also in a file, whose errors are ignored. The methods block."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self._path: Path | None = None

    def load(self, folder: Path) -> None:
        if self._path is not None:
            return
        self._path = folder / "recent-actions.json"
        try:
            found = json.loads(read_start(self._path))
        except (OSError, ValueError, RecursionError):
            return
        kept = [name for name in found if name in ACTIONS] if isinstance(found, list) else []
        self.ids = list(dict.fromkeys((*self.ids, *kept)))[:MOST]

    def add(self, action: str) -> None:
        self.ids = [action, *(other for other in self.ids if other != action)][:MOST]
        if self._path is not None:
            with suppress(OSError):
                make_private(self._path.parent)
                replace_private(self._path, json.dumps(self.ids).encode(), sync=False)


#: Modules of `dialogs`, imported on first use, and functions.
DIALOGS = {
    "app.notices": "palette:show_notices",
    "app.inbox": "inbox:show_inbox",
    "session.new": "sessions:begin_new",
    "session.export": "sessions:export_this",
    "session.open": "sessions:choose_another",
    "session.fork": "sessions:fork_this",
    "session.rename": "sessions:rename_this",
    "session.context": "context:show_context",
    "session.sent": "context:show_sent",
    "session.summary": "context:edit_summary",
    "session.edit_earlier": "sessions:edit_earlier",
    "session.rewind": "sessions:rewind",
    "session.setup": "setup:set_up",
    "session.model": "models:choose_model",
    "session.login": "models:choose_login",
    "session.effort": "models:choose_effort",
    "session.clean": "questions:clean_up",
    "session.trust": "questions:ask_for_trust",
    "session.allow_host": "questions:choose_hosts",
    "session.config": "information:show_settings",
    "session.status": "information:show_status",
    "session.memory": "information:choose_instructions",
    "session.skills": "information:choose_skill",
    "session.mcp": "information:show_servers",
    "session.agents": "information:choose_agent",
    "session.attempts": "subtasks:compare_attempts",
    "session.hooks": "information:choose_hooks",
    "session.stats": "information:show_stats",
    "session.doctor": "information:show_doctor",
    "session.permission": "questions:answer_permission",
    "session.permissions": "questions:show_permissions",
    "checks.run": "questions:run_checks",
    "checks.accept": "setup:choose_checks",
    "changes.commit": "commit:commit",
    "commands.list": "information:show_commands",
}


#: Seconds between the two presses that stop a turn during a change.
STOP_WITHIN = 3.0
#: Characters of a reply's framing, such as braces and names.
FRAME = 200


class CommandHost(Protocol):
    session: Session | None
    leader: Leader
    arrangement: Arrangement

    @property
    def host(self) -> Host: ...

    def ask(self, call: Coroutine[Any, Any, object]) -> None: ...
    def act(self, call: Coroutine[Any, Any, object]) -> None: ...
    def do(self, action_id: str) -> Awaitable[None]: ...
    def do_in(self, name: str, action: str) -> Awaitable[None]: ...
    def run_worker(self, work: Coroutine[Any, Any, object], *, group: str, exclusive: bool) -> object: ...
    def mount(self, *widgets: Widget) -> object: ...


class ScreenCommands:
    def __init__(self, screen: CommandHost) -> None:
        self._screen = screen
        #: Until this time a press of the close key stops a turn that writes changes.
        self._stops_until = 0.0
        self._recent = RecentActions()
        self.table: Mapping[str, Callable[[], object]] = {
            "app.palette": self._open_palette,
            "app.help": self._open_help,
            "app.leader": self._begin_leader,
            "app.theme": self._open_themes,
            "app.plain": lambda: screen.host.show_as(plain=not screen.host.plain),
            "app.vim": lambda: screen.host.show_as(keys=DEFAULT if screen.host.keys.modal else VIM),
            "app.suspend": self._outside_text(lambda: screen.host.suspend_to_shell()),
            "app.detach": lambda: screen.host.suspend_to_shell(leave=True),
            "session.agent": lambda: screen.host.agents.begin(),
            "session.compact": self._call(lambda it: it.chat.compact(), keys_wait=True),
            "session.mode": self._call(
                lambda it: it.set_mode(MODES[(MODES.index(it.mode) + 1) % len(MODES)]), keys_wait=True
            ),
            "session.carry_out": self._call(lambda it: it.carry_out(), keys_wait=True),
            "session.init": self._call(lambda it: it.propose_instructions(), keys_wait=True),
            "turn.stop": self._stop,
            "turn.run_ticked": lambda: screen.do_in("subtasks", "run_ticked"),
            "changes.apply_all": lambda: screen.do_in("review", "apply_all"),
            "changes.apply_one": self._outside_text(lambda: screen.do_in("review", "apply")),
            "changes.skip_one": self._outside_text(lambda: screen.do_in("review", "skip")),
            "changes.undo": lambda: screen.do_in("review", "undo"),
            "changes.redo": lambda: screen.do_in("review", "redo"),
            "commands.again": self._run_again,
            "commands.online": partial(self._run_again, network=True),
            "commands.take": self._call(lambda it: it.commands.take()),
            "commands.forget_builds": self._call(lambda it: it.commands.forget_builds()),
            "commands.show_test_files": self._call(lambda it: it.commands.show_test_files()),
            "commands.hide_test_files": self._call(lambda it: it.commands.hide_test_files()),
            "commands.accept_place": self._call(lambda it: it.commands.places.accept()),
            **{action: partial(self._open, action) for action in DIALOGS},
            **screen.arrangement.commands,
            "app.close": self._close,
        }

    def _outside_text(self, call: Callable[[], object]) -> Callable[[], object]:
        """Does nothing in a text line, in which these keys edit or undo."""

        def do() -> object:
            from textual.widgets import Input

            return None if isinstance(self._screen.host.focused, Input) else call()

        return do

    def _open(self, action: str) -> None:
        if (session := self._screen.session) is not None:
            module, _, name = DIALOGS[action].partition(":")
            dialog = getattr(import_module(f"tui_agent.ui.dialogs.{module}"), name)
            group = action.partition(".")[0]
            call = noticed(session, dialog(self._screen.host, session))
            self._screen.run_worker(call, group=group, exclusive=True)

    def _begin_leader(self) -> None:
        actions = self._screen.host.keys.after_leader()
        session = self._screen.session
        can = {key: it for key, it in actions.items() if session and not why_not(it.id, session.state)}
        if not self._screen.leader.is_attached:
            self._screen.mount(self._screen.leader)
        self._screen.leader.begin(actions, can if session else actions)

    def offer(self, pane: str, at: Offset) -> None:
        from tui_agent.ui.dialogs.chooser import MENU, Chooser, room_of
        from tui_agent.ui.dialogs.palette import place_rows

        screen = self._screen
        if (session := screen.session) is None:
            return

        room = min(room_of(screen.host.size.width), MENU - 5)

        def rows(words: str) -> list[ChooserRow]:
            return place_rows(words, screen.host.keys, pane, lambda it: why_not(it, session.state), room)

        async def do(action_id: str | None) -> None:
            if action_id:
                await screen.do(action_id)

        screen.host.push_screen(Chooser(PANES[pane].title, rows, "name of an action", at=at), do)

    async def _open_palette(self) -> None:
        from tui_agent.ui.dialogs.chooser import Chooser, room_of
        from tui_agent.ui.dialogs.palette import own_rows, palette_rows

        screen = self._screen
        if screen.session is not None:
            await screen.session.extensions.read()
            await asyncio.to_thread(self._recent.load, screen.session.folders.state)

        room = room_of(screen.host.size.width)

        def why(action_id: str) -> str:
            return why_not(action_id, screen.session.state) if screen.session else ""

        def rows(words: str) -> list[ChooserRow]:
            session = screen.session
            return [
                *palette_rows(
                    words, screen.host.keys, screen.arrangement.layout.focus, self._recent.ids, why, room
                ),
                *(own_rows(words, session.extensions.names(), room) if session else ()),
            ]

        async def do(action_id: str | None) -> None:
            if action_id and action_id.startswith("/") and screen.session is not None:
                screen.session.chat.set_draft(f"{action_id} ")
            elif action_id:
                await asyncio.to_thread(self._recent.add, action_id)
                await screen.do(action_id)

        screen.host.push_screen(Chooser("Find an action", rows, "name of an action"), do)

    def _open_themes(self) -> None:
        from tui_agent.ui.dialogs.palette import choose_theme

        self._screen.run_worker(choose_theme(self._screen.host), group="app", exclusive=True)

    def _open_help(self) -> None:
        from tui_agent.ui.dialogs.chooser import Chooser, room_of
        from tui_agent.ui.dialogs.palette import help_rows

        host, first = self._screen.host, self._screen.arrangement.layout.focus
        rows = partial(help_rows, keys=host.keys, first=first, room=room_of(host.size.width))
        host.push_screen(Chooser("Keys", rows, "a key or an action"))

    def _call(
        self, call: Callable[[Session], Coroutine[Any, Any, object]], *, keys_wait: bool = False
    ) -> Callable[[], None]:
        def do() -> None:
            if (session := self._screen.session) is not None:
                (self._screen.act if keys_wait else self._screen.ask)(call(session))

        return do

    def _stop(self) -> None:
        if (session := self._screen.session) is not None:
            running = session.state.turn.running
            self._screen.act(session.chat.stop() if running else session.stop_commands())

    def _close(self) -> None:
        """Closes the topmost element; otherwise stops the running work and focuses the chat.

        Stopping loses incomplete changes, so it needs a second press.
        """
        arrangement, session = self._screen.arrangement, self._screen.session
        if arrangement.layout.zoomed:
            arrangement.unzoom()
            return
        if session is not None and session.state.turn.running:
            reply, stops_until, self._stops_until = session.state.reply, self._stops_until, 0.0
            said = len(reply.summary) + len(reply.message) + len(reply.reasoning)
            if reply.letters > said + FRAME and monotonic() > stops_until:
                self._stops_until = monotonic() + STOP_WITHIN
                key = self._screen.host.keys.shown("app.close")
                warning = f"{key} again to quit: the changes that are being written are lost."
                self._screen.host.notify(warning, timeout=STOP_WITHIN, markup=False)
                return
        if session is not None and (
            session.state.turn.running or session.state.commands.running or session.state.checks.running
        ):
            self._stop()
        arrangement.go_to_the_chat()

    def _run_again(self, *, network: bool = False) -> None:
        from tui_agent.ui.dialogs.questions import run_asked

        if (session := self._screen.session) is not None:
            again = partial(session.commands.again, network=network)
            self._screen.run_worker(
                noticed(session, run_asked(self._screen.host, again)),
                group="again",
                exclusive=True,
            )
