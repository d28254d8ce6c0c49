"""Commands of the model through the whole program, without a screen: run in a view, or denied."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.program import json_lines, of_type, run
from support.recordings import recorded
from support.sessions import calls, in_pieces

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
        assert any("nobody can be asked" in line["text"] for line in of_type(lines, "notice"))
    assert sorted(path.name for path in work.iterdir()) == ["a.py"]
    assert (work / "a.py").read_text() == "print(1)\n"
