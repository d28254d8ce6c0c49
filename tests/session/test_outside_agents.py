"""An agent in a view: its changes reach the review, and no file."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest
from support.steered_agent import FILES, Agent, at_work
from support.trees import until

from tui_agent.edits.change import Pick
from tui_agent.errors import SessionError, SettingsError
from tui_agent.outside_agents.profiles import load_profile, summary_of
from tui_agent.session import outside_agents
from tui_agent.settings.folders import Folders


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


@pytest.mark.parametrize("steps", [1, 20])
async def test_a_cancelled_end_of_an_agent_closes_everything_and_stays_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    async with at_work(tmp_path, monkeypatch) as agent:
        view = agent.run._view
        ending = asyncio.create_task(agent.session.outside_agents.end(agent.run))
        for _ in range(steps):
            await asyncio.sleep(0)
        assert ending.cancel()
        await asyncio.wait([ending])
        assert ending.cancelled()
        assert view is not None and not view.runs(agent.run._number)
        again = await agent.session.outside_agents.open(["someone"])
        assert again._home.path == agent.run._home.path  # its lock is free


async def test_its_home_is_ours_with_copies_and_shared_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    async with at_work(tmp_path, monkeypatch) as agent:
        session = agent.session
        profiles = session.folders.config / "agent-programs"
        profiles.mkdir(parents=True)
        (profiles / "other.toml").write_text(
            f'program = "{tmp_path}/someone"\nhosts = ["a.example"]\n'
            'credentials = [".key"]\ncopied = [".settings"]\n'
        )
        # A folder around home and workspace is not visible, but the program in it is.
        shutil.copy(tmp_path / "programs" / "someone", tmp_path)
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
        with pytest.raises(SettingsError, match="no agent profile"):
            await session.outside_agents.open(["nobody"], by_name=True)
        monkeypatch.setattr(outside_agents, "needed_folders", lambda program: [])
        with pytest.raises(SessionError, match="someone is not visible in a view: add its folder"):
            await session.outside_agents.open([str(tmp_path / "someone")])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('program = "a', ""),
        ('program = ""', "length >= 1"),
        ("hosts = []", "`program`"),
        ('program = "a"\nsandbox = true', "unknown field `sandbox`"),
        ('program = "a"\nhosts = ["*.example"]', "`hosts` has '*.example'"),
        ('program = "a"\nhosts = ["127.0.0.1"]', "an address instead of a name"),
        ('program = "a"\ncopied = ["../key"]', "below the home"),
        ('program = "a"\ncredentials = ["/etc/shadow"]', "below the home"),
        ('program = "a"\nheadless = ["-p"]', "needs {prompt}"),
        ('program = "a"\narguments = ["\\u0000"]', "NUL"),
        ('program = "a"\nmemory = -1', "memory"),
        ('program = "a"\nvariables = ["A=b"]', "variables"),
    ],
)
def test_a_profile_that_cannot_be_used_is_one_sentence(tmp_path: Path, text: str, why: str) -> None:
    folders = Folders(*[tmp_path] * 4)
    (tmp_path / "agent-programs").mkdir()
    (tmp_path / "agent-programs" / "mine.toml").write_text(text)
    with pytest.raises(SettingsError, match=r"mine\.toml cannot be used as a profile") as refused:
        load_profile(folders, "mine")
    assert why in str(refused.value) and "\n" not in str(refused.value)
    assert summary_of(folders, "mine") == refused.value.what
    (tmp_path / "agent-programs" / "mine.toml").write_text('program = "/bin/sh"\nhosts = ["a.example:8443"]')
    assert summary_of(folders, "mine") == "/bin/sh · a.example:8443"


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
        assert any("tried to connect to host.local:9" in one for one in said)
        assert any("view of someone is nearly full" in one for one in said)
        assert await agent.session.outside_agents.allow_host("host.local:9") == "someone"
        await agent.does(connect)
        await until(lambda: "cannot be reached" in agent.new("answer.txt"), "the try")
        assert agent.run._hosts.load() == ["host.local:9"]
