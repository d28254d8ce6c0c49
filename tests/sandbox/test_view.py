"""A view in real namespaces: what is in it, what a command can reach, what is left of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from support.trees import until

from tui_agent.sandbox import namespace_view
from tui_agent.sandbox.environment import variables
from tui_agent.sandbox.hidden_files import HiddenFiles
from tui_agent.sandbox.isolation import Rung, probe, runner_for
from tui_agent.sandbox.run import Run, RunResult
from tui_agent.sandbox.view_plan import MEGABYTE, Limits, NoView, Seed, plan

#: Our Python as a shell takes it.
PYTHON = shlex.quote(sys.executable)
PROBES = Path(__file__).parents[1] / "support" / "probes.py"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "a: work,space\\ of 'mine'"
    root.mkdir()
    (root / "a.txt").write_text("old\n")
    (root / "gone.txt").write_text("gone\n")
    (root / ".env").write_text("TOKEN=1\n")
    (root / "folder").mkdir()
    (root / "folder" / "b.txt").write_text("b\n")
    return root


async def run(
    root: Path, command: str, *seeds: Seed, timeout: float = 30, limits: Limits | None = None
) -> RunResult:
    hidden = [Seed(path, "hidden") for path in HiddenFiles(str(root)).paths()]
    made = plan(root, seeds=(*seeds, *hidden), limits=limits)
    chosen, _ = variables(str(root), made.places, os.environ)
    return await Run(timeout).alone(runner_for(made), ["/bin/sh", "-c", command], chosen)


def text(result: RunResult) -> str:
    return result.output.content().decode()


async def test_a_program_that_ends_just_as_it_is_waited_for_no_longer_is_no_error(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine both are seen at once."""
    limited = asyncio.timeout

    @contextlib.asynccontextmanager
    async def late(seconds: float | None) -> AsyncGenerator[None]:
        async with limited(seconds):
            yield
        if seconds == 1.0:
            raise TimeoutError

    monkeypatch.setattr(asyncio, "timeout", late)
    assert text(await run(root, "cat a.txt")) == "old\n"


async def test_a_view_whose_end_is_cancelled_is_ended(root: Path) -> None:
    async with namespace_view.View(plan(root), shared=True) as view:
        nowhere = os.open(os.devnull, os.O_RDWR)
        number = await view.start(["/bin/sleep", "1000"], {}, nowhere)
        os.close(nowhere)
        ending = asyncio.create_task(view.end())
        await asyncio.sleep(0)  # it awaits its process now
        ending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ending
        assert not view.runs(number) and view.merged == -1
        assert (await asyncio.wait_for(view.ended(number), 60)).status == -9


async def test_what_is_pending_is_there_and_nothing_reaches_the_folder(root: Path) -> None:
    result = await run(
        root,
        "pwd; cat a.txt new/c.txt; ls; echo more >> a.txt; rm -r folder",
        Seed("a.txt", "file", b"new\n"),
        Seed("new/c.txt", "file", b"c\n"),
        Seed("gone.txt", "gone"),
    )
    assert text(result) == f"{root}\nnew\nc\na.txt\nfolder\nnew\n"
    assert result.ok
    assert [(each.path, each.kind) for each in result.changes] == [
        ("a.txt", "changed"),
        ("folder/b.txt", "deleted"),
    ]
    assert result.changes[0].after == b"new\nmore\n"
    assert (root / "a.txt").read_text() == "old\n"
    assert sorted(os.listdir(root)) == [".env", "a.txt", "folder", "gone.txt"]


async def test_what_is_opened_as_a_view_ends_is_read(root: Path) -> None:
    """A descriptor with the number of the view's socket would lose its reader: another command's output was empty."""
    loop, seen = asyncio.get_running_loop(), set()

    def read(descriptor: int) -> None:
        os.eventfd_read(descriptor)
        seen.add(descriptor)

    async with namespace_view.View(plan(root)) as view:
        ending = asyncio.create_task(view.end())
        await asyncio.sleep(0)  # its socket is closed now
        opened = [os.eventfd(1) for _ in range(100)]
        try:
            for each in opened:
                loop.add_reader(each, read, each)
            await until(lambda: seen == set(opened))
            await ending
        finally:
            for each in opened:
                loop.remove_reader(each)
                os.close(each)


