"""Permission: deny first, then ask, then allow; an approval is for exactly what was shown; nobody asked is a no."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.sessions import calls, model_of, open_session, reply
from support.trees import make_tree, until

from tui_agent.headless.run import UnfinishedWork
from tui_agent.session.session import Session
from tui_agent.settings.loading import Layer, narrowed
from tui_agent.settings.schema import PermissionSettings
from tui_agent.store.event import Event
from tui_agent.store.state import PermissionDecision, State
from tui_agent.store.turn_events import PermissionDecided
from tui_agent.tools.permission import _as_words, _fits, refusal_of_path

DONE = reply("Done.")
open_asking = partial(open_session, protocol="tools", interactive=True)
SEARCH = ("search_text", {"pattern": "x", "glob": "a.py"})


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "work", {"a.py": "x = 1\n", "private/k.py": "x = 2\n"})


def result(session: Session, request: int = -1) -> str:
    messages = model_of(session).requests[request].messages
    return str([message for message in messages if message["role"] == "tool"][-1]["content"])


async def turn(session: Session) -> None:
    await session.chat.submit("Look")
    await session.chat.finished()
    assert session.state.turn.ok, session.state.turn.error


@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        ((), True),
        (("permissions.deny=search_text",), False),
        (("permissions.deny=search_text(*.py)", "permissions.allow=search_text"), False),
        (("permissions.deny=search_text(*.md)",), True),
        (("permissions.ask=search_text", "permissions.allow=search_text"), False),
        (("permissions.deny=read_files",), True),
    ],
)
async def test_deny_comes_first_then_ask_then_allow(
    workspace: Path, rules: Sequence[str], allowed: bool
) -> None:
    async with open_session(
        workspace, [calls(SEARCH), DONE], protocol="tools", overrides=rules, interactive=False
    ) as session:
        await turn(session)
        assert ("a.py:1" in result(session)) is allowed
        assert result(session).startswith("Error: not done") is not allowed
        notices = " ".join(notice.text for notice in session.state.notices.items)
        assert ("was not done" in notices) is not allowed
        assert len(session.state.permissions) == (not allowed), "a denial is an event that can be listed"


async def asked(session: Session, answer: str, reason: str = "") -> None:
    await session.chat.submit("Look")
    await until(lambda: session.state.asked is not None, "the question")
    question = session.state.asked
    assert question is not None and '"pattern": "x"' in question.preview
    await session.chat.permit(question.call, answer, reason)
    await session.chat.finished()


@pytest.mark.parametrize("answer", ["once", "session", "always", "no"])
async def test_an_answer_counts_as_long_as_it_says_and_for_exactly_what_was_shown(
    workspace: Path, answer: str
) -> None:
    other = calls(("search_text", {"pattern": "x", "glob": "*.py"}))
    replies: list[Any] = [calls(SEARCH), DONE, calls(SEARCH), DONE, other, DONE]
    rules = ("permissions.ask=search_text",)
    async with open_session(
        workspace, replies, protocol="tools", overrides=rules, interactive=True
    ) as session:
        await asked(session, answer, "not here")
        done = answer != "no"
        assert ("a.py:1" in result(session)) is done
        assert ("not allow it: not here" in result(session)) is not done
        if answer in ("session", "always"):
            await turn(session)  # nobody is asked again about the same
            assert "a.py:1" in result(session)
            await session.chat.revoke(session.state.permissions[-1].digest)
            assert session.state.permissions == ()
        model_of(session).replies[:] = replies[2:4]
        await asked(session, "no")
        model_of(session).replies[:] = replies[4:]
        await session.chat.submit("Look")
        await until(lambda: session.state.asked is not None, "a question about other arguments")
        await session.chat.stop()
        assert session.state.asked is None
    if answer == "always":
        async with open_session(
            workspace, replies[:2], protocol="tools", overrides=rules, interactive=True
        ) as session:
            await asked(session, "no")  # it was revoked for good


async def test_what_is_allowed_always_holds_in_a_later_session(workspace: Path) -> None:
    rules = ("permissions.ask=search_text",)
    async with open_session(
        workspace, [calls(SEARCH), DONE], protocol="tools", overrides=rules, interactive=True
    ) as session:
        await asked(session, "always")
    async with open_session(
        workspace, [calls(SEARCH), DONE], protocol="tools", overrides=rules, interactive=True
    ) as session:
        await turn(session)
        assert "a.py:1" in result(session)


async def test_a_rule_counts_for_what_a_pattern_finds_too(workspace: Path) -> None:
    read = (
        "read_files",
        {"actions": [{"type": "file", "name": "All", "patterns": ["**/*.py"], "all": True}]},
    )
    everywhere = ("search_text", {"pattern": "x"})
    rules = ("permissions.deny=read_files(private/*),search_text(private/*)",)
    async with open_session(
        workspace, [calls(read, everywhere), DONE], protocol="tools", overrides=rules
    ) as session:
        await turn(session)
        told = str(model_of(session).requests[-1].messages)
        assert "x = 1" in told and "x = 2" not in told and "private/k.py is not shown to you" in told


def test_a_rule_without_a_pattern_is_about_the_call_and_not_about_paths() -> None:
    assert refusal_of_path(PermissionSettings(ask=("read_files",)), "read_files", "a.py") == ""
    assert "denies it" in refusal_of_path(
        PermissionSettings(deny=("read_files(*.pem)",)), "read_files", "k/a.pem"
    )


def test_a_workspace_may_only_add_to_what_is_denied_asked_or_off() -> None:
    below = dict.fromkeys(
        ("permissions.deny", "permissions.ask", "permissions.allow", "tools.off"), ("mine",)
    )
    layer = narrowed(Layer("there", dict.fromkeys(below, ("theirs",)), ()), below)
    assert layer.values == dict.fromkeys(
        ("permissions.deny", "permissions.ask", "tools.off"), ("mine", "theirs")
    )
    assert [fault.key for fault in layer.faults] == ["permissions.allow"]


@pytest.mark.parametrize(
    ("acts", "by", "counts"), [(True, "nobody", True), (False, "nobody", False), (True, "rule", False)]
)
def test_headless_only_what_would_have_written_or_run_something_counts(
    acts: bool, by: Any, counts: bool
) -> None:
    event: Event = PermissionDecided(PermissionDecision("d", "probe", "it", acts=acts, by=by))
    undone = UnfinishedWork()
    undone.on_event(event, State())
    assert bool(undone.calls) is counts


@pytest.mark.parametrize(
    "command",
    [
        "git push",
        "  git push origin",
        "/usr/bin/git push",
        "g'i't \"push\"",
        "git   push",
        "cd x && git push",
        "true;git push",
        "(git push)",
        "A=1 git push",
        "true\ngit push",
    ],
)
def test_a_denied_command_is_found_however_it_is_written(command: str) -> None:
    assert _fits("run_command(git push*)", "run_command", _as_words((command,)))


@pytest.mark.parametrize("command", ["git status", "echo 'git push'", "gitk push", "git 'unclosed"])
def test_another_command_is_not_denied(command: str) -> None:
    assert not _fits("run_command(git push*)", "run_command", _as_words((command,)))
