"""Real agents at a whole task: no file is touched until F8, and each step after it reaches the agent's view."""

from __future__ import annotations

import asyncio
import os
import shutil
import termios
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.agent_hosts import AgentHosts
from support.certificates import needs_openssl
from support.real_agents import RealAgent, Works, installed_agents
from support.repositories import repository
from support.sessions import open_session
from support.trees import until

from tui_agent.edits.change import Change, Pick
from tui_agent.outside_agents.profiles import load_profile
from tui_agent.session import outside_agents
from tui_agent.session.outside_agents import AgentRun
from tui_agent.session.session import Session
from tui_agent.ui.agents import AgentTerminal

#: Seconds for one task of an agent, on a loaded machine.
WITHIN = 240.0
A = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n"
HALF = A.replace("two", "TWO")
BOTH = HALF.replace("six", "SIX")
FILES = {
    "a.txt": A,
    "c.txt": "c\n",
    "old.txt": "".join(f"line {n}\n" for n in range(20)),
    "d.sh": "#!/bin/sh\n",
}
#: Files that the agent tries to write outside of the workspace.
OUTSIDE = ("/etc/escaped", "/usr/local/escaped", "/root/escaped", "/escaped", "/tmp/escaped", "../escaped")
FIRST = (
    "sed -i -e s/two/TWO/ -e s/six/SIX/ a.txt; mkdir -p n; echo new > n/e.txt; rm c.txt; mv old.txt new.txt; "
    f"chmod +x d.sh; for one in {' '.join(OUTSIDE)}; do echo x > $one; done 2>/dev/null; true"
)
SECOND = "sed -i s/nine/NINE/ a.txt"
BLOCK = "{path}\n```\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n```\n"
#: Texts of an agent without functions: it can only edit and create files.
TEXTS = {
    "TASK-1": BLOCK.format(path="a.txt", old=A, new=BOTH) + BLOCK.format(path="n/e.txt", old="", new="new\n"),
    "TASK-2": BLOCK.format(path="a.txt", old="eight\nnine\n", new="eight\nNINE\n"),
}
KINDS = {
    "a.txt": ("edit", None),
    "n/e.txt": ("create", None),
    "c.txt": ("delete", None),
    "old.txt": ("delete", None),
    "new.txt": ("create", None),
    "d.sh": ("edit", True),
}


def contents(root: Path) -> dict[str, tuple[int, bytes]]:
    """Mode and content of each file."""
    found = {}
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if name != ".git"]
        for name in files:
            path = Path(folder, name)
            found[str(path.relative_to(root))] = (path.stat().st_mode, path.read_bytes())
    return found


def escaped(root: Path) -> list[str]:
    return [path for path in OUTSIDE if os.path.lexists(root / path)]


def waiting(session: Session) -> dict[str, Change]:
    return {change.path: change for change in session.state.review.changes if change.waits}


def is_new(session: Session, path: str, text: str) -> bool:
    """Whether a waiting change would make a file so."""
    change = waiting(session).get(path)
    return change is not None and session.core.blobs.get_text(change.new) == text


async def does(run: AgentRun, prompt: str, log: Path) -> None:
    """Runs the agent without a terminal, to its end."""
    printed = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    run.start_command(run.headless(prompt), printed)
    os.close(printed)
    status = await asyncio.wait_for(run.ended(), WITHIN)
    output = await asyncio.to_thread(log.read_text, errors="replace")
    assert status == 0, output[-3000:]


