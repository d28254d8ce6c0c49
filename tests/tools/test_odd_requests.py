"""Patterns and folders as nobody should ask for them: each ends in its own clear state and the turn goes on."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from support.sessions import model_of, open_session, reply

from tui_agent.answers.plans import FileAction
from tui_agent.log.stats import Figures, figures_over_time
from tui_agent.session.session import Session
from tui_agent.store import events as e

ODD = (
    "../outside.txt",
    "/etc/passwd",
    "~/x",
    "a/../../b",
    "C:\\x.txt",
    "x" * 10_000,
    "*a" * 70 + "b",
    "{a,b}" * 12,
    "!(x)",
    "nul\0",
)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "docs").mkdir(parents=True)
    (folder / "docs/a.md").write_text("# A\n")
    (tmp_path / "outside.txt").write_text("secret")
    return folder


def figures_of(events: Iterable[e.Event]) -> Figures:
    return figures_over_time((0.0, event) for event in events)


async def turn(session: Session) -> list[e.Event]:
    happened: list[e.Event] = []
    end = session.subscribe(lambda event, state: happened.append(event))
    await session.chat.submit("Make it more robust")
    await session.chat.finished()
    end()
    assert session.state.turn.ok, session.state.turn.error
    return happened


def file(pattern: str, number: int = 0) -> dict[str, Any]:
    return {"type": "file", "name": f"f{number}", "patterns": [pattern], "fallbackAction": "skip"}


async def test_odd_patterns_are_attempts_that_say_why(workspace: Path) -> None:
    plan = {"actions": [file(pattern, number) for number, pattern in enumerate(ODD)]}
    async with open_session(workspace, [reply()], plans=[plan]) as session:
        happened = await turn(session)
        ended = [event.attempt for event in happened if isinstance(event, e.AttemptEnded)]
        assert {attempt.outcome for attempt in ended} == {"invalid"} and len(ended) == len(ODD)
        assert all(attempt.why for attempt in ended)
        assert "secret" not in model_of(session).requests[-1].messages[-1]["content"]
        figures = figures_of(happened)
        assert (figures.attempts, figures.outcomes, figures.hits) == (len(ODD), {"invalid": len(ODD)}, {})


async def test_an_empty_workspace_has_nothing_to_find(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    plan = {"actions": [file("**/*"), {"type": "directory", "path": "."}]}
    async with open_session(tmp_path / "empty", [reply()], plans=[plan]) as session:
        await turn(session)
        assert session.state.plan.actions[0].state == "skipped"


async def test_folders_that_are_not_there_or_refused_are_listings_with_an_error(workspace: Path) -> None:
    folders = [
        {"type": "directory", "path": path} for path in ("gone", "../", "/etc", ".git", "docs", "docs")
    ]
    async with open_session(workspace, [reply()], plans=[{"actions": folders}]) as session:
        happened = await turn(session)
        listed = {event.path: event for event in happened if isinstance(event, e.DirectoryListed)}
        assert [bool(listed[path].error) for path in ("gone", "../", "/etc", ".git", "docs")] == [
            True
        ] * 4 + [False]
        assert listed["docs"].entries == (("a.md", "file", 4),)


async def test_at_most_ten_folders_in_a_turn_over_all_its_requests(workspace: Path) -> None:
    for number in range(12):
        (workspace / f"d{number}").mkdir()
        (workspace / f"d{number}/x.txt").write_text("x")
    asks = [
        reply("Looks.", directoryRequests=[{"path": f"d{number}"} for number in numbers])
        for numbers in (range(7), range(7, 12))
    ]
    async with open_session(workspace, [*asks, reply()]) as session:
        happened = await turn(session)
        assert sum(isinstance(event, e.DirectoryListed) for event in happened) == 10
        assert "not listed: d10, d11" in model_of(session).requests[-1].messages[-1]["content"]


async def test_a_question_that_is_declined_is_no_failed_load(workspace: Path) -> None:
    def events(path: str) -> list[e.Event]:
        wanted = FileAction("x", ("x.py",), required=True)
        plan = e.PlanMade(1, "model", (wanted,), (), ())
        return [plan, e.FallbackTaken("x", "ask_user", ("x.py",)), e.QuestionAnswered("x", path)]

    assert [figures_of(events(path)).failed_loads for path in ("", "y.py")] == [0, 1]
    assert figures_of(events("")).plus(figures_of(events("y.py"))).questions == 2
