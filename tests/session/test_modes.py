"""Modes of a session: ask refuses changes and commands, auto applies changes that pass all checks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.sessions import calls, model_of, open_session, reply

from tui_agent.errors import SessionError
from tui_agent.log.log import events_of
from tui_agent.log.transfer import as_json, import_session
from tui_agent.model.parts import text_of
from tui_agent.session.session import CARRY_OUT, Session
from tui_agent.settings.loading import load
from tui_agent.store import events as e
from tui_agent.turn.request import ASK, ASK_ENDED

CHANGE = {"path": "a.py", "edits": [{"search": "return 1", "replace": "return 2"}]}
#: Passes if the function returns 2.
TEST = "python3 -c 'import a; assert a.f() == 2'"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.py").write_text("def f():\n    return 1\n")
    return root


async def send(session: Session, text: str) -> str:
    """Sends a message; returns the last one that the model got."""
    await session.chat.submit(text)
    await session.chat.finished()
    return text_of(model_of(session).requests[-1].messages[-1])


async def test_in_ask_changes_and_commands_are_refused_and_the_tools_stay(root: Path) -> None:
    acting = calls(
        ("propose_changes", {"changes": [CHANGE]}),
        ("run_command", {"command": "touch ran", "why": "to see"}),
        ("spawn_subtasks", {"subTasks": [{"id": "a", "goal": "Do it"}]}),
        ("search_text", {"pattern": "return"}),
    )
    replies = [calls(text="Hello."), acting, calls(text="The plan: return 2.")]
    async with open_session(root, replies, protocol="tools") as session:
        assert ASK not in await send(session, "Hello")
        await session.set_mode("ask")
        await send(session, "What would you change?")
        before, asked, after = model_of(session).requests
        assert ASK in text_of(asked.messages[-1]) and asked.tools == before.tools
        results = [text_of(message) for message in after.messages if message["role"] == "tool"]
        assert [text.startswith("Error: not done: the mode is ask") for text in results] == [True] * 3 + [
            False
        ]
        assert "return 1" in results[3]
        state = session.state
        assert not state.review.changes and not state.subtasks.tasks and not state.commands.results
        assert not (root / "ran").exists() and state.turn.ok


async def test_a_refused_proposal_of_a_structured_reply_is_told_with_the_next_message(root: Path) -> None:
    replies = [reply("Changed.", fileChanges=[CHANGE]), reply("Then not.")]
    async with open_session(root, replies, overrides=("mode=ask",)) as session:
        await send(session, "Change it")
        assert not session.state.review.changes
        assert "Your propose_changes was refused: the mode is ask" in await send(session, "So?")


async def test_a_plan_of_ask_is_carried_out_in_edit(root: Path) -> None:
    replies = [reply("A plan."), reply("Did it.", fileChanges=[CHANGE]), reply("Thanks.")]
    async with open_session(root, replies, overrides=("mode=ask",)) as session:
        with pytest.raises(SessionError, match="no plan"):
            await session.carry_out()
        await send(session, "Make a plan")
        await session.carry_out()
        await session.chat.finished()
        told = text_of(model_of(session).requests[-1].messages[-1])
        assert ASK_ENDED in told and CARRY_OUT in told and ASK not in told
        assert session.mode == "edit" and [change.path for change in session.state.review.open] == ["a.py"]
        assert ASK_ENDED not in await send(session, "Thanks")


async def test_the_mode_survives_a_resume_and_an_option_is_stronger(root: Path) -> None:
    async with open_session(root) as session:
        await session.set_mode("auto")
    async with open_session(root, session="last") as session:
        assert session.mode == "auto"
    async with open_session(root, session="last", overrides=("mode=ask",)) as session:
        assert session.mode == "ask"
    async with open_session(root, session="last") as session:
        assert session.mode == "ask"


def _checks(*commands: str, **more: Any) -> tuple[str, ...]:
    named = [
        {"name": name, "command": command, **more} for name, command in zip("ab", commands, strict=False)
    ]
    return ("mode=auto", "checks.repairs=0", f"checks.commands={json.dumps(named)}")


@pytest.mark.parametrize(
    ("overrides", "why"),
    [
        (_checks(TEST), ""),
        (_checks("grep -q 'return 1' a.py", TEST), "a: failed"),
        (_checks("true", files=["*.md"]), ""),
        (("mode=auto",), "there are no checks"),
        ((*_checks(TEST), "checks.run=none"), "there are no checks"),
    ],
)
async def test_auto_applies_what_passes_and_asks_otherwise(
    root: Path, overrides: tuple[str, ...], why: str
) -> None:
    async with open_session(root, [reply("It.", fileChanges=[CHANGE])], overrides=overrides) as session:
        await send(session, "make it 2")
        assert bool(session.state.review.open) == bool(why)
        if why:
            assert why in session.state.notices.items[-1].text
    assert ("return 2" in (root / "a.py").read_text()) == (not why)


async def test_auto_runs_stale_checks_again_before_it_applies(root: Path) -> None:
    """An unsaved text changes the result between the turn's checks and the apply."""
    async with open_session(root, [reply("It.", fileChanges=[CHANGE])], overrides=_checks(TEST)) as session:
        opened = False

        def make_stale(event: e.Event, state: object) -> None:
            nonlocal opened
            if isinstance(event, e.CheckEnded) and not opened:
                opened = True
                session.journal.publish(e.SessionOpened(session.state.session.trusted))

        session.subscribe(make_stale)
        await send(session, "make it 2")
        ran = [message for message in session.state.chat.messages if message.check]
        assert opened and len(ran) == 2 and not session.state.review.open


