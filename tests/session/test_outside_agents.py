"""An agent in a view: its changes reach the review, and no file."""

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

from tui_agent.edits.change import Change, Pick
from tui_agent.errors import SettingsError
from tui_agent.session import outside_agents
from tui_agent.session.outside_agents import AgentRun
from tui_agent.session.session import Session

FILES = {
    "a.py": "one\ntwo\nthree\nfour\nfive\nsix\nseven\n",
    "b.py": "b\n",
    "c.py": "c\n",
    "d.sh": "#!/bin/sh\n",
    ".gitignore": "build/\n*.log\n",
}
#: Runs commands from a pipe in its home.
AGENT = '#!/bin/sh\nwhile read -r line < "$HOME/pipe"; do eval "$line"; done\n'


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
        seen, marker = Path(self.run._home.path, "seen"), f"{path} as {text!r}"
        await self.does(
            f'while cat {path} > "$HOME/seen" && [ ! -e "$HOME/enough" ]; do sleep 0.05; done; rm "$HOME/enough"'
        )
        await until(lambda: seen.exists() and seen.read_text() == text, marker)
        await asyncio.to_thread(Path(self.run._home.path, "enough").touch)


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
        run = await session.outside_agents.open(["someone"])
        pipe = Path(run._home.path, "pipe")
        os.mkfifo(pipe)
        run.start_command([run.profile.program], os.open(os.devnull, os.O_WRONLY))
        await until(lambda: session.state.workspace.watching == "watching", "the watch")
        try:
            yield Agent(session, run, pipe, root)
        finally:
            await session.outside_agents.end(run)


async def test_five_kinds_of_change_are_in_the_review_while_it_works_and_no_file_is_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with at_work(tmp_path, monkeypatch) as agent:
        before = {path: (agent.root / path).read_bytes() for path in FILES}
        await agent.does(
            "sed -i s/two/TWO/ a.py; echo more >> b.py; rm c.py; chmod +x d.sh; mkdir -p n/m; echo new > n/m/e.py; "
            "mkdir build; echo x > build/o.bin; echo y > z.log; touch .git/odd"
        )
        await agent.until_new("n/m/e.py", "new\n")
        await until(lambda: len(agent.session.state.review.open) == 5, "five changes")
        kinds = {change.path: (change.kind, change.executable) for change in agent.session.state.review.open}
        assert kinds == {
            "a.py": ("edit", None),
            "b.py": ("edit", None),
            "c.py": ("delete", None),
            "d.sh": ("edit", True),
            "n/m/e.py": ("create", None),
        }
        assert {path: (agent.root / path).read_bytes() for path in FILES} == before
        # The same change of the path is another text now; what it took back is withdrawn.
        first = agent.change("a.py")
        await agent.does("sed -i s/six/SIX/ a.py; git checkout -q b.py || echo b > b.py")
        await agent.until_new("a.py", FILES["a.py"].replace("two", "TWO").replace("six", "SIX"))
        again = agent.change("a.py")
        assert first and again and again.id == first.id
        await until(lambda: agent.change("b.py") is None, "b.py taken back")


