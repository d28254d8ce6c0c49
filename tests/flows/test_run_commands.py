"""Commands of the model, and checks, through the whole program without a screen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.program import json_lines, of_type, run
from support.recordings import recorded
from support.sessions import calls, in_pieces

from tui_agent.turn.continuation import repair_request

CHANGE = {"path": "a.py", "edits": [{"search": "print(1)", "replace": "print(2)"}]}
COMMAND = {"command": "cat a.py; echo x > new.txt"}


@pytest.mark.parametrize(("ask", "status"), [("outside", 0), ("always", 1)])
def test_it_runs_in_a_view_or_is_denied_where_nobody_can_be_asked(
    tmp_path: Path, ask: str, status: int
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.py").write_text("print(1)\n")
    said = [
        calls(("read_files", {"actions": [{"name": "A", "patterns": ["a.py"]}]})),
        calls(("propose_changes", {"changes": [CHANGE]}), ("run_command", COMMAND)),
        in_pieces("Done."),
    ]
    recording = recorded(tmp_path / "r.jsonl", *(("Change it", one) for one in said), protocol="tools")
    done = run(
        *("run", "--json", "--set", f"commands.ask={ask}", "--replay", str(recording), "Change it"),
        folder=work,
    )
    lines = json_lines(done)
    assert done.returncode == status, done.stderr
    results = [(line["exit"], line["output"], line["changed"]) for line in of_type(lines, "command_result")]
    assert results == ([(0, "print(2)\n", ["new.txt"])] if ask == "outside" else [])
    assert [(one["name"], one["ok"]) for one in of_type(lines, "tool")][-1] == (
        "run_command",
        ask == "outside",
    )
    if ask == "always":
        assert any("confirmation is not possible" in line["text"] for line in of_type(lines, "notice"))
    assert sorted(path.name for path in work.iterdir()) == ["a.py"]
    assert (work / "a.py").read_text() == "print(1)\n"


WRONG = {"path": "a.py", "edits": [{"search": "print(1)", "replace": "print(3)"}]}
CHECKS = json.dumps([{"name": "prints", "command": "python3 a.py | grep '[12]'", "files": ["*.py"]}])


@pytest.mark.parametrize(
    ("options", "status", "written", "states"),
    [
        (("--apply", "checked"), 0, "print(2)\n", [("failed", 0), ("passed", 1)]),
        (("--apply", "checked", "--set", "checks.repairs=0"), 1, "print(1)\n", [("failed", 0)]),
        (("--apply", "all", "--set", "checks.repairs=0"), 1, "print(3)\n", [("failed", 0)]),
        (("--apply", "all", "--checks", "none"), 0, "print(3)\n", []),
        (("--apply", "checked", "--set", "checks.run=none"), 1, "print(1)\n", []),
        (("--apply", "checked", "--set", "checks.commands=[]"), 1, "print(1)\n", []),
    ],
)
def test_what_is_proposed_is_checked_and_written_as_was_asked(
    tmp_path: Path, options: tuple[str, ...], status: int, written: str, states: list[tuple[str, int]]
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.py").write_text("print(1)\n")
    (work / "test_a.py").write_text("import pytest\n")  # found, and not run where nobody accepts it
    said = [json.dumps({"summary": "It.", "fileChanges": [change]}) for change in (WRONG, CHANGE)]
    again = repair_request(["prints"], ["a.py"])
    recording = recorded(tmp_path / "r.jsonl", ("Print 2 in a.py", said[0]), (again, said[1]))
    settings = ("--set", f"checks.commands={CHECKS}", "--set", "planner_model=none")
    done = run(
        "run", "--json", *settings, *options, "--replay", str(recording), "Print 2 in a.py", folder=work
    )
    lines = json_lines(done)
    assert done.returncode == status, done.stderr
    checks = of_type(lines, "check")
    assert [(line["state"], line["repair"]) for line in checks] == states
    assert all(line["name"] == "prints" and line["passed"] is None and line["seconds"] > 0 for line in checks)
    assert (work / "a.py").read_text() == written
    assert sorted(path.name for path in work.iterdir()) == ["a.py", "test_a.py"]
    # one that fails runs on the folder as it is, too, and then a second time
    ran = sum({"passed": 1, "failed": 3}[state] for state, _ in states)
    assert len(of_type(lines, "command_result")) == ran
    if status:
        assert any(word in lines[-1]["error"] for word in ("prints: failed", "there are no checks"))


def test_a_change_that_finds_no_place_is_not_blamed_on_missing_checks(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.py").write_text("print(1)\n")
    lost = {"path": "a.py", "edits": [{"search": "nothing like this", "replace": "print(2)"}]}
    said = [json.dumps({"summary": "It.", "fileChanges": [lost]})] * 2
    recording = recorded(tmp_path / "r.jsonl", *(("", one) for one in said))
    settings = ("--set", f"checks.commands={CHECKS}", "--set", "planner_model=none")
    done = run(
        *("run", "--json", "--apply", "checked", *settings, "--replay", str(recording), "Print 2 in a.py"),
        folder=work,
    )
    error = json_lines(done)[-1]["error"]
    assert done.returncode == 1 and "a.py" in error and "no checks" not in error
