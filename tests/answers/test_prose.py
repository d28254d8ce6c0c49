"""Changes in prose: what is certain is a change, everything else stays words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.edit_requests import hunks

from tui_agent.answers import prose
from tui_agent.answers.values import ChangeRequest, EditHunk, ShownText

DIFF = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1,2 +1,2 @@\n x\n-a\n+b\n"
ENVELOPE = """*** Begin Patch
*** Add File: new.py
+one
+two
*** Update File: src/a.py
*** Move to: src/b.py
@@ def f():
-a
+b
*** Delete File: old.py
*** End Patch
"""


@pytest.mark.parametrize(
    "opening",
    [
        "```python src/a.py",
        "```src/a.py",
        "```python:src/a.py",
        '```python title="src/a.py"',
        "```py filename=src/a.py",
        "~~~python src/a.py",
        "**src/a.py**\n```python",
        "`src/a.py`\n\n```python",
        "### src/a.py\n```",
        "### File: `src/a.py`\n```python",
        "src/a.py:\n```python",
        "New file: **`src/a.py`**\n```python",
    ],
)
def test_a_fence_that_names_its_path_is_content(opening: str) -> None:
    close = "~~~" if "~~~" in opening else "```"
    found = prose.changes(f"Here you are.\n\n{opening}\nx = 1\n\ny = 2\n{close}\nDone.")
    labelled = not opening.startswith(("```", "~~~"))
    request = ChangeRequest("src/a.py", content="x = 1\n\ny = 2\n", fenced=True, labelled=labelled)
    assert found.changes == (request,)


@pytest.mark.parametrize(
    "text",
    [
        "```python\nx = 1\n```",
        "Look at src/a.py, where it says:\n```python\nx = 1\n```",
        "Run this:\n```bash\nmake test\n```",
        "```console src/a.py\n$ ls\n```",
        "**Important**\n```python\nx = 1\n```",
        "1.5\n```\nx\n```",
        "### Node.js\n```js\nx\n```",
        "No fence at all: a/b.py",
        "--- \n\n+++ not a diff",
        "```diff\n",
        "",
    ],
)
def test_other_fences_are_no_changes(text: str) -> None:
    assert prose.changes(text).changes == ()


def test_a_diff_fence_is_a_change_for_each_file() -> None:
    text = "```diff\n" + DIFF + DIFF.replace("src/a", "src/c") + "```"
    assert [change.path for change in prose.changes(text).changes] == ["src/a.py", "src/c.py"]
    assert prose.changes(text).changes[0].diff == hunks("@@ -1,2 +1,2 @@\n x\n-a\n+b")


def test_a_bare_diff_in_prose_is_a_change() -> None:
    found = prose.changes(f"This does it:\n\n{DIFF}\nThat is all.")
    assert [(change.path, change.diff) for change in found.changes] == [
        ("src/a.py", hunks("@@ -1,2 +1,2 @@\n x\n-a\n+b"))
    ]


def test_a_diff_without_a_name_is_shown() -> None:
    diff = "@@ -1,2 +1,2 @@\n x\n-a\n+b\n"
    found = prose.changes(f"What changes is this:\n\n```diff\n{diff}```")
    assert (found.changes, found.refused, found.faults) == ((), (), ())
    assert found.shown == (ShownText(diff, hunks(diff)),)


@pytest.mark.parametrize(
    "text", [ENVELOPE, f"So:\n\n{ENVELOPE}\nDone.", f"```\n{ENVELOPE}```", f"```patch\n{ENVELOPE}```"]
)
def test_an_envelope_is_a_change_for_each_file(text: str) -> None:
    added, updated, deleted = prose.changes(text).changes
    assert added == ChangeRequest("new.py", content="one\ntwo\n", fresh=True)
    assert (updated.path, updated.rename_to, updated.diff) == (
        "src/a.py",
        "src/b.py",
        hunks("@@ def f():\n-a\n+b"),
    )
    assert deleted == ChangeRequest("old.py", delete=True)


def test_an_envelope_without_its_end_loses_the_last_file() -> None:
    found = prose.changes(ENVELOPE.replace("*** End Patch\n", ""), cut=True)
    assert [change.path for change in found.changes] == ["new.py", "src/a.py"]
    assert "does not end" in found.faults[0]


def test_search_blocks_are_edits() -> None:
    blocks = [
        f"<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n"
        for old, new in (("old\n", "new\n"), ("gone\n", ""))
    ]
    text = "src/a.py\n```python\n" + "\n".join(blocks) + "```"
    edits = (EditHunk("old\n", "new\n", whole=True), EditHunk("gone\n", "", whole=True))
    assert prose.changes(text).changes == (ChangeRequest("src/a.py", edits=edits, fenced=True),)


def test_an_incomplete_search_block_is_a_fault() -> None:
    found = prose.changes("src/a.py\n```\n<<<<<<< SEARCH\nold\n=======\nnew\n```")
    assert (found.changes, len(found.faults)) == ((), 1)


def test_a_fence_that_was_not_closed_is_a_fault() -> None:
    found = prose.changes("```python src/a.py\nx = 1\n", cut=True)
    assert found.changes == ()
    assert "src/a.py" in found.faults[0]


def test_a_fence_with_fences_inside_has_no_certain_end() -> None:
    found = prose.changes("```markdown README.md\n# A\n```bash\nmake\n```\nmore\n```\n")
    assert found.changes == ()
    assert "README.md" in found.faults[0]
    longer = prose.changes("````markdown README.md\n# A\n```bash\nmake\n```\nmore\n````\n")
    assert longer.changes[0].content == "# A\n```bash\nmake\n```\nmore\n"


@given(st.text(alphabet="`~ab/.\n*#-+@ <>=SEARCH", max_size=200), st.booleans())
def test_nothing_raises(text: str, cut: bool) -> None:
    prose.changes(text, cut)


@pytest.mark.parametrize("end", ["", "@", "@@", "\n@@ -9", "-", "--- ", "d", "\ndiff --gi"])
def test_a_cut_diff_that_may_go_on_is_dropped(end: str) -> None:
    assert not prose.changes(DIFF + end, cut=True).changes
    assert prose.changes(DIFF + "\nThis is", cut=True).changes


def test_cut_at_every_character_nothing_incomplete_is_found() -> None:
    text = f"Do this:\n\n```python src/z.py\nx = 1\n```\n\n{ENVELOPE}"
    whole = prose.changes(text).changes
    for end in range(len(text)):
        assert set(prose.changes(text[:end], cut=True).changes) <= set(whole)


def test_hostile_prose_takes_time_in_proportion() -> None:
    for text in ("```\n" * 100_000, "`" * 500_000, "--- a\n+++ b\n" * 50_000, "*** Begin Patch\n" * 50_000):
        assert prose.changes(text).changes == ()


def test_an_envelope_that_is_talked_about_is_none() -> None:
    assert prose.changes("The `*** Begin Patch` form:\n\n- one\n- two\n") == prose.ProseChanges()


def test_a_diff_in_text_whose_lines_lack_their_blank_is_not_taken_in_part() -> None:
    diff = "--- a/a.py\n+++ b/a.py\n@@ -1,4 +1,5 @@\n import a\n+import b\n \nx = 1\ny = 2\n"
    found = prose.changes(f"{diff}@@ -9,2 +10,2 @@\nz = 1\n-w = 2\n+w = 3\n\nDone.")
    assert not found.changes
    assert "a.py" in [refusal.path for refusal in found.refused]


@pytest.mark.parametrize("language", ["Dockerfile", "Makefile"])
def test_a_file_name_that_is_a_language_alone_names_no_file(language: str) -> None:
    assert prose.changes(f"You can pack it like this.\n\n```{language}\nFROM x\n```\n").changes == ()
    assert [one.path for one in prose.changes(f"```text {language}\nFROM x\n```\n").changes] == [language]
