"""A fault on the screen ends it in one sentence, with the terminal given back and nothing of the person's printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Static

from tui_agent import cli, debug_log
from tui_agent.session import opening
from tui_agent.ui import app as ui_app
from tui_agent.ui.textual_patches.fatal_errors import FatalErrorsApp


def test_a_fault_is_told_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ui_app.WorkspaceApp.run_async

    async def headless(self: ui_app.WorkspaceApp, **options: Any) -> Any:
        return await run(self, headless=True, size=(100, 30))

    async def broken(*_: object, **__: object) -> Any:
        words_of_the_person = "private words"
        raise ZeroDivisionError(len(words_of_the_person) / 1)

    monkeypatch.setattr(ui_app.WorkspaceApp, "run_async", headless)
    monkeypatch.setattr(opening, "open_session", broken)
    monkeypatch.setattr(cli, "needs_a_terminal", lambda: None)
    assert cli.main([str(tmp_path)]) == 1
    told = capsys.readouterr()
    assert told.err.startswith("tui-agent: unexpected error: ZeroDivisionError: 13.0: ")
    assert told.err.count("\n") == 1
    path = told.err.rpartition(" is in ")[2].strip()
    debug_log.flush()
    assert "in broken" in Path(path).read_text() and "private" not in Path(path).read_text()
    assert cli.main([str(tmp_path), "--debug"]) == 1
    told = capsys.readouterr()
    assert "Traceback" in told.err and "in broken" in told.err
    assert "private" not in told.out + told.err


class MountedAtTheEnd(FatalErrorsApp[int]):
    def on_mount(self) -> None:
        self.exit(return_code=0)
        self.mount(BrokenWidget())


class BrokenWidget(Static):
    def on_mount(self) -> None:
        raise ZeroDivisionError


async def test_a_fault_of_a_widget_that_is_mounted_at_the_end_is_none() -> None:
    app = MountedAtTheEnd()
    await app.run_async(headless=True)
    assert (app.return_code, app.fault) == (0, None)
