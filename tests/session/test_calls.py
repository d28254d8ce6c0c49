"""Every call that a front end can make says whether it changes anything."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support.sessions import open_session

from tui_agent.session.session import Session

#: The parts of a session that hold calls; the session itself is one.
PARTS = (
    "chat",
    "checks",
    "commands",
    "extensions",
    "files",
    "hooks",
    "mcp",
    "models",
    "review",
    "subtasks",
    "todos",
)


def calls(session: Session) -> Iterator[tuple[str, Any]]:
    """Every public method of a session and of its parts, by its name in a front end."""
    for part in ("", *PARTS):
        holder = getattr(session, part) if part else session
        for name, method in inspect.getmembers(holder, inspect.ismethod):
            if not name.startswith("_"):
                yield f"{part}.{name}".lstrip("."), method


async def test_each_call_is_declared(tmp_path: Path) -> None:
    async with open_session(tmp_path, services=False) as session:
        found = dict(calls(session))
        assert not [name for name, method in found.items() if not hasattr(method, "changes")]
        changing = {name for name, method in found.items() if method.changes}
        assert {"chat.submit", "chat.set_draft", "files.edit", "review.apply", "rename"} < changing


async def test_the_parts_that_hold_calls_are_all_walked(tmp_path: Path) -> None:
    async with open_session(tmp_path, services=False) as session:
        declared = {
            name
            for name, part in vars(session).items()
            if any(hasattr(method, "changes") for _, method in inspect.getmembers(part, inspect.ismethod))
        }
        assert {name for name in declared if not name.startswith("_")} == {*PARTS}
