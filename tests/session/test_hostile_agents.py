"""Agents that do odd or hostile things in their views, and a user who works on the same files."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from support.sessions import model_of, reply
from support.steered_agent import FILES, Agent, at_work
from support.trees import run_git, until

from tui_agent.edits.change import Pick
from tui_agent.files.private import replace_private
from tui_agent.sandbox import layer_changes
from tui_agent.session import outside_agents

A = FILES["a.py"]


def files_of(root: Path) -> dict[str, tuple[int, bytes]]:
    """Mode and content of each file, git's included, without its index and lock files."""
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            if path.name != "index":
                found[str(path.relative_to(root))] = (path.lstat().st_mode, path.read_bytes())
    return found


def notices(agent: Agent) -> str:
    return "\n".join(notice.text for notice in agent.session.state.notices.items)


# ── ways out ─────────────────────────────────────────────────────────────────────────────────────────────────


#: Tries to connect to sockets; each refusal is a line.
CONNECT = """
import socket
for place in {!r}:
    one = socket.socket(socket.AF_UNIX)
    try:
        one.connect(place)
        print("reached", repr(place))
    except OSError:
        print("refused")
"""


@contextmanager
def daemon(address: str) -> Generator[list[int]]:
    """A daemon outside on a Unix socket; counts its clients."""
    clients: list[int] = []
    server = socket.socket(socket.AF_UNIX)
    server.bind(address)
    server.listen()
    server.settimeout(0.1)
    over = threading.Event()

    def serve() -> None:
        while not over.is_set():
            try:
                server.accept()[0].close()
                clients.append(1)
            except TimeoutError:
                continue

    serving = threading.Thread(target=serve)
    serving.start()
    try:
        yield clients
    finally:
        over.set()
        serving.join()
        server.close()


async def test_no_socket_of_this_machine_is_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    abstract = f"\0tui-agent-{os.getpid()}"
    monkeypatch.chdir(tmp_path)  # The address of a socket is short.
    async with at_work(tmp_path, monkeypatch) as agent:
        login = tmp_path / "home" / ".codex"
        login.mkdir()
        os.symlink("daemon.sock", login / "linked.sock")
        places = ("home/.codex/daemon.sock", "home/later.sock", "work/daemon.sock", "programs/daemon.sock")
        with ExitStack() as daemons:
            if os.access("/opt", os.W_OK):  # programs of the system could listen there
                of_system = daemons.enter_context(TemporaryDirectory(dir="/opt"))
                places = (*places, f"{of_system}/daemon.sock")
            reached = [daemons.enter_context(daemon(place)) for place in (*places, abstract)]
            asked = [*(str(tmp_path / place) for place in (*places, "home/.codex/linked.sock")), abstract]
            assert await agent.asks(CONNECT.format(asked)) == "refused\n" * len(asked)
            assert not any(reached)


