"""`tui-agent ssh`: a session of another machine in this terminal."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click

from tui_agent import __version__
from tui_agent.control.launcher import RESET
from tui_agent.control.remote import shell_words, ssh_program
from tui_agent.errors import SessionError
from tui_agent.files.private import temporary_folder
from tui_agent.headless.output import note

#: Exit status of ssh if the connection failed or was lost.
LOST = 255
#: Seconds between attempts to connect again; the last is repeated.
PAUSES = (1, 2, 4, 8, 15)
#: Notices a dropped line within a quarter of a minute.
_ALIVE = ("-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3")
_MISSING = 127
_VERSION = re.compile(r"tui-agent (\d+\.\d+)\S*")


@click.command("ssh")
@click.argument("host", metavar="HOST")
@click.argument("path", metavar="[PATH]", required=False, default="")
@click.option("--attach", "session", metavar="ID", default="", help="Open this running session.")
def ssh(host: str, path: str, session: str) -> int:
    """Open the session of a folder on another machine.

    HOST is a destination of ssh and PATH a folder there; default: the home folder. The session runs there: if the
    line drops, it continues, and this command connects again.
    """
    program = ssh_program(host)
    with temporary_folder() as folder:
        connected = Path(folder, "connected")
        mark = ("-o", "PermitLocalCommand=yes", "-o", f"LocalCommand=touch {shlex.quote(str(connected))}")
        words = [program, "-t", *_ALIVE, *mark, "--", host]
        status = subprocess.run([*words, _remote(host, path, session, again=False)], check=False).returncode
        while status == LOST and connected.exists():
            if sys.stdout.isatty():
                os.write(1, RESET.encode())
            if sys.stdin.isatty():
                subprocess.run(["stty", "sane"], stdin=0, check=False)
            status = _again([*words, _remote(host, path, session, again=True)], connected)
    if status == LOST:
        raise SessionError(f"{host} could not be reached", f"try `ssh {shlex.quote(host)}`")
    return status


def _again(words: Sequence[str], connected: Path) -> int:
    """Connects again until it succeeds; returns the exit status of that connection."""
    for attempt in range(sys.maxsize):
        pause = PAUSES[min(attempt, len(PAUSES) - 1)]
        note(f"The connection was lost; the session continues. Next attempt in {pause} s · Ctrl+C ends")
        time.sleep(pause)
        connected.unlink(missing_ok=True)
        status = subprocess.run(words, check=False).returncode
        if status != LOST or connected.exists():
            return status
    return LOST


def _remote(host: str, path: str, session: str, *, again: bool) -> str:
    """The command for the far side. It checks the program there, and attaches to `session`, or to the folder's if
    `again`."""
    opening = "tui-agent attach 2>/dev/null || exec tui-agent --continue" if again else "exec tui-agent"
    if session:
        opening = shlex.join(("exec", "tui-agent", "attach", "--", session))
    name = shlex.quote(host)
    ours = _VERSION.match(f"tui-agent {__version__}")
    home = path == "~" or path.startswith("~/")
    place = f'"$HOME"{shlex.quote(path[1:])}' if home else shlex.quote(path)
    folder = f"cd -- {place} && " if path else ""
    return shell_words(
        f"""version=$(tui-agent --version 2>/dev/null) || {{
  printf 'tui-agent: %s has no tui-agent in its PATH: install it there\\n' {name} >&2; exit {_MISSING}; }}
case "$version" in
"tui-agent {ours[1] if ours else __version__}"*) ;;
*) printf 'tui-agent: %s runs %s, and this is {__version__}\\n' {name} "$version" >&2;;
esac
{folder}{opening}"""
    )
