"""Choice of a model, provider or login; test request; default."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from textual import events
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Static

from tui_agent.errors import TuiAgentError
from tui_agent.model.login import store
from tui_agent.model.login.flow import AwaitApproval, LoggedIn, OpenPage, ShowCode
from tui_agent.model.login.services import SERVICES, LoginService, needed, service
from tui_agent.model.login.store import LoginStore
from tui_agent.model.model_table import Provider, all_providers
from tui_agent.ui.dialogs.chooser import Chooser, ChooserRow
from tui_agent.ui.dialogs.dialog import Dialog, Form
from tui_agent.ui.dialogs.model_chooser import ModelChooser
from tui_agent.ui.host import Choice, Host
from tui_agent.ui.safe_text import label, parts

if TYPE_CHECKING:
    from tui_agent.model.discovery import Suggestion
    from tui_agent.session.session import Session
    from tui_agent.settings.schema import Effort

LOGIN = "login:"


def login_rows(session: Session, words: str) -> Sequence[ChooserRow]:
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
    ID = "login"
    HINTS = (("dialog.close", "cancels"),)
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
        self._shown: dict[str, str] = {}
        self._asks = False

    def body(self) -> Iterable[Widget]:
        yield Static("", classes="steps", markup=False)

    def on_mount(self) -> None:
        self.action_again()

    def action_again(self) -> None:
        if not self._asks:
            self._asks = True
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
                            valid = f"The code is valid for {seconds / 60:.0f} minutes."
                            page, word = (url, "$accent"), (code, "bold $accent")
                            waits = f"\n\nWaiting for the approval. {valid}"
                            self._show(
                                parts("1. Open ", page, "\n2. Enter the code ", word, waits),
                                ("login.copy_code", "copies the code"),
                                ("login.copy_page", "copies the address"),
                            )
                        case OpenPage(url):
                            self._shown = {"code": url, "page": url}
                            elsewhere = "If it is on another machine, paste its final address here."
                            waits = f"\n\nWaiting for the browser. {elsewhere}"
                            words = parts("Open ", (url, "$accent"), waits)
                            self._show(words, ("login.copy_code", "copies the address"))
                        case AwaitApproval():
                            pass  # the steps already show the pending approval
                        case LoggedIn():
                            self.dismiss(True)
        except TuiAgentError as error:
            self._asks = False
            self._show(label(f"{error.what}: {error.remedy}", "$error"))
            self.say(label(self.keys_for(("login.again", "tries again"), ("dialog.close", "closes"))))

    def _show(self, steps: Content, *keys: tuple[str, str]) -> None:
        self.query_one(".steps", Static).update(steps)
        self.say(label(self.keys_for(*keys, ("dialog.close", "cancels"))))


_PROVIDER, _REHEARSAL = "provider:", "rehearsal:"


async def choose_model(app: Host, session: Session) -> None:
    def keyless(words: str) -> list[ChooserRow]:
        rows = [*login_rows(session, words)]
        rehearses = app.reopen is not None and not session.state.session.rehearsal
        if rehearses and words.strip().lower() in "rehearsal":
            about = "recorded replies for a sample project, without key and network"
            rows.append(ChooserRow(_REHEARSAL, label(f"rehearsal   {about}")))
        return rows

    chooser = ModelChooser(session.models, keyless, lambda words: provider_rows(words, os.environ), _model_of)
    if name := await app.push_screen_wait(chooser):
        await _use(app, session, name, chooser.found, chooser.effort)


async def use_model_option(app: Host, session: Session, value: str) -> None:
    """`value` is a model, an account or the rehearsal; "" opens the list."""
    if value == LOGIN:
        await choose_login(app, session)
    elif value:
        await _use(app, session, value, await session.models.find(), session.models.effort)
    else:
        await choose_model(app, session)


async def _use(
    app: Host, session: Session, name: str, found: Sequence[Suggestion], effort_of: Callable[[str], Effort]
) -> None:
    """`found` are the models detected on this machine."""
    if name == _REHEARSAL:
        await app.switch(Choice("", rehearsal=True))
        return
    environment = next((it.environment for it in found if it.model == name), {})
    turns, draft, key = session.state.turn.number, session.state.input.draft.strip(), ""
    writes = draft and not draft.startswith("/")  # a command may have led here
    try:
        if name.startswith(_PROVIDER):
            provider = next(it for it in all_providers() if it.name == name.removeprefix(_PROVIDER))
            key = await app.push_screen_wait(KeyDialog(provider, store.keyring_available()))
            if not key:
                return
            name, environment = provider.suggestion, {provider.keys[0]: key}
            await _keep_key(session, provider.keys[0], key)
            if not name:
                await session.models.reach(environment)
                await session.notice(f"No model of {provider.name} is suggested: type its name", "warning")
                return
        if name.startswith(LOGIN):
            name = await log_in(app, session, name)
            if not name:
                return
        await session.notice(f"Getting {name} ready …")
        about = await session.models.choose(name, environment)
        works = f"{name} works ({about}) and" if about else name
        keep = f'; to keep it, put model = "{name}" into your settings.toml' if about else ""
        await session.notice(f"{works} is used from now on{keep}")
        effort = effort_of(name)
        if effort != session.models.effort(name):
            await session.notice(await session.models.set_effort(effort))
    except TuiAgentError as error:
        await session.notice(str(error), "error")
        return
    if session.loaded.settings.model or about:
        return
    if not key and (writes or session.state.turn.number != turns):  # the user awaits the answer
        again = app.keys.shown("session.model")
        await session.notice(
            f"To use {name} for new sessions, choose it again after a successful test ({again})"
        )
    else:
        await _try_and_keep(app, session, name)


async def _keep_key(session: Session, name: str, key: str) -> None:
    """Stores the key in the system's keyring, otherwise in memory; never in a file."""
    if not store.keyring_available():
        await session.notice(
            f"{name} is stored for this run only; `pip install keyring` stores it permanently"
        )
    elif await asyncio.to_thread(store.store_key, name, key):
        await session.notice(f"{name} is stored in the system's keyring")
    else:
        await session.notice(
            f"The system's keyring rejected {name}: it is stored for this run only", "warning"
        )


