"""The checks of a folder: tried before they are accepted, kept for it, and run for the files that they are about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from session.test_checks import RIGHT, TEST, WRONG, until
from support.sessions import open_session, reply

from tui_agent.session.session import Session
from tui_agent.settings.folders import user_folders
from tui_agent.settings.schema import CheckCommand

README = {"path": "README.md", "content": "# a\n"}


def settings(*named: dict[str, Any], more: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"overrides": (f"checks.commands={json.dumps(named)}", "checks.repairs=0", *more)}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.py").write_text("def f():\n    return 1\n")
    return root


async def asked(session: Session) -> list[str]:
    """Send a message; the marks of the checks then."""
    await session.chat.submit("make it 2")
    await session.chat.finished()
    return [mark.words.rpartition(" ")[0].rpartition(" ")[0] for mark in session.state.check_marks]


def ran(session: Session) -> list[str]:
    return [result.command for result in session.state.commands.results]


async def test_a_check_runs_only_where_a_file_that_it_names_changed(root: Path) -> None:
    suite = {"name": "suite", "command": "true", "files": ["*.py", "!docs/*"]}
    tests = {"name": "tests", "command": "true", "files": ["!*.md"]}
    replies = [reply("It.", fileChanges=[README]), reply("It.", fileChanges=[RIGHT])]
    async with open_session(root, replies, **settings(suite, tests)) as session:
        assert await asked(session) == []
        assert not session.state.commands.results
        assert await session.checks.all_unconcerned()
        await session.review.apply()
        assert await asked(session) == ["✓ suite", "✓ tests"]


async def test_a_slow_check_waits_for_the_key(root: Path) -> None:
    slow = {"name": "slow", "command": TEST, "slow": True}
    async with open_session(
        root, [reply("It.", fileChanges=[WRONG])], **settings(slow, {"name": "fast", "command": "true"})
    ) as session:
        assert await asked(session) == ["✓ fast"]
        await session.checks.again()
        await session.checks.settled()
        assert [mark.look for mark in session.state.check_marks] == ["failed", "passed"]


@pytest.mark.parametrize("value", [2, 3])
async def test_what_applies_itself_waits_for_slow_checks(root: Path, value: int) -> None:
    change = {"path": "a.py", "edits": [{"search": "return 1", "replace": f"return {value}"}]}
    slow = {"name": "slow", "command": TEST, "slow": True}
    fast = {"name": "fast", "command": "true"}
    auto = ("mode=auto",)
    async with open_session(
        root, [reply("It.", fileChanges=[change])], **settings(slow, fast, more=auto)
    ) as session:
        await asked(session)
        assert ran(session)[:2] == ["true", TEST]  # the fast one has not run again
        assert bool(session.state.review.open) == (value == 3)
    assert (root / "a.py").read_text().endswith(f"return {2 if value == 2 else 1}\n")


async def test_each_has_a_time_limit_of_its_own(root: Path) -> None:
    named = {"name": "long", "command": "sleep 60", "timeout": 1}
    async with open_session(root, [reply("It.", fileChanges=[RIGHT])], **settings(named)) as session:
        await asked(session)
        (result,) = session.state.commands.results
        assert result.how == "time-out"


async def test_fast_ones_run_first(root: Path) -> None:
    names = [{"name": name, "command": f": {name}"} for name in ("long", "unknown", "short")]
    kept = {
        f": {name}": {"tree": "", "finding": {"ok": True}, "seconds": seconds}
        for name, seconds in (("long", 30), ("short", 0.1))
    }
    data = user_folders().data
    data.mkdir(parents=True, exist_ok=True)
    (data / "baselines.json").write_text(json.dumps({str(root): kept}))
    async with open_session(root, [reply("It.", fileChanges=[RIGHT])], **settings(*names)) as session:
        await asked(session)
        assert ran(session) == [": unknown", ": short", ": long"]


async def test_checks_are_kept_for_each_folder_beside_those_for_all(root: Path) -> None:
    async with open_session(root, **settings({"name": "all", "command": "true"})) as session:
        await session.checks.accept(
            [
                CheckCommand("here", "exit 1", files=("*.py",), timeout=5.0, slow=True),
                CheckCommand("all", "exit 2"),
            ]
        )
    async with open_session(root, **settings({"name": "all", "command": "true"})) as session:
        assert [(check.name, check.command, check.slow) for check in session.checks.chosen()] == [
            ("all", "true", False),
            ("here", "exit 1", True),
        ]
    other = root.parent / "other"
    other.mkdir()
    async with open_session(other) as session:
        assert session.checks.chosen() == []


async def test_what_0_1_0_has_kept_is_read(root: Path) -> None:
    data = user_folders().data
    data.mkdir(parents=True, exist_ok=True)
    kept = [{"name": "tests", "command": "true", "when": "proposed", "files": ["*.py"]}]
    (data / "checks.json").write_text(json.dumps({str(root): kept}))
    async with open_session(root, interactive=True) as session:
        assert session.checks.chosen() == [CheckCommand("tests", "true", files=("*.py",))]
        assert not session.state.checks.offered


async def test_trying_a_check_says_what_it_finds_and_gives_its_baseline(root: Path) -> None:
    fails = f"echo 'FAILED a.py::old - x'; echo '1 failed, 2 passed in 0.01s'; {TEST}; exit 1"
    # its middle is not shown
    long = f"seq 9999; echo '  2 passing (9ms)'; echo '  3 failing'; seq 9999; {TEST}; exit 3"
    async with open_session(root, [reply("It.", fileChanges=[RIGHT])], interactive=True) as session:
        assert not session.state.commands.results
        words = [
            (await session.checks.attempt(CheckCommand("a", command, timeout=limit))).words
            for command, limit in (
                ("true", None),
                (fails, None),
                ("nowhere-to-be-found", None),
                ("sleep 60", 1.0),
                (long, None),
            )
        ]
        assert words[0].startswith("✓ ")
        assert words[1].startswith("✗ 1 fails already · ")
        assert words[2].startswith("program missing")
        assert words[3].startswith("not finished in 1 s")
        assert words[4].startswith("✗ 3 fail already · ")
        await session.checks.accept([CheckCommand("old", fails)])
        before = len(ran(session))
        await session.chat.submit("make it 2")
        await session.chat.finished()
        assert ran(session)[before:] == [fails]
        assert session.state.check_marks[0].words == "✓ old no new failures (1 old)"


async def test_what_is_accepted_untried_is_found_out_in_the_background_at_a_low_priority(root: Path) -> None:
    async with open_session(root, [reply("It.", fileChanges=[RIGHT])]) as session:
        await session.checks.accept(
            [CheckCommand("a", "nice; echo $PYTEST_ADDOPTS; exit 1"), CheckCommand("slow", "true", slow=True)]
        )
        await until(session, lambda: session.state.commands.results)
        (first,) = session.state.commands.results
        assert first.output.split() == ["19", "--junitxml=.tui-agent-report.xml", "--maxfail=0"]
        await until(session, lambda: not session.state.commands.running)
        await session.chat.submit("make it 2")
        await session.chat.finished()
        assert session.state.check_marks[0].words.startswith("✓ a no new failures")
        assert ran(session) == ["nice; echo $PYTEST_ADDOPTS; exit 1"] * 2
