"""Where commands run: what has to be asked first, servers, git around the workspace, and what a kill leaves."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.sessions import calls, model_of, open_session, reply

from tui_agent.errors import AnswerNeeded, SessionError
from tui_agent.files.private import replace_private
from tui_agent.model.parts import text_of
from tui_agent.sandbox.isolation import WITHOUT
from tui_agent.session.session import Session
from tui_agent.store import events as e

CHANGE = {"path": "a.py", "edits": [{"search": "print(1)", "replace": "print(2)"}]}
AGAIN = {"path": "a.py", "edits": [{"search": "print(1)", "replace": "print(3)"}]}
SERVER = (
    'python3 -c \'import http.server as h; s = h.HTTPServer(("127.0.0.1", 8123), h.SimpleHTTPRequestHandler); '
    'print("up", flush=True); s.serve_forever()\''
)
CLIENT = "python3 -c 'import urllib.request as u; print(u.urlopen(\"http://127.0.0.1:8123/a.py\").read())'"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.py").write_text("print(1)\n")
    return root


async def until(holds: Callable[[], object]) -> None:
    end = asyncio.get_running_loop().time() + 60
    while not holds():
        assert asyncio.get_running_loop().time() < end, "never"
        await asyncio.sleep(0.01)


def notices(session: Session) -> str:
    return "\n".join(notice.text for notice in session.state.notices.items)


async def test_a_checkpoint_that_is_committed_as_the_session_ends_starts_no_search(root: Path) -> None:
    """A search that was started then outlived its session, and the end of the loop waited for it."""
    async with open_session(root) as session:
        views = session.commands.views
        views.start_scan()
        assert views._looking is not None
        await views._looking
        await views.close()
        await session.journal.record(e.CheckpointCommitted("c1", "0" * 40))
        assert views._looking.done()


async def test_without_namespaces_a_copy_does_the_same_once_the_person_says_yes(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_session(root) as session:
        await session.commands.run("true")
        await session.commands.ended()
    monkeypatch.setenv(WITHOUT, "overlay,bubblewrap")
    async with open_session(root, [reply("Changes it.", fileChanges=[CHANGE])]) as session:
        await session.chat.submit("change it")
        await session.chat.finished()
        with pytest.raises(AnswerNeeded, match="on a copy under Landlock, which is weaker") as asked:
            await session.commands.run("cat a.py; echo x > new.txt")
        assert asked.value.once
        assert "Commands used to run in namespaces of their own here; this no longer works" in notices(
            session
        )
        await session.commands.run("cat a.py; echo x > new.txt", allowed=True)
        await session.commands.ended()
        await session.commands.run("true")  # is not asked about again
        await session.commands.ended()
        first, second = session.state.commands.results
        assert (first.isolated, first.where, first.output) == ("landlock", "trial", "print(2)\n")
        assert first.changed == ("new.txt",)
        assert second.ok
        with pytest.raises(AnswerNeeded, match="network") as asked:
            await session.commands.run("true", network=True)
        assert not asked.value.once
        assert os.listdir(session.folders.state / "trials") == []
    assert (root / "a.py").read_text() == "print(1)\n"
    assert not (root / "new.txt").exists()


async def test_the_lowest_rung_is_asked_about_each_time_and_runs_no_checks(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(WITHOUT, "overlay,bubblewrap,landlock")
    async with open_session(root, [reply("Changes it.", fileChanges=[CHANGE])]) as session:
        await session.chat.submit("change it")
        await session.chat.finished()
        for _ in range(2):
            with pytest.raises(AnswerNeeded, match="only in the real folder, without what is pending"):
                await session.commands.run("cat a.py")
            await session.commands.run("cat a.py", allowed=True)
            await session.commands.ended()
        result = session.state.commands.results[-1]
        assert (result.isolated, result.where, result.output) == ("none", "workspace", "print(1)\n")
        with pytest.raises(SessionError, match="no trial view"):
            await session.commands.for_check("cat a.py", "trial", 10.0)


#: What is switched off, rules that allow, what is answered: which of two commands of the model ran.
ASKED: list[tuple[str, list[str], list[str], list[str]]] = [
    ("", [], [], ["echo one", "echo two"]),
    ("overlay,bubblewrap", [], [], []),
    ("overlay,bubblewrap", ["once"], [], ["echo one", "echo two"]),
    ("overlay,bubblewrap", ["no", "no"], [], []),
    ("overlay,bubblewrap,landlock", ["session", "no"], [], ["echo one"]),
    ("overlay,bubblewrap,landlock", [], ["run_command(echo one)"], []),
    ("always", [], ["run_command(echo *)"], []),
    ("always", [], ["run_command(echo one)"], ["echo one"]),
    ("always", ["session", "once"], [], ["echo one", "echo two"]),
]


@pytest.mark.parametrize(("without", "answers", "rules", "ran"), ASKED)
async def test_the_model_runs_what_may_run_here(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    without: str,
    answers: list[str],
    rules: list[str],
    ran: list[str],
) -> None:
    """A copy is asked about once a session, the real folder each time; a rule that allows is for one command."""
    settings = [f"permissions.allow={json.dumps(rules)}"]
    if without == "always":
        settings.append("commands.ask=always")
    else:
        monkeypatch.setenv(WITHOUT, without)
    made = [calls(("run_command", {"command": f"echo {word}"})) for word in ("one", "two")]
    replies = [*made, calls(text="Done.")]
    async with open_session(
        root, replies, protocol="tools", overrides=tuple(settings), interactive=bool(answers)
    ) as session:
        await session.chat.submit("Run them")
        for answer in answers:
            await until(lambda: session.state.asked is not None)
            question = session.state.asked
            assert question is not None
            assert "echo" in question.preview
            assert ("weaker" in question.preview) == (without == "overlay,bubblewrap")
            await session.chat.permit(question.call, answer, "")
            await until(lambda before=question: session.state.asked is not before)
        await session.chat.finished()
        assert [result.command for result in session.state.commands.results] == ran
        if not answers and len(ran) < 2:
            assert "confirmation is not possible" in notices(session)


async def test_a_server_stays_for_later_commands_until_something_else_is_proposed(root: Path) -> None:
    (root / "b.py").write_text("old\n")
    first = calls(
        ("propose_changes", {"changes": [CHANGE]}),
        ("run_command", {"command": SERVER, "background": True}),
        ("run_command", {"command": CLIENT.replace("a.py", "b.py")}),
        ("run_command", {"command": CLIENT}),
    )
    again = calls(("propose_changes", {"changes": [AGAIN]}), ("run_command", {"command": CLIENT}))
    replies = [first, calls(text="Done."), again, calls(text="Done.")]
    async with open_session(root, replies, protocol="tools") as session:
        await session.chat.submit("Serve it")
        await session.chat.finished()
        (server,) = session.state.commands.running
        assert server.background
        assert session.state.commands.results[-1].output == "b'print(2)\\n'\n", session.state.commands.results
        told = "\n".join(text_of(message) for message in model_of(session).requests[1].messages)
        assert "runs in the background" in told
        # It has read the file; without a copy, an overlay keeps what was saved over. The proposal stays.
        await until(lambda: session.state.workspace.watching == "watching")
        replace_private(root / "b.py", b"saved\n")
        while session.state.commands.results[-1].output != "b'saved\\n'\n":
            await session.commands.run(CLIENT.replace("a.py", "b.py"))
            await session.commands.ended()
        await session.commands.run(CLIENT)
        await session.commands.ended()
        assert session.state.commands.results[-1].output == "b'print(2)\\n'\n"
        await session.chat.submit("Change a.py again")
        await session.chat.finished()
        results = session.state.commands.results
        assert [result.how for result in results if result.id == server.id] == ["proposal"]
        assert results[-1].output == "b'print(3)\\n'\n", results
        assert "Restarted with the current changes" in notices(session)
        assert [one.background for one in session.state.commands.running] == [True], (
            session.state.commands.running
        )
        await session.commands.stop()
        assert not session.state.commands.running


def git(folder: Path, *arguments: str) -> str:
    own = ("-c", "user.name=A", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
    return subprocess.run(
        ["git", "-C", str(folder), *own, *arguments], check=True, capture_output=True, text=True
    ).stdout


KINDS = ("top", "below", "worktree", "submodule")


@pytest.mark.parametrize("kind", KINDS)
async def test_git_works_wherever_the_workspace_is_and_hides_credentials(tmp_path: Path, kind: str) -> None:
    top = tmp_path / "top"
    (top / "sub").mkdir(parents=True)
    git(top, "init", "-qb", "main")
    (top / "a.py").write_text("print(1)\n")
    (top / "sub" / "b.py").write_text("print(1)\n")
    (top / ".gitignore").write_text(".env\n")
    git(top, "add", "-A")
    git(top, "commit", "-qm", "first")
    (top / ".env").write_text("TOKEN=secret-word\n")
    root = top
    if kind == "below":
        root = top / "sub"
    elif kind == "worktree":
        root = tmp_path / "tree"
        git(top, "worktree", "add", "-q", str(root), "-b", "side")
    elif kind == "submodule":
        outer = tmp_path / "outer"
        outer.mkdir()
        git(outer, "init", "-q")
        git(outer, "submodule", "add", "-q", str(top), "inner")
        root = outer / "inner"
    holder = git(root, "rev-parse", "--git-common-dir").strip()
    config = (root / holder / "config").resolve()
    config.write_text(
        config.read_text() + '[remote "x"]\n\turl = https://me:secret-word@example.org/x.git\n'
        '[http]\n\textraheader = "AUTHORIZATION: secret-word"\n[credential]\n\thelper = "!echo secret-word"\n'
    )
    head = git(root, "rev-parse", "HEAD")
    async with open_session(root) as session:
        await session.commands.run(
            "git status --short; echo x > new.py; git add new.py; git -c user.name=A -c user.email=a@b commit -qm "
            "second; git log --format=%s; git remote get-url x; git config --list --show-origin; cat "
            f"{config} $(git rev-parse --show-toplevel)/.env"
        )
        await session.commands.ended()
        (result,) = session.state.commands.results
        assert "second\nfirst\nhttps://example.org/x.git\n" in result.output, result.output
        assert "secret-word" not in result.output
        assert result.changed == ("new.py",)
    assert git(root, "rev-parse", "HEAD") == head
    assert git(root, "status", "--short") == ""


async def test_what_ran_when_the_program_was_killed_is_told_at_the_next_start(
    root: Path, tmp_path: Path
) -> None:
    script = f"""
