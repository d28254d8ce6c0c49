"""The line that shows the Vim mode."""

from __future__ import annotations

from textual.content import Content

from tui_agent.ui.editor.vim import VimDisplay
from tui_agent.ui.safe_text import parts


def mode_words(shown: VimDisplay) -> Content:
    return parts((shown.mode.upper(), "$accent"), f"  {shown.typed}", (shown.refused, "$warning"))
