"""`tui-agent ssh` and `remote.hosts` with a real sshd: attach, a lost line, and far sides that do not fit."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faults.test_full_home import full
from support.program import run
from support.ssh_server import PROGRAM, FarHost, far_host
from support.terminal_program import Program, running

pytestmark = pytest.mark.skipif(
    PROGRAM is None, reason="sshd is not installed: apt-get install openssh-server"
)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "far work's"
    folder.mkdir()
    return folder


@pytest.fixture
def host(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FarHost]:
    (tmp_path / "sockets").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "sockets"))
    monkeypatch.setenv("TUI_AGENT_REMOTE__HOSTS", "")
    monkeypatch.delenv("TUI_AGENT_REMOTE__HOSTS")
    with far_host(tmp_path / "far", home) as found:
        monkeypatch.setenv("PATH", f"{found.folder / 'near'}:{os.environ['PATH']}")
        yield found
        for session in running_sessions(tmp_path):
            run("stop", session["id"], folder=tmp_path)


def running_sessions(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run("ps", "--json", folder=folder).stdout.splitlines()]


def test_a_lost_line_is_connected_again_and_nothing_typed_is_lost(
    host: FarHost, workspace: Path, tmp_path: Path, home: Path
) -> None:
    host.share_a_connection()
    program = Program("ssh", "far", str(workspace), folder=tmp_path, home=home)
    with running(program, sign="Choose a model by its digit"):
        program.type(b"typed before the line was lost")
        program.shows("line was lost")
        program.until(lambda: running_sessions(tmp_path), "its socket")
        (before,) = running_sessions(tmp_path)
        assert before["workspace"] == str(workspace)
        host.drop()
        program.until(lambda: b"Next attempt in 1 s" in program.written, "the notice")
        program.until(lambda: program.written.count(b"\x1b[?1049h") == 2, "the screen again")
        (after,) = running_sessions(tmp_path)
        assert (after["id"], after["pid"]) == (before["id"], before["pid"])
        program.type(b"!")
        program.shows("line was lost!")


def test_sessions_of_named_hosts_are_listed(
    host: FarHost, workspace: Path, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = run("--bg", "", str(workspace), folder=tmp_path).stdout.strip()
    (home / "config").mkdir(exist_ok=True)
    (home / "config" / "settings.toml").write_text(
        '[remote]\nhosts = ["far", "-oProxyCommand=x", "missing.invalid"]\n'
    )
    done = run("ps", "--json", folder=tmp_path)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["id"], row.get("host")) for row in rows] == [(begun, None)], (
        "a bad name leaves the setting out"
    )
    (home / "config" / "settings.toml").write_text('[remote]\nhosts = ["far", "missing.invalid"]\n')
    done = run("ps", "--json", folder=tmp_path)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["id"], row.get("host")) for row in rows] == [(begun, None), (begun, "far")]
    assert done.stderr.count("\n") == 1 and "missing.invalid could not list its sessions" in done.stderr
    assert f"far: {begun}" in run("ps", folder=tmp_path).stdout


def test_a_far_side_that_does_not_fit_is_one_sentence(host: FarHost, workspace: Path, tmp_path: Path) -> None:
    (host.folder / "bin" / "tui-agent").unlink()
    done = run("ssh", "far", folder=tmp_path)
    assert (done.returncode, done.stderr) == (
        127,
        "tui-agent: far has no tui-agent in its PATH: install it there\n",
    )
    host.install("9.9.0")
    done = run("ssh", "far", str(workspace), folder=tmp_path)
    assert "tui-agent: far runs tui-agent 9.9.0, and this is " in done.stderr
    assert "needs a terminal" in done.stderr, "it starts there all the same"
    done = run("ssh", "far", "/missing folder/x", folder=tmp_path)
    assert done.returncode != 0 and "/missing folder/x" in done.stderr
    host.stop()
    done = run("ssh", "far", folder=tmp_path)
    assert done.returncode == 1 and "far could not be reached: try `ssh far`" in done.stderr
    for bad in ("-oProxyCommand=touch x", "a b", ""):
        done = run("ssh", "--", bad, folder=tmp_path)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert not (tmp_path / "x").exists()


def test_a_far_shell_that_prints_and_a_far_home_that_is_full(
    host: FarHost, workspace: Path, tmp_path: Path, home: Path
) -> None:
    words = 'printf "Welcome to this host\\n"; echo \'{"id": 7}\'; echo \'{"id"\'; printf "no line break"'
    (host.folder / ".bashrc").write_text(f"{words}\n")
    begun = run("--bg", "", str(workspace), folder=tmp_path).stdout.strip()
    listed = run("ps", "--json", folder=tmp_path, environment={"TUI_AGENT_REMOTE__HOSTS": '["far"]'}).stdout
    rows = [json.loads(line) for line in listed.splitlines()]
    assert [(row["id"], row.get("host")) for row in rows] == [(begun, None), (begun, "far")]
    run("stop", begun, folder=tmp_path)
    with full(home):
        program = Program("ssh", "far", str(workspace), folder=tmp_path, home=home)
        with running(program, sign="Choose a model by its digit"):
            program.type(b"kept in memory")
            program.shows("kept in memory")
            program.until(lambda: running_sessions(tmp_path), "its socket")
            host.drop()
            program.until(lambda: program.written.count(b"\x1b[?1049h") == 2, "the screen again")
            program.shows("kept in memory")
