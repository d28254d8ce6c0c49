"""`tui-agent run` splits its work, runs the parts through a provider on loopback, and applies what they did."""

from __future__ import annotations

import json
from pathlib import Path

from support.openai_wire import Answer
from support.program import json_lines, of_type, run
from support.provider import Provider, Request
from support.repositories import git, repository

PARTS = {"api": "Change the client", "docs": "Change the words"}
SPLIT = {
    "summary": "Two parts.",
    "subTasks": [
        {"id": name, "goal": goal, "files": [f"{name}.txt"], "autoExecute": True}
        for name, goal in PARTS.items()
    ],
}


def part(request: Request) -> Answer:
    """What the sub-task does that this request is about."""
    name = next(name for name, goal in PARTS.items() if f"<user_query>\n{goal}" in request.last_text)
    edit = {"path": f"{name}.txt", "edits": [{"search": "old", "replace": name}]}
    return Answer(json.dumps({"summary": f"Did {name}.", "fileChanges": [edit]}))


def test_sub_tasks_run_and_come_together_without_a_screen(tmp_path: Path) -> None:
    work = repository(tmp_path / "a repository", {f"{name}.txt": "old\n" for name in PARTS})
    with Provider() as provider:
        provider.answer(Answer(json.dumps(SPLIT)), part, part)
        done = run(
            "run", "--json", "--apply", "all", "--model", "openai/test-model", "--protocol", "structured",
            "--set", "autonomy=auto", "--planner-model", "none", "Change both",
            folder=work, environment=provider.environment,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr + done.stdout
        lines = json_lines(done)
        told = [(line["id"], line["state"]) for line in of_type(lines, "subtask")]
        assert told[:2] == [("api", "ready"), ("docs", "ready")]
        assert set(told[2:]) == {(name, state) for name in PARTS for state in ("running", "completed")}
        assert [line["pass"] for line in of_type(lines, "request")] == ["main", "subtask", "subtask"]
        assert {line["summary"] for line in of_type(lines, "subtask")} == {None, "Did api.", "Did docs."}
        assert lines[-1]["usage"]["input"] == 300
    assert {name: (work / f"{name}.txt").read_text() for name in PARTS} == {n: f"{n}\n" for n in PARTS}
    assert git(work, "status", "--porcelain").split() == ["M", "api.txt", "M", "docs.txt"]
