"""Sessions whose terminal is closed, left or handed over: they run on, and another terminal continues them."""

from __future__ import annotations

import json
import os
import signal
import termios
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from support.program import run, started
from support.provider import Answer, Provider
from support.terminal_program import PATIENCE, SHELL, Program, running

from tui_agent.control import sockets

LEADER, F3 = b"\x0f", b"\x1bOR"


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Provider]:
    """A model, and a folder of sockets that belongs to this test."""
    private = tmp_path / "sockets"
    private.mkdir()
    monkeypatch.setenv("TMPDIR", str(private))
    with Provider() as found:
        model = {"TUI_AGENT_MODEL": "openai/test-model", "TUI_AGENT_PLANNER_MODEL": "none"}
        for name, value in (found.environment | model).items():
            monkeypatch.setenv(name, value)
        yield found


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def sessions(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run("ps", "--json", folder=folder).stdout.splitlines()]


def session_when(folder: Path, holds: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """The only running session, once this holds for it."""
    until = time.monotonic() + PATIENCE
    while True:
        found = sessions(folder)
        if len(found) == 1 and holds(found[0]):
            return found[0]
        assert time.monotonic() < until, found
        time.sleep(0.05)


def ended(pid: int) -> None:
    until = time.monotonic() + PATIENCE
    while Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]:
        assert time.monotonic() < until, f"{pid} has not ended"
        time.sleep(0.05)


def exits(program: Program) -> int | None:
    """The exit status of a program whose terminal is read until then."""
    program.until(lambda: program.process.poll() is not None, "the end")
    program.look()
    return program.process.returncode


def test_a_closed_terminal_leaves_the_turn_running_and_another_terminal_shows_its_reply(
    workspace: Path, home: Path, provider: Provider
) -> None:
    provider.answer(Answer("the answer is complete", hold_after=1))
    with ExitStack() as last:
        program = last.enter_context(running(Program(".", folder=workspace, home=home), sign="Chat"))
        found = session_when(workspace, lambda it: it["attached"])
        program.type(b"a question\r")
        provider.wait_for(1)
        os.close(program.master)
        found = session_when(workspace, lambda it: not it["attached"])
        assert (found["state"], found["pid"]) == ("works", program.process.pid)
        provider.release()
        session_when(workspace, lambda it: it["state"] == "done")
        second = last.enter_context(
            running(Program("attach", folder=workspace, home=home), sign="the answer is complete")
        )
        second.type(b"typed there")
        second.shows("typed there")
        second.resize(100, 30)
        second.until(lambda: "typed there" in second.text, "the text at another size")
        second.type(LEADER + b"&")
        assert exits(second) == 0
        second.shows("returns to it")
        assert termios.tcgetattr(second.master)[3] & termios.ICANON
        assert run("stop", found["id"], folder=workspace).returncode == 0
        ended(found["pid"])
        assert sessions(workspace) == []


def test_two_terminals_use_a_session_in_turn_and_a_killed_session_leaves_its_terminal_clean(
    workspace: Path, home: Path, provider: Provider
) -> None:
    with ExitStack() as last:
        first = last.enter_context(running(Program(".", folder=workspace, home=home), sign="Chat"))
        found = session_when(workspace, lambda it: it["attached"])
        second, third = (
            last.enter_context(running(Program("attach", found["id"], folder=workspace, home=home), "Chat"))
            for _ in range(2)
        )
        first.until(lambda: b"this window can be closed" in first.written, "the farewell")
        assert exits(second) == 0
        farewell = b"opened in another terminal"  # on a terminal that nobody has read in between
        second.until(lambda: farewell in second.written, "the farewell")
        third.type(b"newest")
        third.shows("newest")
        os.kill(found["pid"], signal.SIGKILL)
        assert exits(third) == 1
        third.shows("ended unexpectedly")
        assert termios.tcgetattr(third.master)[3] & termios.ICANON
        assert third.written.rindex(b"\x1b[?1049l") > third.written.rindex(b"\x1b[?1049h")
        assert sessions(workspace) == []


