"""Small deviations from a shape: certain ones are put right, others stay to be found by the check."""

from __future__ import annotations

from typing import Any

import pytest

from tui_agent.answers.schema import coerced
from tui_agent.answers.values import Reply, TodoItem

PART = {
    "type": "object",
    "properties": {
        "todoIndex": {"type": "integer"},
        "done": {"type": "boolean"},
        "text": {"type": "string"},
        "patterns": {"type": "array", "items": {"type": "string"}},
        "edits": {"type": "array", "items": {"type": "object", "properties": {"search": {"type": "string"}}}},
    },
}


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        ({"todoIndex": "3", "done": "true"}, {"todoIndex": 3, "done": True}),
        ({"todoIndex": 3.0}, {"todoIndex": 3}),
        ({"todo_index": 1}, {"todoIndex": 1}),
        ({"todo_index": 1, "todoIndex": 1}, {"todoIndex": 1}),
        ({"todo_index": 1, "todoIndex": 2}, {"todo_index": 1, "todoIndex": 2}),
        ({"text": None, "done": None}, {}),
        ({"patterns": "a.py"}, {"patterns": ["a.py"]}),
        ({"patterns": '["a.py", "b.py"]'}, {"patterns": ["a.py", "b.py"]}),
        ({"edits": {"search": "x"}}, {"edits": [{"search": "x"}]}),
        ({"edits": [None, {"search": "x"}]}, {"edits": [{"search": "x"}]}),
        ({"patterns": "[a-z]*.py"}, {"patterns": ["[a-z]*.py"]}),
        ({"text": '{"a": 1}'}, {"text": '{"a": 1}'}),
        ('{"text": "x"}', {"text": "x"}),
        (
            {"todoIndex": "three", "done": "maybe", "edits": 3},
            {"todoIndex": "three", "done": "maybe", "edits": 3},
        ),
        ({"unknown_key": 1}, {"unknown_key": 1}),
        (3, 3),
        ("{", "{"),
    ],
)
def test_what_certainly_means_the_shape_gets_it(value: Any, meant: Any) -> None:
    assert coerced(PART, value) == meant


def test_entries_of_a_reply_are_found_by_the_keys_of_the_wire() -> None:
    parts = {
        "todos": ("todos", (TodoItem("t"),)),
        "files": ("fileRequests", ("f",)),
        "directories": ("directoryRequests", ("d",)),
        "searches": ("searches", ("s",)),
        "sub_tasks": ("subTasks", ("u",)),
        "next_steps": ("nextSteps", ("n",)),
        "others": ("odd", ({"a": 1},)),
    }
    fields: dict[str, Any] = {
        name: {"odd": value} if name == "others" else value for name, (_, value) in parts.items()
    }
    whole = Reply(changes=("c",), refused=("r",), offered=("o",), **fields)  # ty: ignore[invalid-argument-type]
    for key, value in parts.values():
        assert whole.entries(key) == value
        assert Reply().entries(key) == ()
    assert whole.entries("fileChanges") == ("c", "r", "o")
