"""What of an older message gives way, and what stays."""

from __future__ import annotations

import json

import pytest

from tui_agent.context.budget import emptied
from tui_agent.context.known_files import table
from tui_agent.context.prompt import DirectoryListing
from tui_agent.context.prompt import listing_section as section
from tui_agent.model.parts import text_of

TABLE = table(["| a.py | turn 1 | No | 9a906fd5909d |"])
LISTED = section(
    [DirectoryListing("src", (("a.py", "file", 3),), 1), DirectoryListing("docs", (("b.md", "file", 3),), 1)]
)
FOUND = "## SEARCH RESULTS\n“x” in *.py\na.py:3: x = 1"
READ = '{"type": "read_files", "files": [{"path": "a.py", "md5": "9a", "lines": 1, "content": "1: x"}]}'
T, U = (f"### {name} (3 bytes, 1 lines, md5 9a)" for name in ("t.py", "u.py"))
BUNDLED = f"## AUTO-BUNDLED FILES\n{T}\nTests a.py\n1: y\n\n{U}\n1: z"
QUERY = "<user_query>\n## KNOWN FILES\nis what I ask about\n</user_query>"

LEFT = {
    TABLE: "",
    LISTED: "## DIRECTORY LISTING RESULTS\n### src\n### docs",
    FOUND: "## SEARCH RESULTS\n“x” in *.py\n(no longer shown)",
    READ: '{"type": "read_files", "files": [{"path": "a.py", "truncated": true}]}',
    BUNDLED: f"## AUTO-BUNDLED FILES\n{T}\n{U}",
    QUERY: QUERY,
}


@pytest.mark.parametrize("parts", [*((part,) for part in LEFT), (*LEFT,), (TABLE, QUERY), (LISTED, FOUND)])
def test_paths_and_words_stay(parts: tuple[str, ...]) -> None:
    left = [text for part in parts if (text := LEFT[part])]
    for role in ("user", "tool"):
        content = emptied({"role": role, "content": "\n\n".join(parts)})["content"]
        assert content == ("\n\n".join(left) or "(no longer shown)")


def test_what_the_turn_that_goes_on_has_listed_and_found_stays() -> None:
    message = {"role": "user", "content": "\n\n".join((TABLE, LISTED, FOUND, READ))}
    left = "\n\n".join((LISTED, FOUND, LEFT[READ]))
    assert emptied(message, answered=False)["content"] == left


def test_contents_of_older_proposals_go_unless_they_are_still_open() -> None:
    changes = [
        {"path": "a", "content": "long"},
        {"path": "b", "content": "open"},
        {"path": "c", "delete": True},
        {"path": "d", "edits": [], "diff": "x", "renameTo": "e"},
    ]
    message = {"role": "assistant", "content": json.dumps({"summary": "s", "fileChanges": changes})}
    left = json.loads(text_of(emptied(message, ["b"])))
    assert left == {
        "summary": "s",
        "fileChanges": [
            {"path": "a", "truncated": True},
            {"path": "b", "content": "open"},
            {"path": "c", "delete": True},
            {"path": "d", "renameTo": "e", "truncated": True},
        ],
    }
    for content in ("words", "[]", '{"fileChanges": 5}', '{"fileChanges": [5]}'):
        assert text_of(emptied({"role": "assistant", "content": content})) == content