async def _try_and_keep(app: Host, session: Session, name: str) -> None:
    title, tried = f"{name} is chosen for this session", False
    while True:
        price = session.models.price_of_a_test()
        test = "Test it with one tiny request" + (f" ({price})" if price else "")
        rows = [
            *([] if tried else [ChooserRow("test", label(test))]),
            ChooserRow("save", label("Save as the default for new sessions")),
            ChooserRow("", label("Use it for this session only")),
        ]
        match await app.push_screen_wait(Chooser(title, lambda _, rows=rows: rows, "")):
            case "test":
                try:
                    title, tried = f"{name} works: {await session.models.test()}", True
                except TuiAgentError as error:
                    title = str(error)
            case "save":
                try:
                    where = await asyncio.to_thread(session.models.save_as_default, session.folders.config)
                    await session.notice(f"{name} is now the default: {where}")
                except TuiAgentError as error:
                    await session.notice(str(error), "error")
                return
            case _:
                return


def _model_of(value: str) -> str:
    if value in ("", _REHEARSAL) or value.startswith(LOGIN):
        return ""
    if not value.startswith(_PROVIDER):
        return value
    return next((it.suggestion for it in all_providers() if value == _PROVIDER + it.name), "")


class KeyDialog(Form[str | None]):
    ID = "key"
    DEFAULT_CSS = """
    KeyDialog {
        & > Vertical { width: 76; max-width: 94%; margin-top: 3; }
        & Input { border: none; height: 1; padding: 0; margin: 1 0; background: $surface-raised; }
    }
    """

    def __init__(self, provider: Provider, kept: bool) -> None:
        super().__init__(f"Key for {provider.name} ({provider.keys[0]})")
        self._kept = kept

    def body(self) -> Iterable[Widget]:
        yield Input(password=True, placeholder="paste it here", compact=True)

    def hint(self) -> Content:
        where = "in the system's keyring" if self._kept else "for this run only"
        keys = self.keys_for(("answer.accept", "uses it"), ("dialog.close", "cancels"))
        return label(f"It is stored {where}.   {keys}")

    async def keep(self) -> str | None:
        return self.query_one(Input).value.strip() or None


def provider_rows(words: str, environment: Mapping[str, str]) -> list[ChooserRow]:
    return [
        ChooserRow(_PROVIDER + it.name, label(f"{it.name:<11} needs {it.keys[0]}: enter one"))
        for it in all_providers()
        if it.takes_key and words.strip().lower() in it.name and not any(map(environment.get, it.keys))
    ]