async def test_daemons_and_forks_end_with_the_agent_and_what_they_wrote_is_in_the_review(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with at_work(tmp_path, monkeypatch) as agent:
        mark = os.getpid()
        daemons = f"setsid sh -c '(while :; do date +%N > late.txt; sleep 0.1; done) & sleep 1000.{mark}' < /dev/null &"
        await agent.done(f"{daemons} nohup sleep 1001.{mark} > /dev/null 2>&1 & sleep 1002.{mark} & true")
        await until(lambda: agent.change("late.txt"), "a daemon's file")
        first = agent.new("late.txt")
        await until(lambda: agent.new("late.txt") != first, "a daemon at work")
        running = await asyncio.to_thread(_running, f".{mark}")
        assert len(running) >= 4, running
        await agent.does("exit 0")
        assert await agent.run.ended() == 0
        assert await asyncio.to_thread(_running, f".{mark}") == []
        assert agent.change("late.txt") and not (agent.root / "late.txt").exists()
        await agent.session.outside_agents.end(agent.run)


def _running(word: str) -> list[bytes]:
    """Command lines of processes with a word."""
    return [line for line in _command_lines() if word.encode() in line]


def _command_lines() -> list[bytes]:
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            found.append(Path(f"/proc/{name}/cmdline").read_bytes())
        except OSError:
            continue
    return found


async def test_credentials_are_one_in_two_views_and_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with at_work(tmp_path, monkeypatch) as agent:
        home, folders = tmp_path / "home", agent.session.folders
        profiles = folders.config / "agent-programs"
        profiles.mkdir(parents=True)
        (profiles / "other.toml").write_text(
            f'program = "{tmp_path}/programs/someone"\ncredentials = [".token"]\n'
        )
        (home / ".token").write_text("old")
        runs = [await agent.session.outside_agents.open(["other"], by_name=True) for _ in range(2)]
        inside = [Path(run._home.path, ".token") for run in runs]
        assert inside[0] != inside[1]
        for number, place in enumerate((inside[0], inside[1], home / ".token")):
            text = f"refreshed {number}"
            await asyncio.to_thread(replace_private, place, text.encode())
            for other in (*inside, home / ".token"):
                await until(lambda other=other, text=text: other.read_text() == text, f"{other} is {text}")
        # A file that an agent is writing is not copied, and not replaced.
        (home / ".token").write_text('{"token": 1}')
        await until(lambda: inside[0].read_text() == '{"token": 1}', "JSON")
        for half in ("", '{"tok'):
            inside[0].write_text(half)
            runs[0]._home._share_once()
            assert inside[0].read_text() == half and (home / ".token").read_text() == '{"token": 1}'
        inside[0].write_text('{"token": 2}')
        await until(lambda: (home / ".token").read_text() == '{"token": 2}', "the whole file")
        await until(lambda: inside[1].read_text() == '{"token": 2}', "the whole file in the other view")
        # A refresh in the moment of the end is written back too.
        inside[1].write_text('{"token": 3}')
        await agent.session.outside_agents.end(runs[1])
        assert (home / ".token").read_text() == '{"token": 3}'


# ── git and odd files ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("line", "path", "text"),
    [
        ("echo more >> b.py; git add -A; git commit -qm done", "b.py", "b\nmore\n"),
        ("echo more >> b.py; git stash -q; git stash pop -q", "b.py", "b\nmore\n"),
        ("git checkout -q -b other; echo o > o.py; git add o.py; git commit -qm o", "o.py", "o\n"),
        ("git clean -fdxq; echo cleaned > b.py", "b.py", "cleaned\n"),
        ("git commit -q --allow-empty -m x; git reset -q --hard; echo reset > b.py", "b.py", "reset\n"),
        ("git rm -q c.py; git commit -qm x; git rebase -q HEAD~0; echo n > n.py", "n.py", "n\n"),
        ("rm -rf .git; git init -q; echo again > b.py", "b.py", "again\n"),
    ],
)
async def test_commits_and_their_like_leave_the_repository_and_their_content_is_in_the_review(
    line: str, path: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with at_work(tmp_path, monkeypatch) as agent:
        (agent.root / "build").mkdir()
        (agent.root / "build" / "kept.o").write_text("ignored")
        before, head = files_of(agent.root), run_git(agent.root, "rev-parse", "HEAD")
        await agent.done(
            f"export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; {line}"
        )
        await agent.until_new(path, text)
        assert files_of(agent.root) == before
        assert run_git(agent.root, "rev-parse", "HEAD") == head and not run_git(agent.root, "stash", "list")


async def test_many_new_files_a_huge_one_and_the_rename_of_a_large_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outside_agents, "MOST_FILES", 200)
    async with at_work(tmp_path, monkeypatch) as agent:

        async def reviewed(folders: set[str]) -> None:
            await until(
                lambda: {c.path.partition("/")[0] for c in agent.session.state.review.open} == folders
            )

        await agent.done("truncate -s 900M sparse.bin; truncate -s 3G huge.bin")
        await until(lambda: "sparse.bin is left out: it is too large" in notices(agent), "the large file")
        await agent.done("mkdir many; (cd many; seq 300 | xargs touch)")
        await until(lambda: "writes more files than the 200" in notices(agent), "the limit")
        assert len(agent.session.state.review.open) <= 200
        await agent.done("rm -r many *.bin; mkdir folder; (cd folder; seq 100 | xargs touch)")
        await reviewed({"folder"})
        await agent.done("mv folder renamed; echo end > last.txt")
        await reviewed({"renamed", "last.txt"})
        assert set(files_of(agent.root)) >= set(FILES) and not (agent.root / "many").exists()


