"""Where the file system takes `A` and `a` for one name, two names of one file cost nobody anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.case import ignore_case
from support.sessions import open_session, reply

from tui_agent.errors import FileError
from tui_agent.files.batch import Step, write_batch
from tui_agent.files.blobs import Blobs
from tui_agent.files.gate import Gate, read

TEXT = "one\ntwo\nthree\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    (folder / "Src").mkdir(parents=True)
    (folder / "Src" / "A.py").write_text(TEXT)
    ignore_case(monkeypatch, folder)
    return folder


def files(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*.py")}


def test_a_path_is_spelled_as_the_disk_has_it(root: Path) -> None:
    gate = Gate(root)
    assert gate.ignore_case
    place = gate.place("src/a.PY", "write")
    assert (place.path, place.real, place.exists) == ("Src/A.py", "Src/A.py", True)
    assert read(gate, "SRC/a.py", 100) == TEXT.encode()
    assert gate.place("src/new.py", "write").path == "Src/new.py"


def test_a_batch_writes_no_file_twice_under_two_names(root: Path, tmp_path: Path) -> None:
    gate, blobs = Gate(root), Blobs(tmp_path / "blobs")
    for names in (("Src/A.py", "src/a.py"), ("New.py", "new.py")):
        steps = [Step(name, b"x", None) for name in names]
        with pytest.raises(FileError, match="is twice"):
            write_batch(gate, tmp_path / "journal", blobs, steps)
    assert files(root) == {"Src/A.py": TEXT}


async def test_edits_under_another_case_change_the_file_that_is_there(root: Path) -> None:
    edit = {"path": "src/a.py", "edits": [{"search": "two", "replace": "TWO"}]}
    async with open_session(root, [reply("One.", fileChanges=[edit])]) as session:
        await session.chat.submit("Change Src/A.py")
        await session.chat.finished()
        assert [(change.path, change.kind) for change in session.state.review.open] == [("Src/A.py", "edit")]
        await session.review.apply()
        assert files(root) == {"Src/A.py": TEXT.replace("two", "TWO")}
        await session.review.undo()
    assert files(root) == {"Src/A.py": TEXT}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"path": "Src/A.py", "content": "1\n"}, {"path": "src/a.py", "content": "2\n"}),
        ({"path": "New.py", "content": "1\n"}, {"path": "new.py", "content": "2\n"}),
    ],
)
async def test_a_second_name_of_one_file_in_a_reply_is_refused_and_the_model_is_told(
    root: Path, first: dict[str, str], second: dict[str, str]
) -> None:
    async with open_session(root, [reply("Two.", fileChanges=[first, second])]) as session:
        await session.chat.submit("Change Src/A.py")
        await session.chat.finished()
        one, other = session.state.review.changes
        assert (one.state, other.state) == ("pending", "failed")
        assert "are one file here" in other.reason
        assert any("are one file here" in fact for fact in session.state.conversation.untold)
        assert files(root) == {"Src/A.py": TEXT}


async def test_a_new_file_in_another_case_of_one_that_is_there_waits_for_review(root: Path) -> None:
    change = {"path": "src/a.py", "content": "new\n"}
    async with open_session(root, [reply("New.", fileChanges=[change])]) as session:
        await session.chat.submit("Make a module")
        await session.chat.finished()
        (held,) = session.state.review.open
        assert (held.path, held.kind) == ("Src/A.py", "edit")
        assert "not at all" in held.ask
    assert files(root) == {"Src/A.py": TEXT}
