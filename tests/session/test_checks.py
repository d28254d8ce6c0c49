"""Checks of what is proposed, through a session: run in a view, told to the model, shown for these bytes only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.sessions import model_of, open_session, reply

from tui_agent.store import events as e

WRONG = {"path": "a.py", "edits": [{"search": "return 1", "replace": "return 3"}]}
RIGHT = {"path": "a.py", "edits": [{"search": "return 1", "replace": "return 2"}]}
#: Fails until the function returns 2.
TEST = "python3 -c 'import a; assert a.f() == 2, a.f()'"


def checks(*commands: str, **more: Any) -> dict[str, Any]:
    """Settings with these checks, named a, b, …; `more` are other settings of the group."""
    named = [{"name": name, "command": command} for name, command in zip("abc", commands, strict=False)]
    return {
        "overrides": (
            f"checks.commands={json.dumps(named)}",
            *(f"checks.{key}={value}" for key, value in more.items()),
        )
    }


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.py").write_text("def f():\n    return 1\n")
    (root / "b.txt").write_text("b\n")
    return root


async def test_the_model_is_told_what_failed_and_puts_it_right_before_the_person_looks(root: Path) -> None:
    replies = [reply("Wrong.", fileChanges=[WRONG]), reply("Right.", fileChanges=[RIGHT])]
    async with open_session(root, replies, **checks(TEST)) as session:
        told: list[e.CheckEnded] = []
        session.subscribe(lambda event, _: told.append(event) if isinstance(event, e.CheckEnded) else None)
        await session.chat.submit("make it 2")
        await session.chat.finished()
        assert [(one.result.state, one.result.repair) for one in told] == [("failed", 0), ("passed", 1)]
        asked = str(model_of(session).requests[1].messages[-1]["content"])
        assert "## CHECK a" in asked
        assert "AssertionError: 3" in asked
        assert "Check 1 failed (a): the model is asked again, 1 of 2" in [
            n.text for n in session.state.notices.items
        ]
        (mark,) = session.state.check_marks
        assert mark.look == "passed"
        assert mark.words.startswith("✓ a ")
        assert [m.check.state for m in session.state.chat.messages if m.check] == ["failed", "passed"]
        assert (root / "a.py").read_text() == "def f():\n    return 1\n"
        await session.review.apply()
        assert (root / "a.py").read_text() == "def f():\n    return 2\n"
