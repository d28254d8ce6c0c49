"""The way back from a view: what a command left is read below its folder alone, bounded, and never at our cost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.views import Runner, in_view, on_a_copy, text

from tui_agent.trial import beneath
from tui_agent.trial.beneath import Beneath

VIEWS = pytest.mark.parametrize("view", [in_view, on_a_copy], ids=["overlay", "landlock"])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace below a folder that holds a person's other files."""
    root = tmp_path / "person" / "projects" / "work"
    root.mkdir(parents=True)
    (tmp_path / "person" / "letters").mkdir()
    (tmp_path / "person" / "letters" / "private.txt").write_text("CANARY")
    (root / "a.txt").write_text("old\n")
    os.symlink("../..", root / "docs")
    return root


@VIEWS
@pytest.mark.parametrize(
    "command",
    [
        "rm docs; mkdir -p docs/letters",
        "rm docs; mkdir -p docs/letters/private.txt",
        "rm docs; mkdir docs; echo x > docs/letters",
        "rm docs; mkdir -p docs/letters; echo CANARY > docs/letters/private.txt",
        "rm docs; mkdir -p docs/letters; rmdir docs/letters; mkdir docs/letters",
    ],
)
async def test_a_folder_in_the_place_of_a_link_is_not_compared_with_what_the_link_led_to(
    root: Path, view: Runner, command: str
) -> None:
    result = await view(root, command)
    assert result.status == 0, text(result)
    found = {one.path: one for one in result.changes}
    assert found.pop("docs").kind == "deleted"
    # all that is there is what the command wrote, as new, without anything of the person's other files
    assert {one.kind for one in found.values()} <= {"new"}, found
    assert set(found) <= {"docs/letters", "docs/letters/private.txt"}


@pytest.mark.parametrize("kernel", ["openat2", "without"])
def test_nothing_is_reached_through_a_link(root: Path, monkeypatch: pytest.MonkeyPatch, kernel: str) -> None:
    if kernel == "without":
        monkeypatch.setattr(beneath, "_openat2_here", lambda root: False)
    (root / "folder" / "inner").mkdir(parents=True)
    (root / "folder" / "inner" / "b.txt").write_text("b")
    os.symlink("folder", root / "inside")
    os.symlink("../../letters/private.txt", root / "file")
    with Beneath(str(root)) as below:
        for path in ("docs/letters", "docs/letters/private.txt", "inside/inner", "inside/inner/b.txt"):
            assert below.status(path) is None, path
            assert below.names(path) == []
            assert below.target(path) is None
        for path in ("file", "docs", "folder", "docs/letters/private.txt", "inside/inner/b.txt"):
            with pytest.raises(OSError):
                below.open(path)
        for path in (
            "../letters",
            "folder/../../../letters/private.txt",
            "..",
            "/etc/passwd",
            "folder/..",
            "",
        ):
            assert below.status(path) is None, path
        assert below.names("docs") == below.names("inside") == []
        assert below.target("docs") == "../.."
        assert below.names("") == ["a.txt", "docs", "file", "folder", "inside"]
        assert below.names("folder/inner") == ["b.txt"]
        with open(below.open("folder/inner/b.txt")) as file:
            assert file.read() == "b"
