"""Choosing the model on the screen: what this machine offers, or any litellm name that is typed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from textual.app import App

from tui_agent.errors import TuiAgentError
from tui_agent.ui.dialogs.chooser import Chooser, ChooserRow
from tui_agent.ui.sink import label

if TYPE_CHECKING:
    from tui_agent.model.discover import Suggestion
    from tui_agent.session.session import Session


async def choose_model(app: App[object], session: Session) -> None:
    """Ask for the model, and answer with it from the next request on; nothing changes where none is chosen."""
    from tui_agent.model.discover import discover

    found: list[Suggestion] = []

    async def get() -> None:
        found.extend(await discover())

    name = await app.push_screen_wait(
        Chooser("Model", lambda words: rows(words, found), "type a litellm name, such as openai/gpt-5", get())
    )
    if not name:
        return
    environment = next((it.environment for it in found if it.model == name), {})
    try:
        await session.notice(f"Getting {name} ready …")
        await session.choose_model(name, environment)
        await session.notice(f"{name} answers from the next request on{_to_keep(session, name, environment)}")
    except TuiAgentError as error:
        await session.notice(str(error), "error")


def _to_keep(session: Session, name: str, environment: Mapping[str, str]) -> str:
    """What to do so that the next session has it too, where none is configured."""
    if session.loaded.settings.model:
        return ""
    variables = "".join(f", and {key}={value} into your environment" for key, value in environment.items())
    return f'; to keep it, put model = "{name}" into your settings.toml{variables}'


def rows(words: str, found: Sequence[Suggestion]) -> list[ChooserRow]:
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
