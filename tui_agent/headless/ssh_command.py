"""`tui-agent ssh`: a session of another machine in this terminal."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click

from tui_agent import __version__
from tui_agent.control.launcher import RESET
from tui_agent.errors import SessionError, UsageError
from tui_agent.headless.output import note

#: Exit status of ssh if the connection failed or was lost.
LOST = 255
#: Seconds between attempts to connect again; the last is repeated.
PAUSES = (1, 2, 4, 8, 15)
#: Notices a dropped line within a quarter of a minute.
_ALIVE = ("-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3")
#: Seconds for `ps` on another machine.
_WITHIN = 10.0
#: The places of programs that pipx and uv install, which shells without a login leave out.
_PATH = 'PATH="$HOME/.local/bin:$PATH"'
_MISSING = 127
_VERSION = re.compile(r"tui-agent (\d+\.\d+)\S*")
Line = dict[str, Any]


@click.command("ssh")
@click.argument("host", metavar="HOST")
@click.argument("path", metavar="[PATH]", required=False, default="")
def ssh(host: str, path: str) -> int:
    """Open the session of a folder on another machine.

    HOST is a destination of ssh and PATH a folder there; default: the home folder. The session runs there: if the
    line drops, it continues, and this command connects again.
    """
    program = _program(host)
    with tempfile.TemporaryDirectory(prefix="tui-agent-ssh-") as folder:
        connected = Path(folder, "connected")
        mark = ("-o", "PermitLocalCommand=yes", "-o", f"LocalCommand=touch {shlex.quote(str(connected))}")
        words = [program, "-t", *_ALIVE, *mark, "--", host]
        status = subprocess.run([*words, _remote(host, path, again=False)], check=False).returncode
        while status == LOST and connected.exists():
            if sys.stdout.isatty():
                os.write(1, RESET.encode())
            if sys.stdin.isatty():
                subprocess.run(["stty", "sane"], stdin=0, check=False)
            status = _again([*words, _remote(host, path, again=True)], connected)
    if status == LOST:
        raise SessionError(f"{host} could not be reached", f"try `ssh {shlex.quote(host)}`")
    return status


def sessions_of(host: str) -> list[Line]:
    """The running sessions of a host, each with the field `host`. Raises `SessionError`."""
    words = [
        _program(host),
        "-o",
        "BatchMode=yes",
        "-o",
        "ConnectTimeout=5",
        "--",
        host,
        _shell("tui-agent ps --json"),
    ]
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, timeout=_WITHIN, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise SessionError(f"{host} did not answer", f"try `ssh {shlex.quote(host)}`") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2][:300]
        raise SessionError(
            f"{host} could not list its sessions ({said or f'status {done.returncode}'})", "try it there"
        )
    found = []
    for line in done.stdout.splitlines():  # A shell may print its own lines first.
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and isinstance(value.get("id"), str):
            found.append({**value, "host": host})
    return found


def sessions_of_all(hosts: Sequence[str]) -> Iterator[Line]:
    """The running sessions of several hosts, asked at once."""
    with ThreadPoolExecutor(max_workers=8) as threads:
        for waiting in [threads.submit(sessions_of, host) for host in hosts]:
            try:
                yield from waiting.result()
            except SessionError as error:
                note(f"tui-agent: {error}")


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


def _program(host: str) -> str:
    if host.startswith("-") or not host.isprintable() or " " in host or not host:
        raise UsageError(f"{host!r} is not a host", "give a destination of ssh, such as user@host")
    found = shutil.which("ssh")
    if found is None:
        raise UsageError("ssh is not installed", "install the OpenSSH client")
    return found


def _remote(host: str, path: str, *, again: bool) -> str:
    """The command for the far side. It checks the program there, and attaches to the folder's session if `again`."""
    name = shlex.quote(host)
    ours = _VERSION.match(f"tui-agent {__version__}")
    home = path == "~" or path.startswith("~/")
    place = f'"$HOME"{shlex.quote(path[1:])}' if home else shlex.quote(path)
    folder = f"cd -- {place} && " if path else ""
    return _shell(
        f"""version=$(tui-agent --version 2>/dev/null) || {{
  printf 'tui-agent: %s has no tui-agent in its PATH: install it there\\n' {name} >&2; exit {_MISSING}; }}
case "$version" in
"tui-agent {ours[1] if ours else __version__}"*) ;;
*) printf 'tui-agent: %s runs %s, and this is {__version__}\\n' {name} "$version" >&2;;
esac
{folder}{"tui-agent attach 2>/dev/null || exec tui-agent --continue" if again else "exec tui-agent"}"""
    )


def _shell(script: str) -> str:
    return f"exec sh -c {shlex.quote(f'{_PATH}; export PATH; {script}')}"
