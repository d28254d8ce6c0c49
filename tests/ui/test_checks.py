"""Checks on the screen: beside the proposal, with links to what failed; applying what failed takes the key twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.screens import on_screen
from support.sessions import reply

from tui_agent.ui.panes.review import ReviewPane
from tui_agent.ui.widgets.messages import PlaceLink

WRONG = {"path": "a.py", "edits": [{"search": "return 1", "replace": "return 3"}]}
#: Prints as ruff does, with the place of what it finds.
LINT = (
    "grep -q 'return 3' a.py || exit 0; "
    "grep -n 'return 3' a.py | sed 's/^\\([0-9]*\\):.*/a.py:\\1:5: three/'; echo 'Found 1 error.'; exit 1"
)


def checks(*commands: tuple[str, str]) -> dict[str, Any]:
    named = [{"name": name, "command": command} for name, command in commands]
    return {"overrides": (f"checks.commands={json.dumps(named)}", "checks.repairs=0")}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.py").write_text("def f():\n    return 1\n")
    return work


async def test_what_failed_is_beside_the_proposal_and_said_before_all_is_applied(work: Path) -> None:
    async with on_screen(work, [reply("It.", fileChanges=[WRONG])], **checks(("ruff", LINT))) as it:
        await it.press(*"change f in a.py", "enter")
        await it.until(lambda: it.text.count("✗ ruff 1") == 3, "in the title, the chat and the status line")
        title = str(it.one(ReviewPane).title_text)
        assert title == "Review ●1 ✗ ruff 1 failure · a.py · change 1 of 1"
        it.one(PlaceLink).focus()
        await it.press("enter")
        await it.until(
            lambda: (buffer := it.session.state.buffers.get("a.py")) and buffer.cursor[0] == 1, "the line"
        )
        await it.press("f8")
        await it.shows("ruff: failed. F8 again applies anyway")
        assert "Review ●1 · F8 again applies anyway ✗" in str(it.one(ReviewPane).title_text)
        assert (work / "a.py").read_text() == "def f():\n    return 1\n"
        await it.press("f8")
        await it.until(lambda: (work / "a.py").read_text() == "def f():\n    return 3\n", "applied")
        await it.until(lambda: "✗ ruff" not in str(it.one(ReviewPane).title_text), "nothing is pending")


async def test_a_hunk_that_is_skipped_makes_it_stale_and_a_key_runs_it_again(work: Path) -> None:
    both = [WRONG, {"path": "b.py", "content": "b = 1\n"}]
    async with on_screen(work, [reply("It.", fileChanges=both)], **checks(("lists", "ls"))) as it:
        await it.press(*"change f in a.py", "enter")
        await it.until(lambda: "✓ lists" in str(it.one(ReviewPane).title_text), "passed")
        await it.press("f5", "s")
        await it.until(lambda: "≠ lists stale" in str(it.one(ReviewPane).title_text), "stale")
        assert "✓ lists" not in it.text.splitlines()[-1]
        await it.press("ctrl+o", "V")
        await it.until(lambda: "✓ lists" in str(it.one(ReviewPane).title_text), "passed again")


async def test_found_checks_are_offered_and_accepted_by_key(work: Path) -> None:
    (work / "test_a.py").write_text("import unittest\n")
    async with on_screen(work, interactive=True) as it:
        await it.shows("Checks found: unittest · Ctrl+O A runs them")
        await it.press("ctrl+o", "A")
        await it.shows("unittest: python -m unittest discover -q")
        await it.press("enter")
        await it.until(lambda: not it.session.state.checks.offered, "accepted")
        await it.until(lambda: "Checks found" not in it.text, "no offer any more")
        assert it.session.checks.names() == ["unittest"]


async def test_found_checks_are_tried_edited_and_chosen_one_by_one(work: Path) -> None:
    (work / "Makefile").write_text("test:\n\t./run\n")
    (work / "run").write_text("#!/bin/sh\necho 'FAILED a.py::x - y'\necho '2 failed in 0.1s'\nexit 1\n")
    (work / "run").chmod(0o755)
    (work / ".golangci.yml").write_text("")
    (work / "go.mod").write_text("")
    (work / "go.work").write_text("use (\n\t./a\n)\n")
    async with on_screen(work, interactive=True, size=(80, 24)) as it:
        await it.press("ctrl+o", "A")
        await it.shows("[x] golangci-lint: golangci-lint run")
        await it.press("home", "e", "ctrl+a", "ctrl+k", *"make test", "enter")
        await it.shows("[x] go: make test")
        await it.press("n", *"true", "enter")
        await it.shows("[x] true: true")
        assert not it.session.state.commands.results  # nothing of a project runs before the key
        await it.press("t")
        await it.shows("✗ 2 fail already")
        await it.shows("[ ] golangci-lint: golangci-lint run")
        assert "program missing" in it.text
        await it.until(lambda: "✓ 0." in it.text or "✓ 1 s" in it.text, "tried")
        await it.press("s")
        await it.shows("slow · ✓")
        await it.press("enter")
        await it.until(lambda: not it.session.state.checks.offered, "accepted")
        assert [(one.name, one.command, one.slow) for one in it.session.checks.chosen()] == [
            ("go", "make test", False),
            ("true", "true", True),
        ]
        await it.press("ctrl+o", "A")
        await it.shows("[ ] golangci-lint: golangci-lint run")  # it is found, and not accepted
        assert "[x] go: make test" in it.text
        await it.press("escape")


async def test_what_is_tried_ends_by_a_key_and_none_is_an_answer(work: Path) -> None:
    (work / "Makefile").write_text("test:\n\tsleep 60\n")
    async with on_screen(work, interactive=True) as it:
        await it.press("ctrl+o", "A")
        await it.shows("[x] make: make test")
        await it.press("t")
        await it.until(lambda: it.session.state.commands.running, "it is tried")
        await it.press("escape")
        await it.until(lambda: not it.session.state.commands.running, "it has ended")
        await it.press("a", "enter")
        await it.until(lambda: not it.session.state.checks.offered, "declined")
    async with on_screen(work, interactive=True) as it:
        assert not it.session.state.checks.offered
        assert it.session.checks.names() == []


async def test_a_missing_program_is_said_and_needs_no_second_key(work: Path) -> None:
    named = checks(("lint", "no-such-linter"), ("lists", "ls"))
    async with on_screen(work, [reply("It.", fileChanges=[WRONG])], size=(240, 48), **named) as it:
        await it.press(*"change f in a.py", "enter")
        await it.until(lambda: it.text.count("✓ lists") == 3, "all are done")
        assert it.text.count("– lint program missing") == 3
        await it.press("f8")
        await it.until(lambda: (work / "a.py").read_text() == "def f():\n    return 3\n", "applied")


async def test_a_proposal_that_a_repair_replaced_is_not_said_to_be_skipped(work: Path) -> None:
    right = {"path": "a.py", "edits": [{"search": "return 1", "replace": "return 2"}]}
    answers = [reply("It.", fileChanges=[WRONG]), reply("Put right.", fileChanges=[right])]
    named = json.dumps([{"name": "ruff", "command": LINT}])
    async with on_screen(work, answers, overrides=(f"checks.commands={named}",)) as it:
        await it.press(*"change f in a.py", "enter")
        await it.shows("Put right.")
        await it.shows("1 replaced")
        assert "skipped" not in it.text
