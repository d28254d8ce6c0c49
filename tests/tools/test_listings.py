"""Listings of folders: what they leave out is named, links are links, and sizes are read by people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.sessions import model_of, open_session, reply
from support.trees import make_repository, make_tree

from tui_agent.headless.event_lines import lines
from tui_agent.session.session import Session


@pytest.fixture(params=[False, True], ids=["folder", "repository"])
def workspace(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    files = {"src/a.py": "x" * 2_500, "src/b.ts": "y\n", "build/out.js": "1", ".gitignore": "build/\n*.lnk\n"}
    root = make_tree(tmp_path / "work", files)
    make_tree(tmp_path / "shared", {"c.md": "c"})
    (root / "src/link.py").symlink_to("a.py")
    (root / "src/shared").symlink_to(tmp_path / "shared")
    (root / "src/no.lnk").symlink_to(tmp_path / "shared")
    return make_repository(root, commit=False) if request.param else root


async def listings(session: Session, words: str) -> tuple[str, list[dict[str, Any]]]:
    """What the model is shown of folders, and the JSON lines of them."""
    told: list[dict[str, Any]] = []
    session.subscribe(lambda event, state: told.extend(lines(event, state)))
    await session.chat.submit(words)
    await session.chat.finished()
    assert session.state.turn.ok, session.state.turn.error
    text = model_of(session).requests[-1].messages[-1]["content"]
    return text.partition("## DIRECTORY LISTING RESULTS\n")[2].partition("\n\n<")[0], [
        line for line in told if line["type"] == "listing"
    ]


async def test_links_are_links_and_sizes_are_for_people(workspace: Path) -> None:
    asks = reply("Looks.", directoryRequests=[{"path": "src"}])
    async with open_session(workspace, [asks, reply()]) as session:
        text, told = await listings(session, "Hello")
    rows = [
        "| a.py | file | 2.5 kB |",
        "| b.ts | file | 2 B |",
        "| link.py | link |  |",
        "| shared | link |  |",
    ]
    assert text.splitlines()[3:] == [*rows, "4 entries"]
    entries = {entry["name"]: (entry["type"], entry["size"]) for entry in told[0]["entries"]}
    assert entries["a.py"] == ("file", 2500) and entries["shared"][0] == "link"


async def test_the_filter_is_named_also_that_of_a_plan(workspace: Path) -> None:
    folder = {"type": "directory", "path": "src", "recursive": False, "filter": "*.ts"}
    async with open_session(workspace, [reply()], plans=[{"actions": [folder]}]) as session:
        text, _ = await listings(session, "What is in there?")
        (listed,) = session.state.plan.listed
        assert (listed.directory.filter, listed.entries, session.state.plan.directories) == ("*.ts", 1, ())
        assert text.endswith("\n1 entry")
    assert text.startswith("### src (only *.ts)\n") and "| b.ts | file | 2 B |" in text


async def test_a_folder_that_is_ignored_says_so(workspace: Path) -> None:
    asks = reply("Looks.", directoryRequests=[{"path": "build"}, {"path": "empty"}])
    (workspace / "empty").mkdir()
    async with open_session(workspace, [asks, reply()]) as session:
        text, told = await listings(session, "Hello")
        assert [bool(one.error) for one in session.state.plan.listed] == [True, False]
    assert "### build\nbuild is ignored" in text and text.endswith("0 entries")
    assert "is ignored" in told[0]["error"] and told[1]["error"] is None
