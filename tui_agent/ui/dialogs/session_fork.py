"""Forking on the screen: at which turn the copy begins is chosen from what was asked for in each."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from textual.app import App

from tui_agent.log import search
from tui_agent.log.fork import fork
from tui_agent.log.search import Line
from tui_agent.ui.dialogs.chooser import Chooser, ChooserRow
from tui_agent.ui.sink import label, parts

#: Stands for the whole session.
WHOLE = "whole"


async def fork_at_a_turn(app: App[Any], data: Path, session: str, turns: int) -> str | None:
    """The id of a copy of the session up to the turn that the person chose; None where they chose none.

    Raises `SessionError`.
    """
    chosen = await app.push_screen_wait(_turns(data, session)) if turns > 1 else WHOLE
    if chosen is None:
        return None
    turn = None if chosen == WHOLE else int(chosen)
    return (await asyncio.to_thread(fork, data, session, turn)).id


def _turns(data: Path, session: str) -> Chooser:
    requests: list[Line] = []

    async def get() -> None:
        requests.extend(await asyncio.to_thread(search.requests, data, session))

    def rows(words: str) -> list[ChooserRow]:
        fitting = [line for line in requests if words.lower() in f"{line.turn} {line.text}".lower()]
        whole = [ChooserRow(WHOLE, label("All of it, as it is now"))] if not words.strip() else []
        return [*whole, *(_row(line) for line in fitting)]

    return Chooser("Go on with a copy, as it stood after …", rows, "words of a turn", get())


def _row(line: Line) -> ChooserRow:
    words = " ".join(line.text.split())[:64]
    return ChooserRow(str(line.turn), parts((f"turn {line.turn:>3}  ", "$muted"), words))
