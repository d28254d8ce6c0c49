"""Service login: page and code, approval, and rows in the model list."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from textual import events
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from tui_agent.errors import TuiAgentError
from tui_agent.model.login.flow import AwaitApproval, LoggedIn, OpenPage, ShowCode
from tui_agent.model.login.services import SERVICES, LoginService, needed, service
from tui_agent.model.login.store import LoginStore
from tui_agent.ui.dialogs.chooser import Chooser, ChooserRow
from tui_agent.ui.dialogs.dialog import Dialog
from tui_agent.ui.host import Host
from tui_agent.ui.safe_text import label, parts

if TYPE_CHECKING:
    from tui_agent.session.session import Session

#: Value prefix of service rows.
LOGIN = "login:"


def login_rows(session: Session, words: str) -> Sequence[ChooserRow]:
    """A row per service without login and key."""
    logins = LoginStore(session.folders.state).names()
    words = words.strip().lower()
    rows = []
    for one in SERVICES:
        login = logins.get(one.name)
        there = login is not None and not login.ended
        wanted = words in f"log in to {one.title}".lower() or words in one.provider
        if wanted and not there and needed(f"{one.provider}/any", os.environ):
            again = "   the login has expired" if login is not None else ""
            rows.append(ChooserRow(LOGIN + one.name, label(f"log in to {one.title}{again}")))
    return rows


async def choose_login(app: Host, session: Session) -> None:
    """Ask for a service, log in, and use its model from the next request on."""
    rows = login_rows(session, "")
    if not rows:
        await session.notice("You are logged in to all services: `tui-agent logout NAME` logs out")
        return
    value = await app.push_screen_wait(Chooser("Log in", lambda _: rows, ""))
    try:
        if value and (name := await log_in(app, session, value)):
            await session.models.choose(name)
            await session.notice(f"{name} is used from now on")
    except TuiAgentError as error:
        await session.notice(str(error), "error")


async def log_in(app: Host, session: Session, value: str) -> str:
    """Returns the model to use, or "" if cancelled."""
    chosen = service(value.removeprefix(LOGIN))
    if not await app.push_screen_wait(LoginDialog(chosen, LoginStore(session.folders.state))):
        return ""
    await session.notice(f"Logged in to {chosen.title}")
    return chosen.suggestion


class LoginDialog(Dialog[bool]):
    """Login steps; returns whether the login was approved."""

    ID = "login"
    DEFAULT_CSS = """
    LoginDialog {
        & > Vertical { width: 76; max-width: 94%; margin-top: 3; }
        & .steps { height: auto; margin: 1 0; }
    }
    """

    def __init__(self, chosen: LoginService, store: LoginStore) -> None:
        super().__init__(f"Log in to {chosen.title}")
        self._service = chosen
        self._store = store
        self._pasted: asyncio.Queue[str] = asyncio.Queue()
        #: Texts to copy, by binding name; empty until known.
        self._shown: dict[str, str] = {}
        self._failed = False

    def body(self) -> Iterable[Widget]:
        yield Static(label("Asking for a code …"), classes="steps", markup=False)

    def hint(self) -> Content:
        return label(self.keys_for(("dialog.close", "cancels")))

    def on_mount(self) -> None:
        self.action_again(first=True)

    def action_again(self, first: bool = False) -> None:
        """Start the login, or retry after a failure."""
        if first or self._failed:
            self._failed = False
            self._shown, self._pasted = {}, asyncio.Queue()
            self._show(label("Asking for a code …"))
            self.run_worker(self._log_in(), group="login", exclusive=True)

    def action_copy(self, what: str) -> None:
        if text := self._shown.get(what, ""):
            self.app.copy_to_clipboard(text)

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        if event.text.strip():
            self._pasted.put_nowait(event.text.strip())

    async def _log_in(self) -> None:
        from tui_agent.model.login.access import log_in

        try:
            async with aclosing(log_in(self._service, self._pasted, self._store)) as steps:
                async for step in steps:
                    match step:
                        case ShowCode(code, url, seconds):
                            self._shown = {"code": code, "page": url}
                            self._show_code(code, url, seconds)
                        case OpenPage(url):
                            self._shown = {"code": url, "page": url}
                            self._show_page(url)
                        case AwaitApproval():
                            pass  # the steps already show the pending approval
                        case LoggedIn():
                            self.dismiss(True)
        except TuiAgentError as error:
            self._failed = True
            self._show(label(f"{error.what}: {error.remedy}", "$error"))
            self.say(label(self.keys_for(("login.again", "tries again"), ("dialog.close", "closes"))))

    def _show_code(self, code: str, url: str, seconds: float) -> None:
        self._show(
            parts(
                "1. Open ",
                (url, "$accent"),
                "\n2. Enter the code ",
                (code, "bold $accent"),
                f"\n\nWaiting for the approval. The code is valid for {seconds / 60:.0f} minutes.",
            ),
            ("login.copy_code", "copies the code"),
            ("login.copy_page", "copies the address"),
        )

    def _show_page(self, url: str) -> None:
        self._show(
            parts(
                "Open ",
                (url, "$accent"),
                "\n\nWaiting for the browser. If it is on another machine, paste its final address here.",
            ),
            ("login.copy_code", "copies the address"),
        )

    def _show(self, steps: Content, *keys: tuple[str, str]) -> None:
        self.query_one(".steps", Static).update(steps)
        self.say(label(self.keys_for(*keys, ("dialog.close", "cancels"))))
