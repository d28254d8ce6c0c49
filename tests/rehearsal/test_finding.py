"""The requests of the rehearsal, with the planner and the chain that are really used."""

from __future__ import annotations

import pytest
from support.rehearsal_scenes import (
    BATCH_REQUEST,
    CONFLICT_REQUEST,
    GOING_ON_REQUEST,
    SECOND_REQUEST,
    STALE_REQUEST,
    SUB_TASKS_REQUEST,
    UNDO_REQUEST,
)

from tui_agent.planning.built_in_planner import read_words
from tui_agent.planning.chain import Attempt, try_patterns
from tui_agent.rehearsal import FIRST_REQUEST, FOLDER
from tui_agent.workspace.index import Index


def index() -> Index:
    project = FOLDER / "project"
    return Index(path.relative_to(project).as_posix() for path in project.rglob("*") if path.is_file())


async def attempts(request: str) -> dict[str, list[Attempt]]:
    """What ended, by action."""
    tried = {}
    for action in read_words(request, index()).plan.files:
        tried[action.name] = [
            attempt async for attempt in try_patterns(action, index()) if attempt.outcome != "looking"
        ]
    return tried


async def test_the_first_request_finds_a_file_at_the_first_the_second_and_the_third_pattern() -> None:
    tried = await attempts(FIRST_REQUEST)
    assert [[attempt.outcome for attempt in each] for each in tried.values()] == [
        ["hit"],
        ["miss", "miss", "hit"],
        ["miss", "hit"],
    ]
    assert [each[-1].paths for each in tried.values()] == [
        ("shop/settings.py",),
        ("shop/clients/orders_v2.py",),
        ("shop/clients/payments.py",),
    ]


async def test_the_second_request_needs_one_file_and_finds_it() -> None:
    tried = await attempts(SECOND_REQUEST)
    assert [[attempt.paths for attempt in each] for each in tried.values()] == [[("shop/retry.py",)]]


def test_neither_request_asks_for_a_listing() -> None:
    plans = [read_words(request, index()).plan for request in (FIRST_REQUEST, SECOND_REQUEST)]
    assert [plan.directories for plan in plans] == [(), ()]


async def test_all_files_in_docs_are_one_action() -> None:
    tried = await attempts(BATCH_REQUEST)
    assert [(name, [attempt.matches for attempt in each]) for name, each in tried.items()] == [
        ("All files in docs/", [3])
    ]
    assert [action.all for action in read_words(BATCH_REQUEST, index()).plan.files] == [True]


@pytest.mark.parametrize(
    ("request_", "paths"),
    [
        (STALE_REQUEST, ["shop/retry.py"]),
        (GOING_ON_REQUEST, []),
        (CONFLICT_REQUEST, ["shop/settings.py"]),
        (UNDO_REQUEST, []),
        (SUB_TASKS_REQUEST, ["shop/models.py", "shop/clients/orders_v2.py", "shop/cli.py"]),
    ],
)
async def test_the_later_requests_find_just_the_files_that_are_meant(request_: str, paths: list[str]) -> None:
    tried = await attempts(request_)
    assert [attempt.paths for each in tried.values() for attempt in each] == [(path,) for path in paths]
    assert read_words(request_, index()).plan.directories == ()
