"""Every call that a front end can make says whether it changes anything; a session that is only read refuses those."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.sessions import open_session

from tui_agent.errors import OnlyRead
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


async def test_each_call_is_declared_and_one_that_changes_something_is_refused(tmp_path: Path) -> None:
    async with (
        open_session(tmp_path, services=False) as there,
        open_session(tmp_path, session=there.state.session.id, read_only=True, services=False) as here,
    ):
        found = dict(calls(here))
        assert not [name for name, method in found.items() if not hasattr(method, "changes")]
        changing = {name for name, method in found.items() if method.changes}
        assert {
            "chat.submit",
            "chat.set_draft",
            "files.edit",
            "models.choose",
            "review.apply",
            "todos.add",
            "rename",
        } < changing
        before = here.state
        for name in sorted(changing):
            needed = [
                parameter
                for parameter in inspect.signature(found[name]).parameters.values()
                if parameter.default is parameter.empty and parameter.kind is not parameter.KEYWORD_ONLY
            ]
            with pytest.raises(OnlyRead, match="close it there, or fork it"):
                refused = found[name](*("x" for _ in needed))
                await refused
        assert here.state is before


async def test_the_parts_that_hold_calls_are_all_walked(tmp_path: Path) -> None:
    async with open_session(tmp_path, services=False) as session:
        declared = {
            name
            for name, part in vars(session).items()
            if any(hasattr(method, "changes") for _, method in inspect.getmembers(part, inspect.ismethod))
        }
        assert {name for name in declared if not name.startswith("_")} == {*PARTS}
