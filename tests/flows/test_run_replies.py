"""Answers in many forms through the whole program: `run --apply all` writes the intended file, or refuses it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.openai_wire import Answer, ToolCall
from support.program import json_lines, of_type, run
from support.provider import Provider
from support.replies import DIFF, FILES, NEW, READ, REFUSED

BY_NAME = {sample.name: sample for sample in (*READ, *REFUSED)}
READS = {"path": "src/app.py", "edits": [{"search": "import os", "replace": "import sys"}]}
EMPTY = {"path": "src/app.py", "content": "", "edits": [], "diff": "", "delete": False, "renameTo": ""}
ASKS = {
    "summary": "Needs the files.",
    "fileRequests": [{"name": "All", "patterns": ["src/app.py", "README.md"]}],
}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def go(work: Path, protocol: str, *answers: str | Answer) -> tuple[int, list[dict], dict[str, str]]:
    """The exit status, the JSON lines and the files after a turn that applies all."""
    with Provider() as provider:
        asks: str | Answer = json.dumps(ASKS)
        if protocol == "tools":
            asks = Answer(calls=(ToolCall("read_files", {"actions": ASKS["fileRequests"]}),))
        provider.answer(asks, *answers)
        provider.otherwise = Answer("I cannot do better.")
        done = run(
            "run", "--json", "--apply", "all", "--model", "openai/test-model", "--protocol", protocol,
            "Change it", folder=work, environment=provider.environment,
        )  # fmt: skip
    files = {str(path.relative_to(work)): path.read_text() for path in work.rglob("*") if path.is_file()}
    return done.returncode, json_lines(done), {name: text for name, text in files.items() if name[0] != "."}


@pytest.mark.parametrize(
    ("protocol", "name"),
    [
        ("structured", "a block indented in a list"),
        ("tools", "git renames and changes"),
    ],
)
def test_a_form_that_is_certain_is_applied(work: Path, protocol: str, name: str) -> None:
    sample = BY_NAME[name]
    status, lines, files = go(work, protocol, sample.text)
    assert files == {path: text for path, text in (FILES | sample.after).items() if text is not None}, lines
    assert status == 0


@pytest.mark.parametrize(
    ("protocol", "name"),
    [
        ("structured", "an extra divider at the end"),
        ("tools", "Markdown cut at its own fence"),
    ],
)
def test_one_that_is_not_is_refused_by_name(work: Path, protocol: str, name: str) -> None:
    sample = BY_NAME[name]
    status, lines, files = go(work, protocol, sample.text)
    assert files == FILES
    assert status == 1
    [change, *_] = of_type(lines, "change")
    assert change["state"] == "failed" and change["reason"], change
    assert any(change["path"] in line["text"] for line in of_type(lines, "notice"))


def test_entries_of_several_calls_about_one_file_are_joined(work: Path) -> None:
    changes = [{"path": "src/app.py", "diff": DIFF}, READS]
    calls = tuple(ToolCall("propose_changes", {"changes": [one]}, f"c{n}") for n, one in enumerate(changes))
    status, lines, files = go(work, "tools", Answer("Done.", calls=calls))
    assert (status, files) == (0, FILES | {"src/app.py": NEW.replace("import os", "import sys")}), lines


def test_an_empty_entry_is_refused_and_empty_content_waits_for_the_person(work: Path) -> None:
    empty = {"summary": "Done.", "fileChanges": [EMPTY]}
    emptied = {"summary": "Emptied.", "fileChanges": [{"path": "src/app.py", "content": ""}]}
    status, lines, files = go(work, "structured", json.dumps(empty), json.dumps(emptied))
    assert (status, files) == (1, FILES)
    changes = of_type(lines, "change")
    assert {line["state"] for line in changes} == {"failed", "pending"}
    assert "empties" in changes[-1]["reason"]
