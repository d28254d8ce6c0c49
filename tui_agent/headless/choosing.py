"""Choosing a session by number, before the screen opens: `tui-agent --resume`."""

from __future__ import annotations

import sys
from pathlib import Path

from tui_agent.errors import SessionError, UsageError
from tui_agent.headless.words import clean
from tui_agent.session import catalog
from tui_agent.settings.folders import user_folders

SHOWN = 20


def choose_session(workspace: Path) -> str:
    """The id that the person picks from a numbered list. Raises `SessionError` where there is none."""
    entries = catalog.list_sessions(user_folders().data, workspace)[:SHOWN]
    if not entries:
        raise SessionError(
            f"There is no session for {workspace} yet", "start one with `tui-agent`, without --resume"
        )
    if not sys.stdin.isatty():
        raise UsageError("There is no terminal to choose in", "name the session: --resume ID")
    for number, entry in enumerate(entries, 1):
        title = entry.name or entry.first_request or "nothing said yet"
        sys.stdout.write(clean(f"{number:3}  {entry.id}  {entry.turns} turns  {title[:60]}") + "\n")
    answer = input("Number of the session to resume (Enter for the first): ").strip() or "1"
    if not answer.isdecimal() or not 1 <= int(answer) <= len(entries):
        raise UsageError(f"There is no number {clean(answer)}", f"choose one from 1 to {len(entries)}")
    return entries[int(answer) - 1].id
