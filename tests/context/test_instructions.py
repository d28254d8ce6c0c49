"""Instruction files by what was read and changed: in order, once, told when they come, change and go."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.repositories import repository
from support.sessions import model_of, open_session, reply
from support.trees import make_tree

from tui_agent.context.prompt import ContextFile, changed_files, instructions_section
from tui_agent.session.session import Session
from tui_agent.turn.instructions import folders


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return make_tree(
        tmp_path / "work",
        {
            "AGENTS.md": "Root rules.\n",
            "CLAUDE.md": "Not the first name.\n",
            "src/TUI_AGENT.md": "Rules of src.\n",
            "src/deep/AGENTS.md": "Rules of deep.\n",
            "src/deep/a.py": "a = 1\n",
            "other/AGENTS.md": "Rules of other.\n",
            "other/b.py": "b = 1\n",
        },
    )


async def turn(session: Session, request: str) -> str:
    """Do a turn; the newest message of its request."""
    await session.chat.submit(request)
    await session.chat.finished()
    assert session.state.turn.ok, session.state.turn.error
    return model_of(session).requests[-1].messages[-1]["content"]


def contexts(text: str) -> list[str]:
    return re.findall(r'<context filename="([^"]+)">', text)


def system(session: Session) -> str:
    return model_of(session).requests[-1].messages[0]["content"]


async def test_the_general_stand_first_and_the_nearest_last(workspace: Path, home: Path) -> None:
    make_tree(home / "config", {"AGENTS.md": "My own rules.\n"})
    async with open_session(workspace, [reply()]) as session:
        await turn(session, "Look at src/deep/a.py")
        names = contexts(system(session))
        assert names == [
            str(home / "config/AGENTS.md"),
            "AGENTS.md",
            "src/TUI_AGENT.md",
            "src/deep/AGENTS.md",
        ]
        assert '<context filename="AGENTS.md">\nRoot rules.\n</context>' in system(session)
        rows = {row.path: row for row in session.state.instructions}
        assert (rows["src/TUI_AGENT.md"].folder, rows["src/TUI_AGENT.md"].why) == ("src", "for src/deep/a.py")
        assert "Instructions in force" in session.state.notices.items[0].text


async def test_what_comes_changes_and_goes_is_told_in_the_newest_message(workspace: Path) -> None:
    async with open_session(workspace, [reply()] * 6) as session:
        first = await turn(session, "Hello")
        before = system(session)
        assert contexts(before) == ["AGENTS.md"] and contexts(first) == []
        assert contexts(await turn(session, "Look at src/deep/a.py")) == [
            "src/TUI_AGENT.md",
            "src/deep/AGENTS.md",
        ]
        (workspace / "AGENTS.md").write_text("New root rules.\n")
        assert "New root rules." in await turn(session, "And now?")
        assert contexts(await turn(session, "And now?")) == []
        (workspace / "src/TUI_AGENT.md").unlink()
        assert "No longer in force: src/TUI_AGENT.md" in await turn(session, "And now?")
        assert "No longer" not in await turn(session, "And now?")
        assert system(session) == before


async def test_a_base_file_that_changes_is_told_too(workspace: Path) -> None:
    (workspace / "knowledge.md").write_text("Known.\n")
    async with open_session(workspace, [reply()] * 2) as session:
        await turn(session, "Hello")
        assert contexts(system(session)) == ["AGENTS.md", "knowledge.md"]
        (workspace / "knowledge.md").write_text("Known better.\n")
        assert '<context filename="knowledge.md">\nKnown better.' in await turn(session, "And now?")


async def test_what_must_be_left_alone_is_and_the_person_sees_why(tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("From outside.\n")
    files = dict.fromkeys(("big/a.py", "binary/a.py", "link/a.py", "ignored/a.py", "out/a.py"), "x = 1\n")
    work = repository(tmp_path / "work", files | {".gitignore": "/ignored/AGENTS.md\n"})
    (work / "big/AGENTS.md").write_text("big " * 2_500_000)
    (work / "binary/AGENTS.md").write_bytes(b"\0\1\2")
    (work / "link/AGENTS.md").symlink_to(outside)
    (work / "ignored/AGENTS.md").write_text("Ignored.\n")
    (work / "out/AGENTS.md").write_text("Excluded.\n")
    async with open_session(work, [reply()], overrides=['instructions.exclude=["out/*"]']) as session:
        await turn(session, "Look at big/a.py, binary/a.py, link/a.py, ignored/a.py and out/a.py")
        assert contexts(system(session)) == []
        left_out = {row.path: row.left_out for row in session.state.instructions}
        assert sorted(left_out) == [
            f"{name}/AGENTS.md" for name in ("big", "binary", "ignored", "link", "out")
        ]
        assert left_out["ignored/AGENTS.md"] == "ignored by git"
        assert "exclude" in left_out["out/AGENTS.md"] and "limit" in left_out["big/AGENTS.md"]
        assert "outside" not in str(model_of(session).requests[-1].messages)


async def test_where_one_is_left_alone_the_next_name_counts(workspace: Path) -> None:
    async with open_session(
        workspace, [reply()], overrides=['instructions.exclude=["AGENTS.md"]']
    ) as session:
        await turn(session, "Hello")
        assert contexts(system(session)) == ["CLAUDE.md"]


async def test_each_counts_once_by_its_real_path_and_an_empty_one_for_nothing(
    workspace: Path, home: Path
) -> None:
    make_tree(home / "config", {"AGENTS.md": " \n", "TUI_AGENT.md": "My own rules.\n"})
    (workspace / "AGENTS.md").write_text("")
    for link, target in (("src/deep/AGENTS.md", "../../CLAUDE.md"), ("knowledge.md", "src/TUI_AGENT.md")):
        (workspace / link).unlink(missing_ok=True)
        (workspace / link).symlink_to(target)
    async with open_session(workspace, [reply()] * 2) as session:
        await turn(session, "Look at src/deep/a.py")
        names = [str(home / "config/TUI_AGENT.md"), "CLAUDE.md", "src/TUI_AGENT.md"]
        assert contexts(system(session)) == names
        (workspace / "CLAUDE.md").write_text("\n")
        text = await turn(session, "And now?")
        assert "No longer in force: CLAUDE.md" in text and contexts(text) == []


async def test_one_that_is_too_big_is_named_wherever_it_is(workspace: Path, home: Path) -> None:
    make_tree(home / "config", {"AGENTS.md": "x " * 40_000})
    (workspace / "AGENTS.md").write_text("x " * 40_000)
    (workspace / "big.md").write_text("x " * 40_000)
    for number in range(12):
        (workspace / f"k{number:02}.txt").write_text("Known.\n")
    async with open_session(workspace, [reply()], overrides=['base_files=["k*", "b*"]']) as session:
        await turn(session, "Hello")
        left_out = {row.path: row.left_out for row in session.state.instructions if row.left_out}
        big = [str(home / "config/AGENTS.md"), "AGENTS.md", "big.md"]
        assert sorted(left_out) == sorted([*big, "k09.txt", "k10.txt", "k11.txt"])
        assert all(re.search(r"limit|more than 65,536 bytes", left_out[path]) for path in big)
        said = " ".join(notice.text for notice in session.state.notices.items)
        assert all(f"Instructions in {path} are ignored" in said for path in left_out)
        assert contexts(system(session)) == ["CLAUDE.md", *(f"k{number:02}.txt" for number in range(9))]


async def test_memory_comes_with_continue_and_is_shown(workspace: Path) -> None:
    todos = [{"text": "Add timeouts", "aiText": "in a.py"}, {"text": "Test them"}]
    change = {"path": "src/deep/a.py", "todoIndex": 0, "content": "a = 2\n"}
    replies = [reply("Sets a.", todos=todos, fileChanges=[change]), reply("Going on."), reply(), reply()]
    async with open_session(workspace, replies) as session:
        await turn(session, "Set a in src/deep/a.py,\nand keep it short")
        await session.review.apply()
        (workspace / "src/deep/a.py").write_text("a = 3\n")
        text = await turn(session, "Go on.")
        memory = text[text.index("## AI Memory (Continuation Context)") :]
        for words in (
            "Turn: 2",
            "Last request, word for word:\nSet a in src/deep/a.py,\nand keep it short",
            "Last summary: Sets a.",
            "Done todos:\n- Add timeouts: in a.py",
            "Open todos:\n- Test them",
            "Files that need a refresh",
            "turn 1: src/deep/a.py",
            "Active working files (last 3 turns):\n- src/deep/a.py",
            "go on with the first open todo, “Test them”",
        ):
            assert words in memory, words
        shown = [message.text for message in session.state.chat.messages if message.kind == "note"]
        assert shown and shown[0].startswith("## AI Memory")
        assert "## AI Memory" not in await turn(session, "Next question")
        assert "word for word:\nNext question" in await turn(session, "continue with the rest")


def test_a_section_names_new_and_removed_files() -> None:
    file = ContextFile("a/AGENTS.md", "a", "for a/x", "Be brief.\n\n", "9")
    text = '<context filename="a/AGENTS.md">\nBe brief.\n</context>'
    head = "Instruction files that are new or have changed; these texts are the ones in force:"
    assert instructions_section([file], ["b", "c"]) == f"{head}\n{text}\nNo longer in force: b, c"
    assert instructions_section([file], []) == f"{head}\n{text}"
    assert instructions_section([], ["b"]) == "No longer in force: b"
    assert instructions_section([], []) == ""
    assert changed_files([file], {}) == ([file], [])
    assert changed_files([file], {"a/AGENTS.md": "9", "b": "8", "c": ""}) == ([], ["b"])
    assert changed_files([file], {"a/AGENTS.md": "7"}) == ([file], [])


def test_general_folders_are_first() -> None:
    found = folders("src/b", ["src/a/x.py", "src/a/y.py", "z.py"])
    assert [folder.path for folder in found] == ["", "src", "src/a", "src/b"]
    assert [folder.why for folder in found[1:3]] == ["for src/a/x.py"] * 2
    assert [folder.path for folder in folders(".", [])] == [folder.path for folder in folders("", [])] == [""]
