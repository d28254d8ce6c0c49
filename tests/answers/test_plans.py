"""Plans as models write them: the contract, older forms, mistakes."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tui_agent.answers.plans import (
    DirectoryAction,
    FileAction,
    Plan,
    in_words,
    ranges_in,
    read_plan,
    read_range,
    within,
)

PLANNING = json.loads((Path(__file__).parents[2] / "config/planning-schema.json").read_text())
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


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("120-180", (120, 180)),
        (" L12-L18 ", (12, 18)),
        ("12..18", (12, 18)),
        ("12 to 18", (12, 18)),
        ("12,18", (12, 18)),
        ("7", (7, 7)),
        (7, (7, 7)),
        ("0", (1, 1)),
        ("0-0", (1, 1)),
        ("9-3", (9, 9)),
        (True, None),
        (1.5, None),
        (None, None),
        ("", None),
        ("12-18-20", None),
        ("all", None),
        (-3, None),
    ],
)
def test_a_range_of_lines_is_read(written: object, found: tuple[int, int] | None) -> None:
    assert read_range(written) == found


@pytest.mark.parametrize(
    ("words", "ranges"),
    [
        ("see line 12", ((12, 12),)),
        ("Lines 12 to 20 and big.py:40-44", ((12, 20), (40, 44))),
        ("LINES 3 until 5, src/big.py:7", ((3, 5), (7, 7))),
        ("other-big.py:7 is not it", ()),
        ("in 12 lines", ()),
        ("bigxpy:7", ()),
    ],
)
def test_lines_that_a_request_names(words: str, ranges: tuple[tuple[int, int], ...]) -> None:
    assert ranges_in(words, "big.py") == ranges


@pytest.mark.parametrize(
    ("ranges", "merged", "words"),
    [
        ([], (), ""),
        ([(5, 9), (1, 4), (20, 99)], ((1, 9), (20, 30)), "1-9, 20-30"),
        ([(1, 4), (6, 9)], ((1, 4), (6, 9)), "1-4, 6-9"),
        ([(3, 20), (5, 6)], ((3, 20),), "3-20"),
        ([(-5, 1), (30, 30), (31, 40)], ((1, 1), (30, 30)), "1, 30"),
        ([(9, 8)], (), ""),
    ],
)
def test_ranges_are_merged_and_end_with_the_file(
    ranges: list[tuple[int, int]], merged: tuple[tuple[int, int], ...], words: str
) -> None:
    assert within(ranges, 30) == merged
    assert in_words(merged) == words


@pytest.mark.parametrize(
    ("action", "read", "faults"),
    [
        ({"patterns": ["a.py", " a.py ", "", 3]}, FileAction("a.py", ("a.py",), required=False), []),
        (
            {"pattern": "a.py", "required": True, "fallbackAction": "skip"},
            FileAction("a.py", ("a.py",), fallback="skip"),
            [],
        ),
        (
            {"patterns": ["a.py"], "lines": [10, 20]},
            FileAction("a.py", ("a.py",), required=False, lines=((10, 20),)),
            [],
        ),
        (
            {"patterns": ["a.py"], "lines": [10, 20, 30]},
            FileAction("a.py", ("a.py",), required=False, lines=((10, 10), (20, 20), (30, 30))),
            [],
        ),
        (
            {"patterns": ["a.py"], "lines": "3-4,9"},
            FileAction("a.py", ("a.py",), required=False, lines=((3, 4), (9, 9))),
            [],
        ),
        (
            {"patterns": ["a.py"], "lines": ["3", "x"], "all": True},
            FileAction("a.py", ("a.py",), required=False, all=True, lines=((3, 3),)),
            ["a.py has lines that are not a range such as 120-180: they are skipped."],
        ),
        (
            {"name": "N", "patterns": list("abcdef"), "reason": "r"},
            FileAction("N", tuple("abcde"), "r", required=False),
            ["N has 6 patterns; the first 5 are used."],
        ),
        (
            {"patterns": ["a.py"], "fallbackAction": "stop", "required": True},
            FileAction("a.py", ("a.py",)),
            ["a.py has an unknown fallbackAction 'stop'; ask_user is used."],
        ),
    ],
)
def test_each_field_of_an_action_is_read(
    action: dict[str, object], read: FileAction, faults: list[str]
) -> None:
    plan = read_plan(json.dumps({"actions": [action]}))
    fallback = read.fallback if read.required or "fallbackAction" in action else "skip"
    assert plan.files == (replace(read, by="model", fallback=fallback),)
    assert list(plan.faults) == faults
