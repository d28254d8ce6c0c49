"""The tools dialect: calls in pieces, broken, cut off, unknown; text as the message."""

from __future__ import annotations

import json
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.shapes import FUNCTIONS, RESPONSE

from tui_agent.answers.tools_reader import ToolsReader
from tui_agent.answers.values import ChangeRequest, EditHunk, Reply, SearchRequest, TodoItem
from tui_agent.model.client import CallChunk

CHANGES = {
    "changes": [
        {"path": "a.py", "edits": [{"search": "x", "replace": "y"}]},
        {"path": "b.py", "content": "new\n"},
    ]
}


def read(*calls: tuple[str, str], text: str = "", cut: bool = False, size: int = 9) -> Reply:
    reader = ToolsReader(RESPONSE, FUNCTIONS)
    if text:
        reader.feed(text)
    for index, (name, arguments) in enumerate(calls):
        reader.call(CallChunk(index, id=f"id{index}", name=name))
        for at in range(0, len(arguments), size):
            reader.call(CallChunk(index, arguments=arguments[at : at + size]))
    return reader.finish(cut)


def test_every_function_is_read() -> None:
    reply = read(
        (
            "read_files",
            '{"actions": [{"type": "file", "name": "A", "patterns": ["a.py"], "required": false}]}',
        ),
        ("list_directory", '{"requests": [{"path": "src"}]}'),
        ("search_text", '{"pattern": "fetch", "glob": "*.py"}'),
        ("propose_changes", json.dumps(CHANGES)),
        ("set_todos", '{"todos": [{"text": "One"}]}'),
        ("spawn_subtasks", '{"subTasks": [{"id": "a", "goal": "Do"}]}'),
        ("suggest_next", '{"steps": [{"html": "Run", "inputText": "go"}]}'),
        text="I look first.\n\nChanges both.",
    )
    assert reply.message == "I look first.\n\nChanges both."
    assert reply.summary == ""
    assert [(action.name, action.fallback) for action in reply.files] == [("A", "skip")]
    assert [folder.path for folder in reply.directories] == ["src"]
    assert reply.searches == (SearchRequest("fetch", "*.py"),)
    assert reply.changes == (
        ChangeRequest("a.py", edits=(EditHunk("x", "y"),)),
        ChangeRequest("b.py", content="new\n"),
    )
    assert reply.todos == (TodoItem("One"),)
    assert [task.id for task in reply.sub_tasks] == ["a"]
    assert [step.input_text for step in reply.next_steps] == ["go"]
    assert [call.id for call in reply.calls] == [f"id{n}" for n in range(7)]
    assert reply.faults == ()


def test_text_streams_as_the_message() -> None:
    reader = ToolsReader(RESPONSE, FUNCTIONS)
    assert [delta.text for piece in ("Hel", "lo \ud83d", "\ude00") for delta in reader.feed(piece)] == [
        "Hel",
        "lo ",
        "😀",
    ]
    assert reader.finish(False).message == "Hello 😀"


def test_cut_at_every_character_nothing_incomplete_is_proposed() -> None:
    arguments = json.dumps(CHANGES)
    whole = read(("propose_changes", arguments)).changes
    for end in range(len(arguments)):
        reply = read(("propose_changes", arguments[:end]), cut=True)
        assert reply.changes == whole[: len(reply.changes)]
        assert reply.cut
        json.loads(reply.calls[0].arguments)


def test_a_cut_search_is_not_run() -> None:
    assert read(("search_text", '{"pattern": "fe'), cut=True).searches == ()


@pytest.mark.parametrize(
    "arguments",
    [
        json.dumps(json.dumps(CHANGES)),
        json.dumps(CHANGES["changes"]),
        json.dumps({"changes": json.dumps(CHANGES["changes"])}),
        json.dumps({"fileChanges": CHANGES["changes"]}),
        json.dumps(CHANGES)[:-1] + ",}",
        json.dumps(CHANGES).replace("\\n", "\n"),
    ],
)
def test_arguments_that_certainly_mean_the_shape_are_read(arguments: str) -> None:
    reply = read(("propose_changes", arguments))
    assert reply.changes == read(("propose_changes", json.dumps(CHANGES))).changes
    assert isinstance(json.loads(reply.calls[0].arguments), (dict, str, list))


def test_a_single_change_without_its_list_is_read() -> None:
    assert read(("propose_changes", '{"path": "a", "content": "x"}')).changes == (
        ChangeRequest("a", content="x"),
    )


