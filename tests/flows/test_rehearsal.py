"""The rehearsal as a person does it: by keys alone, in a real terminal, and again where it was left."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pyte
import pytest

PATIENCE = 60
ENTER, F8, F1, ESC, CTRL_C = "\r", "\x1b[19~", "\x1bOP", "\x1b", "\x03"


class Terminal:
    """The program on a pseudo-terminal, and the screen that it has drawn so far."""

    def __init__(self, *words: str, folder: Path, size: tuple[int, int], environment: dict[str, str]) -> None:
        columns, rows = size
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.Stream(self.screen)
        self.child = pexpect.spawn(
            sys.executable,
            ["-m", "tui_agent", *words],
            cwd=str(folder),
            env={**os.environ, **environment, "TERM": "xterm-256color"},  # type: ignore[arg-type]
            dimensions=(rows, columns),
            encoding="utf-8",
            timeout=PATIENCE,
        )
        self.after = ""

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.screen.display)

    def shows(self, words: str) -> None:
        """Read what comes until the words stand on the screen."""
        while words not in self.text:
            try:
                self._stream.feed(self.child.read_nonblocking(65536, timeout=PATIENCE))
            except (pexpect.TIMEOUT, pexpect.EOF) as error:
                raise AssertionError(f"never: {words!r}\n{self.text}") from error

    def press(self, *keys: str) -> None:
        for key in keys:
            self.child.send(key)

    def quit(self) -> int:
        """Two presses; the exit status, and in `after` what stands on the terminal then."""
        self.press(CTRL_C)
        self.shows("again to quit")
        self.press(CTRL_C)
        self.after = self.child.read()
        self.child.close()
        return self.child.exitstatus or 0


@pytest.fixture
def environment(home: Path) -> dict[str, str]:
    # no address outside may be reached: a proxy that nobody listens on would turn any try into an error
    return {
        "TUI_AGENT_HOME": str(home),
        "TUI_AGENT_REPLAY_SPEED": "0",
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "HTTP_PROXY": "http://127.0.0.1:9",
    }


@pytest.fixture
def copies(tmp_path: Path, environment: dict[str, str]) -> Iterator[Path]:
    """Where the rehearsal puts its copy of the sample project."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    environment["TMPDIR"] = str(folder)
    yield folder


@pytest.mark.parametrize("size", [(160, 48), (80, 24)])
def test_the_rehearsal_by_keys_alone_and_again_where_it_was(
    tmp_path: Path, environment: dict[str, str], copies: Path, size: tuple[int, int]
) -> None:
    terminal = Terminal("demo", folder=tmp_path, size=size, environment=environment)
    terminal.shows("shop/api/payments.py.")
    terminal.shows("recorded")
    terminal.press(ENTER)
    terminal.shows("2 files · 3 hunks · 2 todos")
    project = next(copies.glob("tui-agent-demo-*"))
    assert "timeout=" not in (project / "shop/clients/orders_v2.py").read_text()
    terminal.press(F8)
    terminal.shows("2 applied" if size[0] > 100 else "applied")
    changed = (project / "shop/clients/orders_v2.py").read_text()
    assert "timeout=REQUEST_TIMEOUT" in changed
    assert "timeout=settings.REQUEST_TIMEOUT" in (project / "shop/clients/payments.py").read_text()
    terminal.press("1")
    terminal.shows("What happens now when")
    terminal.press(ENTER)
    terminal.shows("payment is an error at once" if size[0] < 100 else "Whoever pays should")
    assert terminal.quit() == 0
    assert "tui-agent --continue" in terminal.after

    again = Terminal("--continue", folder=tmp_path, size=size, environment=environment)
    again.shows("Nothing needs to change")
    assert again.quit() == 0
    assert (project / "shop/clients/orders_v2.py").read_text() == changed


def test_what_has_no_recording_is_answered_with_what_can_be_asked(
    tmp_path: Path, environment: dict[str, str], copies: Path
) -> None:
    terminal = Terminal("demo", folder=tmp_path, size=(120, 40), environment=environment)
    terminal.shows("shop/api/payments.py.")
    terminal.press(" Please.", ENTER)
    terminal.shows("It can answer")
    terminal.shows("Use the timeout from")
    assert terminal.quit() == 0
