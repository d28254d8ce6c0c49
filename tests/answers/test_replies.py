"""Answers as models and other tools write them, read and placed: the intended files, or a refusal that is told."""

from __future__ import annotations

import hashlib
import json
from itertools import count

import pytest
from support.replies import DIFF, DONE, FILES, NEW, READ, REFUSED, SHOWN, Sample
from support.shapes import FUNCTIONS, RESPONSE

from tui_agent.answers.structured_reader import StructuredReader
from tui_agent.answers.tools_reader import ToolsReader
from tui_agent.answers.values import Reply
from tui_agent.edits.proposals import propose
from tui_agent.model.client import CallChunk


def structured(text: str, cut: bool = False) -> Reply:
    reader = StructuredReader(RESPONSE, FUNCTIONS)
    reader.feed(text)
    return reader.finish(cut)


def tools(text: str, cut: bool = False) -> Reply:
    reader = ToolsReader(RESPONSE, FUNCTIONS)
    reader.feed(text)
    return reader.finish(cut)


def called(*calls: object) -> Reply:
    reader = ToolsReader(RESPONSE, FUNCTIONS)
    for index, changes in enumerate(calls):
        reader.call(CallChunk(index, f"c{index}", "propose_changes", json.dumps({"changes": changes})))
    return reader.finish(False)


def applied(reply: Reply, files: dict[str, str]) -> tuple[dict[str, str], str]:
    """The files once all that needs no hand is applied, and everything that is told."""
    after, said = dict(files), [*reply.faults, *(one.sentence for one in reply.refused)]
    texts: dict[str, str] = {}

    def put(text: str) -> str:
        key = hashlib.md5(text.encode()).hexdigest()
        texts[key] = text
        return key

    for number, request in enumerate(reply.changes, 1):
        base = files.get(request.path)
        change = propose(request, 1, number, base, put(base) if base is not None else "", put)
        if change.state != "pending" or change.ask:
            said.append(f"{change.path}: {change.reason}")
            continue
        after.pop(change.path, None)
        if change.kind != "delete":
            after[change.rename_to or change.path] = texts[change.new]
    return after, "\n".join(said)


def expected(sample: Sample) -> dict[str, str]:
    return {path: text for path, text in (sample.files | sample.after).items() if text is not None}


@pytest.mark.parametrize("sample", READ, ids=lambda sample: sample.name)
@pytest.mark.parametrize("dialect", [structured, tools])
def test_what_is_certain_is_read(sample: Sample, dialect: type) -> None:
    after, said = applied(dialect(sample.text), sample.files)
    assert after == expected(sample), said
    assert said == ""


@pytest.mark.parametrize("sample", REFUSED, ids=lambda sample: sample.name)
@pytest.mark.parametrize("dialect", [structured, tools])
def test_what_is_not_is_refused_and_told(sample: Sample, dialect: type) -> None:
    after, said = applied(dialect(sample.text), sample.files)
    assert after == expected(sample), said
    assert sample.said in said, said


@pytest.mark.parametrize("sample", SHOWN, ids=lambda sample: sample.name)
def test_what_is_only_shown_is_no_change_and_not_told(sample: Sample) -> None:
    reply = tools(sample.text)
    assert (reply.changes, reply.refused, reply.faults) == ((), (), ())


@pytest.mark.parametrize("sample", READ, ids=lambda sample: sample.name)
def test_a_cut_answer_never_gives_another_file(sample: Sample) -> None:
    """Cut after any line, told or not: each file is as it was, or as it should be, or part of that was refused."""
    wanted = expected(sample)
    lines = sample.text.splitlines(keepends=True)
    for cut in (True, False):
        for end in range(len(lines)):
            after, said = applied(tools("".join(lines[:end]), cut), sample.files)
            for path in {*after, *wanted} - {"x"}:
                text = after.get(path)
                steps = (sample.files.get(path), wanted.get(path))
                assert text in steps or "then" in sample.name or _is_part(sample, end), (cut, end, path, said)