def test_a_queued_message_waits_until_a_terminal_is_there_and_without_one_the_session_ends(
    workspace: Path, home: Path, provider: Provider
) -> None:
    provider.answer(Answer("first reply", hold_after=1))
    provider.answer(Answer("second reply"))
    words = (".", "--set", "session.linger=3")
    with ExitStack() as last:
        program = last.enter_context(running(Program(*words, folder=workspace, home=home), sign="Chat"))
        session_when(workspace, lambda it: it["attached"])
        program.type(b"one\r")
        provider.wait_for(1)
        program.type(b"two\r")
        program.shows("two")
        os.close(program.master)
        found = session_when(workspace, lambda it: not it["attached"])
        provider.release()
        session_when(workspace, lambda it: it["state"] == "done")
        assert len(provider.requests) == 1
        second = last.enter_context(
            running(Program("attach", folder=workspace, home=home), sign="second reply")
        )
        second.process.send_signal(signal.SIGKILL)
        ended(found["pid"])


@pytest.mark.parametrize("mode", [0o777, 0o755, None, *([] if os.geteuid() else [0o700])])
def test_a_folder_of_sockets_that_is_not_private_is_refused(
    workspace: Path, provider: Provider, mode: int | None
) -> None:
    folder = Path(os.environ["TMPDIR"]) / f"tui-agent-{os.geteuid()}"
    if mode is None:
        folder.symlink_to(workspace)
    else:
        folder.mkdir()
        folder.chmod(mode)
    if mode == 0o700:
        os.chown(folder, 65_534, 65_534)
    done = run("ps", folder=workspace)
    assert done.returncode == 1
    assert ("belongs to another user" if mode == 0o700 else "cannot be used") in done.stderr


def test_a_session_begun_without_a_terminal_is_offered_by_the_next_start(
    workspace: Path, home: Path, provider: Provider
) -> None:
    provider.answer(Answer("done without anybody"))
    begun = run("--bg", "do it", folder=workspace)
    assert begun.returncode == 0, begun.stderr
    found = session_when(workspace, lambda it: it["state"] == "done")
    assert (found["id"], found["attached"]) == (begun.stdout.strip(), False)
    with running(Program(folder=workspace, home=home), sign="Open it?") as program:
        assert f"{found['id']} runs here without a terminal (done)" in program.text
        program.type(b"\r")
        program.shows("done without anybody")
        assert session_when(workspace, lambda it: it["attached"])["pid"] == found["pid"]
    assert run("stop", found["id"], folder=workspace).returncode == 0
    ended(found["pid"])


def test_an_attached_terminal_goes_to_its_shell_and_fg_returns(
    workspace: Path, home: Path, provider: Provider
) -> None:
    provider.answer(Answer("the reply of the turn", hold_after=1))
    assert run("--bg", "do it", folder=workspace).returncode == 0
    found = session_when(workspace, lambda it: it["state"] == "works")
    wrapped = (SHELL,)
    with running(Program("attach", folder=workspace, home=home, starter=wrapped), sign="do it") as program:
        program.type(F3 + b"\x1a")
        program.until(lambda: os.tcgetpgrp(program.master) == program.process.pid, "the shell's terminal")
        assert termios.tcgetattr(program.master)[3] & termios.ICANON
        assert session_when(workspace, lambda it: not it["attached"])["state"] == "works"
        provider.release()
        session_when(workspace, lambda it: it["state"] == "done")
        program.process.send_signal(signal.SIGUSR1)
        program.shows("the reply of the turn")
        assert session_when(workspace, lambda it: it["attached"])["pid"] == found["pid"]
    assert run("stop", found["id"], folder=workspace).returncode == 0
    ended(found["pid"])


def test_a_session_that_cannot_begin_without_a_terminal_says_why(workspace: Path, provider: Provider) -> None:
    done = run("--bg", "do it", "--set", "theme=7up", "--set", "limits.requests=none", folder=workspace)
    assert done.returncode == 1
    assert "limits.requests" in done.stderr
    assert sessions(workspace) == []


