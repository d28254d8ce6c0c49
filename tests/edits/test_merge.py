"""Merging three ways: nothing lost where the sides do not touch, a conflict where they do."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tui_agent.edits.change import Change
from tui_agent.edits.merge import MergeResult, _both, merge
from tui_agent.errors import ChildFailed, EditFailed
from tui_agent.files.private import own_place

BASE = [f"line {number}\n" for number in range(20)]


def test_changes_apart_come_together() -> None:
    ours = "".join(["mine\n", *BASE[1:]])
    theirs = "".join([*BASE[:-1], "yours\n"])
    assert merge("".join(BASE), ours, theirs) == MergeResult("".join(["mine\n", *BASE[1:-1], "yours\n"]))


def test_the_same_line_is_a_conflict_that_shows_all_three() -> None:
    merged = merge("a\nb\nc\n", "a\nx\nc\n", "a\ny\nc\n")
    assert merged.conflicts == 1
    assert merged.text == "a\n<<<<<<< yours\nx\n||||||| base\nb\n=======\ny\n>>>>>>> theirs\nc\n"


@pytest.mark.parametrize("number", [126, 127, 128, 300])
def test_more_conflicts_than_git_can_count_are_a_merge_with_conflicts(number: int) -> None:
    """git's exit status is the number of conflicts, 127 at most, as is that of a program that is not there."""
    base, ours, theirs = (
        "".join(f"{who} {n}\n" + "same\n" * 4 for n in range(number)) for who in ("base", "ours", "theirs")
    )
    merged = merge(base, ours, theirs)
    assert merged.conflicts == min(number, 127)
    assert merged.text.count("<<<<<<< yours\n") == number


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "text"),
    [
        ("a", "a", "b", "b"),
        ("a", "b", "a", "b"),
        ("a", "b", "b", "b"),
        ("", "", "x", "x"),
        ("a\r\n", "a\r\n", "b\r\n", "b\r\n"),
    ],
)
def test_one_side_alone_needs_no_process(
    monkeypatch: pytest.MonkeyPatch, base: str, ours: str, theirs: str, text: str
) -> None:
    monkeypatch.setenv("PATH", "")
    assert merge(base, ours, theirs) == MergeResult(text)


EDIT = st.sampled_from(["keep", "drop", "change", "before", "after"])


def edited(choices: dict[int, str], who: str) -> tuple[str, set[str]]:
    lines: list[str] = []
    wrote: set[str] = set()
    for number, line in enumerate(BASE):
        choice = choices.get(number, "keep")
        mine = f"{who} {number}\n"
        if choice in ("change", "before", "after"):
            wrote.add(mine)
        lines.extend(
            {"keep": [line], "drop": [], "change": [mine], "before": [mine, line], "after": [line, mine]}[
                choice
            ]
        )
    return "".join(lines), wrote


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.integers(0, 9), EDIT), st.dictionaries(st.integers(12, 19), EDIT))
def test_no_line_is_lost_where_the_sides_do_not_touch(mine: dict[int, str], other: dict[int, str]) -> None:
    ours, our_lines = edited(mine, "ours")
    theirs, their_lines = edited(other, "theirs")
    merged = merge("".join(BASE), ours, theirs)
    assert merged.conflicts == 0
    assert our_lines | their_lines <= set(merged.text.splitlines(keepends=True))
    untouched = [line for n, line in enumerate(BASE) if mine.get(n) != "change" and other.get(n) != "change"]
    kept = [
        line
        for line in untouched
        if mine.get(BASE.index(line)) != "drop" and other.get(BASE.index(line)) != "drop"
    ]
    assert [line for line in merged.text.splitlines(keepends=True) if line in kept] == kept


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.integers(0, 19), EDIT), st.dictionaries(st.integers(0, 19), EDIT))
def test_what_a_side_wrote_is_merged_or_shown_in_a_conflict(
    mine: dict[int, str], other: dict[int, str]
) -> None:
    ours, our_lines = edited(mine, "ours")
    theirs, their_lines = edited(other, "theirs")
    merged = merge("".join(BASE), ours, theirs)
    assert our_lines | their_lines <= set(merged.text.splitlines(keepends=True))
    touched = [{n for n, choice in side.items() if choice != "keep"} for side in (mine, other)]
    if not any(abs(one - two) <= 1 for one in touched[0] for two in touched[1]):
        assert merged.conflicts == 0
    if any(mine.get(n) == other.get(n) == "change" for n in mine):
        assert merged.conflicts


@pytest.mark.parametrize(
    "text", ["é 😀\u2028\n", "a\r\nb\r\n", "a\x00b", "no newline", "<<<<<<< yours\n", "[red]\x1b[31m\n"]
)
def test_any_text_goes_through(text: str) -> None:
    base = "1\n2\n3\n4\n5\n"
    try:
        merged = merge(base + text, "0\n" + base + text, base + text + "6\n")
    except EditFailed:
        assert "\x00" in text
        return
    assert merged.text == "0\n" + base + text + "6\n" or merged.conflicts


def test_the_configuration_of_the_person_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    config.write_text("[merge]\nconflictStyle = merge\n[core]\nautocrlf = true\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    assert merge("a\nb\nc\n", "x\nb\nc\n", "a\nb\ny\n").conflicts == 0
    assert "||||||| base" in merge("a\n", "x\n", "y\n").text


def test_nothing_stays_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    merge("a\n", "x\n", "y\n")
    assert list(tmp_path.rglob("*")) == [Path(own_place())]


def test_without_git_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert shutil.which("git") is None
    with pytest.raises(ChildFailed, match="install git"):
        merge("a\n", "x\n", "y\n")


@pytest.mark.parametrize(
    ("before", "after", "both"),
    [
        ({"executable": True}, {}, {"executable": True}),
        ({"executable": True}, {"executable": False}, {"executable": False}),
        ({"todo": "a"}, {}, {"todo": "a"}),
        ({"todo": "a"}, {"todo": "b"}, {"todo": "b"}),
        ({"ask": "a"}, {"ask": "b"}, {"ask": "a"}),
        ({}, {"ask": "b"}, {"ask": "b"}),
        ({"rung": "exact"}, {"rung": "exact"}, {"rung": "exact"}),
        ({"rung": "exact"}, {"rung": "fuzzy"}, {"rung": ""}),
        ({"by_hand": True}, {}, {"by_hand": True}),
        ({"tasks": ("x", "y")}, {"tasks": ("y", "z")}, {"tasks": ("x", "y", "z")}),
    ],
)
def test_two_changes_of_a_file_are_one(before: dict, after: dict, both: dict) -> None:
    bare = Change("c1", 1, "a", "edit")
    assert _both(replace(bare, **before), replace(bare, **after)) == replace(bare, **both)
