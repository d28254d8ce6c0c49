"""An agent in the user's terminal, in the real program: it, the review, it again, and its end."""

from __future__ import annotations

from pathlib import Path

from support.repositories import repository
from support.terminal_program import Program, running

KEY = b"\x1d"


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
        it.settle()
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
        it.settle()
        it.type(b"clear; python3 ask.py\r")
        it.shows("answer: 502")
        it.type(b"exit\r")
        it.shows("sh ended")
