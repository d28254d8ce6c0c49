"""The rehearsal as a person does it: by keys alone, in a real terminal, and again where it was left."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect
import pyte
import pytest
from support.program import json_lines, of_type, run
from support.rehearsal_scenes import (
    BATCH_REQUEST,
    CHECKED_REQUEST,
    GOING_ON_REQUEST,
    SCENES,
    STALE_REQUEST,
    SUB_TASKS_REQUEST,
)

from tui_agent.rehearsal import copy_project, recording

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


def test_the_rehearsal_by_keys_alone_and_again_where_it_was(
    tmp_path: Path, environment: dict[str, str], copies: Path
) -> None:
    """In a real terminal; `tests/rehearsal/test_guide.py` walks a small screen."""
    size = (160, 48)
    terminal = Terminal("demo", folder=tmp_path, size=size, environment=environment)
    terminal.shows("shop/api/payments.py.")
    terminal.shows("recorded")
    terminal.press(ENTER)
    terminal.shows("changed 2 files +3 −3")
    terminal.shows("✓ tests 10 passed")  # while they run, F8 would say so first
    project = next(copies.glob("tui-agent-demo-*"))
    assert "timeout=" not in (project / "shop/clients/orders_v2.py").read_text()
    terminal.press(F8)
    terminal.shows("2 applied")
    changed = (project / "shop/clients/orders_v2.py").read_text()
    assert "timeout=REQUEST_TIMEOUT" in changed
    assert "timeout=settings.REQUEST_TIMEOUT" in (project / "shop/clients/payments.py").read_text()
    terminal.press("1")
    terminal.shows("What happens now when")
    terminal.press(ENTER)
    terminal.shows("Whoever pays should")
    terminal.press(CHECKED_REQUEST, ENTER)
    terminal.shows("It has to be min and not max")
    terminal.shows("✓ tests 10 passed")
    assert "LONGEST_PAUSE" not in (project / "shop/settings.py").read_text()
    terminal.press(F8)
    terminal.shows("2 applied")
    assert "min(2 * pause, settings.LONGEST_PAUSE)" in (project / "shop/retry.py").read_text()
    assert terminal.quit() == 0
    assert "tui-agent --continue" in terminal.after

    again = Terminal("--continue", folder=tmp_path, size=size, environment=environment)
    again.shows("It has to be min and not max")
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


def test_every_scene_in_order_with_no_screen_and_everything_applied(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    project = copy_project(tmp_path / "bookshop")
    told: dict[str, list[dict[str, Any]]] = {}
    for scene in SCENES:
        if scene.request == STALE_REQUEST:
            file = project / "shop/retry.py"
            file.write_text("# mine\n" + file.read_text(encoding="utf-8"), encoding="utf-8")
        done = run(
            "run", "--json", "--apply", "all", "--replay", str(recording()),
            *(["--session", "last"] if told else []), scene.request, folder=project, environment=environment,
        )  # fmt: skip
        assert done.returncode == 0, (scene.request, done.stderr, done.stdout)
        told[scene.request] = json_lines(done)
    for scene in SCENES:
        lines, changes = told[scene.request], scene.answer.get("fileChanges", [])
        applied = {line["path"] for line in of_type(lines, "change") if line["state"] == "applied"}
        assert applied == {change["path"] for change in changes}
        response = of_type(lines, "response")[-1]
        assert response["summary"] == scene.answer.get("summary", ""), (
            "none is made where the model gave none"
        )
        assert response["message"].strip() == scene.answer.get("message", "").strip()
    assert [action["all"] for action in of_type(told[BATCH_REQUEST], "plan")[0]["actions"]] == [True]
    assert [line["path"] for line in of_type(told[STALE_REQUEST], "file_loaded")] == ["shop/retry.py"]
    assert "tests/test_retry.py" in of_type(told[GOING_ON_REQUEST], "request")[0]["files"]
    states = {line["id"]: line["state"] for line in of_type(told[SUB_TASKS_REQUEST], "subtask")}
    assert states == {"model": "ready", "client": "pending", "words": "pending", "command": "pending"}
    assert (project / "shop/retry.py").read_text(encoding="utf-8").startswith("# mine\n")
