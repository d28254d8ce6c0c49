"""`tui-agent demo`: the sample project in a temporary folder, a prefilled first request, recorded replies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

from tui_agent.headless import output
from tui_agent.rehearsal import CHECK_COMMAND, CHECK_NAME, FIRST_REQUEST, copy_project, recording
from tui_agent.session.session import Session
from tui_agent.settings import loading
from tui_agent.settings.folders import user_folders
from tui_agent.ui.run import run_app
from tui_agent.ui.widgets.guide import Guide

CHECK = {"name": CHECK_NAME, "command": CHECK_COMMAND, "files": ["*.py"]}


async def rehearsal(
    on_folder: Callable[[Path], object] = lambda folder: None, folder: Path | None = None, session: str = ""
) -> Session:
    """Returns a new or resumed session. `on_folder` receives its folder."""
    from tui_agent.session.opening import Opening, open_session

    if folder is None:
        folder = await asyncio.to_thread(copy_project)
        on_folder(folder)
    return await open_session(
        Opening(
            workspace=folder,
            session=session,
            replay=recording(),
            rehearsal=True,
            started_from=Path.cwd(),
            interactive=True,
            draft="" if session else FIRST_REQUEST,
            overrides=(f"checks.commands={json.dumps([CHECK])}",),
        )
    )


def run_demo(plain: bool = False) -> int:
    """Runs the rehearsal full screen, prints how to resume it, and returns the exit status."""
    opened: list[Path] = []
    folders = user_folders()
    loaded = loading.load(folders)
    settings = loaded.settings
    status = run_app(
        lambda: rehearsal(opened.append),
        theme=settings.theme,
        keys=settings.keys,
        plain=plain or settings.screen.plain,
        follows_background="theme" not in loaded.sources,
        reopen=lambda choice: rehearsal(folder=opened[0], session=choice.session),
        guide=Guide(),
        folders=(folders.config,),
    )
    if opened:
        output.row(f"The rehearsal is in {opened[0]}; continue it with: tui-agent --continue")
    return status