import asyncio, sys
sys.path[:0] = {sys.path!r}
from pathlib import Path
from support.sessions import open_session
async def main():
    async with open_session(Path({str(root)!r}), []) as session:
        await session.commands.run("echo begun; exec sleep 4399")
        print("runs", flush=True)
        await asyncio.sleep(600)
asyncio.run(main())
"""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE, env={**os.environ}
    )
    assert process.stdout is not None
    assert await asyncio.wait_for(process.stdout.readline(), 20) == b"runs\n"
    process.kill()
    await process.wait()
    async with open_session(root, session="last") as session:
        (result,) = session.state.commands.results
        assert (result.command, result.how) == ("echo begun; exec sleep 4399", "interrupted")
        assert not session.state.commands.running
    await until(
        lambda: not subprocess.run(["pgrep", "-f", "sleep 4399"], capture_output=True, check=False).stdout
    )


async def test_a_thousand_commands_leave_a_small_state(root: Path) -> None:
    """What is kept in memory of them does not grow with their number."""
    from tui_agent.store import events as e
    from tui_agent.store.commands import CommandResult

    async with open_session(root) as session:
        for number in range(1000):
            result = CommandResult(
                str(number), "true", "person", "trial", "overlay", 0, "exit", 0.1, "x" * 16_000
            )
            session.journal.store.emit(
                e.CommandStarted(str(number), "true", "person", "trial", "overlay", 0.0)
            )
            session.journal.store.emit(e.CommandEnded(result))
        assert len(session.state.commands.results) == 50
        assert len(session.state.chat.messages) <= 500
        assert session.state.commands.total == 1000
