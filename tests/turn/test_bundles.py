"""After a change is applied, what belongs to it comes with the next request, once."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.repositories import repository
from support.sessions import model_of, open_session, reply

from tui_agent.session.session import Session

FILES = {
    "src/app/api.py": "from app.net import get\nfrom app import deep\n\n\ndef fetch(url):\n    return get(url)\n",
    "src/app/net.py": "from app.deeper import x\n\n\ndef get(url):\n    return url\n",
    "src/app/deep.py": "from app import api\n",
    "src/app/deeper.py": "x = 1\n",
    "tests/app/test_api.py": "def test_fetch(): ...\n",
    ".gitignore": "ignored.py\n",
}
CHANGE = {"path": "src/app/api.py", "edits": [{"search": "get(url)", "replace": "get(url, 5)"}]}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return repository(tmp_path / "work", FILES)


async def turn(session: Session, request: str) -> str:
    await session.chat.submit(request)
    await session.chat.finished()
    assert session.state.turn.ok, session.state.turn.error
    return model_of(session).requests[-1].messages[-1]["content"]


async def bundled(workspace: Path, *overrides: str) -> list[str]:
    """The paths that come with the request after the change was applied."""
    replies = [reply("Changes it.", fileChanges=[CHANGE]), reply(), reply()]
    async with open_session(workspace, replies, overrides=overrides) as session:
        await turn(session, "Look at src/app/api.py")
        await session.review.apply()
        text = await turn(session, "And now?")
        assert "## AUTO-BUNDLED FILES" not in await turn(session, "And then?")
    lines = text.partition("## AUTO-BUNDLED FILES")[2].splitlines()
    return [line.split()[1] for line in lines if line.startswith("### ")]


async def test_tests_and_imports_come_with_the_next_request(workspace: Path) -> None:
    assert await bundled(workspace) == ["tests/app/test_api.py", "src/app/net.py", "src/app/deep.py"]


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("bundling.enabled=false", []),
        ("bundling.tests=false", ["src/app/net.py", "src/app/deep.py"]),
        ("bundling.imports=false", ["tests/app/test_api.py"]),
        ("bundling.max_files=2", ["tests/app/test_api.py", "src/app/net.py"]),
        (
            "bundling.depth=3",
            ["tests/app/test_api.py", "src/app/net.py", "src/app/deep.py", "src/app/deeper.py"],
        ),
    ],
)
async def test_the_settings(workspace: Path, override: str, expected: list[str]) -> None:
    assert await bundled(workspace, override) == expected


async def test_they_say_what_they_are_and_are_known(workspace: Path) -> None:
    replies = [reply("Changes it.", fileChanges=[CHANGE]), reply(), reply()]
    async with open_session(workspace, replies) as session:
        await turn(session, "Look at src/app/api.py")
        await session.review.apply()
        text = await turn(session, "And now?")
        entry = session.state.known.files["src/app/net.py"]
        assert (entry.loaded_by, entry.seen_turn) == ("bundle", 2)
        assert (
            f"### src/app/net.py ({entry.size} bytes, 5 lines, md5 {entry.md5})\nImported by src/app/api.py\n1: from"
            in text
        )
        assert '"unchanged": true' in await turn(session, "Look at src/app/net.py")


async def test_nothing_ignored_and_nothing_secret(tmp_path: Path) -> None:
    files = {
        "src/app/api.py": "import ignored\nimport outside\n\n\ndef fetch(url):\n    return get(url)\n",
        ".gitignore": "ignored.py\n",
    }
    work = repository(tmp_path / "work", files)
    (work / "ignored.py").write_text("hidden = 1\n")
    (tmp_path / "outside.py").write_text("hidden = 1\n")
    (work / "outside.py").symlink_to(tmp_path / "outside.py")
    assert await bundled(work) == []
