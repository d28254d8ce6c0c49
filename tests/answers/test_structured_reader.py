"""The structured dialect: streamed, whole, fenced, broken, cut off, hostile."""

from __future__ import annotations

import json
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.edit_requests import hunks
from support.shapes import FUNCTIONS, RESPONSE

from tui_agent.answers.structured_reader import StructuredReader
from tui_agent.answers.values import (
    ChangeRequest,
    EditHunk,
    NextStep,
    Reply,
    SearchRequest,
    SubTaskRequest,
    TodoItem,
)
from tui_agent.context.blocks import holds, summary_line
from tui_agent.model.client import CallChunk

SAMPLE = {
    "summary": 'Adds "é" and 😀 to [red]both[/red].',
    "message": "# Why\n\n```python\nx = {'a': 1}\n```\n",
    "todos": [{"text": "One", "aiText": "details", "done": False}, {"text": "Two", "done": True}],
    "fileChanges": [
        {"path": "a.py", "todoIndex": 0, "baseHash": "9a906f", "edits": [{"search": "{", "replace": "}"}]},
        {"path": "./new.py", "content": "x = '\\'\n"},
        {"path": "b.py", "diff": "@@ -1 +1 @@\n-a\n+b\n"},
        {"path": "old.py", "delete": True},
        {"path": "c.py", "renameTo": "d.py"},
    ],
    "fileRequests": [
        {"type": "file", "name": "Schema", "patterns": ["src/schema.ts"], "fallbackAction": "skip"}
    ],
    "directoryRequests": [{"path": "src", "recursive": True, "filter": "*.ts"}],
    "searches": [{"pattern": "fetch(", "glob": "*.py"}, {"pattern": "f.*h", "regex": True}],
    "subTasks": [{"id": "api", "goal": "Do it", "files": ["a"], "dependencies": [], "autoExecute": True}],
    "nextSteps": [{"html": "<b>Run</b>", "inputText": "continue"}],
}
TEXT = json.dumps(SAMPLE, ensure_ascii=False, indent=1)


def read(text: str, cut: bool = False, size: int = 0) -> tuple[Reply, dict[str, str]]:
    reader = StructuredReader(RESPONSE)
    said = {"summary": "", "message": ""}
    for at in range(0, len(text), size or len(text) or 1):
        for delta in reader.feed(text[at : at + (size or len(text))]):
            said[delta.part] += delta.text
    return reader.finish(cut), said


def test_every_part_of_the_contract_is_read() -> None:
    reply, said = read(TEXT)
    assert reply.summary == said["summary"] == SAMPLE["summary"]
    assert reply.message == said["message"] == SAMPLE["message"]
    assert reply.todos == (TodoItem("One", "details"), TodoItem("Two", "", True))
    assert reply.changes == (
        ChangeRequest("a.py", edits=(EditHunk("{", "}"),), todo_index=0, base_hash="9a906f"),
        ChangeRequest("new.py", content="x = '\\'\n"),
        ChangeRequest("b.py", diff=hunks("@@ -1 +1 @@\n-a\n+b\n")),
        ChangeRequest("old.py", delete=True),
        ChangeRequest("c.py", rename_to="d.py"),
    )
    assert [action.fallback for action in reply.files] == ["skip"]
    assert reply.searches == (SearchRequest("fetch(", "*.py"), SearchRequest("f.*h", regex=True))
    assert [(folder.path, folder.recursive) for folder in reply.directories] == [("src", True)]
    assert reply.sub_tasks == (SubTaskRequest("api", "Do it", ("a",), (), True),)
    assert reply.next_steps == (NextStep("<b>Run</b>", "continue"),)
    assert (reply.cut, reply.faults) == (False, ())


def test_a_reply_without_todos_says_nothing_about_them() -> None:
    assert read('{"summary": "x"}')[0].todos is None
    assert read('{"summary": "x", "todos": []}')[0].todos == ()