WRITES: list[tuple[str, list[tuple[str, str]]]] = [
    ("touch a.txt; chmod 600 a.txt; chmod 644 a.txt", []),
    ("mv a.txt x; mv x a.txt", []),
    ("echo x >> a.txt; printf 'old\\n' > a.txt", []),
    ("chmod +x a.txt", [("a.txt", "mode")]),
    ("rm -r folder; mkdir folder; printf 'b\\n' > folder/b.txt", []),
    (
        "rm -r folder; mkdir folder; echo c > folder/c.txt",
        [("folder/b.txt", "deleted"), ("folder/c.txt", "new")],
    ),
    ("rm -r folder; echo c > folder", [("folder/b.txt", "deleted"), ("folder", "new")]),
    ("rm a.txt; mkdir a.txt; echo c > a.txt/c", [("a.txt", "deleted"), ("a.txt/c", "new")]),
    ("mv folder other", [("folder/b.txt", "deleted"), ("other/b.txt", "new")]),
    ("ln -s a.txt link; mkfifo pipe; mkdir empty", [("link", "link"), ("pipe", "special")]),
    ("rm a.txt; ln -s /etc/passwd a.txt", [("a.txt", "link")]),
    ("echo x > .env; rm -f .env", []),
    ("mkdir closed; echo x > closed/x; chmod 0 closed/x closed", [("closed/x", "new")]),
]


@pytest.mark.parametrize(("command", "expected"), WRITES, ids=[command for command, _ in WRITES])
async def test_what_was_written_is_compared_with_what_was_there(
    root: Path, command: str, expected: list[tuple[str, str]]
) -> None:
    result = await run(root, command)
    assert [(each.path, each.kind) for each in result.changes] == expected, text(result)


async def test_a_pending_change_is_newer_than_what_was_compiled(root: Path) -> None:
    (root / "one.py").write_text("print(1)\n")
    (root / "two.py").write_text("import one\n")
    assert text(await run(root, f"{PYTHON} -B two.py")) == "1\n"
    await asyncio.create_subprocess_exec(sys.executable, "-m", "compileall", "-q", str(root))
    result = await run(root, f"{PYTHON} two.py", Seed("one.py", "file", b"print(2)\n"))
    assert text(result) == "2\n"


