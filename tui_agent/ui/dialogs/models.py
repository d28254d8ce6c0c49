"""The list of models, their effort, providers and logins; test request; default."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, overload

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
from tui_agent.session.models import Offer
from tui_agent.turn.model_choice import EFFORTS, in_short
from tui_agent.ui.dialogs.chooser import Chooser, ChooserRow, room_of
from tui_agent.ui.dialogs.dialog import Dialog, Form
from tui_agent.ui.host import Choice, Host
from tui_agent.ui.safe_text import label, parts

if TYPE_CHECKING:
    from tui_agent.model.discovery import Suggestion
    from tui_agent.session.models import ModelAccess
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

    chooser = ModelChooser(session.models, keyless)
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


#: Minimum and maximum name width, and the row width for abilities and dates.
LEAST_NAME, MOST_NAME, WIDE = 24, 44, 100
_IN_USE = "in use"
ABILITIES = {"t": "functions", "s": "schema", "v": "pictures", "r": "thinking"}


class OfferRows(Sequence[ChooserRow]):
    """Builds rows of offers on access."""

    def __init__(self, rows: Sequence[ChooserRow | Offer], width: int, in_use: str) -> None:
        self._all = rows
        self._width = width
        self._in_use = in_use

    def __len__(self) -> int:
        return len(self._all)

    @overload
    def __getitem__(self, at: int) -> ChooserRow: ...
    @overload
    def __getitem__(self, at: slice) -> list[ChooserRow]: ...
    def __getitem__(self, at: int | slice) -> ChooserRow | list[ChooserRow]:
        if isinstance(at, slice):
            return [self._row(one) for one in self._all[at]]
        return self._row(self._all[at])

    def _row(self, one: ChooserRow | Offer) -> ChooserRow:
        if isinstance(one, ChooserRow):
            return one
        return offer_row(one, self._width, _IN_USE if one.name == self._in_use else "")


def fits(words: str, text: str) -> bool:
    text = text.lower()
    return all(word in text for word in words.lower().split())


def fitting(words: str, offers: Sequence[Offer], left_out: frozenset[str]) -> list[Offer]:
    """Retired models match only if `words` is set."""
    if not words.strip():
        return [offer for offer in offers if not offer.ended and offer.name not in left_out]
    return [
        offer
        for offer in offers
        if offer.name not in left_out and fits(words, f"{offer.name} {abilities(offer)}")
    ]


def offer_row(offer: Offer, width: int, mark: str = "") -> ChooserRow:
    """Name, date, window, price and abilities (or retirement) in `width` cells. `mark` is for the current
    model.
    """
    wide = width >= WIDE
    name = max(LEAST_NAME, min(MOST_NAME, width - (70 if wide else 37)))
    shown = offer.name.ljust(name) if len(offer.name) <= name else f"{offer.name[: name - 1]}…"
    columns = [
        *([dated(offer).rjust(10)] if wide else []),
        tokens(offer.known.window).rjust(5),
        price(offer).ljust(13 if wide else 11),
    ]
    ending = end(offer)
    more = mark or ending or (abilities(offer) if wide else "")
    ink = "$accent" if mark else "$warning" if ending else "$muted"
    row = parts("  ".join([shown, *([] if offer.ended else columns)]), "  ", (more, ink))
    return ChooserRow(offer.name, row.truncate(width, ellipsis=True))


def about(offer: Offer, width: int) -> str:
    wide = width >= WIDE
    per = " per million tokens" if wide else ""
    facts = (
        end(offer),
        dated(offer),
        tokens(offer.known.window) + (" tokens" if wide and offer.known.window else ""),
        f"{price(offer)}{per}" if offer.known.prices else "",
        abilities(offer),
    )
    return " · ".join(filter(None, facts))


def end(offer: Offer) -> str:
    """`ends 2026-12-01`, `retired since 2026-07-24, replaced by deepseek/deepseek-v4-flash`, or ""."""
    if not offer.ended:
        return f"ends {offer.known.ends}" if offer.known.ends else ""
    return f"retired since {offer.known.ends}" + (f", replaced by {offer.follower}" if offer.follower else "")


def dated(offer: Offer) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(offer.created)) if offer.created else ""


def tokens(count: int) -> str:
    """Returns "" if unknown."""
    if count >= 999_500:
        return f"{count / 1_000_000:.1f}M".replace(".0M", "M")
    return f"{round(count / 1000)}k" if count >= 1000 else str(count or "")


def price(offer: Offer) -> str:
    """Dollars per million input and output tokens, `$2 / $10`; "" if unknown."""
    if not offer.known.prices:
        return ""
    first = offer.known.prices[0]
    return f"${_dollars(first.input)} / ${_dollars(first.output)}"


def abilities(offer: Offer) -> str:
    return " ".join(word for letter, word in ABILITIES.items() if letter in offer.known.can)


def _dollars(for_a_token: float) -> str:
    return f"{for_a_token * 1_000_000:.3f}".rstrip("0").rstrip(".")


#: Rows built at once.
MOST = 100


class ModelChooser(Chooser):
    ID = "model_list"
    DEFAULT_CSS = """
    ModelChooser {
        & > Vertical { width: 120; max-height: 90%; margin-top: 1; }
        & .facts { height: auto; min-height: 2; max-height: 4; margin: 0 0 1 0; }
    }
    """

    def __init__(self, models: ModelAccess, keyless: Callable[[str], Sequence[ChooserRow]]) -> None:
        """`keyless` rows are first if no model is selected."""
        to_type = "name or ability; or type provider/model"
        super().__init__("Models", self._rows_of, to_type, self._look(), most=MOST)
        self._models = models
        self._keyless = keyless
        #: Detected models, not from provider lists.
        self.found: Sequence[Suggestion] = models.found or models.offers.suggested()
        self._looked = bool(self.found)
        #: Whether Enter on an empty list selects the first row to appear.
        self._waits = False
        self._offers: list[Offer] = []
        self._by_name: dict[str, Offer] = {}
        self._efforts: dict[str, Effort] = {}

    def body(self) -> Iterable[Widget]:
        typed, options = super().body()
        yield typed
        yield Static("", classes="facts", markup=False)
        yield options

    async def _look(self) -> None:
        async def kept() -> None:
            await self._models.offers.read()
            self._refresh()
            self.run_worker(self._models.offers.ask(self._refresh), group="lists", exclusive=True)

        async def find() -> None:
            self.found = await self._models.find()
            self._looked = True
            self._refresh()
            if self._waits:
                self.choose(0)

        await asyncio.gather(kept(), find())

    def action_ask_again(self) -> None:
        self.run_worker(self._models.offers.ask(self._refresh, again=True), group="lists", exclusive=True)

    def _refresh(self) -> None:
        offers = self._models.offers
        self._offers = offers.all()
        self._by_name = {offer.name: offer for offer in self._offers}
        asking = f" · asking {', '.join(sorted(offers.asking))}" if offers.asking else ""
        count = f" · {len(self._offers):,}" if self._offers else ""
        self.retitle(f"Models{count}{asking}")
        self._follow()
        self._show_facts()

    def choose(self, at: int | None) -> None:
        if self._looked or self._models.name or at or self.query_one(Input).value.strip():
            super().choose(at)
        self._waits = not self._looked

    @property
    def _width(self) -> int:
        return room_of(self.app.size.width)

    def _rows_of(self, words: str) -> OfferRows:
        in_use = self._models.name
        if not fits(words, in_use) or (words.strip() and in_use in self._by_name):
            in_use = ""  # a filter gives the list its own order
        before = [self._row(in_use, _IN_USE)] if in_use else []
        before += [
            self._row(it.model, it.because)
            for it in self.found
            if fits(words, it.model) and it.model != in_use
        ]
        shown = frozenset(row.value for row in before)
        typed, name = [], words.strip()
        if name and " " not in name and name not in shown and name not in self._by_name:
            typed.append(ChooserRow(name, label(f"{name}   as typed")))
        offers = fitting(words, self._offers, shown)
        keyless, others = self._keyless(words), provider_rows(words, os.environ)
        if self._models.name or words.strip():
            rows = [*before, *offers, *typed, *others, *keyless]
        elif before:
            rows = [*before, *keyless, *offers, *others]
        else:
            rows = [*offers, *keyless, *others]
        return OfferRows(rows, self._width, self._models.name)

    def _row(self, name: str, why: str) -> ChooserRow:
        """With the columns of its offer, if `why` fits beside them."""
        offer = self._by_name.get(name)
        if offer is not None and (why == _IN_USE or self._width >= WIDE):
            return offer_row(offer, self._width, why)
        return ChooserRow(name, label(f"{name}   {why}"))

    def _show_facts(self) -> None:
        offer = self._by_name.get(self.value)
        keys = [parts(self.keys_for(("model_list.ask_again", "reloads")))]
        if name := self._with_levels(self.value):
            effort = self.effort(name)
            shown = in_short(effort, self._models.level(effort, name)) or effort
            changes = self.keys_for(("model_list.less_effort model_list.more_effort", "change it"))
            keys.insert(0, parts("effort ", (f"‹ {shown} ›", "$accent"), f"   {changes}"))
        lines = [
            label(about(offer, self._width) if offer else "").truncate(self._width, ellipsis=True),
            Content("   ").join(keys),
        ]
        faults = [f"{provider}: {why}" for provider, why in sorted(self._models.offers.errors.items())]
        if lacking := self._models.offers.lacks(self._models.name):
            faults.insert(0, f"{self._models.name} is not in the list of {lacking}")
        if faults:
            lines.append(label(" · ".join(faults), "$warning").truncate(self._width, ellipsis=True))
        self.query_one(".facts", Static).update(Content("\n").join(lines))

    def effort(self, name: str) -> Effort:
        return self._efforts.get(name) or self._models.effort(name)

    def action_change_effort(self, step: int) -> None:
        if name := self._with_levels(self.value):
            at = EFFORTS.index(self.effort(name)) + step
            self._efforts[name] = EFFORTS[max(0, min(at, len(EFFORTS) - 1))]
            self._show_facts()

    def _with_levels(self, value: str) -> str:
        """The model of a row; "" without one, or without effort levels."""
        if value.startswith(_PROVIDER):
            value = next((it.suggestion for it in all_providers() if value == _PROVIDER + it.name), "")
        if not value or value == _REHEARSAL or value.startswith(LOGIN):
            return ""
        return value if self._models.level("max", value) else ""


async def choose_effort(app: Host, session: Session) -> None:
    models = session.models
    if models.name and not models.level("max"):
        await session.notice(f"{models.name} has no effort levels")
        return
    now = models.effort()

    def rows(words: str) -> list[ChooserRow]:
        found = []
        for effort in EFFORTS:
            level = models.level(effort)
            own = "" if level == effort else f"{level} at {models.name}"
            if effort == "auto" and not level:
                own = "the provider's default"
            if words.strip().lower() in effort:
                in_use = "in use" if effort == now else ""
                found.append(ChooserRow(effort, parts(f"{effort:<8}", (f"{own:<30}", "$muted"), in_use)))
        return found

    title = f"Effort of {models.name or 'the model'}"
    value = await app.push_screen_wait(Chooser(title, rows, first=lambda: now))
    chosen = next((effort for effort in EFFORTS if effort == value), None)
    if chosen is not None:
        await session.notice(await models.set_effort(chosen))