async def whole_task(agent: RealAgent, session: Session, root: Path, home: Path, log: Path) -> AgentRun:
    """The task, F8 of one hunk, another task, and the undo."""
    before = contents(root)
    run = await session.outside_agents.open([agent.name], by_name=True)
    await does(run, "TASK-1: change the files", log)
    kinds = {path: (change.kind, change.executable) for path, change in waiting(session).items()}
    assert kinds == {path: KINDS[path] for path in (KINDS if agent.runs_commands else ("a.txt", "n/e.txt"))}
    assert is_new(session, "a.txt", BOTH) and is_new(session, "n/e.txt", "new\n")
    assert contents(root) == before
    await session.review.apply([Pick(waiting(session)["a.txt"].id, 0)])
    assert contents(root) == {**before, "a.txt": (before["a.txt"][0], HALF.encode())}
    await until(lambda: waiting(session)["a.txt"].hunks == ("pending",), "one hunk left")
    await does(run, "TASK-2: change it again", log)
    assert is_new(session, "a.txt", BOTH.replace("nine", "NINE"))
    assert contents(root) == {**before, "a.txt": (before["a.txt"][0], HALF.encode())}
    await session.review.undo()
    assert contents(root) == before
    undone = A.replace("nine", "NINE").replace("six", "SIX")
    await until(lambda: is_new(session, "a.txt", undone), "the undo in the view")
    return run


pytestmark = [pytest.mark.timeout(600), needs_openssl]