async def test_auto_that_was_left_while_checks_ran_applies_nothing(root: Path) -> None:
    async with open_session(root, [reply("It.", fileChanges=[CHANGE])], overrides=_checks("true")) as session:

        def leave(event: e.Event, state: object) -> None:
            if isinstance(event, e.CheckEnded):
                session.journal.publish(e.ModeChosen("edit"))

        session.subscribe(leave)
        await send(session, "make it 2")
        assert session.state.review.open and session.mode == "edit"


@pytest.mark.parametrize(
    ("text", "mode", "begin"),
    [
        ('autonomy = "auto"\nauto_apply = true\n', "auto", "auto"),
        ('autonomy = "auto"\n', "edit", "auto"),
        ("auto_apply = true\n", "edit", "ticked"),
        ('autonomy = "manual"\nauto_apply = true\n', "edit", "manual"),
        ('autonomy = "auto"\nauto_apply = true\nmode = "ask"\n', "ask", "auto"),
    ],
)
def test_settings_of_earlier_versions_write_no_more_than_before(
    home: Path, text: str, mode: str, begin: str
) -> None:
    (home / "config").mkdir(parents=True, exist_ok=True)
    (home / "config" / "settings.toml").write_text(text)
    loaded = load()
    assert loaded.faults == ()
    assert (loaded.settings.mode, loaded.settings.subtasks.begin) == (mode, begin)
    assert load(overrides=("autonomy=assisted",)).settings.mode == "edit"


async def test_a_mode_and_a_goal_do_not_come_with_an_imported_session(root: Path, home: Path) -> None:
    async with open_session(root, [reply("Hello.")]) as session:
        await session.set_mode("auto")
        await session.journal.record(e.GoalSet("all of it"))
        await send(session, "Hello")
        assert session.log_path is not None
        log = session.log_path
    exported = root.parent / "export.json"
    exported.write_text(as_json("a", list(events_of(log, []))))
    name = import_session(home / "data", exported, root)
    async with open_session(root, session=name) as session:
        assert (session.mode, session.state.input.goal) == ("edit", "")
        assert "Hello." in [message.gist for message in session.state.chat.messages]
