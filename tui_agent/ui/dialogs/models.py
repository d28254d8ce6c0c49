"""The model: chosen from what is here, or a provider with a key that is put in; tried once, and kept as the default."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Static

from tui_agent.errors import TuiAgentError
from tui_agent.model import keyring
from tui_agent.model.providers import Provider, all_providers
from tui_agent.session.effort_words import EFFORTS, in_short
from tui_agent.ui.dialogs.chooser import Chooser, ChooserRow
from tui_agent.ui.dialogs.dialog import Dialog
from tui_agent.ui.host import Choice, Host
from tui_agent.ui.sink import label, parts

if TYPE_CHECKING:
    from tui_agent.model.discovery import Suggestion
    from tui_agent.session.models import ModelAccess
    from tui_agent.session.session import Session
    from tui_agent.settings.schema import Effort

#: Before the name of a provider whose key is missing, and in place of a name for the rehearsal.
_PROVIDER, _REHEARSAL = "provider:", "rehearsal:"


async def choose_model(app: Host, session: Session) -> None:
    """Ask for the model, and answer with it from the next request on; nothing changes where none is chosen."""
    found: list[Suggestion] = []

    async def get() -> None:
        found.extend(await session.models.find())

    def rows(words: str) -> list[ChooserRow]:
        return [
            *_in_use(session.models.name, words, found),
            *model_rows(words, found),
            *provider_rows(words, os.environ),
            *_rehearsal(app, session, words),
        ]

    chooser = ModelChooser(session.models, rows, get())
    name = await app.push_screen_wait(chooser)
    if not name:
        return
    if name == _REHEARSAL:
        await app.switch(Choice("", rehearsal=True))
        return
    environment = next((it.environment for it in found if it.model == name), {})
    try:
        if name.startswith(_PROVIDER):
            provider = next(it for it in all_providers() if it.name == name.removeprefix(_PROVIDER))
            key = await app.push_screen_wait(KeyDialog(provider, keyring.available()))
            if not key:
                return
            name, environment = provider.suggestion, {provider.keys[0]: key}
            await _keep_key(session, provider.keys[0], key)
        await session.notice(f"Getting {name} ready …")
        about = await session.models.choose(name, environment)
        works = f"{name} works ({about}) and" if about else name
        keep = f'; to keep it, put model = "{name}" into your settings.toml' if about else ""
        await session.notice(f"{works} answers from the next request on{keep}")
        effort = chooser.effort(name)
        if effort != session.models.effort(name):
            await session.notice(await session.models.set_effort(effort))
    except TuiAgentError as error:
        await session.notice(str(error), "error")
        return
    if not session.loaded.settings.model and not about:
        await _try_and_keep(app, session, name)


async def _keep_key(session: Session, name: str, key: str) -> None:
    """In the system's keyring where there is one, else for this run: never in a file of ours."""
    if not keyring.available():
        await session.notice(f"{name} is kept for this run only: with `pip install keyring` it would be kept")
    elif await asyncio.to_thread(keyring.store, name, key):
        await session.notice(f"{name} is kept by the system's keyring")
    else:
        await session.notice(
            f"The system's keyring did not take {name}: it is kept for this run only", "warning"
        )


async def _try_and_keep(app: Host, session: Session, name: str) -> None:
    """Offer a tiny request, and to keep the model as the default; Esc cancels for this session."""
    title, tried = f"{name} is chosen for this session", False
    while True:
        price = session.models.price_of_a_test()
        rows = [
            *([] if tried else [ChooserRow("test", label(f"Test it with one tiny request ({price})"))]),
            ChooserRow("save", label("Save as default, for every new session")),
            ChooserRow("", label("Use it for this session only")),
        ]
        match await app.push_screen_wait(Chooser(title, lambda _, rows=rows: rows, "Enter chooses")):
            case "test":
                try:
                    title, tried = f"{name} works: {await session.models.test()}", True
                except TuiAgentError as error:
                    title = str(error)
            case "save":
                try:
                    where = await asyncio.to_thread(session.models.save_as_default, session.folders.config)
                    await session.notice(f"{name} is the default now: {where}")
                except TuiAgentError as error:
                    await session.notice(str(error), "error")
                return
            case _:
                return


