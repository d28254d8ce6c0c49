"""The JSON lines of `run --json`, from a real session to the text that a script reads."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

from support.sessions import open_session, reply
from support.trees import make_tree

from tui_agent.headless.event_lines import check_line
from tui_agent.headless.run import JsonReporter
from tui_agent.store.commands import CheckResult


async def test_a_file_that_changed_between_two_runs_is_told_as_stale(tmp_path: Path) -> None:
    work = make_tree(tmp_path / "work", {"api.py": "x = 1\n"})
    async with open_session(work, [reply()]) as session:
        await session.chat.submit("Look at api.py")
        await session.chat.finished()
        name = session.state.session.id
    (work / "api.py").write_text("x = 2\n")
    out = StringIO()
    async with open_session(work, [reply()], session=name, services=False) as session:
        teller = JsonReporter(out)
        session.subscribe(teller.on_event)
        await session.start_services()
        await session.chat.submit("Hello")
        await session.chat.finished()
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert lines[0]["type"] == "session"
    assert [line for line in lines if line["type"] == "stale"] == [
        {"type": "stale", "path": "api.py", "cause": "disk"}
    ]


async def test_a_command_is_told_when_it_starts_and_when_it_ended(tmp_path: Path) -> None:
    work = make_tree(tmp_path / "work", {"a.txt": "x\n"})
    out = StringIO()
    async with open_session(work, [reply()]) as session:
        session.subscribe(JsonReporter(out).on_event)
        await session.chat.submit("Hello")
        await session.chat.finished()
        await session.commands.run("cat a.txt; echo y > b.txt; exit 3")
        await session.commands.ended()
    told = [json.loads(line) for line in out.getvalue().splitlines()]
    begun, ended = (line for line in told if line["type"].startswith("command"))
    assert begun == {
        "type": "command",
        "id": "1",
        "command": "cat a.txt; echo y > b.txt; exit 3",
        "where": "trial",
        "isolated": "overlay",
    }
    assert ended.pop("seconds") >= 0
    assert "offline: only a loopback network is available" in ended.pop("view")
    assert ended == {
        "type": "command_result",
        "id": "1",
        "exit": 3,
        "changed": ["b.txt"],
        "output": "x\n",
        "cut": 0,
        "cause": None,
    }


def test_a_check_line_has_the_number_of_flaky_failures() -> None:
    line = check_line(CheckResult("a", "passed", new=0, old=0, flaky=("t.py::a",)), "passed")
    assert (line["new"], line["old"], line["flaky"]) == (0, 0, 1)
