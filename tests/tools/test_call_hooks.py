"""Calls as hooks of another agent see them, and what a hook changes in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tui_agent.answers.plans import DirectoryAction, FileAction
from tui_agent.answers.values import ChangeRequest, EditHunk, SearchRequest, SubTaskRequest
from tui_agent.tools.call_hooks import HookedCall, hooked_calls, with_input

ROOT = Path("/work")
ONE = EditHunk("a", "b")
TWO = EditHunk("c", "d")
A, B = {"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d"}
X = {"file_path": "/work/x.py"}


@pytest.mark.parametrize(
    ("tool", "entry", "name", "fields"),
    [
        ("propose_changes", ChangeRequest("x.py", edits=(ONE,)), "Edit", {**X, **A}),
        ("propose_changes", ChangeRequest("x.py", diff=(ONE,)), "Edit", {**X, **A}),
        (
            "propose_changes",
            ChangeRequest("x.py", edits=(ONE, TWO)),
            "Edit",
            {**X, "old_string": "a\nc", "new_string": "b\nd", "edits": [A, B]},
        ),
        ("propose_changes", ChangeRequest("x.py", content=""), "Write", {**X, "content": ""}),
        ("propose_changes", ChangeRequest("x.py", delete=True), "Edit", {**X, "delete": True}),
        (
            "propose_changes",
            ChangeRequest("x.py", rename_to="y.py", edits=(ONE,)),
            "Edit",
            {**X, "rename_to": "/work/y.py", **A},
        ),
        (
            "propose_changes",
            ChangeRequest("x.py", edits=(ONE,), then=(ChangeRequest("x.py", content="n", diff=(TWO,)),)),
            "Edit",
            {
                **X,
                "old_string": "a\nc\n",
                "new_string": "b\nd\nn",
                "edits": [A, B, {"old_string": "", "new_string": "n"}],
            },
        ),
        ("read_files", FileAction("F", ("x.py", "y.py")), "Read", X),
        ("read_files", FileAction("x.py", ()), "Read", X),
        ("list_directory", DirectoryAction("docs"), "LS", {"path": "/work/docs"}),
        (
            "search_text",
            SearchRequest("p", "*.py"),
            "Grep",
            {"pattern": "p", "glob": "*.py", "path": "/work"},
        ),
        (
            "spawn_subtasks",
            SubTaskRequest("api", "Do it"),
            "Task",
            {"description": "api", "prompt": "Do it", "subagent_type": "general-purpose"},
        ),
        (
            "spawn_subtasks",
            SubTaskRequest("api", "Do it", agent="reviewer"),
            "Task",
            {"description": "api", "prompt": "Do it", "subagent_type": "reviewer"},
        ),
        (
            "run_command",
            {"command": "ls", "why": "look"},
            "Bash",
            {"command": "ls", "description": "look"},
        ),
        ("find_files", {"glob": "*.py"}, "Glob", {"pattern": "*.py"}),
        ("use_skill", {"name": "release"}, "Skill", {"skill": "release", "name": "release"}),
        ("fetch_page", {"url": "https://a.example"}, "WebFetch", {"url": "https://a.example"}),
        ("time__now", {"zone": "UTC"}, "mcp__time__now", {"zone": "UTC"}),
        (
            "call_tool",
            {"name": "time__now", "arguments": {"zone": "UTC"}},
            "mcp__time__now",
            {"zone": "UTC"},
        ),
        ("call_tool", {"name": "time__now", "arguments": "[1]"}, "mcp__time__now", {}),
        ("other", 7, "other", {"entry": "7"}),
    ],
)
def test_a_call_has_the_name_and_input_of_the_other_agent(
    tool: str, entry: Any, name: str, fields: dict[str, Any]
) -> None:
    own = "time__now" if tool == "call_tool" else tool
    assert list(hooked_calls(tool, (entry,), ROOT)) == [HookedCall(name, fields, own)]


@pytest.mark.parametrize(
    ("tool", "entry", "names"),
    [
        (
            "propose_changes",
            ChangeRequest("x.py", edits=(ONE, TWO)),
            ("Edit", "MultiEdit", "propose_changes"),
        ),
        ("propose_changes", ChangeRequest("x.py", edits=(ONE,)), ("Edit", "propose_changes")),
        ("spawn_subtasks", SubTaskRequest("api", "Do it"), ("Task", "Agent", "spawn_subtasks")),
    ],
)
def test_a_matcher_of_any_version_fits_a_call(tool: str, entry: Any, names: tuple[str, ...]) -> None:
    assert next(hooked_calls(tool, (entry,), ROOT)).names == names


def test_a_call_without_entries_is_seen_once() -> None:
    assert [call.input for call in hooked_calls("time__now", (), ROOT)] == [{}]


@pytest.mark.parametrize(
    ("tool", "entry", "after", "expected"),
    [
        (
            "propose_changes",
            ChangeRequest("x.py", content="old"),
            {**X, "content": "new"},
            ChangeRequest("x.py", content="new"),
        ),
        (
            "propose_changes",
            ChangeRequest("x.py", edits=(ONE,)),
            {**X, **B},
            ChangeRequest("x.py", edits=(TWO,)),
        ),
        ("run_command", {"command": "ls", "why": "w"}, {"command": "pwd"}, {"command": "pwd", "why": "w"}),
        ("fetch_page", {"url": "a", "from": 3}, {"url": "b"}, {"url": "b", "from": 3}),
        (
            "call_tool",
            {"name": "a__b", "arguments": {"x": 1}},
            {"x": 2},
            {"name": "a__b", "arguments": {"x": 2}},
        ),
        (
            "call_tool",
            {"name": "a__b", "arguments": '{"x": 1}'},
            {"x": 2},
            {"name": "a__b", "arguments": json.dumps({"x": 2})},
        ),
        ("a__b", {"x": 1}, {"x": 2}, {"x": 2}),
        # Inputs that the entry cannot have.
        ("propose_changes", ChangeRequest("x.py", content="old"), {"file_path": "/y", "content": "n"}, None),
        ("propose_changes", ChangeRequest("x.py", content="old"), {**X, "content": 3}, None),
        ("propose_changes", ChangeRequest("x.py", edits=(ONE, TWO)), {**X, **B}, None),
        ("propose_changes", ChangeRequest("x.py", edits=(ONE,)), {**X, **B, "new_string": 3}, None),
        ("propose_changes", ChangeRequest("x.py", edits=(ONE,)), {**X, **B, "old_string": 3}, None),
        ("run_command", {"command": "ls"}, {"command": 3}, None),
        ("fetch_page", {"url": "a"}, {"url": None}, None),
        ("find_files", {"glob": "*"}, {"pattern": "x"}, None),
        ("search_text", SearchRequest("p"), {"pattern": "x"}, None),
    ],
)
def test_a_hook_changes_the_input_of_a_call_or_is_refused(
    tool: str, entry: Any, after: dict[str, Any], expected: Any
) -> None:
    (call,) = hooked_calls(tool, (entry,), ROOT)
    if expected is None:
        with pytest.raises(ValueError, match="no changed input"):
            with_input(tool, entry, call.input, after)
    else:
        assert with_input(tool, entry, call.input, after) == expected
