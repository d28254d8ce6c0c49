"""An agent in the user's terminal, in the real program: it, the review, it again, and its end."""

from __future__ import annotations

import os
import subprocess
import termios
from pathlib import Path

from support.repositories import repository
from support.terminal_program import Program, running

KEY = b"\x1d"


def left_screen(it: Program) -> None:
    """Wait until the program has the terminal again: keys before that are text in the prompt."""
    it.until(
        lambda: it.written.rfind(b"\x1b[?1049l") > it.written.rfind(b"\x1b[?1049h"), "the program's screen"
    )


def test_a_program_is_shown_the_review_comes_by_key_and_nothing_is_written_until_it_is_applied(
    tmp_path: Path,
) -> None:
    work = repository(tmp_path / "work", {"a.py": "one\ntwo\n"})
    program = Program("view", "--", "sh", folder=work, home=tmp_path / "home")
    with running(program, sign="# ") as it:
        it.type(b"sed -i s/two/TWO/ a.py; echo chan''ged; printf '\\033]52;c;eA==\\a'\r")
        it.shows("changed")
        it.type(KEY)
        it.shows("sh is still running")
        it.shows("from sh")
        assert (work / "a.py").read_text() == "one\ntwo\n"
        it.type(b"\x1b[19~")  # F8
        it.shows("1 file written")
        assert (work / "a.py").read_text() == "one\nTWO\n"
        it.type(b"\x1b[18~/agent\r")  # F7
        left_screen(it)
        it.type(b"echo ag''ain\r")
        it.shows("again")
        it.type(b"exit 3\r")
        assert it.process.wait(10) == 3


CONNECT = (
    "import os,socket,urllib.parse as u\n"
    "p=u.urlsplit(os.environ['HTTPS_PROXY'])\n"
    "s=socket.create_connection((p.hostname,p.port))\n"
    "s.sendall(b'CONNECT host.local:9 HTTP/1.1\\r\\n\\r\\n')\n"
    "print('answer:',s.recv(4000).split()[1].decode())\n"
)


def test_a_host_that_a_program_asked_for_is_named_and_allowed_by_key(tmp_path: Path) -> None:
    work = repository(tmp_path / "work", {"a.py": "one\n", "ask.py": CONNECT})
    program = Program("view", "--", "sh", folder=work, home=tmp_path / "home")
    with running(program, sign="# ") as it:
        it.type(b"echo two >> a.py; python3 ask.py\r")
        it.shows("answer: 403")
        it.type(KEY)
        it.shows("from sh")
        it.shows("It also asked for host.local:9")
        it.type(b"\x1b[15~w")  # F5, the review
        it.shows("host.local:9   for sh, asked 1 time")
        it.type(b"\r")
        it.shows("sh can now connect to host.local:9")
        it.type(b"\x1b[18~/agent\r")  # F7
        left_screen(it)
        it.type(b"clear; python3 ask.py\r")
        it.shows("answer: 502")
        it.type(b"exit\r")
        it.shows("sh ended")


def modes(program: Program) -> list:
    return termios.tcgetattr(program.master)[:4]


def test_a_program_that_floods_resizes_and_dies_in_raw_mode_leaves_a_usable_terminal(tmp_path: Path) -> None:
    work = repository(tmp_path / "work", {"a.py": "one\n"})
    program = Program("view", "--", "sh", folder=work, home=tmp_path / "home")
    before = modes(program)
    with running(program, sign="# ") as it:
        it.type(b"head -c 500000 /dev/zero | tr '\\0' x; clear; echo flo''oded\r")
        it.shows("flooded")
        for number in range(300):
            it.resize(60 + number % 50, 20 + number % 10)
        it.resize(101, 33)
        it.settle()
        it.type(b"clear; stty size\r")
        it.shows("33 101")
        it.type(
            b"echo two >> a.py; stty raw -echo; printf '\\033[?1049h\\033[?1003h\\033[?2004h\\033[?25l'\r"
        )
        it.settle()
        at = len(it.written)
        it.type(b"printf '\\033]0;title\\007\\033]52;c;eA==\\007\\033P$qm\\033\\\\\\033[5n'; kill -9 $$\n")
        it.shows("from sh")  # The review.
        rest = it.written[at:]
        assert b"title" not in rest and b"]52" not in rest
        it.type(b"\x1bP1$r0m\x1b\\\x1b[0n\x1b[18~typed")  # Late answers to its questions, and F7.
        it.shows("▎ typed")
        it.type(b"\x7f" * 5)
        it.type(b"\x03")  # Ctrl+C
        it.shows("again to quit")
        it.type(b"\x03")
        assert it.process.wait(20) is not None
        it.look()
        for mode in (b"1049", b"1003", b"2004"):
            assert it.written.rfind(b"\x1b[?%sl" % mode) > it.written.rfind(b"\x1b[?%sh" % mode), mode
        assert it.written.rfind(b"\x1b[?25h") > it.written.rfind(b"\x1b[?25l")
        assert modes(program) == before


def test_ctrl_z_stops_a_program_for_good_neither_here_nor_in_the_view(tmp_path: Path) -> None:
    work = repository(tmp_path / "work", {"a.py": "one\n"})
    cat = ("sh", "-c", "echo rea''dy; exec cat")
    with running(Program("view", "--", *cat, folder=work, home=tmp_path / "home"), sign="ready") as it:
        it.type(b"\x1a")
        it.shows("^Z")
        it.type(b"still\r")
        it.until(lambda: it.text.count("still") == 2, "the echo and the line of cat")


def test_a_program_lives_on_if_its_terminal_is_closed_and_its_changes_are_found_in_the_next(
    tmp_path: Path,
) -> None:
    work = repository(tmp_path / "work", {"a.py": "one\n"})
    home, mark = tmp_path / "home", f"1000.{os.getpid()}"

    def running_still() -> bool:
        return (
            subprocess.run(["pgrep", "-f", f"sleep {mark}"], capture_output=True, check=False).returncode == 0
        )

    with running(Program("view", "--", "sh", folder=work, home=home), sign="# ") as it:
        it.type(f"echo two >> a.py; sleep {mark} & echo chan''ged\r".encode())
        it.shows("changed")
        os.close(it.master)
        with running(Program("--continue", folder=work, home=home), sign="from sh") as again:
            assert running_still() and it.process.poll() is None
            again.type(b"\x1b[19~")  # F8
            again.shows("1 file written")
            assert (work / "a.py").read_text() == "one\ntwo\n"
            again.type(b"\x1b[18~/agent\r")  # F7
            left_screen(again)
            again.type(b"echo ag''ain >> a.py; exit\r")
            again.shows("1 changed file in the review")
            it.process.terminate()
            assert it.process.wait(20) is not None
    assert not running_still() and (work / "a.py").read_text() == "one\ntwo\n"


def test_a_program_whose_session_is_ended_leaves_its_changes_in_the_log(tmp_path: Path) -> None:
    work = repository(tmp_path / "work", {"a.py": "one\n"})
    home = tmp_path / "home"
    with running(Program("view", "--", "sh", folder=work, home=home), sign="# ") as it:
        it.type(b"echo two >> a.py; echo chan''ged\r")
        it.shows("changed")
        it.process.terminate()
        assert it.process.wait(20) is not None
    with running(Program("--continue", folder=work, home=home), sign="Chat") as again:
        again.until(lambda: "● 1 change" in again.text or "change 1 of 1" in again.text, "the change")
        again.settle()
        again.type(b"\x1b[19~")  # F8
        again.shows("1 file written")
        assert (work / "a.py").read_text() == "one\ntwo\n"