def test_the_words_are_there_before_the_rest_is_written() -> None:
    reader = StructuredReader(RESPONSE)
    said = [delta.text for delta in reader.feed('{"summary": "Adds a ti')]
    said += [delta.text for delta in reader.feed('meout", "fileChanges": [{"path": "')]
    assert said == ["Adds a ti", "meout"]


WRAPPED = [
    TEXT,
    json.dumps(SAMPLE),
    f"```json\n{TEXT}\n```",
    f"Here it is:\n\n```json\n{TEXT}\n```\n\nGood luck!",
    f"Here it is: {TEXT}",
    f"  \n{TEXT}\n",
    f"[{TEXT}]",
    TEXT.replace("\n]", ",\n]"),
    'Only prose, with {braces} and `{"name": 1}`.\n\nThe end.',
    '{"summary": "a \\ud83d\\ude00 b \\ud83d c \\q \\u12 d"}',
    '{"other": 1}',
    "```python a/b.py\nx = {}\n```\n",
]


@given(st.sampled_from(WRAPPED), st.lists(st.integers(1, 40), min_size=1, max_size=30))
def test_any_chunking_reads_like_the_whole(text: str, sizes: list[int]) -> None:
    whole, whole_said = read(text)
    reader = StructuredReader(RESPONSE)
    said = {"summary": "", "message": ""}
    at = turn = 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        for delta in reader.feed(text[at : at + size]):
            said[delta.part] += delta.text
        at, turn = at + size, turn + 1
    assert reader.finish(False) == whole
    assert said["summary"] == whole_said["summary"]
    assert said["message"].split() == whole_said["message"].split()


@pytest.mark.parametrize("text", WRAPPED[:8], ids=count())
def test_what_was_streamed_is_what_was_read(text: str) -> None:
    reply, said = read(text, size=7)
    assert said["summary"] == reply.summary == SAMPLE["summary"]
    assert reply.message.replace("\n\nGood luck!", "").split() == said["message"].split()
    assert len(reply.changes) == 5


@pytest.mark.parametrize("text", [TEXT, f"Here:\n```json\n{TEXT}\n```"], ids=count())
def test_cut_at_every_character_nothing_incomplete_is_proposed(text: str) -> None:
    whole = read(TEXT)[0].changes
    for end in range(len(text)):
        reply, said = read(text[:end], cut=True)
        assert reply.cut
        assert reply.changes == whole[: len(reply.changes)]
        assert reply.summary.startswith(said["summary"]) or said["summary"] == ""
    assert reply.changes == whole


def test_a_cut_reply_says_what_was_dropped() -> None:
    text = '{"summary": "S", "fileChanges": [{"path": "a", "content": "x"}, {"path": "b", "content": "ha'
    reply, _ = read(text, cut=True)
    assert [change.path for change in reply.changes] == ["a"]
    assert reply.faults == ("fileChanges: entry 2 is incomplete and was discarded.",)


def test_a_reply_that_ends_too_early_without_saying_so_counts_as_cut() -> None:
    reply, _ = read(
        '{"summary": "S", "fileChanges": [{"path": "a", "content": "x"}, {"path": "b", "content": "half'
    )
    assert [change.path for change in reply.changes] == ["a"]
    assert reply.cut
    assert "ended before it was closed" in reply.faults[0]


