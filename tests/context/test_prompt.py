"""What the model gets to see: in one order, each part only when it has something to say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tui_agent.context import editor, known_files, prompt
from tui_agent.context.file_contents import FilesInPrompt, LoadedFile
from tui_agent.context.known_files import KnownFile
from tui_agent.context.prompt import DirectoryListing, outline
from tui_agent.workspace.index import Index

PLACE = prompt.Environment("/w", ".", "Linux", "a.py")
WORDS = {
    "sections": [
        {"text": "Be brief."},
        {"text": "JSON", "dialect": "structured"},
        {"text": "T", "dialect": "tools"},
    ]
}


def loaded(path: str = "a.py", text: str = "import os\nx = 1\n") -> LoadedFile:
    return LoadedFile(path, "9a906fd5909d0000", text, len(text), "plan")


def test_the_system_prompt_holds_the_words_of_its_dialect_only() -> None:
    content = prompt.system_message(WORDS, "tools", None, PLACE)["content"]
    assert "Be brief." in content and "T" in content and "JSON" not in content
    assert "Workspace root: /w" in content and "Linux" in content


def test_the_schema_of_a_structured_answer_takes_few_tokens() -> None:
    schema = {"type": "object", "properties": {"summary": {"type": "string"}}}
    content = prompt.system_message(WORDS, "structured", schema, PLACE)["content"]
    assert '{"type":"object","properties":{"summary":{"type":"string"}}}' in content


def test_the_newest_message_keeps_the_order_of_the_contract() -> None:
    news = prompt.MessageParts(
        query="Do it",
        rows=("| a.py | turn 1 | No | 9a906fd5909d |",),
        listings=(DirectoryListing("src", (("a.py", "file", 3),), 1),),
        memory="## AI Memory (Continuation Context)\n…",
        files=(loaded(),),
        editor_blocks={"current_file": "<current_file>\nPath: a.py\n</current_file>"},
    )
    text = prompt.user_text(news, FilesInPrompt())
    places = [
        text.index(part)
        for part in (
            "## KNOWN FILES",
            "## DIRECTORY LISTING RESULTS",
            "## AI Memory",
            '{"type": "read_files"',
            "<additional_data>",
            "<user_query>\nDo it\n</user_query>",
        )
    ]
    assert places == sorted(places)


def test_nothing_to_say_is_nothing_said() -> None:
    assert (
        prompt.user_text(prompt.MessageParts(query="Hi"), FilesInPrompt())
        == "<user_query>\nHi\n</user_query>"
    )


def test_a_loaded_file_has_line_numbers_and_its_hash() -> None:
    result = json.loads(prompt.user_text(prompt.MessageParts(files=(loaded(),)), FilesInPrompt()))
    assert result == {
        "type": "read_files",
        "files": [
            {"path": "a.py", "md5": "9a906fd5909d0000", "lines": 2, "content": "1: import os\n2: x = 1"}
        ],
    }


def entry_of(in_view: FilesInPrompt, file: LoadedFile | None = None) -> dict[str, Any]:
    text = prompt.user_text(prompt.MessageParts(files=(file or loaded(),)), in_view)
    return json.loads(text)["files"][0]


def test_what_is_in_view_is_referred_to_and_not_sent_again() -> None:
    here = {"a.py": "9a906fd5909d0000"}
    assert entry_of(FilesInPrompt(sent=here)) == {
        "path": "a.py",
        "md5": here["a.py"],
        "lines": 2,
        "unchanged": True,
    }
    assert entry_of(FilesInPrompt(attached=here))["attached"] is True
    assert entry_of(FilesInPrompt(proposed=here))["asProposed"] is True
    assert entry_of(FilesInPrompt(sent={"old.py": here["a.py"]}))["sameAs"] == "old.py"
    assert "content" in entry_of(FilesInPrompt(sent={"a.py": "other"}))
    empty = LoadedFile("a.py", "d41d8", "", 0, "plan")
    assert "content" in entry_of(FilesInPrompt(sent={"other.py": "d41d8"}), empty)


def test_a_model_that_asks_for_what_it_proposed_gets_to_see_it() -> None:
    asked = LoadedFile("a.py", "9a906fd5909d0000", "x\n", 2, "request")
    assert entry_of(FilesInPrompt(proposed={"a.py": asked.md5}), asked)["content"] == "1: x"


def additional(blocks: dict[str, str], sent: dict[str, str]) -> str:
    return editor.additional_data(editor.new_blocks(blocks, sent))


def test_an_editor_block_is_sent_once_while_it_stays_the_same() -> None:
    opened = editor.OpenFile("a.py", "x = 1\n", "h", line=1, active=True, mtime=12)
    blocks = editor.blocks([opened])
    first = additional(blocks, {})
    assert (
        '<file_contents path="a.py" mtime="12" lines="1-1" total_lines="1">\n1: x = 1\n</file_contents>'
        in first
    )
    assert "Path: a.py\nLine: 1\nLine content: x = 1" in first
    sent = {name: editor.digest(text) for name, text in blocks.items()}
    assert additional(blocks, sent) == ""
    moved = editor.blocks([editor.OpenFile("a.py", "x = 1\ny\n", "h", line=2, active=True, mtime=12)])
    assert "Line: 2" in additional(moved, sent)


def test_a_text_that_is_in_view_is_not_repeated_by_its_block() -> None:
    opened = editor.OpenFile("a.py", "x = 1\n", "h", active=True, mtime=12)
    short = editor.references([opened], {"a.py": "h"})["file:a.py"]
    assert short == '<file_contents path="a.py" mtime="12" lines="1-1" total_lines="1" unchanged="true"/>'
    assert editor.references([opened], {"a.py": "older"}) == {}


def test_a_huge_file_and_a_huge_line_are_bounded() -> None:
    line = "y" * 50_000_000
    blocks = editor.blocks([editor.OpenFile("a.py", line, "h", active=True)])
    assert sum(map(len, blocks.values())) < 10_000
    lines = "z = 1\n" * 200_000
    shown = editor.excerpt(editor.OpenFile("a.py", lines, "h", line=150_000, active=True))
    assert shown.first < 150_000 < shown.last and len(shown.lines) <= 400 and shown.total == 200_000
    assert not shown.whole


def test_only_the_active_file_is_sent_whole_and_unsaved_text_is_said() -> None:
    text = "".join(f"line {number}\n" for number in range(50))
    blocks = editor.blocks(
        [
            editor.OpenFile("a.py", text, "h", active=True, unsaved=True),
            editor.OpenFile("b.py", text, "h"),
        ]
    )
    assert 'lines="1-50" total_lines="50" unsaved="true"' in blocks["file:a.py"]
    assert 'lines="1-20" total_lines="50">' in blocks["file:b.py"]


def test_a_selection_is_sent_with_its_lines() -> None:
    opened = editor.OpenFile("a.py", "x\ny\n", "h", 2, selection="x\ny", first=1, last=2, active=True)
    blocks = editor.blocks([opened])
    assert blocks["manually_added_selection"] == (
        '<manually_added_selection path="a.py" lines="1-2">\nx\ny\n</manually_added_selection>'
    )


def test_the_table_says_what_became_of_each_file() -> None:
    def row(**fields: Any) -> str:
        return known_files.table_row(KnownFile("a|b.py", "9a906fd5909d0000", 3, 10, **fields), 4)

    assert row() == "| a\\|b.py | turn 3 | No | 9a906fd5909d |"
    assert "⚠️ Yes (turn 4)" in row(freshness="edited", modified_turn=4)
    assert "⚠️ Yes (on disk)" in row(freshness="disk")
    assert "| deleted |" in row(freshness="deleted")
    assert "| renamed to c.py |" in row(freshness="renamed", renamed_to="c.py")
    again = known_files.table_row(KnownFile("a.py", "9a906fd5909d", 4, 10, freshness="disk"), 4, again=True)
    assert "turn 4 (this turn)" in again and "⚠️ Yes (on disk), read again below" in again


def test_the_outline_is_bounded_and_says_what_it_left_out() -> None:
    paths = [f"folder{number:03}/deep/file.py" for number in range(500)]
    text = outline(Index(["README.md", *paths]), 100)
    assert text.startswith("README.md\nfolder000/ (1)")
    assert len(text) < 500
    assert text.splitlines()[-1].startswith("… and ")
    assert outline(Index(), 100) == ""


@pytest.mark.parametrize(("line", "content"), [(1, "one"), (2, "two"), (3, ""), (0, "")])
def test_the_block_of_the_active_file_names_its_line(line: int, content: str) -> None:
    file = editor.OpenFile("a.py", "one\ntwo\n", "m", active=True, line=line)
    block = editor.blocks([file])["current_file"]
    assert block == f"<current_file>\nPath: a.py\nLine: {line}\nLine content: {content}\n</current_file>"
