"""`tui-agent ps | attach | stop | logs | answer`: sessions that run now, with or without a terminal."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import Any, NoReturn

import click

from tui_agent import __version__
from tui_agent.control import sockets
from tui_agent.control.connections import row_of
from tui_agent.control.launcher import RESET
from tui_agent.control.remote import sessions_of_all, shell_words, ssh_program
from tui_agent.control.sockets import SessionSocket
from tui_agent.errors import SessionError, TuiAgentError
from tui_agent.files.operating_system import read_start
from tui_agent.files.private import temporary_folder
from tui_agent.headless import arguments, output
from tui_agent.headless.output import json_line, note, row
from tui_agent.settings.folders import user_folders

Line = dict[str, Any]
_session = click.argument("session", metavar="ID")


@click.command("ps")
@arguments.json_option
def ps(as_json: bool) -> int:
    """List running sessions.

    Oldest first. Columns: id, state, changes, cost, folder. The sessions on each host in `remote.hosts` follow.
    """

    def show(state: Line) -> None:
        if as_json:
            json_line({name: value for name, value in state.items() if name != "type"})
        else:
            row(row_of(state))

    for _, state in sockets.states():
        show(state)
    folders = user_folders()
    try:
        named = b"hosts" in read_start(folders.config / "settings.toml")
    except OSError:
        named = False
    if named or "TUI_AGENT_REMOTE__HOSTS" in os.environ:  # loading takes longer than the rest
        from tui_agent.settings.loading import load

        for found in sessions_of_all(load(folders, Path.cwd(), False).settings.remote.hosts):
            if isinstance(found, SessionError):
                output.error(str(found))
                continue
            for state in found:
                show(state)
    return 0


@click.command("attach")
@click.argument("session", metavar="[ID]", required=False)
def attach(session: str | None) -> int:
    """Open a running session in this terminal.

    Default: the session of this folder, otherwise the latest.
    """
    return sockets.attach(_found(session), sys.stderr.write)


@click.command("stop")
@_session
def stop(session: str) -> int:
    """End a running session. Its data is kept."""
    sockets.request(_found(session), {"type": "quit"})
    return 0


@click.command("logs")
@click.option("-f", "--follow", is_flag=True, help="Print new events until the session ends.")
@_session
def logs(session: str, follow: bool) -> int:
    """Show the events of a running session.

    Prints its state as JSON lines and, with -f, new events.
    """
    with sockets.reach(_found(session)) as connection:
        if follow:
            connection.settimeout(None)
        for line in sockets.lines(connection):
            json_line(line)
            sys.stdout.flush()
            if not follow:
                break
    return 0


@click.command("answer")
@_session
@click.argument("words", metavar="NUMBER|TEXT")
def answer(session: str, words: str) -> int:
    """Answer the question of a running session.

    The answer is the number of a choice, or text.
    """
    sockets.request(_found(session), {"type": "answer", "text": words})
    return 0


def detached_in(workspace: Path) -> Iterator[tuple[SessionSocket, Line]]:
    """Yields this folder's sessions without a terminal, and their states, newest first. Raises
    `SessionError`.
    """
    return ((place, state) for place, state in sockets.states_in(workspace) if not state["attached"])


def begin(prompt: str, open_screen: Callable[[], int]) -> int:
    """Begins a session in a process without a terminal, sends its first message unless empty, and prints its
    id.
    """
    with tempfile.TemporaryFile() as said:
        sys.stdout.flush()
        if not (pid := os.fork()):
            _run_apart(said.fileno(), open_screen)
        while (place := next((it for it in sockets.places() if it.pid == pid), None)) is None:
            if os.waitpid(pid, os.WNOHANG)[0]:
                said.seek(0)
                output.write_text(said.read(10_000).decode(errors="replace"), sys.stderr)
                return 1
            time.sleep(0.02)
    if prompt:
        try:
            sockets.request(place, {"type": "submit", "text": prompt})
        except SessionError:
            sockets.request(place, {"type": "quit"})
            raise
    row(place.session)
    return 0


def _run_apart(errors: int, open_screen: Callable[[], int]) -> NoReturn:
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor, target in ((null, 0), (null, 1), (errors, 2)):
        os.dup2(descriptor, target)
    status = 1
    try:
        status = open_screen()
    except TuiAgentError as error:
        output.error(str(error))
        status = error.exit_status
    finally:
        sys.stderr.flush()
        os._exit(status)


def _found(session: str | None) -> SessionSocket:
    if session is None:
        alive = sockets.states()
        here = [place for place, state in alive if state["workspace"] == os.path.realpath(os.curdir)]
        found = here or [place for place, _ in alive]
        if not found:
            raise SessionError("no session is running", "start one with `tui-agent`")
        return found[-1]
    running = sockets.places()
    found = [place for place in running if session in (place.session, str(place.pid))]
    found = found or [place for place in running if session and place.session.endswith(session)]
    if len(found) != 1:
        why = "no running session has" if not found else "several running sessions have"
        raise SessionError(f"{why} the id {session}", "`tui-agent ps` lists them")
    return found[0]


#: Exit status of ssh for a failed or lost connection.
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

    HOST is an ssh destination and PATH a folder there; default: the home folder. The session runs there: if the
    connection drops, it continues, and this command reconnects.
    """
    program = ssh_program(host)
    with temporary_folder() as folder:
        connected = Path(folder, "connected")
        touch = f"touch {shlex.quote(str(connected))}".replace("%", "%%")
        mark = ("-o", "PermitLocalCommand=yes", "-o", f"LocalCommand={touch}")
        words = [program, "-t", *_ALIVE, *mark, "--", host]
        status = _connection([*words, _remote(host, path, session, again=False)], connected)
        while status == LOST and connected.exists():
            if sys.stdout.isatty():
                os.write(1, RESET.encode())
            if sys.stdin.isatty():
                subprocess.run(["stty", "sane"], stdin=0, check=False)
            again = [*words, _remote(host, path, session, again=True)]
            for pause in chain(PAUSES, repeat(PAUSES[-1])):
                note(
                    f"The connection was lost; the session continues. Next attempt in {pause} s · Ctrl+C ends"
                )
                time.sleep(pause)
                status = _connection(again, connected)
                if status != LOST or connected.exists():
                    break
    if status == LOST:
        raise SessionError(f"{host} could not be reached", f"try `ssh {shlex.quote(host)}`")
    return status


