"""Calls and replies as local models write them, as text: each is read in both dialects, or refused aloud."""

from __future__ import annotations

import time

import pytest
from support.local_replies import CALL, LATE, READ, REFUSED, REPLY, J
from support.shapes import FUNCTIONS, RESPONSE

from tui_agent.answers import thinking_tags
from tui_agent.answers.structured_reader import StructuredReader
from tui_agent.answers.text_calls import CallFilter, looks_like_a_change
from tui_agent.answers.tools_reader import ToolsReader
from tui_agent.answers.values import ChangeRequest, EditHunk, Ledger, Reply


def read(text: str, dialect: str, cut: bool = False, size: int = 7, seen: bool = False) -> Reply:
    tools, structured = ToolsReader(RESPONSE, FUNCTIONS), StructuredReader(RESPONSE, FUNCTIONS)
    reader = tools if dialect == "tools" else structured
    shown = "".join(
        delta.text
        for at in range(0, len(text), size)
        for delta in reader.feed(text[at : at + size])
        if delta.part == "message"
    )
    if "get(url" in text and not seen:
        assert "get(url" not in shown and "<" not in shown, "no call is shown as text while it comes"
    first = reader.finish(cut)
    assert reader.finish(cut) == first, "what was read once can be read again"
    return first


@pytest.mark.parametrize("dialect", ["tools", "structured"])
@pytest.mark.parametrize("form", READ)
def test_one_unmistakable_edit_is_read(form: str, dialect: str) -> None:
    reply = read(READ[form], dialect)
    assert reply.changes == (ChangeRequest("api.py", edits=(EditHunk("get(url)", "get(url, 5)"),)),)
    assert (reply.faults, reply.refused) == ((), ())
    assert not any(call.fault for call in reply.calls)
    assert "get(url" not in reply.message and "think" not in reply.message


@pytest.mark.parametrize("dialect", ["tools", "structured"])
@pytest.mark.parametrize("form", REFUSED)
def test_what_is_not_certain_is_told(form: str, dialect: str) -> None:
    reply = read(REFUSED[form], dialect)
    assert not reply.changes
    assert reply.refused or any(call.fault for call in reply.calls) or reply.faults


@pytest.mark.parametrize("dialect", ["tools", "structured"])
def test_what_looks_like_prose_while_it_comes_is_read_or_told_too(dialect: str) -> None:
    thought, code = (read(text, dialect, seen=True) for text in LATE.values())
    assert len(thought.changes) == 1 and not thought.faults and "think" not in thought.message
    assert code.refused and not code.changes


@pytest.mark.parametrize("dialect", ["tools", "structured"])
@pytest.mark.parametrize("opening", ["<think>", "<thinking>", "<|channel|>analysis<|message|>"])
def test_a_thought_that_does_not_end_is_no_answer(opening: str, dialect: str) -> None:
    for text in (f"{opening}\n{J(REPLY)}", f"{opening}<tool_call>{J(CALL)}</tool_call>"):
        reply = read(text, dialect)
        assert not reply.changes and not reply.calls and not reply.message
        assert any("inside its reasoning" in fault for fault in reply.faults)


@pytest.mark.parametrize("dialect", ["tools", "structured"])
@pytest.mark.parametrize(
    "text",
    [
        'A person is `{"name": "Bob", "parameters": {"age": 3}}` there.',
        '```json\n{"name": "demo", "version": "1.0", "files": ["a"]}\n```',
        'The package has\n\n{"name": "x", "arguments": {}}\n\nin it.',
        "It writes `</think>` behind a thought, and `<think>` before it.",
        "<thinker> is a class.",
        'The table is\n\n```json\n{"path": "a", "oldest": 1, "newest": 2}\n```',
        "`propose_changes` takes a list, and `propose_changes(…)` is how it is called.",
    ],
)
def test_an_example_is_only_shown(text: str, dialect: str) -> None:
    reply = read(text, dialect)
    assert (reply.changes, reply.calls, reply.refused, reply.faults) == ((), (), (), ())
    assert reply.message == text


@pytest.mark.parametrize("dialect", ["tools", "structured"])
def test_several_calls_are_several(dialect: str) -> None:
    other = {"name": "set_todos", "arguments": {"todos": [{"text": "Test it"}]}}
    reply = read(f"<tool_call>{J(CALL)}</tool_call>\n<tool_call>{J(other)}</tool_call>", dialect)
    assert len(reply.changes) == 1
    assert [todo.text for todo in reply.todos or ()] == ["Test it"]
    if dialect == "tools":
        assert [call.name for call in reply.calls] == ["propose_changes", "set_todos"]
        assert len({call.id for call in reply.calls}) == 2


@pytest.mark.parametrize(
    "text", ["<think>\n" * 50_000, "```\n<think>x</think>\n" * 20_000, '{"' * 50_000, "old" * 99_999]
)
def test_signs_are_looked_for_in_a_moment(text: str) -> None:
    begun = time.process_time()
    thinking_tags.extract_thoughts(Ledger(text))
    looks_like_a_change("{" + text, ("propose_changes",))
    looks_like_a_change("{" + '"\\' * 50_000, ("propose_changes",))
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("dialect", ["tools", "structured"])
def test_more_calls_than_anybody_writes_are_not_all_read(dialect: str) -> None:
    others = [
        {"name": "set_todos", "arguments": {"todos": [{"text": str(number)}]}} for number in range(1_100)
    ]
    text = "\n".join(f"<tool_call>{J(other)}</tool_call>" for other in others)
    reply = read(text, dialect, size=4_000)
    assert len(reply.todos or ()) == 1_000
    assert any("more than 1,000 calls" in fault for fault in reply.faults)


@pytest.mark.parametrize("dialect", ["tools", "structured"])
def test_of_very_many_values_the_rest_is_told(dialect: str) -> None:
    reply = read('{"a": 1}\n' * 5_100, dialect, size=100_000)
    assert not reply.changes
    assert "more than 5,000 JSON values" in " ".join(reply.faults)


def test_all_fences_of_a_piece_that_are_no_calls_are_shown_at_once() -> None:
    text = '```json\n{"a": 1}\n```\n' * 3
    assert CallFilter(["propose_changes"]).feed(text) == text