async def test_one_hunk_is_applied_the_agent_goes_on_and_the_undo_is_written_into_its_view(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with at_work(tmp_path, monkeypatch) as agent:
        await agent.does("sed -i -e s/two/TWO/ -e s/six/SIX/ a.py")
        await agent.until_new("a.py", FILES["a.py"].replace("two", "TWO").replace("six", "SIX"))
        change = agent.change("a.py")
        assert change is not None
        await agent.session.review.apply([Pick(change.id, 0)])
        half = FILES["a.py"].replace("two", "TWO")
        assert (agent.root / "a.py").read_text() == half
        await until(
            lambda: (one := agent.change("a.py")) is not None and one.hunks == ("pending",), "one hunk left"
        )
        await agent.does("sed -i s/seven/SEVEN/ a.py")
        await agent.until_new("a.py", half.replace("six", "SIX").replace("seven", "SEVEN"))
        await agent.session.review.undo()
        assert (agent.root / "a.py").read_text() == FILES["a.py"]
        rest = FILES["a.py"].replace("six", "SIX").replace("seven", "SEVEN")
        await agent.until_new("a.py", rest)
        await agent.sees("a.py", rest)


async def test_saves_in_the_folder_reach_the_view_and_merge_with_its_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with at_work(tmp_path, monkeypatch) as agent:
        await agent.sees("b.py", "b\n")
        await agent.does("sed -i s/two/TWO/ a.py")
        await agent.until_new("a.py", FILES["a.py"].replace("two", "TWO"))
        for path, text in (("b.py", "saved\n"), ("a.py", FILES["a.py"].replace("six", "mine"))):
            (agent.root / "saved").write_text(text)
            (agent.root / "saved").rename(agent.root / path)
        (agent.root / "c.py").unlink()
        both = FILES["a.py"].replace("two", "TWO").replace("six", "mine")
        await agent.until_new("a.py", both)
        await agent.sees("a.py", both)
        await agent.sees("b.py", "saved\n")
        assert agent.change("b.py") is None and agent.change("c.py") is None
        await agent.does("cat c.py && echo there >> b.py || echo gone >> b.py")
        await agent.until_new("b.py", "saved\ngone\n")
        # Both change the same line.
        (agent.root / "a.py").write_text(FILES["a.py"].replace("two", "2").replace("six", "mine"))
        await until(lambda: (one := agent.change("a.py")) is not None and one.state == "conflict", "conflict")
        await agent.sees("a.py", both)


async def test_its_home_is_ours_with_copies_and_shared_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    async with at_work(tmp_path, monkeypatch) as agent:
        session = agent.session
        profiles = session.folders.config / "agent-programs"
        profiles.mkdir(parents=True)
        (profiles / "other.toml").write_text(
            f'program = "{tmp_path}/programs/someone"\nhosts = ["a.example"]\n'
            'credentials = [".key"]\ncopied = [".settings"]\n'
        )
        for name in (".key", ".settings", ".private"):
            (home / name).write_text(name)
        run = await session.outside_agents.open(["other"], by_name=True)
        inside = Path(run._home.path)
        assert {".key", ".settings", ".private"}.intersection(os.listdir(inside)) == {".key", ".settings"}
        os.mkfifo(inside / "pipe")
        run.start_command([run.profile.program], os.open(os.devnull, os.O_WRONLY))
        other = Agent(session, run, inside / "pipe", agent.root)
        await other.does(
            'echo new > "$HOME/k"; mv "$HOME/k" "$HOME/.key"; echo x > "$HOME/.settings"; ls -A /tmp'
        )
        await until(lambda: (home / ".key").read_text() == "new\n", "the key written back")
        assert (home / ".settings").read_text() == ".settings"
        (home / ".key").write_text("outside\n")
        await until(lambda: (inside / ".key").read_text() == "outside\n", "the key taken over")
        await session.outside_agents.end(run)
        with pytest.raises(SettingsError, match="no profile"):
            await session.outside_agents.open(["nobody"], by_name=True)


async def test_only_hosts_of_its_list_are_reached_and_others_are_named_and_can_be_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outside_agents, "LEAST_FREE", 1.0)  # Any file fills it nearly.
    async with at_work(tmp_path, monkeypatch) as agent:
        connect = (
            'python3 -c \'import os,socket,urllib.parse as u;p=u.urlsplit(os.environ["HTTPS_PROXY"]);'
            's=socket.create_connection((p.hostname,p.port));s.sendall(b"CONNECT host.local:9 HTTP/1.1\\r\\n\\r\\n");'
            'open("answer.txt","wb").write(s.recv(4000))\''
        )
        await agent.does(connect)
        await until(lambda: "host.local:9 is not on the list" in agent.new("answer.txt"), "the refusal")
        said = [notice.text for notice in agent.session.state.notices.items]
        assert any("also asked for host.local:9" in one for one in said)
        assert any("view of someone is nearly full" in one for one in said)
        assert await agent.session.outside_agents.allow_host("host.local:9") == "someone"
        await agent.does(connect)
        await until(lambda: "cannot be reached" in agent.new("answer.txt"), "the try")
        assert agent.run._hosts.load() == ["host.local:9"]