@pytest.mark.parametrize(
    ("broken", "paths"),
    [
        ('{"summary": "S", "fileChanges": [{"path": "a", "content": "x"},],}', ["a"]),
        ('{"summary": "S", "fileChanges": [{"path": "a", "content": "line\nline"}]}', ["a"]),
        ("{'summary': 'S', 'fileChanges': [{'path': 'a', 'content': 'x'}]}", ["a"]),
        ('{summary: "S", fileChanges: [{path: "a", delete: True}]}', ["a"]),
        ('{"summary": "S", "file_changes": [{"path": "a", "content": "x", "base_hash": "1"}]}', ["a"]),
        ('{"summary": "S", "fileChanges": {"path": "a", "content": "x"}}', ["a"]),
        ('{"summary": "S", "fileChanges": "[{\\"path\\": \\"a\\", \\"content\\": \\"x\\"}]"}', ["a"]),
        ('{"summary": "S", "fileChanges": [{"path": "a", "content": "x", "todoIndex": "0"}]}', ["a"]),
        (
            '{"summary": "S", "fileChanges": [{"path": "a", "content": "f("x")"}, {"path": "b", "content": "y"}]}',
            [],
        ),
        (
            '{"summary": "S", "fileChanges": [{"path": "b", "content": "y"}, {"path": "a", "content": "f("x")"}]}',
            ["b"],
        ),
    ],
)
def test_broken_json_is_read_where_its_meaning_is_certain(broken: str, paths: list[str]) -> None:
    reply, _ = read(broken)
    assert reply.summary == "S"
    assert [change.path for change in reply.changes] == paths


def test_words_after_a_break_are_saved_but_changes_are_not() -> None:
    reply, _ = read(
        '{"fileChanges": [{"path": "a", "content": "f("x")"}], "summary": "S", "todos": [{"text": "T"}]}'
    )
    assert reply.changes == ()
    assert any("broken at line 1" in fault for fault in reply.faults)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"path": "a"}, "none of"),
        ({"path": "a", "content": "x", "delete": True}, "more than one"),
        ({"path": "a", "edits": [{"search": "x"}]}, "fileChanges[1].edits[0]"),
        ({"path": "", "content": "x"}, "fileChanges[1].path"),
        ({"content": "x"}, "path"),
        ({"path": "a", "content": 3}, "fileChanges[1].content"),
        ({"path": "a", "content": "half \ud800"}, "surrogate"),
        ("a.py", "fileChanges[1]"),
    ],
)
def test_one_bad_change_does_not_hide_the_others(change: object, why: str) -> None:
    good = {"path": "good.py", "content": "x"}
    reply, _ = read(json.dumps({"summary": "S", "fileChanges": [good, change, good]}))
    assert [request.path for request in reply.changes] == ["good.py"]
    assert why in " ".join(reply.faults)


def test_empty_properties_beside_the_form_that_is_meant_are_nothing() -> None:
    change = {"path": "a", "content": "", "diff": "", "delete": False, "renameTo": "", "baseHash": None}
    reply, _ = read(
        json.dumps({"summary": "S", "fileChanges": [change | {"edits": [{"search": "a", "replace": ""}]}]})
    )
    assert reply.changes == (ChangeRequest("a", edits=(EditHunk("a", ""),)),)


def test_a_diff_of_several_files_becomes_several_changes() -> None:
    diff = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n--- a/y.py\n+++ b/y.py\n@@ -1 +1 @@\n-c\n+d\n"
    reply, _ = read(
        json.dumps({"summary": "S", "fileChanges": [{"path": "x.py", "diff": diff, "todoIndex": 1}]})
    )
    assert [(change.path, change.todo_index) for change in reply.changes] == [("x.py", 1), ("y.py", 1)]


@pytest.mark.parametrize(
    ("text", "gist"),
    [
        ("It is in main.py. Look at line 3.", "It is in main.py."),
        ("First part.\n\nThe last\nparagraph.", "The last paragraph."),
        ("First part.\n\n```python\nx = 1\n\ny = 2\n```\n", "First part."),
        ('The API answers `{"message": "ok"}`.', 'The API answers `{"message": "ok"}`.'),
        ("", ""),
        ("   \n ", ""),
    ],
)
def test_prose_is_the_message_and_has_no_summary(text: str, gist: str) -> None:
    reply, _ = read(text)
    assert (reply.message, reply.summary) == (text.strip(), "")
    assert reply.changes == ()
    assert summary_line(reply.message) == gist, "for lists and hand-overs"
    assert holds(reply.message, gist), "as a log of an older version has it"