class ModelChooser(Chooser, inherit_bindings=False):
    """Gives the name of a model; ← and → change the effort of the one that the cursor is on."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *Chooser.BINDINGS,
        Binding("left", "change_effort(-1)", show=False, priority=True),
        Binding("right", "change_effort(1)", show=False, priority=True),
    ]

    def __init__(
        self,
        models: ModelAccess,
        rows: Callable[[str], Sequence[ChooserRow]],
        getting: Coroutine[Any, Any, object],
    ) -> None:
        title = "Models found here, and what each provider needs"
        to_type = "type a litellm name, such as openai/gpt-5"
        super().__init__(title, rows, to_type, getting, hint=self._effort_hint)
        self._models = models
        #: The efforts that were changed here, by the model's name.
        self._efforts: dict[str, Effort] = {}

    def effort(self, name: str) -> Effort:
        """The effort of a model: as it was changed here, or as it is."""
        return self._efforts.get(name) or self._models.effort(name)

    def action_change_effort(self, step: int) -> None:
        if name := self._with_levels(self.value):
            at = EFFORTS.index(self.effort(name)) + step
            self._efforts[name] = EFFORTS[max(0, min(at, len(EFFORTS) - 1))]
            self.show_hint()

    def _effort_hint(self, value: str) -> Content:
        name = self._with_levels(value)
        if not name:
            return Content()
        effort = self.effort(name)
        shown = in_short(effort, self._models.level(effort, name)) or effort
        return parts("effort ", (f"‹ {shown} ›", "$accent"), "   ← → change it")

    def _with_levels(self, value: str) -> str:
        """The model of a row; "" if there is none, or its provider takes no levels."""
        provider = value.removeprefix(_PROVIDER)
        name = next((it.suggestion for it in all_providers() if value != provider and it.name == provider), value)
        return name if name not in ("", _REHEARSAL) and self._models.level("max", name) else ""


class KeyDialog(Dialog[str | None], inherit_bindings=False):
    """Asks for a provider's key, which is not shown; gives it, or None where the person leaves it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", show=False)]
    DEFAULT_CSS = """
    KeyDialog {
        align: center top; background: $background 40%;
        & > Vertical { width: 76; max-width: 94%; height: auto; margin-top: 3; background: $overlay; padding: 1 2; }
        & .title { height: 1; color: $accent; text-style: bold; }
        & .hint { height: auto; color: $muted; }
        & Input { border: none; height: 1; padding: 0; margin: 1 0; background: $surface-raised; }
    }
    """

    def __init__(self, provider: Provider, kept: bool) -> None:
        super().__init__()
        self._provider = provider
        self._kept = kept

    def compose(self) -> Iterable[Widget]:
        where = "by the system's keyring" if self._kept else "for this run only, and written nowhere"
        with Vertical():
            title = f"A key for {self._provider.name} ({self._provider.keys[0]})"
            yield Static(label(title), classes="title", markup=False)
            yield Input(password=True, placeholder="paste it here", compact=True)
            yield Static(
                label(f"It is kept {where}.   Enter uses it   Esc cancels"), classes="hint", markup=False
            )

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip() or None)


def _in_use(name: str, words: str, found: Sequence[Suggestion]) -> list[ChooserRow]:
    """The model that answers now, if it holds the words and was not found otherwise."""
    if not name or words.strip().lower() not in name.lower() or words.strip() == name:
        return []
    return [] if any(it.model == name for it in found) else [ChooserRow(name, label(f"{name}   in use"))]


def model_rows(words: str, found: Sequence[Suggestion]) -> list[ChooserRow]:
    """What was found that holds the words, and the words themselves as a name."""
    words = words.strip()
    fitting = [
        ChooserRow(it.model, label(f"{it.model}   {it.because}"))
        for it in found
        if words.lower() in it.model.lower()
    ]
    if words and all(row.value != words for row in fitting):
        fitting.append(ChooserRow(words, label(f"{words}   as typed")))
    return fitting


def provider_rows(words: str, environment: Mapping[str, str]) -> list[ChooserRow]:
    """Providers whose key is missing, each with what it needs: choosing one asks for the key."""
    return [
        ChooserRow(_PROVIDER + it.name, label(f"{it.name:<11} needs {it.keys[0]}: enter one"))
        for it in all_providers()
        if it.takes_key and words.strip().lower() in it.name and not any(map(environment.get, it.keys))
    ]


def _rehearsal(app: Host, session: Session, words: str) -> list[ChooserRow]:
    if app.reopen is None or session.state.session.rehearsal or words.strip().lower() not in "rehearsal":
        return []
    return [
        ChooserRow(_REHEARSAL, label("rehearsal   recorded replies on a sample project: no key, no network"))
    ]
