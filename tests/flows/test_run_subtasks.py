"""`tui-agent run` splits its work, runs the parts, and applies what they did; the answers come from a recording."""

from __future__ import annotations

import json
from pathlib import Path

from support.program import json_lines, of_type, run
from support.provider import Answer, Provider
from support.recordings import recorded
from support.repositories import git, repository

from tui_agent.errors import RequestRejected
from tui_agent.turn.request import GO_ON

PARTS = {"api": "Change the client", "docs": "Change the words"}
SPLIT = {
    "summary": "Two parts.",
    "subTasks": [
        {"id": name, "goal": goal, "files": [f"{name}.txt"], "autoExecute": True}
        for name, goal in PARTS.items()
    ],
}


def part(name: str) -> str:
    """What a sub-task does."""
    edit = {"path": f"{name}.txt", "edits": [{"search": "old", "replace": name}]}
    return json.dumps({"summary": f"Did {name}.", "fileChanges": [edit]})


def test_sub_tasks_run_and_come_together_without_a_screen(tmp_path: Path) -> None:
    work = repository(tmp_path / "a repository", {f"{name}.txt": "old\n" for name in PARTS})
    done_by = [(goal, part(name), "subtask") for name, goal in PARTS.items()]
    recording = recorded(tmp_path / "recording.jsonl", ("Change both", json.dumps(SPLIT)), *done_by)
    done = run(
        "run",
        "--json",
        "--apply",
        "all",
        "--replay",
        str(recording),
        "--set",
        "subtasks.begin=auto",
        "Change both",
        folder=work,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    lines = json_lines(done)
    told = [(line["id"], line["state"]) for line in of_type(lines, "subtask")]
    assert told[:2] == [("api", "ready"), ("docs", "ready")]
    assert set(told[2:]) == {(name, state) for name in PARTS for state in ("running", "completed")}
    assert [line["pass"] for line in of_type(lines, "request")] == ["main", "subtask", "subtask"]
    assert {line["summary"] for line in of_type(lines, "subtask")} == {None, "Did api.", "Did docs."}
    assert lines[-1]["usage"]["input"] == 300
    assert {line["reason"] for line in of_type(lines, "subtask")} == {None}
    assert {name: (work / f"{name}.txt").read_text() for name in PARTS} == {n: f"{n}\n" for n in PARTS}
    assert git(work, "status", "--porcelain").split() == ["M", "api.txt", "M", "docs.txt"]


def test_the_time_at_the_end_counts_the_sub_tasks_too(tmp_path: Path) -> None:
    work, slow = repository(tmp_path / "work", {f"{name}.txt": "old\n" for name in PARTS}), 1.0
    with Provider() as provider:
        provider.answer(json.dumps(SPLIT), *(Answer(part(name), delay=slow) for name in PARTS))
        done = run(
            *("run", "--json", "--model", "openai/test-model", "--set", "subtasks.begin=auto"),
            *("--set", "subtasks.max_parallel=1", "Change both"),
            folder=work,
            environment=provider.environment,
        )
    assert json_lines(done)[-1]["seconds"] > slow * len(PARTS), done.stdout


TWENTY = {
    "summary": "Twenty parts.",
    "subTasks": [{"id": f"p{n}", "goal": f"Part {n}", "autoExecute": True} for n in range(20)],
}
#: One request after the other for a file that is not there.
ENDLESS = {
    "summary": "Needs more.",
    "fileRequests": [{"type": "file", "name": "More", "patterns": ["nowhere.txt"]}],
    "todos": [{"text": "Go on"}],
}


def test_sub_tasks_and_their_requests_are_capped_and_the_caps_are_said(tmp_path: Path) -> None:
    work = repository(tmp_path / "a repository", {"a.txt": "old\n"})
    asked = [*(f"Part {n}" for n in range(8)), *[GO_ON] * 30]
    endless = [(ask, json.dumps(ENDLESS), "subtask") for ask in asked]
    recording = recorded(tmp_path / "recording.jsonl", ("Split it", json.dumps(TWENTY)), *endless)
    done = run(
        "run",
        "--json",
        "--replay",
        str(recording),
        "--set",
        "subtasks.begin=auto",
        "--set",
        "limits.requests=12",
        "--set",
        "max_steps=20",
        "Split it",
        folder=work,
    )
    lines = json_lines(done)
    # of three that run at once, two may have announced a request in the moment in which the last one went out
    assert 12 <= len(of_type(lines, "request")) <= 14
    assert {line["id"] for line in of_type(lines, "subtask")} == {f"p{n}" for n in range(8)}
    notices = [line["text"] for line in of_type(lines, "notice")]
    refused = [text for text in notices if "subtasks.max_per_turn" in text]
    assert len(refused) == 1 and all(f"p{n}" in refused[0] for n in range(8, 20)) and "p7" not in refused[0]
    assert done.returncode == 1 and lines[-1]["ok"] is False
    assert "sub-tasks are not done: p" in lines[-1]["error"] and "limits.requests" in lines[-1]["error"]
    said = [text for text in notices if "limits.requests" in text]
    assert 1 <= len(said) <= 2 and len(set(said)) == len(said)
    assert {
        line["state"] for line in of_type(lines, "subtask") if line["state"] not in ("ready", "running")
    } == {"failed"}
    assert {line["reason"] for line in of_type(lines, "subtask") if line["state"] == "failed"} == {"limit"}


def test_what_a_sub_task_came_to_is_said_in_words(tmp_path: Path) -> None:
    work = repository(tmp_path / "a repository", {f"{name}.txt": "old\n" for name in PARTS})
    recording = recorded(
        tmp_path / "recording.jsonl",
        ("Change both", json.dumps(SPLIT)),
        (PARTS["api"], part("api"), "subtask"),
        (PARTS["docs"], RequestRejected("The model declined", "ask for something else"), "subtask"),
    )
    done = run("run", "--replay", str(recording), "--set", "subtasks.begin=auto", "Change both", folder=work)
    assert "sub-task api completed: Did api.\n" in done.stdout
    failed = next(line for line in done.stdout.splitlines() if line.startswith("sub-task docs failed: "))
    assert "declined" in failed and done.returncode == 1
    assert "A sub-task is not done: docs (" in done.stderr


def test_a_turn_of_its_own_ends_at_the_limit_too(tmp_path: Path) -> None:
    work = repository(tmp_path / "a repository", {"a.txt": "old\n"})
    ask = "Look for more"
    asked = [(ask, '{"actions": []}', "plan"), *((one, json.dumps(ENDLESS)) for one in (ask, GO_ON, GO_ON))]
    recording = recorded(tmp_path / "recording.jsonl", *asked)
    done = run("run", "--json", "--replay", str(recording), "--set", "limits.requests=3", ask, folder=work)
    lines = json_lines(done)
    assert ([line["pass"] for line in of_type(lines, "request")], done.returncode) == (
        ["plan", "main", "main"],
        1,
    )
    assert "limits.requests" in lines[-1]["error"] and "continue" in lines[-1]["error"]
    assert sum("limits.requests" in line["text"] for line in of_type(lines, "notice")) == 1