async def test_files_beyond_the_limit_are_reviewed_when_others_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outside_agents, "MOST_FILES", 20)
    async with at_work(tmp_path, monkeypatch) as agent:
        await agent.done("mkdir first; (cd first; seq 20 | xargs touch)")
        await until(lambda: len(agent.session.state.review.open) == 20, "its first files")
        await agent.done("echo last > last.txt")
        await until(lambda: "writes more files than the 20" in notices(agent), "the limit")
        await agent.done("rm -r first")
        await agent.until_new("last.txt", "last\n")


async def test_links_folders_and_files_in_each_others_place_and_odd_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "victim").write_text("whole\n")
    async with at_work(tmp_path, monkeypatch) as agent:
        before = files_of(agent.root)
        await agent.done(
            f"rm a.py; mkdir a.py; echo in > a.py/in.txt; rm b.py; ln -s {outside}/victim b.py; ln -s {outside} out; "
            "echo x > out/written 2>/dev/null; ln d.sh hard.sh; chmod 000 c.py; "
            "touch \"$(printf 'new\\nline')\" \"$(printf 'bad\\377name')\" 'a b' '*' 'é' 'É' -- -dash; mkfifo pipe; "
            "printf 'one\\r\\ntwo\\r\\n' > crlf.txt; printf '\\357\\273\\277bom\\n' > bom.txt; "
            "printf '\\377\\376a\\0' > wide.txt; echo last > last.txt"
        )
        await agent.until_new("last.txt", "last\n")
        await until(lambda: agent.change("crlf.txt") and agent.change("bom.txt"), "its texts")
        assert files_of(agent.root) == before
        assert (outside / "victim").read_text() == "whole\n" and not (outside / "written").exists()
        for said in (
            "b.py is left out: it is a link",
            "out is left out: it is a link",
            "pipe is left out: it is not",
        ):
            await until(lambda said=said: said in notices(agent), said)
        assert {one.path for one in agent.session.state.review.open} >= {
            "hard.sh",
            "crlf.txt",
            "bom.txt",
            "a b",
        }
        # The link in the place of a file leads nowhere for the mirror either.
        (agent.root / "b.py").write_text("mine\n")
        await agent.until_new("last.txt", "last\n")
        await agent.sees("c.py", "c\n")
        assert (outside / "victim").read_text() == "whole\n"


async def test_ignored_files_hide_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FILES, ".gitignore", "*\n!*.py\n!*/\n!.gitignore\nout/\n")
    monkeypatch.setattr(layer_changes, "BUDGET", layer_changes.BUDGET._replace(files=30))
    async with at_work(tmp_path, monkeypatch) as agent:

        async def reviewed(*paths: str) -> None:
            for whole in (False, True):
                await until(lambda: {c.path for c in agent.session.state.review.open} == {*paths}, str(paths))
                if not whole:
                    await agent.run.propose_all()

        run_git(agent.root, "add", "-f", "d.sh")
        await agent.done(
            "mkdir -p out src; (cd out; seq 40 | xargs touch); echo 1 > src/m.py; touch src/n.o ':!x' ':!y.py'; "
            "echo >> d.sh"
        )
        await reviewed("src/m.py", "d.sh", ":!y.py")
        # By rules of its own too, which apply to what was proposed before; and beyond what a reader holds.
        await agent.done("mkdir src/packages; (cd src/packages; seq -f %g.py 20 | xargs touch)")
        await until(lambda: len(agent.session.state.review.open) == 23, "new files")
        await agent.done("echo packages > src/.gitignore; (cd src/packages; seq -f %g.py 40 | xargs touch)")
        await reviewed("src/m.py", "d.sh", ":!y.py", "src/.gitignore")
        await agent.done("mkdir a; (cd a; seq -f %g.py 50 | xargs touch)")
        await agent.run.propose_all()
        assert agent.change("src/m.py") and "more than" in notices(agent)