def test_a_reply_without_a_summary_gets_none() -> None:
    reply, _ = read(json.dumps({"message": "First part.\n\nThe last paragraph."}))
    assert (reply.message, reply.summary) == ("First part.\n\nThe last paragraph.", "")


def test_a_summary_within_a_line_is_not_held() -> None:
    assert not holds("It adds a test.", "adds a test.") and not holds("", "Adds a test.")


def test_an_example_in_prose_is_no_reply() -> None:
    text = 'The server answers:\n\n```json\n{"message": "ok"}\n```\n\nThat is all.'
    assert read(text)[0].message == text


def test_lone_halves_of_a_pair_are_replaced_and_split_ones_joined() -> None:
    reply, said = read('{"summary": "a\\ud83d\\ude00b\\ud800c"}', size=1)
    assert reply.summary == said["summary"] == "a😀b\ufffdc"
    reader = StructuredReader(RESPONSE)
    assert "".join(d.text for piece in ("x \ud83d", "\ude00 y") for d in reader.feed(piece)) == "x 😀 y"
    assert reader.finish(False).message == "x 😀 y"


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "word " * 5000,
        "{" * 5000,
        '{"summary": "' + "\\u00e9" * 5000,
        " " * 5000,
        "```" * 5000,
        "\n" * 5000,
    ],
    ids=count(),
)
def test_little_is_held_back_so_that_nothing_is_read_twice(text: str) -> None:
    reader = StructuredReader(RESPONSE)
    most = 0
    for sign in text:
        reader.feed(sign)
        most = max(most, reader.held)
    assert most <= 200


def test_ten_thousand_changes_are_read() -> None:
    changes = [{"path": f"f{n}.py", "content": "x\n"} for n in range(10_000)]
    reply, _ = read(json.dumps({"summary": "S", "fileChanges": changes}), size=50_000)
    assert len(reply.changes) == 10_000


def test_a_reply_of_ten_megabytes_is_read_in_pieces() -> None:
    text = json.dumps(
        {
            "summary": "S",
            "message": "m" * 5_000_000,
            "fileChanges": [{"path": "a", "content": "c\n" * 2_000_000}],
        }
    )
    reply, said = read(text, size=65_536)
    assert len(reply.message) == len(said["message"]) == 5_000_000
    assert len(reply.changes) == 1


@pytest.mark.parametrize(
    "text",
    ["[" * 200_000, '{"summary": ' + "[" * 200_000, '{"a":' * 200_000, "}" * 1000, '"' * 999],
    ids=count(),
)
def test_deep_and_senseless_text_is_only_prose(text: str) -> None:
    reply, _ = read(text, size=10_000)
    assert reply.changes == ()


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=300), st.booleans())
def test_no_text_at_all_raises(text: str, cut: bool) -> None:
    reply, _ = read(text, cut=cut, size=3)
    reply.message.encode()
    reply.summary.encode()


@given(st.text(max_size=200))
def test_markup_and_escapes_stay_as_they_are(text: str) -> None:
    words = f"[red]{text}[/]\x1b[31m"
    reply, said = read(json.dumps({"summary": "S", "message": words}), size=5)
    assert reply.message == said["message"] == words


def test_native_calls_beside_a_reply_are_read() -> None:
    """A model may call a function although none was offered, with a reply beside it or without."""
    for text in ("", '{"summary": "Looks."}'):
        reader = StructuredReader(RESPONSE, FUNCTIONS)
        reader.feed(text)
        reader.call(CallChunk(0, "a", "search_text"))
        reader.call(CallChunk(0, arguments='{"pattern": "fetch"}'))
        changes = {"changes": [{"path": "b.py", "content": "new\n"}]}
        reader.call(CallChunk(1, "b", "propose_changes", json.dumps(changes)))
        reply = reader.finish(cut=False)
        assert [search.pattern for search in reply.searches] == ["fetch"]
        assert [change.path for change in reply.changes] == ["b.py"]
