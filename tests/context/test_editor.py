"""The state of an editor as blocks: files and their order, excerpts, references, and closed files."""

from __future__ import annotations

import pytest

from tui_agent.context import editor
from tui_agent.context.editor import (
    Excerpt,
    OpenFile,
    additional_data,
    attached,
    blocks,
    digest,
    excerpt,
    gone_blocks,
    new_blocks,
    references,
)

LINES = tuple(f"line {number}" for number in range(1, 31))
TEXT = "\n".join(LINES)


def test_the_active_file_is_first_then_the_newest_and_fifteen_in_all() -> None:
    files = [OpenFile(f"{number:02}", "", "", mtime=number % 9) for number in range(18)]
    files.append(OpenFile("old", "", "", active=True))
    assert [file.path for file in attached(files)] == [
        "old", "08", "17", "07", "16", "06", "15", "05", "14", "04", "13", "03", "12", "02", "11",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (OpenFile("a", TEXT, ""), Excerpt(1, LINES[:20], 30, False)),
        (OpenFile("a", "\n".join(LINES[:20]), ""), Excerpt(1, LINES[:20], 20, True)),
        (OpenFile("a", TEXT, "", active=True), Excerpt(1, LINES, 30, True)),
        (OpenFile("a", TEXT, "", active=True, brief=True), Excerpt(1, LINES[:20], 30, False)),
        (OpenFile("a", "x" * 1000, ""), Excerpt(1, ("x" * 1000,), 1, True)),
        (
            OpenFile("a", "x" * 1001, ""),
            Excerpt(1, (f"{'x' * 1000}… (1001 characters)",), 1, False),
        ),
        (OpenFile("a", "", ""), Excerpt(1, (), 0, True)),
    ],
)
def test_an_excerpt_is_the_active_file_or_the_beginning_of_another(file: OpenFile, expected: Excerpt) -> None:
    assert excerpt(file) == expected


@pytest.mark.parametrize(("line", "first", "last"), [(1, 1, 4), (3, 1, 4), (15, 13, 16), (30, 28, 30)])
def test_of_a_large_active_file_the_part_around_the_cursor_is_sent(
    monkeypatch: pytest.MonkeyPatch, line: int, first: int, last: int
) -> None:
    monkeypatch.setattr(editor, "WHOLE_CHARACTERS", 40)
    monkeypatch.setattr(editor, "LINE_CHARACTERS", 10)
    found = excerpt(OpenFile("a", TEXT, "", line, active=True))
    assert found == Excerpt(first, LINES[first - 1 : last], 30, False)
    assert found.last == last
    assert excerpt(OpenFile("a", "x" * 40, "", active=True)).whole
    assert not excerpt(OpenFile("a", "x" * 41, "", active=True)).whole


@pytest.mark.parametrize(("line", "words"), [(1, "line 1"), (2, "line 2"), (3, ""), (0, "")])
def test_the_cursor_has_its_line(line: int, words: str) -> None:
    found = blocks([OpenFile("a.py", "line 1\nline 2", "9", line, active=True, mtime=5)])
    assert found["current_file"] == (
        f"<current_file>\nPath: a.py\nLine: {line}\nLine content: {words}\n</current_file>"
    )
    assert "manually_added_selection" not in found
    assert found["file:a.py"] == (
        '<file_contents path="a.py" mtime="5" lines="1-2" total_lines="2">\n'
        "1: line 1\n2: line 2\n</file_contents>"
    )


def test_a_selection_and_marks_of_a_file() -> None:
    file = OpenFile("a", "x\ny", "9", 2, "y", 2, 2, unsaved=True, active=True, masked=True)
    found = blocks([file, OpenFile("b", "z", "8", selection="z")])
    assert found["manually_added_selection"] == (
        '<manually_added_selection path="a" lines="2-2">\ny\n</manually_added_selection>'
    )
    assert 'total_lines="2" unsaved="true" masked="true">' in found["file:a"]
    assert 'total_lines="1">' in found["file:b"]
    assert list(blocks([OpenFile("b", "z", "8", selection="z")])) == ["file:b"]


def test_a_file_in_view_is_a_reference() -> None:
    files = [OpenFile("a", "x", "9"), OpenFile("b", "y", "8"), OpenFile("c", "z", "7")]
    assert references(files, {"a": "9", "b": "9"}) == {
        "file:a": '<file_contents path="a" mtime="0" lines="1-1" total_lines="1" unchanged="true"/>'
    }


def test_only_new_blocks_are_sent_and_gone_ones_are_told() -> None:
    found = {"current_file": "one", "file:a": "two"}
    sent = {"current_file": digest("one"), "file:a": digest("other")}
    assert new_blocks(found, sent) == {"file:a": "two"}
    gone = {
        "current_file": "1",
        "manually_added_selection": "2",
        "file:a": "3",
        "file:open": "4",
        "file:told": "",
    }
    assert gone_blocks({}, gone, ["open"]) == {
        "current_file": "<current_file>\nNone\n</current_file>",
        "manually_added_selection": '<manually_added_selection cleared="true"/>',
        "file:a": '<file_contents path="a" closed="true"/>',
    }
    assert gone_blocks(found | {"manually_added_selection": "x"}, gone, ["open"]) == {}


def test_blocks_have_one_order() -> None:
    assert additional_data({}) == ""
    parts = {"file:a": "A", "manually_added_selection": "S", "file:b": "B", "current_file": "C"}
    assert additional_data(parts) == (
        "<additional_data>\nC\n<attached_files>\nA\nB\n</attached_files>\nS\n</additional_data>"
    )
    assert additional_data({"current_file": "C"}) == "<additional_data>\nC\n</additional_data>"
