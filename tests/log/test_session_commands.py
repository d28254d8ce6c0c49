"""`tui-agent sessions …` over real sessions: listed, read, searched, exported, imported, forked, deleted."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Outcome, run_here
from support.openai_wire import Answer
from support.provider import Provider
from support.repositories import git, repository
from support.sessions import open_session, reply

from tui_agent.log import directory
from tui_agent.log.directory import SessionLock
from tui_agent.log.stats import figures_over_time
from tui_agent.store.events import ReplyRead

SECRET = "sk-abcdefghij0123456789abcdef"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = (tmp_path / "work").resolve()
    folder.mkdir()
    (folder / "api.py").write_text("def fetch(url):\n    return get(url)\n")
    monkeypatch.chdir(folder)
    return folder


class Commands:
    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd = capfd

    def __call__(self, *words: str, status: int = 0) -> Outcome:
        done = run_here(self._capfd, ["sessions", *words])
        assert done.status == status, done
        return done

    def json(self, *words: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self(*words, "--json").out.splitlines()]


@pytest.fixture
def sessions(capfd: pytest.CaptureFixture[str]) -> Commands:
    return Commands(capfd)


EDIT = {"path": "api.py", "edits": [{"search": "get(url)", "replace": "get(url, timeout=5)"}]}


async def make(workspace: Path) -> str:
    """A session of two turns; in the second a change is applied."""
    replies = [
        reply("Explains fetch.", message="It calls `get`."),
        reply("Adds a timeout.", fileChanges=[EDIT]),
    ]
    async with open_session(workspace, replies) as session:
        await session.chat.submit(f"explain parseConfig, my key is {SECRET}")
        await session.chat.finished()
        await session.chat.submit("add a timeout to api.py")
        await session.chat.finished()
        await session.review.apply()
        return session.state.session.id


async def test_last_is_the_newest_session_of_this_folder(
    workspace: Path, sessions: Commands, capfd: pytest.CaptureFixture[str]
) -> None:
    await make(workspace)
    async with open_session(workspace, [reply("Nothing to do.")]) as session:
        await session.chat.submit("hello")
        await session.chat.finished()
        newest = session.state.session.id
    for command in ("show", "export"):
        assert sessions(command, "last").out == sessions(command, newest).out
    figures = run_here(capfd, ["stats", "--json", "--session", "last"]).out
    assert json.loads(figures)["turns"] == 1
    sessions("rename", "last", "Timeouts")
    assert {entry["id"]: entry["name"] for entry in sessions.json("list")}[newest] == "Timeouts"
    forked = sessions("fork", "last").out.strip()
    assert forked in {entry["id"] for entry in sessions.json("list")}


async def test_list_show_search_rename_delete(workspace: Path, sessions: Commands) -> None:
    name = await make(workspace)
    (entry,) = sessions.json("list")
    assert (entry["id"], entry["turns"], entry["workspace"]) == (name, 2, str(workspace))
    assert sessions("list").out.startswith(name) and "  2 turns  " in sessions("list").out
    shown = sessions("show", name).out
    assert "you: explain parseConfig" in shown and "It calls `get`." in shown
    for words in ("config", "TIMEOUT", "api.py", "ge calls"):
        assert all(line.startswith(name) for line in sessions("search", words).out.splitlines())
        assert sessions("search", words).out, words
    assert sessions.json("search", "calls")[0]["kind"] == "agent"
    assert sessions("search", "nowhere", "said").out == ""
    sessions("rename", name, "the timeout")
    assert sessions.json("list")[0]["name"] == "the timeout"
    assert "--yes" in sessions("delete", name, status=2).sentence
    repository(workspace, {})
    git(workspace, "update-ref", f"refs/tui-agent/{name}/k1", "HEAD")
    await asyncio.to_thread(sessions, "delete", name, "--yes")
    assert git(workspace, "for-each-ref", "refs/tui-agent") == ""
    assert sessions("list").out == sessions("search", "timeout").out == ""
    assert sessions("list").err == "There are no sessions of this workspace; --all lists the others.\n"
    assert "no session" in sessions("show", name, status=1).sentence


async def test_the_list_in_another_order(workspace: Path, sessions: Commands) -> None:
    long = await make(workspace)
    async with open_session(workspace, services=False) as session:
        await session.rename("a short one")
        short = session.state.session.id
    ids = {
        sort: [entry["id"] for entry in sessions.json("list", "--sort", sort)]
        for sort in ("newest", "turns", "size", "name")
    }
    assert ids == {
        "newest": [short, long],
        "turns": [long, short],
        "size": [long, short],
        "name": [short, long],
    }
    assert " kB  a short one" in sessions("list").out


async def test_what_was_sent_is_shown_word_for_word(workspace: Path, sessions: Commands) -> None:
    name = await make(workspace)
    first, second = sessions.json("show", name, "--sent")
    assert first["reset"] and not second["reset"]
    asked = json.loads(first["messages"][-1])
    assert asked["role"] == "user" and "explain parseConfig" in asked["content"]
    assert "Adds a timeout." in second["reply"]
    assert "== turn 2, main" in sessions("show", name, "--sent").out


async def test_an_export_is_masked_and_comes_back(
    workspace: Path, sessions: Commands, tmp_path: Path
) -> None:
    name = await make(workspace)
    markdown = sessions("export", name).out
    assert "## You, turn 1" in markdown and SECRET not in markdown
    file = tmp_path / "export.json"
    sessions("export", name, "--format", "json", "--output", str(file))
    assert SECRET not in file.read_text()
    new = sessions("import", str(file)).out.strip()
    assert new != name
    told = [sessions("show", session).out.replace(SECRET, "[masked]") for session in (name, new)]
    assert told[0] == told[1]
    assert "Adds a timeout." in sessions.json("show", new, "--sent")[1]["reply"]
    async with open_session(workspace, session=new) as session:
        await session.review.undo()
        assert "timeout" not in (workspace / "api.py").read_text()
        assert (await session.review.diff(session.state.review.changes[0].id)).hunks


async def test_a_command_is_shown_and_exported(workspace: Path, sessions: Commands) -> None:
    async with open_session(workspace, []) as session:
        await session.commands.run_here("echo '```'; echo '## You, turn 9'; exit 3")
        await session.commands.ended()
        name = session.state.session.id
    shown = sessions("show", name).out
    assert "[0] command: echo '```'; echo '## You, turn 9'; exit 3 (exit 3, " in shown
    assert "## You, turn 9\n" in shown
    exported = sessions("export", name, "--format", "md").out
    assert "## Command, turn 0\n\nexit 3, " in exported and "\n\n````text\n$ echo '```'" in exported
    assert exported.endswith("\n```\n## You, turn 9\n````\n")
    (message,) = sessions.json("show", name)
    assert message["command"]["status"] == 3


HEADER = "-----BEGIN RSA PRIVATE KEY-----"


async def test_an_export_is_whole_whatever_was_said(
    workspace: Path, sessions: Commands, tmp_path: Path
) -> None:
    """The first line of a key masks nothing after it; an export can be imported and holds no file that is a secret."""
    secret = "only-in-the-secret-file"
    (workspace / ".env").write_text(f"A={secret}\n")
    words = f"Such files begin with {HEADER} and end otherwise."
    change = {"path": ".env", "content": "A=another\nB=2\n"}
    replies = [reply(f"{HEADER} is a header.", message=words, fileChanges=[change]), reply("The end.")]
    async with open_session(workspace, replies) as session:
        for ask in (f"What is {HEADER}\n?", f'Is "{HEADER}" in api.py'):
            await session.chat.submit(ask)
            await session.chat.finished()
        name = session.state.session.id
    for form in ("md", "json"):
        file = tmp_path / f"export.{form}"
        before = os.umask(0)
        try:
            sessions("export", name, "--format", form, "--output", str(file))
        finally:
            os.umask(before)
        text = file.read_text()
        assert file.stat().st_mode & 0o777 == 0o600
        assert "and end otherwise" in text and "The end." in text and "[masked]" not in text
        assert secret not in text
    assert "The end." in sessions("show", sessions("import", str(file)).out.strip()).out


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"type": "other"}',
        '{"type": "tui-agent-session", "version": 99, "events": [{}]}',
        '{"type": "tui-agent-session", "version": 1, "events": []}',
        '{"type": "tui-agent-session", "version": 1, "events": [{"type": "Unheard"}]}',
        '{"type": "tui-agent-session", "version": 1, "events": [{"type": "TurnStarted", "turn": 1, "request": "x"}]}',
    ],
)
def test_a_damaged_export_is_refused(
    workspace: Path, sessions: Commands, tmp_path: Path, content: str
) -> None:
    file = tmp_path / "export.json"
    file.write_text(content)
    assert "was not imported" in sessions("import", str(file), status=1).sentence
    assert file.read_text() == content
    assert sessions("list", "--all").out == ""


async def test_a_fork_says_which_files_differ_and_undo_brings_them_back(
    workspace: Path, sessions: Commands
) -> None:
    name = await make(workspace)
    done = sessions("fork", name, "--turn", "1")
    assert "api.py" in done.err
    new = done.out.strip()
    async with open_session(workspace, session=new) as session:
        assert session.state.turn.number == 1
        assert "api.py" in session.state.chat.messages[-1].text
        assert "timeout" in (workspace / "api.py").read_text()
        await session.review.undo()
        assert "timeout" not in (workspace / "api.py").read_text()
    whole = sessions("fork", name)
    assert whole.err == ""
    told = f"[2] note: This session is a fork of {name}.\n"
    assert sessions("show", whole.out.strip()).out == sessions("show", name).out + told
    assert "has no turn 3" in sessions("fork", name, "--turn", "3", status=1).sentence


async def test_one_that_is_open_elsewhere_is_not_touched(workspace: Path, sessions: Commands) -> None:
    name = await make(workspace)
    with SessionLock.take(Path(directory.folder_of(_data(), name))):
        for words in (("delete", name, "--yes"), ("rename", name, "x")):
            done = await asyncio.to_thread(sessions, *words, status=1)
            assert "is open in process" in done.sentence
    assert sessions.json("list")[0]["name"] == ""


def _data() -> Path:
    from tui_agent.settings.folders import user_folders

    return user_folders().data


async def measured(workspace: Path) -> str:
    """Three turns: a proposal that was mended within its turn, a conflict that reached the person, an apply."""
    bad = {"path": "api.py", "edits": [{"search": "no such line", "replace": "x"}]}
    plan = {
        "actions": [
            {"type": "file", "name": "Api", "patterns": ["lib/api.py", "**/api.py"], "required": True},
            {"type": "file", "name": "None", "patterns": ["none.py"], "required": True},
        ]
    }
    replies = [
        reply("Tries.", fileChanges=[bad]),
        reply("Mends.", fileChanges=[EDIT]),
        reply("Tries.", fileChanges=[bad]),
        reply("Gives up.", fileChanges=[bad]),
        reply("Adds a timeout.", fileChanges=[EDIT]),
    ]
    async with open_session(workspace, replies, plans=[plan, plan, plan]) as session:
        for _ in range(3):
            await session.chat.submit("add a timeout")
            await session.chat.finished()
        await session.review.apply()
        return session.state.session.id


async def test_figures_count_what_reached_the_person(
    workspace: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = (workspace / "api.py").read_text()
    name = await measured(workspace)
    (workspace / "api.py").write_text(before)
    await make(workspace)

    def stats(*words: str) -> str:
        done = run_here(capfd, ["stats", *words])
        assert done.status == 0, done
        return done.out

    one, both = json.loads(stats("--session", name, "--json")), json.loads(stats("--all", "--json"))
    assert (one["sessions"], one["turns"], both["sessions"], both["turns"]) == (1, 3, 2, 5)
    # each turn asks for one change; in the second one no reply could be placed
    assert (one["changes"], one["mismatches"], one["mismatch_share"]) == (3, 1, 0.3333)
    assert (one["required_actions"], one["failed_loads"], one["hits_by_pattern"]) == (6, 3, {"2": 3})
    assert (one["tasks"], one["turns_per_task"], one["resets"]) == (1, 3.0, 0)
    assert one["unchanged_beginning"] == 1.0
    assert "1 of 3 (33.3%)" in stats("--session", name)
    plot = stats("--session", name, "--plot").splitlines()
    assert plot[0] == "1 session, 3 turns"
    assert any(line.startswith("failed automatic loads") and line.endswith("missed") for line in plot)
    assert any("matched by pattern 2" in line and "█" in line for line in plot)
    assert str(workspace)[-30:] in plot[-1] and plot[-1].endswith(" tokens") and "█" in plot[-1]
    loads = next(goal for goal in one["goals"] if goal["words"].startswith("failed automatic loads"))
    assert loads == {"words": loads["words"], "value": 50.0, "most": 2, "least": None, "met": False}
    assert "goal: failed automatic loads, %      50, ≤ 2 (missed)" in stats("--session", name)


async def test_a_copy_counts_what_is_its_own_and_money_is_told_by_day_model_and_session(
    workspace: Path, sessions: Commands, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    name = await make(workspace)

    def stats(*words: str) -> dict[str, Any]:
        return json.loads(run_here(capfd, ["stats", "--json", *words]).out)

    before = stats("--session", name)
    fork = sessions("fork", name).out.strip()
    sessions("export", name, "--format", "json", "--output", str(tmp_path / "export.json"))
    imported = sessions("import", str(tmp_path / "export.json")).out.strip()
    for copy in (fork, imported):
        own = stats("--session", copy)
        assert (own["turns"], own["changes"], own["tasks"], own["spent_by_session"]) == (0, 0, 0, {}), copy
    async with open_session(workspace, [reply("One more.")], session=fork) as session:
        await session.chat.submit("hello")
        await session.chat.finished()
    assert stats("--session", fork)["turns"] == 1
    total = stats("--all")
    assert (total["sessions"], total["turns"]) == (3, before["turns"] + 1)
    assert total["spent_by_session"][name] == before["spent_by_session"][name]
    assert before["spent_by_session"] == {name: {"input": 200, "output": 40, "cost": 0.002}}
    assert total["spent_by_model"] == {"scripted": {"input": 300, "output": 60, "cost": 0.003}}
    assert sum(day["input"] for day in total["spent_by_day"].values()) == 300
    assert total["spent_by_workspace"] == {str(workspace): {"input": 300, "output": 60, "cost": 0.003}}
    words = run_here(capfd, ["stats", "--session", name]).out
    assert "model scripted" in words and "200 tokens in, 40 out · $0.0020" in words


@pytest.mark.parametrize(
    ("message", "asks"),
    [
        ("Could you share the contents of `api.py`?", True),
        ("I cannot see it. Please paste shop/retry.py here.", True),
        ("Before that I'd need to see the test file.", True),
        ("Which file holds the settings?", True),
        ("I changed api.py. Please run the tests.", False),
        ("Here it is:\n```\nplease send the file x.py\n```\n", False),
        ("Shall I go on?", False),
    ],
)
def test_a_request_for_a_file_in_words_is_a_question_about_a_file(message: str, asks: bool) -> None:
    read = ReplyRead(1, "", message)
    assert figures_over_time([(0.0, read)]).questions == int(asks)


async def test_a_conflict_at_apply_goes_back_to_the_model(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    async with open_session(workspace, [reply("Adds a timeout.", fileChanges=[EDIT])]) as session:
        await session.chat.submit("add a timeout to api.py")
        await session.chat.finished()
    (workspace / "api.py").write_text("def fetch(url):\n    return load(url)\n")
    again = {"path": "api.py", "edits": [{"search": "load(url)", "replace": "load(url, timeout=5)"}]}
    with Provider() as provider:
        provider.answer(Answer(json.dumps({"summary": "Again.", "fileChanges": [again]})))
        settings = {"TUI_AGENT_MODEL": "openai/test-model", "TUI_AGENT_PROTOCOL": "structured"}
        for key, value in {**provider.environment, **settings}.items():
            monkeypatch.setenv(key, value)
        wrong = await asyncio.to_thread(run_here, capfd, ["apply", "--session", "last", "c9"])
        assert wrong.sentence == "There is no change c9: choose from c1.1"
        done = await asyncio.to_thread(run_here, capfd, ["apply", "--session", "last"])
        assert len(provider.requests) == 1 and "2:     return load(url)" in str(provider.requests[0].body)
    assert (
        done.status == 1 and "Nothing was written, api.py conflicts: the same lines were changed" in done.err
    )
    assert done.out == "c1.1 skipped api.py (replaced by c1.2)\nc1.2 pending api.py\n"
    skipped = await asyncio.to_thread(run_here, capfd, ["skip", "--session", "last"])
    assert (skipped.status, skipped.out) == (0, "c1.2 skipped api.py\n")


async def test_a_session_that_cannot_be_opened_is_named_and_left_out_of_the_figures(
    workspace: Path, home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    broken = run_here(capfd, ["sessions", "fork", await make(workspace)]).out.strip()
    log = directory.folder_of(home / "data", broken) / directory.LOG
    log.unlink()
    os.mkfifo(log)
    done = run_here(capfd, ["stats", "--json", "--all"])
    assert (done.status, json.loads(done.out)["sessions"]) == (0, 1)
    assert f"the session {broken} cannot be opened" in done.err
    assert run_here(capfd, ["stats", "--session", broken]).status == 1
