"""An agent's work after its session was killed: it is in the review of the session that continues."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from support.repositories import repository
from support.terminal_program import Program, running

KEY = b"\x1d"


def killed(home: str) -> int:
    """Kills all our processes with this home at once. Returns their number."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            environment = Path(f"/proc/{name}/environ").read_bytes()
        except OSError:
            continue
        if f"TUI_AGENT_HOME={home}".encode() in environment.split(b"\0"):
            found.append(int(name))
    for one in found:
        os.kill(one, signal.SIGKILL)
    return len(found)


def test_what_an_agent_wrote_is_in_the_review_after_a_kill(tmp_path: Path) -> None:
    work, home = repository(tmp_path / "work", {"a.py": "one\ntwo\n"}), tmp_path / "home"
    # A value of this makes it no copy of a nursery, whose environment `killed` would find.
    alone = {"PYTHONHASHSEED": "0"}
    with running(Program("view", "--", "sh", folder=work, home=home, variables=alone), sign="# ") as it:
        it.type(b"sed -i s/two/TWO/ a.py; echo new > made.py; echo wri''tten\r")
        it.shows("written")
        it.type(KEY)
        it.shows("from sh")
        it.shows("made.py")
        assert killed(str(home))
        it.process.wait(10)
    assert (work / "a.py").read_text() == "one\ntwo\n" and not (work / "made.py").exists()
    with running(Program("--continue", folder=work, home=home), sign="Chat") as it:
        it.shows("2 changes")
        it.type(b"\x1b[15~")  # F5
        it.shows("made.py")
        it.type(b"\x1b[19~")  # F8
        it.shows("2 files written")
    assert (work / "a.py").read_text() == "one\nTWO\n" and (work / "made.py").read_text() == "new\n"
