"""The panes over a real session: what a key decides is what stands on the disk and in the next request."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.screens import Driven, on_screen
from support.sessions import model_of, reply
from support.trees import make_tree

from tui_agent.ui.panes.plan import PlanBlock

API = "import net\n\n\ndef fetch(url):\n    return net.get(url)\n\n\n# …\n\n\ndef push(url):\n    net.post(url)\n"
NEW = API.replace("get(url)", "get(url, 5)").replace("post(url)", "post(url, 5)")
CHANGES = [
    {"path": "src/api.py", "todoIndex": 0, "content": NEW},
    {"path": "tests/test_api.py", "todoIndex": 1, "content": "def test_fetch():\n    pass\n"},
]
TODOS = [{"text": "Add timeouts"}, {"text": "Test them"}]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return make_tree(
        tmp_path / "shop", {"src/api.py": API, "README.md": "# Shop\n", "src/settings.py": "T = 5\n"}
    )


async def proposed(it: Driven) -> None:
    await it.session.chat.submit("Add timeouts in src/api.py")
    await it.until(lambda: len(it.session.state.review.open) == 2, "two changes")
    await it.press("f5")
    await it.shows(" · api.py 1 of 2 · change 1 of 2")


async def test_one_hunk_applied_one_skipped_and_all_of_it_undone(workspace: Path) -> None:
    api, new = workspace / "src" / "api.py", workspace / "tests" / "test_api.py"
    async with on_screen(workspace, [reply(fileChanges=CHANGES, todos=TODOS)]) as it:
        await proposed(it)
        await it.press("a")
        await it.shows(" · api.py 1 of 2 · change 2 of 2")
        assert api.read_text() == API.replace("get(url)", "get(url, 5)")
        await it.press("s")
        await it.shows(" · test_api.py 2 of 2 · change 1 of 1")
        await it.press("a")
        await it.shows("2 applied")
        assert new.read_text() == "def test_fetch():\n    pass\n"
        await it.shows("Todos 2/2")
        await it.press("u")
        await it.until(lambda: not new.exists(), "the new file gone")
        await it.shows(" · test_api.py 2 of 2 · change 1 of 1")
        await it.press("u")
        await it.until(lambda: api.read_text() == API, "the text as it was")


async def test_a_session_opens_where_the_review_was_left(workspace: Path) -> None:
    async with on_screen(workspace, [reply(fileChanges=CHANGES)]) as it:
        await proposed(it)
        await it.press("]")
        await it.shows(" · test_api.py 2 of 2 · change 1 of 1")
    async with on_screen(workspace, session="last") as it:
        await it.shows(" · test_api.py 2 of 2 · change 1 of 1")
        await it.shows("def test_fetch():")


@pytest.mark.parametrize("size", [(160, 48), (80, 24)])
async def test_a_file_that_was_not_found_is_chosen_in_the_plan(
    workspace: Path, size: tuple[int, int]
) -> None:
    wanted = {"type": "file", "name": "Settings", "patterns": ["conf/setings.py"], "required": True}
    replies = [reply(fileRequests=[wanted]), reply("Read.")]
    async with on_screen(workspace, replies, size=size, interactive=True) as it:
        await it.session.chat.submit("What is T?")
        await it.until(lambda: it.session.state.turn.waiting_for == "Settings", "the question")
        small = size < (90, 0)  # the plan is not in view beside the chat, so its attempts are seen in there
        await it.shows(f"{'▾' if small else '▸'} 0 of 1 file found")
        await it.shows("✗ conf/setings.py" if small else "✗ ")
        await it.shows("? Which file is “Settings”? · Ctrl+O p")
        it.screen.focus_pane("plan")
        await it.shows("Which file is meant?")
        await it.shows("1 src/settings.py")
        await it.press("1")
        await it.until(lambda: not it.session.state.turn.running, "the end of the turn")
        assert "src/settings.py" in it.session.state.known.files
        assert len(model_of(it.session).requests) == 2
        await it.press("f7")
        await it.shows("▸ 1 of 1 file found")
        block = it.one(PlanBlock)
        block.focus()
        await it.press("enter")
        await it.shows("▾ 1 of 1 file found")
        assert str(block.render()).count("conf/setings.py") == 1


async def test_todos_and_known_files_by_hand(workspace: Path) -> None:
    async with on_screen(workspace, [reply(todos=TODOS)]) as it:
        await it.session.chat.submit("Look at src/api.py")
        await it.shows("Todos 0/2")
        it.screen.focus_pane("todos")
        await it.press("space")
        await it.shows("Todos 1/2")
        await it.press("a", *"more", "enter")
        await it.shows("Todos 1/3")
        it.screen.focus_pane("known")
        await it.shows("src/api.py")
        await it.press("enter")
        await it.until(lambda: it.session.state.buffers.active == "src/api.py", "the file in the editor")


async def test_the_key_that_a_conflict_is_told_with_leads_to_it_once(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.py").write_text("one\n")
    edits = [{"path": f"{name}.py", "edits": [{"search": "one", "replace": "two"}]} for name in "abc"]
    answer = reply("Changed.", fileChanges=edits)
    async with on_screen(tmp_path, [answer, reply("Look at b.py.")], size=(80, 24)) as it:
        await it.press(*"change", "enter")
        await it.until(lambda: len(it.session.state.review.open) == 3, "the changes")
        await it.session.chat.finished()
        (tmp_path / "b.py").write_text("three\n")
        await it.press("f5", "f7", "f8")
        await it.shows("⚠ Conflict in b.py · F5")
        await it.shows("Review ●2 ⚠1")
        await it.press("f5")
        await it.shows("▌! b.py")
        await it.press("p", "f7", "f5")
        await it.shows("▌· a.py")
