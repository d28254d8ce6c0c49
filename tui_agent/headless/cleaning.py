"""`tui-agent sessions clean`: how much is kept for undo, and less of it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tui_agent.headless.printing import json_line, row
from tui_agent.log.cleanup import Cleaned, clean, readable, used
from tui_agent.settings import trust
from tui_agent.settings.folders import user_folders
from tui_agent.settings.loading import load


def clean_store(workspace: Path, *, young: bool, yes: bool, as_json: bool) -> int:
    """Print what the store holds, and with `yes` clean it first; 1 where it stays over its limit."""
    folders = user_folders()
    limit = load(folders, workspace, trust.is_trusted(workspace, folders)).settings.undo.max_bytes
    size = used(folders.data)
    done = clean(folders.data, limit, young=young) if yes else Cleaned(size, size)
    if as_json:
        json_line({**msgspec.to_builtins(done), "limit": limit})
    else:
        row(in_words(done, limit))
    return 1 if yes and done.after > limit else 0


def in_words(done: Cleaned, limit: int) -> str:
    """What there is, what went, and what could be done."""
    said = [f"{readable(done.after)} of {readable(limit)} kept for undo and resume"]
    if done.removed:
        said.append(f"{done.removed} texts removed ({readable(done.before - done.after)})")
    if done.why_not:
        said.append(f"nothing was removed: {done.why_not}")
    elif done.young:
        said.append(f"{readable(done.young)} are younger than 30 days: --young removes them too")
    elif done.after > limit and not done.removed:
        said.append("--yes removes the oldest")
    return "; ".join(said)
