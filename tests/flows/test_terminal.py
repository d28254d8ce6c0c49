"""The program on a real pseudo-terminal: one write of several keys, suspending, and every way to end it."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from support.terminal_answers import ALL
from support.terminal_program import SHELL, Program, running

F5, F7, LEADER = b"\x1b[15~", b"\x1b[18~", b"\x0f"
#: What the program switches on: mouse, bracketed paste, alternate screen, kitty's keys, and what takes them back.
MODES = {"\x1b[?1000h": "\x1b[?1000l", "\x1b[?2004h": "\x1b[?2004l", "\x1b[?1049h": "\x1b[?1049l"}


@pytest.fixture
def program(tmp_path: Path, home: Path) -> Iterator[Program]:
    with running(Program("demo", folder=tmp_path, home=home)) as started:
        yield started


def test_letters_in_one_write_go_where_the_key_before_them_leads(program: Program) -> None:
    program.until(lambda: "Files" in program.text, "the files")
    program.type(F5 + F7 + LEADER + b"zq" + b"add tests")
    program.shows("add tests")
    assert program.process.poll() is None


def test_megabytes_of_answers_are_no_keys(program: Program) -> None:
    program.until(lambda: "Files" in program.text, "the files")
    program.type(F7)
    random, sent = Random(9), 0
    while sent < 2_000_000:
        flood = "".join(random.choices(ALL, k=50)) + f"\x1b]52;c;{'QUFh' * 25_000}\x1b\\"
        program.send(flood.encode("utf-8", "surrogateescape"))
        sent += len(flood)
    program.type(b"hello there")
    program.shows("hello there")
    assert "Files" in program.text and program.process.poll() is None


@pytest.mark.parametrize(("words", "term"), [(["demo"], "dumb"), (["demo", "--plain"], "xterm-256color")])
def test_a_dumb_terminal_and_an_option_get_the_plain_screen(
    tmp_path: Path, home: Path, words: list[str], term: str
) -> None:
    with running(Program(*words, folder=tmp_path, home=home, term=term)) as program:
        program.shows("1 of 15  Send the message")
        program.until(lambda: "Files" not in program.text and "Chat" in program.text, "one pane")
        assert "▎" not in program.text
        program.type(b"\x10")
        program.shows("Find an action")
        assert program.text.startswith("Find an action")


def test_suspending_gives_the_terminal_back_and_coming_back_takes_it_again(
    tmp_path: Path, home: Path
) -> None:
    wrapped = (SHELL, "sh", "-c", '"$@"; exit $?', "sh")  # as `make run` or `uv run` stand between
    with running(Program("demo", folder=tmp_path, home=home, starter=wrapped)) as program:
        before = termios.tcgetattr(program.master)[3]
        program.type(b"typed before")
        program.shows("typed before")
        program.type(F5)
        program.type(b"\x1a")
        program.until(lambda: os.tcgetpgrp(program.master) == program.process.pid, "the shell's terminal")
        program.until(lambda: "T" not in set().union(*program.jobs().values()), "the work continues")
        program.look()
        given_back = program.written.decode(errors="replace")
        assert all(given_back.rindex(off) > given_back.rindex(on) for on, off in MODES.items())
        assert termios.tcgetattr(program.master)[3] & termios.ICANON
        program.written = b""
        program.blank()
        program.process.send_signal(signal.SIGUSR1)
        program.until(lambda: all(on.encode() in program.written for on in MODES), "the modes again")
        assert termios.tcgetattr(program.master)[3] == before
        program.type(F7)
        program.shows("typed before")
        program.type(b"XYZ")
        program.shows("XYZ")


def test_the_message_can_be_written_in_an_editor_of_ones_own_while_the_program_goes_on(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "editor"
    script.write_text('echo IN THE EDITOR; read line < /dev/tty; echo "$line, after $(cat "$1")" > "$1"\n')
    monkeypatch.setenv("VISUAL", f"sh {script}")
    with running(Program("demo", folder=tmp_path, home=home)) as program:
        before = termios.tcgetattr(program.master)[3]
        program.type(b"\x15a draft")  # without what the rehearsal has put there
        program.shows("a draft")
        program.type(b"\x18\x05")
        program.until(lambda: b"IN THE EDITOR" in program.written, "the editor")
        assert termios.tcgetattr(program.master)[3] & termios.ICANON
        program.written = b""
        program.blank()
        program.type(b"written outside\n")
        program.shows("written outside, after")
        assert termios.tcgetattr(program.master)[3] == before
        program.type(b"XYZ")
        program.shows("XYZ")


def test_in_a_text_the_same_key_undoes_and_without_a_shell_it_suspends_nowhere(program: Program) -> None:
    """It leads the session of its terminal, as where a terminal or `ssh -t` starts it."""
    program.until(program.children, "children")  # the input is there: what is typed early is tried elsewhere
    program.type(b"word")
    program.shows("word")
    program.type(b"\x1a")
    program.until(lambda: "word" not in program.text, "undone")
    program.type(F5 + b"\x1a")
    program.shows("Not suspended")
    program.type(F7 + b"typed after")
    program.shows("typed after")


def ends(program: Program, within: float = 8.0) -> None:
    """It ends itself within 3 s at most; a busy machine may take longer over what is left to do then."""
    try:
        program.process.wait(within)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"still there after {within} s\n{program.text}") from None


def kept(home: Path, words: str) -> None:
    """The session can be written by another process, and holds what was typed."""
    log = next((home / "data" / "sessions").glob("*/log.sqlite3"))
    with (log.parent / "lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert any(words.encode() in path.read_bytes() for path in log.parent.glob("log.sqlite3*"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_although_its_children_are_stopped(
    program: Program, home: Path, number: signal.Signals
) -> None:
    program.until(program.children, "children")
    program.type(b"kept words")
    program.shows("kept words")
    for child in program.children():
        with suppress(ProcessLookupError):  # such as a short query of git
            os.kill(child, signal.SIGSTOP)
    program.process.send_signal(number)
    ends(program)
    kept(home, "kept words")


@pytest.mark.parametrize("how", ["signal", "closed"])
def test_a_terminal_that_does_not_read_holds_up_nothing(program: Program, home: Path, how: str) -> None:
    program.type(b"kept words")
    program.shows("kept words")
    for _ in range(150):  # frames that nobody reads, until the terminal takes no more
        program.type(b"\x1b[24~" + F5 + F7)
        time.sleep(0.01)
    if how == "signal":
        program.process.send_signal(signal.SIGTERM)
    else:
        os.close(program.master)
    ends(program)
    kept(home, "kept words")


def test_the_home_folder_opened_by_accident_is_asked_about_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    question = "is your home folder: all its files would be listed and watched. Open it? [y/N]:"
    for answer, then in ((b"\r", "nothing was opened"), (b"y\r", "Chat")):
        with running(Program(folder=tmp_path, home=tmp_path / "own"), sign="]:") as program:
            assert question in program.text.replace("\n", "")
            assert not (tmp_path / "own" / "data").exists()
            program.type(answer)
            program.shows(then)
