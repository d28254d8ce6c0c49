"""`tui-agent ps` by the launcher: the same rows as those of the whole program, from all sessions at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.program import run

from tui_agent.control import connections, launcher, sockets

#: Prints the imported modules after the rows.
TRACED = """
import sys
before = set(sys.modules)
sys.path.append(sys.argv[1])
from tui_agent.control import launcher
status = launcher.main(sys.argv[3:], sys.argv[2])
print(*sorted(set(sys.modules) - before), file=sys.stderr)
sys.exit(status)
"""
#: Replaces the launcher where it starts the whole program.
COLD = "#!/bin/sh\necho cold\n"
#: Modules that need no others.
FEW = {"__future__", "_blake2", "_json", "_signal", "_socket", "posix", "select", "termios", "time"}
OURS = {"tui_agent", "tui_agent.control", "tui_agent.control.launcher", "tui_agent.control.connections"}


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return sockets.made_folder()


def state(number: int, **changed: Any) -> dict[str, Any]:
    values = {
        "type": "state",
        "id": f"session-{number:02}",
        "pid": number,
        "workspace": "/project",
        "state": "asks",
        "asks": "Run it?",
        "choices": ["once", "no"],
        "changes": number,
        "cost": 0.25,
        "attached": False,
    }
    return values | changed


def serve(folder: Path, *said: dict[str, Any] | None) -> Callable[[], None]:
    """Sockets of sessions that say their states once, each after all are asked; None for one that says nothing.
    Returns a function that closes them."""
    servers = [(sockets.listening(folder, f"session-{at:02}.{at}"), line) for at, line in enumerate(said, 1)]

    def answer() -> None:
        asked = []
        for server, line in servers:
            server.setblocking(True)
            asked.append((server.accept()[0], line))
        for connection, line in asked:
            if line is not None:
                connection.sendall(json.dumps(line).encode() + b"\n")
                connection.close()

    thread = threading.Thread(target=answer)
    thread.start()

    def close() -> None:
        thread.join()
        for server, _ in servers:
            server.close()

    return close


def listed(tmp_path: Path, *words: str, **variables: str) -> tuple[str, set[str]]:
    """The output of the launcher, and its imports."""
    cold = tmp_path / "cold"
    cold.write_text(COLD)
    cold.chmod(0o755)
    package = str(Path(launcher.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-IS", "-c", TRACED, package, str(cold), "ps", *words],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **variables},
    )
    return done.stdout, set(done.stderr.split())


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_twenty_sessions_are_asked_at_once_by_built_in_modules(
    folder: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    said = [
        state(1, cost=None),
        state(2, attached=True, asks=None),
        *(state(at, changes=0) for at in range(3, 21)),
    ]
    close = serve(folder, *said)
    rows, imported = listed(tmp_path, *words)
    close()
    close = serve(folder, *said)
    whole = run("ps", *words, folder=tmp_path).stdout
    close()
    assert rows == whole and len(rows.splitlines()) == 20
    assert imported <= FEW | OURS


def test_a_killed_session_is_removed_and_a_stopped_one_delays_the_list_once(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "STATES_WITHIN", 0.3)
    close = serve(folder, state(1), None, None)
    sockets.listening(folder, "killed.7").close()
    names = sorted(os.listdir(folder))
    assert list(connections.states(str(folder), names)) == ["session-01.1"]
    assert "killed.7" in names and "killed.7" not in os.listdir(folder)
    close()


@pytest.mark.parametrize("kind", ["control characters", "hosts", "variable", "open folder"])
def test_the_whole_program_lists_when_more_is_needed(folder: Path, tmp_path: Path, kind: str) -> None:
    variables = {"TUI_AGENT_HOME": str(tmp_path / "home")}
    if kind == "hosts":
        (tmp_path / "home" / "config").mkdir(parents=True)
        (tmp_path / "home" / "config" / "settings.toml").write_text('remote.hosts = ["box"]\n')
    elif kind == "variable":
        variables["TUI_AGENT_REMOTE__HOSTS"] = "box"
    elif kind == "open folder":
        folder.chmod(0o755)
    close = serve(folder, state(1, workspace="/a\x1b[2J")) if kind == "control characters" else None
    assert listed(tmp_path, **variables)[0] == "cold\n"
    if close:
        close()


def test_more_sessions_than_are_asked_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_ASKED", 2)
    servers = [sockets.listening(folder, f"{at}.{at}") for at in range(5)]

    def answer() -> None:
        for server in servers:
            server.setblocking(True)
            connection = server.accept()[0]
            connection.sendall(b'{"id": "x"}\n')
            connection.close()

    thread = threading.Thread(target=answer)
    thread.start()
    names = sorted(os.listdir(folder))
    assert list(connections.states(str(folder), names)) == names
    thread.join()
