"""What the model gets to see: in one order, each part only when it has something to say."""

from __future__ import annotations

import json
from typing import Any

from tui_agent.context import editor, known, prompt
from tui_agent.context.known import KnownFile
from tui_agent.context.listing import Listing
from tui_agent.context.loaded import LoadedFile
from tui_agent.context.outline import outline

PLACE = prompt.Surroundings("/w", ".", "Linux", "a.py")
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


def test_the_newest_message_keeps_the_order_of_the_contract() -> None:
    news = prompt.News(
        query="Do it",
        rows=("| a.py | turn 1 | No | 9a906fd5909d |",),
        listings=(Listing("src", (("a.py", "file", 3),), 1),),
        memory="## AI Memory (Continuation Context)\n…",
        files=(loaded(),),
        editor_blocks={"current_file": "<current_file>\nPath: a.py\n</current_file>"},
    )
    text = prompt.user_text(news, {}, {})
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
    assert prompt.user_text(prompt.News(query="Hi"), {}, {}) == "<user_query>\nHi\n</user_query>"


def test_a_loaded_file_has_line_numbers_and_its_hash() -> None:
    result = json.loads(prompt.user_text(prompt.News(files=(loaded(),)), {}, {}))
    assert result == {
        "type": "read_files",
        "files": [
            {"path": "a.py", "md5": "9a906fd5909d0000", "lines": 2, "content": "1: import os\n2: x = 1"}
        ],
    }


def test_a_file_that_was_sent_and_is_unchanged_is_not_sent_again() -> None:
    result = json.loads(prompt.user_text(prompt.News(files=(loaded(),)), {"a.py": "9a906fd5909d0000"}, {}))
    assert "content" not in result["files"][0]
    changed = json.loads(prompt.user_text(prompt.News(files=(loaded(),)), {"a.py": "other"}, {}))
    assert "content" in changed["files"][0]


def test_an_editor_block_is_sent_once_while_it_stays_the_same() -> None:
    opened = editor.OpenFile("a.py", "x = 1\n", "h", line=1, active=True, mtime=12)
    blocks = editor.blocks([opened])
    first = editor.additional_data(blocks, {})
    assert (
        '<file_contents path="a.py" mtime="12" lines="1-1" total_lines="1">\n1: x = 1\n</file_contents>'
        in first
    )
    assert "Path: a.py\nLine: 1\nLine content: x = 1" in first
    sent = {name: editor.digest(text) for name, text in blocks.items()}
    assert editor.additional_data(blocks, sent) == ""
    moved = editor.blocks([editor.OpenFile("a.py", "x = 1\ny\n", "h", line=2, active=True, mtime=12)])
    assert "Line: 2" in editor.additional_data(moved, sent)


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
    blocks = editor.blocks([editor.OpenFile("a.py", "x\ny\n", "h", 1, 2, selection="x\ny", active=True)])
    assert blocks["manually_added_selection"] == (
        '<manually_added_selection path="a.py" lines="1-2">\nx\ny\n</manually_added_selection>'
    )


def test_the_table_says_what_became_of_each_file() -> None:
    def row(**fields: Any) -> str:
        return known.table_row(KnownFile("a|b.py", "9a906fd5909d0000", 3, 10, **fields), 4)

    assert row() == "| a\\|b.py | turn 3 | No | 9a906fd5909d |"
    assert "⚠️ Yes (turn 4)" in row(freshness="edited", modified_turn=4)
    assert "⚠️ Yes (on disk)" in row(freshness="disk")
    assert "| deleted |" in row(freshness="deleted")
    assert "| renamed to c.py |" in row(freshness="renamed", renamed_to="c.py")
    again = known.table_row(KnownFile("a.py", "9a906fd5909d", 4, 10, freshness="disk"), 4, again=True)
    assert "turn 4 (this turn)" in again and "⚠️ Yes (on disk), read again below" in again


def test_every_open_call_gets_a_result_and_the_first_one_the_content() -> None:
    results = prompt.tool_results(["a", "b"], "content", "see above")
    assert [(r["tool_call_id"], r["content"]) for r in results] == [("a", "content"), ("b", "see above")]


def test_the_outline_is_bounded_and_says_what_it_left_out() -> None:
    paths = [f"folder{number:03}/deep/file.py" for number in range(500)]
    text = outline(["README.md", *paths], 100)
    assert text.startswith("README.md\nfolder000/ (1)")
    assert len(text) < 500
    assert text.splitlines()[-1].startswith("… and ")
    assert outline([], 100) == ""
