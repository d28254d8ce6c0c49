"""The program inside a real tmux: 16 colours by `TERM=screen`, its clipboard, and its title."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from shlex import quote
from shutil import which

import pytest

pytestmark = pytest.mark.skipif(not which("tmux"), reason="tmux is not installed")
PATIENCE = 60.0
CONFIGURATION = "set -g default-terminal screen\n"  # and the default of set-clipboard, which drops OSC 52


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Runs a command of a tmux of our own, in which the rehearsal is open."""
    (tmp_path / "tmux.conf").write_text(CONFIGURATION)
    own = ["tmux", "-S", str(tmp_path / "socket"), "-f", str(tmp_path / "tmux.conf")]
    kept = {key: value for key, value in os.environ.items() if key not in ("TMUX", "COLORTERM", "NO_COLOR")}
    kept |= {"TUI_AGENT_HOME": str(tmp_path / "home"), "TUI_AGENT_REPLAY_SPEED": "0"}

    def run(*words: str) -> str:
        return subprocess.run([*own, *words], env=kept, capture_output=True, text=True, check=False).stdout

    run("new-session", "-d", "-x", "100", "-y", "30", f"{quote(sys.executable)} -m tui_agent demo")
    yield run
    run("kill-server")


def until(found: Callable[[], str], wanted: str) -> str:
    deadline = time.monotonic() + PATIENCE
    while not re.search(wanted, text := found()):
        assert time.monotonic() < deadline, f"never {wanted!r}:\n{text}"
        time.sleep(0.05)
    return text


def test_inside_tmux(tmux: Callable[..., str]) -> None:
    def screen() -> str:
        return tmux("capture-pane", "-p", "-e")

    until(screen, "Three things to try")
    until(screen, "shop/api/payments")
    tmux("send-keys", "Enter")
    until(screen, r"●\d")
    tmux("send-keys", "C-o", "r")
    coloured = until(screen, r"\+ [^\n]*import ORDERS_URL")
    for color, sign in (("91", "-"), ("92", r"\+")):
        assert re.search(rf"\x1b\[{color}m[^\n]*{sign} [^\n]*import ORDERS_URL", coloured), (color, coloured)
    assert until(lambda: tmux("display-message", "-p", "#{pane_title}"), "tui-agent").endswith(
        "· tui-agent\n"
    )
    tmux("send-keys", "C-o", "c")
    tmux("send-keys", "-l", "copy me")
    until(screen, "copy me")
    tmux("send-keys", "S-Home")
    tmux("send-keys", "C-c")
    assert until(lambda: tmux("show-buffer"), "copy") == "copy me"
    until(screen, "7 characters copied")
