"""Checks of what is proposed, through a session: run in a view, told to the model, shown for these bytes only."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.sessions import model_of, open_session, reply

from tui_agent.edits.change import Pick
from tui_agent.errors import SessionError
from tui_agent.session.session import Session
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


async def until(session: Session, holds: Callable[[], object]) -> None:
    """Wait for what an event brings about."""
    happened = asyncio.Event()
    done = session.subscribe(lambda *_: happened.set())
    async with asyncio.timeout(20):
        while not holds():
            await happened.wait()
            happened.clear()
    done()


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
        assert "a failed: the model repairs it, 1 of 2" in [n.text for n in session.state.notices.items]
        (mark,) = session.state.check_marks
        assert mark.look == "passed"
        assert mark.words.startswith("✓ a ")
        assert [m.check.state for m in session.state.chat.messages if m.check] == ["failed", "passed"]
        assert (root / "a.py").read_text() == "def f():\n    return 1\n"
        await session.review.apply()
        assert (root / "a.py").read_text() == "def f():\n    return 2\n"


async def test_a_result_is_of_those_bytes_alone(root: Path) -> None:
    (root / "a.py").write_text("def f():\n    return 1\n" + "\n" * 20 + "x = 1\n")
    two = {"path": "a.py", "edits": [*RIGHT["edits"], {"search": "x = 1", "replace": "x = 2"}]}
    async with open_session(
        root, [reply("Both.", fileChanges=[two])], **checks(TEST, "grep -q 'return 1' a.py", repairs=0)
    ) as session:

        def looks() -> list[str]:
            return [mark.look for mark in session.state.check_marks]

        async def check_again() -> None:
            await session.checks.again()
            await session.checks.settled()

        await session.chat.submit("make it 2")
        await session.chat.finished()
        assert looks() == ["passed", "failed"]
        assert session.state.check_doubt == "b: failed"
        (change,) = session.state.review.open
        await session.review.skip([Pick(change.id, 1)])
        assert looks() == ["stale", "stale"]
        assert session.state.check_marks[0].words == "≠ a stale"
        await check_again()
        assert looks() == ["passed", "failed"]
        await session.review.edit_hunk(Pick(change.id, 0), "    return 5\n")
        assert looks() == ["stale", "stale"]
        await check_again()
        assert looks() == ["failed", "failed"]
        await session.files.open("b.txt")
        session.files.edit("b.txt", "unsaved\n", (0, 0), (0, 0))
        assert looks() == ["stale", "stale"]
        await check_again()
        assert looks() == ["failed", "failed"]
        (root / "b.txt").write_text("somebody else\n")
        await until(session, lambda: looks() == ["stale", "stale"])
    async with open_session(root, session="last", **checks(TEST)) as session:
        assert {mark.look for mark in session.state.check_marks} == {"stale"}


async def test_content_that_moves_while_the_view_is_made_is_checked_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = {"path": "c.py", "content": "c = 1\n"}
    async with open_session(
        root, [reply("It.", fileChanges=[RIGHT, other])], **checks("ls", repairs=0)
    ) as session:
        real, moved = session.review.would_write, []

        async def would_write() -> Any:
            found = await real()
            if not moved:
                moved.append(True)
                await session.review.skip([Pick("c1.2")])
            return found

        monkeypatch.setattr(session.review, "would_write", would_write)
        await session.chat.submit("make it 2 in a.py")
        await session.chat.finished()
        assert [result.output for result in session.state.commands.results] == [
            "a.py\nb.txt\nc.py\n",
            "a.py\nb.txt\n",
        ]
        assert [mark.look for mark in session.state.check_marks] == ["passed"]


async def test_the_model_is_asked_again_a_few_times_and_within_the_limits(root: Path) -> None:
    replies = [reply("Wrong.", fileChanges=[WRONG])] * 4
    async with open_session(root, replies, **checks(TEST, repairs=2)) as session:
        await session.chat.submit("make it 2")
        await session.chat.finished()
        assert len(model_of(session).requests) == 3
        assert session.state.turn.ok
        assert session.state.checks.repair == 2
        last = session.state.notices.items[-1].text
        assert last == "a failed after 2 repairs: check it before you apply"
    over = checks(TEST)
    over["overrides"] += ("limits.requests=1",)
    async with open_session(root, replies, **over) as session:
        await session.chat.submit("make it 2")
        await session.chat.finished()
        assert session.state.turn.ok
        assert len(model_of(session).requests) == 1
        assert session.state.notices.items[-1].text.endswith("complete changes are kept")
        assert [mark.look for mark in session.state.check_marks] == ["failed"]


async def test_a_program_that_is_not_there_is_not_the_models_fault(root: Path) -> None:
    async with open_session(
        root, [reply("It.", fileChanges=[RIGHT])], **checks("no-such-program")
    ) as session:
        await session.chat.submit("make it 2")
        await session.chat.finished()
        assert session.state.turn.ok
        assert len(model_of(session).requests) == 1
        assert session.state.check_doubt == "a: program missing"
        (warning,) = [notice.text for notice in session.state.notices.items if notice.level == "warning"]
        assert warning == "no-such-program is not installed: a is skipped"


async def test_a_check_that_runs_is_stopped_with_the_turn_and_by_itself(root: Path) -> None:
    async with open_session(
        root, [reply("It.", fileChanges=[RIGHT])], **checks("sleep 600", "true")
    ) as session:
        await session.chat.submit("make it 2")
        await until(session, lambda: session.state.commands.running)
        assert session.state.turn.phase == "checking"
        assert session.state.check_doubt == "a, b: still running"
        await session.chat.stop()
        assert [mark.look for mark in session.state.check_marks] == ["stopped", "stopped"]
        await session.checks.again()
        await until(session, lambda: session.state.commands.running)
        await session.stop_everything()
        assert [mark.look for mark in session.state.check_marks] == ["stopped", "stopped"]
        assert not session.state.commands.running


async def test_those_that_concern_the_files_run_and_in_the_folder_all_of_them(
    root: Path,
) -> None:
    named = [
        {"name": "docs", "command": "touch docs.ran", "files": ["*.md"]},
        {"name": "code", "command": "touch code.ran", "files": ["*.py"]},
        {"name": "install", "command": "touch install.ran", "when": "applied"},
    ]
    settings = (f"checks.commands={json.dumps(named)}",)
    async with open_session(root, [reply("It.", fileChanges=[RIGHT])], overrides=settings) as session:
        await session.chat.submit("make it 2")
        await session.chat.finished()
        assert [mark.name for mark in session.state.check_marks] == ["code"]
        await session.review.apply()
        assert session.state.check_marks == []
        await session.checks.again()
        await session.checks.settled()
        assert [mark.name for mark in session.state.check_marks] == ["docs", "code", "install"]
        assert session.state.checks.where == "workspace"
    assert sorted(path for path in os.listdir(root) if path.endswith(".ran")) == [
        "code.ran",
        "docs.ran",
        "install.ran",
    ]


async def test_a_new_failure_behind_an_old_one_is_seen_or_the_person_is_told(root: Path) -> None:
    old, new = "echo 'FAILED t.py::old - x'", "grep -q 'return 3' a.py && echo 'FAILED t.py::new - x'"
    (root / "pytest").write_text(f"{old}\n[ \"$1\" = -x ] || {new}\necho '1 failed in 0.1s'\nexit 1\n")
    (root / "all").write_text(
        f"{old}\necho '!!!!! stopping after 1 failures !!!!!\n1 failed in 0.1s'\nexit 1\n"
    )
    chosen = checks("sh ./pytest -x", "sh ./all", repairs=0)
    async with open_session(root, [reply("Wrong.", fileChanges=[WRONG])], **chosen) as session:
        await session.chat.submit("make it 2")
        await session.chat.finished()
        results = [(one.state, one.new_names, one.old) for one in session.state.checks.results]
        assert results == [("failed", ("t.py::new",), 1), ("passed", (), 1)]
        told = "b: it stopped at a failure from before the change; later tests did not run"
        assert told in [notice.text for notice in session.state.notices.items]


async def test_found_checks_are_offered_once_and_run_when_they_are_accepted(root: Path) -> None:
    test = "class T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(a.f(), 2)\n"
    (root / "test_a.py").write_text(f"import a, unittest\n{test}")
    async with open_session(root, [reply("It.", fileChanges=[RIGHT])], interactive=True) as session:
        assert [check.name for check in session.state.checks.offered] == ["unittest"]
        await session.chat.submit("make it 2 in a.py")
        await session.chat.finished()
        assert not session.state.checks.results
        await session.checks.accept()
        await session.checks.settled()
        (mark,) = session.state.check_marks
        assert mark.words.startswith("✓ unittest 1 passed ")
        assert not session.state.checks.offered
    async with open_session(root, interactive=True) as session:
        assert not session.state.checks.offered
        assert [check.name for check in session.checks.chosen()] == ["unittest"]


async def test_on_a_copy_the_same_is_done_and_what_it_cannot_promise_is_said(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUI_AGENT_TRIAL_WITHOUT", "overlay,bubblewrap")
    replies = [reply("Wrong.", fileChanges=[WRONG]), reply("Right.", fileChanges=[RIGHT])]
    async with open_session(root, replies, **checks(TEST)) as session:
        await session.chat.submit("make it 2")
        await session.chat.finished()
        assert {result.isolated for result in session.state.commands.results} == {"landlock"}
        assert [mark.look for mark in session.state.check_marks] == ["passed"]
        assert any("There is no full trial view here" in n.text for n in session.state.notices.items)
        with pytest.raises(SessionError, match="which is weaker"):  # a check is no answer for other commands
            await session.commands.run("true")
    assert (root / "a.py").read_text() == "def f():\n    return 1\n"


async def test_without_any_view_proposals_are_not_checked_and_the_folder_is_by_key(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUI_AGENT_TRIAL_WITHOUT", "overlay,bubblewrap,landlock,sandbox-exec")
    async with open_session(root, [reply("It.", fileChanges=[RIGHT])], **checks(TEST)) as session:
        await session.chat.submit("make it 2")
        await session.chat.finished()
        assert session.state.turn.ok
        assert not session.state.commands.results
        assert "No checks: There is no trial view here" in session.state.notices.items[-1].text
        await session.review.apply()
        await session.checks.again()
        await session.checks.settled()
        assert session.state.check_marks[0].look == "passed"


@pytest.mark.parametrize("value", [2, 3])
async def test_what_applies_itself_waits_for_the_person_where_a_check_failed(root: Path, value: int) -> None:
    change = {"path": "a.py", "edits": [{"search": "return 1", "replace": f"return {value}"}]}
    settings = checks(TEST, repairs=0)
    settings["overrides"] += ("mode=auto",)
    async with open_session(root, [reply("It.", fileChanges=[change])], **settings) as session:
        await session.chat.submit("make it 2")
        await session.chat.finished()
        assert bool(session.state.review.open) == (value == 3)
    assert ("return 2" in (root / "a.py").read_text()) == (value == 2)
