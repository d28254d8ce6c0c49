"""The steps of the first screen in one list: model, checks, theme, instructions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui_agent.errors import TuiAgentError
from tui_agent.settings.files import save
from tui_agent.ui.dialogs.checks import choose_checks
from tui_agent.ui.dialogs.chooser import Chooser, ChooserRow, question
from tui_agent.ui.dialogs.models import use_model_option
from tui_agent.ui.dialogs.palette import choose_theme
from tui_agent.ui.safe_text import parts
from tui_agent.ui.widgets.welcome import ModelOption, ways

if TYPE_CHECKING:
    from tui_agent.session.checks import ListedCheck
    from tui_agent.session.session import Session
    from tui_agent.ui.host import Host

#: Row values that are not model options.
_LIST, _CHECKS, _THEME, _INIT, _DONE = "list:", "checks:", "theme:", "init:", "done:"


async def set_up(app: Host, session: Session) -> None:
    """The cursor moves to the next step, until the user closes the list."""
    checks: list[ListedCheck] = []
    options: list[ModelOption] = []
    first = ""

    async def find() -> None:
        rehearses = app.reopen is not None and not session.state.session.rehearsal
        found, checks[:] = await asyncio.gather(
            session.models.find(), asyncio.to_thread(session.checks.listed)
        )
        options[:] = ways(found, rehearses=rehearses)
        name = session.models.name
        if name and name not in {option.value for option in options}:
            options.insert(0, ModelOption(name, f"use {name}", ""))

    def rows(words: str) -> list[ChooserRow]:
        models = [*options, ModelOption(_LIST, "more models, and keys for other providers", "")]
        steps = [
            *(
                (it.value, "Model", it.words, "in use" if it.value == session.models.name else it.why)
                for it in models
            ),
            (_CHECKS, "Checks", *_check_words(session, checks)),
            (_THEME, "Theme", app.theme, "in use"),
            (_INIT, "Files", "let the model propose an AGENTS.md", "/init"),
            (_DONE, "Done", "begin to work", ""),
        ]
        shown, before = [], ""
        for value, step, does, mark in steps:
            if words.lower().strip() in f"{step} {does} {mark}".lower():
                name = "" if step == before else step
                shown.append(
                    ChooserRow(value, parts((f"{name:<8}", "$accent"), f"{does}  ", (mark, "$muted")))
                )
                before = step
        return shown

    while True:
        to_type = "each step can be skipped · {choose} selects"
        chooser = Chooser("Set up", rows, to_type, find(), first=lambda at=first: at)
        match await app.push_screen_wait(chooser):
            case None | "done:":
                return
            case "checks:":
                await choose_checks(app, session)
                first = _THEME
            case "theme:":
                if name := await choose_theme(app):
                    await _keep_theme(app, session, name)
                first = _INIT
            case "init:":
                try:
                    await session.propose_instructions()
                except TuiAgentError as error:
                    await session.notice(str(error), "error")
                return
            case model:
                await use_model_option(app, session, "" if model == _LIST else model)
                if app.next is not None:  # the rehearsal takes the place of this session
                    return
                first = _CHECKS


def _check_words(session: Session, checks: Sequence[ListedCheck]) -> tuple[str, str]:
    names = ", ".join(it.check.name for it in checks) or "none found: add a command"
    if session.state.checks.offered:
        return names, "found here, not in use"
    used = sum(it.accepted for it in checks)
    return names, f"{used} in use" if checks else ""


async def _keep_theme(app: Host, session: Session, name: str) -> None:
    answers = {"save": "Save as the default for new sessions", "": "Use it for this session only"}
    if await app.push_screen_wait(question(f"The theme is {name}", answers)) != "save":
        return
    try:
        where = await asyncio.to_thread(save, session.folders.config, "theme", name)
        await session.notice(f"{name} is now the default theme: {where}")
    except TuiAgentError as error:
        await session.notice(str(error), "error")
