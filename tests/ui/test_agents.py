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