@pytest.mark.parametrize("agent", installed_agents())
async def test_a_task_of_five_kinds_is_reviewed_by_hunks_goes_on_and_is_undone(
    agent: RealAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, root = tmp_path / "home", repository(tmp_path / "work", FILES)
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    log = tmp_path / "output"
    brain = Works({"TASK-1": FIRST, "TASK-2": SECOND}, TEXTS)
    with AgentHosts(tmp_path / "authority", brain) as hosts:
        monkeypatch.setattr(outside_agents, "HostProxy", hosts.proxy)
        async with open_session(root, []) as session:
            agent.set_up(session.folders, home, hosts.authority, monkeypatch)
            await until(lambda: session.state.workspace.watching == "watching", "the watch")
            outside = contents(home)
            run = await whole_task(agent, session, root, home, log)
            begun = time.monotonic()
            await session.outside_agents.end(run)
            assert time.monotonic() - begun < 5
    assert contents(home) == outside
    assert escaped(root) == []
    # Its key was the one of the test's home: a request without it is refused.
    assert hosts.servers[agent.host].violations == [] and hosts.servers[agent.host].requests
    refused = {str(target) for target in hosts.proxies[0].refused}
    assert refused.isdisjoint(hosts.servers) and refused <= agent.also_asks


@pytest.mark.parametrize("agent", installed_agents("claude"))
async def test_two_real_agents_try_one_goal_beside_each_other(
    agent: RealAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, root = tmp_path / "home", repository(tmp_path / "work", FILES)
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    brain = Works({"TASK-1": FIRST}, TEXTS)
    with AgentHosts(tmp_path / "authority", brain) as hosts:
        monkeypatch.setattr(outside_agents, "HostProxy", hosts.proxy)
        async with open_session(root, []) as session:
            agent.set_up(session.folders, home, hosts.authority, monkeypatch)
            before = contents(root)
            names = await session.subtasks.best([agent.name, agent.name], "TASK-1: change the files")
            await asyncio.wait_for(session.subtasks.settled(), WITHIN)
            states = {task.id: task.state for task in session.state.subtasks.tasks}
            assert states == dict.fromkeys(names, "completed"), session.state.subtasks.tasks
            assert contents(root) == before and session.state.review.changes == ()
            assert await session.subtasks.take(names[1]) == len(KINDS)
            kinds = {path: (one.kind, one.executable) for path, one in waiting(session).items()}
            assert kinds == KINDS


@pytest.mark.parametrize("agent", installed_agents("claude", "codex", "opencode", "gemini", "vibe"))
async def test_real_agents_do_a_turn_in_the_chat_by_their_protocol(
    agent: RealAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("acp")
    home, root = tmp_path / "home", repository(tmp_path / "work", FILES)
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    brain = Works({"TASK-1": FIRST}, TEXTS)
    with AgentHosts(tmp_path / "authority", brain) as hosts:
        monkeypatch.setattr(outside_agents, "HostProxy", hosts.proxy)
        async with open_session(root, []) as session:
            agent.set_up(session.folders, home, hosts.authority, monkeypatch)
            adapter = load_profile(session.folders, agent.name).acp[0]
            if shutil.which(adapter) is None:
                raise pytest.skip.Exception(f"{adapter} is not installed: `make agents` installs it")
            before = contents(root)
            await session.delegate(agent.name, "TASK-1: change the files")
            await asyncio.wait_for(session.chat.finished(), WITHIN)
            assert session.state.turn.ok, session.state.turn.error
            kinds = {path: (one.kind, one.executable) for path, one in waiting(session).items()}
            assert kinds == KINDS and contents(root) == before
            replies = [one for one in session.state.chat.messages if one.kind == "agent"]
            assert replies[-1].text == "It is done."
            assert any(use.ok for one in replies for use in one.calls)


#: Ctrl+].
LEAVE = b"\x1d"


class Screen:
    """A terminal of 100 columns, of which the test has the other side."""

    def __init__(self, run: AgentRun, words: list[str]) -> None:
        self.terminal = AgentTerminal(100, 40)
        run.start(words, self.terminal.program)
        os.close(self.terminal.program)
        self.ended = asyncio.ensure_future(run.ended())
        self.ours, self._shown = os.openpty()
        termios.tcsetwinsize(self._shown, (40, 100))
        self.printed = bytearray()
        asyncio.get_running_loop().add_reader(self.ours, self._read)
        self.showing = self.show()

    def _read(self) -> None:
        self.printed += os.read(self.ours, 65536)

    def show(self) -> asyncio.Task[str]:
        self.showing = asyncio.create_task(self.terminal.show(self._shown, self._shown, self.ended))
        return self.showing

    def type(self, keys: bytes) -> None:
        os.write(self.ours, keys)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self.ours)
        os.close(self.ours)
        os.close(self._shown)
        self.terminal.close()


async def soon(check: Callable[[], bool], what: str, screen: Screen) -> None:
    for _ in range(6):
        try:
            await until(check, what)
            return
        except TimeoutError:
            continue
    raise AssertionError(f"{what}: {bytes(screen.printed[-3000:])!r}")


@pytest.mark.parametrize("agent", installed_agents("claude"))
async def test_an_agent_works_in_its_screen_while_its_changes_are_reviewed(
    agent: RealAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, root = tmp_path / "home", repository(tmp_path / "work", FILES)
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    done = {"hasCompletedOnboarding": True, "theme": "dark", "bypassPermissionsModeAccepted": True}
    known = {**done, "projects": {str(root): {"hasTrustDialogAccepted": True}}}
    agent = replace(agent, files={**agent.files, ".claude.json": known})
    with AgentHosts(tmp_path / "authority", Works({"TASK-1": FIRST})) as hosts:
        monkeypatch.setattr(outside_agents, "HostProxy", hosts.proxy)
        async with open_session(root, []) as session:
            agent.set_up(session.folders, home, hosts.authority, monkeypatch)
            await until(lambda: session.state.workspace.watching == "watching", "the watch")
            before = contents(root)
            run = await session.outside_agents.open([agent.name], by_name=True)
            screen = Screen(run, ["--dangerously-skip-permissions"])
            await soon(
                lambda: b"shortcuts" in screen.printed or b"bypass" in screen.printed, "its screen", screen
            )
            screen.type(b"TASK-1: change the files")
            await soon(lambda: b"TASK-1" in screen.printed, "the typed words", screen)
            screen.type(b"\r")
            await soon(lambda: waiting(session).keys() == KINDS.keys(), "the changes", screen)
            await soon(lambda: is_new(session, "a.txt", BOTH), "the edit", screen)
            assert run.running and contents(root) == before
            screen.type(LEAVE)
            assert await asyncio.wait_for(screen.showing, 20) == "left"
            await session.review.apply([Pick(waiting(session)["a.txt"].id, 0)])
            assert (root / "a.txt").read_text() == HALF and run.running
            screen.printed.clear()
            screen.show()
            await soon(lambda: b"\x1b[?2004h" in screen.printed, "its modes again", screen)
            screen.type(b"/exit")
            await soon(lambda: b"exit" in screen.printed, "the typed command", screen)
            screen.type(b"\r")
            assert await asyncio.wait_for(screen.showing, 60) == "ended"
            screen.close()
            await session.outside_agents.end(run)
            assert contents(root) == {**before, "a.txt": (before["a.txt"][0], HALF.encode())}
