"""An agent that executes each line that a test gives it, at work in a view of a session."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.repositories import repository
from support.sessions import open_session
from support.trees import until

from tui_agent.edits.change import Change
from tui_agent.session.outside_agents import AgentRun
from tui_agent.session.session import Session

FILES = {
    "a.py": "one\ntwo\nthree\nfour\nfive\nsix\nseven\n",
    "b.py": "b\n",
    "c.py": "c\n",
    "d.sh": "#!/bin/sh\n",
    ".gitignore": "build/\n*.log\n",
}
#: Runs commands from a pipe in its home. A read may find the end and no line: a process that was forked while the test
#: wrote holds the other end until it executes its program.
AGENT = '#!/bin/sh\nwhile :; do read -r line < "$HOME/pipe" && eval "$line"; done\n'


class Agent:
    """A running agent, steered by the test."""

    def __init__(self, session: Session, run: AgentRun, pipe: Path, root: Path) -> None:
        self.session, self.run, self.pipe, self.root = session, run, pipe, root

    async def does(self, line: str) -> None:
        await until(lambda: self._writes(line.encode() + b"\n"), f"it reads {line}")

    def _writes(self, line: bytes) -> bool:
        """Whether it reads from its pipe now."""
        try:
            pipe = os.open(self.pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return False
        with os.fdopen(pipe, "wb") as file:
            file.write(line)
        return True

    def change(self, path: str) -> Change | None:
        ours = [one for one in self.session.state.review.changes if one.path == path and one.waits]
        return ours[-1] if ours else None

    def new(self, path: str) -> str:
        change = self.change(path)
        return self.session.core.blobs.get_text(change.new) if change and change.new else ""

    async def until_new(self, path: str, text: str) -> None:
        await until(lambda: self.new(path) == text, f"{path} in the review: {self.new(path)!r}")

    async def sees(self, path: str, text: str) -> None:
        """Waits until a file is so for the agent."""
        seen, enough = (Path(self.run._home.path, name) for name in ("seen", "enough"))
        await asyncio.to_thread(seen.unlink, missing_ok=True)
        script = (
            'until [ -e "$HOME/enough" ]; do cat PATH > "$HOME/seen"; sleep 0.05; done; rm "$HOME/enough"'
        )
        await self.does(script.replace("PATH", path))
        await until(lambda: seen.exists() and seen.read_text() == text, f"{path} as {text!r}")
        await asyncio.to_thread(enough.touch)
        await until(lambda: not enough.exists(), "its end")

    async def done(self, line: str) -> None:
        """Has a line executed to its end."""
        marker = Path(self.run._home.path, "done")
        await asyncio.to_thread(marker.unlink, missing_ok=True)
        await self.does(f'{line}; : > "$HOME/done"')
        await until(marker.exists, f"the end of {line}")

    async def asks(self, script: str) -> str:
        """The output of a Python script in the view."""
        home = Path(self.run._home.path)
        await asyncio.to_thread((home / "script.py").write_text, script)
        await self.done('python3 "$HOME/script.py" > "$HOME/output" 2>&1')
        return await asyncio.to_thread((home / "output").read_text)

    async def another(self) -> Agent:
        """A second agent in a view of its own."""
        return await _begun(self.session, self.root)


async def _begun(session: Session, root: Path) -> Agent:
    run = await session.outside_agents.open(["someone"])
    pipe = Path(run._home.path, "pipe")
    os.mkfifo(pipe)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    run.start_command([run.profile.program], nowhere)
    os.close(nowhere)
    return Agent(session, run, pipe, root)


@asynccontextmanager
async def at_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Agent]:
    root = repository(tmp_path / "work", FILES)
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "someone").write_text(AGENT)
    (programs / "someone").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    async with open_session(root, []) as session:
        await session.workspace.ready()
        agent = await _begun(session, root)
        await until(lambda: session.state.workspace.watching == "watching", "the watch")
        try:
            yield agent
        finally:
            for run in list(session.outside_agents.running.values()):
                await session.outside_agents.end(run)