def _is_part(sample: Sample, end: int) -> bool:
    """Whether a whole change of several is read there already."""
    return (
        sample.text.count("SEARCH") > 1
        or sample.text.count("+++ ") > 1
        or sample.text.count("Update File") > 1
    )


@pytest.mark.parametrize(
    "form",
    [
        {"content": "", "edits": [], "diff": "", "delete": False, "renameTo": ""},
        {"content": "", "edits": [{"search": "", "replace": ""}], "diff": "", "delete": False},
        {"edits": []},
        {"edits": [], "content": ""},
        {"content": "", "renameTo": "old.txt"},
        {"content": ""},
        {"content": " \n"},
        {"content": "<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n"},
        {"content": "```\nnew\n```\n"},
        {"content": "--- a/old.txt\n+++ b/old.txt\n@@ -1 +1 @@\n-old\n+new\n"},
        {"content": "*** Begin Patch\n*** Update File: old.txt\n-old\n+new\n*** End Patch\n"},
        {"diff": "--- a/old.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n", "content": "x"},
    ],
    ids=count(),
)
def test_an_entry_that_is_empty_or_holds_an_edit_as_content_changes_nothing(form: dict[str, object]) -> None:
    entry = {"path": "old.txt", "baseHash": "", "todoIndex": 0} | form
    for reply in (structured(json.dumps({"summary": "S", "fileChanges": [entry]})), called([entry])):
        after, said = applied(reply, FILES)
        assert after == FILES
        assert "old.txt" in said


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ([{"diff": DIFF}, {"edits": [{"search": "import os", "replace": "import sys"}]}], NEW.replace("import os", "import sys")),
        ([{"edits": [{"search": "import os", "replace": "import sys"}]}, {"diff": DIFF}], NEW.replace("import os", "import sys")),
        ([{"edits": [{"search": "import os", "replace": "import sys"}]}, {"edits": [{"search": "import sys", "replace": "import re"}]}, {"diff": DIFF}], NEW.replace("import os", "import re")),
        ([{"content": NEW}, {"edits": [{"search": "import os", "replace": "import sys"}]}], NEW.replace("import os", "import sys")),
        ([{"delete": True}, {"content": NEW}], NEW),
        ([{"diff": DIFF}, {"diff": DIFF}], NEW),
    ],
    ids=count(),
)  # fmt: skip
def test_entries_about_one_file_are_joined_in_order(entries: list[dict[str, object]], text: str) -> None:
    named: list[dict[str, object]] = [{"path": "src/app.py"} | entry for entry in entries]
    once = structured(json.dumps({"summary": "S", "fileChanges": named}))
    for reply in (once, called(named), called(*([entry] for entry in named))):
        after, said = applied(reply, FILES)
        assert (after, said) == (FILES | {"src/app.py": text}, "")


def test_a_renamed_file_is_edited_under_its_new_name() -> None:
    moves = {"path": "src/app.py", "renameTo": "src/main.py"}
    for path in ("src/app.py", "src/main.py"):
        after, said = applied(called([moves], [{"path": path, "diff": DIFF}]), FILES)
        assert (after.get("src/main.py"), "src/app.py" in after, said) == (NEW, False, "")


def test_a_change_in_the_text_that_is_not_among_the_called_ones_is_told() -> None:
    reader = ToolsReader(RESPONSE, FUNCTIONS)
    reader.feed(f"I also changed this:\n\n```python extra.py\nx = 1\n```\n\n```diff\n{DIFF}```\n")
    changes = [{"path": "src/app.py", "diff": DIFF}]
    reader.call(CallChunk(0, "c", "propose_changes", json.dumps({"changes": changes})))
    after, said = applied(reader.finish(False), FILES)
    assert after == FILES | DONE
    assert "extra.py" in said and "src/app.py" not in said


def test_a_change_in_the_message_of_an_object_is_read() -> None:
    after, _ = applied(
        structured(json.dumps({"summary": "S", "message": f"So:\n\n```diff\n{DIFF}```\n"})), FILES
    )
    assert after == FILES | DONE
