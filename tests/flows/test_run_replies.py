"""Answers in many forms through the whole program: `run --apply all` writes the intended file, or refuses it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.program import json_lines, of_type, run
from support.recordings import recorded
from support.replies import DIFF, FILES, NEW, READ, REFUSED
from support.sessions import calls, in_pieces

from tui_agent.model.client import Chunk
from tui_agent.turn.request import GO_ON

#: What the model says when it is asked to correct itself.
GIVEN_UP = ("I cannot do better.",) * 6
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
        (tmp_path / "work" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "work" / name).write_text(text)
    return tmp_path / "work"


def go(work: Path, protocol: str, *answers: str | Sequence[Chunk]) -> tuple[int, list[dict], dict[str, str]]:
    """The exit status, the JSON lines and the files after a turn that applies all.

    The answers come from a recording, in pieces: how a provider's come is tried in `tests/model`.
    """
    asks = (
        calls(("read_files", {"actions": ASKS["fileRequests"]})) if protocol == "tools" else json.dumps(ASKS)
    )
    said = [in_pieces(one) if isinstance(one, str) else one for one in (asks, *answers, *GIVEN_UP)]
    words = ["Change it"] + [GO_ON if protocol == "structured" else "Change it"] * len(said)
    exchanges = zip(words, said, strict=False)
    recording = recorded(work.parent / "recording.jsonl", *exchanges, protocol=protocol)
    done = run("run", "--json", "--apply", "all", "--replay", str(recording), "Change it", folder=work)
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
    made = calls(*(("propose_changes", {"changes": [one]}) for one in changes), text="Done.")
    status, lines, files = go(work, "tools", made)
    assert (status, files) == (0, FILES | {"src/app.py": NEW.replace("import os", "import sys")}), lines


@pytest.mark.parametrize(
    ("entry", "state", "reason"),
    [(EMPTY, "failed", ""), ({"path": "src/app.py", "content": ""}, "pending", "empties")],
    ids=["an empty entry is refused", "empty content waits for the person"],
)
def test_nothing_is_written_of(work: Path, entry: dict, state: str, reason: str) -> None:
    status, lines, files = go(work, "structured", json.dumps({"summary": "Done.", "fileChanges": [entry]}))
    assert (status, files) == (1, FILES)
    changes = of_type(lines, "change")
    assert {line["state"] for line in changes} == {state}, lines[-1]
    assert reason in changes[-1]["reason"]