def _connection(words: Sequence[str], connected: Path) -> int:
    """`connected` exists afterwards if the host was reached."""
    connected.unlink(missing_ok=True)
    null = subprocess.DEVNULL
    # Over the connection of another ssh (ControlPath), ssh runs no LocalCommand.
    asking = subprocess.Popen([words[0], "-O", "check", *words[-3:-1]], stdin=null, stdout=null, stderr=null)
    status = subprocess.run(words, check=False).returncode
    if asking.poll() == 0:
        connected.touch()
    asking.kill()
    asking.wait()
    return status


def _remote(host: str, path: str, session: str, *, again: bool) -> str:
    """Returns the command for the remote side. It checks the program there, and attaches to `session`, or to
    the folder's if `again`.
    """
    opening = "tui-agent attach 2>/dev/null || exec tui-agent --continue" if again else "exec tui-agent"
    if session:
        opening = shlex.join(("exec", "tui-agent", "attach", "--", session))
    name = shlex.quote(host)
    ours = _VERSION.match(f"tui-agent {__version__}")
    home = path == "~" or path.startswith("~/")
    place = f'"$HOME"{shlex.quote(path[1:])}' if home else shlex.quote(path)
    folder = f"cd -- {place} || exit; " if path else ""
    same = f"tui-agent {ours[1] if ours else __version__}"
    # One line: csh and tcsh allow no other in quotes.
    return shell_words(
        "version=$(tui-agent --version 2>/dev/null) || { "
        f"printf 'tui-agent: %s has no tui-agent in its PATH: install it there\\n' {name} >&2; exit {_MISSING}; }}; "
        f'case "$version" in "{same}" | "{same}".*) ;; '
        f"""*) printf 'tui-agent: %s runs %s, and this is {__version__}\\n' {name} "$version" >&2;; esac; """
        f"{folder}{opening}"
    )
