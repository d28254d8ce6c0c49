"""The tree of files: filled as it is opened, marked from the state, the same after the index changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.repositories import git, repository
from support.screens import Driven, on_screen

from tui_agent.context.known_files import KnownFile
from tui_agent.store.files import Buffer, BuffersSlice, KnownSlice
from tui_agent.store.state import State, WorkspaceSlice
from tui_agent.ui.panes.files import MOST, FileMark, FileTree, marks_of


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    (folder / "src" / "deep").mkdir(parents=True)
    (folder / "src" / "api.py").write_text("x\n")
    (folder / "src" / "deep" / "core.py").write_text("x\n")
    (folder / "[red]evil\x1b[0m\n.txt").write_text("x\n")
    (folder / "README.md").write_text("# Shop\n")
    return folder


async def ready(it: Driven) -> FileTree:
    await it.session.files.ready()
    await it.shows("README.md")
    await it.press("f3")
    return it.one(FileTree)


async def test_folders_come_first_and_are_filled_when_opened(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        tree = await ready(it)
        assert "▸ src" in it.text
        assert "api.py" not in it.text
        tree.go_to("src")
        await it.pilot.pause()
        await it.press("enter")
        await it.shows("api.py")
        assert "▸ deep" in it.text


async def test_enter_opens_a_file_in_the_editor(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        tree = await ready(it)
        tree.go_to("README.md")
        await it.pilot.pause()
        await it.press("enter")
        await it.until(lambda: it.session.state.buffers.active == "README.md")
        await it.until(lambda: it.session.state.layout.focus == "buffers")


async def test_names_from_outside_are_text(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await ready(it)
        await it.shows("[red]evil␛[0m␤.txt")


async def test_what_is_open_stays_open_when_the_index_changes(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        tree = await ready(it)
        tree.go_to("src/deep/core.py")
        await it.shows("core.py")
        revision = it.session.state.workspace.revision
        (workspace / "src" / "new.py").write_text("x\n")
        await it.until(lambda: it.session.state.workspace.revision > revision, "the new file")
        await it.shows("new.py")
        assert "core.py" in it.text
        await it.until(lambda: tree.current is not None and tree.current.path == "src/deep/core.py")


async def test_a_file_is_found_by_typing(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        await ready(it)
        await it.press("/", *"core")
        await it.shows("src/deep/core.py")
        await it.press("enter")
        await it.until(lambda: it.session.state.buffers.active == "src/deep/core.py")


async def test_a_file_is_mentioned_in_the_chat(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        tree = await ready(it)
        tree.go_to("src/api.py")
        await it.pilot.pause()
        await it.press("m")
        await it.until(lambda: it.session.state.input.draft == "@src/api.py ")
        await it.until(lambda: it.session.state.layout.focus == "chat")


async def test_a_folder_with_very_many_files_shows_the_first_and_says_so(tmp_path: Path) -> None:
    for n in range(MOST + 5):
        (tmp_path / f"f{n:05}.txt").touch()
    async with on_screen(tmp_path) as it:
        await it.session.files.ready()
        tree = it.one(FileTree)
        await it.until(lambda: len(tree.root.children) == MOST + 1)
        assert "and 5 more" in str(tree.root.children[-1].label)


def test_marks_say_git_known_stale_and_open() -> None:
    known = KnownFile("a.py", "0" * 32, 1, 10)
    stale = KnownFile("src/b.py", "0" * 32, 1, 10, freshness="disk")
    state = State(
        workspace=WorkspaceSlice(
            marks={"src/b.py": " M", "c.py": "A ", "d.py": "??", "e.py": "UU", "f.py": "MM", "g.py": "AA"}
        ),
        known=KnownSlice({"a.py": known, "src/b.py": stale}),
        buffers=BuffersSlice((Buffer("c.py", unsaved=True),)),
    )
    marks = marks_of(state)
    assert marks["a.py"].after == (("◆", "faint"),)
    assert (said(marks["src/b.py"]), marks["src/b.py"].after) == (" M", (("⚠", "stale"),))
    assert (said(marks["c.py"]), marks["c.py"].after) == ("A ", (("●", "warning"),))
    assert (said(marks["d.py"]), said(marks["e.py"]), said(marks["f.py"])) == (" ?", "UU", "MM")
    assert [colour for _, colour in marks["f.py"].git] == ["done", "stale"]
    assert [colour for _, colour in marks["g.py"].git] == ["failed", "failed"]
    assert said(marks["src"]) == " ·"


def said(mark: FileMark) -> str:
    return "".join(letter for letter, _ in mark.git)


async def test_what_is_staged_and_what_is_not_stand_beside_each_other(workspace: Path) -> None:
    repository(workspace, {})
    (workspace / "src" / "api.py").write_text("staged\n")
    (workspace / "README.md").write_text("staged\n")
    git(workspace, "add", "src/api.py", "README.md")
    (workspace / "src" / "api.py").write_text("and more\n")
    async with on_screen(workspace) as it:
        tree = await ready(it)
        await it.shows("M  README.md")
        tree.go_to("src/api.py")
        await it.shows("MM api.py")
