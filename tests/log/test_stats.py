"""Quality figures: each is counted from events written by hand, added up, and shown with its goal."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from tui_agent.answers.plans import FileAction
from tui_agent.edits.change import Change
from tui_agent.log.stats import Figures, Where, figures_over_time
from tui_agent.planning.chain import Attempt
from tui_agent.store import events as e
from tui_agent.store.conversation import Usage

DAY = datetime(2026, 11, 23, 12, tzinfo=UTC).timestamp()
#: What each field of `Figures` is for a session without events.
NOTHING = Figures(sessions=1)
STARTED = e.TurnStarted(1, "do it")


def actions(*names: str, required: bool = True) -> tuple[FileAction, ...]:
    return tuple(FileAction(name, (f"{name}.py",), required=required) for name in names)


def attempt(pattern: str, **of: Any) -> e.AttemptEnded:
    fields: dict[str, Any] = {"index": 1, "total": 3, "ms": 2.0, **of}
    return e.AttemptEnded(Attempt("A", pattern, **fields))


def change(name: str, turn: int, path: str, state: Any = "pending") -> e.ChangeProposed:
    return e.ChangeProposed(Change(name, turn, path, "edit", state))


def counted(events: Sequence[e.Event]) -> dict[str, Any]:
    """The fields that differ from those of a session without events."""
    found = figures_over_time([(0.0, event) for event in events])
    return {
        name: getattr(found, name)
        for name in found.__struct_fields__
        if getattr(found, name) != getattr(NOTHING, name)
    }


@pytest.mark.parametrize(
    ("events", "figures"),
    [
        ([STARTED, e.TurnStarted(2, "and that")], {"turns": 2}),
        (
            [e.PlanMade(1, "model", (*actions("A", "B"), *actions("C", required=False)))],
            {"required": 2},
        ),
        ([e.ActionsAdded(actions("A"))], {"required": 1}),
        ([e.PlanMade(1, "model", actions("A")), e.FallbackTaken("A", "skip", ())], {"required": 1}),
        (
            [e.PlanMade(1, "model", actions("A")), e.FallbackTaken("A", "ask_user", ())],
            {"required": 1, "questions": 1, "failed_loads": 1},
        ),
        ([e.FallbackTaken("A", "ask_user", ())], {"questions": 1}),
        (
            [
                e.PlanMade(1, "model", actions("A", "B")),
                e.FallbackTaken("A", "ask_user", ()),
                e.FallbackTaken("B", "ask_user", ()),
                e.QuestionAnswered("A", "a.py"),
                e.QuestionAnswered("B"),
            ],
            {"required": 2, "questions": 2, "failed_loads": 1},
        ),
        (
            [
                e.PlanMade(1, "model", actions("A")),
                e.FallbackTaken("A", "ask_user", ()),
                e.TurnStarted(2, "again"),
                e.FallbackTaken("A", "ask_user", ()),
            ],
            {"turns": 1, "required": 1, "questions": 2, "failed_loads": 1},
        ),
        ([e.MatchChosen("A", ("a.py",), ("a.py", "b/a.py"), "person")], {"questions": 1}),
        ([e.MatchChosen("A", ("a.py",), ("a.py", "b/a.py"), "nearness")], {}),
        (
            [
                attempt("a", outcome="miss"),
                attempt("b", outcome="too_broad"),
                attempt("a", outcome="miss"),
                attempt("c", outcome="hit", by="model", index=3),
                attempt("d", outcome="hit"),
            ],
            {
                "attempts": 5,
                "milliseconds": 10.0,
                "outcomes": {"miss": 2, "too_broad": 1, "hit": 2},
                "failing": {"a": 2, "b": 1},
                "hits": {3: 1},
                "built_in": 1,
            },
        ),
        ([e.RequestSent(1, "main", prefix_share=0.5)], {}),
        ([e.RequestSent(1, "main", reset=True)], {}),
        (
            [
                e.RequestSent(1, "main"),
                e.RequestSent(1, "main", prefix_share=0.5),
                e.RequestSent(2, "main", reset=True, prefix_share=0.25),
                e.RequestSent(2, "plan", prefix_share=1.0),
                e.RequestSent(2, "main", prefix_share=1.0),
            ],
            {"appended": 2, "unchanged": 1.5, "resets": 1},
        ),
        ([change("c1", 1, "a.py"), change("c2", 1, "a.py"), change("c3", 2, "a.py")], {"changes": 2}),
        ([change("c1", 1, "a.py", "failed")], {"changes": 1, "mismatches": 1}),
        ([change("c1", 1, "a.py"), e.ChangeMoved("c1", "conflict")], {"changes": 1, "mismatches": 1}),
        (
            [change("c1", 1, "a.py"), e.ChangeMoved("c1", "conflict"), e.ChangeMoved("c1", "merged")],
            {"changes": 1},
        ),
        (
            [change("c1", 1, "a.py"), e.ChangeMoved("c1", "conflict"), e.ChangeMoved("c1", "skipped")],
            {"changes": 1, "mismatches": 1},
        ),
        ([change("c1", 1, "a.py", "failed"), change("c2", 1, "a.py")], {"changes": 1}),
        (
            [change("c1", 1, "a.py"), change("c2", 1, "a.py"), e.ChangeMoved("c1", "failed")],
            {"changes": 1},
        ),
        ([e.ChangeMoved("c1", "failed")], {}),
        (
            [
                change("c1", 2, "a.py"),
                e.ChangeMoved("c1", "applied"),
                change("c2", 5, "b.py"),
                e.ChangeMoved("c2", "applied"),
                change("c3", 6, "b.py"),
            ],
            {"changes": 3, "tasks": 2, "task_turns": 5},
        ),
        (
            # a copy has neither the changes nor the turns of its source, and its first request continues one
            [
                e.SessionStarted("s", "/work", copied=4),
                STARTED,
                e.TurnStarted(2, "again"),
                change("c1", 2, "a.py", "failed"),
                e.RequestSent(2, "main"),
                e.TurnStarted(3, "its own"),
                e.RequestSent(3, "main", prefix_share=1.0),
                change("c2", 4, "a.py"),
                e.ChangeMoved("c2", "applied"),
            ],
            {"turns": 1, "changes": 1, "appended": 1, "unchanged": 1.0, "tasks": 1, "task_turns": 2},
        ),
        ([STARTED, e.SessionForked("s", ""), e.TurnStarted(2, "mine")], {"turns": 1}),
    ],
)
def test_each_event_counts_for_its_figures(events: Sequence[e.Event], figures: dict[str, Any]) -> None:
    assert counted(events) == figures


def test_tokens_and_costs_are_counted_by_day_model_folder_and_session() -> None:
    events: list[tuple[float, e.Event]] = [
        (0.0, e.SessionStarted("s", "/work")),
        (DAY, e.ModelChosen("big")),
        (DAY, e.RequestSent(1, "plan", model="small")),
        (DAY, e.RequestSent(1, "main")),
        (DAY, e.UsageCounted(Usage(10, 1, cost=0.5), "plan")),
        (DAY + 86_400, e.UsageCounted(Usage(100, 20, cost=0.25))),
        (0.0, e.UsageCounted(Usage(5, 2, cost=None))),
    ]
    found = figures_over_time(events, "s")
    assert found.spent("day") == {
        "2026-11-23": {"input": 10, "output": 1, "cost": 0.5},
        "2026-11-24": {"input": 100, "output": 20, "cost": 0.25},
    }
    assert found.spent("model") == {
        "big": {"input": 105, "output": 22, "cost": None},
        "small": {"input": 10, "output": 1, "cost": 0.5},
    }
    whole = {"input": 115, "output": 23, "cost": None}
    assert (found.spent("workspace"), found.spent("session")) == ({"/work": whole}, {"s": whole})
    assert found.unpriced[("model", "big")] == 7


ONE = Figures(
    sessions=2,
    turns=9,
    questions=5,
    required=50,
    failed_loads=1,
    changes=20,
    mismatches=2,
    tasks=2,
    task_turns=9,
    appended=8,
    unchanged=7.0,
    resets=3,
    attempts=4,
    milliseconds=10.0,
    built_in=1,
    hits={2: 7, 1: 9},
    outcomes={"miss": 2, "hit": 1},
    failing={"b": 2, "a": 2, "c": 3, "once": 1},
    tokens_in={("day", "2026-11-23"): 4000, ("day", "2026-11-24"): 1, ("model", "x"): 1, ("model", "y"): 2},
    tokens_out={("day", "2026-11-23"): 10, ("model", "x"): 3},
    cost={("day", "2026-11-23"): 0.125},
    unpriced={("model", "x"): 4},
)


def test_figures_in_words_and_in_numbers() -> None:
    assert list(ONE.in_words()) == [
        ("sessions", "2"),
        ("turns", "9"),
        ("questions about files", "5"),
        ("failed automatic loads", "1 of 50 (2.0%)"),
        ("failed or conflicting changes", "2 of 20 (10.0%)"),
        ("turns per task", "4.5"),
        ("unchanged start of requests", "87.5%"),
        ("goal: questions about files per session", "2.5, ≤ 2 (missed)"),
        ("goal: failed automatic loads, %", "2, ≤ 2"),
        ("goal: failed or conflicting changes, %", "10, ≤ 5 (missed)"),
        ("goal: turns per task", "4.5, ≤ 4 (missed)"),
        ("goal: unchanged start of requests, %", "87.5, ≥ 99 (missed)"),
        ("restarted requests", "3"),
        ("chains matched by pattern 1", "9"),
        ("chains matched by pattern 2", "7"),
        ("chains matched by a built-in pattern", "1"),
        ("time per pattern", "2.5 ms"),
        ("found nothing: c", "3 times"),
        ("found nothing: a", "2 times"),
        ("found nothing: b", "2 times"),
        ("day 2026-11-24", "1 tokens in, 0 out · $0.0000"),
        ("day 2026-11-23", "4,000 tokens in, 10 out · $0.1250"),
        ("model x", "1 tokens in, 3 out · price unknown"),
        ("model y", "2 tokens in, 0 out · $0.0000"),
    ]
    values = ONE.values()
    goals = values.pop("goals")
    assert [goal["met"] for goal in goals] == [False, True, False, False, False]
    assert values == {
        "sessions": 2,
        "turns": 9,
        "file_questions": 5,
        "file_questions_per_session": 2.5,
        "required_actions": 50,
        "failed_loads": 1,
        "failed_load_share": 0.02,
        "changes": 20,
        "mismatches": 2,
        "mismatch_share": 0.1,
        "tasks": 2,
        "turns_per_task": 4.5,
        "unchanged_beginning": 0.875,
        "resets": 3,
        "attempts": 4,
        "attempt_ms": 2.5,
        "hits_by_pattern": {"1": 9, "2": 7},
        "hits_built_in": 1,
        "attempts_by_outcome": {"hit": 1, "miss": 2},
        "failing_patterns": {"c": 3, "a": 2, "b": 2},
        "spent_by_day": {
            "2026-11-23": {"input": 4000, "output": 10, "cost": 0.125},
            "2026-11-24": {"input": 1, "output": 0, "cost": 0.0},
        },
        "spent_by_model": {
            "x": {"input": 1, "output": 3, "cost": None},
            "y": {"input": 2, "output": 0, "cost": 0.0},
        },
        "spent_by_workspace": {},
        "spent_by_session": {},
    }


def test_figures_of_nothing() -> None:
    assert list(Figures().in_words()) == [
        ("sessions", "0"),
        ("turns", "0"),
        ("questions about files", "0"),
        ("failed automatic loads", "0 of 0"),
        ("failed or conflicting changes", "0 of 0"),
        ("turns per task", "nothing applied yet"),
        ("restarted requests", "0"),
    ]
    values = Figures().values()
    assert all(goal["met"] and goal["value"] is None for goal in values["goals"])
    assert values["attempt_ms"] is None and values["failed_load_share"] is None


def test_figures_of_two_sessions_are_sums() -> None:
    both = ONE.plus(Figures(sessions=1, unchanged=0.5, hits={2: 1, 4: 1}, tokens_in={("model", "x"): 9}))
    assert (both.sessions, both.unchanged, both.hits) == (3, 7.5, {1: 9, 2: 8, 4: 1})
    assert both.spent("model")["x"] == {"input": 10, "output": 3, "cost": None}


def test_only_the_newest_days_and_the_worst_patterns_are_listed() -> None:
    days: dict[Where, int] = {("day", f"2026-11-{day:02}"): 1 for day in range(1, 15)}
    words = dict(Figures(tokens_in=days, failing={f"p{number}": 2 for number in range(7)}).in_words())
    assert [name for name in words if name.startswith("day")] == [
        f"day 2026-11-{day:02}" for day in range(14, 4, -1)
    ]
    assert [name for name in words if name.startswith("found")] == [
        f"found nothing: p{number}" for number in range(5)
    ]
