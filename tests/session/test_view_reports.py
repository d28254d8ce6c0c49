"""What person and model are told of a view in which a command or a check failed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.sessions import model_of, open_session, reply
from support.trees import make_repository, run_git

from tui_agent.errors import SessionError
from tui_agent.session.trial_views import RevealedFiles

CHANGE = {"path": "a.py", "edits": [{"search": "return 1", "replace": "return 2"}]}
#: Passes on the folder as it is.
UNCHANGED = "grep -q 'return 1' a.py || "


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.py").write_text("def f():\n    return 1\n")
    return root


async def test_a_failure_says_what_its_view_lacked(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_REGION", "north")
    (root / "tests").mkdir()
    (root / "tests" / "server.key").write_text("secret\n")
    async with open_session(root, []) as session:
        failing = "no-such-tool; cat /srv/shop/settings; echo tests/server.key: SHOP_REGION >&2; : > /usr/x"
        await session.commands.run(f"{failing}; exit 1")
        await session.commands.ended()
        (result,) = session.state.commands.results
        told = "\n".join(result.report)
        assert "emptied: tests/server.key" in told
        assert "missing: no-such-tool" in told
        assert "not shown, whether they exist or not: /srv/shop/settings" in told
        assert "read-only: /usr/x" in told
        assert "offline" in told
        assert "SHOP_REGION" in told
        assert "north" not in told
        await session.commands.run("echo SHOP_REGION; true")
        await session.commands.ended()
        assert session.state.commands.results[-1].report == ()
    async with open_session(root, session="last") as session:
        assert session.state.commands.results[0] == result


@pytest.mark.parametrize(
    ("command", "cause"),
    [
        (f"{UNCHANGED}{{ echo 'getaddrinfo EAI_AGAIN example.org'; exit 1; }}", "no network access"),
        (f"{UNCHANGED}no-such-tool", "a program is missing"),
        (f"{UNCHANGED}sleep 600", "it exceeded its time limit"),
    ],
)
async def test_the_model_is_not_asked_to_repair_what_no_change_can(
    root: Path, command: str, cause: str
) -> None:
    named = json.dumps([{"name": "tests", "command": command}])
    settings = (f"checks.commands={named}", "commands.timeout=1")
    async with open_session(root, [reply("It.", fileChanges=[CHANGE])], overrides=settings) as session:
        await session.chat.submit("make it 2")
        await session.chat.finished()
        (check,) = session.state.checks.results
        assert check.state == "failed"
        assert len(model_of(session).requests) == 1
        notices = [notice.text for notice in session.state.notices.items]
        assert any(cause in text and "does not repair" in text for text in notices), notices


async def test_a_repair_is_told_what_the_view_lacked(root: Path) -> None:
    (root / ".env").write_text("TOKEN=secret\n")
    named = json.dumps([{"name": "tests", "command": f"{UNCHANGED}{{ echo 'AssertionError: 1'; exit 1; }}"}])
    back = {"path": "a.py", "content": "def f():\n    return 1  # stays\n"}
    replies = [reply("It.", fileChanges=[CHANGE]), reply("Back.", fileChanges=[back])]
    async with open_session(root, replies, overrides=(f"checks.commands={named}",)) as session:
        await session.chat.submit("make it 2")
        await session.chat.finished()
        asked = str(model_of(session).requests[1].messages[-1]["content"])
        assert "Its view: emptied: .env" in asked


async def test_test_files_that_were_emptied_are_offered_once_and_shown_in_this_folder(root: Path) -> None:
    for path in ("tests/certs/server.key", ".env.test", ".env", "tests/loose.key"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"text of {path}\n")
    make_repository(root)
    run_git(root, "rm", "-q", "--cached", "tests/loose.key")
    named = json.dumps([{"name": "tests", "command": f"{UNCHANGED}exit 1"}])
    settings = (f"checks.commands={named}", "checks.repairs=0")
    wanted = ".env.test, tests/certs/server.key may hold a secret"
    async with open_session(root, [reply("It.", fileChanges=[CHANGE])], overrides=settings) as session:
        with pytest.raises(SessionError):
            await session.commands.show_test_files()
        await session.chat.submit("make it 2")
        await session.chat.finished()
        said = [notice.text for notice in session.state.notices.items]
        assert sum(wanted in text and "/show-test-files" in text for text in said) == 1
        await session.commands.show_test_files()
    async with open_session(root, [reply("It.", fileChanges=[CHANGE])], overrides=settings) as session:
        await session.commands.run("cat tests/certs/server.key .env.test .env tests/loose.key")
        await session.commands.ended()
        output = session.state.commands.results[-1].output
        assert output == "text of tests/certs/server.key\ntext of .env.test\n"
        await session.chat.submit("make it 2")
        await session.chat.finished()
        assert not any(wanted in notice.text for notice in session.state.notices.items)
        await session.commands.hide_test_files()
        await session.commands.run("cat tests/certs/server.key .env.test")
        await session.commands.ended()
        assert session.state.commands.results[-1].output == ""
        await session.commands.views.offer_emptied()
        assert not any(wanted in notice.text for notice in session.state.notices.items)


def test_after_a_no_no_file_of_tests_is_offered_until_the_person_says_yes(tmp_path: Path) -> None:
    revealed = RevealedFiles(tmp_path, "/project")
    revealed.offer(["tests/a.key"])
    revealed.hide()
    assert RevealedFiles(tmp_path, "/project").unoffered(["tests/b.key"]) == []
    assert revealed.show() == ("tests/a.key",)
    assert RevealedFiles(tmp_path, "/project").unoffered(["tests/b.key"]) == ["tests/b.key"]
    assert revealed.hide() == ("tests/a.key",)
    assert RevealedFiles(tmp_path, "/project").globs == ()