def test_an_unknown_function_is_a_fault_and_stays_a_call() -> None:
    reply = read(("rm_rf", "{}"), ("set_todos", '{"todos": []}'))
    assert "There is no function 'rm_rf'; there are set_todos, " in reply.calls[0].fault
    assert not reply.calls[1].fault
    assert [call.name for call in reply.calls] == ["rm_rf", "set_todos"]
    assert reply.todos == ()


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("", '{"actions": []}', "The call has no name"),
        ("read_files", '{"actions": [', "not valid JSON"),
        ("read_files", '{"actions": 3}', "a list is expected here"),
        ("read_files", "", "the arguments are empty; `actions` is needed"),
        ("read_files", '"x"', "not valid JSON"),
        ("search_text", '{"glob": "*.py"}', "pattern"),
        ("propose_changes", '{"changes": [{"content": "x"}]}', "path"),
    ],
)
def test_a_call_that_cannot_be_read_has_a_fault_of_its_own(name: str, arguments: str, why: str) -> None:
    reply = read((name, arguments), ("set_todos", '{"todos": [{"text": "One"}]}'))
    assert why in reply.calls[0].fault
    assert reply.calls[0].fault.startswith("Error: ")
    assert "Nothing in this call was done" in reply.calls[0].fault
    assert reply.faults == (), "it is told once, as the result of the call"
    assert not reply.calls[1].fault and len(reply.todos or ()) == 1


def test_of_broken_arguments_what_is_complete_counts_and_is_said() -> None:
    reply = read(("propose_changes", json.dumps(CHANGES)[:-9] + "\\x}"))
    assert [change.path for change in reply.changes] == ["a.py"]
    assert "Of this call the first item was taken" in reply.calls[0].fault


def test_each_call_has_an_id_of_its_own() -> None:
    reader = ToolsReader(RESPONSE, FUNCTIONS, "call_3_1")
    for index, id in enumerate(("", "same", "same", "")):
        reader.call(CallChunk(index, id=id, name="set_todos", arguments='{"todos": []}'))
    assert [call.id for call in reader.finish(False).calls] == [
        "call_3_1_1",
        "same",
        "call_3_1_3",
        "call_3_1_4",
    ]


@pytest.mark.parametrize(
    "arguments",
    ["", "{}", "null", "3", '"x"', "[]", "nonsense", '{"actions": 3}', "{" * 9000],
    ids=count(),
)
def test_senseless_arguments_never_raise_and_are_sent_back_as_json(arguments: str) -> None:
    reply = read(("read_files", arguments))
    assert reply.files == ()
    json.loads(reply.calls[0].arguments)


def test_calls_that_share_an_index_are_told_apart_by_their_id() -> None:
    reader = ToolsReader(RESPONSE, FUNCTIONS)
    reader.call(CallChunk(0, "a", "set_todos", '{"todos": [{"text": "One"}]}'))
    reader.call(CallChunk(0, "b", "list_directory", '{"requests": [{"path": "src"}]}'))
    reply = reader.finish(False)
    assert [call.id for call in reply.calls] == ["a", "b"]
    assert reply.faults == ()


def test_a_call_without_an_id_gets_one_that_is_always_the_same() -> None:
    reader = ToolsReader(RESPONSE, FUNCTIONS)
    reader.call(CallChunk(0, "", "set_todos", "{}"))
    assert reader.finish(False).calls[0].id == "call_1"


def test_a_diff_in_the_text_counts_only_where_no_changes_are_called() -> None:
    text = "```diff\n--- a/z.py\n+++ b/z.py\n@@ -1 +1 @@\n-a\n+b\n```"
    assert [change.path for change in read(text=text).changes] == ["z.py"]
    both = read(("propose_changes", json.dumps(CHANGES)), text=text)
    assert [change.path for change in both.changes] == ["a.py", "b.py"]


@given(st.text(max_size=200), st.text(max_size=200), st.booleans())
def test_nothing_raises(text: str, arguments: str, cut: bool) -> None:
    for name in ("propose_changes", "search_text", text[:5]):
        for call in read((name, arguments), text=text, cut=cut).calls:
            assert isinstance(json.loads(call.arguments), (dict, str, list, int, float, bool, type(None)))


def test_an_id_of_an_earlier_reply_is_given_to_one_call_only() -> None:
    reader = ToolsReader(RESPONSE, FUNCTIONS, "call_2_1", taken={"call_0"})
    for index in range(2):
        reader.call(CallChunk(index, f"call_{index}", "search_text", '{"pattern": "x"}'))
    assert [call.id for call in reader.finish(cut=False).calls] == ["call_2_1_1", "call_1"]


def test_the_words_of_a_reply_in_our_form_are_said_where_calls_are_native() -> None:
    reader = ToolsReader(RESPONSE, FUNCTIONS, calls_as_text=False)
    reader.feed('{"summary": "It fetches pages.", "message": "From two hosts."}')
    reply = reader.finish(False)
    assert (reply.summary, reply.message) == ("It fetches pages.", "From two hosts.")
