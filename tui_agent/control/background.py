"""Sessions that begin without a terminal, for clients that attach to them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tui_agent.control import sockets
from tui_agent.control.sockets import SessionSocket
from tui_agent.errors import SessionError
from tui_agent.files.text import one_line


def begin(workspace: Path, resumed: str = "") -> SessionSocket:
    """Raises `SessionError`. Blocking."""
    words = [sys.executable, "-m", "tui_agent", "--bg", "", *([f"--resume={resumed}"] if resumed else [])]
    done = subprocess.run(
        [*words, str(workspace)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    session = done.stdout.strip()
    for place in sockets.places():
        if session and place.session == session:
            return place
    said = one_line(done.stderr.strip()[-300:]) or "it ended at once"
    raise SessionError(f"no session could begin ({said})", "start `tui-agent` in a terminal")
