"""The parts of a reply: collected, joined, offered, counted, and refused with a sentence."""

from __future__ import annotations

from typing import Any

import pytest
from support.shapes import RESPONSE

from tui_agent.answers import prose
from tui_agent.answers.lenient_json import unescaped
from tui_agent.answers.reply_builder import ReplyBuilder
from tui_agent.answers.values import ChangeRequest, Refusal

CHANGE = {"path": "a.py", "content": "x\n"}
DIFF = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-one\n+ONE\n"


def built(**parts: Any) -> ReplyBuilder:
    builder = ReplyBuilder(RESPONSE)
    for key, value in parts.items():
        builder.take(key, value)
    return builder


@pytest.mark.parametrize(
    ("parts", "count"),
    [
        ({}, 0),
        ({"todos": []}, 1),
        ({"todos": [{"text": "One"}, {"text": "Two"}]}, 3),
        ({"fileChanges": [CHANGE, {**CHANGE, "path": "b.py"}]}, 2),
        ({"fileRequests": [{"name": "A", "patterns": ["a.py"]}], "directoryRequests": [{"path": "."}]}, 2),
        ({"searches": [{"pattern": "x"}]}, 1),
        ({"subTasks": [{"id": "a", "goal": "Do"}]}, 1),
        ({"nextSteps": [{"html": "Go", "inputText": "go"}]}, 1),
        ({"commands": [{"command": "ls"}, {"command": "pwd"}]}, 2),
    ],
)
def test_every_part_is_counted_and_joined(parts: dict[str, Any], count: int) -> None:
    one = built(**parts)
    assert (one.count, one.faults) == (count, [])
    both = built(**parts)
    both.add(one)
    assert both.count == (count if "fileRequests" in parts else 2 * count - ("todos" in parts)), (
        "plans are joined"
    )
    into = ReplyBuilder(RESPONSE)
    into.add(one)
    assert into.count == count


def test_an_unknown_list_is_extended_by_each_call() -> None:
    builder = ReplyBuilder(RESPONSE)
    builder.take("commands", [{"command": "ls"}])
    builder.take("commands", [{"command": "pwd"}])
    assert [entry["command"] for entry in builder.others["commands"]] == ["ls", "pwd"]
    builder.take_one("searches", {"pattern": "x"}, "search_text")
    builder.take_one("probes", {"n": 1}, "probe")
    builder.take_one("probes", {"n": 2}, "probe")
    assert [one.pattern for one in builder.searches] == ["x"]
    assert builder.others["probes"] == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("text", "todos: a list is expected here."),
        ([3], "todos"),
        ([{"done": True}], "todos"),
    ],
)
def test_an_unusable_part_is_a_fault(value: Any, fault: str) -> None:
    builder = built(todos=value)
    assert len(builder.faults) == 1 and fault in builder.faults[0]
    assert built(todos=None).faults == []


def test_a_key_that_changes_the_meaning_refuses_the_changes() -> None:
    builder = ReplyBuilder(RESPONSE)
    builder.take("fileChanges", [CHANGE], but=["dryRun"])
    assert builder.changes == [] and [one.path for one in builder.refused] == ["a.py"]
    assert builder.faults[0] == "fileChanges: `dryRun` is not known here, and nothing of it is done."
    builder = ReplyBuilder(RESPONSE)
    builder.take("fileChanges", [CHANGE], but=["a", "b"])
    assert "`a`, `b` are not known here" in builder.faults[0]


@pytest.mark.parametrize(
    ("parts", "refused", "faults"),
    [
        ({"fileChanges": [CHANGE]}, False, 0),
        ({"fileChanges": [CHANGE]}, True, 0),
        ({"fileChanges": [CHANGE], "searches": [{"pattern": "x"}]}, False, 1),
        ({"searches": [{"pattern": "x"}]}, False, 1),
        ({}, True, 1),
        ({}, False, 0),
    ],
)
def test_an_example_is_offered_and_the_rest_of_it_is_a_fault(
    parts: dict[str, Any], refused: bool, faults: int
) -> None:
    example, builder = built(**parts), ReplyBuilder(RESPONSE)
    if refused:
        example.refused.append(Refusal("b.py", "it cannot be read"))
    builder.offer(example, "it is an example")
    assert [one.offered for one in builder.offered] == ["it is an example"] * len(
        parts.get("fileChanges", ())
    )
    assert builder.faults == ["It is an example: it was not carried out."] * faults
    assert builder.count == 0


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("plain", "plain"),
        (r"a\nb\t\"c\" \u00e9", 'a\nb\t"c" é'),
        ("tab\there \\n", "tab\there \n"),
        (r"\d+ \u00e9 \n", "\\d+ é \n"),
        (r"\ud83d", "\ud83d"),
        (r"C:\new \q", "C:\new \\q"),
    ],
)
def test_escapes_are_decoded_and_unknown_ones_stay(raw: str, text: str) -> None:
    assert unescaped(raw) == text


@pytest.mark.parametrize(
    ("text", "cut", "paths", "told"),
    [
        (DIFF, False, ["a.py"], False),
        (DIFF + "\nThat is all.\n", True, ["a.py"], False),
        (DIFF, True, [], True),
        (DIFF + DIFF.replace("a.py", "b.py"), True, ["a.py"], True),
        (DIFF + DIFF.replace("a.py", "b.py"), False, ["a.py", "b.py"], False),
    ],
)
def test_the_last_file_of_a_cut_diff_is_discarded(text: str, cut: bool, paths: list[str], told: bool) -> None:
    found = prose.changes(text, cut)
    assert [change.path for change in found.changes if isinstance(change, ChangeRequest)] == paths
    assert any("was not finished" in fault for fault in found.faults) is told