async def test_modes_and_links_of_the_user_reach_the_view(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with at_work(tmp_path, monkeypatch) as agent:
        root, review = agent.root, agent.session.review
        look = (
            "import os\nfor one in ('a.py', 'b.py', 'l', 'm', 'n', 'folder', 'd.sh', 'c.py'):\n"
            "    link = os.path.islink(one) and os.readlink(one)\n"
            "    print(one, link or ('folder' if os.path.isdir(one) else oct(os.stat(one).st_mode)[-3:]))"
        )

        async def shown(expected: str) -> None:
            for _ in range(50):
                if (found := await agent.asks(look)) == expected:
                    break
            assert found == expected

        def linked(name: str, target: str) -> None:
            os.symlink(target, root / "new.log")
            os.rename(root / "new.log", root / name)

        linked("l", "b.py")
        linked("m", "b.py")
        linked("n", "b.py")
        (root / "folder").mkdir()
        (root / "folder" / "f.py").write_text("f\n")
        await agent.sees("folder/f.py", "f\n")
        await agent.done("cat l m n d.sh; chmod +x c.py")
        await until(lambda: agent.change("c.py"), "its mode")
        by_rename(root / "c.py", "saved\n")
        by_rename(root / "d.sh", "saved\n")
        by_rename(root / "m", "file\n")
        linked("a.py", "c.py")
        linked("l", "d.sh")
        for name in ("b.py", "n"):
            (root / name).unlink()
            (root / name).mkdir()
            (root / name / "in.py").write_text("in\n")
        shutil.rmtree(root / "folder")
        (root / "folder").write_text("file\n")
        await agent.sees("n/in.py", "in\n")
        await agent.sees("d.sh", "saved\n")
        (root / "d.sh").chmod(0o755)
        seen = "a.py c.py\nb.py folder\nl d.sh\nm 644\nn folder\nfolder folder\nd.sh 755\nc.py 755\n"
        await shown(seen)
        # An overlay keeps a folder that was deleted below it.
        await until(lambda: "folder could not be copied into the view" in notices(agent), "the notice")
        await until(lambda: [(c.path, c.executable) for c in review.state.review.open] == [("c.py", True)])
        await review.apply()
        assert (root / "c.py").read_text() == "saved\n" and (root / "c.py").stat().st_mode & 0o100
        await review.undo()
        await shown(seen.replace("c.py 755", "c.py 644"))
        await until(lambda: not review.state.review.open, "nothing left")
        (root / "folder").unlink()
        (root / "folder").mkdir()
        (root / "folder" / "f.py").write_text("f\n")
        said = "folder could not be copied into the view of someone: it was deleted and made again"
        await until(lambda: said in notices(agent), said)


# ── two at one file ──────────────────────────────────────────────────────────────────────────────────────────


def by_rename(path: Path, text: str) -> None:
    saved = path.with_name("saved.tmp")
    saved.write_text(text)
    saved.rename(path)


def in_place(path: Path, text: str) -> None:
    path.write_text(text)


def removed_and_written(path: Path, text: str) -> None:
    path.unlink()
    path.write_text(text)


def over_a_backup(path: Path, text: str) -> None:
    path.rename(path.with_name("a.py.orig.log"))
    path.write_text(text)


def by_git(path: Path, text: str) -> None:
    root = path.parent
    run_git(root, "switch", "-q", "-c", "other")
    path.write_text(text)
    run_git(root, "commit", "-qam", "mine")
    run_git(root, "switch", "-q", "main")
    run_git(root, "switch", "-q", "other")


@pytest.mark.parametrize("save", [by_rename, in_place, removed_and_written, over_a_backup, by_git])
async def test_the_user_saves_in_every_way_and_both_changes_stay(
    save: Callable[[Path, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with at_work(tmp_path, monkeypatch) as agent:
        await agent.done("sed -i s/two/TWO/ a.py")
        await agent.until_new("a.py", A.replace("two", "TWO"))
        await asyncio.to_thread(save, agent.root / "a.py", A.replace("six", "mine"))
        both = A.replace("two", "TWO").replace("six", "mine")
        await agent.until_new("a.py", both)
        await agent.sees("a.py", both)
        # The same line: neither is lost, and the review asks.
        await asyncio.to_thread(in_place, agent.root / "a.py", A.replace("two", "2").replace("six", "mine"))
        await until(lambda: (one := agent.change("a.py")) is not None and one.state == "conflict", "conflict")
        assert (agent.root / "a.py").read_text() == A.replace("two", "2").replace("six", "mine")
        await agent.sees("a.py", both)


async def test_the_user_moves_and_deletes_folders_that_the_agent_works_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with at_work(tmp_path, monkeypatch) as agent:
        for name in ("kept", "gone", "read"):
            (agent.root / name).mkdir()
            (agent.root / name / "f.py").write_text("f\n")
            (agent.root / name / "g.py").write_text("g\n")
            await agent.sees(f"{name}/g.py", "g\n")
        await agent.done("echo more >> kept/f.py; echo more >> gone/f.py")
        await until(lambda: agent.change("kept/f.py") and agent.change("gone/f.py"), "its changes")
        (agent.root / "kept").rename(agent.root / "elsewhere")
        (agent.root / "read").rename(agent.root / "moved")
        shutil.rmtree(agent.root / "gone")
        await agent.sees("moved/g.py", "g\n")

        def conflicts() -> list[str]:
            return sorted(one.path for one in agent.session.state.review.changes if one.state == "conflict")

        await until(lambda: conflicts() == ["gone/f.py", "kept/f.py"], "its work on files that are gone")
        assert await agent.asks("import os; print(os.path.exists('read'))") == "False\n"
        said = "elsewhere/f.py could not be copied into the view of someone: the view keeps"
        await until(lambda: said in notices(agent), said)


async def test_a_file_that_changes_without_a_report_is_brought_into_the_view(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with at_work(tmp_path, monkeypatch) as agent:
        await agent.asks("print(open('b.py').read())")
        listen = agent.run.on_batch
        monkeypatch.setattr(agent.run, "on_batch", lambda changes: None)
        replace_private(agent.root / "b.py", b"unseen\n")
        listen(())
        await agent.sees("b.py", "unseen\n")


async def test_hunks_are_applied_and_undone_while_the_agent_writes_the_file_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with at_work(tmp_path, monkeypatch) as agent:
        await agent.does(
            'n=0; while [ ! -e "$HOME/stop" ]; do n=$((n+1)); sed -i "s/^six.*/six $n/" a.py; sleep 0.02; done; '
            "sed -i s/one/ONE/ a.py"
        )
        for _ in range(5):
            await until(lambda: agent.change("a.py"), "its change")
            change = agent.change("a.py")
            assert change is not None
            await agent.session.review.apply([Pick(change.id, 0)])
            assert (agent.root / "a.py").read_text() != A
            await agent.session.review.undo()
            assert (agent.root / "a.py").read_text() == A
        await asyncio.to_thread(Path(agent.run._home.path, "stop").touch)
        await until(lambda: agent.new("a.py").startswith("ONE\n"), "its last write")
        lines = agent.new("a.py").splitlines()
        assert lines[1:5] == A.splitlines()[1:5] and lines[6:] == A.splitlines()[6:]


async def test_two_agents_change_one_line_and_the_second_becomes_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with at_work(tmp_path, monkeypatch) as agent:
        second = await agent.another()
        await agent.done("sed -i s/two/first/ a.py")
        await second.done("sed -i -e s/two/second/ -e s/seven/SEVEN/ a.py")
        ids = [f"{one.run.source}.1" for one in (agent, second)]

        def states() -> list[str]:
            found = [agent.session.state.review.change(one) for one in ids]
            return [change.state for change in found if change]

        await until(lambda: len(states()) == 2, "both changes")
        assert sorted(states()) == ["conflict", "pending"]  # Both are there, and only one is applied by F8.
        first = ids[states().index("pending")]
        await agent.session.review.apply([Pick(first)])
        await until(lambda: sorted(states()) == ["applied", "conflict"], "the conflict with the file")
        text = (agent.root / "a.py").read_text()
        assert ("first" in text) != ("second" in text)
        # The other agent works on, and its view has kept its own text.
        await second.sees("a.py", A.replace("two", "second").replace("seven", "SEVEN"))


async def test_a_change_of_the_model_stays_open_beside_that_of_an_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with at_work(tmp_path, monkeypatch) as agent:
        review, session = agent.session.review, agent.session
        model_of(session).replies.append(reply(fileChanges=[{"path": "b.py", "content": "of the model\n"}]))
        await session.chat.submit("change b.py")
        await session.chat.finished()
        (change,) = session.state.review.open
        await agent.done("echo agent > b.py")
        await until(lambda: agent.change("b.py") not in (None, change), "the agent's change")
        mine = agent.change("b.py")
        assert session.state.review.change(change.id) == change
        assert mine is not None and (mine.state, mine.rival) == ("conflict", change.id)
        await review.skip([Pick(change.id)])
        await until(lambda: (one := agent.change("b.py")) is not None and one.state == "pending", "its turn")
        await review.apply()
        assert (agent.root / "b.py").read_text() == "agent\n"