def test_a_session_that_is_open_elsewhere_comes_to_this_terminal_and_others_can_follow_there(
    workspace: Path, home: Path, provider: Provider
) -> None:
    provider.answer(Answer("first reply"))
    with ExitStack() as last:
        first = last.enter_context(running(Program(".", folder=workspace, home=home), sign="Chat"))
        first.type(b"one\r")
        first.shows("first reply")
        found = session_when(workspace, lambda it: it["attached"])
        second = last.enter_context(
            running(Program("--continue", folder=workspace, home=home), sign="first reply")
        )
        first.until(lambda: b"this window can be closed" in first.written, "the farewell")
        second.type(LEADER + b"B")  # a new session, in the process whose terminal this is not
        following = session_when(workspace, lambda it: it["id"] != found["id"] and it["attached"])
        assert following["pid"] == found["pid"]
        second.type(b"typed in the new one")
        second.shows("typed in the new one")
        second.type(LEADER + b"&")
        assert exits(second) == 0
        assert run("stop", following["id"], folder=workspace).returncode == 0
        ended(found["pid"])


def test_a_question_is_answered_by_its_number_and_events_are_followed(
    workspace: Path, home: Path, provider: Provider
) -> None:
    provider.answer(
        Answer('{"summary": "", "commands": [{"command": "echo seen"}]}'),
        Answer("the command has run"),
    )
    assert run("--bg", "run it", "--set", "commands.ask=always", folder=workspace).returncode == 0
    found = session_when(workspace, lambda it: it["state"] == "asks")
    assert "echo seen" in found["asks"] and found["choices"][0] == "once"
    refused = run("answer", found["id"], "9", folder=workspace)
    assert (refused.returncode, "choose from 1 to" in refused.stderr) == (1, True)
    with started("logs", found["id"], "-f", folder=workspace) as follower:
        assert follower.stdout is not None
        assert json.loads(follower.stdout.readline())["asks"]
        assert run("answer", found["id"], "1", folder=workspace).returncode == 0
        session_when(workspace, lambda it: it["state"] == "done")
        assert run("stop", found["id"], folder=workspace).returncode == 0
        assert {"command", "command_result"} <= {json.loads(line)["type"] for line in follower.stdout}
        assert follower.wait(PATIENCE) == 0


def test_sessions_that_begin_and_end_while_they_are_listed_are_no_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    ours, place = sockets.listen("one")
    scandir = os.scandir

    @contextmanager
    def scanned(path: Path) -> Generator[list[os.DirEntry[str]]]:
        """The entries of a folder whose first one is gone when it is looked at."""
        (path / ".two.1").touch()
        with scandir(path) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        (path / ".two.1").unlink()
        yield found

    monkeypatch.setattr(os, "scandir", scanned)
    assert sockets.places() == [place]
    ours.close()


def test_a_session_is_listed_under_its_own_name_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    listening, place = sockets.listen("20260101-000000-abcd")
    with listening:
        (place.folder / place.name).rename(place.folder / f".{place.name}")
        assert sockets.places() == [], "it is about to get its name"
        (place.folder / f".{place.name}").rename(place.folder / place.name)
        assert sockets.places() == [place]


INBOX = b"\x0e"


def test_the_inbox_shows_another_session_in_this_terminal_while_this_one_continues(
    workspace: Path, home: Path, provider: Provider
) -> None:
    provider.answer(
        Answer("reply of the first"), Answer("reply of the second"), Answer("later", hold_after=1)
    )
    ids = []
    for words in ("first", "second"):
        ids.append(run("--bg", words, folder=workspace).stdout.strip())
        until = time.monotonic() + PATIENCE
        while [it["state"] for it in sessions(workspace)] != ["done"] * len(ids):
            assert time.monotonic() < until
            time.sleep(0.05)
    first, second = ids
    with running(Program("attach", first, folder=workspace, home=home), "reply of the first") as program:
        program.type(b"\x1b[18~" + b"wait\r")
        provider.wait_for(3)
        program.type(INBOX)
        program.shows("workspace · second")
        program.type(b"\r")
        program.shows("reply of the second")
        states = {it["id"]: (it["attached"], it["state"]) for it in sessions(workspace)}
        assert states == {first: (False, "works"), second: (True, "done")}
        program.type(INBOX)
        program.shows("workspace · first")
        program.type(b"\r")
        program.shows("reply of the first")
        program.type(LEADER + b"&")
        assert exits(program) == 0
    provider.release()
    for name in ids:
        assert run("stop", name, folder=workspace).returncode == 0