async def test_nothing_outside_can_be_reached(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_ed25519").write_text("a key")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("SSH_AUTH_SOCK", str(home / "agent"))
    path = str(tmp_path / "socket")
    shutil.copy(PROBES, root / "probes.py")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(path)
        unix.listen()
        with socket.socket(socket.AF_UNIX) as abstract:
            abstract.bind(f"\0{path}")
            abstract.listen()
            given = (server.getsockname()[1], path, os.getpid(), home / ".ssh" / "id_ed25519")
            arguments = " ".join(shlex.quote(str(each)) for each in given)
            result = await run(root, f"{PYTHON} probes.py {arguments}; env; ls -A $HOME")
    printed = text(result)
    assert json.loads(printed.partition("\n")[0]) == [], printed
    assert "SSH_AUTH_SOCK" not in printed
    assert not printed.rstrip().endswith(".ssh")


async def test_it_has_a_loopback_of_its_own(root: Path) -> None:
    (root / "own.py").write_text(
        "import socket\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "socket.create_connection(server.getsockname())\n"
        "print('yes')\n"
    )
    assert text(await run(root, f"{PYTHON} own.py")) == "yes\n"


def times(folder: Path) -> list[int]:
    return sorted(path.stat().st_mtime_ns for path in folder.rglob("*"))


async def test_git_works_and_the_real_folder_of_git_is_untouched(root: Path) -> None:
    process = await asyncio.create_subprocess_exec("git", "init", "-q", "-b", "main", str(root))
    await process.wait()
    before = times(root / ".git")
    result = await run(
        root, "git add -A && git -c user.name=A -c user.email=a@b commit -qm one && git log --format=%s"
    )
    assert text(result) == "one\n"
    assert result.changes == ()
    assert times(root / ".git") == before


@pytest.mark.parametrize(
    "command",
    [
        "sleep 60",
        "trap '' INT TERM HUP; while :; do sleep 1; done",
        "(setsid nohup sleep 60 >/dev/null 2>&1 &) ; sleep 60",
    ],
)
async def test_stopping_takes_half_a_second_whatever_the_command_does(root: Path, command: str) -> None:
    started = asyncio.Event()
    made = plan(root)
    chosen, _ = variables(str(root), made.places, os.environ)
    running = Run(told=lambda output: started.set())
    task = asyncio.create_task(
        running.alone(runner_for(made), ["/bin/bash", "-c", f"echo begun; {command}"], chosen)
    )
    await asyncio.wait_for(started.wait(), 20)
    running.stop()
    result = await asyncio.wait_for(task, 20)
    assert result.how == "stopped"
    assert text(result) == "begun\n"


async def test_limits_end_a_command_and_say_which(root: Path) -> None:
    limits = Limits(layer=20 * MEGABYTE, memory=300 * MEGABYTE, processes=40, file=1024 * MEGABYTE)
    result = await run(root, "sleep 60", timeout=0.3)
    assert result.how == "time-out"
    (root / "large.py").write_text("import time; held = b'x' * 600_000_000; time.sleep(20)")
    result = await run(root, f"{PYTHON} large.py", limits=limits)
    assert result.how == "memory"
    result = await run(root, "bomb() { bomb & bomb; sleep 20; }; bomb", limits=limits)
    assert result.how == "processes" or "fork" in text(result)
    result = await run(root, "head -c 50000000 /dev/zero > big", limits=limits)
    assert result.full
    assert "No space left" in text(result)


async def test_what_a_command_leaves_running_is_ended_and_named(root: Path) -> None:
    result = await run(root, "setsid sleep 300 >/dev/null 2>&1 & echo done")
    assert text(result) == "done\n"
    assert result.left == ("sleep",)


async def test_a_program_that_is_missing_is_an_error_of_the_command(root: Path) -> None:
    made = plan(root)
    chosen, _ = variables(str(root), made.places, os.environ)
    result = await Run().alone(runner_for(made), ["no-such-program"], chosen)
    assert result.status == 127
    assert "no-such-program" in text(result)


async def test_nothing_is_left_where_we_are_killed(root: Path, tmp_path: Path) -> None:
    """The kernel ends everything in the view with the process that asked for it."""
    script = tmp_path / "killed.py"
    script.write_text(
        f"""
import asyncio, os
from pathlib import Path
from tui_agent.sandbox.namespace_view import View
from tui_agent.sandbox.view_plan import plan
from tui_agent.sandbox.run import Run
print(os.getpid(), flush=True)
asyncio.run(Run(told=lambda output: print(output.last_line(), flush=True)).alone(
    View(plan(Path({str(root)!r}))), ["/bin/sh", "-c", "echo begun; exec sleep 4321"], {{"PATH": os.defpath}}))
"""
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(script), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    await process.stdout.readline()
    assert await process.stdout.readline() == b"begun\n"
    process.send_signal(signal.SIGKILL)
    await process.wait()
    assert await asyncio.to_thread(_is_gone, "4321")


def _is_gone(argument: str) -> bool:
    until = time.monotonic() + 10
    while _running(argument):
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def _running(argument: str) -> bool:
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and argument.encode() in Path(f"/proc/{name}/cmdline").read_bytes().split(
                b"\0"
            ):
                return True
        except OSError:
            continue
    return False


async def test_where_there_is_no_view_the_step_is_said(root: Path) -> None:
    """Inside a view no other can be made, which is how a machine without namespaces answers."""
    script = f"""
import asyncio, os, sys
sys.path[:0] = {sys.path!r}
from pathlib import Path
from tui_agent.sandbox.namespace_view import View
from tui_agent.sandbox.view_plan import NoView, plan
from tui_agent.sandbox.run import Run
try:
    asyncio.run(Run().alone(View(plan(Path({str(root)!r}))), ["true"], {{}}))
except NoView as error:
    print(error)
"""
    (root / "nested.py").write_text(script)
    made = plan(root, tools=[str(Path(__file__).parents[2])])
    chosen, _ = variables(str(root), made.places, os.environ)
    result = await Run().alone(runner_for(made), [sys.executable, "nested.py"], chosen)
    assert text(result).startswith("new namespaces: "), text(result)


async def test_the_best_that_works_here_is_found_by_doing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await probe() == Rung("overlay")
    monkeypatch.setattr(namespace_view, "_PROGRAM", "import os; os._exit(1)")
    monkeypatch.setattr(namespace_view.shutil, "which", lambda name: None)
    worse = await probe()
    assert worse.isolated == "none"
    assert worse.why == (
        "own namespaces: start: its program ended at once; bubblewrap: it is not installed; "
        "Landlock: start: its program ended at once"
    )


@pytest.mark.parametrize(
    ("root", "why"),
    [("/", "too much for a view"), ("/home-of-one", "too much for a view"), ("/dev", "is mounted below it")],
)
def test_a_folder_that_no_view_can_show_is_refused(root: str, why: str) -> None:
    with pytest.raises(NoView, match=why):
        plan(Path(root), environ={"HOME": "/home-of-one"})


async def test_sockets_of_the_machine_are_not_there_wherever_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the workspace, the home, a folder of tools, a cache, and where services keep theirs."""
    with tempfile.TemporaryDirectory() as base, contextlib.ExitStack() as stack:
        root, home = Path(base, "work"), Path(base, "home")
        monkeypatch.setenv("HOME", str(home))
        for folder in (root, home / ".local/bin", home / ".cache/pip", home / ".gnupg"):
            folder.mkdir(parents=True)
        folders = (root, home, home / ".local/bin", home / ".cache/pip", home / ".gnupg")
        shared = (Path(folder) for folder in ("/tmp", "/run", "/var/tmp", "/dev/shm"))
        places = [folder / f"tui-agent-test-{os.getpid()}" for folder in (*folders, *shared)]
        (root / "try.py").write_text(
            "import socket, sys\n"
            "for path in sys.argv[1:]:\n"
            "    try:\n"
            "        socket.socket(socket.AF_UNIX).connect(path)\n"
            "        print(path)\n"
            "    except OSError:\n"
            "        pass\n"
        )
        for place in places:
            line = stack.enter_context(socket.socket(socket.AF_UNIX))
            line.bind(str(place))
            stack.callback(place.unlink)
            line.listen()
        made = plan(root)
        assert str(home / ".local/bin") in made.binds
        chosen, _ = variables(str(root), made.places, os.environ)
        argv = [sys.executable, "try.py", *map(str, places)]
        assert text(await Run().alone(runner_for(made), argv, chosen)) == ""


async def test_the_environment_of_a_folder_and_its_editable_installs_see_what_is_pending(
    tmp_path: Path,
) -> None:
    """The path is the same, so that what names it by its path works: `.venv`, `*.pth`, scripts, `node_modules`."""
    root = tmp_path / "plain"
    (root / "src").mkdir(parents=True)
    (root / "src" / "ours.py").write_text("print('old')\n")
    made = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "venv", "--without-pip", str(root / ".venv")
    )
    await made.wait()
    (packages,) = (root / ".venv" / "lib").glob("python*/site-packages")
    (packages / "ours.pth").write_text(f"{root}/src\n")
    (root / "node_modules" / "theirs").mkdir(parents=True)
    (root / "node_modules" / "theirs" / "index.js").write_text("console.log('theirs')\n")
    result = await run(
        root,
        "cd /; python -c 'import ours, sys; print(sys.prefix)'; cd - >/dev/null; node -e 'require(\"theirs\")'",
        Seed("src/ours.py", "file", b"print('pending')\n"),
    )
    assert text(result) == f"pending\n{root}/.venv\ntheirs\n"
    assert result.changes == ()
