"""The attempts of `/best` side by side, with two agents that are scripts."""

from __future__ import annotations

import json
from pathlib import Path

from support.repositories import repository
from support.screens import Driven, on_screen

from tui_agent.session.session import Session
from tui_agent.ui.dialogs.subtasks import Attempts

CHECK = json.dumps([{"name": "no three", "command": "! grep -q three a.txt"}])


def profiles(session: Session, **scripts: str) -> None:
    folder = session.folders.config / "agent-programs"
    folder.mkdir(parents=True, exist_ok=True)
    for name, script in scripts.items():
        words = json.dumps(["-c", f"{script}; echo Done by {name}.", "x", "{prompt}"])
        (folder / f"{name}.toml").write_text(f'program = "/bin/sh"\nheadless = {words}\n')


async def begun(it: Driven, **scripts: str) -> None:
    profiles(it.session, **scripts)
    names = await it.session.subtasks.best([*scripts], "Add the number two")
    await it.session.subtasks.settled()
    tasks = it.session.state.subtasks.tasks
    assert [task.id for task in tasks] == [*names] and all(task.seconds for task in tasks)
    await it.press(*"/attempts", "enter")
    await it.until(lambda: isinstance(it.app.screen, Attempts) and "+" in it.text, "the attempts")


async def test_checks_sizes_and_a_file_of_each_are_beside_one_another_and_one_is_taken(
    tmp_path: Path,
) -> None:
    root = repository(tmp_path / "work", {"a.txt": "one\n", "b.txt": "b\n"})
    async with on_screen(root, overrides=(f"checks.commands={CHECK}",)) as it:
        await begun(
            it,
            good="echo two >> a.txt; rm b.txt",
            bad="echo three >> a.txt; printf '\\033[2J\\033]52;c;eA==\\a' > c.txt",
            broken="exit 3",
        )
        await it.shows("a.txt (1 of 3)")
        rows = it.text.splitlines()
        heads = next(row for row in rows if "best 1.1 good" in row)
        assert "best 1.2 bad" in heads and "best 1.3 broken" in heads
        checks = rows[rows.index(heads) + 1]
        assert (
            "checks passed" in checks
            and "no three failed" in checks
            and "failed" in checks.rpartition("│")[2]
        )
        sizes = rows[rows.index(heads) + 2]
        assert "2 files, +1 -1" in sizes and "2 files, +2 -0" in sizes
        assert any("+ two" in row and "+ three" in row for row in rows)
        await it.press("]")
        await it.shows("b.txt (2 of 3)")
        await it.shows("It does not change this file.")
        await it.press("]")
        await it.shows("c.txt (3 of 3)")
        assert "\x1b" not in it.text
        await it.press("right", "right", "enter")
        await it.shows("broken is failed: choose a completed attempt")
        await it.press("left", "left", "enter")
        await it.until(lambda: len(it.session.state.review.open) == 2, "the changes in the review")
        assert [change.path for change in it.session.state.review.open] == ["a.txt", "b.txt"]
    assert (root / "b.txt").exists()


async def test_a_narrow_terminal_shows_the_attempts_that_fit(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {"a.txt": "one\n"})
    async with on_screen(root, size=(80, 24)) as it:
        await begun(it, **{name: f"echo {name} >> a.txt" for name in ("first", "second", "third")})
        await it.shows("attempt 1 of 3")
        assert "best 1.2 second  " in it.text and "best 1.3 third  " not in it.text
        await it.press("right", "right")
        await it.shows("attempt 3 of 3")
        assert "best 1.3 third  " in it.text and "best 1.1 first  " not in it.text and "+ third" in it.text


async def test_without_attempts_the_command_says_how_they_begin(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {"a.txt": "one\n"})
    async with on_screen(root) as it:
        await it.press(*"/attempts", "enter")
        await it.shows("There are no attempts: /best claude codex GOAL")
