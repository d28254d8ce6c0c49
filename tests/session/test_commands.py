"""Commands of the person, through a session: run on what is pending, told, kept, stopped."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.sessions import open_session, reply
from support.trees import make_repository, run_git

from tui_agent.errors import AnswerNeeded, FileError, SessionError
from tui_agent.log.snapshot import lasting_part
from tui_agent.sandbox.run import Run, RunResult
from tui_agent.session.trial_views import PreparedView, TrialViews
from tui_agent.store.state import State

CHANGE = {"path": "a.py", "edits": [{"search": "print(1)", "replace": "print(2)"}]}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.py").write_text("print(1)\n")
    (root / "b.txt").write_text("as on disk\n")
    return root


async def test_a_command_sees_what_is_pending_and_unsaved_and_changes_nothing(root: Path) -> None:
    async with open_session(root, [reply("Changes it.", fileChanges=[CHANGE])]) as session:
        await session.chat.submit("change it")
        await session.chat.finished()
        await session.files.open("b.txt")
        session.files.edit("b.txt", "unsaved\n", (0, 0), (0, 0))
        await session.commands.run("cat a.py b.txt; echo x > new.txt; exit 3")
        await session.commands.ended()
        (result,) = session.state.commands.results
        assert result.output == "print(2)\nunsaved\n"
        assert (result.status, result.how, result.ok) == (3, "exit", False)
        assert result.changed == ("new.txt",)
        assert sorted(result.pending) == ["a.py", "b.txt"]
        assert session.storage.blobs.get(result.blob) == b"print(2)\nunsaved\n"
        message = session.state.chat.messages[-1]
        assert message.kind == "command"
        assert message.command == result
        assert session.state.review.open  # still waits
    assert (root / "a.py").read_text() == "print(1)\n"
    assert (root / "b.txt").read_text() == "as on disk\n"
    assert not (root / "new.txt").exists()
    async with open_session(root, session="last") as session:
        assert session.state.commands.results == (result,)
        assert session.state.chat.messages[-1].command == result


async def test_ignored_files_and_caches_are_not_among_what_it_changed(root: Path) -> None:
    (root / ".gitignore").write_text("*.log\nbuild/\n")
    async with open_session(root, []) as session:
        await session.commands.run(
            "mkdir -p build __pycache__ .pytest_cache; touch x.log build/x __pycache__/x .pytest_cache/x kept"
        )
        await session.commands.ended()
        assert session.state.commands.results[-1].changed == ("kept",)


@pytest.mark.parametrize("kind", ["a repository", "many", "no repository", "changed since", "a submodule"])
async def test_a_path_behind_a_link_hides_nothing_else_that_was_written(root: Path, kind: str) -> None:
    """git does not tell about such a path, and of all that it is asked about together neither."""
    (root / "docs").symlink_to("../..")
    (root / "src").mkdir()
    (root / "src" / "x.py").write_text("x\n")
    (root / "inside").symlink_to("src")
    (root / ".gitignore").write_text("*.log\n")
    if kind == "a submodule":
        make_repository(root / "inner", ["a.py"])
    if kind != "no repository":
        make_repository(root, [])
        run_git(root, "add", "-A")
    if kind == "changed since":
        (root / "docs").unlink()
    async with open_session(root, []) as session:
        words = (
            "rm -f docs inside; mkdir docs inside; touch docs/x docs/y.log inside/new inside/z.log kept x.log"
        )
        if kind == "many":
            words += "; mkdir d; for i in $(seq 150); do touch d/$i; done"
        if kind == "a submodule":
            words += " inner/made"
        await session.commands.run(words)
        await session.commands.ended()
        changed = session.state.commands.results[-1].changed
        links = {"docs", "inside"} if kind != "changed since" else {"inside"}
        assert {*links, "kept", "inside/new", "docs/x"} <= set(changed)
        assert not {"x.log", "inside/z.log", "inner/made"}.intersection(changed)
        assert len(changed) == len(links) + 3 + (150 if kind == "many" else 0) + ("docs/y.log" in changed)
        await session.commands.take()
        assert "kept" in {change.path for change in session.state.review.open}


async def test_it_is_told_while_it_runs_and_can_be_stopped(root: Path) -> None:
    begun = asyncio.Event()

    def watch(_: object, state: State) -> None:
        if any(one.line == "begun" for one in state.commands.running):
            begun.set()

    async with open_session(root, []) as session:
        session.subscribe(watch)
        await session.commands.run("echo begun; sleep 600")
        assert [one.command for one in session.state.commands.running] == ["echo begun; sleep 600"]
        await asyncio.wait_for(begun.wait(), 20)
        await session.stop_everything()
        assert not session.state.commands.running
        assert session.state.commands.results[-1].how == "stopped"
        assert session.state.commands.results[-1].output == "begun\n"


async def test_an_empty_command_is_refused(root: Path) -> None:
    async with open_session(root, []) as session:
        with pytest.raises(SessionError, match="no command"):
            await session.commands.run(" ")


async def test_what_a_command_wrote_can_wait_in_the_review(root: Path) -> None:
    async with open_session(
        root, [reply("Changes it.", fileChanges=[CHANGE, {"path": "d.txt", "content": "d\n"}])]
    ) as session:
        with pytest.raises(SessionError, match="No command has run"):
            await session.commands.take()
        await session.chat.submit("change it")
        await session.chat.finished()
        await session.commands.run(
            "sed -i 's/print/PRINT/' a.py; rm b.txt d.txt; echo new > c.txt; ln -s a.py link"
        )
        await session.commands.ended()
        await session.commands.take()
        waiting = {change.path: change for change in session.state.review.open}
        assert {path: change.kind for path, change in waiting.items()} == {
            "a.py": "edit",
            "b.txt": "delete",
            "c.txt": "create",
            "d.txt": "create",
        }
        assert waiting["a.py"].reason.startswith("from `sed")
        assert [notice.text.partition(": ")[2] for notice in session.state.notices.items[-2:]] == [
            "it was deleted, but is only proposed so far: skip it in the review",
            "it is a link",
        ]
        await session.review.apply()
    assert (root / "a.py").read_text() == "PRINT(2)\n"
    assert (root / "c.txt").read_text() == "new\n"
    assert (root / "d.txt").read_text() == "d\n"
    assert not (root / "b.txt").exists()


async def test_the_last_command_runs_again_and_is_told(root: Path) -> None:
    async with open_session(root, []) as session:
        await session.commands.run("echo failing; exit 2")
        await session.commands.ended()
        await session.commands.again()
        await session.commands.ended()
        assert [result.command for result in session.state.commands.results] == ["echo failing; exit 2"] * 2
        assert session.commands.last_output() == "`echo failing; exit 2` ended with 2:\n\n```\nfailing\n```\n"


async def test_sessions_and_settings_are_not_seen_even_inside_the_workspace(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUI_AGENT_HOME", str(root / "ours"))
    (root / "ours" / "config").mkdir(parents=True)
    (root / "ours" / "config" / "note").write_text("private")
    async with open_session(root, []) as session:
        await session.commands.run("find ours -type f; cat ours/config/note; ls ours/config ours/data")
        await session.commands.ended()
        assert "private" not in session.state.commands.results[-1].output
        assert "log" not in session.state.commands.results[-1].output


async def test_several_at_once_have_ids_of_their_own_and_all_end(root: Path) -> None:
    async with open_session(root, []) as session:
        await asyncio.gather(*(session.commands.run(f"echo {number}") for number in range(4)))
        await session.commands.ended()
        assert not session.state.commands.running
        results = session.state.commands.results
        assert sorted(result.id for result in results) == ["1", "2", "3", "4"]
        assert sorted(result.output for result in results) == ["0\n", "1\n", "2\n", "3\n"]


async def test_one_whose_result_cannot_be_kept_has_ended_all_the_same(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_session(root, []) as session:
        full = FileError("the disk is full", "make room")
        monkeypatch.setattr(session.storage.blobs, "hold", lambda data: (_ for _ in ()).throw(full))
        await session.commands.run("echo x")
        await session.commands.ended()
        assert not session.state.commands.running
        assert "the disk is full" in session.state.commands.results[-1].how


async def test_one_that_is_stopped_before_it_runs_is_stopped(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asyncio.Event()
    real = Run.alone

    async def alone(run: Run, *given: Any) -> RunResult:
        asked.set()
        return await real(run, *given)

    monkeypatch.setattr(Run, "alone", alone)
    async with open_session(root, []) as session:
        await session.commands.views.rung()  # finding that out runs a command too
        asked.clear()
        starting = asyncio.create_task(session.commands.run("sleep 600"))
        await asyncio.wait_for(asked.wait(), 20)
        await asyncio.wait_for(session.commands.stop(), 20)
        await starting
        assert session.state.commands.results[-1].how == "stopped"


async def test_one_in_preparation_is_told_and_stopped(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()
    real = TrialViews.prepare

    async def slow(*given: Any, **more: Any) -> PreparedView:
        begun.set()
        await go_on.wait()
        return await real(*given, **more)

    monkeypatch.setattr(TrialViews, "prepare", slow)
    async with open_session(root, []) as session:
        starting = asyncio.create_task(session.commands.run("echo x"))
        await asyncio.wait_for(begun.wait(), 20)
        assert [one.preparing for one in session.state.commands.running] == [True]
        assert not lasting_part(session.state).commands.running
        await session.stop_everything()
        assert await asyncio.wait_for(starting, 20) == "1", "before its view is made"
        assert not session.state.commands.running
        assert [(it.how, it.command) for it in session.state.commands.results] == [("stopped", "echo x")]
        go_on.set()
        assert await session.commands.run("echo y") == "2"
        await session.commands.ended()
        assert [it.output for it in session.state.commands.results] == ["", "y\n"]


async def test_one_that_needs_an_answer_is_not_told_while_it_waits(root: Path) -> None:
    async with open_session(root, []) as session:
        with pytest.raises(AnswerNeeded):
            await session.commands.run("echo x", network=True)
        assert not session.state.commands.running
