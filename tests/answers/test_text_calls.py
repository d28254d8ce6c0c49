"""Calls and replies as local models write them, as text: each is read in both dialects, or refused aloud."""

from __future__ import annotations

import json

import pytest
from support.shapes import FUNCTIONS, RESPONSE

from tui_agent.answers.structured import StructuredReader
from tui_agent.answers.tools import ToolsReader
from tui_agent.answers.values import ChangeRequest, Reply, SearchReplace

EDIT = {"search": "get(url)", "replace": "get(url, 5)"}
CHANGE = {"path": "api.py", "edits": [EDIT]}
ARGUMENTS = {"changes": [CHANGE]}
REPLY = {"summary": "Adds a timeout.", "fileChanges": [CHANGE]}
CALL = {"name": "propose_changes", "arguments": ARGUMENTS}
LLAMA = {"name": "propose_changes", "parameters": ARGUMENTS}
OPENAI = {
    "id": "c",
    "type": "function",
    "function": {"name": "propose_changes", "arguments": json.dumps(ARGUMENTS)},
}
J = json.dumps
QWEN_CODER = f"<function=propose_changes>\n<parameter=changes>\n{J([CHANGE])}\n</parameter>\n</function>"
READ = {
    "Hermes": f"<tool_call>\n{J(CALL)}\n</tool_call>",
    "Hermes behind words": f"I add a timeout.\n\n<tool_call>\n{J(CALL)}\n</tool_call>\n",
    "Hermes without its end": f"<tool_call>\n{J(CALL)}",
    "Hermes with arguments as text": f"<tool_call>{J({**CALL, 'arguments': J(ARGUMENTS)})}</tool_call>",
    "Qwen-Coder": f"<tool_call>\n{QWEN_CODER}\n</tool_call>",
    "Qwen-Coder without the wrapping": QWEN_CODER,
    "Mistral": f"[TOOL_CALLS] [{J(CALL)}]",
    "Mistral, newer": f"[TOOL_CALLS]propose_changes[ARGS]{J(ARGUMENTS)}",
    "Llama": J(LLAMA),
    "Llama behind its tag": f"<|python_tag|>{J(LLAMA)}<|eom_id|>",
    "Llama, fenced": f"Here it is:\n```json\n{J(LLAMA, indent=2)}\n```\n",
    "Gemma": f"```tool_code\npropose_changes(changes={[CHANGE]!r})\n```",
    "Gemma, printed": f"```tool_code\nprint(default_api.propose_changes(changes={[CHANGE]!r}))\n```",
    "harmony": f"<|channel|>commentary to=functions.propose_changes <|constrain|>json<|message|>{J(ARGUMENTS)}<|call|>",
    "tool_calls": J({"tool_calls": [OPENAI]}),
    "function_call": J({"function_call": CALL}),
    "the function as the key": J({"propose_changes": ARGUMENTS}),
    "our reply": J(REPLY),
    "our reply, fenced": f"Sure:\n\n```json\n{J(REPLY, indent=2)}\n```\nDone.",
    "a bare list": J([CHANGE]),
    "a bare list in chatter": f"These are the changes:\n\n{J([CHANGE], indent=1)}\n\nTell me if it works.",
    "changes": J({"summary": "S", "changes": [CHANGE]}),
    "near names": J(
        {"file_changes": [{"file_path": "api.py", "edits": [{"old": "get(url)", "new": "get(url, 5)"}]}]}
    ),
    "search in the entry": J(
        {"changes": [{"file": "api.py", "old_str": "get(url)", "new_str": "get(url, 5)"}]}
    ),
    "one wrapper too many": J({"response": REPLY}),
    "a call in a wrapper": J({"result": {"tool_calls": [CALL]}}),
    "our reply behind a thought": f"<think>\nMaybe {J({'summary': 'No', 'fileChanges': []})}?\n</think>\n{J(REPLY)}",
    "Hermes behind a thought": f"<thinking>\n```json\n{J(LLAMA)[:40]}\n</thinking>\n<tool_call>{J(CALL)}</tool_call>",
    "behind a thought begun before": f"It says {J({'summary': 'No'})}\n</think>\n\n{J(REPLY)}",
    "harmony's final channel": f"<|channel|>analysis<|message|>{J(REPLY)[:30]}<|end|><|start|>assistant<|channel|>final"
    f"<|message|>{J(REPLY)}<|return|>",
}
REFUSED = {
    "broken arguments": '<tool_call>\n{"name": "propose_changes", "arguments": {"changes": [{"path": "a"\n</tool_call>',
    "no end of a function": "<function=propose_changes>\n<parameter=changes>\n[]",
    "Mistral, broken": "[TOOL_CALLS] [{broken",
    "Gemma with code": "```tool_code\npropose_changes(changes=[x for x in y])\n```",
    "other tags": '<function_calls>\n<invoke name="propose_changes">\n</invoke>\n</function_calls>',
}


def read(text: str, dialect: str, cut: bool = False, size: int = 7) -> Reply:
    tools, structured = ToolsReader(RESPONSE, FUNCTIONS), StructuredReader(RESPONSE)
    reader, feed = (tools, tools.text) if dialect == "tools" else (structured, structured.feed)
    for at in range(0, len(text), size):
        feed(text[at : at + size])
    first = reader.finish(cut)
    assert reader.finish(cut) == first, "what was read once can be read again"
    return first


@pytest.mark.parametrize("dialect", ["tools", "structured"])
@pytest.mark.parametrize("form", READ)
def test_one_unmistakable_edit_is_read(form: str, dialect: str) -> None:
    reply = read(READ[form], dialect)
    assert reply.changes == (ChangeRequest("api.py", edits=(SearchReplace("get(url)", "get(url, 5)"),)),)
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
@pytest.mark.parametrize("opening", ["<think>", "<thinking>", "<|channel|>analysis<|message|>"])
def test_a_thought_that_does_not_end_is_no_answer(opening: str, dialect: str) -> None:
    for text in (f"{opening}\n{J(REPLY)}", f"{opening}<tool_call>{J(CALL)}</tool_call>"):
        reply = read(text, dialect)
        assert not reply.changes and not reply.calls and not reply.message
        assert any("within its thoughts" in fault for fault in reply.faults)


@pytest.mark.parametrize("dialect", ["tools", "structured"])
@pytest.mark.parametrize(
    "text",
    [
        'A person is `{"name": "Bob", "parameters": {"age": 3}}` there.',
        '```json\n{"name": "demo", "version": "1.0", "files": ["a"]}\n```',
        'The package has\n\n{"name": "x", "arguments": {}}\n\nin it.',
        "It writes `</think>` behind a thought, and `<think>` before it.",
        "<thinker> is a class.",
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


@pytest.mark.parametrize("dialect", ["tools", "structured"])
def test_more_calls_than_anybody_writes_are_not_all_read(dialect: str) -> None:
    other = {"name": "set_todos", "arguments": {"todos": [{"text": "x"}]}}
    reply = read(f"<tool_call>{J(other)}</tool_call>\n" * 1_100, dialect, size=4_000)
    assert len(reply.todos or ()) == 1_000
    assert any("more than 1,000 calls" in fault for fault in reply.faults)