def test_a_program_with_its_own_terminal_gets_it_back_after_a_visit(
    workspace: Path, home: Path, provider: Provider
) -> None:
    provider.answer(Answer("reply of the other"))
    other = run("--bg", "do it", folder=workspace).stdout.strip()
    session_when(workspace, lambda it: it["state"] == "done")
    wrapped = (SHELL,)
    elsewhere = workspace.parent / "elsewhere"
    elsewhere.mkdir()
    with running(Program(".", folder=elsewhere, home=home, starter=wrapped), sign="Chat") as program:
        program.type(b"kept")
        program.shows("kept")
        program.type(INBOX)
        program.shows("workspace · do it")
        program.type(b"\r")
        program.shows("reply of the other")
        program.until(lambda: "kept" not in program.text, "the whole screen")
        states = {it["id"] == other: it["attached"] for it in sessions(workspace)}
        assert states == {True: True, False: False}
        program.type(LEADER + b"&")
        program.shows("kept")
        program.type(b" text")
        program.shows("kept text")
        assert [it["attached"] for it in sessions(workspace)] == [False, True]
        program.type(b"\x03\x03")
        exits(program)
    assert run("stop", other, folder=workspace).returncode == 0


def test_of_several_attaches_at_once_one_has_the_session(
    workspace: Path, home: Path, provider: Provider
) -> None:
    begun = run("--bg", "", str(workspace), folder=workspace).stdout.strip()
    with ExitStack() as last:
        programs = [Program("attach", begun, folder=workspace, home=home) for _ in range(5)]
        for program in programs:
            last.enter_context(running(program, sign=""))

        def ended() -> list[Program]:
            for program in programs:
                program.look()
            return [program for program in programs if program.process.poll() is not None]

        programs[0].until(lambda: len(ended()) == 4, "the end of all but one")
        (only,) = set(programs) - set(ended())
        only.type(b"typed")
        only.shows("typed")
        assert all(program.process.returncode == 0 for program in ended())
        assert all(termios.tcgetattr(program.master)[3] & termios.ICANON for program in ended())
        assert session_when(workspace, lambda it: it["attached"])["id"] == begun
        assert run("stop", begun, folder=workspace).returncode == 0


def test_a_terminal_that_closes_in_a_paste_leaves_a_session_that_can_be_used(
    workspace: Path, home: Path, provider: Provider
) -> None:
    with running(Program(".", folder=workspace, home=home), sign="Chat") as program:
        found = session_when(workspace, lambda it: it["attached"])
        os.set_blocking(program.master, False)
        rest = b"\x1b[200~" + b"pasted text\n" * 900_000
        until = time.monotonic() + 1
        while time.monotonic() < until:
            program.look()
            with suppress(BlockingIOError):
                rest = rest[os.write(program.master, rest[:65_536]) :]
        os.close(program.master)
        program.master = os.open(os.devnull, os.O_RDWR)
        session_when(workspace, lambda it: not it["attached"])
        with running(Program("attach", folder=workspace, home=home), sign="Chat") as another:
            another.type(b"\x03 typed after it")
            another.shows("typed after it")
            assert session_when(workspace, lambda it: it["attached"])["pid"] == found["pid"]


def test_a_session_that_cannot_be_attached_ends_with_its_terminal(
    workspace: Path, home: Path, provider: Provider
) -> None:
    sockets.folder().mkdir(mode=0o755)
    with running(Program(".", folder=workspace, home=home), sign="Chat") as program:
        program.type(b"typed")
        program.shows("typed")
        os.close(program.master)
        program.master = os.open(os.devnull, os.O_RDWR)
        program.until(lambda: program.process.poll() is not None, "the end")
