"""Choosing the model on the screen: what this machine offers, or any litellm name that is typed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.app import App

from tui_agent.errors import TuiAgentError
from tui_agent.ui.sink import label
from tui_agent.ui.widgets.chooser import Chooser, Row

if TYPE_CHECKING:
    from tui_agent.model.discover import Suggestion
    from tui_agent.session.session import Session


async def choose_model(app: App[object], session: Session) -> None:
    """Ask for the model, and answer with it from the next request on; nothing changes where none is chosen."""
    from tui_agent.model.discover import discover

    found = await discover()
    name = await app.push_screen_wait(
        Chooser("Model", lambda words: rows(words, found), "type a litellm name, such as openai/gpt-5")
    )
    if not name:
        return
    try:
        await session.notice(f"Getting {name} ready …")
        await session.choose_model(name)
        await session.notice(f"{name} answers from the next request on")
    except TuiAgentError as error:
        await session.notice(str(error), "error")


def rows(words: str, found: Sequence[Suggestion]) -> list[Row]:
    """What was found that holds the words, and the words themselves as a name."""
    words = words.strip()
    fitting = [
        Row(it.model, label(f"{it.model}   {it.because}"))
        for it in found
        if words.lower() in it.model.lower()
    ]
    if words and all(row.value != words for row in fitting):
        fitting.append(Row(words, label(f"{words}   as typed")))
    return fitting
