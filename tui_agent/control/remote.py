"""Sessions on other machines, by ssh without a question."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tui_agent.errors import SessionError, UsageError

WITHIN = 10.0
#: Folders of programs that pipx and uv install, which shells without a login leave out.
_PATH = 'PATH="$HOME/.local/bin:$PATH"'
Line = dict[str, Any]


def sessions_of(host: str) -> list[Line]:
    """Returns a host's running sessions, each with the field `host`. Raises `SessionError`."""
    found = []
    for line in _output(host, "list its sessions", "ps", "--json").splitlines():
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and isinstance(value.get("id"), str):
            found.append({**value, "host": host})
    return found


def sessions_of_all(hosts: Sequence[str]) -> Iterator[list[Line] | SessionError]:
    """Asks all hosts at once. Yields the running sessions of each, or the reason why they are unknown."""

    def asked(host: str) -> list[Line] | SessionError:
        try:
            return sessions_of(host)
        except SessionError as error:
            return error

    with ThreadPoolExecutor(max_workers=8) as threads:
        yield from threads.map(asked, hosts)


def answer(host: str, session: str, words: str) -> None:
    """Raises `SessionError`."""
    _output(host, "answer", "answer", "--", session, words)


def ssh_program(host: str) -> str:
    """Returns the path of ssh. Raises `UsageError` without ssh, and for a host that it would read as an
    option.
    """
    if host.startswith("-") or not host.isprintable() or " " in host or not host:
        raise UsageError(f"{host!r} is not a host", "give a destination of ssh, such as user@host")
    found = shutil.which("ssh")
    if found is None:
        raise UsageError("ssh is not installed", "install the OpenSSH client")
    return found


def shell_words(script: str) -> str:
    return f"exec sh -c {shlex.quote(f'{_PATH}; export PATH; {script}')}"


def _output(host: str, to_do: str, *words: str) -> bytes:
    options = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=5")
    # A shell may print its own lines first, and no line break after the last.
    script = shell_words(f"echo; {shlex.join(('tui-agent', *words))}")
    try:
        done = subprocess.run(
            [ssh_program(host), *options, "--", host, script],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=WITHIN,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SessionError(f"{host} did not answer", f"try `ssh {shlex.quote(host)}`") from error
    except UsageError as error:
        raise SessionError(error.what, error.remedy) from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2][:300]
        raise SessionError(
            f"{host} could not {to_do} ({said or f'status {done.returncode}'})", "try it there"
        )
    return done.stdout
