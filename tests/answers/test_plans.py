"""Plans as models write them: the contract, older forms, mistakes."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.answers import schema
from tui_agent.answers.plans import DirectoryAction, FileAction, Plan, read_plan

PLANNING = schema.load(Path(__file__).parents[2] / "config").planning
CONTRACT = """{"actions": [
  {"type": "file", "name": "Response schema", "patterns": ["src/r.ts", "**/r.ts", "**/*Schema.ts"],
   "reason": "Schema definition", "required": true, "fallbackAction": "ask_user"},
  {"type": "file", "name": "All rollback scripts", "patterns": ["docs/rollback/*"], "all": true, "required": true},
  {"type": "directory", "path": "src/prompts", "recursive": false, "filter": "*.ts"}
]}"""
READ = Plan(
    "model",
    (
        FileAction(
            "Response schema", ("src/r.ts", "**/r.ts", "**/*Schema.ts"), "Schema definition", by="model"
        ),
        FileAction("All rollback scripts", ("docs/rollback/*",), all=True, by="model"),
    ),
    (DirectoryAction("src/prompts", False, "*.ts"),),
)


@pytest.mark.parametrize("planning", [None, PLANNING])
@pytest.mark.parametrize(
    "text",
    [
        CONTRACT,
        f"```json\n{CONTRACT}\n```",
        f"The plan is {CONTRACT} as asked.",
        CONTRACT.replace("]}", "],}"),
    ],
)
def test_the_contract_is_read(text: str, planning: dict | None) -> None:
    assert read_plan(text, planning) == READ


@pytest.mark.parametrize("planning", [None, PLANNING])
def test_the_older_form_is_read(planning: dict | None) -> None:
    text = json.dumps(
        {"filesToLoad": [{"name": "A", "patterns": ["a.py"], "required": False}, {"pattern": "b.py"}]}
    )
    assert read_plan(text, planning).files == (
        FileAction("A", ("a.py",), required=False, fallback="skip", by="model"),
        FileAction("b.py", ("b.py",), required=False, fallback="skip", by="model"),
    )


def test_of_more_than_five_patterns_the_first_five_count() -> None:
    plan = read_plan(
        json.dumps({"actions": [{"type": "file", "name": "A", "patterns": list("abcdefg")}]}), PLANNING
    )
    assert plan.files[0].patterns == tuple("abcde")
    assert plan.faults == ("A has 7 patterns; the first 5 are used.",)


@pytest.mark.parametrize(
    ("required", "given_action", "fallback"),
    [
        (True, None, "ask_user"),
        (False, None, "skip"),
        (None, None, "skip"),
        (True, "create_new", "create_new"),
        (False, "ask_user", "ask_user"),
        (False, "explode", "skip"),
    ],
)
def test_the_fallback_follows_what_is_required(
    required: bool | None, given_action: str | None, fallback: str
) -> None:
    action = {
        "type": "file",
        "name": "A",
        "patterns": ["a"],
        "required": required,
        "fallbackAction": given_action,
    }
    for planning in (None, PLANNING):
        plan = read_plan(json.dumps({"actions": [action]}), planning)
        assert plan.files[0].fallback == fallback
        assert bool(plan.faults) == (given_action == "explode")


def test_one_bad_action_does_not_hide_the_others() -> None:
    text = json.dumps(
        {
            "actions": [
                3,
                {"type": "file", "name": "A"},
                {"type": "file", "patterns": ["b"]},
                {"type": "directory"},
            ]
        }
    )
    for planning in (None, PLANNING):
        plan = read_plan(text, planning)
        assert [action.name for action in plan.files] == ["b"]
        assert len(plan.faults) >= 2


def test_a_plan_that_was_cut_off_keeps_its_complete_actions() -> None:
    for end in range(CONTRACT.index("All rollback"), len(CONTRACT) - 1):
        plan = read_plan(CONTRACT[:end])
        assert plan.files == READ.files[: len(plan.files)]
        assert len(plan.files) >= 1


@pytest.mark.parametrize(
    "text",
    ["", "I need no files.", "{}", "[]", '{"actions": 3}', "{" * 100_000, '{"actions":' * 50_000],
    ids=count(),
)
def test_no_plan_is_an_empty_one_that_says_so(text: str) -> None:
    plan = read_plan(text)
    assert (plan.files, plan.directories) == ((), ())
    assert plan.faults


def test_nothing_needed_is_a_plan() -> None:
    assert read_plan('{"actions": []}', PLANNING) == Plan("model")


@given(st.text(max_size=100))
def test_nothing_raises(text: str) -> None:
    read_plan(text)
    read_plan('{"actions": [' + text + "]}")
