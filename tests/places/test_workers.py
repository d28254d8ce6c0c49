"""Sub-tasks in places: real workers in a shell, behind a real sshd, in a container, and behind stand-ins of srun and
kubectl."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from support.places import ENGINES, IMAGE, container_words
from support.repositories import repository
from support.sessions import reply
from support.ssh_server import PROGRAM, FarHost, far_host
from support.subtasks import GoalModel, states
from support.trees import until
from support.workers import ROOT, in_place, install, nothing_left, workers

from tui_agent import __version__
from tui_agent.places import link
from tui_agent.store import events as e
from tui_agent.store.graph import SubTask
from tui_agent.ui.slash_commands import call_of

GOAL = "Do part a"
TASK = SubTask("a", GOAL)
SHELL: dict[str, object] = {"run": "sh -c {command}"}


def made(text: str = "new\n") -> dict:
    return reply("Made a.", fileChanges=[{"path": "a.txt", "content": text}])


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders and processes of workers are those of this test."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("TEST_OF", str(os.getpid()))
    monkeypatch.setenv("PATH", f"{install(tmp_path / 'installed')}:{os.environ['PATH']}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return repository(tmp_path / "my work", {"start.txt": "start\n", ".gitignore": "*.log\n"})


async def test_its_events_arrive_and_its_changes_wait_in_the_review(folder: Path, home: Path):
    model = GoalModel({GOAL: [made()]})
    streamed, costs = [], []
    async with in_place(folder, model, [TASK], SHELL) as session:

        def look(event: e.Event, _: object) -> None:
            if isinstance(event, e.SubTaskProgressed) and (child := session.subtasks.child("a")) is not None:
                streamed.append(child.state.reply.letters)
                costs.append(child.state.usage.session.cost)

        session.subscribe(look)
        await session.subtasks.run("a")
        await session.subtasks.settled()
        (task,) = session.state.subtasks.tasks
        assert (task.state, task.summary, task.runs) == ("completed", "Made a.", 1)
        assert (task.tokens, task.cost) == (120, 0.001)
        (change,) = session.state.review.changes
        assert (change.path, change.state, change.tasks) == ("a.txt", "pending", ("a",))
        await session.review.apply()
        assert (folder / "a.txt").read_text() == "new\n"
        kept = await session.subtasks.state_of("a")
        assert kept.chat.messages[0].text == GOAL
        assert session.state.usage.session.cost == 0.001
    assert len(model.requests) == 1
    await asyncio.to_thread(nothing_left)


async def test_it_has_unsaved_text_what_earlier_parts_changed_and_named_ignored_files(folder: Path):
    (folder / "named.log").write_text("line of a log\n")
    (folder / "other.log").write_text("another log\n")
    (folder / "secret.pem").write_text("-----BEGIN PRIVATE KEY-----\nMIIEvQ\n-----END PRIVATE KEY-----\n")
    tasks = (
        SubTask("first", "Do the first"),
        SubTask("a", GOAL, ("a.txt", "start.txt", "named.log"), ("first",)),
    )
    model = GoalModel({"Do the first": [made("of the first\n")], GOAL: [reply("Nothing to do.")]})
    async with in_place(folder, model, tasks, SHELL) as session:
        await session.files.open("start.txt")
        session.files.edit("start.txt", "typed\n", (0, 0), (0, 0))
        for name in ("first", "a"):
            await session.subtasks.run(name)
        await session.subtasks.settled()
        assert states(session) == {"first": "completed", "a": "completed"}
    sent = str(model.requests[-1].messages)
    assert "of the first" in sent and "typed" in sent and "line of a log" in sent
    assert "MIIEvQ" not in sent and "another log" not in sent


async def test_no_key_and_no_reserved_setting_reaches_the_worker(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-this-machine")
    seen = tmp_path / "seen"
    taps = f"env > {seen}.environ; tee {seen}.frames | {shlex.quote(sys.executable)} -P -m tui_agent"
    install(tmp_path / "installed", taps)
    (folder / "own").mkdir()
    model = GoalModel({GOAL: [made()]})
    async with in_place(folder, model, [TASK], SHELL, 'notify="say hush-hush"') as session:
        await session.subtasks.run("a")
        await session.subtasks.settled()
        assert states(session) == {"a": "completed"}
    frames = await asyncio.to_thread(lambda: link.Frames().feed(Path(f"{seen}.frames").read_bytes()))
    (begin,) = (frame for frame in frames if isinstance(frame, link.Call) and frame.method == "begin")
    assert begin.params["task"]["goal"] == GOAL and "limits.requests" in begin.params["settings"]
    assert "hush-hush" not in str(begin) and "sh -c" not in str(begin)
    assert "sk-of-this-machine" not in await asyncio.to_thread(Path(f"{seen}.environ").read_text)
    assert "sk-of-this-machine" not in str(frames)


async def test_stopped_within_two_seconds_and_nothing_is_left(folder: Path):
    model = GoalModel({GOAL: []})
    async with in_place(folder, model, [TASK], SHELL) as session:
        await session.subtasks.run("a")
        await until(lambda: model.unanswered == 1)
        begun = time.monotonic()
        await session.subtasks.stop("a")
        assert time.monotonic() - begun < 2
        assert states(session) == {"a": "cancelled"}
        await asyncio.to_thread(nothing_left)
        assert model.open == 0
        model.answers[GOAL] = [made()]
        await session.subtasks.retry("a")
        await session.subtasks.settled()
        assert states(session) == {"a": "completed"}


@pytest.mark.parametrize(("kills", "by"), [(1, signal.SIGTERM), (3, signal.SIGKILL)])
async def test_a_killed_worker_is_replaced_twice(folder: Path, kills: int, by: signal.Signals):
    """A queue and a container engine end a job by SIGTERM."""
    model = GoalModel({GOAL: []})
    async with in_place(folder, model, [TASK], SHELL) as session:
        await session.subtasks.run("a")
        for number in range(1, kills + 1):
            await until(lambda: model.unanswered == number and model.open == 1)  # noqa: B023
            if number == kills == 1:
                model.answers[GOAL] = [made()]
            os.kill(workers()[0], by)
        await session.subtasks.settled()
        (task,) = session.state.subtasks.tasks
        if kills == 1:
            assert (task.state, task.runs, len(session.state.review.changes)) == ("completed", 2, 1)
        else:
            assert (task.state, task.runs) == ("failed", 3)
            assert task.reason.startswith("The worker in there ended early")
    await asyncio.to_thread(nothing_left)


async def test_a_silent_worker_counts_as_lost(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(link, "SILENCE", link.BEAT + 1.5)
    model = GoalModel({GOAL: []})
    async with in_place(folder, model, [TASK], SHELL) as session:
        await session.subtasks.run("a")
        await until(lambda: model.unanswered == 1)
        model.answers[GOAL] = [made()]
        os.kill(workers()[0], signal.SIGSTOP)
        await session.subtasks.settled()
        (task,) = session.state.subtasks.tasks
        assert (task.state, task.runs) == ("completed", 2)
    await asyncio.to_thread(nothing_left)


OTHER = (
    f"exec {shlex.quote(sys.executable)} -P -c \"import sys, tui_agent; tui_agent.__version__ = '0.0.1'; "
    "from tui_agent.__main__ import main; sys.argv[0] = 'tui-agent'; main()\""
)
#: What is on the far side, and the reason of the failure.
WRONG = {
    "exit 127": f"tui-agent is not installed in there: install tui-agent {__version__} there",
    OTHER: f"tui-agent is version 0.0.1 there and {__version__} here: install tui-agent {__version__} there",
    "echo welcome; cat; exit 3": "The worker's answer cannot be read (ValueError: not a frame): let only the "
    "worker write to its output: run it without a terminal (-t)",
    "echo no room for you >&2; exit 3": "The worker in there ended early (no room for you): try `tui-agent places test "
    "there`",
}


async def test_a_place_that_closes_standard_input_is_told_apart(folder: Path):
    async with in_place(
        folder, GoalModel({}), [TASK], {"run": "sh -c 'exec \"$@\" </dev/null' sh {command}"}
    ) as session:
        await session.subtasks.run("a")
        await session.subtasks.settled()
        (task,) = session.state.subtasks.tasks
        assert "keep it open, such as -i of docker run" in task.reason


@pytest.mark.parametrize("words", WRONG)
async def test_one_sentence_for_a_place_that_does_not_fit(folder: Path, tmp_path: Path, words: str):
    install(tmp_path / "installed", f"echo x >> {tmp_path}/starts\n{words}")
    async with in_place(folder, GoalModel({}), [TASK], SHELL) as session:
        await session.subtasks.run("a")
        await session.subtasks.settled()
        (task,) = session.state.subtasks.tasks
        assert (task.state, task.reason, task.runs) == ("failed", WRONG[words], 3)
        assert not session.state.review.changes
    assert (tmp_path / "starts").read_text() == "x\n" * 3


def full_disk(variable: str, fill: str) -> str:
    """A place in which the folder of `variable` is on a disk of its own, of 300 kB."""
    mounted = f'mount -t tmpfs -o size=300k tmpfs "${variable}" && {{ {fill}; }} && exec "$@"'
    return f"unshare -rm sh -c {shlex.quote(mounted)} sh {{command}}"


@pytest.mark.parametrize(
    ("variable", "fill", "copy", "reason"),
    [
        ("XDG_CACHE_HOME", "true", "bundle", "The place there could not be used ("),
        (
            "TMPDIR",
            'head -c 400k /dev/zero >"$TMPDIR/all" 2>/dev/null || true',
            "mount",
            "The disk of the place is full: free some space there",
        ),
    ],
    ids=["of the copy", "of the worker"],
)
async def test_a_full_disk_there_moves_it_twice(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    fill: str,
    copy: str,
    reason: str,
):
    (tmp_path / "cache").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    run = full_disk(variable, fill)
    trial = await asyncio.create_subprocess_exec(*shlex.split(run)[:-1], "true")
    if await trial.wait():
        raise pytest.skip.Exception("this machine mounts no disk for an ordinary user")
    (folder / "large.txt").write_bytes(os.urandom(400_000))
    model = GoalModel({GOAL: [made("x" * 100_000)] * 3})
    async with in_place(folder, model, [TASK], {"run": run, "copy": copy}) as session:
        moved: list[str] = []
        session.subscribe(
            lambda event, _: moved.append(event.reason) if isinstance(event, e.SubTaskMoved) else None
        )
        await session.subtasks.run("a")
        await session.subtasks.settled()
        (task,) = session.state.subtasks.tasks
        assert (task.state, task.runs) == ("failed", 3), task
        assert task.reason.startswith(reason), task.reason
        assert [words[:15] for words in moved if words] == ["Moved (1 of 2).", "Moved (2 of 2)."]
        assert not session.state.review.changes
    await asyncio.to_thread(nothing_left)


async def test_a_worker_that_sends_other_events_is_refused(folder: Path, tmp_path: Path):
    hostile = tmp_path / "hostile.py"
    hostile.write_text(
        "import os, sys\n"
        "from tui_agent.places.link import *\n"
        "from tui_agent import __version__\n"
        "os.write(1, packed(Hello(PROTOCOL, __version__)) + packed(EventHappened({'type': sys.argv[1]})))\n"
        "sys.stdin.read()\n"
    )
    install(tmp_path / "installed", f"exec {shlex.quote(sys.executable)} {hostile} LayoutBroken")
    async with in_place(folder, GoalModel({}), [TASK], SHELL) as session:
        await session.subtasks.run("a")
        await session.subtasks.settled()
        (task,) = session.state.subtasks.tasks
        assert task.state == "failed" and "unknown event LayoutBroken" in task.reason


async def test_the_worker_may_ask_no_other_model_and_no_more_often_than_the_limit(folder: Path):
    model = GoalModel({GOAL: [made(), made("more\n")]})
    async with in_place(folder, model, [TASK], SHELL, "limits.requests=1") as session:
        session.models.requests.take()
        await session.subtasks.run("a")  # Renews the limit, as each request of the person does.
        session.models.requests.take()
        await session.subtasks.settled()
        (task,) = session.state.subtasks.tasks
        assert task.state == "failed" and "limits.requests" in task.reason
    assert not model.requests


async def test_checks_run_in_the_place(folder: Path):
    model = GoalModel({GOAL: [made("bad\n"), made("good\n")]})
    check = '[{"name": "tests", "command": "pwd; grep -q good a.txt"}]'
    async with in_place(folder, model, [TASK], SHELL, f"checks.commands={check}") as session:
        await session.subtasks.run("a")
        await session.subtasks.settled()
        (task,) = session.state.subtasks.tasks
        assert task.state == "completed", task.reason
        state = await session.subtasks.state_of("a")
        assert [result.state for result in state.checks.results] == ["passed"]
    assert "tests" in str(model.requests[-1].messages[-1]) and len(model.requests) == 2


async def test_attempts_of_best_run_there_and_one_is_taken(folder: Path):
    check = '[{"name": "tests", "command": "grep -q good a.txt"}]'
    model = GoalModel({GOAL: [made("good\n"), reply("No better.")]})
    async with in_place(folder, model, [], SHELL, f"checks.commands={check}") as session:
        call = call_of(session, f"/best 2 {GOAL}")
        assert call is not None
        await call
        await session.subtasks.settled()
        reports = sorted(task.summary for task in session.state.subtasks.tasks)
        assert reports == ["checks passed, 1 file, +1 -0: Made a.", "no change: No better."]
        assert not session.state.review.changes
        good = next(task.id for task in session.state.subtasks.tasks if task.summary.startswith("checks"))
        assert await session.subtasks.take(good) == 1
        await session.review.apply()
    assert (folder / "a.txt").read_text() == "good\n"
    await asyncio.to_thread(nothing_left)


@pytest.fixture
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[FarHost]:
    assert PROGRAM, "install the OpenSSH server"
    with far_host(tmp_path / "far", tmp_path / "home") as host:
        monkeypatch.setenv("PATH", f"{host.folder / 'near'}:{os.environ['PATH']}")
        yield host


@pytest.mark.parametrize("copy", ["bundle", "rsync"])
async def test_on_a_host(folder: Path, far: FarHost, copy: str):
    model = GoalModel({GOAL: [made()], "Do part b": []})
    tasks = [TASK, SubTask("b", "Do part b")]
    async with in_place(folder, model, tasks, {"run": "ssh far {command}", "copy": copy}) as session:
        await session.subtasks.run("a")
        await session.subtasks.settled()
        assert states(session)["a"] == "completed"
        assert [change.path for change in session.state.review.changes] == ["a.txt"]
        (start,) = (far.folder / ".cache" / "tui-agent" / "places").glob("*/tree/my work/start.txt")
        inode = start.stat().st_ino
        await session.subtasks.run("b")
        await until(lambda: model.unanswered == 1)
        assert start.stat().st_ino == inode, "the copy was sent again, and not the changes of a alone"
        assert not start.with_name("a.txt").exists()
        begun = time.monotonic()
        await session.subtasks.stop("b")
        assert time.monotonic() - begun < 2
    await asyncio.to_thread(nothing_left)


async def test_a_cut_line_moves_it(folder: Path, far: FarHost):
    model = GoalModel({GOAL: []})
    async with in_place(folder, model, [TASK], {"run": "ssh far {command}", "copy": "bundle"}) as session:
        await session.subtasks.run("a")
        await until(lambda: model.unanswered == 1)
        model.answers[GOAL] = [made()]
        far.drop()
        await session.subtasks.settled()
        (task,) = session.state.subtasks.tasks
        assert (task.state, task.runs) == ("completed", 2)
    await asyncio.to_thread(nothing_left)


@pytest.mark.parametrize("name", ["srun", "kubectl"])
async def test_in_a_queue_and_a_cluster_without_git(
    folder: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
):
    few = tmp_path / "few"
    few.mkdir()
    for program in ("sh", "tar", "find", "comm", "sort", "head", "sed", "rm", "mkdir", "touch", "cat", "pwd", "mv",
                    "printf", "rmdir", "grep", "sleep", "setsid", "env"):  # fmt: skip
        if found := shutil.which(program):
            (few / program).symlink_to(found)
    stand_in = tmp_path / "installed" / name
    shift = {"srun": 2, "kubectl": 4}[name]
    apart = f"cd / && exec env -i TEST_OF={os.getpid()} PATH={tmp_path / 'installed'}:{few} HOME={tmp_path}"
    # srun passes on whole lines only.
    words = '"$@" | LC_ALL=C sed -u ""' if name == "srun" else f'{apart} "$@"'
    stand_in.write_text(f"#!/bin/sh\nshift {shift}\n{words}\n")
    stand_in.chmod(0o755)
    run = {"srun": "srun -N1 -n1 {command}", "kubectl": "kubectl exec -i pod/app -- {command}"}[name]
    model = GoalModel({GOAL: [made()]})
    place = {"run": run, "copy": "mount" if name == "srun" else "bundle"}
    async with in_place(folder, model, [TASK], place) as session:
        await session.subtasks.run("a")
        await session.subtasks.settled()
        (task,) = session.state.subtasks.tasks
        assert task.state == "completed", task.reason


@pytest.mark.parametrize("engine", ENGINES)
async def test_in_a_container(
    folder: Path, tmp_path: Path, engine: str, tmp_path_factory: pytest.TempPathFactory
):
    words, why = container_words(tmp_path_factory.mktemp("image"), engine)
    if why:
        raise pytest.skip.Exception(why)
    mounts = (
        "/usr",
        "/lib",
        "/lib64",
        "/etc/passwd",
        str(ROOT),
        sys.base_prefix,
        str(tmp_path / "installed"),
    )
    shared = [word for one in dict.fromkeys(mounts) for word in ("-v", f"{one}:{one}:ro")]
    path = f"{tmp_path / 'installed'}:/usr/bin:/bin"
    run = [*words, "-i", *shared, "-e", f"PATH={path}", "-v", "{view}:/app", "-w", "/app", IMAGE, "{command}"]
    model = GoalModel({GOAL: [made()], "Do part b": []})
    tasks = [TASK, SubTask("b", "Do part b")]
    async with in_place(folder, model, tasks, {"run": shlex.join(run)}) as session:
        await session.subtasks.run("a")
        await session.subtasks.settled()
        (task, _) = session.state.subtasks.tasks
        assert task.state == "completed", task.reason
        await session.subtasks.run("b")
        await until(lambda: model.unanswered == 1)
        begun = time.monotonic()
        await session.subtasks.stop("b")
        assert time.monotonic() - begun < 3
