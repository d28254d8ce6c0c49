"""The next terminal of a running session gets as many colours as it shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.screens import on_screen

from tui_agent.ui.themes import load_palette


async def test_a_terminal_with_more_colours_gets_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLORTERM", "truecolor")
    async with on_screen(tmp_path) as it:
        monkeypatch.delenv("COLORTERM")
        it.app.use_theme("")
        await it.until(lambda: it.screen.styles.background.hex == "#000000", "16 colours")
        assert it.app.console.color_system == "standard"
        monkeypatch.setenv("COLORTERM", "truecolor")
        it.app.use_theme("")
        ground = load_palette("dark").colors["background"]
        await it.until(lambda: it.screen.styles.background.hex.lower() == ground, "all colours")
        assert it.app.console.color_system == "truecolor"
